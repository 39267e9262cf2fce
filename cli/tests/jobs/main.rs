//! Tests of jobs of real processes: how jobs end, which errors the surviving ranks get, and that no
//! resource is left behind.
//!
//! This program contains both the tests and the program under test: the jobs run `jobs rank ..`. By
//! default a sample of each kind runs. `FENCEPOST_TEST_JOBS=full` runs everything:
//!
//! - 40 kill points, with four ways to die, on three transports, ten times each;
//! - 500 deaths of ranks that have not joined;
//! - 12 kill points among 64 ranks, with four victims, in four setups;
//! - 250 consecutive jobs, 50 of them killed;
//! - 100,800 epochs on each transport.
//!
//! No test sleeps in place of an event: each waits for a line of output, for the end of a process,
//! or for a lock.

#![expect(clippy::print_stdout, reason = "tests print what they measured")]

mod censuses;
mod ends;
mod endure;
#[expect(dead_code, unused_imports, reason = "only its command line is used here, and its own tests are not")]
#[path = "../../../examples/hillslope/main.rs"]
mod hillslope;
mod input;
mod kills;
mod launched;
mod leftovers;
mod many;
mod meeting;
mod mpi;
mod noticed;
mod plans;
mod points;
mod rank;
mod remote;
mod restarts;
#[expect(dead_code, reason = "only its command line is used here, and its own tests are not")]
#[path = "../../../examples/sparse.rs"]
mod sparse;
mod stores;
mod surroundings;
mod traces;

