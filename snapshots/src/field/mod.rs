//! [`Field`]: an array in a `.npy` file. Each rank reads and writes the cells of its block in the
//! file.

mod read;
mod write;

use crate::header::{self, Header};
use fencepost_planner::grid::Block;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::{Element, World};
use std::fs::File;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};

const _: () = assert!(cfg!(target_endian = "little"), "the elements of memory are written as they are");

/// The size in bytes of the buffer with which a rank reads or writes.
const BUFFER: usize = 4 << 20;
/// Runs of consecutive elements of this many bytes or more are read or written without the buffer.
const DIRECT: usize = 16 << 10;

/// An array in a `.npy` file of NumPy. All ranks read or write the file at the same time. Each rank
/// accesses the cells of its [`Block`].
///
/// ```
/// # mod fencepost {
/// #     pub use fencepost_planner::{Error, Result, grid};
/// #     pub use fencepost_runtime::*;
/// #     pub use fencepost_snapshots as snapshots;
/// # }
/// use fencepost::grid::Block;
/// use fencepost::snapshots::Field;
///
/// # fn main() -> fencepost::Result<()> {
/// # let path = std::env::temp_dir().join(format!("field-{}.npy", std::process::id()));
/// # let path = &path;
/// # #[cfg(any())]
/// let path = "heights.npy";
/// fencepost::ranks(4).run(|world| {
///     let block = Block::new(world, [40, 60])?.halo(1)?;
///     let mut heights = world.window::<f64>(block.len())?;
///     block.fill(&mut heights, |[i, j]| (i * j) as f64);
///     Field::save(world, &block, &heights, path)?; // numpy.load("heights.npy") has shape (40, 60)
///     Ok(())
/// })?;
/// // Any other number of ranks, and another halo.
/// fencepost::ranks(3).run(|world| {
///     let block = Block::new(world, [40, 60])?.halo(2)?;
///     let mut heights = world.window::<f64>(block.len())?;
///     Field::open(path)?.load(&block, &mut heights)?; // the halo, too: no exchange is needed
///     let [i, j] = block.origin();
///     assert_eq!(heights[block.index([3, 5])], ((i + 3) * (j + 5)) as f64);
///     Ok(())
/// })
/// # .and_then(|()| Ok(std::fs::remove_file(path)?))
/// # }
/// ```
///
/// The shape of the array is that of the block's [`global`](Block::global) cells. Rust's numbers
/// become NumPy's numbers of the same size. Any other element becomes a void of its size (`V24`),
/// which NumPy shows as bytes. `numpy.load(path).view(dtype)` turns voids into structures.
#[derive(Debug)]
pub struct Field {
    path: PathBuf,
    file: File,
    header: Header,
}

