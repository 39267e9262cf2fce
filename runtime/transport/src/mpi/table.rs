//! [`Mpi`]: a library of MPI, with the functions that are used.

use super::families::{Constants, Family, MPICH, Pointer, STANDARD, open_mpi};
use super::messages::{Message, Request};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

/// The longest text that a library returns, rounded up: MPI_MAX_LIBRARY_VERSION_STRING is 8192 at
/// most, MPI_MAX_ERROR_STRING 1024.
const TEXT: usize = 8193;

/// A loaded library of MPI. MPI is not initialised.
pub struct Mpi {
    path: PathBuf,
    family: Family,
    pub(super) calls: Box<dyn Calls>,
    /// Keeps the library loaded as long as its functions are called.
    pub(super) library: Library,
}

impl Mpi {
    /// Loads the library at `path`. If `path` is only a name, the dynamic loader looks for the
    /// library in its folders.
    ///
    /// # Errors
    /// Fails if the library can't be loaded, or if it is not an MPI.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: the initialisers of the library run. The user's launcher, search path or variable
        // names this MPI, and every program of that MPI runs the same initialisers.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        Self::of(path, library.map_err(|error| error.to_string())?)
    }

    /// Returns the MPI that this program has loaded itself, or was linked with.
    ///
    /// # Errors
    /// Fails if the program has no MPI.
    pub(super) fn of_program() -> Result<Self, String> {
        Self::of(Path::new("this program"), Library::this()).map_err(|_| "no MPI is loaded in it".into())
    }

    fn of(path: &Path, library: Library) -> Result<Self, String> {
        let family = Family::of(&library);
        let calls = || -> Result<Box<dyn Calls>, libloading::Error> {
            Ok(match family {
                Family::OpenMpi => Box::new(Binding::new(&library, open_mpi(&library)?)?),
                Family::Mpich => Box::new(Binding::new(&library, MPICH)?),
                Family::Standard => Box::new(Binding::new(&library, STANDARD)?),
            })
        };
        let calls = calls().map_err(|error| error.to_string())?;
        Ok(Self { path: path.into(), family, calls, library })
    }

    /// Returns the path or the name of the library.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the interface of the library.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Returns the name and the version by which the library describes itself.
    pub fn version(&self) -> String {
        let text = self.calls.version();
        let line = text.split(['\n', ',']).next().unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The calls of MPI, for any type of handles.
///
/// Once MPI is initialised with MPI_THREAD_SERIALIZED, any thread may make these calls, one at a
/// time.
pub(super) trait Calls {
    fn version(&self) -> String;
    /// Returns whether MPI was initialised, and whether it was finalised since.
    fn state(&self) -> (bool, bool);
    fn init(&self) -> Result<(), String>;
    /// Returns whether several threads may call MPI, one at a time.
    fn is_serialized(&self) -> bool;
    fn finalize(&self);
    /// Ends all processes of the job, with this exit code.
    fn abort(&self, code: c_int);
    /// Returns this process's rank in the world, and the number of ranks of the world.
    fn place(&self) -> Result<(usize, usize), String>;
    /// Creates an `MPI_Comm` for each of the two groups, and returns the number of ranks of this
    /// host. All ranks call this.
    fn create_groups(&mut self) -> Result<usize, String>;
    /// Frees the `MPI_Comm`s of both groups. All ranks call this.
    fn free_groups(&mut self);
    /// Fills `all` with the `part` of each rank of the group. All parts have the same length.
    fn all_gather(&self, group: Group, part: &[u8], all: &mut [u8]) -> Result<(), String>;
    /// Sends a message. This call and the next three are described in
    /// [`Messages`](super::messages::Messages).
    ///
    /// # Safety
    /// As described there.
    unsafe fn send(&self, to: usize, bytes: &[u8]) -> Result<Request, String>;
    fn probe(&self, from: Option<usize>) -> Result<Option<Message>, String>;
    /// # Safety
    /// As described in [`Messages`](super::messages::Messages).
    unsafe fn receive(&self, message: Message, room: &mut [u8]) -> Result<Request, String>;
    fn is_complete(&self, request: &mut Request) -> Result<bool, String>;
}

/// A group of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// All ranks of the job.
    All,
    /// The ranks that can share memory with this one, in the order of the job.
    Host,
}

/// A handle of MPI: a number or a pointer.
pub(super) trait Handle: Copy + 'static {
    /// Returns the handle as a word.
    fn word(self) -> usize;
    /// Returns the handle of a [`word`](Self::word).
    fn of_word(word: usize) -> Self;
}

impl Handle for c_int {
    fn word(self) -> usize {
        self.cast_unsigned() as usize
    }

    fn of_word(word: usize) -> Self {
        (word as u32).cast_signed()
    }
}

impl Handle for Pointer {
    fn word(self) -> usize {
        self.expose_provenance()
    }

    fn of_word(word: usize) -> Self {
        std::ptr::with_exposed_provenance_mut(word)
    }
}

/// Memory for an `MPI_Status` of any interface. The status of an interface may be shorter.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
struct Status([c_int; 12]);

