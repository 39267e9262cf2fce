//! Golden tests. Each file `passes/<pass>/*.sched` has patterns, `---`, and the stage that the pass
//! makes of them.
//!
//! Lines `# key value` before the patterns set `placement` (`together`, `apart`, or the number of
//! ranks on a host), `mode`, `coalesce off`, `chunk` and `cap` (bytes). With `FENCEPOST_BLESS=1` in
//! the environment the expected part is written again; read the difference before keeping it.

use fencepost_planner::Options;
use fencepost_planner::ir::pattern::Patterns;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::passes::{coalesce, combine, count, lower, normalise, order, pipeline, place, route};
use fencepost_planner::units::Bytes;
use std::path::Path;

/// The passes, by the names of their folders.
const PASSES: [&str; 9] =
    ["normalise", "coalesce", "route", "combine", "count", "order", "pipeline", "place", "lower"];

fn stage(pass: &str, text: &str) -> String {
    let (mut placement, mut options) = (Placement::Together, Options::default());
    for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        match line.split_once(' ') {
            Some(("placement", "together")) => placement = Placement::Together,
            Some(("placement", "apart")) => placement = Placement::Apart,
            Some(("placement", n)) => {
                placement = Placement::Hosts { ranks_each: n.parse().expect("a number") }
            }
            Some(("mode", mode)) => options.mode = mode.parse().expect("a mode"),
            Some(("coalesce", "off")) => options.coalesce = false,
            Some(("chunk", bytes)) => options.chunk = Some(Bytes(bytes.parse().expect("bytes"))),
            Some(("cap", bytes)) => options.cap = Some(Bytes(bytes.parse().expect("bytes"))),
            _ => {}
        }
    }
    let patterns: Patterns = text.parse().expect("patterns");
    fencepost_planner::check::check(&patterns).expect("good patterns");
    assert_eq!(patterns.to_string().parse::<Patterns>().expect("printed patterns"), patterns);
    let machine = Machine::default();
    let normalised = normalise(&patterns, placement);
    if pass == "normalise" {
        return normalised.to_string();
    }
    let coalesced = coalesce(normalised, &options);
    if pass == "coalesce" {
        return coalesced.to_string();
    }
    let routed = route(coalesced, &machine, &options);
    if pass == "route" {
        return routed.to_string();
    }
    let routed = combine(routed, &options);
    if pass == "combine" {
        return routed.to_string();
    }
    let demand = count(&routed);
    if pass == "count" {
        return demand.to_string();
    }
    let rounds = order(routed, demand);
    if pass == "order" {
        return rounds.to_string();
    }
    let chunks = pipeline(rounds, &machine, &options);
    if pass == "pipeline" {
        return chunks.to_string();
    }
    let placed = place(chunks, &options);
    if pass == "place" { placed.to_string() } else { lower(placed, &options).to_string() }
}

#[test]
fn each_pass_makes_of_each_golden_file_what_it_says() {
    let bless = std::env::var_os("FENCEPOST_BLESS").is_some();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let mut wrong = Vec::new();
    for pass in PASSES {
        let mut files: Vec<_> = std::fs::read_dir(root.join(pass))
            .expect("each pass has a folder")
            .map(|entry| entry.expect("a readable folder").path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{pass} has no golden file");
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a readable file");
            let (given, expected) = text.split_once("---\n").unwrap_or((&text, ""));
            let made = stage(pass, given);
            if made != expected && bless {
                std::fs::write(&file, format!("{given}---\n{made}")).expect("a writable file");
            } else if made != expected {
                wrong.push(format!("{}:\nexpected\n{expected}\nmade\n{made}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
