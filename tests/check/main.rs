//! Tests of checks. A conflict is an error that names both lines. Calls that only resemble a
//! conflict are not errors (planner/README.md, 28 to 37).

mod buffers;
mod cases;
mod ends;
mod fetches;
mod generated;
mod hinted;
mod lists;
mod loads;
mod orders;
mod planted;
mod prepared;
mod processes;
mod promised;
mod races;
mod reports;
mod settings;
mod stores;
mod table;
mod told;
mod unfenced;
