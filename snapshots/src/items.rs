//! [`Items`]: the list of the state that each rank of a program saves.

use crate::cells::{file_runs, stored_boxes};
use crate::field::Field;
use crate::header;
use fencepost_planner::grid::Block;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::{Element, Window, World};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest name of an item in bytes.
const NAME_MAX: usize = 64;

/// The list of a program's state: blocks, parts and values, each with a name.
///
/// A program lists its state in one place, a function that returns the items. The program passes
/// the items both to [`Snapshots::restore`](crate::Snapshots::restore), which writes to them, and
/// to [`Snapshots::offer`](crate::Snapshots::offer), which only reads them:
///
/// ```
/// # mod fencepost {
/// #     pub use fencepost_planner::{Error, Result, grid};
/// #     pub use fencepost_runtime::*;
/// #     pub use fencepost_snapshots as snapshots;
/// # }
/// use fencepost::grid::Block;
/// use fencepost::snapshots::Items;
///
/// fn state<'a>(block: &'a Block<2>, heights: &'a mut [f64], time: &'a mut f64) -> Items<'a> {
///     Items::new().block("heights", block, heights).value("time", time)
/// }
/// # let _ = state;
/// ```
///
/// All ranks list the same items in the same order. A name consists of letters, digits, `-`, `_`
/// and `.`, since it becomes the name of a file.
#[derive(Default)]
#[must_use = "a list of items does nothing by itself"]
pub struct Items<'a> {
    all: Vec<Item<'a>>,
}

/// One item.
pub(crate) struct Item<'a> {
    pub(crate) name: &'a str,
    /// NumPy's name of the element type.
    pub(crate) element: String,
    /// The size of an element in bytes.
    pub(crate) size: usize,
    pub(crate) shape: Shape,
    content: Box<dyn Content + 'a>,
}

/// The kind of an item, with its size on this rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Shape {
    /// The block of an array that is spread over all ranks.
    Block { global: Vec<usize>, grid: Vec<usize>, origin: Vec<usize>, extent: Vec<usize> },
    /// A list of elements that has the same length each time the program runs.
    Part { len: usize },
    /// A list of elements whose length may change.
    List { len: usize },
    /// One element that is the same on all ranks.
    Value,
}

impl Shape {
    /// Returns the number of elements that this rank saves.
    pub(crate) fn elements(&self) -> usize {
        match self {
            Shape::Block { extent, .. } => extent.iter().product(),
            Shape::Part { len } | Shape::List { len } => *len,
            Shape::Value => 1,
        }
    }
}

/// Describes the properties that are the same on all ranks, for errors.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Block { global, .. } => write!(f, "a block of an array of {global:?} cells"),
            Shape::Part { len } => write!(f, "a part of {len} elements"),
            Shape::List { .. } => write!(f, "a vector"),
            Shape::Value => write!(f, "a value"),
        }
    }
}

/// The elements of an item, without their type.
trait Content {
    /// Passes the bytes that this rank saves to `each`, in order.
    fn bytes(&self, each: &mut dyn FnMut(&[u8]));

    /// Returns the boxes of the array that a block stores: its own cells and those of its halo.
    /// Each box is given by its first cell and its extent.
    fn boxes(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        Vec::new()
    }

    /// Replaces the cells of a box that is inside the `number`-th of `boxes`. If the item is not a
    /// block, replaces all elements instead.
    fn put(&mut self, number: usize, place: (&[usize], &[usize]), bytes: &[u8]) -> Result<(), String>;

    /// Reads the block's cells from the file of the whole array.
    fn load(&mut self, field: &Field) -> Result<()> {
        let _ = field;
        Err(Error::new(ErrorClass::Intern, "only a block is loaded from a file of its own"))
    }

    /// Returns an error if the item is the block of another rank, or if the local storage does not
    /// have the length of the block.
    fn check(&self, world: &World) -> Result<(), String> {
        let _ = world;
        Ok(())
    }
}

struct OfBlock<'a, T, const D: usize> {
    block: &'a Block<D>,
    cells: &'a mut [T],
}

