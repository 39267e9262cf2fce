//! All that one rank sends another becomes one message: abutting transfers become one, and elements that no rank can see
//! are not sent.
//!
//! ```text
//! l0: put w0 0..1 -> w0 8..9      l0: put w0 0..2 -> w0 8+[2 by 4]x1
//! l0: put w0 1..2 -> w0 12..13
//! ```
//!
//! Before: lists of transfers. After: the same, with fewer and longer ones. Of all that is written to one element, by
//! whichever ranks, what comes before the last put of it is left out: one writer is left. Puts that follow each other
//! between the same two windows are one put of both typemaps, one after the other; accumulates with one operator
//! likewise, since typemap order is then program order.
//!
//! **Requires** nothing. **Ensures** the order of writes to one element is kept (by the program, and by the window it
//! stands in); with [`Options::coalesce`] off nothing changes; a transfer asked to be aggressive stays on its own; of
//! a buffer that would fall into small pieces more is sent than is seen. **Cost** follows the size of the datatypes
//! of each distinct link, and of all that reaches each class of ranks; ranks x peers small steps where something is
//! hidden.

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
    // Stable: within one pair of answer and target window the order stays.
    link.sort_by_key(|transfer| (!transfer.is_answer(), window(&transfer.target), answer_source(transfer)));
    link.chunk_by(|a, b| joins(a, b, options)).flat_map(join).collect()
}

fn window(side: &Side) -> Option<WindowId> {
    side.window().map(|(window, _)| window)
}

/// Answers land where no other does, so they may be gathered by where they come from too.
fn answer_source(transfer: &Transfer) -> Option<WindowId> {
    if transfer.is_answer() { window(&transfer.source) } else { None }
}

/// Returns whether `b`, which follows `a`, may become one with it.
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

/// Returns whether it moves in long runs. Direct or packed is chosen by block, so long and short ones are not mixed; packed
/// after all, they are packed in one go just the same.
fn in_blocks(transfer: &Transfer) -> bool {
    let runs = |side: &Side| side.window().map_or(1, |(_, datatype)| datatype.run_count()) as u64;
    transfer.bytes() >= 256 * runs(&transfer.source).max(runs(&transfer.target))
}

/// One transfer of all of `group`; the group as it is where no datatype is long enough for it.
fn join(group: &[Transfer]) -> Vec<Transfer> {
    let [first, _, ..] = group else { return group.to_vec() };
    let whole = |side: fn(&Transfer) -> &Side| {
        let parts = group.iter().filter_map(|transfer| side(transfer).window());
        let window = window(side(first))?;
        let datatype = Datatype::try_sequence(parts.map(|(_, datatype)| datatype.clone())).ok()?;
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
