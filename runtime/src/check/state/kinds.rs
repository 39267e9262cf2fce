//! The numbers that represent kinds of accesses, in memory and in messages.

use fencepost_planner::element::Op;
use fencepost_planner::ir::pattern::Kind;

/// Returns the number of a kind, which is below 32.
#[inline(always)]
pub(crate) const fn code(kind: Kind) -> u64 {
    match kind {
        Kind::Get => 0,
        Kind::Put => 1,
        Kind::Accumulate(op) => 2 + op as u64,
    }
}

/// Returns the kind with this number.
#[inline(always)]
pub(crate) fn kind(code: u64) -> Option<Kind> {
    match code {
        0 => Some(Kind::Get),
        1 => Some(Kind::Put),
        code if code == 2 + Op::NoOp as u64 => Some(Kind::Accumulate(Op::NoOp)),
        code => Op::ALL.get(code as usize - 2).map(|op| Kind::Accumulate(*op)),
    }
}
