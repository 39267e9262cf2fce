//! Applies puts and accumulates to this rank's own memory, in ascending order of origins.

use crate::census::riding::{are_riding, riders};
use crate::collect::operands::Exposed;
use crate::collect::operands::Items;
use crate::collect::operands::{Apply, Operands};
use crate::collect::outbox::{
    DATATYPE, DISPLACEMENTS, DatatypeOperation, DatatypeSource, Head, RUN, Run, op_of,
};
use crate::fence::reads::exposed_by;
use crate::fence::remote;
use crate::fence::{Fence, Notifications};
use crate::kernel::{self, Task, Values, with_values};
use crate::state::window_core::WindowCore;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_transport::{Record, Topology};
use std::cell::Cell;

impl Fence<'_> {
    /// Applies puts and accumulates, in ascending order of origins. Exposed sections are read from
    /// `copied` if it is given, otherwise in place.
    pub(super) fn apply(&mut self, all: &Notifications, copied: Option<&[u8]>) {
        let me = self.world.rank;
        let staged = Cell::new(copied.map_or(std::ptr::null(), <[u8]>::as_ptr));
        // Ranks whose memory is not reached may have sent operations early, without a notification.
        let origins = if self.world.reach.is_all { all.origins(me) } else { 0..self.world.size };
        for (place, window) in self.windows.iter().enumerate() {
            let (base, len) = (window.region.base(), window.peers[me].len);
            for origin in origins.clone() {
                let staged = copied.map(|_| &staged);
                if origin == me {
                    self.apply_from(window, me, staged);
                    continue;
                }
                let (shares, counted) = (self.endpoint.shares(origin), self.counted);
                let is_read = shares || self.endpoint.reaches(origin);
                let notification = if is_read { self.notification(origin) } else { None };
                let rides = notification.filter(|notification| are_riding(notification.address));
                if shares || rides.is_some() {
                    if all.quiet() || notification.map_or(counted, |notification| notification.count == 0) {
                        continue;
                    }
                    let Some(notification) = rides else {
                        self.apply_from(window, origin, staged);
                        continue;
                    };
                    // SAFETY: the notification belongs to this exchange, and comes from a rank
                    // whose memory is reached, as `rides` requires.
                    let records = unsafe { riders(notification, place) };
                    if !records.is_empty() {
                        // SAFETY: this is this rank's own memory, in its own fence, and all reads
                        // are done.
                        unsafe { window.apply_records(records) };
                    }
                } else {
                    let in_place = |number| exposed_by(self.windows, number, origin);
                    let exposed = match staged {
                        Some(staged) => Exposed::Copied(staged),
                        None => Exposed::InPlace(&in_place),
                    };
                    remote::apply(window, origin, base, len, exposed);
                }
            }
            if window.peers.far {
                remote::recycle(window, self.endpoint);
            }
        }
        self.world.reports.count_epoch();
    }

    /// Applies the outbox of `origin`, a rank that shares its values. Exposed sections are read
    /// from `staged` if it is given, otherwise in place.
    #[inline]
    pub(super) fn apply_from(&self, window: &WindowCore, origin: usize, staged: Option<&Cell<*const u8>>) {
        let me = self.world.rank;
        let (base, len, set) = (window.region.base(), window.peers[me].len, window.filling.set.get());
        let region = if origin == me {
            &window.region
        } else {
            window.peers[origin].region.as_ref().expect("a region is known where values are shared")
        };
        // SAFETY: the origin filled this set before its notification. The origin touches the set
        // again only after it has read this rank's next notification.
        let outbox = unsafe { &*region.outbox(set, me) };
        if !outbox.is_empty() {
            let in_place = |number| exposed_by(self.windows, number, origin);
            let exposed = staged.map_or(Exposed::InPlace(&in_place), Exposed::Copied);
            let operands = Operands { wide: &outbox.wide, bytes: &outbox.bytes, exposed };
            // SAFETY: this is this rank's own memory, in its own fence, and all reads are done. The
            // origin checked every displacement against this length.
            unsafe {
                (window.filling.apply)(base, len, window.element, Items::Records(&outbox.records), &operands)
            };
        }
    }
}