impl Field {
    /// Opens the file at `path`. Reads its header, and checks that no element is missing.
    ///
    /// # Errors
    /// IO if the file can't be read; FILE if it is not an array in NumPy's format, is truncated, or
    /// has elements that are neither numbers nor voids, such as text, dates or structures.
    ///
    /// # Cost
    /// Reads the header, which has at most 64 KiB.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let (path, site) = (path.as_ref(), Location::caller());
        let file =
            File::open(path).map_err(|error| failed(path, "the file cannot be read", error).at(site))?;
        Self::of(file, path)
    }

    /// Does the same as [`open`](Self::open) with a file that is already open.
    #[track_caller]
    pub(crate) fn of(file: File, path: &Path) -> Result<Self> {
        let site = Location::caller();
        let unreadable = |error| failed(path, "the file cannot be read", error).at(site);
        let invalid =
            |reason: &str| Error::new(ErrorClass::File, format!("{}: {reason}", path.display())).at(site);
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(invalid("it is not a file; give the path of a .npy file"));
        }
        let header = header::read(io::BufReader::new(&file)).map_err(|reason| invalid(&reason))?;
        let elements: u64 = header.shape.iter().map(|&cells| cells as u64).product();
        let (expected, found) = (header.data + elements * header.size as u64, metadata.len());
        if found < expected {
            return Err(invalid(&format!(
                "truncated: it ends inside its elements; its shape {:?} needs {expected} bytes, and it has {found}",
                header.shape
            )));
        }
        if found > expected {
            return Err(invalid(&format!(
                "{} bytes follow the {elements} elements of its shape {:?}",
                found - expected,
                header.shape
            )));
        }
        Ok(Self { path: path.into(), file, header })
    }

    /// Returns the open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the number of elements along each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// Reads the cells of `block` from the file to `cells`, the local storage of the block. These
    /// are the block's own cells and the cells of its halo that are in the array. In dimensions
    /// that wrap, the halo continues at the opposite edge. Cells of the halo that are not in the
    /// array, and padding, keep their values.
    ///
    /// The call is not collective, and needs no world. Each rank reads the cells that it stores,
    /// and several threads may use one field.
    ///
    /// The file may be in C or Fortran order and have any byte order. If the file has numbers of
    /// another type than the cells, they are converted, provided that the type of the cells can
    /// represent every number of the file's type. For example, i16 is converted to f64 and u8 to
    /// i32. But i64 and u64 are not converted to f64, and f64 is not converted to f32. Cells that
    /// are not numbers are read from voids of the same size.
    ///
    /// # Errors
    /// SIZE if the shape of the array is not that of the block's global cells, or `cells` does not
    /// have the length of the block; TYPE if numbers of the file's type can't be converted exactly;
    /// IO if the file can't be read; FILE if the file was truncated after it was opened. The cells
    /// are unchanged after SIZE or TYPE. After other errors, some cells may have been read.
    ///
    /// # Cost
    /// Reads the bytes of the block about once, in the order of the file, through a buffer of at
    /// most 4 MiB. Rows of 16 KiB or more are read directly into `cells`, if the file is in C order
    /// and has the type of the cells. Shorter rows are read together, with the gaps between them,
    /// if a gap has at most 4 KiB.
    #[track_caller]
    pub fn load<T: Element, const D: usize>(&self, block: &Block<D>, cells: &mut [T]) -> Result<()> {
        const { assert!(size_of::<T>() > 0, "an element of a field has at least one byte") };
        let site = Location::caller();
        let error =
            |class, reason: String| Error::new(class, format!("{}: {reason}", self.path.display())).at(site);
        if self.header.shape != block.global() {
            return Err(error(
                ErrorClass::Size,
                format!(
                    "an array of shape {:?} cannot be loaded to a block of an array of {:?} cells; the shapes must be equal",
                    self.header.shape,
                    block.global()
                ),
            ));
        }
        check_len(block, cells).map_err(|error| error.at(site))?;
        let Some(conversion) = read::conversion::<T>(&self.header) else {
            let (from, to) = (named(&self.header.descr), type_of::<T>());
            return Err(error(
                ErrorClass::Type,
                format!(
                    "its elements are {from}, and cells of {to} do not have all their values: load it to cells of {from}, \
                     or convert the file with NumPy's `astype`"
                ),
            ));
        };
        read::read(self, conversion, block, cells).map_err(|reason| match reason.kind() {
            io::ErrorKind::UnexpectedEof => {
                error(ErrorClass::File, "truncated: it has become shorter since it was opened".into())
            }
            _ => failed(&self.path, "the file cannot be read", reason).at(site),
        })
    }

    /// Writes the cells that each rank's `block` owns to one file at `path`. The file then has the
    /// whole array in C order. `cells` is the block's local storage. All ranks of `world` call
    /// this.
    ///
    /// An existing file at `path` is replaced when the whole new file is on the disk. Other
    /// programs, and this program after a crash, find either the old file or the complete new file.
    ///
    /// # Errors
    /// ARG if the block is not this rank's block of `world`, `path` names no file, or ranks give
    /// different arrays, element types or names; SIZE if `cells` does not have the length of the
    /// block; IO if a rank can't write its part, such as on a full disk, or if a rank does not see
    /// the file that rank 0 has created. If one rank returns an error, all ranks do, and the old
    /// file is unchanged. Otherwise as [`World::broadcast`].
    ///
    /// # Cost
    /// Each rank writes its cells once, and waits until they are on the disk. Rows that are
    /// adjacent in the file are written together, from a buffer of at most 4 MiB. In addition, the
    /// ranks agree three times on a few bytes.
    #[track_caller]
    pub fn save<T: Element, const D: usize>(
        world: &World,
        block: &Block<D>,
        cells: &[T],
        path: impl AsRef<Path>,
    ) -> Result<()> {
        const { assert!(size_of::<T>() > 0, "an element of a field has at least one byte") };
        write::save(world, block, cells, path.as_ref())
    }
}

/// Returns an error if `cells` does not have the length of the block's local storage.
fn check_len<T, const D: usize>(block: &Block<D>, cells: &[T]) -> Result<()> {
    let (given, stored) = (cells.len(), block.len());
    if given == stored {
        return Ok(());
    }
    let message = format!(
        "{given} cells were given, and the block stores {stored}: give a slice of `block.len()` elements"
    );
    Err(Error::new(ErrorClass::Size, message))
}

/// Returns the error of an operation on a file.
fn failed(path: &Path, what: &str, error: io::Error) -> Error {
    Error::new(ErrorClass::Io, format!("{}: {what}: {error}", path.display())).because(error)
}

/// Returns the name of a file's element type, for errors. Types of numbers have Rust's names, such
/// as f64.
fn named(descr: &str) -> String {
    let (order, kind) = descr.split_at(1);
    let (kind, size) = kind.split_at(1);
    let bits = || size.parse::<usize>().unwrap_or_default().saturating_mul(8);
    match kind {
        "V" => format!("voids of {size} bytes ('{descr}')"),
        _ if order == ">" => format!("{kind}{} with the high byte first ('{descr}')", bits()),
        _ => format!("{kind}{} ('{descr}')", bits()),
    }
}

/// Returns the name of the cells' element type, for errors.
fn type_of<T: Element>() -> String {
    format!("{} ('{}')", std::any::type_name::<T>(), header::descr::<T>())
}
