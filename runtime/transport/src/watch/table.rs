//! The table of the watched memory of this process. A signal handler reads it without a lock, so
//! the table has a fixed size.
//!
//! A handler reads all fields of the slot to which an access belongs. That slot does not change,
//! because the accessing thread has borrowed the memory. From every other slot, the handler only
//! reads whether the access belongs to that slot. A slot that is changing at that time always
//! reports that the access does not belong to it.

use super::pages::PAGE;
use rustix::mm::MprotectFlags;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};

/// The largest number of memory areas that are watched at a time.
const MOST: usize = 1024;
/// The largest number of instructions that all threads together single-step at a time.
const STEPS: usize = 256;

static SLOTS: [Slot; MOST] = [const { Slot::new() }; MOST];
/// Slots from this index on were never taken.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Held while a slot is taken or freed, and while slots are opened for a system call. A handler
/// never locks it.
static CHANGES: Mutex<()> = Mutex::new(());
static STEPPED: [Step; STEPS] = [const { Step::new() }; STEPS];

/// A slot for an area of watched memory. A slot without pages is free.
pub(super) struct Slot {
    /// The version of the address fields below. It is odd while they change.
    version: AtomicU32,
    /// The addresses of the pages, followed by the addresses of the elements.
    first: AtomicUsize,
    end: AtomicUsize,
    first_element: AtomicUsize,
    end_of_elements: AtomicUsize,
    /// The number of bytes of an element.
    size: AtomicUsize,
    /// A bit for each element.
    loaded: AtomicPtr<AtomicU64>,
    /// Whether loads are watched, so that the pages are protected again after a single step.
    armed: AtomicBool,
}

/// An instruction that a thread executes with pages open.
struct Step {
    /// The thread, or 0 if the entry is free.
    thread: AtomicU32,
    slot: AtomicUsize,
    page: AtomicUsize,
}

impl Step {
    const fn new() -> Self {
        Self { thread: AtomicU32::new(0), slot: AtomicUsize::new(0), page: AtomicUsize::new(0) }
    }
}

/// A slot that is in use. It is freed when this is dropped.
pub(super) struct Taken(&'static Slot);

impl Deref for Taken {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        self.0
    }
}

/// Takes a slot for elements of `size` bytes in these pages. Returns `None` if no slot is free.
///
/// # Safety
/// Until the returned slot is dropped, the pages are mapped, only one program uses them, and
/// `loaded` has a bit for each element.
pub(super) unsafe fn take(
    pages: Range<usize>,
    elements: Range<usize>,
    size: usize,
    loaded: *const AtomicU64,
) -> Option<Taken> {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let (at, slot) = SLOTS.iter().enumerate().find(|(_, slot)| slot.is_free())?;
    USED.fetch_max(at + 1, Ordering::Release); // pairs with the load in `used`
    slot.size.store(size, Ordering::Relaxed);
    slot.loaded.store(loaded.cast_mut(), Ordering::Relaxed);
    slot.armed.store(false, Ordering::Relaxed);
    slot.change(pages, elements);
    Some(Taken(slot))
}

impl Drop for Taken {
    fn drop(&mut self) {
        let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        self.change(0..0, 0..0);
    }
}

fn used() -> &'static [Slot] {
    &SLOTS[..USED.load(Ordering::Acquire)] // pairs with the store in `take`
}

/// Opens all watched memory that contains some of these bytes, so that further loads from that
/// memory are not seen. Returns whether any memory was opened.
pub(crate) fn open(first: *const u8, len: usize) -> bool {
    let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let (first, end) = (first.addr(), first.addr() + len);
    let is_hit = |slot: &&Slot| slot.pages().start < end && first < slot.pages().end;
    used().iter().filter(is_hit).map(Slot::open).filter(|opened| *opened).count() > 0
}

fn protect(pages: Range<usize>, protection: MprotectFlags) -> bool {
    let first = std::ptr::with_exposed_provenance_mut(pages.start);
    // SAFETY: the pages belong to a slot that is taken, so they are mapped. Only the program
    // accesses them, and the handlers let its accesses proceed.
    unsafe { rustix::mm::mprotect(first, pages.len(), protection) }.is_ok()
}

const OPEN: MprotectFlags = MprotectFlags::READ.union(MprotectFlags::WRITE);