impl<T: Element, const D: usize> Content for OfBlock<'_, T, D> {
    fn bytes(&self, each: &mut dyn FnMut(&[u8])) {
        self.block.rows().for_each(|row| each(bytemuck::cast_slice(row.of(self.cells))));
    }

    fn boxes(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let boxes = stored_boxes(self.block).into_iter();
        boxes.map(|stored| (stored.first.to_vec(), stored.extent.to_vec())).collect()
    }

    fn put(
        &mut self,
        number: usize,
        (origin, extent): (&[usize], &[usize]),
        bytes: &[u8],
    ) -> Result<(), String> {
        let stored = &stored_boxes(self.block)[number];
        // Local storage is treated as a file of an array whose rows include padding.
        let strides = self.block.strides();
        let rows: [usize; D] =
            std::array::from_fn(|d| if d == 0 { self.cells.len() } else { strides[d - 1] } / strides[d]);
        let inside: [usize; D] = std::array::from_fn(|d| origin[d] - stored.first[d]);
        let mut rest = bytes;
        for (first, cells) in file_runs(&rows, &inside, extent) {
            let run = &mut self.cells[stored.local + first as usize..][..cells];
            let (these, others) = rest.split_at(size_of_val(run));
            bytemuck::cast_slice_mut(run).copy_from_slice(these);
            rest = others;
        }
        Ok(())
    }

    fn load(&mut self, field: &Field) -> Result<()> {
        field.load(self.block, self.cells)
    }

    fn check(&self, world: &World) -> Result<(), String> {
        let (block, rank) = (self.block, world.rank());
        if block.ranks() != world.size() || block.of(rank).ok().as_ref() != Some(block) {
            return Err(format!(
                "is a block that is not the one of rank {rank} of {}: make it by `Block::new` of this world",
                world.size()
            ));
        }
        let (given, stored) = (self.cells.len(), block.len());
        if given == stored {
            return Ok(());
        }
        Err(format!("has {given} elements, where its block stores {stored}"))
    }
}

struct OfSlice<'a, T>(&'a mut [T]);

impl<T: Element> Content for OfSlice<'_, T> {
    fn bytes(&self, each: &mut dyn FnMut(&[u8])) {
        each(bytemuck::cast_slice(self.0));
    }

    fn put(&mut self, _: usize, _: (&[usize], &[usize]), bytes: &[u8]) -> Result<(), String> {
        bytemuck::cast_slice_mut(self.0).copy_from_slice(bytes);
        Ok(())
    }
}

struct OfList<'a, T>(&'a mut Vec<T>);

impl<T: Element> Content for OfList<'_, T> {
    fn bytes(&self, each: &mut dyn FnMut(&[u8])) {
        each(bytemuck::cast_slice(self.0));
    }

    fn put(&mut self, _: usize, _: (&[usize], &[usize]), bytes: &[u8]) -> Result<(), String> {
        let elements = bytes.len() / size_of::<T>();
        self.0.clear();
        let room = self.0.try_reserve_exact(elements);
        room.map_err(|_| format!("there is no memory for {elements} elements"))?;
        self.0.resize(elements, T::zeroed());
        bytemuck::cast_slice_mut(self.0).copy_from_slice(bytes);
        Ok(())
    }
}

/// The argument of [`Items::part`]: a fixed number of elements, or a vector.
pub trait Elements<'a> {
    #[doc(hidden)]
    fn add(self, name: &'a str, items: Items<'a>) -> Items<'a>;
}

impl<'a, T: Element> Elements<'a> for &'a mut [T] {
    fn add(self, name: &'a str, items: Items<'a>) -> Items<'a> {
        items.with::<T>(name, Shape::Part { len: self.len() }, OfSlice(self))
    }
}

impl<'a, T: Element, const N: usize> Elements<'a> for &'a mut [T; N] {
    fn add(self, name: &'a str, items: Items<'a>) -> Items<'a> {
        self.as_mut_slice().add(name, items)
    }
}

impl<'a, T: Element> Elements<'a> for &'a mut Window<T> {
    fn add(self, name: &'a str, items: Items<'a>) -> Items<'a> {
        (&mut **self).add(name, items)
    }
}

impl<'a, T: Element> Elements<'a> for &'a mut Vec<T> {
    fn add(self, name: &'a str, items: Items<'a>) -> Items<'a> {
        items.with::<T>(name, Shape::List { len: self.len() }, OfList(self))
    }
}

