//! What `#[superstep]` says, word by word: `TRYBUILD=overwrite cargo test --test ui` writes it anew, and a person reads it.

#[test]
fn refusals_and_reasons_are_worded() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
