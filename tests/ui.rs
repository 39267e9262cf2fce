//! The errors of `#[superstep]`: the place, the message and the label of each, as `rustc
//! --error-format=short` prints them. Additions by rustc differ between versions, and are left out.
//! `FENCEPOST_BLESS=1 cargo test --test ui` writes the expectations again, and a person reads them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Compiles programs outside this package, all in one build. Returns the compiler's errors, one in
/// each line.
fn errors(cases: &[PathBuf]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (project, target) = (folder.join("ui"), folder.parent().expect("it is in the target folder"));
    let root = env!("CARGO_MANIFEST_DIR");
    let mut manifest = format!(
        "[package]\nname = \"ui\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nfencepost = {{ path = {root:?} }}\n"
    );
    for case in cases {
        let name = case.file_stem().expect("a case has a name");
        let _ = write!(manifest, "[[bin]]\nname = {name:?}\npath = {case:?}\n");
    }
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("Cargo.toml"), manifest).unwrap();
    fs::copy(Path::new(root).join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--bins", "--keep-going", "--message-format=short"])
        .current_dir(&project)
        .env("CARGO_TARGET_DIR", target) // the crates that macros use are already built there
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn refusals_and_reasons_are_worded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    cases.sort();
    let errors = errors(&cases);
    for case in &cases {
        let place = format!("{}:", case.display());
        let lines = errors.lines().filter_map(|line| line.strip_prefix(&place));
        let found: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(!found.is_empty(), "{place} no errors in\n{errors}");
        let file = case.with_extension("stderr");
        if env::var_os("FENCEPOST_BLESS").is_some() {
            fs::write(&file, &found).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(found, expected, "{}: FENCEPOST_BLESS=1 writes it again", file.display());
    }
}
