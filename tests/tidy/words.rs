//! Checks that names and phrases that were given up do not return. Prints samples of errors and
//! comments to read.

use crate::{read, root, with_extension};
use fencepost_tests_support::random::Random;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Retired names, and the names that replace them. Each name is listed in the form in which it
/// occurs in an identifier. A word with its ordinary meaning (a ring of ranks, a letter of an
/// alphabet, a lane of a road) is not a name.
const RETIRED: [(&str, &str); 45] = [
    ("Place", "the target region, the position, or the coordinates"),
    ("Given", "source"),
    ("Way", "Algorithm, or Route"),
    ("Letter", "Notification"),
    ("desk", "notification board"),
    ("Desk", "notification board"),
    ("bell", "waker"),
    ("Bell", "Waker"),
    ("bells", "wakers"),
    ("Bells", "Wakers"),
    ("Roll", "membership table"),
    ("strike", "mark failed"),
    ("Ground", "memory backend"),
    ("MixedEnd", "HybridEnd"),
    ("lane", "fast path"),
    ("Lane", "FastPath"),
    ("short_way", "fast path"),
    ("short way", "fast path"),
    ("Pen", "LogWriter"),
    ("habit", "history"),
    ("Habit", "History"),
    ("hurry", "predictor"),
    ("sayings", "send"),
    ("tidings", "piggyback"),
    ("Tidings", "Piggyback"),
    ("regret", "last error"),
    ("doomed", "suspected"),
    ("parting", "closing"),
    ("owes", "pending release"),
    ("Board", "CallSites"),
    ("attic", "keep-alive list"),
    ("shelf", "schedule cache"),
    ("Shelf", "ScheduleCache"),
    ("Ways", "Route"),
    ("Turn", "RoundAssignment"),
    ("Broken", "last error"),
    ("Echo", "secondary failure"),
    ("echoes", "secondary failures"),
    ("tell_echo", "report_secondary_failure"),
    ("Course", "job state machine"),
    ("mishap", "fault kind"),
    ("Mishap", "FaultKind"),
    ("Deed", "Operation"),
    ("lend", "expose"),
    ("lending_pays", "adaptive"),
];

/// Phrases that leave the reader to guess who does what, each with a replacement. The first letter
/// may be a capital.
const PHRASES: [(&str, &str); 43] = [
    ("never ends", "cannot end"),
    ("ended well", "succeeded"),
    ("says no", "refuses, or reports an error"),
    ("so many", "name the number"),
    ("beside", "next to, or compared with"),
    ("alike", "equal, or the same"),
    ("in vain", "say what was not found"),
    ("asked back", "say which release is awaited"),
    ("asks back", "say which release is awaited"),
    ("anew", "again"),
    ("thrice", "three times"),
    ("lies", "is"),
    ("whoever", "name the rank, the thread or the caller"),
    ("none of its kind", "say which kind was expected"),
    ("is none of", "is not a .., or is not one of"),
    ("so long as", "while, or as long as"),
    ("take so many", "name the number"),
    ("took so many", "name the number"),
    ("after so many", "name the number"),
    ("ends well", "succeeds"),
    ("all is well", "say what holds"),
    ("this never ends", "deadlock"),
    ("has not the secret", "authentication failed"),
    ("schedule that does not hold", "the schedule failed verification"),
    ("fence alike", "execute the same fences"),
    ("longer than its time", "the job exceeded its time limit"),
    ("could be handed on", "was lost"),
    ("tell the", "notify, send to, or report to"),
    ("tells the", "notifies, sends to, or reports to"),
    ("tells it", "notifies it, or sends to it"),
    ("tells others", "notifies, or exports"),
    ("tells whether", "is whether, or returns whether"),
    ("speak for", "lead, or act for"),
    ("spoken for", "led by another rank"),
    ("says that", "reports that, or states that"),
    ("says whether", "is whether, or returns whether"),
    ("says which", "names"),
    ("what is said", "the text, or what is reported"),
    ("learns that", "is notified that, or reads that"),
    ("learns it", "is notified of it"),
    ("learn of", "be notified of"),
    ("hears of", "is notified of"),
    ("in spite of", "although"),
];

/// Folders whose sources and pages must not contain these words.
const KEPT: [&str; 13] = [
    "src",
    "planner",
    "macros",
    "runtime",
    "snapshots",
    "cli",
    "tool",
    "docs",
    "examples",
    "benches",
    "tests",
    "fuzz",
    ".ci",
];

/// A file and a folder that are exempt: the file lists the words themselves, and the folder is a
/// record of the past.
const EXCEPT: [&str; 2] = ["tests/tidy/words.rs", "benches/log"];

/// Returns the sources, pages and golden files of these folders.
fn kept() -> Vec<PathBuf> {
    let all = KEPT.into_iter().flat_map(|folder| {
        ["rs", "md", "stderr", "sched"].map(|extension| with_extension(&root().join(folder), extension))
    });
    all.flatten().filter(|path| !EXCEPT.iter().any(|except| path.starts_with(root().join(except)))).collect()
}

/// Returns a line without the marks of a comment.
fn unmarked(line: &str) -> &str {
    let line = line.trim();
    let mark = ["///", "//!", "//"].into_iter().find(|mark| line.starts_with(mark));
    mark.map_or(line, |mark| line[mark.len()..].trim())
}