impl WindowCore {
    /// Applies records that contain their elements.
    ///
    /// # Safety
    /// This rank is in its fence, and all reads of this part are done. Each displacement was
    /// checked against the part's length.
    #[inline]
    pub(super) unsafe fn apply_records(&self, records: &[Record]) {
        let (base, len) = (self.region.base(), self.peers[self.world.rank].len);
        // SAFETY: the caller upholds the safety contract.
        unsafe { (self.filling.apply)(base, len, self.element, Items::Records(records), &Operands::none()) };
    }
}

/// The number of records by which the prefetch is ahead. These records fill some cache lines.
const AHEAD: usize = 32;

/// Returns the function that applies operations to a window of elements of this type.
///
/// The function is compiled here, once for each type that has operators and each size that a record
/// holds. Otherwise every program would compile the function for each type that the program uses.
pub(crate) fn apply_to(element: ElementType) -> Apply {
    struct ApplyTo;
    impl Task for ApplyTo {
        type Out = Apply;
        fn with<V: Values>(self) -> Apply {
            apply::<V>
        }
    }
    with_values(element, ApplyTo)
}

/// Applies `items` to the window of `len` elements at `base`, in order.
///
/// # Safety
/// `base` is the memory of `len` elements of type `element`, and no other rank touches it now. `V`
/// is the type of `element`. Every displacement is within that memory. Exposed sections are at the
/// addresses that [`Exposed`] gives, and no rank writes them.
unsafe fn apply<V: Values>(
    base: *mut u8,
    len: usize,
    element: ElementType,
    items: Items<'_>,
    operands: &Operands<'_>,
) {
    let one = |head: Head, value: u64| {
        let code = head.code();
        if code == DATATYPE {
            // SAFETY: the caller upholds the safety contract.
            unsafe { apply_datatype(base, element, &operands.wide[head.at()], operands) };
            return;
        }
        let at = head.at();
        if at >= len || size_of::<V>() > 8 {
            debug_assert!(false, "a record outside its window");
            return;
        }
        // SAFETY: `at < len`.
        let to = unsafe { base.add(at * size_of::<V>()) };
        match op_of(code) {
            // SAFETY: `to` is one element; the first bytes of the value are the element's bytes.
            None => unsafe {
                std::ptr::copy_nonoverlapping(std::ptr::from_ref(&value).cast(), to, size_of::<V>())
            },
            // SAFETY: as above, and the operator was checked at the call or on arrival.
            Some(op) => unsafe { kernel::combine_one::<V>(op, to, value) },
        }
    };
    match items {
        Items::Records(mut records) => {
            while let Some(first) = records.first() {
                if Head(first.head).code() == RUN {
                    // SAFETY: the caller upholds the safety contract.
                    let done = unsafe { apply_run(base, len, element, records) };
                    records = &records[done..];
                    continue;
                }
                let lines = records.as_chunks::<LINE>().0.iter().map(|line| {
                    // The origin wrote the records last, so each line comes from the origin's
                    // cache.
                    kernel::fetch(std::ptr::from_ref(line).wrapping_add(AHEAD / LINE));
                    move |i: usize| (line[i].head, line[i].value)
                });
                // SAFETY: the caller upholds the safety contract.
                let done = unsafe { lines_of_one_kind::<V>(base, len, Head(first.head).code(), lines) };
                if done == 0 {
                    one(Head(first.head), first.value);
                }
                records = &records[done.max(1)..];
            }
        }
        Items::Split(mut heads, values) => {
            let mut values = values.as_chunks::<8>().0;
            while let (Some(&first), Some(&value)) = (heads.first(), values.first()) {
                let lines = heads.as_chunks::<LINE>().0.iter().zip(values.as_chunks::<LINE>().0);
                let lines =
                    lines.map(|(heads, values)| move |i: usize| (heads[i], u64::from_ne_bytes(values[i])));
                // SAFETY: the caller upholds the safety contract.
                let done = unsafe { lines_of_one_kind::<V>(base, len, Head(first).code(), lines) };
                if done == 0 {
                    one(Head(first), u64::from_ne_bytes(value));
                }
                (heads, values) = (&heads[done.max(1)..], &values[done.max(1)..]);
            }
        }
    }
}

