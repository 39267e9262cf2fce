//! Calls of all ranks that fence no window.

use crate::fence;
use crate::protocol::frames::kind;
use crate::state::call::Call;
use crate::state::world::WorldCore;
use fencepost_planner::ir::pattern::Order;
use fencepost_planner::{Class, Result};

impl WorldCore {
    /// The number of the window or of the split that `call` is about to make: the same on all ranks.
    ///
    /// # Errors
    /// `NO_MEM` where the world has made as many as there are numbers. Every rank gets it, and none has met another.
    pub(crate) fn next_made(&self, call: &Call) -> Result<u32> {
        let number = self.made.get();
        if number < u32::MAX {
            return Ok(number);
        }
        let message = format!(
            "this world has made {number} windows and splits, and a world makes no more: split the world, and make the window in a part"
        );
        Err(call.error(self, Class::NoMem, message))
    }

    /// A call that ends or prepares an epoch, in the order that holds now.
    pub(crate) fn ordered(&self, call: &Call) -> Call {
        match self.order.get() {
            Order::Canonical => *call,
            Order::Relaxed => Call { hash: call.hash ^ 0x3c6e_f372_fe94_f82b, ..*call },
        }
    }

    /// Every rank gives every rank some bytes, in one collective call: `[from]` what each gave to this one.
    pub(crate) fn meet(&self, call: &Call, give: impl Fn(usize) -> Vec<u8>) -> Result<Vec<Vec<u8>>> {
        self.alive()?;
        fence::meet(self, call, &give)?;
        let endpoint = &mut *self.endpoint.borrow_mut();
        let mut all = Vec::with_capacity(self.size);
        for from in 0..self.size {
            if from == self.rank {
                all.push(give(from));
                continue;
            }
            // It was posted before the notification, which has been read, so it is here.
            let frame = self.poll(endpoint, from).map_err(|lost| self.lost(&lost, call))?;
            let bytes = frame
                .map(|frame| crate::protocol::exchange::bytes_of(self, endpoint, from, frame, kind::SETUP));
            let bytes = bytes
                .unwrap_or_else(|| Err(self.refuse(endpoint, from, "it has not sent what this call needs")));
            all.push(bytes.map_err(|lost| self.lost(&lost, call))?);
        }
        Ok(all)
    }
}
