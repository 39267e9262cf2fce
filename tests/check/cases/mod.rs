//! Small programs, each with its verdict in its name: `yes` if two operations of one epoch
//! conflict, `no` if none do. In a program with the verdict `yes`, `// CONFLICT` marks the lines
//! that the report has to name. If the call in the last marked line returns the error itself, the
//! mark of this line ends with `at the call`.
//!
//! The programs of `similar` are our own, and resemble programs with conflicts. The programs of
//! each other file follow the descriptions of RMARaceBench's MPI cases of that kind, as far as Rust
//! can express these cases. Most programs of RMARaceBench with local conflicts would borrow a
//! buffer twice in Rust, so they would not compile.

mod atomic;
mod conflict;
mod misc;
mod similar;
mod sync;

use crate::ends::{End, ends};
use crate::table::row;
use fencepost::prelude::*;
use fencepost::{Check, TransportKind, ranks};
use std::fmt::Write;

/// A program of four ranks, named `NNN-what-yes` or `NNN-what-no`.
pub(crate) type Case = (&'static str, fn(&World) -> Result<()>);

/// A file of cases: its name, its text and its cases.
type Suite = (&'static str, &'static str, &'static [Case]);

const SUITES: [Suite; 5] = [
    ("conflict.rs", include_str!("conflict.rs"), conflict::CASES),
    ("sync.rs", include_str!("sync.rs"), sync::CASES),
    ("atomic.rs", include_str!("atomic.rs"), atomic::CASES),
    ("misc.rs", include_str!("misc.rs"), misc::CASES),
    ("similar.rs", include_str!("similar.rs"), similar::CASES),
];

/// Returns the numbers of the marked lines of a case.
fn marked(text: &str, name: &str) -> Vec<usize> {
    let own = text.lines().enumerate().skip_while(|(_, line)| !line.contains(&format!("\"{name}\"")));
    let own = own.enumerate().take_while(|(i, (_, line))| *i == 0 || !line.trim_start().starts_with("(\""));
    own.filter(|(_, (_, line))| line.contains("// CONFLICT")).map(|(_, (at, _))| at + 1).collect()
}

/// The mark of the last line of a case whose conflict is found at the call in that line.
const AT_THE_CALL: &str = "// CONFLICT, at the call";

/// Returns the text of the line of this number.
fn said(text: &str, line: usize) -> &str {
    text.lines().nth(line - 1).unwrap_or_default()
}

/// Checks that a case ended as its name states, and otherwise returns a description of the
/// difference.
fn judge(name: &str, file: &str, lines: &[usize], ends: &[End]) -> std::result::Result<(), String> {
    if name.ends_with("-no") {
        return match ends.iter().find_map(|end| end.as_ref().err()) {
            Some((class, text)) => Err(format!("a false alarm: {class:?} {text}")),
            None => Ok(()),
        };
    }
    let part = ends.iter().flatten_err().filter(|(class, _)| *class == ErrorClass::RmaConflict).count();
    if part == 0 {
        return Err(format!("no conflict was found: {ends:?}"));
    }
    for (class, text) in ends.iter().flatten_err() {
        let named = lines.iter().all(|line| text.contains(&format!("cases/{file}:{line}: `")));
        if !matches!(class, ErrorClass::RmaConflict | ErrorClass::RmaSync) || !named {
            return Err(format!("lines {lines:?} are not named: {class:?} {text}"));
        }
    }
    if ends.iter().any(End::is_ok) {
        return Err(format!("a rank saw no error: {ends:?}"));
    }
    Ok(())
}

trait FlattenErr<'e> {
    fn flatten_err(self) -> impl Iterator<Item = &'e (ErrorClass, String)>;
}

impl<'e, I: Iterator<Item = &'e End>> FlattenErr<'e> for I {
    fn flatten_err(self) -> impl Iterator<Item = &'e (ErrorClass, String)> {
        self.filter_map(|end| end.as_ref().err())
    }
}

/// Runs all cases on these transports. Returns the table of their results.
///
/// Panics if the verdict of a case differs from its name.
pub(crate) fn judged(transports: &[TransportKind]) -> String {
    let (mut table, mut wrong) = (String::new(), String::new());
    let (mut all, mut races) = (0, 0);
    for (file, text, suite) in SUITES {
        for &(name, program) in suite {
            let lines = marked(text, name);
            let at_the_call = lines.iter().any(|line| said(text, *line).ends_with(AT_THE_CALL));
            assert!(name.ends_with("-no") == lines.is_empty() && lines.len() <= 2, "{name}: {lines:?}");
            for transport in transports {
                let ends = ends(transport, Check::Conflicts, program).expect("the world goes on");
                // Only the rank that makes the call gets the error.
                let judged = if at_the_call {
                    let found = ends.iter().flatten_err().all(|(class, text)| {
                        let named = |line: &usize| text.contains(&format!("{file}:{line}"));
                        *class == ErrorClass::RmaConflict && lines.iter().all(named)
                    });
                    if found && ends.iter().any(End::is_err) { Ok(()) } else { Err(format!("{ends:?}")) }
                } else {
                    judge(name, file, &lines, &ends)
                };
                if let Err(what) = judged {
                    let _ = writeln!(wrong, "{name} on {transport:?}: {what}");
                }
            }
            all += 1;
            races += usize::from(name.ends_with("-yes"));
            let found = match (lines.as_slice(), at_the_call) {
                ([], _) => "silent".to_owned(),
                (lines, true) => format!("found in {file}:{lines:?} at the call"),
                (lines, false) => format!("found in {file}:{lines:?}, told to all"),
            };
            table += &row(&format!("ours {}/{name}", &file[..file.len() - 3]), &found, "conflicts");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(all >= 40 && races >= 20, "{all} cases, {races} races");
    format!("{table}{all} cases of ours, {races} of them with a conflict\n")
}

/// Without a check each program runs to its end, since conflicting operations have a defined
/// meaning (10).
#[test]
fn no_case_fails_where_nothing_is_checked() {
    for (name, program) in SUITES.iter().flat_map(|suite| suite.2) {
        let ended = ranks(4).check(Check::Off).run(program);
        assert!(ended.is_ok(), "{name}: {ended:?}");
    }
}