/// The tag of all messages.
const TAG: c_int = 0;

/// The functions and the constants of an interface.
struct Binding<H> {
    table: Table<H>,
    constants: Constants<H>,
    /// The `MPI_Comm`s of [`Group::All`] and [`Group::Host`], once they are created.
    groups: Option<[H; 2]>,
}

impl<H: Handle> Binding<H> {
    fn new(library: &Library, constants: Constants<H>) -> Result<Self, libloading::Error> {
        Ok(Self { table: Table::load(library)?, constants, groups: None })
    }
}

macro_rules! functions {
    ($($name:ident $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions that are used.
        struct Table<H> {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl<H: Handle> Table<H> {
            /// Looks up all functions.
            fn load(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the functions of these names have these types in each MPI, with handles
                // of its interface.
                unsafe { Ok(Self { $($name: *library.get($symbol)?,)* }) }
            }
        }
    };
}

functions! {
    library_version b"MPI_Get_library_version\0" (*mut c_char, *mut c_int);
    error_string b"MPI_Error_string\0" (c_int, *mut c_char, *mut c_int);
    initialized b"MPI_Initialized\0" (*mut c_int);
    finalized b"MPI_Finalized\0" (*mut c_int);
    init_thread b"MPI_Init_thread\0" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    finalize b"MPI_Finalize\0" ();
    rank b"MPI_Comm_rank\0" (H, *mut c_int);
    size b"MPI_Comm_size\0" (H, *mut c_int);
    duplicate b"MPI_Comm_dup\0" (H, *mut H);
    split_by_type b"MPI_Comm_split_type\0" (H, c_int, c_int, H, *mut H);
    free b"MPI_Comm_free\0" (*mut H);
    all_gather b"MPI_Allgather\0" (*const c_void, c_int, H, *mut c_void, c_int, H, H);
    abort b"MPI_Abort\0" (H, c_int);
    query_thread b"MPI_Query_thread\0" (*mut c_int);
    set_error_handler b"MPI_Comm_set_errhandler\0" (H, H);
    send b"MPI_Isend\0" (*const c_void, c_int, H, c_int, c_int, H, *mut H);
    probe b"MPI_Improbe\0" (c_int, c_int, H, *mut c_int, *mut H, *mut Status);
    count b"MPI_Get_count\0" (*const Status, H, *mut c_int);
    receive b"MPI_Imrecv\0" (*mut c_void, c_int, H, *mut H, *mut H);
    test b"MPI_Test\0" (*mut H, *mut c_int, *mut Status);
}

impl<H: Handle> Binding<H> {
    /// Calls a function, and returns the value that the function has written through its argument.
    ///
    /// # Errors
    /// Fails if the function fails, with the reason that MPI gives.
    fn filled<T>(&self, mut value: T, call: impl FnOnce(&mut T) -> c_int) -> Result<T, String> {
        match call(&mut value) {
            0 => Ok(value),
            code => Err(self.described(code)),
        }
    }

    /// Returns the `MPI_Comm` of all ranks.
    fn all(&self) -> Result<H, String> {
        self.groups.map(|[all, _]| all).ok_or_else(|| "no groups were created".into())
    }

    fn described(&self, code: c_int) -> String {
        // SAFETY: the memory has room for the longest text.
        text(|start, len| unsafe { (self.table.error_string)(code, start, len) })
    }

    fn number(&self, call: impl FnOnce(*mut c_int) -> c_int) -> Result<usize, String> {
        let number = self.filled(0, |number| call(number))?;
        usize::try_from(number).map_err(|_| format!("MPI returned {number} for a number"))
    }
}

/// Returns the text that a function has written.
fn text(call: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> String {
    let (mut bytes, mut len) = (vec![0_u8; TEXT], 0);
    call(bytes.as_mut_ptr().cast(), &mut len);
    bytes.truncate(usize::try_from(len).unwrap_or_default());
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}

impl<H: Handle> Calls for Binding<H> {
    fn version(&self) -> String {
        // SAFETY: the memory has room for the longest text.
        text(|start, len| unsafe { (self.table.library_version)(start, len) })
    }

    fn state(&self) -> (bool, bool) {
        let (mut initialized, mut finalized) = (0, 0);
        // SAFETY: both may be called at any time.
        unsafe {
            (self.table.initialized)(&mut initialized);
            (self.table.finalized)(&mut finalized);
        }
        (initialized != 0, finalized != 0)
    }

    fn init(&self) -> Result<(), String> {
        let level = self.constants.serialized;
        // SAFETY: MPI was not initialised before (the caller has checked this), and it receives no
        // arguments of the program.
        self.filled(0, |given| unsafe { (self.table.init_thread)(null_mut(), null_mut(), level, given) })?;
        Ok(())
    }

    fn is_serialized(&self) -> bool {
        let mut level = 0;
        // SAFETY: MPI is initialised.
        let code = unsafe { (self.table.query_thread)(&mut level) };
        code == 0 && level >= self.constants.serialized
    }

    fn finalize(&self) {
        // SAFETY: MPI is initialised, and nothing of it is used any more.
        unsafe { (self.table.finalize)() };
    }

    fn abort(&self, code: c_int) {
        // SAFETY: MPI is initialised. Some libraries end this process here, and others return.
        unsafe { (self.table.abort)(self.constants.world, code) };
    }

    fn place(&self) -> Result<(usize, usize), String> {
        let world = self.constants.world;
        // SAFETY: MPI is initialised.
        let rank = self.number(|rank| unsafe { (self.table.rank)(world, rank) })?;
        // SAFETY: as above.
        let size = self.number(|size| unsafe { (self.table.size)(world, size) })?;
        Ok((rank, size))
    }

    fn create_groups(&mut self) -> Result<usize, String> {
        let (table, constants) = (&self.table, self.constants);
        // SAFETY: MPI is initialised, and all ranks call this.
        let all = self.filled(constants.world, |all| unsafe { (table.duplicate)(constants.world, all) })?;
        // SAFETY: as above. From now on an error of MPI is returned, and ends only this world.
        let handler = |(): &mut ()| unsafe { (table.set_error_handler)(all, constants.errors_return) };
        self.filled((), handler)?;
        let split = |host: &mut H| {
            // SAFETY: as above; with a key of 0 the ranks keep their order.
            unsafe { (table.split_by_type)(all, constants.shared, 0, constants.no_info, host) }
        };
        let host = self.filled(constants.world, split)?;
        // SAFETY: as above.
        let size = self.number(|size| unsafe { (table.size)(host, size) })?;
        self.groups = Some([all, host]);
        Ok(size)
    }

    fn free_groups(&mut self) {
        for mut group in self.groups.take().into_iter().flatten() {
            // SAFETY: the group was created, and is not used any more.
            unsafe { (self.table.free)(&mut group) };
        }
    }

    fn all_gather(&self, group: Group, part: &[u8], all: &mut [u8]) -> Result<(), String> {
        let [whole, host] = self.groups.ok_or("no groups were created")?;
        let group = if group == Group::All { whole } else { host };
        let bytes = count_of(part.len())?;
        let byte = self.constants.byte;
        let (from, to) = (part.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: `all` has room for `part.len()` bytes of each rank of the group, because the
        // session has given it this length.
        let gather =
            |(): &mut ()| unsafe { (self.table.all_gather)(from, bytes, byte, to, bytes, byte, group) };
        self.filled((), gather)
    }

    unsafe fn send(&self, to: usize, bytes: &[u8]) -> Result<Request, String> {
        let (len, to) = (count_of(bytes.len())?, count_of(to)?);
        let (byte, all) = (self.constants.byte, self.all()?);
        // SAFETY: the caller promises that the bytes stay. The world's handle only fills the place
        // that MPI overwrites.
        let send = |request: &mut H| unsafe {
            (self.table.send)(bytes.as_ptr().cast(), len, byte, to, TAG, all, request)
        };
        Ok(Request(self.filled(all, send)?.word()))
    }

    fn probe(&self, from: Option<usize>) -> Result<Option<Message>, String> {
        let from = from.map_or(Ok(self.constants.any_source), count_of)?;
        let (all, mut status, mut message) = (self.all()?, Status::default(), self.constants.world);
        // SAFETY: MPI is initialised; a status of any interface fits.
        let probe =
            |has: &mut c_int| unsafe { (self.table.probe)(from, TAG, all, has, &mut message, &mut status) };
        if self.filled(0, probe)? == 0 {
            return Ok(None);
        }
        // SAFETY: MPI has written the status.
        let len = self.number(|count| unsafe { (self.table.count)(&status, self.constants.byte, count) })?;
        let from = status.0[self.constants.source];
        let from = usize::try_from(from).map_err(|_| format!("MPI returned rank {from}"))?;
        Ok(Some(Message { from, len, handle: message.word() }))
    }

    unsafe fn receive(&self, message: Message, room: &mut [u8]) -> Result<Request, String> {
        let (len, byte) = (count_of(room.len())?, self.constants.byte);
        let mut handle = H::of_word(message.handle);
        // SAFETY: the caller promises that the room stays. The message was matched, and is received
        // once.
        let receive = |request: &mut H| unsafe {
            (self.table.receive)(room.as_mut_ptr().cast(), len, byte, &mut handle, request)
        };
        Ok(Request(self.filled(self.constants.world, receive)?.word()))
    }

    fn is_complete(&self, request: &mut Request) -> Result<bool, String> {
        let (mut handle, mut status) = (H::of_word(request.0), Status::default());
        // SAFETY: the request was begun, and is not complete as far as its owner knows.
        let test = |done: &mut c_int| unsafe { (self.table.test)(&mut handle, done, &mut status) };
        let is_complete = self.filled(0, test)? != 0;
        request.0 = handle.word();
        Ok(is_complete)
    }
}

/// Converts a number to the type in which MPI counts.
///
/// # Errors
/// Fails if it is too large.
fn count_of(number: usize) -> Result<c_int, String> {
    c_int::try_from(number).map_err(|_| format!("MPI takes no number as large as {number}"))
}
