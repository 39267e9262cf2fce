//! Checks two programs and the channel from one to the other. Their frames must agree, and buffers
//! must not be written too soon.

use super::error::VerifyError;
use super::facts::{Awaited, Facts, Peer, Sent};
use super::program::within;
use crate::ids::{Delta, Rank};
use crate::ir::schedule::{Frame, Instruction, Part};
use bumpalo::Bump;

/// Checks everything that `sender` sends to `receiver`. `to` is the delta from the sender to the
/// receiver, and `rank` is the sender.
pub(super) fn check(
    sender: &Facts<'_>,
    rank: Rank,
    receiver: &Facts<'_>,
    to: Delta,
) -> Result<(), VerifyError> {
    let nowhere = Bump::new();
    let nothing = Peer::new(&nowhere);
    let there = sender.peers.get(&to).unwrap_or(&nothing);
    let back = receiver.peers.get(&to.back()).unwrap_or(&nothing);
    frames(sender, rank, there, to, receiver, back)?;
    bounds(sender, rank, there, to, receiver)?;
    reuse(sender, rank, there, to, back)
}

/// Checks that as many frames are awaited as are sent, that the n-th frame sent matches the n-th
/// one awaited, and that each byte sent is unpacked.
fn frames(
    sender: &Facts<'_>,
    rank: Rank,
    there: &Peer<'_>,
    to: Delta,
    receiver: &Facts<'_>,
    back: &Peer<'_>,
) -> Result<(), VerifyError> {
    let awaiting = to.from(rank, u32::MAX).unwrap_or(rank);
    for (index, (sent, awaited)) in there.sent.iter().zip(&back.awaited).enumerate() {
        if sent.frame != awaited.frame {
            let (frame, sends) = (awaited.frame, sent.frame);
            let from = to.back();
            let what = format!(
                "awaits {frame:?} as frame {index} of {from}, which sends {sends:?} in instruction {}",
                sent.instruction
            );
            let finding = receiver.finding(awaiting, Some(awaited.instruction), what);
            let one_kind = std::mem::discriminant(&frame) == std::mem::discriminant(&sends);
            return Err(if one_kind {
                VerifyError::WrongCount(finding)
            } else {
                VerifyError::FrameMismatch(finding)
            });
        }
    }
    if there.sent.len() != back.awaited.len() {
        let what = format!("sends {} frames to {to}, which awaits {}", there.sent.len(), back.awaited.len());
        let more = there.sent.get(back.awaited.len()).map(|sent| sent.instruction);
        return Err(VerifyError::WrongCount(sender.finding(rank, more, what)));
    }
    there
        .sent
        .iter()
        .zip(&back.awaited)
        .try_for_each(|(sent, awaited)| unpacked(sender, sent, receiver, awaited, awaiting))
}

