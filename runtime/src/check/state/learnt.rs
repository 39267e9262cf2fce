//! [`Learnt`]: the results of a check of an origin's operations at a part, if conflicts are
//! checked.

use crate::check::state::clock;
use crate::check::state::conflicts::{decode, encode};
use crate::check::state::entering::Entering;
use crate::check::state::logs::{Findings, Logs};
use fencepost_transport::Hold;
use fencepost_transport::bytes::{Reader, Writer};

/// The times that an origin knows after a check at a part, and the findings of the check.
pub(crate) struct Learnt {
    /// The times that the origin knew, and the times that other ranks knew when they released their
    /// locks earlier.
    pub(crate) knows: Vec<u64>,
    pub(crate) findings: Findings,
}

impl Learnt {
    /// Enters these operations of the rank `from` in `logs`, and returns the results of the check.
    /// The operations are on the part of `target` in a window. The locks of the part are held for
    /// them.
    pub(crate) fn of(
        logs: &Logs,
        hold: Hold,
        entering: &mut Entering,
        (from, window, target): (usize, u32, usize),
    ) -> Self {
        let (findings, _) = logs.meet(hold, entering, (from, window, target));
        Self { knows: entering.knows.clone(), findings }
    }

    /// Appends the encoded form to an answer.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let conflicts = encode(&self.findings.conflicts);
        let len = 8 * self.knows.len() + 1 + conflicts.len();
        out.put(len as u32);
        clock::write(&self.knows, out);
        out.put(u8::from(self.findings.is_blind));
        out.extend_from_slice(&conflicts);
    }

    /// Reads the encoded form from the front of `bytes`, in a world of `ranks` ranks, and advances
    /// `bytes` past it. Returns `None` if the bytes are not valid.
    pub(crate) fn read(ranks: usize, bytes: &mut Reader<'_>) -> Option<Self> {
        let len: u32 = bytes.take()?;
        let mut own = Reader(bytes.bytes(len)?);
        let (knows, is_blind) = (clock::read(ranks, &mut own)?, own.take()?);
        Some(Self { knows, findings: Findings { conflicts: decode(ranks, own.0)?, is_blind } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_what_follows_is_left() {
        let findings = Findings { conflicts: Vec::new(), is_blind: true };
        let mut out = Vec::new();
        Learnt { knows: vec![3, 4], findings }.write(&mut out);
        out.push(9);
        let mut bytes = Reader(&out);
        let read = Learnt::read(2, &mut bytes).expect("it is one");
        assert_eq!((read.knows, read.findings.is_blind, bytes.0), (vec![3, 4], true, &[9][..]));
        (0..out.len() - 1).for_each(|len| assert!(Learnt::read(2, &mut Reader(&out[..len])).is_none()));
        assert!(Learnt::read(3, &mut Reader(&out)).is_none());
    }
}
