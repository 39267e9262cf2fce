//! The messages of `#[superstep]`, word by word: `TRYBUILD=overwrite cargo test --test ui` writes them again, and a
//! person reads them.

#[test]
fn refusals_and_reasons_are_worded() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
