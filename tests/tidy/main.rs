//! Rules of this repository that a program can check. Examples: pages name only things that exist,
//! each pass has golden files, unsafe code has its argument, and no file names the machine on which
//! it was written. Each rule is a function of text, with a test in which it refuses a text.

mod aliases;
mod arrows;
mod callers;
mod floors;
mod pasted;
mod surface;
mod variables;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all text files below `folder`, except those that builds and runs leave behind.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().expect("names are UTF-8").to_owned();
        let left_behind = name == ".git" || name == "out" || name.starts_with("target");
        if path.is_dir() && !left_behind {
            all.extend(files(&path));
        } else if path.is_file() && !left_behind && fs::read_to_string(&path).is_ok() {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    files(folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Returns the paths that a page names: the targets of its links, and the text in backticks that
/// looks like a path.
fn paths_named(page: &str) -> Vec<String> {
    let links = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let quoted = page.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2));
    let endings = [".rs", ".md", ".toml", ".npy", ".sched", ".plan", ".lock"];
    let quoted = quoted.filter(|word| {
        word.contains('/')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
            && (word.ends_with('/')
                || word.matches('/').count() > 1
                || endings.iter().any(|end| word.ends_with(end)))
    });
    let all = links.map(|link| link.split('#').next().unwrap_or(link)).chain(quoted);
    let elsewhere = |word: &str| word.is_empty() || word.contains("://") || word.starts_with("out/");
    all.filter(|word| !elsewhere(word)).map(str::to_owned).collect()
}

#[test]
fn every_path_that_a_page_names_exists() {
    let mut named = 0;
    for page in with_extension(root(), "md") {
        for path in paths_named(&read(&page)) {
            let near = page.parent().unwrap().join(&path);
            assert!(near.exists() || root().join(&path).exists(), "{} names {path}", page.display());
            named += 1;
        }
    }
    assert!(named > 50, "{named} paths: are pages still read?");
}

/// Returns the files and anchors that a page includes in mdbook's form `{{#include FILE:ANCHOR}}`.
fn included(page: &str) -> Vec<(String, Option<String>)> {
    let all = page.split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next());
    all.map(|file| match file.split_once(':') {
        Some((file, anchor)) => (file.into(), Some(anchor.into())),
        None => (file.into(), None),
    })
    .collect()
}

#[test]
fn every_file_and_anchor_that_a_page_includes_exists() {
    let mut count = 0;
    for page in with_extension(&root().join("docs/src"), "md") {
        for (file, anchor) in included(&read(&page)) {
            let path = page.parent().unwrap().join(&file);
            assert!(path.is_file(), "{} includes {file}", page.display());
            let text = read(&path);
            let ends =
                ["ANCHOR", "ANCHOR_END"].map(|end| anchor.as_ref().map(|name| format!("// {end}: {name}\n")));
            assert!(ends.iter().flatten().all(|end| text.contains(end.as_str())), "{file} has no {anchor:?}");
            count += 1;
        }
    }
    assert!(count > 4, "{count} files: are includes still read?");
}

#[test]
fn paths_are_seen_in_links_and_in_backticks_and_not_in_code() {
    let page = "See [`that`](src/no.rs#line), `tests/none.rs`, `a/b`, `src/`.\n```sh\n`x/y.rs`\n```\n[web](https://x.org)";
    assert_eq!(paths_named(page), ["src/no.rs", "tests/none.rs", "src/"]);
}

/// Returns the lines with unsafe code that have no safety argument above them.
fn unargued(source: &str) -> Vec<usize> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let code = |line: &str| !line.starts_with("//") && !line.contains('"');
    let above = |at: usize, word: &str, far: usize| {
        lines[at.saturating_sub(far)..=at].iter().any(|line| line.starts_with("//") && line.contains(word))
    };
    let missing = |at: usize| {
        let line = lines[at];
        (line.contains("unsafe {") || line.contains("unsafe impl")) && !above(at, "SAFETY:", 8)
            || line.starts_with("pub")
                && line.contains("unsafe fn ")
                && !above(at, "# Safety", 16)
                && !above(at, "SAFETY:", 8)
    };
    (0..lines.len()).filter(|&at| code(lines[at]) && missing(at)).map(|at| at + 1).collect()
}

