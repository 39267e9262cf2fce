//! The corpus. `NNN-what-yes.sched` contains a schedule that is accepted, and `NNN-what-no.sched`
//! one that is refused.

use crate::support::{random, read};
use fencepost_planner::ir::pattern::Patterns;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::verify::{verify, verify_expanded};

#[test]
fn the_corpus_is_accepted_and_refused_as_its_names_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verify");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "sched"));
    files.sort();
    for (number, file) in files.iter().enumerate() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(name.starts_with(&format!("{:03}-", number + 1)), "{name} is not number {}", number + 1);
        let text = std::fs::read_to_string(file).unwrap();
        let says = |key: &str| text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key));
        let placement = match says("placement ") {
            None => Placement::Together,
            Some("apart") => Placement::Apart,
            Some(ranks) => Placement::Hosts { ranks_each: ranks.parse().unwrap() },
        };
        let (patterns, schedule) = text.split_once("---").unwrap();
        let patterns: Patterns = patterns.parse().unwrap();
        let schedule = read::schedule(schedule, &patterns, placement);
        let expanded = verify_expanded(&patterns, &schedule).map_err(|error| error.name());
        let verdict = verify(&patterns, schedule).map(|_| ());
        match (name.ends_with("-yes"), name.ends_with("-no")) {
            (true, _) => assert!(verdict.is_ok(), "{name}: {}", verdict.unwrap_err()),
            (_, true) => {
                let error = verdict.clone().expect_err(name);
                assert_eq!(Some(error.name()), says("refused "), "{name}: {error}");
            }
            _ => panic!("{name} names no verdict"),
        }
        assert_eq!(expanded, verdict.map_err(|error| error.name()), "{name}, expanded");
    }
    assert!(files.len() >= 30, "{} files", files.len());
}

#[test]
fn a_printed_schedule_is_read_as_it_was() {
    for seed in 0..300 {
        let patterns = random::epoch(seed);
        let (placement, options) = random::choices(seed);
        let schedule = random::compiled(&patterns, placement, &options, seed);
        let read = read::schedule(&schedule.to_string(), &patterns, placement);
        assert_eq!(read.class_of, schedule.class_of);
        for (class, program) in schedule.classes.iter() {
            let again = &read.classes[class];
            assert_eq!(
                (&again.buffers, &again.instructions, &again.least_len),
                (&program.buffers, &program.instructions, &program.least_len)
            );
        }
    }
}
