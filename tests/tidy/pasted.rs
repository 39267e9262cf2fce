//! Examples of the documentation can be pasted into a program: their visible lines name no crate
//! within `fencepost`.

use super::{read, root, with_extension};

/// Crates that `fencepost` re-exports.
const INNER: [&str; 5] =
    ["fencepost_planner", "fencepost_runtime", "fencepost_transport", "fencepost_job", "fencepost_macros"];

/// Returns the numbers of the visible lines of examples that name a crate within `fencepost`.
fn inner(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut in_example = false;
    for (at, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            in_example = false;
            continue;
        };
        let text = text.trim_start();
        if text.starts_with("```") {
            in_example = !in_example;
        } else if in_example && !text.starts_with("# ") && INNER.iter().any(|name| text.contains(name)) {
            found.push(at + 1);
        }
    }
    found
}

#[test]
fn examples_of_the_documentation_name_the_crate_that_a_program_depends_on() {
    let folders = ["src", "runtime/src", "planner/src", "macros/src"];
    for path in folders.iter().flat_map(|folder| with_extension(&root().join(folder), "rs")) {
        let lines = inner(&read(&path));
        assert!(lines.is_empty(), "{}: lines {lines:?} name a crate within `fencepost`", path.display());
    }
}

#[test]
fn a_path_that_a_reader_sees_is_found_and_one_that_is_hidden_is_not() {
    let source = "/// `fencepost_runtime::run` in a sentence.\n/// ```\n/// # use fencepost_planner::Result;\n/// use fencepost_planner::Error;\n/// ```\n/// fencepost_runtime::run\nfn f() {}\n";
    assert_eq!(inner(source), [4]);
}
