//! Detection of conflicts in exposures, if conflicts are checked (planner/README.md, 31).
//!
//! A frame precedes each post and each access. A frame contains the times that its sender knows to
//! be over ([`Clock`](crate::check::state::clock::Clock)). The frame before an access also contains
//! the calls with their lines. The target compares the calls of all sources before it applies
//! anything.

use crate::check::state::checks::Under;
use crate::check::state::lists::List;
use crate::check::state::marks::Marks;
use crate::check::state::touched::Touched;
use crate::check::{announced, calls, find, stores};
use crate::collect::lent::Lent;
use crate::collect::outbox::{DATATYPE, Head, PUT, op_of};
use crate::posts::state::batch::Collected;
use crate::protocol::frames::{header, kind};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ir::pattern::Kind;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::Reader;
use fencepost_transport::{Frame, Header};
use std::panic::Location;

/// Returns the frame that precedes the access with this `batch`, or that precedes a post if there
/// is no batch. Returns `None` if nothing is checked.
pub(crate) fn frame_of(window: &WindowCore, batch: Option<&Collected>) -> Option<(Header, Vec<u8>)> {
    let world = &window.world;
    if !world.checks.is_on() {
        return None;
    }
    let mut bytes = Vec::new();
    world.checks.clock.write_all(world.rank, world.size, &mut bytes);
    if let Some(batch) = batch {
        find::message_of(window.key.window, &list_of(batch), &mut bytes);
    }
    Some((header(0, kind::CHECK, window.key.window), bytes))
}

/// Checks an operation that is about to be collected for an access.
///
/// # Errors
/// `RMA_CONFLICT` if conflicts are checked, and the operation overwrites itself or conflicts with
/// an earlier operation of this access. A conflict with an earlier operation is no error here if
/// the window's handler lets conflicts pass.
pub(crate) fn may_call(
    window: &WindowCore,
    batch: &Collected,
    (kind, target, elements): (Kind, usize, &Datatype),
    site: &'static Location<'static>,
) -> Result<()> {
    if !window.world.checks.is_on() {
        return Ok(());
    }
    calls::writes_once(window, (kind, target, elements), None, Under::Posts, site)?;
    if window.handler.passes() {
        return Ok(());
    }
    let touched = Touched::Type(elements);
    let marks = batch.marks.get_or_init(|| Box::new(Marks::new(window.peers[target].len)));
    if calls::touch(marks, kind, touched) {
        return Ok(());
    }
    calls::of_access(window, (&list_of(batch), marks), (kind, target, touched), site)
}

/// Returns the calls of an access, in program order.
fn list_of(batch: &Collected) -> List {
    let mut list = List::default();
    let mut gets = batch.gets.iter().peekable();
    let mut lines = batch.lines.iter().flat_map(|(count, site)| (0..*count).map(move |_| *site));
    for (at, record) in batch.outbox.records.iter().enumerate() {
        while let Some(get) = gets.next_if(|get| get.before <= at) {
            list.add(Kind::Get, Touched::Type(&get.remote), false, get.site);
        }
        let Some(site) = lines.next() else { break };
        let head = Head(record.head);
        let wide = (head.code() == DATATYPE).then(|| &batch.outbox.wide[head.at()]);
        let (code, touched) = match wide {
            Some(wide) => (wide.code, Touched::Type(&wide.remote)),
            None => (head.code(), Touched::Run(head.at(), 1)),
        };
        let kind = if code == PUT { Some(Kind::Put) } else { op_of(code).map(Kind::Accumulate) };
        if let Some(kind) = kind {
            list.add(kind, touched, false, site);
        }
    }
    gets.for_each(|get| list.add(Kind::Get, Touched::Type(&get.remote), false, get.site));
    list
}

/// Takes in `frame` if it precedes a post or an access, and returns the encoded calls that it
/// describes.
///
/// # Errors
/// If no correct rank sends such a frame, the error is a text with the reason.
pub(crate) fn take_in(world: &WorldCore, frame: &Frame) -> Option<Result<Vec<u8>, &'static str>> {
    if frame.header.kind != kind::CHECK {
        return None;
    }
    // SAFETY: the frame is readable until it is released, which happens later.
    let mut bytes = Reader(unsafe { frame.bytes() });
    let knows = world.checks.clock.read_all(world.size, &mut bytes).filter(|_| world.checks.is_on());
    let Some(knows) = knows else {
        return Some(Err(
            "it looks for conflicts, and this rank does not: give all ranks one FENCEPOST_CHECK",
        ));
    };
    world.checks.clock.hear_all(&knows);
    Some(Ok(bytes.0.to_vec()))
}

/// Records the post of this window at this line, if the post exposes only some elements.
pub(crate) fn posted(window: &WindowCore, lent: &Lent, site: &'static Location<'static>) {
    if matches!(lent, Lent::Part(_)) {
        stores::posted(window, site);
    }
}

/// Records that the exposure of this window is over, and that the program can access the window
/// again.
pub(crate) fn waited(window: &WindowCore, call: &Call) {
    super::begins(window, call.site);
}

/// Looks for conflicts in one exposure, among the calls that its sources have described.
///
/// # Errors
/// The inner error is `RMA_CONFLICT`, after which nothing may be applied. The outer error is the
/// rank of a source that has described impossible calls.
pub(crate) fn judge(
    window: &WindowCore,
    messages: &[(usize, Vec<u8>)],
    call: &Call,
) -> Result<Result<()>, usize> {
    let mut conflicts = find::conflicts_of(window.world.rank, window, messages)?;
    stores::exposed(window, messages, &mut conflicts)?;
    let found = announced::found(window, &conflicts, Under::Posts, call);
    debug_assert!(found.as_ref().err().is_none_or(|error| error.class() == ErrorClass::RmaConflict));
    Ok(found)
}
