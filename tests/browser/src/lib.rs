//! An empty library: the tests are in `tests/report.rs`.
