//! Errors and reports name a line of the program, and not a line of this repository. So each
//! function must have `#[track_caller]` if it records the line of its caller, or if it can fail in
//! a program's call.

use std::collections::BTreeSet;

/// Public functions that can fail but need no `#[track_caller]`, and the reason.
pub const WITHOUT_LINES: [(&str, &str); 19] = [
    ("run", "all ranks are started and joined in it: its errors name what failed in a rank"),
    ("collect", "as `run`"),
    ("launch", "its errors are of the environment"),
    ("process", "its errors are of the environment"),
    ("from_environment", "its errors are of the environment"),
    ("cancel", "its error is the request itself"),
    ("with", "no rank calls it: its errors name the superstep"),
    ("in_mode", "no rank calls it: its errors name the superstep"),
    ("in_order", "no rank calls it: its errors name the superstep"),
    ("save", "its errors name the file"),
    ("to_bytes", "as `save`"),
    ("open", "its errors name the file"),
    ("compile", "its errors name lines of the superstep"),
    ("read_written", "its errors name the line of the text"),
    ("finish", "its errors name the line that began the run, or one of the superstep"),
    ("leave", "called by the macro, of a superstep whose line is known"),
    ("bind", "called by the macro, before the superstep is entered at its line"),
    ("bind_half", "as `bind`"),
    ("drop", "has no caller"),
];

/// If a function contains one of these texts, it records its caller's line, or panics with that
/// line.
const NOTES: [&str; 3] = ["Location::caller()", "Call::named(", "granted("];

/// A function of a source.
#[derive(Default)]
struct Function {
    line: usize,
    name: String,
    is_public: bool,
    may_fail: bool,
    panics: bool,
    tracks: bool,
    /// The number of the first line of the body that records the caller, and whether the recording
    /// is in a closure. In a closure the caller is not known.
    notes: Option<(usize, bool)>,
}

/// Returns the name of the function that a line declares.
fn declared(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let words = before.split_whitespace().all(|word| {
        matches!(word, "const" | "unsafe" | "async") || word.starts_with("pub") || word == "crate)"
    });
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (words && end > 0).then(|| &name[..end])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the functions of a source, without its tests.
fn functions(source: &str) -> Vec<Function> {
    let end =
        ["#[cfg(test)]\nmod ", "#[cfg(not(loom))]\n#[cfg(test)]"].iter().filter_map(|text| source.find(text));
    let lines: Vec<&str> = source[..end.min().unwrap_or(source.len())].lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = declared(line) else { continue };
        let above = lines[..at].iter().rev().take_while(|line| {
            let line = line.trim_start();
            line.starts_with("///") || line.starts_with('#')
        });
        let (mut tracks, mut panics) = (false, false);
        for line in above {
            tracks |= line.contains("#[track_caller]");
            panics |= line.contains("# Panics");
        }
        let signature: Vec<&str> = lines[at..].iter().copied().take_while_inclusive().collect();
        let declares = signature.join(" ");
        let returns = declares.split_once("->").map_or("", |(_, returns)| returns);
        let is_body =
            |line: &&&str| !(indent(line) == indent(lines[at]) && line.trim_start().starts_with('}'));
        let body = lines[at + signature.len()..].iter().take_while(is_body);
        let notes = body.enumerate().find_map(|(below, line)| {
            let note = NOTES.iter().filter_map(|note| line.find(note)).min()?;
            // If a line passes on a given call site, it does not record this function's caller.
            let given =
                line.contains("site, ..") || line.contains("site: ") || line.trim_start().starts_with("//");
            (!given).then(|| (at + signature.len() + below + 1, line[..note].matches('|').count() == 2))
        });
        all.push(Function {
            line: at + 1,
            name: name.into(),
            is_public: line.trim_start().starts_with("pub fn")
                || line.trim_start().starts_with("pub const fn"),
            may_fail: returns.contains("Result<"),
            panics,
            tracks,
            notes,
        });
    }
    all
}

/// Takes the lines of a declaration, including the line that ends it.
trait TakeWhileInclusive<'s> {
    fn take_while_inclusive(self) -> impl Iterator<Item = &'s str>;
}

impl<'s, I: Iterator<Item = &'s str>> TakeWhileInclusive<'s> for I {
    fn take_while_inclusive(self) -> impl Iterator<Item = &'s str> {
        let mut is_over = false;
        self.take_while(move |line| {
            let was_over = is_over;
            is_over |= line.trim_end().ends_with(['{', ';', '}']);
            !was_over
        })
    }
}

/// Returns the faults of the functions of a source. `is_api` is true if these functions can fail in
/// a program's call. Adds the names of [`WITHOUT_LINES`] that occur in the source to `exempt`.
pub fn untracked(source: &str, is_api: bool, exempt: &mut BTreeSet<&'static str>) -> Vec<String> {
    let mut wrong = Vec::new();
    for function in functions(source) {
        let Function { line, name, is_public, may_fail, panics, tracks, notes } = &function;
        let found = match notes {
            Some((at, true)) => format!("{at}: `{name}` asks in a closure for its caller"),
            Some((at, false)) if !tracks => format!("{at}: `{name}` is not `#[track_caller]`"),
            None if *is_public && !tracks && (*may_fail && is_api || *panics) => {
                format!("{line}: `{name}` is not `#[track_caller]`")
            }
            _ => continue,
        };
        let is_in_closure = matches!(notes, Some((_, true)));
        match WITHOUT_LINES.iter().find(|(listed, _)| listed == name && !is_in_closure) {
            Some((listed, _)) => _ = exempt.insert(listed),
            None => wrong.push(found),
        }
    }
    wrong
}

#[test]
fn functions_that_hide_the_line_of_their_caller_are_seen() {
    let found = |source: &str| untracked(source, true, &mut BTreeSet::new()).len();
    assert_eq!(found("pub fn f(\n    a: u8,\n) -> Result<()> {\n    g()\n}\n"), 1);
    assert_eq!(found("#[track_caller]\npub fn f() -> Result<()> {\n    g()\n}\n"), 0);
    assert_eq!(found("pub(crate) fn f() -> Result<()> {\n    g()\n}\n"), 0);
    assert_eq!(found("fn f() {\n    g(Location::caller())\n}\n"), 1);
    assert_eq!(found("fn f(site: Site) {\n    g(Call { site, ..Call::named(0, \"f\") })\n}\n"), 0);
    assert_eq!(found("#[track_caller]\nfn f() {\n    g(|| Location::caller())\n}\n"), 1);
    assert_eq!(found("/// # Panics\n/// Always.\npub fn f() {\n    panic!()\n}\n"), 1);
    let mut exempt = BTreeSet::new();
    assert_eq!(untracked("pub fn f() -> Result<()> {\n    g()\n}\n", false, &mut exempt), [""; 0]);
    assert!(exempt.is_empty());
    assert_eq!(untracked("pub fn launch() -> Result<()> {\n    g()\n}\n", true, &mut exempt), [""; 0]);
    assert_eq!(exempt, BTreeSet::from(["launch"]));
}
