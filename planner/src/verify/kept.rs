//! While an epoch runs, a rank keeps some elements of its windows. This module shows that no
//! instruction of any rank touches these elements.
//!
//! The calls determine which elements are kept. This module compares these elements with the
//! programs, without looking at the calls. All instructions of all ranks count, whenever they run:
//! packs of elements that are sent, copies of this rank and of others, and unpacks of received
//! elements.

use super::Verified;
use super::error::{Finding, VerifyError};
use super::program::owner;
use super::rank::side;
use super::sweep::Space;
use crate::datatype::{Datatype, MOST_RUNS};
use crate::ids::{ClassId, Rank, WindowId};
use crate::ir::schedule::{Instruction, Part, Schedule};
use crate::kept::Kept;

/// Certifies that no instruction touches the elements of the rank's windows that `kept` leaves to
/// the rank.
///
/// The schedule may also be the share of that rank. No instruction writes an element that the rank
/// keeps for reading, and none reads or writes an element that the rank keeps for writing.
///
/// # Errors
/// `NotKept`, with the first instruction that touches such an element.
///
/// # Cost
/// Proportional to the instructions of all classes of ranks, and to sorting the runs that are
/// touched.
pub fn verify_kept<S: AsRef<Schedule>>(
    schedule: &Verified<S>,
    kept: Kept,
) -> Result<Verified<Kept>, VerifyError> {
    let schedule = schedule.get().as_ref();
    let ranks = schedule.class_of.len() as u32;
    let windows = schedule.windows.ids().map(|window| Named::of(&kept, window));
    let windows = windows.collect::<Option<Vec<Named>>>();
    let own = schedule.class_of[kept.rank.0 as usize];
    let Some(windows) = windows else {
        let what = format!("the verifier would have to visit more than {MOST_RUNS} runs of elements");
        return Err(VerifyError::TooMuch(finding(kept.rank, own, None, what)));
    };
    for (class, program) in schedule.classes.iter() {
        for (at, instruction) in program.instructions.iter().enumerate() {
            for (part, writes) in parts(instruction) {
                let (Space::Window(window), elements) = side(part) else { continue };
                // The rank of this class that touches the window of `kept.rank`.
                let actor = owner(part).back().from(kept.rank, ranks);
                let Some(actor) = actor.filter(|actor| schedule.class_of[actor.0 as usize] == class) else {
                    continue;
                };
                if let Some(element) = windows[window.0 as usize].lacks(&elements, writes) {
                    let does = if writes { "writes" } else { "reads" };
                    let what = format!("{does} {window} {element} of {}, which keeps it", kept.rank);
                    return Err(VerifyError::NotKept(finding(actor, class, Some(at), what)));
                }
            }
        }
    }
    Ok(Verified(kept))
}

fn finding(rank: Rank, class: ClassId, instruction: Option<usize>, what: String) -> Box<Finding> {
    Box::new(Finding { rank, class, instruction, operation: None, what })
}

/// Returns the parts that an instruction reads or writes, each with a flag that is set if the part
/// is written.
fn parts(instruction: &Instruction) -> impl Iterator<Item = (&Part, bool)> {
    let (from, to) = match instruction {
        Instruction::Pack { from, .. } | Instruction::Combine { from, .. } => (Some(from), None),
        Instruction::Unpack { to, .. } => (None, Some(to)),
        Instruction::Copy { from, to, .. } => (Some(from), Some(to)),
        Instruction::Expose { .. }
        | Instruction::Reclaim { .. }
        | Instruction::Send { .. }
        | Instruction::Await { .. }
        | Instruction::Release { .. }
        | Instruction::Done { .. } => (None, None),
    };
    from.map(|part| (part, false)).into_iter().chain(to.map(|part| (part, true)))
}

/// The elements of one window that are not kept, as ascending runs that neither overlap nor touch.
struct Named {
    written: Vec<(i64, i64)>,
    touched: Vec<(i64, i64)>,
}

impl Named {
    /// Collects the accesses to `window`. Returns `None` if they have too many runs.
    fn of(kept: &Kept, window: WindowId) -> Option<Self> {
        let accesses = || kept.accesses.iter().filter(|access| access.window == window);
        let runs = accesses().fold(0, |sum: usize, access| sum.saturating_add(access.elements.run_count()));
        if runs > MOST_RUNS {
            return None;
        }
        let runs = |datatype: &Datatype| -> Vec<(i64, i64)> {
            datatype.run_iter().map(|(low, len)| (low, low + len as i64)).collect()
        };
        let written = accesses().filter(|access| access.writes).flat_map(|access| runs(&access.elements));
        let touched = accesses().flat_map(|access| runs(&access.elements));
        Some(Self { written: merged(written.collect()), touched: merged(touched.collect()) })
    }

    /// Returns the first of `elements` that is kept.
    fn lacks(&self, elements: &Datatype, writes: bool) -> Option<i64> {
        let named = if writes { &self.written } else { &self.touched };
        let kept = |(low, len): (i64, usize)| {
            let after = named.partition_point(|run| run.0 <= low);
            let end = if after == 0 { low } else { named[after - 1].1.max(low) };
            (end < low + len as i64).then_some(end)
        };
        elements.run_iter().find_map(kept)
    }
}

fn merged(mut runs: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    runs.sort_unstable();
    runs.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
    runs
}
