//! The results of the planner, stage by stage: patterns, passes, whole schedules, the verdicts of
//! the verifier, and the decisions of dynamic epochs.

mod adaptive;
mod advise;
mod collect;
mod collective;
mod compiled;
mod exchange;
mod goal;
mod grid;
mod halo;
mod locks;
mod messages;
mod passes;
mod reference;
mod rows;
mod simulated;
#[path = "../support/mod.rs"]
mod support;
mod tiles;
#[path = "../verify/mod.rs"]
mod verify;
