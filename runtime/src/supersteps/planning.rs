//! Makes the schedule of all ranks from each rank's own calls. Decides which ranks send
//! descriptions of their calls, which ranks plan, and which part of the schedule each rank gets.
//!
//! If the calls of ranks differ only by the position of the rank, the descriptions of these calls
//! are equal bytes, which are sent once. Each rank sends the digest of its description, and the
//! first rank with each digest also sends the bytes. If all descriptions together are small, every
//! rank plans for itself, which takes no more time than receiving the result. If they are large,
//! planning the whole schedule on every rank would take too much memory and time. Then only rank 0
//! plans and verifies. It sends each rank its [`Share`], which that rank verifies again. The vote
//! that follows compares the digest of the whole schedule.

use crate::census::Give;
use crate::state::call::Call;
use crate::state::registry::Schedules;
use crate::state::world::WorldCore;
use crate::supersteps::compiled::schedule;
use crate::supersteps::prepared::options;
use crate::supersteps::state::{RecordedEpoch, Superstep};
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::{ClassId, Id, Rank, WindowId};
use fencepost_planner::intern::Interner;
use fencepost_planner::ir::pattern::{Order, Pattern, Patterns, Sync};
use fencepost_planner::ir::schedule::{Placement, Program, Schedule};
use fencepost_planner::plan::{self, Digest};
use fencepost_planner::share::{Share, Shares};
use fencepost_planner::table::Table;
use fencepost_planner::verify::verify_share;
use fencepost_planner::{Error, ErrorClass, Result, Verified};
use fencepost_transport::bytes::{Reader, Writer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum size of descriptions, in bytes, for which every rank plans for itself.
const FEW: u64 = 64 << 10;

/// A rank's part of the schedule of each epoch, before all ranks agree on the schedules.
pub(super) type Planned = Vec<Result<Verified<Share>>>;

/// Exchanges the calls of all ranks, and returns this rank's share of the schedule of each epoch.
///
/// # Errors
/// The first error of any rank's calls, or of planning. All ranks return an error.
pub(super) fn plan_all(
    superstep: &'static Superstep,
    world: &WorldCore,
    windows: &Table<WindowId, ElementType>,
    own: Result<Vec<RecordedEpoch>>,
    call: &Call,
) -> Result<Planned> {
    let described = own.as_ref().map_err(ToString::to_string);
    let described = described.and_then(|own| to_bytes(superstep, world, windows, own));
    let word = match &described {
        Ok(bytes) => [&[1], &Digest::of(bytes).0[..], &(bytes.len() as u64).to_le_bytes()].concat(),
        Err(text) => [&[0], text.as_bytes()].concat(),
    };
    let all = world.meet(call, &word)?;
    let own = own.map_err(|error| error.in_superstep(superstep.name))?;
    let failed = |text: String| call.error(world, ErrorClass::Plan, text);
    let mine = described.map_err(failed)?;
    // `firsts` contains the first rank of each description, and `which` contains the number of the
    // description of each rank.
    let mut firsts: Vec<usize> = Vec::new();
    let (mut numbers, mut which, mut bytes) = (BTreeMap::new(), Vec::with_capacity(all.len()), 0u64);
    for (rank, word) in all.iter().enumerate() {
        match word.split_first() {
            Some((1, said)) if said.len() == 40 => {
                let number = *numbers.entry(said).or_insert_with(|| {
                    firsts.push(rank);
                    bytes = bytes.saturating_add(Reader(said).take_last().unwrap_or(0));
                    firsts.len() - 1
                });
                which.push(number);
            }
            Some((_, text)) => {
                return Err(failed(format!("rank {rank} cannot prepare: {}", String::from_utf8_lossy(text))));
            }
            None => return Err(failed(format!("rank {rank} described nothing"))),
        }
    }
    let (me, alone) = (world.rank, bytes <= FEW);
    let tells = |rank: usize| firsts.binary_search(&rank).is_ok();
    let give = if alone { (None, &mine[..]) } else { (Some(0), &mine[..]) };
    let gives = if tells(me) && (alone || me > 0) { &[give][..] } else { &[] };
    let mut told = world.meet_some(call, gives, |from| tells(from) && (alone || me == 0))?;
    if tells(me) {
        told[me] = mine;
    }
    let calls = Calls { superstep, world, windows, epochs: own.len() };
    if alone {
        let patterns = calls.read(&firsts, &told, &which).map_err(failed)?;
        let schedules = patterns.iter().map(|patterns| calls.schedule(patterns));
        let share = |schedule: Verified<Schedule>| Arc::new(schedule).share(Rank::new(me));
        return Ok(schedules.map(|schedule| schedule.map(share)).collect());
    }
    let planned = (me == 0).then(|| -> Result<Schedules> {
        let patterns = calls.read(&firsts, &told, &which).map_err(failed)?;
        drop(told);
        patterns.iter().map(|patterns| calls.schedule(patterns).map(Arc::new)).collect()
    });
    calls.hand_out(planned, &own, call).map_err(|error| error.in_superstep(superstep.name))
}

/// The calls of all ranks.
struct Calls<'w> {
    superstep: &'static Superstep,
    world: &'w WorldCore,
    windows: &'w Table<WindowId, ElementType>,
    epochs: usize,
}

