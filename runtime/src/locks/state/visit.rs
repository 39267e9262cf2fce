//! Carries out the operations that were collected under a lock, directly in memory. Either their
//! origin or the attendant of their target carries them out.

use crate::collect::visits::{Action, Code, place};
use crate::kernel::{self, Task, Values, atomic, with_values};
use crate::locks::state::words::Layout;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementType, Op};
use fencepost_transport::{Hold, Record};
use smallvec::SmallVec;

/// The elements of one rank.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    /// The first element, or null if this rank does not reach the memory of the part.
    pub(crate) base: *mut u8,
    pub(crate) len: usize,
    pub(crate) element: ElementType,
}

/// The accesses of other ranks to the elements while operations are carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Others {
    /// No other rank accesses the elements.
    Nobody,
    /// Other ranks access the elements by atomic operations.
    Atomic,
    /// Other ranks access other elements, as the program promises. If the program breaks the
    /// promise, other ranks access these elements in the same way as this rank.
    Elsewhere,
}

impl Others {
    /// Returns how other ranks access the elements during an epoch that takes all its locks with
    /// `hold`.
    #[inline]
    pub(crate) fn of(layout: &Layout, hold: Hold) -> Self {
        match hold {
            Hold::Shared if layout.is_sole => Self::Nobody,
            Hold::Shared if layout.is_disjoint => Self::Elsewhere,
            Hold::Shared if layout.is_atomic => Self::Atomic,
            _ => Self::Nobody,
        }
    }
}

/// A list of operations.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) records: &'a [Record],
    pub(crate) wide: &'a [u8],
}

/// The parts of a wide operation.
pub(crate) struct Wide<'a> {
    pub(crate) remote: Datatype,
    pub(crate) expected: &'a [u8],
    pub(crate) operands: &'a [u8],
}

/// Carries out an operation that accesses one atomic element and returns nothing.
///
/// # Safety
/// As [`List::carry_out`].
#[inline(always)]
pub(crate) unsafe fn visit_one(part: &Part, record: &Record, others: Others) {
    #[cold]
    #[inline(never)]
    unsafe fn combine(part: &Part, record: &Record, others: Others) {
        let list = List { records: std::slice::from_ref(record), wide: &[] };
        // SAFETY: the caller upholds the safety contract.
        unsafe { list.carry_out(part, others, &mut Vec::new()) };
    }
    let (at, size) = (place(record), part.element.size as usize);
    debug_assert!(at < part.len && atomic::is_atomic(part.element), "its call was checked");
    // SAFETY: the caller upholds the safety contract, and the element is within the part. An atomic
    // store is also correct if no other rank accesses the element.
    unsafe {
        if Code::of_head(record.head).is_put() {
            atomic::store_bytes(size, part.base.add(at * size), record.value);
        } else {
            combine(part, record, others);
        }
    }
}

