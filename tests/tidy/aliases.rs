//! Checks the table of MPI's calls and ours. In the documentation, each MPI name must be an alias
//! of an item in its row, and of no other item.

use super::{read, root, with_extension};

/// Returns the aliases of a source that are MPI's names, each with its function.
fn aliases(source: &str) -> Vec<(String, String)> {
    let mut waiting: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(alias) = line.strip_prefix("#[doc(alias = \"").and_then(|rest| rest.strip_suffix("\")]"))
        {
            waiting.push(alias);
        } else if let Some(rest) = line.strip_prefix("pub fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or(rest);
            found.extend(waiting.drain(..).map(|alias| (alias.to_owned(), name.to_owned())));
        }
    }
    found
}

/// Returns the faults of a table, given the aliases of all sources.
fn wrong(table: &str, aliases: &[(String, String)]) -> Vec<String> {
    let quoted =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let rows = table.lines().filter_map(|line| line.trim_matches('|').split_once(" | "));
    let rows: Vec<_> = rows.map(|(theirs, ours)| (quoted(theirs), quoted(ours))).collect();
    let mut wrong = Vec::new();
    for (alias, function) in aliases {
        let ours = rows.iter().find(|(theirs, _)| theirs.contains(alias)).map(|(_, ours)| ours);
        let is_named = |item: &String| {
            item.rsplit("::").next().is_some_and(|name| name.trim_end_matches("()") == function)
        };
        match ours {
            None => wrong.push(format!("{alias}, an alias of `{function}`, is not in the table")),
            Some(ours) if !ours.iter().any(is_named) => {
                wrong.push(format!("the row of {alias} does not name `{function}`"));
            }
            Some(_) => {}
        }
    }
    for name in rows.iter().flat_map(|(theirs, _)| theirs) {
        if !aliases.iter().any(|(alias, _)| alias == name) {
            wrong.push(format!("{name} is no alias of an item"));
        }
    }
    wrong
}

#[test]
fn the_names_of_mpi_in_the_table_are_those_that_the_documentation_finds() {
    let sources = ["runtime/src", "planner/src"].map(|folder| with_extension(&root().join(folder), "rs"));
    let found: Vec<_> = sources.into_iter().flatten().flat_map(|path| aliases(&read(&path))).collect();
    assert!(found.len() > 70, "{}", found.len());
    assert_eq!(wrong(&read(&root().join("src/mpi.md")), &found), [""; 0]);
}

#[test]
fn a_row_without_its_alias_and_an_alias_without_its_row_are_seen() {
    let table = "| MPI | here |\n|---|---|\n| `MPI_Put`, `MPI_Get` | [`Window::put`], [`Window::get`] |\n";
    let source = "#[doc(alias = \"MPI_Put\")]\n#[inline]\npub fn put<T>(&self) {}\npub fn other() {}\n";
    assert_eq!(wrong(table, &aliases(source)), ["MPI_Get is no alias of an item"]);
    let both = format!("{source}#[doc(alias = \"MPI_Get\")]\npub fn get(&self) {{}}\n");
    assert_eq!(wrong(table, &aliases(&both)), [""; 0]);
    let moved = both.replace("fn get", "fn fetch");
    assert_eq!(wrong(table, &aliases(&moved)), ["the row of MPI_Get does not name `fetch`"]);
    let more = format!("{both}#[doc(alias = \"MPI_Bcast\")]\npub fn broadcast() {{}}\n");
    assert_eq!(wrong(table, &aliases(&more)), ["MPI_Bcast, an alias of `broadcast`, is not in the table"]);
}
