//! Signs, posts and reads the messages of a census, and notes.

use crate::census::flags::{EXPOSES, READS};
use crate::census::state::items::{Items, digest};
use crate::state::world::WorldCore;
use fencepost_transport::{Channels, Endpoint, Frame, Header, Lost, Notification, Port, Topology};

/// The number of bytes of the digest with which each message begins.
pub(crate) const DIGEST: usize = 8;

/// Returns whether this notification has something for the rank that receives it.
pub(crate) fn has_something(notification: &Notification) -> bool {
    notification.count > 0 || notification.flags & (READS | EXPOSES) != 0
}

/// Posts a message. If the message is not copied, it is taken out of `bytes` and kept.
pub(crate) fn post(
    world: &WorldCore,
    endpoint: &mut Endpoint,
    to: usize,
    header: Header,
    bytes: &mut Vec<u8>,
) -> Result<(), Lost> {
    if endpoint.shares(to) && !bytes.is_empty() {
        return world.post_kept(endpoint, to, header, std::mem::take(bytes));
    }
    // SAFETY: if no memory is shared with `to`, the payload is copied from the heap. An empty
    // payload is not read.
    unsafe { endpoint.post(to, Port::FENCE, Frame::of(header, bytes)) }?;
    world.fence.posted(to);
    Ok(())
}

/// Writes the digest of this message of census `number` into its place in the message.
pub(crate) fn sign(number: u64, word: u64, flags: u32, message: &mut [u8]) {
    let digest = digest(number, word, flags, &message[DIGEST..]);
    message[..DIGEST].copy_from_slice(&digest.to_le_bytes());
}

/// Returns whether the frame is an unaltered message of this census.
pub(crate) fn is_whole(items: &Items, frame: &Frame) -> bool {
    let Header { word, extra, .. } = frame.header;
    payload(frame)
        .split_first_chunk::<DIGEST>()
        .is_some_and(|(given, rest)| u64::from_le_bytes(*given) == digest(items.number(), word, extra, rest))
}

/// The reason for refusing a rank that has sent a message that no correct rank sends.
pub(crate) const ALTERED: &str =
    "it sent a message of a census that was altered, or a frame that belongs to no exchange";

/// Returns the bytes of a frame that was polled and not released.
pub(crate) fn payload(frame: &Frame) -> &[u8] {
    // SAFETY: the bytes are readable until the frame is released, and callers drop the slice before
    // that.
    unsafe { frame.bytes() }
}
