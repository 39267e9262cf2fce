//! The thread of a simulated rank's attendant. It polls the rank's links while bytes are on them,
//! and sleeps otherwise. It ends when the rank has left or was cut off, or when the world has
//! ended.

use std::thread::{Builder, JoinHandle};

use crate::shared::waker::Pause;
use crate::sim::core::SimCore;
use crate::sync::{Arc, Mutex, lock};

/// Starts the thread of the attendant of `rank`.
pub(super) fn start(core: &Arc<Mutex<SimCore>>, rank: usize) -> JoinHandle<()> {
    let core = Arc::clone(core);
    let thread = Builder::new().name(format!("attendant {rank}"));
    thread.spawn(move || attend(&core, rank)).expect("the system has room for a thread of a simulation")
}

fn attend(core: &Mutex<SimCore>, rank: usize) {
    let world = Arc::clone(&lock(core).world);
    let mut pause = Pause::new();
    loop {
        let mut polled = lock(core);
        if polled.own_loss().is_some() || polled.attendant.is_none() {
            return;
        }
        let size = polled.inbound.len();
        (0..size).for_each(|from| polled.poll_link(from, false));
        drop(polled);
        world.attendants.wait_step_unless(rank, &mut pause, || lock(core).busy(|_| true));
    }
}
