//! A fence that fails: all ranks have seen it, and explain themselves to each other.

use crate::fence::{Disagreement, FAILED, Fence, Notifications};
use crate::protocol::exchange::take_bytes;
use crate::protocol::frames::kind;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Class, Error};
use fencepost_transport::{Notify, Topology};

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
        let mut others = Vec::new();
        let speaks = |flags: u32| words || flags & FAILED != 0;
        let exchange = (|| {
            if words || failed.is_some() {
                for to in (0..self.world.size).filter(|&to| to != me) {
                    self.world.post_kept(
                        self.endpoint,
                        to,
                        self.world.stamped(kind::EXPLAIN),
                        mine.clone().into_bytes(),
                    )?;
                }
            }
            for from in (0..self.world.size).filter(|&from| from != me) {
                let flags = self.endpoint.read(from)?.map_or(0, |notification| notification.flags);
                self.drop_frames(from)?;
                if speaks(flags) {
                    let text = String::from_utf8_lossy(&take_bytes(
                        self.world,
                        self.endpoint,
                        from,
                        kind::EXPLAIN,
                        self.call,
                    )?)
                    .into_owned();
                    others.push((from, flags & FAILED != 0, text));
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
            // What this rank did itself says more; but the world has ended all the same.
            return failed.map_or(lost, Error::ending_world);
        }
        if let Some(error) = failed {
            return error;
        }
        if let Some((rank, _, text)) = others.iter().find(|(_, failed, _)| *failed) {
            let what = format!("rank {rank} did not complete this epoch: {text}; nothing was applied");
            return self.call.error(self.world, Class::RmaSync, what).secondary();
        }
        let (rank, _, mut text) =
            others.iter().find(|(_, _, text)| *text != own).or(others.first()).cloned().unwrap_or_default();
        if text == own {
            text.push_str(" after another number of calls in its superstep");
        }
        self.call.error(
            self.world,
            Class::RmaSync,
            format!("this rank is in {own}, but rank {rank} is in {text}: all ranks must fence the same windows, in the same superstep, with the same uniform arguments and assertions; nothing was applied"),
        )
    }
}
