//! The page of environment variables is made from the table in the code, and the table has every
//! variable that the code reads.

use super::{read, root, with_extension};
use fencepost_job::variables::{Reader, VARIABLES};
use std::fmt::Write;

/// Returns the page that `src/variables.md` must be.
fn page() -> String {
    let mut page = String::new();
    for (reader, heading) in
        [(Reader::Program, "Programs"), (Reader::Job, "Launchers of processes, and ranks that join a job")]
    {
        let _ =
            writeln!(page, "{heading}:\n\n| variable | values | unless set | meaning |\n|---|---|---|---|");
        for variable in VARIABLES.iter().filter(|variable| variable.reader == reader) {
            let name = variable.name;
            let _ = writeln!(
                page,
                "| `{name}` | {} | {} | {} |",
                variable.values, variable.default, variable.meaning
            );
        }
        page.push('\n');
    }
    for variable in VARIABLES.iter().filter(|variable| !variable.by_value.is_empty()) {
        let _ = writeln!(page, "`{}`, by value:\n\n| value | meaning |\n|---|---|", variable.name);
        for (value, meaning) in variable.by_value {
            let _ = writeln!(page, "| {value} | {meaning} |");
        }
        page.push('\n');
    }
    page
}

#[test]
fn the_page_of_variables_is_that_of_the_table() {
    let path = root().join("src/variables.md");
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    assert!(read(&path) == page(), "src/variables.md differs from the table: FENCEPOST_BLESS=1 writes it");
}

/// Returns the names of variables that a source has in quotation marks, outside of its unit tests.
fn quoted(source: &str) -> impl Iterator<Item = &str> {
    let source = source.split("#[cfg(test)]").next().unwrap_or(source);
    source.split('"').skip(1).step_by(2).filter(|text| {
        text.strip_prefix("FENCEPOST_").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        })
    })
}

#[test]
fn every_variable_that_is_read_is_in_the_table() {
    let mut seen = 0;
    for folder in ["runtime/src", "runtime/job/src", "runtime/transport/src", "cli/src", "planner/src"] {
        for path in with_extension(&root().join(folder), "rs") {
            let source = read(&path);
            for name in quoted(&source).filter(|name| !name.starts_with("FENCEPOST_TEST_")) {
                let path = path.display();
                assert!(
                    VARIABLES.iter().any(|variable| variable.name == name),
                    "{path}: {name} is in no table"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > VARIABLES.len(), "{seen}");
    assert_eq!(
        quoted("f(\"FENCEPOST_X\");\n#[cfg(test)]\n\"FENCEPOST_Y\"").collect::<Vec<_>>(),
        ["FENCEPOST_X"]
    );
}
