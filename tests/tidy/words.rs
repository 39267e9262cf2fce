//! Names and phrases that were given up, so that they do not return.

use crate::{read, root, with_extension};

/// Names of items that have another name now.
const RETIRED: [&str; 24] = [
    "Letter",
    "Desk",
    "Bell",
    "Bells",
    "Roll",
    "Ground",
    "Mishap",
    "MixedEnd",
    "Tidings",
    "sayings",
    "regret",
    "doomed",
    "attic",
    "Lane",
    "Habit",
    "Board",
    "Pen",
    "Course",
    "Broken",
    "Echo",
    "tell_echo",
    "Deed",
    "lend",
    "lending_pays",
];

/// Phrases that leave the reader to guess who does what, and what they stand for.
const PHRASES: [(&str, &str); 5] = [
    ("in vain", "say what was not found"),
    ("asked back", "say who asks whom"),
    ("anew", "again"),
    ("none of its kind", "say which kind was expected"),
    ("take so many", "give the number's name"),
];

/// Folders whose sources and pages keep to them.
const KEPT: [&str; 2] = ["runtime", "cli"];

fn is_word(text: &str, at: usize, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    !text[..at].chars().next_back().is_some_and(part)
        && !text[at + word.len()..].chars().next().is_some_and(part)
}

/// The first of `words` that stands in `text` by itself, and its line.
fn first<'w>(text: &str, words: impl Iterator<Item = &'w str>) -> Option<(&'w str, usize)> {
    words
        .flat_map(|word| text.match_indices(word).map(move |(at, _)| (at, word)))
        .find_map(|(at, word)| is_word(text, at, word).then(|| (word, text[..at].matches('\n').count() + 1)))
}

#[test]
fn retired_names_and_phrases_do_not_return() {
    let mut read_files = 0;
    for folder in KEPT {
        for path in with_extension(&root().join(folder), "rs") {
            let text = read(&path);
            let words = RETIRED.into_iter().chain(PHRASES.into_iter().map(|(phrase, _)| phrase));
            if let Some((word, line)) = first(&text, words) {
                let instead =
                    PHRASES.iter().find(|(phrase, _)| *phrase == word).map_or("its new name", |it| it.1);
                panic!("{}:{line}: `{word}` was given up: use {instead}", path.display());
            }
            read_files += 1;
        }
    }
    assert!(read_files > 100, "{read_files} files: are they still read?");
}

#[test]
fn words_are_found_by_themselves_and_not_within_others() {
    let found = |text| first(text, ["Desk", "in vain"].into_iter());
    assert_eq!(found("a\nlet Desk = 1;"), Some(("Desk", 2)));
    assert_eq!(found("// looked in vain."), Some(("in vain", 1)));
    assert_eq!(found("Desktop my_Desk in vainglory"), None);
}
