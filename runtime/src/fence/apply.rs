//! Applying puts and accumulates to this rank's own memory, origins ascending.

use super::{Fence, INLINE, Letters};
use crate::element::Element;
use crate::outbox::{DISPLACEMENTS, Head, WIDE, Wide, WideSource, op_of};
use crate::transport::{Record, Transport};
use crate::window::WindowCore;
use crate::world::Traffic;
use crate::{element_type, kernel, wire};
use fencepost_planner::element::Op;

impl Fence<'_> {
    /// Apply puts and accumulates, origins ascending.
    pub(super) fn apply(&mut self, all: &Letters) {
        let me = self.world.rank;
        for window in self.windows {
            let (base, len) = (window.region.base(), window.peers[me].len);
            for origin in 0..self.world.size {
                if origin == me || self.endpoint.shares(origin) || self.rides(origin) {
                    if origin != me {
                        if all.quiet {
                            continue;
                        }
                        if let Ok(Some(letter)) = self.endpoint.read(origin) {
                            if letter.count == 0 {
                                continue;
                            }
                            if letter.address == INLINE {
                                let inline = letter.inline;
                                let items = Items::Records(&inline[..(letter.count as usize).min(2)]);
                                // SAFETY: this rank's own memory, in its own fence, all reads done.
                                unsafe { (window.apply)(base, len, items, &[], &[]) };
                                continue;
                            }
                        }
                    }
                    self.apply_from(window, origin);
                } else {
                    wire::apply(window, origin, base, len);
                }
            }
        }
        self.world
            .traffic
            .set(Traffic { epochs: self.world.traffic.get().epochs + 1, ..self.world.traffic.get() });
    }

    /// Apply what lies in the outbox of `origin`, whose values are shared.
    #[inline]
    pub(super) fn apply_from(&self, window: &WindowCore, origin: usize) {
        let me = self.world.rank;
        let (base, len, set) = (window.region.base(), window.peers[me].len, window.set.get());
        let region = if origin == me {
            &window.region
        } else {
            window.peers[origin].region.as_ref().expect("a region is known where values are shared")
        };
        // SAFETY: the origin filled this set before its letter and will not touch it before its fence after the next,
        // which waits for this rank's next letter.
        let outbox = unsafe { &*region.outbox(set, me) };
        if !outbox.is_empty() {
            let items = Items::Records(&outbox.records);
            // SAFETY: this rank's own memory, in its own fence, all reads done; the origin checked every displacement
            // against this length.
            unsafe { (window.apply)(base, len, items, &outbox.wide, &outbox.bytes) };
        }
    }
}

/// Operations as they reach their target.
pub(crate) enum Items<'a> {
    /// Heads and values side by side.
    Records(&'a [Record]),
    /// Heads remembered, values fresh.
    Split(&'a [u64], &'a [u8]),
}

/// How many records ahead memory is asked for: some cache lines.
const AHEAD: usize = 32;

/// Applies operations to a window of one element type.
pub(crate) type Apply = unsafe fn(*mut u8, usize, Items<'_>, &[Wide], &[u8]);

/// Apply `items` to the window of `len` elements at `base`, in order.
///
/// # Safety
/// `base` is the memory of `len` elements of `T` that nobody else touches now; every displacement lies in it.
pub(crate) unsafe fn apply<T: Element>(
    base: *mut u8,
    len: usize,
    items: Items<'_>,
    wide: &[Wide],
    bytes: &[u8],
) {
    let one = |head: Head, value: u64| {
        let code = head.code();
        if code == WIDE {
            // SAFETY: passed on.
            unsafe { apply_wide(base, element_type::<T>(), &wide[head.at()], bytes) };
            return;
        }
        let at = head.at();
        if at >= len || size_of::<T>() > 8 {
            debug_assert!(false, "a record outside its window");
            return;
        }
        // SAFETY: `at < len`.
        let to = unsafe { base.add(at * size_of::<T>()) };
        match op_of(code) {
            // SAFETY: `to` is one element; the first bytes of the value are its bytes.
            None => unsafe {
                std::ptr::copy_nonoverlapping(std::ptr::from_ref(&value).cast(), to, size_of::<T>())
            },
            // SAFETY: as above, and the operator was checked at the call or on arrival.
            Some(op) => unsafe { kernel::combine_one(op, element_type::<T>(), to, value) },
        }
    };
    match items {
        Items::Records(mut records) => {
            while let Some(first) = records.first() {
                // SAFETY: passed on.
                let done = unsafe { alike::<T>(base, len, Head(first.head).code(), records) };
                if done == 0 {
                    one(Head(first.head), first.value);
                }
                records = &records[done.max(1)..];
            }
        }
        Items::Split(heads, values) => {
            heads.iter().zip(values.chunks_exact(8)).for_each(|(&head, value)| {
                one(Head(head), u64::from_ne_bytes(value.try_into().expect("chunks of eight")));
            });
        }
    }
}

/// Apply the records at the front that have this code and one element in the window, and give their number. Long runs of
/// one kind are the rule: what it is is asked once.
///
/// # Safety
/// As [`apply`].
unsafe fn alike<T: Element>(base: *mut u8, len: usize, code: u64, records: &[Record]) -> usize {
    if size_of::<T>() > 8 || code == WIDE {
        return 0;
    }
    let len = len.min(DISPLACEMENTS as usize);
    let at = |record: &Record| Head(record.head).at_of(code);
    let mut done = 0;
    let mine = records.iter().take_while(|record| at(record) < len).map(|record| {
        // The origin wrote them last: each line comes from its cache.
        kernel::fetch(std::ptr::from_ref(record).wrapping_add(AHEAD));
        done += 1;
        (base.wrapping_add(at(record) * size_of::<T>()), record.value)
    });
    match op_of(code) {
        None | Some(Op::Replace) => mine.for_each(|(to, value)| {
            // SAFETY: `to` is one element of the window; the first bytes of the value are its bytes.
            unsafe { move_one((&raw const value).cast(), to, size_of::<T>()) }
        }),
        // SAFETY: as above, and the operator was checked at the call or on arrival.
        Some(op) => unsafe { kernel::combine_each(op, element_type::<T>(), mine) },
    }
    done
}

/// # Safety
/// As [`apply`]; the source is `Bytes` and in `bytes`.
unsafe fn apply_wide(
    base: *mut u8,
    element: fencepost_planner::element::ElementType,
    wide: &Wide,
    bytes: &[u8],
) {
    let WideSource::Bytes(at) = wide.source else {
        debug_assert!(false, "sections were read before the letter was sent");
        return;
    };
    let from = bytes[at..at + wide.remote.size() * element.size as usize].as_ptr();
    match op_of(wide.code) {
        // SAFETY: the datatype lies in the window, and `from` has as many elements.
        None => unsafe { kernel::unpack(from, base, &wide.remote, element.size as usize) },
        // SAFETY: as above.
        Some(op) => unsafe { kernel::combine(op, element, base, &wide.remote, from) },
    }
}

/// Move one element.
///
/// # Safety
/// `from` and `to` are one element of `size` bytes each.
#[inline]
pub(super) unsafe fn move_one(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        if size == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, size);
        }
    }
}
