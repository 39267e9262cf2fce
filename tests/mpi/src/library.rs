//! The functions of the library. Handles are numbers of this file alone, but for the constants of
//! MPICH's header.

use crate::{SERVER, number, send};
use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SUCCESS: c_int = 0;
const OTHER: c_int = 15;
/// MPI_COMM_WORLD, and what it is split into.
const WORLD: c_int = 0x4400_0000;
const ALL: c_int = 1;
const HOST: c_int = 2;

struct Rank {
    stream: UnixStream,
    rank: usize,
    size: usize,
    here: usize,
    finalized: bool,
}

static RANK: Mutex<Option<Rank>> = Mutex::new(None);

fn this() -> MutexGuard<'static, Option<Rank>> {
    RANK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect() -> io::Result<Rank> {
    let variable = |name: &str| std::env::var(name).map_err(io::Error::other);
    let mut stream = UnixStream::connect(variable(SERVER)?)?;
    let rank = variable("PMI_RANK")?.parse().map_err(io::Error::other)?;
    send(&mut stream, rank)?;
    let (size, here) = (number(&mut stream)?, number(&mut stream)?);
    Ok(Rank { stream, rank, size, here, finalized: false })
}

/// Calls `act` with this rank.
fn with(act: impl FnOnce(&mut Rank) -> io::Result<()>) -> c_int {
    match this().as_mut().map(act) {
        Some(Ok(())) => SUCCESS,
        _ => OTHER,
    }
}

/// Writes through a pointer that the caller has given.
///
/// # Safety
/// The pointer is valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> c_int {
    // SAFETY: the caller's.
    unsafe { to.write(value) };
    SUCCESS
}

/// Writes a text and its length.
///
/// # Safety
/// There is room for the text and a zero, and for the length.
unsafe fn write(text: &str, to: *mut c_char, len: *mut c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
        give(len, text.len() as c_int)
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        /// The function of MPI of this name.
        ///
        /// # Safety
        /// The arguments are as MPI requires.
        #[allow(unused_unsafe, reason = "some take no pointer")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller's.
            unsafe { $body }
        }
    )*};
}

functions! {
    MPI_Get_library_version(text: *mut c_char, len: *mut c_int) {
        write("A stand-in for tests, with the interface of MPICH", text, len)
    }
    MPI_Error_string(code: c_int, text: *mut c_char, len: *mut c_int) {
        write(&format!("the stand-in's error {code}"), text, len)
    }
    MPI_Initialized(flag: *mut c_int) { give(flag, c_int::from(this().is_some())) }
    MPI_Finalized(flag: *mut c_int) {
        give(flag, c_int::from(this().as_ref().is_some_and(|rank| rank.finalized)))
    }
    MPI_Init_thread(_argc: *mut c_int, _argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) {
        match connect() {
            Ok(rank) => {
                *this() = Some(rank);
                give(provided, required)
            }
            Err(_) => OTHER,
        }
    }
    MPI_Finalize() {
        with(|rank| {
            rank.finalized = true;
            rank.stream.shutdown(std::net::Shutdown::Both)
        })
    }
    MPI_Comm_rank(_comm: c_int, to: *mut c_int) { with(|rank| { give(to, rank.rank as c_int); Ok(()) }) }
    MPI_Comm_size(comm: c_int, to: *mut c_int) {
        with(|rank| { give(to, (if comm == HOST { rank.here } else { rank.size }) as c_int); Ok(()) })
    }
    MPI_Comm_dup(comm: c_int, to: *mut c_int) { if comm == WORLD { give(to, ALL) } else { OTHER } }
    MPI_Comm_split_type(_comm: c_int, kind: c_int, _key: c_int, _info: c_int, to: *mut c_int) {
        if kind == 1 { give(to, HOST) } else { OTHER }
    }
    MPI_Comm_free(comm: *mut c_int) { give(comm, 0) }
    MPI_Allgather(from: *const c_void, bytes: c_int, _byte: c_int, to: *mut c_void, _each: c_int, _type: c_int, comm: c_int) {
        with(|rank| {
            let bytes = bytes as usize;
            let part = std::slice::from_raw_parts(from.cast::<u8>(), bytes);
            let ranks = if comm == HOST { rank.here } else { rank.size };
            let all = std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes * ranks);
            send(&mut rank.stream, usize::from(comm == HOST))?;
            send(&mut rank.stream, bytes)?;
            rank.stream.write_all(part)?;
            rank.stream.read_exact(all)
        })
    }
}
