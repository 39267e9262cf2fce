//! [`Family`]: the three binary interfaces of MPI, and the constants that their headers define.

use libloading::os::unix::Library;
use std::ffi::{c_int, c_void};
use std::fmt;

/// A binary interface of MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// The interface of Open MPI.
    OpenMpi,
    /// The interface that MPICH and the MPIs derived from it have in common since 2013.
    Mpich,
    /// The interface of the MPI standard, version 5.
    Standard,
}

impl Family {
    /// Determines the interface of a library from the symbols of the library.
    pub(super) fn of(library: &Library) -> Self {
        // SAFETY: the symbol's address is not used.
        let has = |symbol: &[u8]| unsafe { library.get::<*mut c_void>(symbol) }.is_ok();
        if has(b"ompi_mpi_comm_world\0") {
            Family::OpenMpi
        } else if standard_version(library) == Some(1) {
            Family::Standard
        } else {
            Family::Mpich
        }
    }
}

/// Returns the major version of the standard interface that a library has. MPICH's `libmpi.so` has
/// this function as well, and reports version -1.
fn standard_version(library: &Library) -> Option<c_int> {
    type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    // SAFETY: a function of this name has this type (MPI 5.0, 20.2), and may be called before MPI
    // is initialised.
    unsafe {
        let version = library.get::<Version>(b"MPI_Abi_get_version\0").ok()?;
        let (mut major, mut minor) = (-1, -1);
        (version(&mut major, &mut minor) == 0).then_some(major)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::OpenMpi => "Open MPI",
            Family::Mpich => "MPICH",
            Family::Standard => "the standard interface",
        })
    }
}

/// The constants that this module needs.
#[derive(Clone, Copy)]
pub(super) struct Constants<H> {
    /// MPI_COMM_WORLD.
    pub(super) world: H,
    /// MPI_BYTE.
    pub(super) byte: H,
    /// MPI_INFO_NULL.
    pub(super) no_info: H,
    /// MPI_COMM_TYPE_SHARED.
    pub(super) shared: c_int,
    /// MPI_THREAD_SERIALIZED.
    pub(super) serialized: c_int,
    /// MPI_ANY_SOURCE.
    pub(super) any_source: c_int,
    /// MPI_ERRORS_RETURN.
    pub(super) errors_return: H,
    /// The index of MPI_SOURCE among the numbers of an `MPI_Status`.
    pub(super) source: usize,
}

/// A handle that is a pointer.
pub(super) type Pointer = *mut c_void;

/// The constants of the MPICH family.
pub(super) const MPICH: Constants<c_int> = Constants {
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    no_info: 0x1c00_0000,
    shared: 1,
    serialized: 2,
    any_source: -2,
    errors_return: 0x5400_0001,
    source: 2,
};

/// The constants of the standard interface.
pub(super) const STANDARD: Constants<Pointer> = Constants {
    world: std::ptr::without_provenance_mut(0x101),
    byte: std::ptr::without_provenance_mut(0x247),
    no_info: std::ptr::without_provenance_mut(0x130),
    shared: 221,
    serialized: 2048,
    any_source: -1,
    errors_return: std::ptr::without_provenance_mut(0x143),
    source: 0,
};

/// The constants of Open MPI, without the handles, which are addresses of objects.
const OPEN_MPI: Constants<()> = Constants {
    world: (),
    byte: (),
    no_info: (),
    shared: 0,
    serialized: 2,
    any_source: -1,
    errors_return: (),
    source: 0,
};

/// Returns the constants of Open MPI.
///
/// # Errors
/// Fails if the library lacks one of the objects.
pub(super) fn open_mpi(library: &Library) -> Result<Constants<Pointer>, libloading::Error> {
    let object = |symbol: &[u8]| -> Result<Pointer, libloading::Error> {
        // SAFETY: the object itself is neither read nor written here: its address is the handle.
        Ok(unsafe { library.get::<Pointer>(symbol) }?.into_raw().cast())
    };
    Ok(Constants {
        world: object(b"ompi_mpi_comm_world\0")?,
        byte: object(b"ompi_mpi_byte\0")?,
        no_info: object(b"ompi_mpi_info_null\0")?,
        errors_return: object(b"ompi_mpi_errors_return\0")?,
        shared: OPEN_MPI.shared,
        serialized: OPEN_MPI.serialized,
        any_source: OPEN_MPI.any_source,
        source: OPEN_MPI.source,
    })
}

/// Returns each constant that is a number, with its name in the headers of MPI. For a comparison
/// with the headers.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn numbers(family: Family) -> Vec<(&'static str, usize)> {
    fn of<H>(constants: Constants<H>, handle: impl Fn(H) -> Option<usize>) -> Vec<(&'static str, usize)> {
        let handles = [
            ("MPI_COMM_WORLD", constants.world),
            ("MPI_BYTE", constants.byte),
            ("MPI_INFO_NULL", constants.no_info),
            ("MPI_ERRORS_RETURN", constants.errors_return),
        ];
        let handles = handles.into_iter().filter_map(|(name, value)| Some((name, handle(value)?)));
        let kinds = [
            ("MPI_COMM_TYPE_SHARED", constants.shared as usize),
            ("MPI_THREAD_SERIALIZED", constants.serialized as usize),
            ("MPI_ANY_SOURCE", constants.any_source as usize),
            ("MPI_SOURCE", constants.source),
        ];
        handles.chain(kinds).collect()
    }
    match family {
        Family::Mpich => of(MPICH, |handle| Some(handle as usize)),
        Family::Standard => of(STANDARD, |handle: Pointer| Some(handle.addr())),
        // The handles are addresses of objects in the library.
        Family::OpenMpi => of(OPEN_MPI, |()| None),
    }
}
