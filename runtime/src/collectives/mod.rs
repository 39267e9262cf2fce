//! Collectives of a [`World`]: broadcast, reductions, gathers, scans and total exchanges.
//!
//! [`World::barrier`] is the empty fence. All other collectives are supersteps over windows that
//! the world keeps for itself. The planner defines what they do
//! ([`fencepost_planner::collective`]), and chooses among the algorithms by the machine model.
//! Reductions combine over a balanced binary tree whose shape depends only on the number of ranks,
//! so floating-point results have the same bits on every rank, run, mode and transport. Scans go
//! left to right.
//!
//! # One call
//!
//! Each call begins with an *exchange*, whose [`Census`](fencepost_planner::census::Census) is
//! direct, sparse or reduced. In the exchange each rank announces its collective, with the root,
//! the operator, the length and the element type. If ranks are in different calls, all ranks detect
//! that in the exchange. In that case nothing is applied, and the world goes on.
//! 1. Short arrays travel with the exchange. If all ranks reach each other's memory, arrays of up
//!    to 32 bytes are in the notifications themselves ([`told`]). Other short arrays are put in a
//!    dynamic epoch whose fence is the exchange ([`ride`](fixed)). If the exchange takes a sparse
//!    or a reduced census, the messages or the notes of the census carry them instead. The elements
//!    are combined in the same order in all cases.
//! 2. If all ranks reach each other's memory, they write their elements into windows before the
//!    exchange, and read each other's windows after it ([`in_place`]). Broadcasts and allreduces of
//!    up to 8 MiB, and all other collectives of up to 16 KiB, are done in this way.
//! 3. All other elements are moved after the exchange, by schedules. A schedule was compiled and
//!    verified when the world first saw a collective of this kind, root, operator, length and
//!    element type ([`cache`]). All ranks make the same plan, so no vote is needed, and the
//!    schedule's digest is in the word of each frame. Ranks of one process plan only once
//!    ([`schedule cache`]).
//! 4. If lengths may differ by rank, each rank announces the lengths of its arrays in the exchange,
//!    and short arrays travel with the exchange ([`lists`]). If all lengths turn out to be equal,
//!    longer arrays are moved as in 3, after another exchange if some rank has no plan yet.
//!    Otherwise they are put in dynamic epochs.
//!
//! A result is written to the caller's elements only when all of it has arrived: a call that fails
//! leaves these elements unchanged. A rank that leaves after the exchange, in the middle of 3, ends
//! the world. Other ranks may already have their result.

mod blocks;
mod cache;
mod carry;
mod fixed;
mod fold;
mod in_place;
mod lists;
mod told;

use crate::check::order::Orders;
use crate::fence::ordered;
use crate::kernel::element::{Element, element_type};
use crate::state::call::{Arguments, Array, Call};
use crate::state::world::World;
use carry::{Parts, fill};
use fencepost_planner::collective::{Collective, Operation};
use fencepost_planner::element::{ElementKind, Op};
use fencepost_planner::grid::Block;
use fencepost_planner::{Error, ErrorClass, Result};
use fixed::run;

