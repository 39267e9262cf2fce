//! Collectives of a [`World`]: broadcast, reductions, gathers, scans and total exchanges.
//!
//! Each is one epoch in which every rank gives bytes to those that need them. Reductions combine over a balanced binary
//! tree whose shape depends on the number of ranks only, so floating-point results have the same bits on every rank,
//! run and transport; scans go left to right.

use crate::element::{Element, element_type};
use crate::fence::Call;
use crate::kernel;
use crate::world::World;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, Op};
use fencepost_planner::{Class, Error, Result};
use std::panic::Location;

impl World {
    /// Give everybody `root`'s `elements`.
    ///
    /// # Errors
    /// `RANK` for a root that is no rank; `SIZE` where ranks give different lengths; else as [`World::barrier`].
    #[track_caller]
    pub fn broadcast<T: Element>(&self, root: usize, elements: &mut [T]) -> Result<()> {
        let call = collective::<T>("World::broadcast", 1, root, elements.len());
        self.check_root(root, &call)?;
        let all =
            self.core().meet(&call, |_| if self.rank() == root { bytes(elements) } else { Vec::new() })?;
        fill(elements, gathered(&all[root..=root]).pop(), &call, self)
    }

    /// Combine everybody's `elements`, element by element; only `root` gets the result.
    ///
    /// # Errors
    /// `OP` for an operator that the element type does not have; else as [`broadcast`](Self::broadcast).
    #[track_caller]
    pub fn reduce<T: Element>(&self, root: usize, elements: &[T], op: Op) -> Result<Option<Vec<T>>> {
        let call = collective::<T>("World::reduce", 2 + 16 * op as u64, root, elements.len());
        self.check_root(root, &call)?;
        self.check_op::<T>(op, &call)?;
        let all = self.core().meet(&call, |to| if to == root { bytes(elements) } else { Vec::new() })?;
        Ok((self.rank() == root).then(|| tree(&gathered(&all), op)))
    }

    /// Combine everybody's `elements`, element by element, in place; every rank gets the same bits.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn allreduce<T: Element>(&self, elements: &mut [T], op: Op) -> Result<()> {
        let call = collective::<T>("World::allreduce", 3 + 16 * op as u64, 0, elements.len());
        self.check_op::<T>(op, &call)?;
        let all = self.core().meet(&call, |_| bytes(elements))?;
        fill(elements, Some(tree(&gathered(&all), op)), &call, self)
    }

    /// Combine the `elements` of ranks 0 to this one, left to right, in place.
    ///
    /// # Errors
    /// As [`reduce`](Self::reduce).
    #[track_caller]
    pub fn scan<T: Element>(&self, elements: &mut [T], op: Op) -> Result<()> {
        let call = collective::<T>("World::scan", 4 + 16 * op as u64, 0, elements.len());
        self.check_op::<T>(op, &call)?;
        let me = self.rank();
        let all = self.core().meet(&call, |to| if to >= me { bytes(elements) } else { Vec::new() })?;
        let parts = gathered::<T>(&all[..=me]);
        let (first, rest) =
            parts.split_first().ok_or_else(|| Error::new(Class::Intern, "a scan of nobody"))?;
        fill(elements, Some(first.clone()), &call, self)?;
        rest.iter().for_each(|part| combine(elements, part, op));
        Ok(())
    }

    /// Everybody's `elements`, by rank, at `root`; lengths may differ.
    ///
    /// # Errors
    /// As [`broadcast`](Self::broadcast).
    #[track_caller]
    pub fn gather<T: Element>(&self, root: usize, elements: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        let call = collective::<T>("World::gather", 5, root, 0);
        self.check_root(root, &call)?;
        let all = self.core().meet(&call, |to| if to == root { bytes(elements) } else { Vec::new() })?;
        Ok((self.rank() == root).then(|| gathered(&all)))
    }

    /// Everybody's `elements`, by rank, on every rank; lengths may differ.
    ///
    /// # Errors
    /// As [`World::barrier`].
    #[track_caller]
    pub fn allgather<T: Element>(&self, elements: &[T]) -> Result<Vec<Vec<T>>> {
        let call = collective::<T>("World::allgather", 6, 0, 0);
        Ok(gathered(&self.core().meet(&call, |_| bytes(elements))?))
    }

    /// Give each rank its own elements, `[target]`; get what each gave to this one, `[origin]`. Lengths may differ.
    ///
    /// # Errors
    /// `SIZE` where there is not one list a rank; else as [`World::barrier`].
    #[track_caller]
    pub fn all_to_all<T: Element>(&self, elements: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        let call = collective::<T>("World::all_to_all", 7, 0, 0);
        if elements.len() != self.size() {
            let message = format!("{} lists for {} ranks: give one list a rank", elements.len(), self.size());
            return Err(call.error(self.core(), Class::Size, message));
        }
        Ok(gathered(&self.core().meet(&call, |to| bytes(&elements[to]))?))
    }

    fn check_root(&self, root: usize, call: &Call) -> Result<()> {
        if root < self.size() {
            return Ok(());
        }
        let message = format!("root {root} is not one of the world's {} ranks", self.size());
        Err(call.error(self.core(), Class::Rank, message))
    }

    fn check_op<T: Element>(&self, op: Op, call: &Call) -> Result<()> {
        let element = element_type::<T>();
        if op.takes(element) {
            return Ok(());
        }
        Err(call.error(self.core(), Class::Op, format!("{op} is not defined for {:?}", element.kind)))
    }
}