/// Checks that each unpacked element was packed, and that all packed bytes are unpacked.
fn unpacked(
    sender: &Facts<'_>,
    sent: &Sent<'_>,
    receiver: &Facts<'_>,
    awaited: &Awaited<'_>,
    rank: Rank,
) -> Result<(), VerifyError> {
    let Frame::Data { bytes } = sent.frame else { return Ok(()) };
    let packed: u64 =
        sent.packs.iter().map(|&(from, to, _)| to.min(sent.at + bytes) - from.max(sent.at)).sum();
    let mut read: u64 = 0;
    for &unpack in &awaited.unpacks {
        let Instruction::Unpack { at, to, op, element, .. } = &receiver.program.instructions[unpack] else {
            continue;
        };
        let (mut from, end) = (sent.at + at, sent.at + at + to.len() as u64 * u64::from(element.size));
        for fold in sent.folds.iter().filter(|fold| fold.low < end && fold.high > from) {
            let Instruction::Combine { op: by, element: of, .. } =
                &sender.program.instructions[fold.instruction]
            else {
                continue;
            };
            if *op != Some(*by) || of != element {
                let what = format!("unpacks for {op:?} of {element:?} elements combined by {by} of {of:?}");
                return Err(VerifyError::WrongOperator(receiver.finding(rank, Some(unpack), what)));
            }
            if fold.low < from || fold.high > end {
                let what = "unpacks only a part of the elements that were combined together".to_string();
                return Err(VerifyError::Malformed(receiver.finding(rank, Some(unpack), what)));
            }
        }
        read = read.saturating_add(end - from);
        for &(low, high, pack) in &sent.packs {
            if high <= from || low >= end {
                continue;
            }
            if low > from {
                break;
            }
            let Instruction::Pack { element: size, .. } = &sender.program.instructions[pack] else {
                continue;
            };
            if *size != element.size || (from - low) % u64::from(*size) != 0 {
                let what = format!(
                    "unpacks elements of {} bytes from byte {at} of a frame, where no elements of {size} bytes begin",
                    element.size
                );
                return Err(VerifyError::WrongPlace(receiver.finding(rank, Some(unpack), what)));
            }
            from = high.min(end);
        }
        if from < end {
            let what = format!("reads byte {} of a frame, which was not packed", from - sent.at);
            return Err(VerifyError::UninitialisedBytes(receiver.finding(rank, Some(unpack), what)));
        }
    }
    if packed > read {
        let what = format!("packs {packed} bytes of a frame, and {read} bytes are unpacked");
        return Err(VerifyError::Dropped(sender.finding(rank, Some(sent.instruction), what)));
    }
    Ok(())
}

/// Checks that the sender copies only from and to elements inside the receiver's windows.
fn bounds(
    sender: &Facts<'_>,
    rank: Rank,
    there: &Peer<'_>,
    to: Delta,
    receiver: &Facts<'_>,
) -> Result<(), VerifyError> {
    for &copy in &there.copies {
        let Instruction::Copy { from, to: into, .. } = &sender.program.instructions[copy] else { continue };
        for part in [from, into] {
            if let Part::Window { owner, window, datatype } = part
                && *owner == to
            {
                within(datatype, receiver.program.least_len[*window]).map_err(|what| {
                    VerifyError::OutOfBounds(sender.finding(
                        rank,
                        Some(copy),
                        format!("{window} of {to}: {what}"),
                    ))
                })?;
            }
        }
    }
    Ok(())
}

/// Checks W4 and W5: before run `k` overwrites the frames that run `k - copies` sent, the receiver
/// is known to have released these frames.
///
/// A `Reclaim` shows this, and so does a frame that the receiver sent after the release. Three
/// kinds of frames qualify: any frame of a run in between, a frame of run `k` that is awaited
/// before the first write, and a frame of run `k - copies` that was sent after the release.
fn reuse(
    sender: &Facts<'_>,
    rank: Rank,
    there: &Peer<'_>,
    to: Delta,
    back: &Peer<'_>,
) -> Result<(), VerifyError> {
    if to == Delta::SELF {
        // When a rank leaves a run, it has released the frames that it sent to itself.
        return Ok(());
    }
    for &id in &there.buffers {
        let frames = there
            .sent
            .iter()
            .zip(&back.awaited)
            .filter(|(sent, _)| matches!(sent.frame, Frame::Data { .. }) && sent.buffer == id);
        let Some(released) = frames.map(|(_, awaited)| awaited.released).max() else { continue };
        let Some(first) = sender.packed[id].first else { continue };
        if sender.packed[id].reclaim.is_some_and(|reclaim| reclaim < first) {
            continue;
        }
        if there.awaited.is_empty() {
            let what = format!("writes {id} again, though {to} never signals that it has read it");
            return Err(VerifyError::RunsAhead(sender.finding(rank, Some(first), what)));
        }
        let in_between = sender.program.buffers[id].copies >= 2;
        let this_run = there.awaited.iter().any(|awaited| awaited.instruction < first);
        let after_release = back.sent.iter().any(|sent| sent.instruction > released);
        if !(in_between || this_run || after_release) {
            let what = format!("writes {id} again, which {to} may still be reading");
            return Err(VerifyError::BufferReused(sender.finding(rank, Some(first), what)));
        }
    }
    Ok(())
}
