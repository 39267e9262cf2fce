//! The floors of the runtime, and the cycles of files that are allowed.

use crate::arrows::Arrows;
use crate::root;
use std::collections::BTreeSet;
use std::fs;

/// The folders of the runtime by floor, the lowest floor first. A file may use its own floor and
/// the floors below. A folder inside another folder may have a floor of its own.
///
/// A world and a window have one field for the state of each protocol. The type of this field is in
/// the protocol's folder `state`, and the files of this folder use neither world nor window. Only
/// the state of supersteps is elsewhere, since supersteps have windows.
const FLOORS: [&[&str]; 22] = [
    &["kernel"],
    &["collect"],
    &["check/state"],
    &["locks/state"],
    &["messages/state"],
    &["posts/state"],
    &["census/state"],
    &["fence/state"],
    &["protocol/state"],
    &["state", "supersteps/state"],
    &["protocol"],
    &["census"],
    &["check"],
    &["fence"],
    &["posts"],
    &["locks"],
    &["messages"],
    &["supersteps"],
    &["collectives"],
    &["record"],
    &["api"],
    &["lib.rs"],
];

/// All crates.
const CRATES: [&str; 9] = [
    "src",
    "macros/src",
    "planner/src",
    "runtime/src",
    "runtime/transport/src",
    "runtime/job/src",
    "snapshots/src",
    "cli/src",
    "tool/src",
];

/// Files that use each other, and why they may.
const CYCLES: [(&[&str], &str); 5] = [
    (
        &["state/life.rs", "state/window_core.rs", "state/world.rs", "supersteps/state/mod.rs"],
        "a world has supersteps and windows, and each knows its world",
    ),
    (
        &["fabric/carrier.rs", "fabric/core.rs", "fabric/peer.rs", "fabric/probes.rs"],
        "one value under one lock, its methods by subject",
    ),
    (
        &["stream/body.rs", "stream/codec.rs"],
        "items have bodies, and bodies are set aside in the codec's steps",
    ),
    (
        &["control.rs", "exit.rs"],
        "a message says how a process ended, and an end can be written as a message",
    ),
    (
        &["slice/exits.rs", "slice/keepers.rs", "slice/need.rs", "slice/state.rs"],
        "a walk over expressions, which nest",
    ),
];

#[test]
fn files_of_the_runtime_use_their_own_floor_and_those_below() {
    let arrows = Arrows::of(&root().join("runtime/src"));
    assert!(arrows.uses.len() > 50, "{} files: is the runtime still read?", arrows.uses.len());
    let upward = arrows.upward(&FLOORS);
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn files_use_each_other_only_where_it_is_listed() {
    let mut found = BTreeSet::new();
    for folder in CRATES {
        for cycle in Arrows::of(&root().join(folder)).cycles() {
            let listed = CYCLES.iter().position(|(files, _)| {
                cycle.iter().all(|file| files.iter().any(|listed| file.ends_with(listed)))
            });
            let Some(listed) = listed else { panic!("in {folder} these files use each other: {cycle:#?}") };
            assert!(cycle.len() <= 4, "{cycle:#?}");
            found.insert(listed);
        }
    }
    assert_eq!(found.len(), CYCLES.len(), "a cycle that is listed is there no more: take it off the list");
}

/// Counts the fields of a struct of the runtime.
fn fields(file: &str, name: &str) -> usize {
    let source = fs::read_to_string(root().join("runtime/src").join(file)).unwrap();
    let (_, rest) = source.split_once(&format!("struct {name} {{\n")).expect("the struct is there");
    let (body, _) = rest.split_once("\n}").expect("the struct ends");
    body.lines().map(str::trim).filter(|line| !line.starts_with("//") && line.ends_with(',')).count()
}

/// Counts the lines of a folder of the runtime, or of the whole runtime, including comments and
/// tests.
fn lines(folder: &str) -> usize {
    let files = crate::with_extension(&root().join("runtime/src").join(folder), "rs");
    files.iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
}

#[test]
#[expect(clippy::print_stdout, reason = "prints what it keeps")]
fn worlds_and_windows_have_few_fields_and_no_folder_is_most_of_the_runtime() {
    let (world, window) =
        (fields("state/world.rs", "WorldCore"), fields("state/window_core.rs", "WindowCore"));
    println!("fields: {world} of a world, {window} of a window");
    assert!((10..=22).contains(&world) && (10..=16).contains(&window), "{world} and {window} fields");
    let (all, state) = (lines(""), lines("state"));
    println!("state: {state} of {all} lines");
    assert!(state <= 3500, "{state} lines of state");
    let folders = fs::read_dir(root().join("runtime/src")).unwrap().map(|entry| entry.unwrap());
    for folder in folders.filter(|entry| entry.file_type().unwrap().is_dir()) {
        let (name, part) = (folder.file_name(), lines(folder.file_name().to_str().unwrap()));
        println!("{name:?}: {part} lines, {:.1} percent", 100.0 * part as f64 / all as f64);
        assert!(part * 100 <= all * 16, "{name:?} has {part} of {all} lines");
    }
}
