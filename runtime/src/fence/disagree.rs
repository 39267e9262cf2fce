//! A fence that fails: all ranks have seen the failure, and send each other their reasons.

use crate::census::flags::FAILED;
use crate::census::messages::payload;
use crate::fence::{Fence, Notifications};
use crate::protocol::exchange::{take_bytes, wait};
use crate::protocol::frames::kind;
use crate::protocol::stall::{Awaited, Watch};
use crate::state::calls;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Error, ErrorClass};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Channels, Lost, Notify, Port, Topology};

/// The fault of a rank whose frame belongs to no exchange.
const STRAY: &str = "it sent a frame that belongs to no epoch";
/// The fault of a rank whose reason is shorter than the header of a reason.
const SHORT: &str = "its report of why the fence failed is too short";

/// Returns in which way two ranks disagree. Either the numbers of their calls or the digests of
/// their prepared runs differ.
#[cold]
pub(super) fn differing(theirs: u32, mine: u32) -> Disagreement {
    if calls::ahead(theirs, mine) == 0 { Disagreement::Words } else { Disagreement::Calls }
}

/// The disagreement of an exchange. If several variants apply, the last one of this list counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Disagreement {
    #[default]
    No,
    /// Some rank has failed.
    Failed,
    /// The words of the exchange differ, because some rank is in another fence or collective.
    Words,
    /// Some rank is in another call of the world.
    Calls,
}

/// The reasons that the other ranks have sent.
#[derive(Default)]
struct Found {
    reasons: Vec<Reason>,
    /// The first rank that has run other prepared supersteps than this rank.
    strayed: Option<usize>,
}

/// The call that one rank is in, or the reason why the rank has failed.
#[derive(Default)]
struct Reason {
    rank: usize,
    failed: bool,
    machine: String,
    text: String,
}

impl Fence<'_> {
    /// Exchanges the reasons after all ranks have seen that something is wrong, and returns the
    /// error.
    ///
    /// If the words differ, each rank also sends a longer digest of the prepared supersteps that it
    /// has run. The notifications contain only short digests of these runs, and the short digests
    /// agreed. If the runs differ, the world ends, because frames that no rank awaits may precede
    /// the reasons in the channels.
    pub(super) fn explain(&mut self, word: u64, failed: Option<Error>, all: &Notifications) -> Error {
        let mut own = self.call.describe(self.windows);
        if self.world.choices.order.get() == Order::Relaxed && !self.windows.is_empty() {
            own.push_str(" in relaxed order");
        }
        let reason = failed.as_ref().map(|error| format!("{own} failed with: {error}"));
        let words = matches!(all.disagreement, Disagreement::Words);
        let sends = words || failed.is_some();
        let mut found = Found::default();
        let exchanged = self.send_reason(sends, reason.as_ref().unwrap_or(&own)).and_then(|reason| {
            (0..self.world.size)
                .filter(|&from| from != self.world.rank)
                .try_for_each(|from| self.take_reason(from, (word, words), &reason, &mut found))
        });
        match (exchanged, found.strayed) {
            (_, Some(rank)) => self.strayed(rank),
            (Err(lost), None) => {
                let lost = self.world.lost(&lost, self.call);
                // This rank's own error is more precise; but the world has ended nevertheless.
                failed.map_or(lost, Error::ending_world)
            }
            (Ok(()), None) => failed.unwrap_or_else(|| self.disagreement(&own, found.reasons)),
        }
    }

    /// Sends the reason of this rank to all others, if `sends` is set. Returns the bytes of the
    /// reason: the digest of the prepared supersteps that this rank has run, its machine, and the
    /// text.
    fn send_reason(&mut self, sends: bool, text: &str) -> Result<Vec<u8>, Lost> {
        let world = self.world;
        let mut reason = world.fence.ran.get().to_le_bytes().to_vec();
        reason.put_counted(world.machine.to_string().as_bytes());
        reason.extend_from_slice(text.as_bytes());
        let sent = world.checks.say(&reason);
        for to in (0..world.size).filter(|&to| sends && to != world.rank) {
            world.post_kept(self.endpoint, to, world.stamped(kind::EXPLAIN), sent.clone())?;
        }
        Ok(reason)
    }

    /// Drops the frames that `from` has sent for this epoch, and takes the reason of `from`, if
    /// `from` sends one. `words` is whether the words of the exchange differ. If they do, all ranks
    /// send a reason, and otherwise only failed ranks do. `own` is the reason of this rank.
    fn take_reason(
        &mut self,
        from: usize,
        (word, words): (u64, bool),
        own: &[u8],
        found: &mut Found,
    ) -> Result<(), Lost> {
        let world = self.world;
        let flags = self.endpoint.read(from)?.map_or(0, |notification| notification.flags);
        let failed = flags & FAILED != 0;
        if !words {
            self.drop_frames(from)?;
        }
        if words || failed {
            let (bytes, stray) = match words {
                true => self.reason(from)?,
                false => (take_bytes(world, self.endpoint, from, kind::EXPLAIN, self.call)?, false),
            };
            let bytes = world.checks.hear(from, &bytes);
            let mut reason = Reader(bytes);
            let Some(runs) = reason.take::<[u8; 8]>() else {
                return Err(world.refuse(self.endpoint, from, SHORT));
            };
            if words && !own.starts_with(&runs) {
                found.strayed.get_or_insert(from);
            } else if stray {
                return Err(world.refuse(self.endpoint, from, STRAY));
            }
            let machine = String::from_utf8_lossy(reason.counted().unwrap_or_default()).into_owned();
            let text = String::from_utf8_lossy(reason.0).into_owned();
            found.reasons.push(Reason { rank: from, failed, machine, text });
        }
        if !words && !self.endpoint.reaches(from) {
            // Frames that were sent early for these windows have come before the notification: poll
            // for them and drop them. A rank that has left by now has sent all its frames.
            let _ = world.poll(self.endpoint, from);
            self.windows.iter().for_each(|window| world.drop_early(from, window, word));
        }
        Ok(())
    }

    /// Returns this rank's error, given the reasons of the others. This rank has not failed, and is
    /// in the call that `own` describes.
    fn disagreement(&self, own: &str, reasons: Vec<Reason>) -> Error {
        if let Some(Reason { rank, text, .. }) = reasons.iter().find(|reason| reason.failed) {
            let what = format!("rank {rank} did not complete this epoch: {text}; nothing was applied");
            return self.call.error(self.world, ErrorClass::RmaSync, what).secondary();
        }
        let machine = self.world.machine.to_string();
        if let Some(Reason { rank, machine: theirs, .. }) =
            reasons.iter().find(|reason| reason.machine != machine)
        {
            let differs = theirs.lines().zip(machine.lines()).find(|(theirs, mine)| theirs != mine);
            let (theirs, mine) = differs.unwrap_or_default();
            let message = format!(
                "rank {rank} has the machine model `{theirs}`, and this rank `{mine}`: give all ranks one model, by `FENCEPOST_MACHINE` or `Ranks::machine`; nothing was applied"
            );
            return self.call.error(self.world, ErrorClass::RmaSync, message);
        }
        let other = reasons.iter().position(|reason| reason.text != own).unwrap_or(0);
        let Reason { rank, mut text, .. } = reasons.into_iter().nth(other).unwrap_or_default();
        if text == own {
            text.push_str(" after another number of calls in its superstep");
        }
        let collective = self.call.arguments.and(self.call.name).filter(|name| text.starts_with(name));
        let must = match collective {
            Some(_) => "give a collective the same root, operator, number of elements and element type",
            None => {
                "fence the same windows, in the same superstep, with the same uniform arguments and assertions"
            }
        };
        self.call.error(
            self.world,
            ErrorClass::RmaSync,
            format!("this rank is in {own}, but rank {rank} is in {text}: all ranks must {must}; nothing was applied"),
        )
    }

    /// Returns the reason that `from` sends because the words differ, and whether a frame of
    /// another exchange came before the reason. Drops all frames before the reason.
    fn reason(&mut self, from: usize) -> Result<(Vec<u8>, bool), Lost> {
        let (world, mut stray) = (self.world, false);
        let watch = || Watch::new(world, self.call, &[], from, Awaited::One("reasons")).of_all();
        let said = wait(self.endpoint, watch, |endpoint| {
            while let Some(frame) = world.poll(endpoint, from)? {
                let said = (frame.header.kind == kind::EXPLAIN).then(|| payload(&frame).to_vec());
                stray |= !world.is_of_this_exchange(&frame.header);
                endpoint.release(from, Port::FENCE);
                if said.is_some() {
                    return Ok(said);
                }
            }
            Ok(None)
        })?;
        Ok((said, stray))
    }
}

