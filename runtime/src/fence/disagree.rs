//! A fence that fails: all ranks have seen it, and explain themselves to each other.

use crate::fence::{FAILED, Fence, Notifications};
use crate::protocol::exchange::take_bytes;
use crate::protocol::frames::kind;
use crate::state::calls;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Error, ErrorClass};
use fencepost_transport::{Notify, Topology};

/// The disagreement of ranks that have made other calls or prepared runs before.
#[cold]
pub(super) fn differing(theirs: u32, mine: u32) -> Disagreement {
    if calls::ahead(theirs, mine) == 0 { Disagreement::Words } else { Disagreement::Calls }
}

/// What is wrong with an exchange; the last that holds counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disagreement {
    #[default]
    No,
    /// Some rank has failed.
    Failed,
    /// Some rank is in something else.
    Words,
    /// Some rank is in another call of the world.
    Calls,
}

impl Fence<'_> {
    /// All ranks have seen that something is wrong: exchanges the reasons, and returns the error.
    pub(super) fn explain(&mut self, word: u64, failed: Option<Error>, all: &Notifications) -> Error {
        let me = self.world.rank;
        let words = matches!(all.disagreement, Disagreement::Words);
        let mut own = self.call.describe(self.windows);
        if self.world.order.get() == Order::Relaxed && !self.windows.is_empty() {
            own.push_str(" in relaxed order");
        }
        let mine = match &failed {
            Some(error) => format!("{own} failed with: {error}"),
            None => own.clone(),
        };
        let machine = self.world.machine.to_string();
        let said = [&(machine.len() as u32).to_le_bytes(), machine.as_bytes(), mine.as_bytes()].concat();
        let said = self.world.checks.say(&said);
        let (mut others, mut other_machine) = (Vec::new(), None);
        let speaks = |flags: u32| words || flags & FAILED != 0;
        let exchange = (|| {
            if words || failed.is_some() {
                for to in (0..self.world.size).filter(|&to| to != me) {
                    self.world.post_kept(
                        self.endpoint,
                        to,
                        self.world.stamped(kind::EXPLAIN),
                        said.clone(),
                    )?;
                }
            }
            for from in (0..self.world.size).filter(|&from| from != me) {
                let flags = self.endpoint.read(from)?.map_or(0, |notification| notification.flags);
                self.drop_frames(from)?;
                if speaks(flags) {
                    let said = take_bytes(self.world, self.endpoint, from, kind::EXPLAIN, self.call)?;
                    let (theirs, text) = machine_and_text(self.world.checks.hear(from, &said));
                    others.push((from, flags & FAILED != 0, text));
                    if theirs != machine {
                        other_machine.get_or_insert((from, theirs));
                    }
                }
                if !words && !self.endpoint.reaches(from) {
                    // What left early for these windows has come before the notification: look, and drop it.
                    // A rank that has left by now sent all of it.
                    let _ = self.world.poll(self.endpoint, from);
                    self.windows.iter().for_each(|window| self.world.drop_early(from, window, word));
                }
            }
            Ok(())
        })();
        if let Err(lost) = exchange {
            let lost = self.world.lost(&lost, self.call);
            // This rank's own error says more; but the world has ended nevertheless.
            return failed.map_or(lost, Error::ending_world);
        }
        if let Some(error) = failed {
            return error;
        }
        if let Some((rank, _, text)) = others.iter().find(|(_, failed, _)| *failed) {
            let what = format!("rank {rank} did not complete this epoch: {text}; nothing was applied");
            return self.call.error(self.world, ErrorClass::RmaSync, what).secondary();
        }
        if let Some((rank, theirs)) = other_machine {
            let differs = theirs.lines().zip(machine.lines()).find(|(theirs, mine)| theirs != mine);
            let (theirs, mine) = differs.unwrap_or_default();
            let message = format!(
                "rank {rank} has the machine model `{theirs}`, and this rank `{mine}`: give all ranks one model, by `FENCEPOST_MACHINE` or `Ranks::machine`; nothing was applied"
            );
            return self.call.error(self.world, ErrorClass::RmaSync, message);
        }
        let (rank, _, mut text) =
            others.iter().find(|(_, _, text)| *text != own).or(others.first()).cloned().unwrap_or_default();
        if text == own {
            text.push_str(" after another number of calls in its superstep");
        }
        self.call.error(
            self.world,
            ErrorClass::RmaSync,
            format!("this rank is in {own}, but rank {rank} is in {text}: all ranks must fence the same windows, in the same superstep, with the same uniform arguments and assertions; nothing was applied"),
        )
    }
}

/// What a rank sent to explain itself: its machine model, and which call it is in.
fn machine_and_text(said: &[u8]) -> (String, String) {
    let (len, rest) =
        said.split_first_chunk().map_or((0, said), |(len, rest)| (u32::from_le_bytes(*len), rest));
    let (machine, text) = rest.split_at(rest.len().min(len as usize));
    (String::from_utf8_lossy(machine).into_owned(), String::from_utf8_lossy(text).into_owned())
}