impl<'a> List<'a> {
    /// Returns the wide operation whose bytes begin at `value`, or `None` if these bytes are not a
    /// wide operation.
    pub(crate) fn wide(&self, value: u64, action: Action, size: usize) -> Option<Wide<'a>> {
        let mut bytes = self.wide.get(usize::try_from(value).ok()?..)?;
        let remote = Datatype::decode(&mut bytes).ok()?;
        let len = remote.size().checked_mul(size)?;
        let (expected, bytes) =
            bytes.split_at_checked(if action == Action::CompareAndSwap { len } else { 0 })?;
        let operands = bytes.get(..if action.takes() { len } else { 0 })?;
        Some(Wide { remote, expected, operands })
    }

    /// Returns the regions that operations on single elements touch, one bit each.
    pub(crate) fn narrow_regions(&self, layout: &Layout) -> u32 {
        let region = |record: &Record| match Code::of_head(record.head).is_wide() {
            true => 0,
            false => 1 << layout.region(place(record)),
        };
        self.records.iter().fold(0, |regions, record| regions | region(record))
    }

    /// Returns the number of bytes that the operations return from this part, or `None` if an
    /// operation does not fit the part or touches a region that is not in `regions`. A list of this
    /// rank always fits. A list of another rank may not fit.
    pub(crate) fn fits(&self, part: &Part, regions: u32, layout: &Layout) -> Option<usize> {
        let (mut found, mut records) = (0_usize, self.records.iter());
        let size = part.element.size as usize;
        while let Some(record) = records.next() {
            let code = Code::of_head(record.head);
            let action = code.action()?;
            if let Action::Accumulate(op) | Action::Fetch(op) = action
                && !op.takes(part.element)
            {
                return None;
            }
            let (touched, elements) = if code.is_wide() {
                let wide = self.wide(record.value, action, size)?;
                let (low, high) = (wide.remote.low(), wide.remote.high());
                if wide.remote.is_empty() || low < 0 || high > part.len as i64 {
                    return None;
                }
                (layout.regions(low as usize, high as usize), wide.remote.size())
            } else {
                if size > 8 || place(record) >= part.len {
                    return None;
                }
                if action == Action::CompareAndSwap && records.next()?.head != record.head {
                    return None;
                }
                let at = place(record);
                (layout.regions(at, at + 1), 1)
            };
            if touched & !regions != 0 {
                return None;
            }
            if action.returns() {
                found = found.checked_add(elements.checked_mul(size)?)?;
            }
        }
        Some(found)
    }

    /// Carries out the operations on a part that they [fit](Self::fits), and appends to `found` the
    /// elements that the operations return.
    ///
    /// # Safety
    /// `part.base` points to `part.len` elements of type `part.element`, and has the alignment of a
    /// window. `others` states how other ranks access the elements during the call. With `Atomic`,
    /// elements are [atomic](atomic::is_atomic). With `Elsewhere`, other ranks access the elements
    /// in the same way as this function.
    pub(crate) unsafe fn carry_out(&self, part: &Part, others: Others, found: &mut Vec<u8>) {
        struct CarryOut<'a>(&'a List<'a>, &'a Part, Others, &'a mut Vec<u8>);
        impl Task for CarryOut<'_> {
            type Out = ();
            fn with<V: Values>(self) {
                let Self(list, part, others, found) = self;
                // SAFETY: the caller upholds the safety contract.
                unsafe {
                    match others {
                        Others::Nobody => list.visit::<V, Alone>(part, found),
                        Others::Atomic => list.visit::<V, Together>(part, found),
                        Others::Elsewhere => list.visit::<V, Apart>(part, found),
                    }
                }
            }
        }
        with_values(part.element, CarryOut(self, part, others, found));
    }

    /// Carries out the operations on elements of type `V`.
    ///
    /// # Safety
    /// As [`carry_out`](Self::carry_out); `V` is the type of the elements.
    unsafe fn visit<V: Values, H: How>(&self, part: &Part, found: &mut Vec<u8>) {
        let mut records = self.records;
        while let Some(first) = records.first() {
            let code = Code::of_head(first.head);
            // Usually many successive records have the same kind, so the kind is examined once for
            // all of them.
            let same = records.iter().take_while(|record| Code::of_head(record.head) == code).count();
            let (these, rest) = records.split_at(same);
            records = rest;
            let Some(action) = code.action() else {
                debug_assert!(false, "a list that was not checked");
                return;
            };
            if !code.is_wide() {
                // SAFETY: the caller upholds the safety contract, and guarantees that the list
                // fits.
                unsafe { narrow::<V, H>(part, action, these, found) };
                continue;
            }
            for record in these {
                let Some(wide) = self.wide(record.value, action, part.element.size as usize) else {
                    debug_assert!(false, "a list that was not checked");
                    return;
                };
                // SAFETY: the caller upholds the safety contract.
                unsafe { H::wide::<V>(part, action, &wide, found) };
            }
        }
    }
}

