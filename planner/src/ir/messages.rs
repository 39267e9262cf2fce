//! [`Messages`]: the elements that travel between each two ranks: one message a link.

use crate::ir::transfers::Transfers;

/// One message for each link: answers first; transfers into the same window are adjacent.
#[derive(Clone, PartialEq, Debug)]
pub struct Messages<'p>(pub Transfers<'p>);
