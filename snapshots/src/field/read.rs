//! Reads the cells of a block from a file, through a bounded buffer.

use super::{BUFFER, DIRECT, Field};
use crate::cells::stored_boxes;
use crate::header::{self, Header};
use fencepost_planner::grid::Block;
use fencepost_runtime::Element;
use std::io;
use std::os::unix::fs::FileExt;

/// The largest gap in bytes between two runs that are read by one call. Reading this many bytes
/// takes as long as a system call.
const GAP_MAX: u64 = 4 << 10;
/// The largest number of runs in the buffer.
const RUNS_MAX: usize = 1 << 15;
/// The number of cells of a column that are stored before any cells of the next column. All these
/// cells are in different cache lines, so the stores write to this number of lines in turn.
const SCATTERED: usize = 16;

/// The conversion of a file's elements to cells.
pub(super) struct Conversion<T> {
    /// Converts elements, and stores them in every `stride`-th cell, beginning with the first.
    convert: fn(elements: &[u8], cells: &mut [T], stride: usize),
    /// Whether an element has the same bytes as its cell, apart from their order (`swaps`).
    is_same: bool,
    /// Whether the high byte of an element is first in the file, so that the bytes have to be
    /// swapped.
    swaps: bool,
}

/// Returns the conversion of a file's elements to cells, or `None` if it is not exact for every
/// value.
pub(super) fn conversion<T: Element>(header: &Header) -> Option<Conversion<T>> {
    let (from, to) = (header.descr.replace('>', "<"), header::descr::<T>());
    let swaps = header.descr.starts_with('>');
    if from == to {
        return Some(Conversion { convert: copy::<T>, is_same: true, swaps });
    }
    macro_rules! exact {
        ($($to:ident from $($from:ident)*;)*) => {
            $($(
                if (&from, &to) == (&header::descr::<$from>(), &header::descr::<$to>()) {
                    return Some(Conversion { convert: widen::<$from, $to, T>, is_same: false, swaps });
                }
            )*)*
        };
    }
    exact! {
        f64 from f32 i32 i16 i8 u32 u16 u8;
        f32 from i16 i8 u16 u8;
        i64 from i32 i16 i8 u32 u16 u8;
        i32 from i16 i8 u16 u8;
        i16 from i8 u8;
        u64 from u32 u16 u8;
        u32 from u16 u8;
        u16 from u8;
    }
    None
}

fn copy<T: Element>(elements: &[u8], cells: &mut [T], stride: usize) {
    if stride == 1 {
        let cells = &mut cells[..elements.len() / size_of::<T>()];
        bytemuck::cast_slice_mut(cells).copy_from_slice(elements);
    } else {
        let elements = elements.chunks_exact(size_of::<T>());
        let pairs = elements.zip(cells.iter_mut().step_by(stride));
        pairs.for_each(|(element, cell)| *cell = bytemuck::pod_read_unaligned(element));
    }
}

/// Converts elements of type `F` to cells of type `T`. `T` and `U` are the same type.
fn widen<F: Element, U: Element + From<F>, T: Element>(elements: &[u8], cells: &mut [T], stride: usize) {
    let cells: &mut [U] = bytemuck::cast_slice_mut(cells);
    let elements = elements.chunks_exact(size_of::<F>());
    let set = |(element, cell): (&[u8], &mut U)| *cell = U::from(bytemuck::pod_read_unaligned(element));
    if stride == 1 {
        elements.zip(cells).for_each(set);
    } else {
        elements.zip(cells.iter_mut().step_by(stride)).for_each(set);
    }
}

fn swap(elements: &mut [u8], size: usize) {
    elements.chunks_exact_mut(size).for_each(<[u8]>::reverse);
}

/// Reads all cells that `block` stores.
pub(super) fn read<T: Element, const D: usize>(
    field: &Field,
    conversion: Conversion<T>,
    block: &Block<D>,
    cells: &mut [T],
) -> io::Result<()> {
    let (local, global) = (block.strides(), block.global());
    let is_fortran = field.header.fortran && D > 1;
    // The dimensions, in the order of the file: the one that varies fastest is first.
    let order: [usize; D] = std::array::from_fn(|d| if is_fortran { d } else { D - 1 - d });
    let mut strides = [1; D];
    for d in 1..D {
        strides[order[d]] = strides[order[d - 1]] * global[order[d - 1]] as u64;
    }
    let stride = local[order[0]];
    let (buffer, spans, runs) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = Reader { field, conversion, cells, stride, buffer, filled: 0, spans, runs };
    for stored in stored_boxes(block) {
        let tile = if is_fortran { tile(field.header.size, stored.extent) } else { stored.extent };
        let tiles = std::array::from_fn(|d| stored.extent[d].div_ceil(tile[d]));
        for number in indices(tiles, order) {
            let origin: [usize; D] = std::array::from_fn(|d| number[d] * tile[d]);
            let mut extent: [usize; D] = std::array::from_fn(|d| tile[d].min(stored.extent[d] - origin[d]));
            let len = std::mem::replace(&mut extent[order[0]], 1);
            for at in indices(extent, order) {
                let inside = (0..D).map(|d| origin[d] + at[d]);
                let first = inside.clone().zip(0..).map(|(at, d)| (stored.first[d] + at) as u64 * strides[d]);
                let place = inside.zip(local).map(|(at, stride)| at * stride);
                reader.add(first.sum(), stored.local + place.sum::<usize>(), len)?;
            }
        }
    }
    reader.finish()
}