/// Carries out operations that each apply `action` to one element.
///
/// # Safety
/// As [`List::carry_out`], for records of this action.
#[inline(always)]
unsafe fn narrow<V: Values, H: How>(part: &Part, action: Action, records: &[Record], found: &mut Vec<u8>) {
    let at = |record: &Record| {
        let at = place(record);
        debug_assert!(at < part.len);
        part.base.wrapping_add(at * size_of::<V>())
    };
    let mut keep = |bits: u64| found.extend_from_slice(&bits.to_ne_bytes()[..size_of::<V>()]);
    // SAFETY: each record names an element of the part, since the list fits.
    unsafe {
        match action {
            Action::Put | Action::Accumulate(Op::Replace) => {
                records.iter().for_each(|record| H::store::<V>(at(record), record.value));
            }
            Action::Get => records.iter().for_each(|record| keep(H::load::<V>(at(record)))),
            Action::Accumulate(op) => {
                H::combine_each::<V>(
                    op,
                    part.element,
                    records.iter().map(|record| (at(record), record.value)),
                );
            }
            Action::Fetch(op) => records.iter().for_each(|record| {
                keep(H::combine::<V>(op, part.element, at(record), record.value));
            }),
            Action::CompareAndSwap => records.chunks_exact(2).for_each(|pair| {
                keep(H::compare_and_swap::<V>(at(&pair[0]), pair[0].value, pair[1].value));
            }),
        }
    }
}

/// A way to access elements. The first bytes of a word contain the value of an element.
///
/// # Safety
/// As for [`List::carry_out`], for one element of type `V`.
trait How {
    unsafe fn load<V: Values>(at: *mut u8) -> u64;
    unsafe fn store<V: Values>(at: *mut u8, bits: u64);
    unsafe fn combine<V: Values>(op: Op, element: ElementType, at: *mut u8, bits: u64) -> u64;
    unsafe fn compare_and_swap<V: Values>(at: *mut u8, expected: u64, bits: u64) -> u64;
    unsafe fn combine_each<V: Values>(
        op: Op,
        element: ElementType,
        values: impl Iterator<Item = (*mut u8, u64)>,
    );
    unsafe fn wide<V: Values>(part: &Part, action: Action, wide: &Wide<'_>, found: &mut Vec<u8>);
}

/// Only the caller accesses the elements.
struct Alone;

/// Other ranks access the elements atomically.
struct Together;

/// Other ranks access other elements. Loads and stores are atomic in case the program breaks this
/// promise. A load followed by a store is not atomic as a whole.
struct Apart;

/// Returns the bytes of a value as a word.
///
/// # Safety
/// `size_of::<V>()` is at most 8, and that many bytes may be read at `from`.
#[inline(always)]
unsafe fn word<V>(from: *const u8) -> u64 {
    let mut bits = 0_u64;
    // SAFETY: the caller upholds the safety contract.
    unsafe { from.copy_to_nonoverlapping((&raw mut bits).cast(), size_of::<V>()) };
    bits
}

impl How for Alone {
    #[inline(always)]
    unsafe fn load<V: Values>(at: *mut u8) -> u64 {
        // SAFETY: the caller upholds the safety contract.
        unsafe { word::<V>(at) }
    }

    #[inline(always)]
    unsafe fn store<V: Values>(at: *mut u8, bits: u64) {
        // SAFETY: the caller upholds the safety contract, and the first bytes of the word are the
        // value.
        unsafe { std::ptr::from_ref(&bits).cast::<u8>().copy_to_nonoverlapping(at, size_of::<V>()) };
    }

    #[inline(always)]
    unsafe fn combine<V: Values>(op: Op, _: ElementType, at: *mut u8, bits: u64) -> u64 {
        // SAFETY: the caller upholds the safety contract.
        unsafe {
            let found = word::<V>(at);
            kernel::combine_one::<V>(op, at, bits);
            found
        }
    }