impl Calls<'_> {
    /// Decodes the patterns of all ranks, epoch by epoch, from their descriptions. Each description
    /// comes from the first rank that has it.
    fn read(&self, firsts: &[usize], told: &[Vec<u8>], which: &[usize]) -> Result<Vec<Patterns>, String> {
        let mut classes: Vec<Interner<ClassId, Pattern>> =
            (0..self.epochs).map(|_| Interner::default()).collect();
        let mut ids: Vec<Vec<ClassId>> = vec![Vec::with_capacity(firsts.len()); self.epochs];
        for &rank in firsts {
            let theirs = from_bytes(&told[rank], self.windows)?;
            if theirs.len() != self.epochs {
                let (me, mine, theirs) = (self.world.rank, self.epochs, theirs.len());
                return Err(format!("rank {rank} has {theirs} epochs, and rank {me} has {mine}"));
            }
            for ((classes, ids), pattern) in classes.iter_mut().zip(&mut ids).zip(theirs) {
                ids.push(classes.intern(pattern));
            }
        }
        let patterns = classes.into_iter().zip(ids).map(|(classes, ids)| Patterns {
            name: self.superstep.name.to_owned(),
            windows: self.windows.clone(),
            shape: vec![self.world.size as u32],
            classes: classes.into_table(),
            class_of: which.iter().map(|&number| ids[number]).collect(),
            order: self.world.choices.order.get(),
            sync: self.superstep.sync,
        });
        Ok(patterns.collect())
    }

    fn schedule(&self, patterns: &Patterns) -> Result<Verified<Schedule>> {
        schedule(patterns, self.world.reach.placement, &self.world.machine, &options(self.world))
    }

    /// Distributes the plan of rank 0. Each rank gets its share. If all ranks are threads of one
    /// process, they take the whole plan.
    fn hand_out(
        &self,
        planned: Option<Result<Schedules>>,
        own: &[RecordedEpoch],
        call: &Call,
    ) -> Result<Planned> {
        let (world, me) = (self.world, Rank::new(self.world.rank));
        let to_all;
        let shares: Vec<Vec<u8>>;
        let gives: Vec<Give<'_>> = match &planned {
            None => Vec::new(),
            Some(Ok(whole)) if world.reach.shares_all => {
                world.registry.lay_out(world.id, whole, world.size - 1);
                vec![(None, &[LAID_OUT])]
            }
            Some(Ok(whole)) => match shares_of(whole) {
                Ok(all) => {
                    shares = all;
                    (1..world.size).map(|to| (Some(to), &shares[to][..])).collect()
                }
                Err(error) => {
                    to_all = error_to_bytes(&error);
                    vec![(None, &to_all)]
                }
            },
            Some(Err(error)) => {
                to_all = error_to_bytes(error);
                vec![(None, &to_all)]
            }
        };
        let mut told = world.meet_some(call, &gives, |from| from == 0)?;
        if let Some(planned) = planned {
            let whole = |schedule: Arc<Verified<Schedule>>| Ok(schedule.share(me));
            return planned.map(|all| all.into_iter().map(whole).collect());
        }
        let told = std::mem::take(&mut told[0]);
        match told.split_first() {
            Some((&LAID_OUT, [])) => {
                let whole = world.registry.laid_out(world.id).unwrap_or_default();
                Ok(whole.into_iter().map(|schedule| Ok(schedule.share(me))).collect())
            }
            Some((&SHARES, bytes)) => {
                let parts = parts(bytes, own.len()).ok_or_else(|| {
                    call.error(world, ErrorClass::Intern, "rank 0 gave this rank shares of other epochs")
                })?;
                Ok(parts.into_iter().zip(own).map(|(bytes, own)| self.share(bytes, &own.pattern)).collect())
            }
            _ => Err(error_from_bytes(&told).unwrap_or_else(|| {
                call.error(world, ErrorClass::Intern, "rank 0 gave this rank neither shares nor an error")
            })),
        }
    }

    /// Decodes and verifies a share from rank 0. `own` contains the calls of this rank.
    fn share(&self, bytes: &[u8], own: &Pattern) -> Result<Verified<Share>> {
        let share = Share::from_bytes(bytes, Rank::new(self.world.rank))?;
        if share.class_of.len() != self.world.size || share.windows != *self.windows {
            return Err(Error::new(ErrorClass::Intern, "rank 0 gave this rank a share for another world"));
        }
        if let Some(difference) = plan::difference(own, &share.program().pattern) {
            let message = format!("rank 0 gave this rank the share of other calls: {difference}");
            return Err(Error::new(ErrorClass::Intern, message));
        }
        verify_share(share).map_err(|error| {
            let class = if error.is_bound() { ErrorClass::NoMem } else { ErrorClass::Intern };
            Error::new(class, format!("a share of a schedule was refused: {error}")).because(error)
        })
    }
}

