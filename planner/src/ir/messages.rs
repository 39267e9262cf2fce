//! [`Messages`]: the elements that travel between each pair of ranks, as one message for each link.

use crate::ir::transfers::Transfers;

/// One message for each link. Answers come first; transfers into the same window are adjacent.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages<'p>(pub Transfers<'p>);
