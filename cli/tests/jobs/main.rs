//! Jobs of real processes: how they end, what survivors are told, and that nothing is left behind.
//!
//! This program is test and subject at once: `jobs rank ..` is what the jobs run. By default a few of each kind run;
//! `FENCEPOST_JOBS=full` runs all: 24 kill points, four ways to die, three transports, ten times each; 250 jobs in a row
//! of which 50 are killed; 100,000 epochs on each transport. Nothing here sleeps: whatever is waited for is a line, the
//! end of a process, or a lock.

#![expect(clippy::print_stdout, reason = "a test program of its own reports to whoever runs it")]

mod ends;
mod endure;
#[expect(dead_code, unused_imports, reason = "only its command line is used here, and its own tests are not")]
#[path = "../../../examples/hillslope/main.rs"]
mod hillslope;
mod input;
mod launched;
mod leftovers;
mod meeting;
mod points;
mod rank;
mod remote;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::flag;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("bad_input_is_one_line_and_its_exit_code", input::refusals),
    ("settings_that_are_not_allowed_are_refused_by_name", input::settings),
    ("what_nobody_reads_is_no_failure", input::broken_pipes),
    ("a_host_compares_versions_and_programs", input::unlike_hosts),
    ("a_job_ends_with_0_and_its_output_is_tagged", ends::well),
    ("a_program_starts_its_own_processes", ends::by_itself),
    ("the_lowest_rank_that_fails_gives_the_code", ends::codes),
    ("a_run_of_another_thread_is_refused_while_one_is_entered", ends::overlapping),
    ("a_job_has_as_many_worlds_in_a_row_as_it_likes", ends::many_runs),
    ("ranks_in_different_calls_are_told_of_both_across_processes", ends::apart),
    ("of_ranks_that_abort_the_one_at_fault_is_named", ends::aborts),
    ("a_rank_that_panics_exits_with_101", ends::panics),
    ("a_death_before_the_job_begins_gives_the_code", ends::unborn),
    ("a_size_other_than_the_jobs_is_refused_naming_both", ends::sizes),
    ("signals_are_handed_on", ends::signals),
    ("a_job_that_takes_too_long_ends_with_124", ends::timeout),
    ("ranks_that_wait_for_one_another_end_when_asked_to", ends::deadlocks),
    ("a_rank_that_does_not_join_is_named", ends::late),
    ("a_stopped_rank_that_is_continued_changes_nothing", ends::continued),
    ("a_launcher_whose_output_nobody_reads_still_ends", ends::unread),
    ("ranks_die_with_their_launcher", ends::orphans),
    ("64_descriptors_are_enough_for_8_ranks", ends::descriptors),
    ("starting_8_ranks_takes_a_moment", ends::start_up),
    ("hosts_are_reached_by_the_remote_command", remote::hosts),
    ("a_host_that_is_lost_is_named_by_all", remote::lost),
    ("what_ranks_on_hosts_write_comes_whole", remote::floods),
    ("a_remote_command_that_does_not_answer_or_end_is_ended", remote::deaf),
    ("hosts_that_fall_silent_are_lost", remote::silent),
    ("who_is_awaited_is_named_with_its_host", remote::late),
    ("hosts_in_network_namespaces", remote::namespaces),
    ("hillslope_has_one_digest_on_hosts_in_every_mode", remote::hillslope),
    ("jobs_of_other_launchers_meet", meeting::launchers),
    ("what_is_not_enough_to_meet_is_refused", meeting::refusals),
    ("every_way_to_die_by_shm_is_named_on_every_survivor", points::by_shm),
    ("every_way_to_die_by_tcp_is_named_on_every_survivor", points::by_tcp),
    ("every_way_to_die_on_hosts_is_named_on_every_survivor", points::by_mixed),
    ("jobs_in_a_row_leave_nothing_behind", leftovers::jobs),
    ("small_puts_that_leave_early_cost_their_receiver_little_more_than_their_bytes", endure::by_small_puts),
    ("many_epochs_by_local_leave_memory_and_descriptors_as_they_were", endure::by_local),
    ("many_epochs_by_sim_leave_memory_and_descriptors_as_they_were", endure::by_sim),
    ("many_epochs_by_shm_leave_memory_and_descriptors_as_they_were", endure::by_shm),
    ("many_epochs_by_tcp_leave_memory_and_descriptors_as_they_were", endure::by_tcp),
    ("many_epochs_by_mixed_leave_memory_and_descriptors_as_they_were", endure::by_mixed),
];

/// Whether everything is to be run.
fn full() -> bool {
    std::env::var("FENCEPOST_JOBS").is_ok_and(|value| value == "full")
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == "rank"
    {
        return rank::main(rest);
    }
    // Started in the background by a shell, this may ignore signals, and so would the launchers; what is caught they do not.
    for signal in [SIGHUP, SIGINT, SIGQUIT] {
        flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true))).expect("a handler");
    }
    let wanted: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let picked = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let mut failed = Vec::new();
    for (name, test) in TESTS.iter().filter(|(name, _)| picked(name)) {
        let clock = Instant::now();
        let verdict = catch_unwind(AssertUnwindSafe(test)).map_or("FAILED", |()| "ok");
        println!("test {name} ... {verdict} in {:.1?}", clock.elapsed());
        if verdict != "ok" {
            failed.push(*name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", failed.join(", "));
    ExitCode::FAILURE
}
