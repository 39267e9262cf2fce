//! Threads of one process, which reach one another's memory.

use std::io;

use crate::shared::end::{Common, Ground, SharedEnd};
use crate::shared::members::Roll;
use crate::shared::slice::{Heap, Kept, Places};
use crate::shared::waker::Bells;
use crate::sync::{Arc, Mutex, lock};
use crate::{Bytes, Done, Endpoint, Memory, Number};

/// One rank's end of a world of threads.
pub type LocalEnd = SharedEnd<Threads>;

/// The heap of one process, and what ranks that have gone leave on it.
pub struct Threads {
    heap: Heap,
    left: Arc<Mutex<Vec<(Done, Kept)>>>,
}

/// A world of `size` threads: an end for each.
pub fn local(size: usize) -> Vec<LocalEnd> {
    let common = Common::place(size, None, &mut Heap).expect("a heap has room");
    let (bells, left) = (Bells::new(size), Arc::default());
    let ground = || Threads { heap: Heap, left: Arc::clone(&left) };
    (0..size).map(|rank| SharedEnd::new(rank, size, &common, bells.clone(), ground())).collect()
}

impl Ground for Threads {
    const SHARES: bool = true;

    #[inline]
    fn places(&mut self) -> &mut impl Places {
        &mut self.heap
    }

    #[inline]
    unsafe fn carry(
        &mut self,
        _: usize,
        _: u64,
        _: u64,
        payload: *const u8,
        _: usize,
    ) -> io::Result<*const u8> {
        Ok(payload)
    }

    fn memory(&self) -> Memory {
        Memory::heap()
    }

    fn keep(&mut self, memory: Vec<Bytes>, done: Done) {
        let mut left = lock(&self.left);
        left.retain(|(done, _)| !done());
        left.push((done, Arc::new(memory)));
    }

    fn leave_behind(&mut self, _: &Roll, kept: Vec<Kept>) {
        let never = || -> Done { Box::new(|| false) };
        lock(&self.left).extend(kept.into_iter().map(|kept| (never(), kept)));
    }

    fn found(&mut self, _: &[usize]) -> io::Result<Option<Number>> {
        Ok(None) // whoever made the threads has the ends
    }

    fn enter(&mut self, _: Number, _: &[usize], _: usize) -> io::Result<Endpoint> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