#[test]
fn unsafe_code_is_in_the_runtime_and_each_block_has_its_argument() {
    let mut found = 0;
    for path in with_extension(&root().join("runtime/src"), "rs") {
        let source = read(&path);
        let lines = unargued(&source);
        assert!(lines.is_empty(), "{}: no argument above the unsafe code of lines {lines:?}", path.display());
        found += source.matches("SAFETY:").count();
    }
    assert!(found > 20, "{found} arguments: is the runtime still read?");
    for path in with_extension(&root().join("planner/src"), "rs") {
        let block = read(&path).lines().any(|line| line.contains("unsafe {") || line.contains("unsafe fn"));
        assert!(!block, "{}: the planner has no unsafe code", path.display());
    }
}

#[test]
fn unsafe_code_without_its_argument_is_seen() {
    assert_eq!(unargued("fn f() {\n    unsafe { g() }\n}"), [2]);
    assert_eq!(unargued("/// Does.\npub unsafe fn f();"), [2]);
    assert!(unargued("// SAFETY: why\nunsafe { g() };\n/// # Safety\n/// When.\nunsafe fn f();").is_empty());
}

#[test]
fn errors_and_panics_name_the_line_of_the_program_that_made_the_call() {
    let (mut wrong, mut exempt) = (Vec::new(), BTreeSet::new());
    for (folder, is_api) in
        [("src", true), ("runtime/src", true), ("snapshots/src", true), ("planner/src", false)]
    {
        for path in with_extension(&root().join(folder), "rs") {
            let name = path.to_str().expect("names are UTF-8");
            if ["fuzzing.rs", "/trial.rs", "tests.rs"].iter().any(|part| name.contains(part)) {
                continue;
            }
            let found = callers::untracked(&read(&path), is_api, &mut exempt);
            wrong.extend(found.iter().map(|found| format!("{name}:{found}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let listed = callers::WITHOUT_LINES.map(|(name, _)| name);
    let unused: Vec<_> = listed.into_iter().filter(|name| !exempt.contains(name)).collect();
    assert!(unused.is_empty(), "no function needs these exemptions: {unused:?}");
}

/// Crates whose safe functions trust the addresses that they are given, or trust that they are
/// called only once. Programs do not reach these crates.
const TRUSTING: [&str; 2] = ["fencepost_transport", "fencepost_job"];

/// Returns the first of these crates that `root`, the source of a crate's root, re-exports as a
/// whole or as a module.
fn shown(root: &str) -> Option<&'static str> {
    let hands_on = |name: &&str| {
        let public = |line: &str| line.trim_start().starts_with("pub use ") && line.contains(name);
        root.lines()
            .any(|line| public(line) && (line.contains("::*") || line.contains(&format!("use {name};"))))
    };
    TRUSTING.into_iter().find(|name| hands_on(name))
}

#[test]
fn functions_that_trust_addresses_are_in_crates_that_programs_do_not_reach() {
    for root_of_crate in ["src/lib.rs", "runtime/src/lib.rs"] {
        let text = read(&root().join(root_of_crate));
        assert_eq!(shown(&text), None, "{root_of_crate}");
        for module in ["auth", "deadlock", "control"] {
            assert!(!text.contains(&format!("::{module}")), "{root_of_crate} shows {module}");
        }
        let trusting = ["Segment", "Fabric", "Endpoint", "Member"];
        let used = text.lines().filter(|line| line.contains("pub use"));
        for line in used {
            assert!(!trusting.iter().any(|item| line.contains(item)), "{root_of_crate}: {line}");
        }
    }
    assert_eq!(shown("mod a;\npub use fencepost_job;\n"), Some("fencepost_job"));
    assert_eq!(shown("pub use fencepost_transport::*;\n"), Some("fencepost_transport"));
    assert_eq!(shown("pub use fencepost_transport::{Meter, SimConfig};\n"), None);
    let facade = read(&root().join("src/lib.rs"));
    assert!(!facade.contains("fencepost_runtime::*"), "the facade names what it exports");
}

/// Returns the passes that `mod.rs` exports.
fn passes(module: &str) -> BTreeSet<String> {
    module
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_pass_has_its_golden_files_and_all_golden_files_have_a_pass() {
    let folder = root().join("planner/src/passes");
    let passes = passes(&read(&folder.join("mod.rs")));
    assert_eq!(passes.len(), 9, "{passes:?}");
    let golden = root().join("planner/tests/passes");
    let folders: BTreeSet<String> = fs::read_dir(&golden)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().expect("names are UTF-8"))
        .collect();
    assert_eq!(folders, passes);
    for pass in &passes {
        assert!(!with_extension(&golden.join(pass), "sched").is_empty(), "{pass} has no golden files");
        let source = read(&folder.join(format!("{pass}.rs")));
        assert!(source.contains(&format!("pub fn {pass}")), "{pass}.rs has no function of its name");
        for heading in ["**Requires**", "**Ensures**", "**Cost**"] {
            let told = source.lines().any(|line| line.starts_with("//!") && line.contains(heading));
            assert!(told, "the header of {pass}.rs has no {heading}");
        }
    }
}

/// The most columns of a line that is a comment. rustfmt leaves comments alone.
const COMMENT_MAX: usize = 100;

/// Returns the lines of a source that are comments and too wide. Rows of tables and addresses
/// cannot be wrapped.
fn wide(source: &str) -> Vec<usize> {
    let is_comment = |line: &str| line.trim_start().starts_with("//");
    let is_row = |line: &str| line.trim_start_matches(['/', '!', ' ']).starts_with('|');
    let is_wide = |line: &str| {
        is_comment(line) && !is_row(line) && !line.contains("://") && line.chars().count() > COMMENT_MAX
    };
    source.lines().enumerate().filter(|(_, line)| is_wide(line)).map(|(at, _)| at + 1).collect()
}

#[test]
fn no_comment_is_wider_than_its_columns() {
    let mut found = Vec::new();
    for path in with_extension(root(), "rs") {
        found.extend(wide(&read(&path)).into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(found.is_empty(), "comments wider than {COMMENT_MAX} columns:\n{}", found.join("\n"));
}

#[test]
fn a_comment_that_is_too_wide_is_seen_and_a_row_or_an_address_is_not() {
    let long = "word ".repeat(20);
    let source = format!("//! {long}\nfn f() {{\n    // {long}\n    g(); // {long}\n}}\n");
    assert_eq!(wide(&source), [1, 3]);
    assert!(wide(&format!("/// | {long} |\n/// https://x.org/{long}\n")).is_empty());
    assert!(wide(&format!("// {}", "w".repeat(COMMENT_MAX - 3))).is_empty());
}

/// Paths that exist on one machine only.
const OF_ONE_MACHINE: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("../sha", "red/"),
    concat!("index.cra", "tes.io"),
];

/// Returns the first line that names such a path.
fn of_one_machine(text: &str) -> Option<(usize, &str)> {
    text.lines()
        .enumerate()
        .find(|(_, line)| OF_ONE_MACHINE.iter().any(|word| line.contains(word)))
        .map(|(at, line)| (at + 1, line))
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    for path in files(root()) {
        if let Some((at, line)) = of_one_machine(&read(&path)) {
            panic!("{}:{at}: {line}", path.display());
        }
    }
    assert_eq!(of_one_machine(concat!("a\nsee /ro", "ot/x")).map(|(at, _)| at), Some(2));
}

/// Words that other projects use for world, halo, fence and rank.
const NOT_OUR_WORDS: [&str; 5] =
    ["communicator", "ghost cell", "ghost zone", "sync point", "processing element"];

fn not_ours(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    NOT_OUR_WORDS.into_iter().find(|word| text.contains(word))
}

#[test]
fn pages_and_sources_use_the_words_of_the_field() {
    let this = root().join("tests/tidy/main.rs");
    let sources = ["md", "rs"].into_iter().flat_map(|extension| with_extension(root(), extension));
    for path in sources.filter(|path| *path != this) {
        assert_eq!(not_ours(&read(&path)), None, "{}", path.display());
    }
    assert_eq!(not_ours("A Communicator."), Some("communicator"));
}

#[test]
fn every_example_and_every_bench_is_named_where_it_is_run() {
    let readme = read(&root().join("README.md"));
    let tests = read(&root().join("examples/support/tests/examples.rs"));
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().expect("names are UTF-8").to_owned();
        if path.extension().is_some() || path.join("main.rs").exists() {
            assert!(readme.contains(&format!("[`{name}`]")), "README.md does not name the example {name}");
            assert!(
                tests.contains(&format!("mod {name};")),
                "examples/support/tests/examples.rs does not run {name}"
            );
        }
    }
    let manifest = read(&root().join("benches/Cargo.toml"));
    for entry in fs::read_dir(root().join("benches")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|found| found == "rs") {
            let name = path.file_name().unwrap().to_str().expect("names are UTF-8");
            assert!(
                manifest.contains(&format!("path = \"{name}\"")),
                "benches/Cargo.toml does not name {name}"
            );
        }
    }
}