/// The kinds of messages that rank 0 sends: the shares of one rank; a note that the other ranks,
/// which are threads of the same process, can take the whole plan; or the reason why there are no
/// shares.
const SHARES: u8 = 1;
const LAID_OUT: u8 = 2;
const ERROR: u8 = 0;

/// Returns, for each rank, the encoded shares of the rank in the schedules of all epochs. The entry
/// of rank 0 has no shares.
fn shares_of(whole: &[Arc<Verified<Schedule>>]) -> Result<Vec<Vec<u8>>> {
    let ranks = whole.first().map_or(0, |schedule| schedule.class_of.len());
    let mut all = vec![vec![SHARES]; ranks];
    for schedule in whole {
        let shares = Shares::of(schedule);
        for (rank, bytes) in all.iter_mut().enumerate().skip(1) {
            let share = shares.bytes(Rank::new(rank))?;
            bytes.reserve_exact(8 + share.len());
            bytes.put_counted(&share);
        }
    }
    Ok(all)
}

/// Splits the bytes into one byte string for each epoch. Each string comes after its length.
fn parts(bytes: &[u8], epochs: usize) -> Option<Vec<&[u8]>> {
    let mut bytes = Reader(bytes);
    let parts = (0..epochs).map(|_| bytes.counted()).collect::<Option<_>>()?;
    bytes.is_empty().then_some(parts)
}

/// Encodes an error of planning for other ranks.
fn error_to_bytes(error: &Error) -> Vec<u8> {
    let class = ErrorClass::ALL.iter().position(|&class| class == error.class()).unwrap_or(0);
    let rank = error.rank().map_or(u32::MAX, |rank| rank as u32);
    [&[ERROR, class as u8], bytemuck::bytes_of(&rank), error.message().as_bytes()].concat()
}

fn error_from_bytes(bytes: &[u8]) -> Option<Error> {
    let mut bytes = Reader(bytes);
    let ([ERROR, class], rank) = (bytes.take::<[u8; 2]>()?, bytes.take::<u32>()?) else { return None };
    let class = *ErrorClass::ALL.get(usize::from(class))?;
    let error = Error::new(class, String::from_utf8_lossy(bytes.0));
    Some(if rank == u32::MAX { error } else { error.on_rank(rank as usize) })
}

/// Encodes a rank's own patterns for other ranks. Each pattern is encoded as a plan with one class
/// and without a program.
fn to_bytes(
    superstep: &Superstep,
    world: &WorldCore,
    windows: &Table<WindowId, ElementType>,
    own: &[RecordedEpoch],
) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for RecordedEpoch { pattern, .. } in own {
        let program = Program {
            pattern: pattern.clone(),
            routes: pattern.operations.values().map(|_| None).collect(),
            least_len: windows.ids().map(|_| 0).collect(),
            buffers: Table::new(),
            instructions: Vec::new(),
        };
        let schedule = Schedule {
            name: superstep.name.to_owned(),
            windows: windows.clone(),
            shape: vec![world.size as u32],
            classes: [program].into_iter().collect(),
            class_of: vec![ClassId(0); world.size],
            order: Order::Canonical,
            sync: Sync::Fence,
            placement: Placement::Apart,
        };
        let plan = plan::to_bytes(&schedule).map_err(|error| error.to_string())?;
        bytes.put_counted(&plan);
    }
    Ok(bytes)
}

fn from_bytes(bytes: &[u8], windows: &Table<WindowId, ElementType>) -> Result<Vec<Pattern>, String> {
    let (mut bytes, mut patterns) = (Reader(bytes), Vec::new());
    while !bytes.is_empty() {
        let plan = bytes.counted().ok_or("the description of another rank's pattern ends too early")?;
        let schedule = plan::from_bytes(plan).map_err(|error| error.to_string())?.schedule;
        if schedule.windows != *windows {
            return Err("another rank's windows have other elements".into());
        }
        patterns.extend(schedule.classes.into_values().map(|program| program.pattern));
    }
    Ok(patterns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_as_they_were_written() {
        for class in ErrorClass::ALL {
            for error in [Error::new(class, "why"), Error::new(class, "").on_rank(7)] {
                let read = error_from_bytes(&error_to_bytes(&error)).expect("an error");
                assert_eq!(
                    (read.class(), read.message(), read.rank()),
                    (error.class(), error.message(), error.rank())
                );
            }
        }
        for bytes in [&[][..], &[ERROR], &[ERROR, 99, 0, 0, 0, 0], &[SHARES, 0, 0, 0, 0, 0], &[ERROR, 0, 1]] {
            assert!(error_from_bytes(bytes).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn parts_are_as_many_as_epochs_and_no_bytes_are_left() {
        let bytes = [&3u64.to_le_bytes()[..], b"abc", &0u64.to_le_bytes()].concat();
        assert_eq!(parts(&bytes, 2), Some(vec![&b"abc"[..], &[]]));
        assert_eq!(parts(&bytes, 1), None);
        assert_eq!(parts(&bytes, 3), None);
        (0..bytes.len()).for_each(|len| assert_eq!(parts(&bytes[..len], 2), None, "{len} bytes"));
        assert_eq!(parts(&u64::MAX.to_le_bytes(), 1), None);
    }
}
