//! Threads of one process, which reach one another's memory.

use std::io;

use crate::shared::end::{Backend, SharedEnd, WorldTables};
use crate::shared::members::Membership;
use crate::shared::slice::{Heap, KeepAlive, Placement};
use crate::shared::waker::Wakers;
use crate::sync::{Arc, Mutex, lock};
use crate::{Bytes, Created, Done, Endpoint, Memory, Number, Port};

/// One rank's end of a world of threads.
pub type LocalEnd = SharedEnd<Threads>;

/// The heap of one process. Also keeps alive the memory that ranks have left behind on the heap
/// while other ranks may still read it.
pub struct Threads {
    heap: Heap,
    wakers: Wakers,
    left: Arc<Mutex<Vec<(Done, KeepAlive)>>>,
}

/// Returns the ends of a world of `size` threads, one end for each thread.
pub fn local(size: usize) -> Vec<LocalEnd> {
    world(&Wakers::new(size), size)
}

/// Returns the ends of a world of `size` threads. `wakers` has the wakers of these threads.
fn world(wakers: &Wakers, size: usize) -> Vec<LocalEnd> {
    let tables = WorldTables::place(size, None, &mut Heap).expect("a heap has room");
    let left = Arc::default();
    let backend = || Threads { heap: Heap, wakers: wakers.clone(), left: Arc::clone(&left) };
    (0..size).map(|rank| SharedEnd::new(rank, size, &tables, wakers.clone(), backend())).collect()
}

impl Backend for Threads {
    const SHARES: bool = true;

    #[inline]
    fn placement(&mut self) -> &mut impl Placement {
        &mut self.heap
    }

    #[inline]
    unsafe fn make_readable(
        &mut self,
        _: (usize, Port),
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

    fn retain_after_drop(&mut self, _: &Membership, kept: Vec<KeepAlive>) {
        let never = || -> Done { Box::new(|| false) };
        lock(&self.left).extend(kept.into_iter().map(|kept| (never(), kept)));
    }

    fn create(&mut self, members: &[usize]) -> io::Result<Created> {
        let ends = world(&self.wakers.part(members)?, members.len());
        Ok(Created::Ends(ends.into_iter().map(Endpoint::Local).collect()))
    }

    fn join(&mut self, _: Number, _: &[usize], _: usize) -> io::Result<Endpoint> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