use fencepost_tests_support::counting::Counting;
use libtest_mimic::{Arguments, Trial};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};
use signal_hook::flag;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Test = (&'static str, fn());

/// These tests mostly wait for a time limit to pass, and run side by side.
const WAITING: &[Test] = &[
    ("a_remote_command_that_does_not_answer_is_killed", remote::deaf),
    ("a_remote_command_that_does_not_end_is_killed", remote::mute),
    ("ranks_in_different_calls_get_errors_that_name_both", ends::apart),
    ("ranks_with_different_censuses_get_errors_that_name_them", censuses::differ),
    ("a_deadlock_ends_the_job_if_requested", ends::deadlocks),
    ("a_rank_that_does_not_join_is_named", ends::late),
    ("a_launcher_with_unread_output_still_ends", ends::unread),
    ("a_job_over_its_time_limit_ends_with_124", ends::timeout),
    ("silent_hosts_are_lost", remote::silent),
    ("hosts_in_network_namespaces", remote::namespaces),
    ("a_stopped_rank_is_named_on_every_survivor", points::stops),
    ("launcher_lets_a_wrapper_work_on_after_its_rank_has_left", surroundings::wrappers),
    ("a_job_that_is_stopped_as_a_whole_goes_on", surroundings::frozen),
    ("a_rank_that_fails_inside_a_wrapper_that_works_on_is_named_at_once", surroundings::wrappers_of_failures),
    ("launcher_suspends_all_ranks_and_lets_them_go_on", surroundings::suspension),
    ("launcher_in_the_background_is_stopped_before_it_writes_to_a_terminal", surroundings::background),
    (
        "a_profile_names_a_rank_that_waits_for_rank_0_and_that_rank_gets_its_error",
        traces::of_a_rank_that_waits,
    ),
    ("restarts_without_a_snapshot_begin_after_a_wait", restarts::without_snapshots),
    ("restarts_follow_silent_and_vanished_ranks", restarts::silent_or_vanished),
    ("restarts_count_hosts_that_cannot_be_reached_later", restarts::unreachable_later),
    ("restarts_end_by_a_signal_during_the_wait", restarts::signal_between_attempts),
    ("restarts_have_one_time_limit", restarts::timeout_of_all_attempts),
];

/// These tests run one at a time, because some look for processes that a job has left, and some
/// measure.
const ALONE: &[Test] = &[
    ("invalid_input_is_reported_in_one_line_with_its_exit_code", input::refusals),
    ("invalid_settings_are_refused_by_name", input::settings),
    ("a_variable_that_nothing_reads_is_reported_once", input::unknown_variables),
    ("variables_hold_for_every_entry_that_leaves_them_open", input::variables_of_every_entry),
    ("operations_that_no_fence_carries_out_are_reported", input::unfenced),
    ("rank_0_explains_all_epochs_where_a_variable_says_so", input::explained),
    ("plans_are_written_and_checked_by_the_command", plans::written_and_checked),
    ("plans_of_stencils_need_no_program", plans::of_stencils),
    ("plans_and_requests_that_are_not_valid_are_refused", plans::refused),
    ("plans_are_shown_explained_verified_compared_and_predicted", plans::read),
    ("plans_are_measured_without_their_program", plans::measured),
    ("a_probe_is_a_machine_that_jobs_accept", plans::probed),
    ("output_without_a_reader_is_not_an_error", input::broken_pipes),
    ("a_host_checks_version_and_program", input::unlike_hosts),
    ("a_job_ends_with_0_and_its_output_is_tagged", ends::success),
    ("a_program_starts_its_own_processes", ends::self_launched),
    ("the_exit_code_is_that_of_the_lowest_rank_that_fails", ends::codes),
    ("a_run_is_refused_while_another_thread_is_in_one", ends::overlapping),
    ("ranks_with_different_machine_models_get_errors_that_name_both", ends::machines),
    ("a_job_may_have_any_number_of_consecutive_worlds", ends::many_runs),
    ("of_aborting_ranks_the_one_at_fault_is_named", ends::aborts),
    ("a_rank_that_panics_exits_with_101", ends::panics),
    ("a_death_before_all_ranks_have_joined_determines_the_exit_code", ends::unborn),
    ("a_death_before_all_ranks_have_joined_is_reported_at_once", ends::unjoined),
    ("a_wrong_number_of_ranks_is_refused_naming_both", ends::sizes),
    ("signals_are_forwarded", ends::signals),
    ("a_stopped_rank_that_is_continued_changes_nothing", ends::continued),
    ("ranks_die_with_their_launcher", ends::orphans),
    ("64_descriptors_are_enough_for_8_ranks", ends::descriptors),
    ("starting_8_ranks_is_fast", ends::start_up),
    ("launcher_refuses_a_second_program_of_a_rank", surroundings::programs_in_a_row),
    ("launcher_names_a_closed_control_channel", surroundings::closed_descriptors),
    ("launcher_that_gives_no_rank_is_refused_with_a_rendezvous", surroundings::rendezvous_without_launcher),
    ("launcher_in_a_terminal_does_not_have_its_ranks_stopped", surroundings::terminals),
    ("launcher_passes_its_input_on_to_rank_0", surroundings::inputs),
    ("launcher_takes_first_processes_of_namespaces_with_it", surroundings::first_processes),
    ("launcher_in_a_control_group_has_windows_refused", surroundings::memory_limits),
    ("launcher_takes_no_memory_for_windows_that_nobody_touches", surroundings::untouched_memory),
    ("launcher_under_a_limit_of_file_sizes_names_it", surroundings::file_sizes),
    ("launcher_keeps_lines_of_errors_whole", surroundings::errors_in_pieces),
    ("launcher_names_a_refused_system_call", surroundings::refused_calls),
    ("launcher_accepts_what_users_of_mpirun_type", surroundings::forms),
    ("launcher_tells_pinned_ranks_how_many_cores_all_have", surroundings::pinned),
    ("snapshots_on_two_hosts_are_complete_without_one_of_their_folders", stores::lost),
    ("restarts_continue_a_job_whose_ranks_are_killed", restarts::killed),
    ("restarts_are_limited", restarts::all_attempts_fail),
    ("restarts_do_not_follow_failures_of_programs_and_users", restarts::not_restarted),
    ("restarts_repeat_or_leave_out_a_lost_host", restarts::lost_hosts),
    ("restarts_need_a_host", restarts::no_host_left),
    ("restarts_go_on_with_standard_input", restarts::input),
    ("a_job_that_ends_on_request_has_code_75", restarts::stops),
    ("a_job_has_time_for_a_snapshot_at_sigterm", restarts::snapshots_on_term),
    ("hosts_are_reached_by_the_remote_command", remote::hosts),
    ("a_lost_host_is_named_by_all_ranks", remote::lost),
    ("output_of_ranks_on_hosts_is_complete", remote::floods),
    ("a_rank_that_others_wait_for_is_named_with_its_host", remote::late),
    ("hillslope_has_one_digest_on_hosts_in_every_mode", remote::hillslope),
    ("traces_of_hillslope_nest_and_their_frames_end_after_they_begin", traces::of_runs),
    ("traces_that_are_damaged_or_missing_are_refused", traces::refused),
    ("records_that_cannot_be_written_are_reported", traces::unwritten),
    ("a_rank_that_panics_leaves_a_trace", traces::of_a_rank_that_panics),
    ("a_job_that_is_killed_at_any_moment_continues_with_the_same_bits", kills::at_random),
    ("a_job_that_is_asked_to_end_saves_its_state_and_continues_from_it", kills::on_request),
    ("ranks_of_external_launchers_meet", meeting::launchers),
    ("ranks_of_a_launcher_of_mpi_meet_on_hosts_of_any_order", mpi::hosts),
    ("ranks_under_a_launcher_of_mpi_use_the_quicker_wire", mpi::wires),
    ("ranks_under_a_launcher_of_mpi_compare_their_programs", mpi::programs),
    ("ranks_that_can_not_meet_over_mpi_are_refused", mpi::refusals),
    ("a_death_under_a_launcher_of_mpi_is_named_on_every_survivor", mpi::deaths),
    ("a_prepared_superstep_sends_its_frames_over_mpi_and_nothing_else", mpi::frames),
    ("a_prepared_superstep_allocates_nothing_over_mpi", mpi::allocations),
    ("what_a_rank_sent_over_mpi_moves_while_it_computes", mpi::computes),
    ("memory_lent_to_mpi_stays_after_a_death", mpi::lent),
    ("hillslope_has_one_digest_under_a_launcher_of_mpi", mpi::hillslope),
    ("incomplete_variables_of_external_launchers_are_refused", meeting::refusals),
    ("every_way_to_die_over_shm_is_named_on_every_survivor", points::by_shm),
    ("every_way_to_die_over_tcp_is_named_on_every_survivor", points::by_tcp),
    ("every_way_to_die_on_hosts_is_named_on_every_survivor", points::by_mixed),
    ("a_death_over_shm_is_noticed_in_each_wait_while_another_rank_computes", noticed::by_shm),
    ("a_death_over_tcp_is_noticed_in_each_wait_while_another_rank_computes", noticed::by_tcp),
    ("a_death_on_hosts_is_noticed_in_each_wait_while_another_rank_computes", noticed::by_mixed),
    ("a_death_among_64_ranks_is_named_on_every_survivor", many::deaths),
    ("a_lost_host_of_64_ranks_is_named_on_all_others", many::lost_hosts),
    ("consecutive_jobs_leave_nothing_behind", leftovers::jobs),
    ("early_small_puts_cost_their_receiver_little_more_than_their_bytes", endure::by_small_puts),
    ("many_epochs_over_local_do_not_grow_memory_or_descriptors", endure::by_local),
    ("many_epochs_over_sim_do_not_grow_memory_or_descriptors", endure::by_sim),
    ("many_epochs_over_shm_do_not_grow_memory_or_descriptors", endure::by_shm),
    ("many_epochs_over_tcp_do_not_grow_memory_or_descriptors", endure::by_tcp),
    ("many_epochs_over_mixed_do_not_grow_memory_or_descriptors", endure::by_mixed),
];

/// Whether to run the full set of tests.
fn full() -> bool {
    std::env::var("FENCEPOST_TEST_JOBS").is_ok_and(|value| value == "full")
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = words.split_first()
        && first == "rank"
    {
        return rank::main(rest);
    }
    // A shell that starts this program in the background may set signals to be ignored, and the
    // launchers would inherit this setting. A handler prevents that, since a signal with a handler
    // is not inherited as ignored.
    for signal in [SIGHUP, SIGINT, SIGQUIT] {
        flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true))).expect("a handler");
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(WAITING.len());
    static LOCK: RwLock<()> = RwLock::new(());
    let trial = |&(name, test): &Test, alone: bool| {
        Trial::test(name, move || {
            // A test that panics poisons the lock. The other tests run nevertheless.
            let waits = (!alone).then(|| LOCK.read().unwrap_or_else(PoisonError::into_inner));
            let alone = alone.then(|| LOCK.write().unwrap_or_else(PoisonError::into_inner));
            test();
            drop((waits, alone));
            Ok(())
        })
    };
    let waiting = WAITING.iter().map(|test| trial(test, false));
    let trials = waiting.chain(ALONE.iter().map(|test| trial(test, true)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
