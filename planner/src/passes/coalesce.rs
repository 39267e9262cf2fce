//! Merges everything that one rank sends another into one message: adjacent transfers are joined,
//! and elements that no rank can see are not sent.
//!
//! ```text
//! l0: put w0 0..1 -> w0 8..9      l0: put w0 0..2 -> w0 8+[2 by 4]x1
//! l0: put w0 1..2 -> w0 12..13
//! ```
//!
//! The stages before and after the pass are lists of transfers. The pass makes the transfers fewer
//! and longer. The pass leaves out every write that comes before the last put to the same element,
//! no matter which ranks write. If the last write to an element is a put, only this put remains.
//! Puts that follow each other between the same two windows become one put, which has their
//! typemaps in sequence. Accumulates with one operator are joined in the same way, since typemap
//! order is then program order.
//!
//! **Requires** nothing. **Ensures** that the order of writes to one element is kept: transfers are
//! grouped by window, and keep their order within a group. If [`Options::coalesce`] is off, nothing
//! changes. A transfer for which aggressive mode was requested stays separate. If leaving out
//! elements would break a buffer into small pieces, some of these elements are sent nevertheless.
//! **Cost** proportional to the size of the datatypes of each distinct link, and of everything that
//! reaches each class of ranks; ranks x peers small steps if elements are left out.

use super::normalise::ascending;
use super::writers::one_writer;
use crate::datatype::Datatype;
use crate::ids::WindowId;
use crate::ir::messages::Messages;
use crate::ir::pattern::Mode;
use crate::ir::transfers::{Side, Transfer, Transfers};
use crate::options::Options;

/// See the [module](self).
pub fn coalesce<'p>(transfers: Transfers<'p>, options: &Options) -> Messages<'p> {
    let transfers = if options.coalesce { one_writer(transfers) } else { transfers };
    let Transfers { patterns, placement, peers, links } = transfers;
    let links = if options.coalesce {
        links.into_values().map(|link| coalesce_link(link, options)).collect()
    } else {
        links
    };
    Messages(Transfers { patterns, placement, peers, links })
}

fn coalesce_link(mut link: Vec<Transfer>, options: &Options) -> Vec<Transfer> {
    if link.len() == 1 {
        return link;
    }
    // The sort is stable, so transfers with equal keys keep their order.
    link.sort_by_key(|transfer| (!transfer.is_answer(), window(&transfer.target), answer_source(transfer)));
    link.chunk_by(|a, b| joins(a, b, options)).flat_map(join).collect()
}

fn window(side: &Side) -> Option<WindowId> {
    side.window().map(|(window, _)| window)
}

/// Returns the source window of an answer. No two answers are written to the same element, so
/// answers may also be grouped by the window from which they come.
fn answer_source(transfer: &Transfer) -> Option<WindowId> {
    if transfer.is_answer() { window(&transfer.source) } else { None }
}

/// Returns whether `b`, which follows `a`, may be joined with it.
fn joins(a: &Transfer, b: &Transfer, options: &Options) -> bool {
    a.kind == b.kind
        && window(&a.source).is_some()
        && window(&a.source) == window(&b.source)
        && window(&a.target).is_some()
        && window(&a.target) == window(&b.target)
        && a.asked == b.asked
        && options.asked(a.asked) != Mode::Aggressive
        && in_blocks(a) == in_blocks(b)
}

/// Returns whether `transfer` moves in long runs.
///
/// The choice between direct and packed depends on the length of blocks, so transfers with long and
/// with short blocks are not joined. If the transfers are packed after all, one step still packs
/// them together.
fn in_blocks(transfer: &Transfer) -> bool {
    let runs = |side: &Side| side.window().map_or(1, |(_, datatype)| datatype.run_count()) as u64;
    transfer.bytes() >= 256 * runs(&transfer.source).max(runs(&transfer.target))
}

/// Joins all of `group` into one transfer. Returns the group unchanged if the joined datatype would
/// exceed a limit.
fn join(group: &[Transfer]) -> Vec<Transfer> {
    let [first, _, ..] = group else { return group.to_vec() };
    let whole = |side: fn(&Transfer) -> &Side| {
        let parts = group.iter().filter_map(|transfer| side(transfer).window());
        let window = window(side(first))?;
        let datatype = Datatype::sequence(parts.map(|(_, datatype)| datatype.clone())).ok()?;
        Some(Side::Window { window, datatype })
    };
    let (Some(source), Some(target)) =
        (whole(|transfer| &transfer.source), whole(|transfer| &transfer.target))
    else {
        return group.to_vec();
    };
    let (source, target) = ascending(source, target);
    let mut operations: Vec<_> =
        group.iter().flat_map(|transfer| transfer.operations.iter().copied()).collect();
    operations.sort_unstable();
    operations.dedup();
    vec![Transfer { source, target, operations, ..first.clone() }]
}
