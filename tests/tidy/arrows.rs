//! Finds which file uses which other files. The arrows to higher floors and the cycles follow from
//! this.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The files of one crate, and the other files that each of them uses.
pub struct Arrows {
    /// The files that a file uses. All paths are relative to the crate's `src`.
    pub uses: BTreeMap<String, BTreeSet<String>>,
}

/// Returns a source without its comments and without its tests.
fn code(source: &str) -> String {
    let end = source.find("#[cfg(test)]\nmod tests").unwrap_or(source.len());
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_owned() + "\n";
    source[..end].lines().map(line).collect()
}

/// Returns the paths at the beginning of `text`, and the number of bytes that they take. A group
/// `{..}` gives one path for each of its members.
fn paths(text: &str) -> (Vec<String>, usize) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut all, mut at) = (Vec::new(), 0);
        while let Some(next) = group[at..].find(|c: char| !c.is_whitespace() && c != ',') {
            at += next;
            if group[at..].starts_with('}') {
                return (all, at + 2);
            }
            let (inner, len) = paths(&group[at..]);
            all.extend(inner);
            at += len.max(1);
        }
        return (all, text.len());
    }
    let len = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (segment, rest) = text.split_at(len);
    match rest.strip_prefix("::") {
        Some(rest) => {
            let (inner, more) = paths(rest);
            let joined = inner.iter().map(|inner| format!("{segment}::{inner}")).collect();
            (joined, len + 2 + more)
        }
        None => (vec![segment.to_owned()], len),
    }
}

/// Returns the module of a file.
fn module(file: &str) -> Vec<String> {
    let parts = file.trim_end_matches(".rs").split('/');
    parts.filter(|part| !["mod", "lib", "main"].contains(part)).map(str::to_owned).collect()
}

impl Arrows {
    /// Returns the arrows of the crate whose sources are in `folder`.
    pub fn of(folder: &Path) -> Self {
        let files = crate::with_extension(folder, "rs");
        let name = |path: &Path| path.strip_prefix(folder).unwrap().to_str().expect("UTF-8").to_owned();
        let sources = files.iter().map(|path| (name(path), fs::read_to_string(path).unwrap()));
        Self::between(&sources.collect::<Vec<_>>())
    }

    /// Returns the arrows between files with these names and texts.
    pub fn between(sources: &[(String, String)]) -> Self {
        let modules: BTreeMap<Vec<String>, &String> =
            sources.iter().map(|(file, _)| (module(file), file)).collect();
        let file_of = |path: &[String]| {
            (0..=path.len()).rev().find_map(|len| modules.get(&path[..len]).map(|&file| file.clone()))
        };
        let mut uses = BTreeMap::new();
        for (file, source) in sources {
            let (code, here) = (code(source), module(file));
            let mut used = BTreeSet::new();
            for (at, word) in ["crate::", "super::"]
                .iter()
                .flat_map(|word| code.match_indices(word).map(|(at, _)| (at, *word)).collect::<Vec<_>>())
            {
                let before = code[..at].chars().next_back();
                let hands_on =
                    code[..at].rsplit('\n').next().is_some_and(|line| line.trim_start().starts_with("pub"));
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') || hands_on
                {
                    continue;
                }
                let (mut base, mut rest) = (Vec::new(), &code[at + word.len()..]);
                if word == "super::" {
                    let mut up = 1;
                    while let Some(more) = rest.strip_prefix("super::") {
                        (up, rest) = (up + 1, more);
                    }
                    base.extend_from_slice(&here[..here.len().saturating_sub(up)]);
                }
                for path in paths(rest).0 {
                    let path: Vec<String> =
                        base.iter().cloned().chain(path.split("::").map(str::to_owned)).collect();
                    used.extend(file_of(&path).filter(|other| other != file));
                }
            }
            uses.insert(file.clone(), used);
        }
        Self { uses }
    }

