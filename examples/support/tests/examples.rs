//! Each example runs as a test, at a small size, and checks its own result.

#![expect(clippy::duplicate_mod, reason = "`ahead` compiles the superstep of `heat2d`")]

#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../ahead.rs"]
mod ahead;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../beyond.rs"]
mod beyond;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../graph.rs"]
mod graph;
#[path = "../../heat2d.rs"]
mod heat2d;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../heat3d.rs"]
mod heat3d;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../hillslope/main.rs"]
mod hillslope;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../histogram.rs"]
mod histogram;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../measure.rs"]
mod measure;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../modes.rs"]
mod modes;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../queue.rs"]
mod queue;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../races.rs"]
mod races;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../server.rs"]
mod server;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../sort.rs"]
mod sort;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../sparse.rs"]
mod sparse;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../table.rs"]
mod table;
#[expect(dead_code, reason = "its command line is not used here")]
#[path = "../../wave2d.rs"]
mod wave2d;

#[test]
fn heat2d_cools_as_it_must() {
    heat2d::main().unwrap();
}

#[test]
fn heat2d_is_at_most_forty_lines() {
    let lines = include_str!("../../heat2d.rs").lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("//")).count();
    assert!(lines <= 40, "{lines} lines that are neither blank nor comment");
}

#[test]
fn heat3d_equals_the_serial_program_whatever_the_steps_an_exchange() {
    heat3d::check().unwrap();
}

#[test]
fn wave2d_equals_the_serial_program_and_draws() {
    wave2d::check().unwrap();
}

#[test]
fn hillslope_equals_the_serial_program_whatever_the_ranks_and_the_mode() {
    hillslope::check().unwrap();
}

#[test]
fn graph_finds_the_components_that_the_serial_loop_finds() {
    graph::check().unwrap();
}

#[test]
fn histogram_equals_the_serial_table_and_is_undone() {
    histogram::check().unwrap();
}

#[test]
fn queue_does_each_task_once() {
    queue::check().unwrap();
}

#[test]
fn table_equals_the_serial_map() {
    table::check().unwrap();
}

#[test]
fn sort_equals_the_keys_that_one_rank_sorts() {
    sort::check().unwrap();
}

#[test]
fn sparse_equals_the_serial_vector() {
    sparse::check().unwrap();
}

#[test]
fn ahead_runs_what_it_saved_and_refuses_the_rest() {
    ahead::check().unwrap();
}

#[test]
fn measure_prints_a_machine_that_a_world_takes() {
    measure::check().unwrap();
}

#[test]
fn modes_runs_every_workload_in_every_mode() {
    modes::check().unwrap();
}

#[test]
fn beyond_counts_the_messages_that_it_predicts_with() {
    beyond::check().unwrap();
}

#[test]
fn races_are_told_with_both_lines() {
    races::check().unwrap();
}

#[test]
fn server_answers_all_clients_and_gives_each_the_same_share() {
    server::check().unwrap();
}