/// Ranks that ask for different element types, roots, operators or lengths are in different calls.
#[track_caller]
fn collective<T: Element>(name: &'static str, code: u64, root: usize, len: usize) -> Call {
    let element = element_type::<T>();
    let kind = match element.kind {
        ElementKind::Opaque => 0,
        ElementKind::Scalar(scalar) => 1 + scalar as u64,
        ElementKind::ValueAt(value, index) => (1 + value as u64) << 8 | (1 + index as u64) << 16,
    };
    let hash = [code, root as u64, len as u64, u64::from(element.size) << 24 | kind]
        .iter()
        .fold(0xc0_11ec, |hash: u64, part| (hash ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    Call { hash, name: Some(name), site: Location::caller() }
}

/// `elements` become `result`, which has as many unless lengths that differ look alike in a word.
fn fill<T: Element>(elements: &mut [T], result: Option<Vec<T>>, call: &Call, world: &World) -> Result<()> {
    match result.filter(|result| result.len() == elements.len()) {
        Some(result) => {
            elements.copy_from_slice(&result);
            Ok(())
        }
        None => Err(call.error(world.core(), Class::Size, "ranks gave different lengths")),
    }
}

fn bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(elements).to_vec()
}

fn gathered<T: Element>(all: &[Vec<u8>]) -> Vec<Vec<T>> {
    all.iter()
        .map(|bytes| {
            let mut elements = vec![T::zeroed(); bytes.len() / size_of::<T>()];
            let len = elements.len() * size_of::<T>();
            bytemuck::cast_slice_mut(&mut elements).copy_from_slice(&bytes[..len]);
            elements
        })
        .collect()
}

/// Combine all parts over a balanced binary tree: each half first, then the right one into the left one.
fn tree<T: Element>(parts: &[Vec<T>], op: Op) -> Vec<T> {
    match parts {
        [] => Vec::new(),
        [one] => one.clone(),
        many => {
            let (left, right) = many.split_at(many.len().div_ceil(2));
            let mut left = tree(left, op);
            combine(&mut left, &tree(right, op), op);
            left
        }
    }
}

fn combine<T: Element>(into: &mut [T], from: &[T], op: Op) {
    let count = into.len().min(from.len());
    // SAFETY: two slices of at least `count` elements each, of a type that the operator takes (checked by the callers).
    unsafe {
        kernel::combine(
            op,
            element_type::<T>(),
            into.as_mut_ptr().cast(),
            &Datatype::run(0..count),
            from.as_ptr().cast(),
        );
    }
}
