//! Nothing: the tests are in `tests/report.rs`.
