//! Posts and starts: accesses of some ranks to windows of other ranks, on every transport.

mod differential;
mod fences;
mod meaning;
mod misuse;
mod player;
mod programs;
mod waiting;