impl Slot {
    const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            first: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            first_element: AtomicUsize::new(0),
            end_of_elements: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            loaded: AtomicPtr::new(std::ptr::null_mut()),
            armed: AtomicBool::new(false),
        }
    }

    fn is_free(&self) -> bool {
        self.end.load(Ordering::Relaxed) == 0
    }

    fn change(&self, pages: Range<usize>, elements: Range<usize>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release); // pairs with the fence in `holds`
        self.first.store(pages.start, Ordering::Relaxed);
        self.end.store(pages.end, Ordering::Relaxed);
        self.first_element.store(elements.start, Ordering::Relaxed);
        self.end_of_elements.store(elements.end, Ordering::Relaxed);
        self.version.store(version.wrapping_add(2), Ordering::Release); // the first load in `holds`
    }

    fn pages(&self) -> Range<usize> {
        self.first.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)
    }

    fn holds(&self, address: usize) -> bool {
        let version = self.version.load(Ordering::Acquire);
        let is_inside = version.is_multiple_of(2) && self.pages().contains(&address);
        fence(Ordering::Acquire);
        is_inside && self.version.load(Ordering::Relaxed) == version
    }

    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// Protects the pages.
    pub(super) fn arm(&self) {
        // `armed` is set before the pages are protected. If another thread opens the pages at the
        // same time, a page either stays open or is opened by the first access to it.
        self.armed.store(true, Ordering::Relaxed);
        protect(self.pages(), MprotectFlags::empty());
    }

    /// Opens the pages. Returns whether the system has opened them.
    pub(super) fn open(&self) -> bool {
        self.armed.store(false, Ordering::Relaxed);
        protect(self.pages(), OPEN)
    }

    /// Records that the elements at these addresses were loaded. Ignores addresses without
    /// elements.
    fn note(&self, addresses: Range<usize>) {
        let first = self.first_element.load(Ordering::Relaxed);
        let end = addresses.end.min(self.end_of_elements.load(Ordering::Relaxed));
        let size = self.size.load(Ordering::Relaxed);
        if addresses.start < first || addresses.start >= end {
            return;
        }
        for element in (addresses.start - first) / size..=(end - 1 - first) / size {
            // SAFETY: by the promise to `take`, there is a bit for each element while the slot is
            // taken. The slot is taken, since the thread that accesses the element has borrowed the
            // memory.
            let bits = unsafe { &*self.loaded.load(Ordering::Relaxed).add(element / 64) };
            bits.fetch_or(1 << (element % 64), Ordering::Relaxed);
        }
    }

    /// Returns the pages from `page` up to `end`, and at least two pages, because an access may
    /// extend into the next page. Pages outside of the slot are left out.
    fn around(&self, page: usize, end: usize) -> Range<usize> {
        let end = end.next_multiple_of(PAGE).max(page + 2 * PAGE);
        page..end.min(self.pages().end)
    }
}

/// The action that a handler takes on a refused access.
pub(super) enum Refused {
    /// The pages are open. The handler single-steps the access, and then calls [`stepped`].
    Step,
    /// The pages are open, and stay open.
    Opened,
    /// The access is to memory that is not watched.
    Elsewhere,
}

/// Handles an access of this thread to `addresses`. The first of these addresses is protected. If
/// that address is in watched memory, opens the pages of the access, and records the accessed
/// elements if the access `loads`.
pub(super) fn refused(addresses: Range<usize>, loads: bool, can_step: bool) -> Refused {
    let is_hit = |(_, slot): &(usize, &Slot)| slot.holds(addresses.start);
    let Some((at, slot)) = used().iter().enumerate().find(is_hit) else {
        return Refused::Elsewhere;
    };
    if loads {
        slot.note(addresses.clone());
    }
    let page = addresses.start / PAGE * PAGE;
    let steps = can_step && slot.is_armed() && begin_step(at, page);
    // If the system cannot split the mapping further, all pages of the slot are opened.
    match protect(slot.around(page, addresses.end), OPEN) || slot.open() {
        true if steps => Refused::Step,
        true => Refused::Opened,
        false => Refused::Elsewhere,
    }
}

fn thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn begin_step(slot: usize, page: usize) -> bool {
    let me = thread();
    let free = STEPPED.iter().find(|step| {
        // Pairs with the store in `stepped`.
        step.thread.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    });
    // Only this thread accesses the other fields until it frees the entry.
    free.map(|step| {
        step.slot.store(slot, Ordering::Relaxed);
        step.page.store(page, Ordering::Relaxed);
    })
    .is_some()
}

/// Called when a step of this thread may have trapped. If this thread has single-stepped an
/// instruction, protects the pages again that were opened for the instruction, and returns `true`.
pub(super) fn stepped() -> bool {
    let me = thread();
    let own = STEPPED.iter().filter(|step| step.thread.load(Ordering::Relaxed) == me);
    own.map(|step| {
        let slot = &SLOTS[step.slot.load(Ordering::Relaxed)];
        if slot.is_armed() {
            let page = step.page.load(Ordering::Relaxed);
            protect(slot.around(page, page), MprotectFlags::empty());
        }
        step.thread.store(0, Ordering::Release);
    })
    .count()
        > 0
}