impl<'a> Items<'a> {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds this rank's block of an array that is spread over all ranks. `cells` is the block's
    /// local storage, such as a window.
    ///
    /// The block's own cells are saved. If all ranks share a folder, the whole array is one `.npy`
    /// file in it. Cells are identified by their global index. So they can be restored with another
    /// number of ranks, another grid, other halos and another placement. The cells of the halo are
    /// restored from the saved cells of the ranks that own them.
    pub fn block<T: Element, const D: usize>(
        self,
        name: &'a str,
        block: &'a Block<D>,
        cells: &'a mut [T],
    ) -> Self {
        let shape = Shape::Block {
            global: block.global().to_vec(),
            grid: block.dims().to_vec(),
            origin: block.origin().to_vec(),
            extent: block.extent().to_vec(),
        };
        self.with::<T>(name, shape, OfBlock { block, cells })
    }

    /// Adds elements that belong to this rank only. Only the same number of ranks can restore them.
    /// `elements` is a slice, an array, a window or a vector. The length of a vector may change;
    /// slices, arrays and windows must have the same length as when they were saved.
    pub fn part(self, name: &'a str, elements: impl Elements<'a>) -> Self {
        elements.add(name, self)
    }

    /// Adds a value that is the same on all ranks, such as a time. Any number of ranks can restore
    /// it.
    pub fn value<T: Element>(self, name: &'a str, value: &'a mut T) -> Self {
        self.with::<T>(name, Shape::Value, OfSlice(std::slice::from_mut(value)))
    }

    fn with<T: Element>(mut self, name: &'a str, shape: Shape, content: impl Content + 'a) -> Self {
        let (element, size, content) = (header::descr::<T>(), size_of::<T>(), Box::new(content));
        self.all.push(Item { name, element, size, shape, content });
        self
    }

    pub(crate) fn all(&self) -> &[Item<'a>] {
        &self.all
    }

    pub(crate) fn all_mut(&mut self) -> &mut [Item<'a>] {
        &mut self.all
    }

    /// Returns an error if a name cannot be the name of a file or occurs twice, or if a block is
    /// not this rank's block.
    pub(crate) fn check(&self, world: &World) -> Result<(), String> {
        for (at, item) in self.all.iter().enumerate() {
            let name = item.name;
            if !is_file_name(name) {
                return Err(format!(
                    "the item {name:?} cannot become a file: a name has 1 to {NAME_MAX} letters, digits, `-`, `_` and `.`, and begins with a letter or a digit"
                ));
            }
            if self.all[..at].iter().any(|other| other.name == name) {
                return Err(format!("two items are named `{name}`"));
            }
            item.content.check(world).map_err(|why| format!("the item `{name}` {why}"))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|item| (item.name, &item.element, &item.shape))).finish()
    }
}

impl Item<'_> {
    /// Returns the number of bytes that this rank saves.
    pub(crate) fn len(&self) -> usize {
        self.shape.elements() * self.size
    }

    /// Appends the bytes that this rank saves.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) {
        self.content.bytes(&mut |bytes| out.extend_from_slice(bytes));
    }

    /// Returns the checksum of the bytes that this rank saves.
    pub(crate) fn checksum(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.content.bytes(&mut |bytes| hasher.update(bytes));
        hasher.finalize()
    }

    /// Returns the boxes of the array that a block stores: its own cells and those of its halo.
    /// Each box is given by its first cell and its extent.
    pub(crate) fn boxes(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        self.content.boxes()
    }

    /// Replaces the cells of a box that is inside the `number`-th of `boxes`. If the item is not a
    /// block, replaces all elements instead.
    ///
    /// # Panics
    /// If `bytes` does not have the length of the box, or of the item if it is not a block. A
    /// vector accepts any whole number of elements.
    pub(crate) fn put(
        &mut self,
        number: usize,
        place: (&[usize], &[usize]),
        bytes: &[u8],
    ) -> Result<(), String> {
        self.content.put(number, place, bytes)
    }

    /// Reads a block's cells, including those of its halo, from the file of the whole array.
    pub(crate) fn load(&mut self, field: &Field) -> Result<()> {
        self.content.load(field)
    }
}

/// Returns whether an item may have this name, which must be a valid file name on any file system.
pub(crate) fn is_file_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=NAME_MAX).contains(&name.len())
        && name.chars().all(allowed)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}