/// Returns the extent of the tiles in which a box is read from a file in Fortran order. The last
/// dimension is the fastest in memory and the slowest in the file. So a tile has only a few cells
/// along the last dimension, which share cache lines. It is long along the first dimension, since
/// cells along this dimension are read in one piece.
fn tile<const D: usize>(size: usize, extent: [usize; D]) -> [usize; D] {
    let mut tile = extent;
    let cells = BUFFER / size;
    tile[0] = extent[0].min((cells / 64).max(1));
    if D == 3 {
        tile[2] = extent[2].min(SCATTERED);
        tile[1] = extent[1].min((cells / tile[0] / tile[2]).max(1));
    }
    tile
}

/// Returns the indices of a box; dimension `order[0]` varies fastest.
fn indices<const D: usize>(
    extent: [usize; D],
    order: [usize; D],
) -> impl Iterator<Item = [usize; D]> + use<D> {
    (0..extent.iter().product()).map(move |number: usize| {
        let (mut rest, mut at) = (number, [0; D]);
        for d in order {
            at[d] = rest % extent[d];
            rest /= extent[d];
        }
        at
    })
}

/// Elements that are consecutive in the file, and in the buffer.
struct Run {
    /// The offset of the first element in the buffer.
    offset: usize,
    /// The index of the first element's cell.
    cell: usize,
    len: usize,
}

/// Bytes of the file that are read by one call.
struct Span {
    /// The offset of the first byte in the file.
    start: u64,
    /// The offset of the first byte in the buffer. The span ends where the next span begins.
    offset: usize,
}

/// A reader of runs of elements. It reads a long run at once. Short runs are read together when the
/// buffer is full.
struct Reader<'a, T> {
    field: &'a Field,
    conversion: Conversion<T>,
    cells: &'a mut [T],
    /// The distance in `cells` of elements that are consecutive in the file.
    stride: usize,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that belong to `spans`.
    filled: usize,
    spans: Vec<Span>,
    runs: Vec<Run>,
}

impl<T: Element> Reader<'_, T> {
    /// Adds a run of `len` elements that begins with element `first` of the file. That element is
    /// read to `cells[cell]`.
    fn add(&mut self, first: u64, cell: usize, len: usize) -> io::Result<()> {
        let Header { data, size, .. } = self.field.header;
        let start = data + first * size as u64;
        if self.conversion.is_same && self.stride == 1 && len * size >= DIRECT {
            let bytes = bytemuck::cast_slice_mut(&mut self.cells[cell..cell + len]);
            self.field.file.read_exact_at(bytes, start)?;
            if self.conversion.swaps {
                swap(bytes, size);
            }
            return Ok(());
        }
        // An element may be larger than the buffer.
        let most = (BUFFER / size).max(1);
        for from in (0..len).step_by(most) {
            let len = most.min(len - from);
            self.put(start + (from * size) as u64, cell + from * self.stride, len)?;
        }
        Ok(())
    }

    /// Adds a run that fits into the buffer.
    fn put(&mut self, start: u64, cell: usize, len: usize) -> io::Result<()> {
        let bytes = len * self.field.header.size;
        let gap = self.spans.last().and_then(|span| {
            let end = span.start + (self.filled - span.offset) as u64;
            start.checked_sub(end).filter(|&gap| gap <= GAP_MAX)
        });
        let mut offset = self.filled + gap.unwrap_or(0) as usize;
        let is_full = offset + bytes > BUFFER || self.runs.len() == RUNS_MAX;
        if is_full {
            self.finish()?;
            offset = 0;
        }
        if is_full || gap.is_none() {
            self.spans.push(Span { start, offset });
        }
        self.runs.push(Run { offset, cell, len });
        self.filled = offset + bytes;
        if self.buffer.len() < self.filled {
            self.buffer.resize(self.filled, 0);
        }
        Ok(())
    }

    /// Reads all runs in the buffer, and sets their cells.
    fn finish(&mut self) -> io::Result<()> {
        let size = self.field.header.size;
        let ends = self.spans.iter().skip(1).map(|span| span.offset).chain([self.filled]);
        for (span, end) in self.spans.iter().zip(ends) {
            self.field.file.read_exact_at(&mut self.buffer[span.offset..end], span.start)?;
        }
        if self.conversion.swaps {
            let runs = self.runs.iter();
            runs.for_each(|run| swap(&mut self.buffer[run.offset..][..run.len * size], size));
        }
        let longest = self.runs.iter().map(|run| run.len).max().unwrap_or(0);
        let at_once = if self.stride == 1 { longest } else { SCATTERED };
        for from in (0..longest).step_by(at_once.max(1)) {
            for run in self.runs.iter().filter(|run| run.len > from) {
                let elements = &self.buffer[run.offset + from * size..][..at_once.min(run.len - from) * size];
                let cells = &mut self.cells[run.cell + from * self.stride..];
                (self.conversion.convert)(elements, cells, self.stride);
            }
        }
        self.filled = 0;
        self.spans.clear();
        self.runs.clear();
        Ok(())
    }
}