/// The costs are for p ranks and n bytes in each rank's elements. In addition, every call has one
/// exchange, which takes p - 1 notifications or log2 p messages. An allreduce by blocks in shared
/// memory has two exchanges.
impl World {
    /// Sends `root`'s `elements` to all ranks.
    ///
    /// # Errors
    /// `RANK` for a root that is not a rank; the other ranks then get `RMA_SYNC`. `RMA_SYNC` on all
    /// ranks, with nothing applied, if ranks are in different calls or give different roots,
    /// lengths or element types. Otherwise as [`World::barrier`].
    ///
    /// # Cost
    /// Short arrays travel with the exchange. If all ranks reach each other's memory, the root
    /// writes arrays of up to 8 MiB to its memory before the exchange, and the other ranks read
    /// them after it. For this, each rank keeps 2 n bytes. Other arrays take log2 p rounds of n
    /// bytes down a binomial tree, or two rounds of about n bytes for each rank. A second call with
    /// the same root, length and type neither plans nor allocates.
    #[doc(alias = "MPI_Bcast")]
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, elements: &mut [T]) -> Result<()> {
        let call = collective::<T>("World::broadcast", 1, None, root, elements.len());
        self.collective(&call, Orders::From(root), self.check_root(root, &call), || {
            let what = self.what::<T>(Operation::Broadcast { root: root as u32 }, elements.len());
            self.in_place(&call, &what, elements)
        })
    }

    /// Replaces the `elements` of all ranks by those of `root`. The other ranks need not know the
    /// number of elements.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// # fencepost::ranks(2).run(|world| {
    /// let mut names = if world.rank() == 0 { b"pressure".to_vec() } else { Vec::new() };
    /// world.broadcast_vec(0, &mut names)?;
    /// assert_eq!(names, b"pressure");
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// NO_MEM on a rank that has no memory for the elements; the other ranks then get RMA_SYNC.
    /// Otherwise as [`broadcast`](Self::broadcast), except that lengths may differ.
    ///
    /// # Cost
    /// Two broadcasts: one of the number and one of the elements.
    #[doc(alias = "MPI_Bcast")]
    #[track_caller]
    pub fn broadcast_vec<T: Element>(&self, root: usize, elements: &mut Vec<T>) -> Result<()> {
        const NAME: &str = "World::broadcast_vec";
        let operation = Operation::Broadcast { root: root as u32 };
        let call = collective::<T>(NAME, 13, None, root, Arguments::NONE);
        let mut number = [elements.len()];
        self.collective(&call, Orders::From(root), self.check_root(root, &call), || {
            self.in_place(&call, &self.what::<usize>(operation, 1), &mut number)
        })?;
        let [number] = number;
        let call = collective::<T>(NAME, 14, None, root, number);
        let what = self.what::<T>(operation, number);
        if self.rank() == root {
            return self
                .collective(&call, Orders::From(root), Ok(()), || self.in_place(&call, &what, elements));
        }
        let mut found = Vec::new();
        let room = found.try_reserve_exact(number).map_err(|_| {
            let message = format!("there is no memory for the {number} elements of rank {root}");
            call.error(self.core(), ErrorClass::NoMem, message)
        });
        self.collective(&call, Orders::From(root), room, || {
            found.resize(number, T::zeroed());
            self.in_place(&call, &what, &mut found)
        })?;
        *elements = found;
        Ok(())
    }

    /// Combines the `elements` of all ranks, element by element; only `root` gets the result.
    ///
    /// # Errors
    /// `OP` for an operator that the element type does not have. `RMA_SYNC` also if ranks give
    /// different operators. Otherwise as [`broadcast`](Self::broadcast).
    ///
    /// # Cost
    /// Short arrays travel with the exchange: the root receives (p - 1) n bytes. Longer arrays take
    /// log2 p rounds of n bytes up the tree, or two rounds of about n bytes for each rank.
    #[doc(alias = "MPI_Reduce")]
    #[track_caller]
    pub fn reduce<T: Element>(&self, root: usize, elements: &[T], op: Op) -> Result<Option<Vec<T>>> {
        let call = collective::<T>("World::reduce", 2, Some(op), root, elements.len());
        let checked = self.check_root(root, &call).and_then(|()| self.check_op::<T>(op, &call));
        self.collective(&call, Orders::To(root), checked, || {
            let what = self.what::<T>(Operation::Reduce { root: root as u32, op }, elements.len());
            let result = run(
                self,
                &call,
                &what,
                (from(elements), |found: &mut Parts<'_, T>| found.next().unwrap_or_default().to_vec()),
            )?;
            Ok((self.rank() == root).then_some(result))
        })
    }

    /// Combines the `elements` of all ranks, element by element, in place; every rank gets the same
    /// bits.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    ///
    /// # Cost
    /// Short arrays travel with the exchange: each rank receives (p - 1) n bytes. Longer arrays
    /// take log2 p rounds of n bytes (2 n for some if p is not a power of two), or two rounds of
    /// about n bytes. A second call with the same operator, length and type neither plans nor
    /// allocates.
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn allreduce<T: Element>(&self, elements: &mut [T], op: Op) -> Result<()> {
        let call = collective::<T>("World::allreduce", 3, Some(op), Arguments::NONE, elements.len());
        self.collective(&call, Orders::All, self.check_op::<T>(op, &call), || {
            self.in_place(&call, &self.what::<T>(Operation::Allreduce { op }, elements.len()), elements)
        })
    }

    /// Combines the `value` of each rank: the [`allreduce`](Self::allreduce) of one element, by
    /// value.
    ///
    /// ```
    /// # use fencepost_runtime as fencepost;
    /// # use fencepost_planner::element::Op;
    /// # fencepost::ranks(3).run(|world| {
    /// let cells = world.allreduce_one(10 * world.rank(), Op::Sum)?;
    /// # assert_eq!(cells, 30);
    /// # Ok(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    ///
    /// # Cost
    /// The cost of an `allreduce` of one element, which travels with the exchange.
    #[doc(alias = "MPI_Allreduce")]
    #[track_caller]
    pub fn allreduce_one<T: Element>(&self, value: T, op: Op) -> Result<T> {
        let mut elements = [value];
        self.allreduce(&mut elements, op)?;
        Ok(elements[0])
    }

    /// Combines the `elements` of all ranks from rank 0 to this rank, left to right, in place.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    ///
    /// # Cost
    /// Short arrays travel with the exchange: each rank sends and receives at most (p - 1) n bytes.
    /// Longer arrays take two rounds of about n bytes, or log2 p rounds of n bytes if the order of
    /// combining cannot affect the result. As in [`allreduce`](Self::allreduce), a second call with
    /// the same operator, length and type neither plans nor allocates.
    #[doc(alias = "MPI_Scan")]
    #[track_caller]
    pub fn scan<T: Element>(&self, elements: &mut [T], op: Op) -> Result<()> {
        let call = collective::<T>("World::scan", 4, Some(op), Arguments::NONE, elements.len());
        self.collective(&call, Orders::Upwards, self.check_op::<T>(op, &call), || {
            self.in_place(&call, &self.what::<T>(Operation::Scan { op }, elements.len()), elements)
        })
    }

    /// Returns the `elements` of all ranks, by rank, at `root`; lengths may differ.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), except that lengths may differ.
    ///
    /// # Cost
    /// The lengths travel in the exchange, together with the elements if no list has more than 240
    /// bytes. Otherwise the elements take one round to the root, or, if lengths differ, several
    /// rounds that each use bounded memory. Use [`gather_into`](Self::gather_into) if lengths are
    /// equal.
    #[doc(alias = "MPI_Gatherv")]
    #[track_caller]
    pub fn gather<T: Element>(&self, root: usize, elements: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        let call = collective::<T>("World::gather", 5, None, root, Arguments::NONE);
        self.collective(&call, Orders::To(root), self.check_root(root, &call), || {
            let all = lists::exchange(self, &call, Operation::Gather { root: root as u32 }, |_| elements)?;
            Ok((self.rank() == root).then_some(all))
        })
    }

    /// Returns the `elements` of all ranks, by rank, on every rank; lengths may differ.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast), except that lengths may differ.
    ///
    /// # Cost
    /// The lengths travel in the exchange, together with the elements if no list has more than 240
    /// bytes. Otherwise there is one round in which each rank gets all bytes of the others, or, if
    /// lengths differ, several rounds that each use bounded memory. Use
    /// [`allgather_into`](Self::allgather_into) if lengths are equal.
    #[doc(alias = "MPI_Allgatherv")]
    #[track_caller]
    pub fn allgather<T: Element>(&self, elements: &[T]) -> Result<Vec<Vec<T>>> {
        let call = collective::<T>("World::allgather", 6, None, Arguments::NONE, Arguments::NONE);
        self.collective(&call, Orders::All, Ok(()), || {
            lists::exchange(self, &call, Operation::Allgather, |_| elements)
        })
    }

    /// Sends each rank its own list, `elements[target]`, and returns the lists that the ranks sent
    /// to this rank, indexed by origin.
    ///
    /// Lengths may differ.
    ///
    /// # Errors
    /// `SIZE` if there is not one list for each rank. Otherwise as [`broadcast`](Self::broadcast),
    /// except that lengths may differ.
    ///
    /// # Cost
    /// The lengths travel in the exchange, together with the elements if no list has more than 240
    /// bytes. Otherwise the elements take one round, or, if lengths differ, several rounds that
    /// each use bounded memory. Use [`all_to_all_into`](Self::all_to_all_into) if lengths are
    /// equal.
    #[doc(alias = "MPI_Alltoallv")]
    #[track_caller]
    pub fn all_to_all<T: Element>(&self, elements: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        let call = collective::<T>("World::all_to_all", 7, None, Arguments::NONE, Arguments::NONE);
        let checked = if elements.len() == self.size() {
            Ok(())
        } else {
            let message = format!("{} lists for {} ranks: give one list a rank", elements.len(), self.size());
            Err(call.error(self.core(), ErrorClass::Size, message))
        };
        self.collective(&call, Orders::All, checked, || {
            lists::exchange(self, &call, Operation::AllToAll, |to| &elements[to])
        })
    }

    /// Gathers like [`gather`](Self::gather), with equal lengths: at `root`, `all` becomes the
    /// `elements` of all ranks, `[rank][element]`.
    ///
    /// On other ranks `all` is left alone and may be empty.
    ///
    /// # Errors
    /// `SIZE` at the root if the length of `all` is not p times the length of `elements`. Otherwise
    /// as [`broadcast`](Self::broadcast).
    ///
    /// # Cost
    /// Short arrays travel with the exchange. Longer arrays take one round, in which the root
    /// receives (p - 1) n bytes. A second call with the same root, length and type neither plans
    /// nor allocates.
    #[doc(alias = "MPI_Gather")]
    #[track_caller]
    pub fn gather_into<T: Element>(&self, root: usize, elements: &[T], all: &mut [T]) -> Result<()> {
        let call = collective::<T>("World::gather_into", 8, None, root, elements.len());
        let room =
            || if self.rank() == root { self.check_room(elements.len(), all.len(), &call) } else { Ok(()) };
        let checked = self.check_root(root, &call).and_then(|()| room());
        self.collective(&call, Orders::To(root), checked, || {
            let what = self.what::<T>(Operation::Gather { root: root as u32 }, elements.len());
            run(self, &call, &what, (from(elements), |found: &mut Parts<'_, T>| fill(all, found)))
        })
    }

    /// Gathers as [`allgather`](Self::allgather) does, with equal lengths: `all` becomes the
    /// `elements` of all ranks, `[rank][element]`.
    ///
    /// # Errors
    /// `SIZE` if the length of `all` is not p times the length of `elements`. Otherwise as
    /// [`broadcast`](Self::broadcast).
    ///
    /// # Cost
    /// Short arrays travel with the exchange. Longer arrays take one round of (p - 1) n bytes, or
    /// log2 p rounds with the same number of bytes in total. A second call with the same length and
    /// type neither plans nor allocates.
    #[doc(alias = "MPI_Allgather")]
    #[track_caller]
    pub fn allgather_into<T: Element>(&self, elements: &[T], all: &mut [T]) -> Result<()> {
        let call = collective::<T>("World::allgather_into", 9, None, Arguments::NONE, elements.len());
        self.collective(&call, Orders::All, self.check_room(elements.len(), all.len(), &call), || {
            let what = self.what::<T>(Operation::Allgather, elements.len());
            run(self, &call, &what, (from(elements), |found: &mut Parts<'_, T>| fill(all, found)))
        })
    }

    /// Exchanges as [`all_to_all`](Self::all_to_all) does, with equal lengths: `elements` are
    /// `[target][element]`, and `all`, of the same length, becomes `[origin][element]`.
    ///
    /// # Errors
    /// `SIZE` if `elements` do not divide evenly among the ranks, or if `all` has a different
    /// length. Otherwise as [`broadcast`](Self::broadcast).
    ///
    /// # Cost
    /// Short arrays travel with the exchange. Longer arrays take one round of n bytes, less the
    /// bytes for the rank itself. A second call with the same length and type neither plans nor
    /// allocates.
    #[doc(alias = "MPI_Alltoall")]
    #[track_caller]
    pub fn all_to_all_into<T: Element>(&self, elements: &[T], all: &mut [T]) -> Result<()> {
        let call = collective::<T>("World::all_to_all_into", 10, None, Arguments::NONE, elements.len());
        let (given, len) = (elements.len(), elements.len() / self.size());
        let checked = if given % self.size() == 0 && all.len() == given {
            Ok(())
        } else {
            let (room, size) = (all.len(), self.size());
            let message = format!(
                "{given} elements for {size} ranks, and room for {room}: give as many to each, and room for as many"
            );
            Err(call.error(self.core(), ErrorClass::Size, message))
        };
        self.collective(&call, Orders::All, checked, || {
            let what = self.what::<T>(Operation::AllToAll, len);
            run(self, &call, &what, (from(elements), |found: &mut Parts<'_, T>| fill(all, found)))
        })
    }

    /// Begins a trace: replaces each of `numbers` by the largest value on any rank, in a separate
    /// collective call.
    #[track_caller]
    pub(crate) fn begin_trace(&self, numbers: &mut [u64; 2]) -> Result<()> {
        let name = "the beginning of a trace (FENCEPOST_TRACE)";
        let call = collective::<u64>(name, 15, None, Arguments::NONE, 2);
        self.collective(&call, Orders::All, Ok(()), || {
            self.in_place(&call, &self.what::<u64>(Operation::Allreduce { op: Op::Max }, 2), numbers)
        })
    }

    /// Runs one collective call. `checked` is the result of checking its arguments, and `orders` is
    /// the order that MPI gives the collective. Reports an error to the world's handler.
    fn collective<R>(
        &self,
        call: &Call,
        orders: Orders,
        checked: Result<()>,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let core = self.core();
        core.calls.begin();
        let began = core.begin_record(call);
        let result = ordered(core, orders, call, checked, run);
        core.end_record(began);
        core.handler.report(result)
    }

    fn in_place<T: Element>(&self, call: &Call, what: &Collective, elements: &mut [T]) -> Result<()> {
        run(self, call, what, elements)
    }

    fn what<T: Element>(&self, operation: Operation, len: usize) -> Collective {
        Collective { operation, ranks: self.size() as u32, len, element: element_type::<T>() }
    }

    fn check_root(&self, root: usize, call: &Call) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        let message = format!("root {root} is not one of the world's {} ranks", self.size());
        Err(call.error(self.core(), ErrorClass::Rank, message))
    }

    fn check_room(&self, len: usize, room: usize, call: &Call) -> Result<()> {
        if len.checked_mul(self.size()) == Some(room) {
            return Ok(());
        }
        let message = format!("{len} elements of {} ranks each do not fill room for {room}", self.size());
        Err(call.error(self.core(), ErrorClass::Size, message))
    }

    fn check_op<T: Element>(&self, op: Op, call: &Call) -> Result<()> {
        let element = element_type::<T>();
        if op.takes(element) {
            return Ok(());
        }
        Err(call.error(self.core(), ErrorClass::Op, op.undefined_for(element)))
    }
}

/// Returns the call of a collective. Ranks that give different element types, roots, operators or
/// lengths are in different calls.
#[track_caller]
fn collective<T: Element>(name: &'static str, code: u64, op: Option<Op>, root: usize, len: usize) -> Call {
    let element = element_type::<T>();
    let kind = match element.kind {
        ElementKind::Opaque => 0,
        ElementKind::Scalar(scalar) => 1 + scalar as u64,
        ElementKind::ValueAt(value, index) => (1 + value as u64) << 8 | (1 + index as u64) << 16,
    };
    let op_code = op.map_or(0, |op| 1 + op as u64);
    let hash = [code + 16 * op_code, root as u64, len as u64, u64::from(element.size) << 24 | kind]
        .iter()
        .fold(0xc0_11ec, |hash, &part| mixed(hash, part));
    Call { arguments: Some(Arguments { element, op, root, len, array: None }), ..Call::named(hash, name) }
}

/// Returns the call of a collective of an array in blocks. Ranks that divide the array differently
/// are in different calls.
#[track_caller]
fn of_block<T: Element, const D: usize>(
    name: &'static str,
    code: u64,
    root: usize,
    block: &Block<D>,
) -> Call {
    let call = collective::<T>(name, code, None, root, Arguments::NONE);
    let mut array = Array { dimensions: D, cells: [0; 3], ranks: [0; 3] };
    array.cells[..D].copy_from_slice(&block.global());
    array.ranks[..D].copy_from_slice(&block.dims());
    let hash = array.cells.iter().chain(&array.ranks).fold(call.hash, |hash, &part| mixed(hash, part as u64));
    let arguments = call.arguments.map(|arguments| Arguments { array: Some(array), ..arguments });
    Call { hash, arguments, ..call }
}

fn mixed(hash: u64, part: u64) -> u64 {
    (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Returns a function that copies `elements` to a slice of the same length.
fn from<T: Element>(elements: &[T]) -> impl FnMut(&mut [T]) {
    move |to| to.copy_from_slice(elements)
}

/// Returns an error that reports a bug of Fencepost.
fn bug(call: &Call, world: &World, what: &str) -> Error {
    call.error(world.core(), ErrorClass::Intern, what)
}
