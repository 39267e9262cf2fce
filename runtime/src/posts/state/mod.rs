//! The state that a rank and its windows keep for posts and accesses. Contains no protocol.

pub(crate) mod batch;
pub(crate) mod by_rank;
pub(crate) mod exchange;
pub(crate) mod lendings;
pub(crate) mod lines;
pub(crate) mod ports;

use crate::posts::state::exchange::{Exchange, Ports};
use std::cell::{Cell, RefCell};

/// The state that a window keeps for its posts and accesses.
pub(crate) struct PostsOfWindow {
    /// Whether the window is posted.
    pub(crate) posted: Cell<bool>,
    /// The number of open accesses that this rank has started on the window.
    pub(crate) accesses: Cell<usize>,
    /// The posts and accesses.
    pub(crate) exchange: RefCell<Exchange>,
    /// The ports of the posts and accesses. `None` if no port numbers are left for the window.
    pub(crate) known_ports: Option<Ports>,
}

impl PostsOfWindow {
    pub(crate) fn new(window: u32) -> Self {
        Self {
            posted: Cell::new(false),
            accesses: Cell::new(0),
            exchange: RefCell::default(),
            known_ports: Ports::of(window).ok(),
        }
    }
}