/// The number of records that are applied together, which is the number of records in a cache line.
const LINE: usize = 64 / size_of::<Record>();

/// Applies the leading records that have this code and each touch one element inside the window.
/// Works cache line by cache line. Returns the number of applied records.
///
/// Usually many successive records have the same kind, so the kind is examined once for all of
/// them.
///
/// # Safety
/// As [`apply`].
unsafe fn lines_of_one_kind<V: Values>(
    base: *mut u8,
    len: usize,
    code: u64,
    lines: impl Iterator<Item: Fn(usize) -> (u64, u64)>,
) -> usize {
    if size_of::<V>() > 8 || code == DATATYPE {
        return 0;
    }
    let len = len.min(DISPLACEMENTS as usize);
    let mut done = 0;
    let mine = lines.map_while(|line| {
        let line: [_; LINE] = std::array::from_fn(|i| {
            let (head, value) = line(i);
            (Head(head).at_of(code), value)
        });
        let known = line.iter().all(|&(at, _)| at < len);
        done += if known { LINE } else { 0 };
        known.then(|| line.map(|(at, value)| (base.wrapping_add(at * size_of::<V>()), value)))
    });
    let mine = mine.flatten();
    match op_of(code) {
        None | Some(Op::Replace) => mine.for_each(|(to, value)| {
            // SAFETY: `to` is one element of the window; the first bytes of the value are the
            // element's bytes.
            unsafe { move_one((&raw const value).cast(), to, size_of::<V>()) }
        }),
        // SAFETY: as above, and the operator was checked at the call or on arrival.
        Some(op) => unsafe { kernel::combine_each::<V>(op, mine) },
    }
    done
}

/// Applies the run at the front of these records. Returns how many records the run takes up.
///
/// # Safety
/// As [`apply`].
unsafe fn apply_run(base: *mut u8, len: usize, element: ElementType, records: &[Record]) -> usize {
    let (at, run, size) = (Head(records[0].head).at(), Run(records[0].value), element.size as usize);
    let all = 1 + run.records(size);
    if at + run.count() > len || all > records.len() {
        debug_assert!(false, "a run outside its window");
        return records.len();
    }
    let from = records[1..].as_ptr().cast::<u8>();
    match op_of(run.code()) {
        // SAFETY: the elements are in the window, and the values for all of them follow the record.
        None => unsafe { from.copy_to_nonoverlapping(base.add(at * size), run.count() * size) },
        // SAFETY: as above, and the operator was checked at the call.
        Some(op) => unsafe {
            kernel::combine(op, element, base, &Datatype::run(at..at + run.count()), from);
        },
    }
    all
}