/// Returns whether the `word` at position `at` of `text` has no letter or digit directly before or
/// after it. `_` ends a word.
fn is_word(text: &str, at: usize, word: &str) -> bool {
    !text[..at].chars().next_back().is_some_and(char::is_alphanumeric)
        && !text[at + word.len()..].chars().next().is_some_and(char::is_alphanumeric)
}

/// Returns the first of these words and phrases in `text`, its line, and its replacement. A phrase
/// may continue after the end of a line of a comment.
fn first(
    text: &str,
    words: &[(&'static str, &'static str)],
    phrases: &[(&'static str, &'static str)],
) -> Option<(&'static str, usize, &'static str)> {
    let lines: Vec<&str> = text.lines().map(unmarked).collect();
    let text = lines.join("\n");
    let flat = text.replace('\n', " ");
    let lower = flat.to_ascii_lowercase();
    let find = |flat: &str, &(word, instead): &(&'static str, &'static str)| {
        let mut found = flat.match_indices(word).map(|(at, _)| at).filter(|&at| is_word(flat, at, word));
        found.next().map(|at| (word, text[..at].matches('\n').count() + 1, instead))
    };
    words
        .iter()
        .find_map(|word| find(&flat, word))
        .or_else(|| phrases.iter().find_map(|word| find(&lower, word)))
}

#[test]
fn retired_names_and_phrases_do_not_return() {
    let paths = kept();
    assert!(paths.len() > 400, "{} files: are they still read?", paths.len());
    let mut found = Vec::new();
    for path in &paths {
        if let Some((word, line, instead)) = first(&read(path), &RETIRED, &PHRASES) {
            found.push(format!("{}:{line}: `{word}` was given up: use {instead}", path.display()));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn words_are_found_by_themselves_and_not_within_others() {
    let (words, phrases) = ([("Desk", "board"), ("desk", "board")], [("in vain", "say what")]);
    let found = |text| first(text, &words, &phrases).map(|(word, line, _)| (word, line));
    assert_eq!(found("a\nlet Desk = 1;"), Some(("Desk", 2)));
    assert_eq!(found("let desk_of_rank = 1;"), Some(("desk", 1)));
    assert_eq!(found("// In vain."), Some(("in vain", 1)));
    assert_eq!(found("a\n    /// It looked in\n    /// vain."), Some(("in vain", 2)));
    assert_eq!(found("Desktop desks in vainglory"), None);
}

/// Returns the doc comments of a source, each in one line, and the messages in its code. Messages
/// are literals of at least three words.
fn prose(source: &str) -> (Vec<String>, Vec<String>) {
    let source = &source[..source.find("#[cfg(test)]\nmod tests").unwrap_or(source.len())];
    let (mut comments, mut messages) = (Vec::new(), Vec::new());
    let mut comment = String::new();
    for line in source.lines() {
        let doc = line.trim().starts_with("///") || line.trim().starts_with("//!");
        if doc {
            comment = comment + " " + unmarked(line);
        } else {
            comments.extend(Some(std::mem::take(&mut comment)).filter(|comment| !comment.is_empty()));
            let code = line.split("//").next().unwrap_or_default();
            let literals = code.split('"').skip(1).step_by(2).filter(|text| text.split(' ').count() >= 3);
            messages.extend(literals.map(str::to_owned));
        }
    }
    (comments, messages)
}

/// `FENCEPOST_SAMPLE=seed cargo test --test tidy -- --nocapture sample` prints a sample for a
/// person to read.
#[test]
#[expect(clippy::print_stdout, reason = "it prints a sample for a person to read")]
fn a_sample_of_comments_and_messages_can_be_printed() {
    let sources = [
        "src",
        "planner/src",
        "macros/src",
        "runtime/src",
        "runtime/transport/src",
        "runtime/job/src",
        "snapshots/src",
    ];
    let (mut comments, mut messages) = (BTreeSet::new(), BTreeSet::new());
    for path in sources.iter().flat_map(|folder| with_extension(&root().join(folder), "rs")) {
        let of_tests = ["tests.rs", "models"];
        if path.iter().any(|part| of_tests.iter().any(|name| part == *name)) {
            continue;
        }
        let (more_comments, more_messages) = prose(&read(&path));
        let name = path.strip_prefix(root()).unwrap().display();
        comments.extend(more_comments.into_iter().map(|text| format!("{name}:{text}")));
        messages.extend(more_messages.into_iter().map(|text| format!("{name}: {text}")));
    }
    assert!(comments.len() > 1000 && messages.len() > 300, "{} and {}", comments.len(), messages.len());
    let Ok(seed) = std::env::var("FENCEPOST_SAMPLE") else { return };
    let mut random = Random::new(seed.parse().expect("FENCEPOST_SAMPLE is a number"));
    for all in [comments, messages].map(Vec::from_iter) {
        for _ in 0..20 {
            println!("- {}", random.one_of(&all));
        }
        println!();
    }
}

#[test]
fn comments_and_messages_are_told_apart() {
    let source = "/// One.\n/// Two.\nfn f() { g(\"a b c\", \"a\") } // \"no a b\"\n#[cfg(test)]\nmod tests { \"x y z\" }";
    assert_eq!(prose(source), (vec![" One. Two.".to_owned()], vec!["a b c".to_owned()]));
}
