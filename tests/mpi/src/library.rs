//! The functions of the library. Handles are numbers that only this file knows, except for the
//! constants of MPICH's header.

use crate::{Call, DELAY, LEVEL, SERVER, number, send};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SUCCESS: c_int = 0;
const OTHER: c_int = 15;
/// MPI_COMM_WORLD, and the groups of ranks into which it is split.
const WORLD: c_int = 0x4400_0000;
const ALL: c_int = 1;
const HOST: c_int = 2;
/// MPI_REQUEST_NULL.
const NONE: c_int = 0x2c00_0000;
/// A request that is complete at once.
const REQUEST: c_int = 3;
/// The request for the first long message that a rank sends. The requests for later long messages
/// follow.
const LONG_REQUEST: c_int = 16;
/// A message of at least this number of bytes is long. Its send is complete only when the message
/// is being received.
const LONG: usize = 4 << 10;

struct Rank {
    stream: UnixStream,
    rank: usize,
    size: usize,
    here: usize,
    finalized: bool,
    /// The messages that were matched and not yet received, by their handles.
    matched: BTreeMap<c_int, Vec<u8>>,
    handles: c_int,
    /// The number of long messages that this rank has sent.
    sent: c_int,
}

/// MPI_Status: the two halves of the length in the first two words, then source, tag and error.
type Status = [c_int; 5];

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
    Ok(Rank { stream, rank, size, here, finalized: false, matched: BTreeMap::new(), handles: 0, sent: 0 })
}

/// Calls `act` with this rank.
fn with(act: impl FnOnce(&mut Rank) -> io::Result<()>) -> c_int {
    match this().as_mut().map(act) {
        Some(Ok(())) => SUCCESS,
        _ => OTHER,
    }
}

/// Writes through a pointer of the caller.
///
/// # Safety
/// The pointer is valid for a write.
unsafe fn give<T>(to: *mut T, value: T) -> c_int {
    // SAFETY: the caller guarantees that the pointer is valid for a write.
    unsafe { to.write(value) };
    SUCCESS
}

/// Writes a text and its length.
///
/// # Safety
/// There is room for the text and a zero, and for the length.
unsafe fn write(text: &str, to: *mut c_char, len: *mut c_int) -> c_int {
    // SAFETY: the caller guarantees that there is room for the text, the zero and the length.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        to.add(text.len()).write(0);
        give(len, text.len() as c_int)
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        /// The MPI function of this name.
        ///
        /// # Safety
        /// The arguments are as MPI requires.
        #[allow(unused_unsafe, reason = "some take no pointer")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the caller passes arguments as MPI requires.
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
            send(&mut rank.stream, if comm == HOST { Call::GatherHost } else { Call::GatherAll } as usize)?;
            send(&mut rank.stream, bytes)?;
            rank.stream.write_all(part)?;
            rank.stream.read_exact(all)
        })
    }
    MPI_Abort(_comm: c_int, _code: c_int) { std::process::abort() }
    MPI_Query_thread(to: *mut c_int) {
        let level = std::env::var(LEVEL).ok().and_then(|level| level.parse().ok());
        give(to, level.unwrap_or(2)) // MPI_THREAD_SERIALIZED
    }
    MPI_Comm_set_errhandler(_comm: c_int, _handler: c_int) { SUCCESS }
    MPI_Isend(from: *const c_void, bytes: c_int, _byte: c_int, to: c_int, _tag: c_int, _comm: c_int, request: *mut c_int) {
        with(|rank| {
            let message = std::slice::from_raw_parts(from.cast::<u8>(), bytes as usize);
            let delay = std::env::var(DELAY).ok().and_then(|millis| millis.parse().ok());
            delay.into_iter().for_each(|millis| std::thread::sleep(std::time::Duration::from_millis(millis)));
            for word in [Call::Send as usize, to as usize, message.len()] {
                send(&mut rank.stream, word)?;
            }
            rank.stream.write_all(message)?;
            let is_long = message.len() >= LONG;
            send(&mut rank.stream, if is_long { rank.sent as usize + 1 } else { 0 })?;
            give(request, if is_long { LONG_REQUEST + rank.sent } else { REQUEST });
            rank.sent += c_int::from(is_long);
            Ok(())
        })
    }
    MPI_Improbe(from: c_int, _tag: c_int, _comm: c_int, has: *mut c_int, message: *mut c_int, status: *mut Status) {
        with(|rank| {
            send(&mut rank.stream, Call::Probe as usize)?;
            // MPI_ANY_SOURCE is below 0.
            send(&mut rank.stream, usize::try_from(from).map_or(0, |from| from + 1))?;
            let found = number(&mut rank.stream)?;
            give(has, c_int::from(found > 0));
            if found > 0 {
                let mut bytes = vec![0; number(&mut rank.stream)?];
                rank.stream.read_exact(&mut bytes)?;
                rank.handles += 1;
                give(message, rank.handles);
                give(status, [bytes.len() as c_int, 0, found as c_int - 1, 0, 0]);
                rank.matched.insert(rank.handles, bytes);
            }
            Ok(())
        })
    }
    MPI_Get_count(status: *const Status, _byte: c_int, to: *mut c_int) { give(to, (*status)[0]) }
    MPI_Imrecv(to: *mut c_void, bytes: c_int, _byte: c_int, message: *mut c_int, request: *mut c_int) {
        with(|rank| {
            let came = rank.matched.remove(&*message).ok_or(io::ErrorKind::NotFound)?;
            let room = std::slice::from_raw_parts_mut(to.cast::<u8>(), bytes as usize);
            room.get_mut(..came.len()).ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(&came);
            give(request, REQUEST);
            Ok(())
        })
    }
    MPI_Test(request: *mut c_int, done: *mut c_int, _status: *mut Status) {
        with(|rank| {
            let mut is_complete = 1;
            if *request >= LONG_REQUEST && *request != NONE {
                send(&mut rank.stream, Call::IsTaken as usize)?;
                send(&mut rank.stream, (*request - LONG_REQUEST) as usize + 1)?;
                is_complete = number(&mut rank.stream)?;
            }
            if is_complete == 1 {
                give(request, NONE);
            }
            give(done, is_complete as c_int);
            Ok(())
        })
    }
}