/// Applies an operation on a datatype.
///
/// # Safety
/// As [`apply`].
unsafe fn apply_datatype(
    base: *mut u8,
    element: ElementType,
    wide: &DatatypeOperation,
    operands: &Operands<'_>,
) {
    let size = element.size as usize;
    let len = wide.remote.size() * size;
    let from = match (&wide.source, &operands.exposed) {
        (DatatypeSource::Bytes(at), _) => operands.bytes[*at..at + len].as_ptr(),
        (DatatypeSource::Exposed(..), Exposed::Copied(next)) => next.replace(next.get().wrapping_add(len)),
        (DatatypeSource::Exposed(window, section), Exposed::InPlace(base_of)) => {
            let from = base_of(*window);
            return match op_of(wide.code) {
                // SAFETY: the section was checked by its owner, or on arrival, and its owner does
                // not write it before this rank has settled. The datatype is within this rank's
                // window.
                None => unsafe { kernel::copy(from, section, base, &wide.remote, size) },
                // SAFETY: as above, and the operator was checked at the call.
                Some(op) => unsafe { kernel::combine_copy(op, element, from, section, base, &wide.remote) },
            };
        }
        (DatatypeSource::Exposed(..), Exposed::Nothing) | (DatatypeSource::Section(..), _) => {
            debug_assert!(
                false,
                "a section is read or exposed as the fence is entered, and exposed where it is reached"
            );
            return;
        }
    };
    match op_of(wide.code) {
        // SAFETY: the datatype is within the window, and `from` has the datatype's number of
        // elements.
        None => unsafe { kernel::unpack(from, base, &wide.remote, size) },
        // SAFETY: as above.
        Some(op) => unsafe { kernel::combine(op, element, base, &wide.remote, from) },
    }
}

/// Moves one element.
///
/// # Safety
/// `from` and `to` are one element of `size` bytes each.
#[inline]
pub(super) unsafe fn move_one(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: the caller upholds the safety contract.
    unsafe {
        if size == 8 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
        } else {
            std::ptr::copy_nonoverlapping(from, to, size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::outbox::code_of;
    use fencepost_planner::element::Scalar;
    use fencepost_planner::ir::pattern::Kind;
    use std::panic::Location;

    /// Generates random operations on few elements, in long and short streaks of one kind.
    fn draw(scalar: Scalar, number: usize, len: u64) -> Vec<(u64, u64)> {
        let takes = |op: &Op| op.takes(ElementType::scalar(scalar));
        let ops = Op::ALL.into_iter().filter(takes).map(Kind::Accumulate);
        let kinds: Vec<_> = ops.chain([Kind::Put]).collect();
        let mut state = 88_172_645_463_325_252_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut kind = Kind::Put;
        let mut draw = || {
            if next().is_multiple_of(7) {
                kind = kinds[next() as usize % kinds.len()];
            }
            let value = match scalar {
                Scalar::F32 => ((next() % 1000) as f32 / 8.0).to_bits().into(),
                Scalar::F64 => ((next() % 1000) as f64 / 8.0).to_bits(),
                _ => next(),
            };
            (Head::new(next() % len, code_of(kind), Location::caller()).0, value)
        };
        (0..number).map(|_| draw()).collect()
    }

    #[test]
    fn operations_of_records_and_of_frames_are_applied_in_order() {
        const LEN: usize = 11;
        for scalar in Scalar::ALL {
            let element = ElementType::scalar(scalar);
            for number in [0, 1, 3, 4, 5, 8, 500] {
                let all = draw(scalar, number, LEN as u64);
                let (heads, values): (Vec<u64>, Vec<u64>) = all.iter().copied().unzip();
                let bytes = bytemuck::cast_slice::<u64, u8>(&values);
                let records: Vec<_> = all.iter().map(|&(head, value)| Record { head, value }).collect();
                let applied = |items: Vec<Items<'_>>| {
                    let mut window = vec![0_u64; LEN];
                    let base = window.as_mut_ptr().cast();
                    for items in items {
                        // SAFETY: the window has LEN elements of at most eight bytes, and all
                        // displacements are below LEN.
                        unsafe { apply_to(element)(base, LEN, element, items, &Operands::none()) };
                    }
                    window
                };
                let each =
                    heads.chunks(1).zip(bytes.chunks(8)).map(|(head, value)| Items::Split(head, value));
                let wanted = applied(each.collect());
                assert_eq!(
                    applied(vec![Items::Split(&heads, bytes)]),
                    wanted,
                    "{number} of {scalar:?}, apart"
                );
                assert_eq!(
                    applied(vec![Items::Records(&records)]),
                    wanted,
                    "{number} of {scalar:?}, records"
                );
            }
        }
    }
}