#[cfg(test)]
mod tests {
    use crate::api::run::ranks;
    use crate::census::messages::post;
    use crate::protocol::frames::kind;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::ErrorClass;
    use fencepost_planner::census::Census;
    use fencepost_transport::SimConfig;

    /// Notifications contain eight bits of the digest of runs. These bits are equal for one in 256
    /// pairs of different runs.
    #[test]
    fn different_prepared_runs_are_told_where_their_digests_agree() {
        let all = [
            TransportKind::Local,
            TransportKind::ShmThreads,
            TransportKind::TcpThreads,
            TransportKind::MixedThreads(vec![0, 1, 1]),
            TransportKind::Sim(SimConfig::default()),
        ];
        for (transport, census) in all.iter().flat_map(|one| {
            [Census::Direct, Census::Sparse, Census::Reduced].map(|census| (one.clone(), census))
        }) {
            let kind = format!("{transport:?}, {census}");
            let world = ranks(3).transport(transport).census(census);
            let ended = world.run(|world| {
                let core = world.core();
                if world.rank() > 0 {
                    // A frame of a run that rank 0 has not made.
                    let endpoint = &mut *core.endpoint.borrow_mut();
                    let frame = core.stamped(kind::ENTRY);
                    post(core, endpoint, 0, frame, &mut vec![0; 8]).expect("the world goes on");
                    core.calls.next_word(1);
                    core.fence.ran.set(0x1200);
                }
                let error = world.window::<u64>(1 + 4000 * world.rank()).map(drop).expect_err("they differ");
                assert_eq!(error.class(), ErrorClass::RmaSync, "{kind}: {error}");
                assert!(error.message().contains("different prepared supersteps"), "{kind}: {error}");
                assert!(world.barrier().is_err(), "{kind}: the world has ended");
                Ok(())
            });
            ended.expect("no rank returns an error");
        }
    }
}
