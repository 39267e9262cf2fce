//! Runs programs of messages on every transport, and returns the results of receives in the form of
//! the reference.

use fencepost::{Error, ErrorClass, Result, Status, TransportKind, World, ranks};
use fencepost_planner::ids::{Id as _, Rank};
use fencepost_tests_reference::Completed;

use crate::transports::transports;

/// The tested limits, in bytes, up to which a message is sent together with its elements: the
/// default if ranks reach each other's memory, the default if they do not, and 0.
const EAGER: [usize; 3] = [16 << 10, 1 << 20, 0];

/// The byte that fills the room of a receive before the receive.
pub const BEFORE: u8 = 0xee;

/// Returns every transport for this number of ranks. On transports with hosts, some ranks are on
/// one host and some on another.
pub fn kinds(size: usize) -> Vec<TransportKind> {
    let mixed = |kind| match kind {
        TransportKind::MixedThreads(_) => {
            TransportKind::MixedThreads((0..size as u32).map(|rank| rank % 2).collect())
        }
        kind => kind,
    };
    transports(0..2).into_iter().map(mixed).collect()
}

/// Runs a program of this number of ranks on every transport, with messages that carry their
/// elements, and with messages that do not.
#[track_caller]
pub fn everywhere(size: usize, program: impl Fn(&World) -> Result<()> + Sync) {
    for transport in kinds(size) {
        for eager in EAGER {
            let world = ranks(size).transport(transport.clone()).eager(eager).end_deadlocks(true);
            if let Err(error) = world.run(&program) {
                panic!("{transport:?}, eager up to {eager}: {error}");
            }
        }
    }
}

/// Returns the status of a message of `len` elements.
pub fn status(source: usize, tag: u32, len: usize) -> Status {
    let mut status = Status::default();
    (status.source, status.tag, status.len) = (Some(source), Some(tag), len);
    status
}

/// Returns whether nothing has been received into this room.
pub fn as_before(room: &[u8]) -> bool {
    room.iter().all(|&byte| byte == BEFORE)
}

/// Returns the result of a receive into this room, in the form of the reference.
///
/// If the receive failed for a reason other than the message that it matched, returns the error of
/// the receive.
pub fn received(room: &[u8], result: Result<Status>) -> Result<Completed> {
    match result {
        Ok(Status { source, tag, len, .. }) => {
            assert!(as_before(&room[len..]), "more was written than was received");
            let (source, tag) = (Rank::new(source.unwrap()), tag.unwrap());
            Ok(Completed::Received { source, tag, bytes: room[..len].to_vec() })
        }
        Err(error)
            if [ErrorClass::Type, ErrorClass::Truncate, ErrorClass::Assert].contains(&error.class()) =>
        {
            assert!(as_before(room), "{error}: the room is not as it was");
            let (source, tag) = named_in(&error);
            Ok(Completed::Failed { source, tag, class: error.class() })
        }
        Err(error) => Err(error),
    }
}

/// Returns the sender and the tag that an error names.
fn named_in(error: &Error) -> (Rank, u32) {
    let text = error.to_string();
    let number = |after: &str| -> u32 {
        let rest = text.split(after).nth(1).unwrap_or_else(|| panic!("{text}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    (Rank(number("the message of rank ")), number("with tag "))
}
