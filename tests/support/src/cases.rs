//! The number of cases that a test tries: a sample by default, and more if `FENCEPOST_CASES` is
//! set, as `.ci/run every_case` does.

const VARIABLE: &str = "FENCEPOST_CASES";

/// Returns the number of cases to draw: `sample` by default, `all` with `FENCEPOST_CASES=all`, and
/// otherwise the value of the variable.
///
/// # Panics
///
/// Panics if the variable is neither `all` nor a number.
pub fn cases(sample: u64, all: u64) -> u64 {
    match std::env::var(VARIABLE) {
        Err(_) => sample,
        Ok(text) if text == "all" => all,
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text}: use a number, or `all`")),
    }
}

/// Returns whether a test that enumerates its cases tries every case. It does so if
/// `FENCEPOST_CASES` is set to any value.
pub fn every_case() -> bool {
    std::env::var_os(VARIABLE).is_some()
}
