#![allow(unused, clippy::all, clippy::pedantic, reason = "programs drawn at random")]
use super::*;
programs! {}