    /// Returns the arrows from a floor to a higher floor. `floors` has the folders of each floor,
    /// the lowest floor first. A file is on the floor of its innermost folder that is in `floors`.
    pub fn upward(&self, floors: &[&[&str]]) -> Vec<String> {
        let floor = |file: &str| {
            let is_in = |folder: &&str| {
                file.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let folders =
                floors.iter().enumerate().flat_map(|(at, folders)| folders.iter().map(move |f| (at, f)));
            let around = folders.filter(|(_, folder)| is_in(folder));
            around
                .max_by_key(|(_, folder)| folder.len())
                .map(|(at, _)| at)
                .unwrap_or_else(|| panic!("{file} is on no floor"))
        };
        let arrows = self.uses.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
        arrows
            .filter(|(from, to)| floor(from) < floor(to))
            .map(|(from, to)| format!("{from} uses {to}"))
            .collect()
    }

    /// Returns each set of two or more files that use each other, directly or through other files.
    pub fn cycles(&self) -> Vec<BTreeSet<String>> {
        let reached = |from: &String| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
            while let Some(file) = next.pop() {
                let new = self.uses[file].iter().filter(|file| seen.insert((*file).clone()));
                next.extend(new.collect::<Vec<_>>());
            }
            seen
        };
        let all: BTreeMap<&String, BTreeSet<String>> =
            self.uses.keys().map(|file| (file, reached(file))).collect();
        let mut cycles = BTreeSet::new();
        for (file, reached) in &all {
            let cycle: BTreeSet<String> =
                reached.iter().filter(|other| all[other].contains(*file)).cloned().collect();
            if cycle.len() > 1 {
                cycles.insert(cycle);
            }
        }
        cycles.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Arrows {
        let files: Vec<_> =
            files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        Arrows::between(&files)
    }

    #[test]
    fn groups_supers_and_nested_modules_are_seen() {
        let arrows = arrows(&[
            ("lib.rs", ""),
            ("a/mod.rs", "use crate::b::{self, c::{D, E}};"),
            ("a/x.rs", "use super::super::b::c; // use crate::lib"),
            ("b/mod.rs", "pub use crate::a::x;"),
            ("b/c.rs", "fn f() { crate::a::x::g() }\n#[cfg(test)]\nmod tests { use crate::b; }"),
        ]);
        let uses = |file: &str| arrows.uses[file].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(uses("a/mod.rs"), ["b/c.rs", "b/mod.rs"]);
        assert_eq!(uses("a/x.rs"), ["b/c.rs"]);
        assert_eq!(uses("b/mod.rs"), Vec::<&str>::new());
        assert_eq!(uses("b/c.rs"), ["a/x.rs"]);
        assert_eq!(arrows.cycles(), [BTreeSet::from(["a/x.rs".to_owned(), "b/c.rs".to_owned()])]);
    }

    #[test]
    fn an_arrow_that_runs_up_is_seen() {
        let arrows = arrows(&[("low/a.rs", "use crate::high::b;"), ("high/b.rs", "use crate::low::a;")]);
        assert_eq!(arrows.upward(&[&["low"], &["high"]]), ["low/a.rs uses high/b.rs"]);
    }

    #[test]
    fn a_folder_may_have_another_floor_than_the_folder_around_it() {
        let arrows = arrows(&[
            ("x/a.rs", "use crate::y::b; use crate::x::low::c;"),
            ("y/b.rs", "use crate::x::low::c;"),
            ("x/low/c.rs", ""),
        ]);
        assert_eq!(arrows.upward(&[&["x/low"], &["y"], &["x"]]), Vec::<String>::new());
        assert_eq!(arrows.upward(&[&["x/low"], &["x", "y"]]), Vec::<String>::new());
        let upward = arrows.upward(&[&["x"], &["x/low"], &["y"]]);
        assert_eq!(upward, ["x/a.rs uses x/low/c.rs", "x/a.rs uses y/b.rs"]);
    }
}
