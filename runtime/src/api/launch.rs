//! [`launch`] and [`process`]: the start of a job of processes, and the place of a process in it.

use crate::api::answer::answer_if_asked;
use crate::state::transport_kind::TransportKind;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::{Error, ErrorClass, Result};

/// The place of this process in a job of processes; see [`process`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    /// The rank of this process.
    pub rank: usize,
    /// The number of ranks.
    pub ranks: usize,
    /// Which of the ranks share memory. A plan that is made before the world is entered must be
    /// compiled for this placement.
    pub placement: Placement,
}

/// Returns the place of this process in the job that it was started for, by `fencepost run` or by
/// [`launch`].
///
/// Returns `None` if the program was not started for a job. The first call joins the job, and may
/// wait for the other ranks.
///
/// # Errors
/// `PROC_FAILED` if this process was started as a rank and cannot join. `ARG` if another launcher
/// has started this process, and the environment is not enough to join.
pub fn process() -> Result<Option<Process>> {
    answer_if_asked();
    if let Some(member) = member()? {
        let job = member.job();
        let placement = match job.reach {
            fencepost_job::Reach::Shm => Placement::Together,
            fencepost_job::Reach::Tcp => Placement::Apart,
            fencepost_job::Reach::Mixed => crate::state::reach::of_hosts(job.host_of_each()),
        };
        return Ok(Some(Process { rank: job.rank as usize, ranks: job.size as usize, placement }));
    }
    Ok(None)
}

/// Returns the membership of this process in its job, if it is in a job. The first call joins the
/// job.
pub(crate) fn member() -> Result<Option<&'static fencepost_job::Member>> {
    fencepost_job::member()
        .map_err(|why| Error::new(ErrorClass::ProcFailed, format!("this rank cannot join its job: {why}")))
}

/// Turns the program into a job: starts `ranks` processes of it, waits until they have ended, and
/// exits with the job's code.
///
/// The processes get the same arguments and reach each other by `transport`. In such a process, or
/// if the ranks are to be threads, the call returns at once.
///
/// Each rank repeats everything that the program does before this call. So call it first, or let
/// [`Ranks::run`](crate::Ranks::run) call it.
///
/// The exit code is that of the lowest rank whose failure was not caused by another rank. A rank's
/// code is 128 plus the signal that killed the rank, or the rank's own exit code, which is 101
/// after a panic. The job's code is 75 if the job ended on request after it had saved a snapshot,
/// 124 if the job took longer than `FENCEPOST_TIMEOUT`, and 125 if the job could not be carried
/// out.
///
/// Each of these environment variables holds a time such as `250ms`, `30s`, `1.5m` or `2h`. A
/// number without a unit is in seconds:
///
/// - `FENCEPOST_HEARTBEAT` and `FENCEPOST_SILENCE`: a rank that has been silent for
///   `FENCEPOST_SILENCE` is killed. If nothing has arrived on a connection between ranks for that
///   time plus one heartbeat, the connection is given up. The ranks that wait for data from the
///   connection are notified at most two seconds later.
/// - `FENCEPOST_GRACE`: how long the other ranks may continue after one has failed.
///
/// `FENCEPOST_SILENCE` and `FENCEPOST_TIMEOUT` may be `off`.
///
/// # Errors
/// `ARG` if this process is a rank of a job with another number of ranks, or if a setting is not
/// valid; otherwise as [`process`].
pub fn launch(ranks: usize, transport: &TransportKind) -> Result<()> {
    answer_if_asked();
    if !transport.is_of_processes() {
        return Ok(());
    }
    if let Some(process) = process()? {
        return process.agrees(ranks, true);
    }
    start(ranks, transport)
}

impl Process {
    /// Checks that the job has the requested number of ranks. If `by_program`, the program has
    /// requested the number. Otherwise `FENCEPOST_RANKS` has.
    ///
    /// # Errors
    /// `ARG`, naming both numbers.
    pub(crate) fn agrees(&self, ranks: usize, by_program: bool) -> Result<()> {
        if self.ranks == ranks {
            return Ok(());
        }
        let all = self.ranks;
        let message = if by_program {
            format!(
                "the program asks for {ranks} ranks, and the job that it was started in has {all}: ask for as many as there are"
            )
        } else {
            format!(
                "FENCEPOST_RANKS is {ranks}, and the job that this program was started in has {all} ranks: unset it, or start as many"
            )
        };
        Err(Error::new(ErrorClass::Arg, message).on_rank(self.rank))
    }
}

fn start(ranks: usize, transport: &TransportKind) -> Result<()> {
    use fencepost_job::{Reach, Start};
    let refused = |message: String| Error::new(ErrorClass::Arg, message);
    if ranks == 0 {
        return Err(refused("a world has at least one rank".into()));
    }
    let most = fencepost_job::RANKS_MAX;
    let ranks = u32::try_from(ranks).ok().filter(|&ranks| ranks <= most).ok_or_else(|| {
        refused(format!("{ranks} ranks as processes: a job has at most {most}; ask for fewer ranks"))
    })?;
    if matches!(transport, TransportKind::Mpi) {
        if ranks == 1 && fencepost_job::is_only_rank() {
            return Ok(());
        }
        return Err(refused(
            "the transport is `mpi`, and no launcher of MPI has started this program: start it with mpirun, mpiexec or srun, or use `shm` or `tcp`".into(),
        ));
    }
    let reach = if matches!(transport, TransportKind::Shm) { Reach::Shm } else { Reach::Tcp };
    let start = Start::this_program(ranks, reach).map_err(|error| refused(error.to_string()))?;
    std::process::exit(start.run().into())
}