    #[inline(always)]
    unsafe fn compare_and_swap<V: Values>(at: *mut u8, expected: u64, bits: u64) -> u64 {
        // SAFETY: the caller upholds the safety contract.
        unsafe {
            let found = word::<V>(at);
            if found == expected {
                Self::store::<V>(at, bits);
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn combine_each<V: Values>(op: Op, _: ElementType, values: impl Iterator<Item = (*mut u8, u64)>) {
        // SAFETY: the caller upholds the safety contract.
        unsafe { kernel::combine_each::<V>(op, values) };
    }

    unsafe fn wide<V: Values>(part: &Part, action: Action, wide: &Wide<'_>, found: &mut Vec<u8>) {
        let (size, base) = (part.element.size as usize, part.base);
        let operands = wide.operands.as_ptr();
        let keep = |found: &mut Vec<u8>, remote: &Datatype| {
            let at = found.len();
            found.resize(at + remote.size() * size, 0);
            // SAFETY: the datatype is within the part, since the list fits, and there is room for
            // its elements.
            unsafe { kernel::pack(base, remote, size, found[at..].as_mut_ptr()) };
        };
        match action {
            // SAFETY: as above, and there is one operand for each element.
            Action::Put => unsafe { kernel::unpack(operands, base, &wide.remote, size) },
            Action::Get => keep(found, &wide.remote),
            // SAFETY: as above.
            Action::Accumulate(op) => unsafe {
                kernel::combine(op, part.element, base, &wide.remote, operands);
            },
            Action::Fetch(op) if !wide.remote.overlaps_itself() => {
                keep(found, &wide.remote);
                // SAFETY: as above.
                unsafe { kernel::combine(op, part.element, base, &wide.remote, operands) };
            }
            // If an element is repeated, each visit returns the value that the previous visit has
            // left.
            Action::Fetch(op) => {
                for (place, element) in wide.remote.element_iter().enumerate() {
                    let one = Datatype::run(element as usize..element as usize + 1);
                    keep(found, &one);
                    let operand = &wide.operands[place * size..][..size];
                    // SAFETY: as above, for one element.
                    unsafe { kernel::combine(op, part.element, base, &one, operand.as_ptr()) };
                }
            }
            Action::CompareAndSwap => {
                for (place, element) in wide.remote.element_iter().enumerate() {
                    let range = place * size..(place + 1) * size;
                    // SAFETY: the list is within the part, so these `size` bytes are one of its
                    // elements. As above, no other rank accesses them now.
                    let at =
                        unsafe { std::slice::from_raw_parts_mut(base.add(element as usize * size), size) };
                    found.extend_from_slice(at);
                    if *at == wide.expected[range.clone()] {
                        at.copy_from_slice(&wide.operands[range]);
                    }
                }
            }
        }
    }
}

impl How for Together {
    #[inline(always)]
    unsafe fn load<V: Values>(at: *mut u8) -> u64 {
        // SAFETY: the caller upholds the safety contract, here and below.
        unsafe { atomic::load::<V>(at) }
    }

    #[inline(always)]
    unsafe fn store<V: Values>(at: *mut u8, bits: u64) {
        // SAFETY: as above.
        unsafe { atomic::store::<V>(at, bits) };
    }

    #[inline(always)]
    unsafe fn combine<V: Values>(op: Op, element: ElementType, at: *mut u8, bits: u64) -> u64 {
        // SAFETY: as above.
        unsafe { atomic::combine::<V>(op, element, at, bits) }
    }

    #[inline(always)]
    unsafe fn compare_and_swap<V: Values>(at: *mut u8, expected: u64, bits: u64) -> u64 {
        // SAFETY: as above.
        unsafe { atomic::compare_and_swap::<V>(at, expected, bits) }
    }

    #[inline(always)]
    unsafe fn combine_each<V: Values>(
        op: Op,
        element: ElementType,
        values: impl Iterator<Item = (*mut u8, u64)>,
    ) {
        // SAFETY: as above.
        unsafe { atomic::combine_each::<V>(op, element, values) };
    }

    unsafe fn wide<V: Values>(part: &Part, action: Action, wide: &Wide<'_>, found: &mut Vec<u8>) {
        let size = size_of::<V>();
        // SAFETY: there is one operand of `size` bytes for each element.
        let nth = |values: &[u8], place: usize| unsafe { word::<V>(values[place * size..][..size].as_ptr()) };
        for (place, element) in wide.remote.element_iter().enumerate() {
            let at = part.base.wrapping_add(element as usize * size);
            let operand = if action.takes() { nth(wide.operands, place) } else { 0 };
            // SAFETY: this is an element of the part, since the list fits.
            let was = unsafe {
                match action {
                    Action::Put => {
                        atomic::store::<V>(at, operand);
                        continue;
                    }
                    Action::Get => atomic::load::<V>(at),
                    Action::Accumulate(op) => {
                        atomic::combine::<V>(op, part.element, at, operand);
                        continue;
                    }
                    Action::Fetch(op) => atomic::combine::<V>(op, part.element, at, operand),
                    Action::CompareAndSwap => {
                        atomic::compare_and_swap::<V>(at, nth(wide.expected, place), operand)
                    }
                }
            };
            found.extend_from_slice(&was.to_ne_bytes()[..size]);
        }
    }
}

impl How for Apart {
    #[inline(always)]
    unsafe fn load<V: Values>(at: *mut u8) -> u64 {
        // SAFETY: the caller upholds the safety contract, here and below.
        unsafe { atomic::load::<V>(at) }
    }

    #[inline(always)]
    unsafe fn store<V: Values>(at: *mut u8, bits: u64) {
        // SAFETY: as above.
        unsafe { atomic::store::<V>(at, bits) };
    }

    #[inline(always)]
    unsafe fn combine<V: Values>(op: Op, _: ElementType, at: *mut u8, bits: u64) -> u64 {
        // SAFETY: as above, and only this function accesses the copy.
        unsafe {
            let found = atomic::load::<V>(at);
            let mut combined = found;
            kernel::combine_one::<V>(op, (&raw mut combined).cast(), bits);
            atomic::store::<V>(at, combined);
            found
        }
    }

    #[inline(always)]
    unsafe fn compare_and_swap<V: Values>(at: *mut u8, expected: u64, bits: u64) -> u64 {
        // SAFETY: as above.
        unsafe {
            let found = atomic::load::<V>(at);
            if found == expected {
                atomic::store::<V>(at, bits);
            }
            found
        }
    }

    #[inline(always)]
    unsafe fn combine_each<V: Values>(
        op: Op,
        element: ElementType,
        values: impl Iterator<Item = (*mut u8, u64)>,
    ) {
        for (at, bits) in values {
            // SAFETY: as above.
            unsafe { Self::combine::<V>(op, element, at, bits) };
        }
    }

    unsafe fn wide<V: Values>(part: &Part, action: Action, wide: &Wide<'_>, found: &mut Vec<u8>) {
        let (size, base) = (part.element.size as usize, part.base);
        match action {
            Action::Put => {
                // SAFETY: the datatype is within the part, since the list fits, and there is one
                // operand for each element.
                return unsafe { atomic::unpack_each(wide.operands.as_ptr(), base, &wide.remote, size) };
            }
            Action::Get => {
                let at = found.len();
                found.resize(at + wide.remote.size() * size, 0);
                // SAFETY: as above, and there is room for its elements.
                return unsafe { atomic::pack_each(base, &wide.remote, size, found[at..].as_mut_ptr()) };
            }
            _ => (),
        }
        let mut words = SmallVec::<[u64; 8]>::from_elem(0, size.div_ceil(size_of::<u64>()));
        let was = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..size];
        for (place, element) in wide.remote.element_iter().enumerate() {
            let at = base.wrapping_add(element as usize * size);
            let [expected, operand] = [wide.expected, wide.operands]
                .map(|values| values.get(place * size..(place + 1) * size).unwrap_or_default());
            // SAFETY: this is an element of the part, since the list fits. Only this function
            // accesses the combined copy.
            unsafe {
                atomic::load_bytes(at, was);
                if action.returns() {
                    found.extend_from_slice(was);
                }
                match action {
                    Action::Accumulate(op) | Action::Fetch(op) => {
                        let one = Datatype::run(0..1);
                        kernel::combine(op, part.element, was.as_mut_ptr(), &one, operand.as_ptr());
                        atomic::store_each(at, was);
                    }
                    Action::CompareAndSwap if *was == *expected => atomic::store_each(at, operand),
                    Action::CompareAndSwap | Action::Put | Action::Get => {}
                }
            }
        }
    }
}
