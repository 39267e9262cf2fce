//! Makes a window: each rank allocates its part, and every rank receives the description of every
//! part.

use crate::api::refused::Refused;
use crate::check;
use crate::check::state::lists::Checked;
use crate::collect::fast_path::FastPath;
use crate::collect::filling::Filling;
use crate::collect::operation::WindowKey;
use crate::collect::region::Region;
use crate::fence;
use crate::fence::state::FenceOfWindow;
use crate::kernel::element::{Element, code_of, element_type, kind_of_code};
use crate::locks::state::hints::Hints;
use crate::posts::state::PostsOfWindow;
use crate::posts::state::ports;
use crate::state::attributes::Attributes;
use crate::state::call::{Call, codes};
use crate::state::handler::Handler;
use crate::state::registry::Attempt;
use crate::state::window::Window;
use crate::state::window_core::{Collecting, EpochLines, Peer, Peers, WindowCore};
use crate::state::windows::UntypedWindow;
use crate::state::world::{World, WorldCore};
use bytemuck::{CheckedBitPattern, NoUninit};
use fencepost_planner::adaptive::run_bytes;
use fencepost_planner::element::ElementType;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_transport::bytes::{Reader, Writer};
use fencepost_transport::{Channels, Memory, Topology, Until};
use std::cell::{Cell, RefCell};
use std::io;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

impl World {
    /// Makes a window with `len` zeroed elements on this rank.
    ///
    /// Every rank calls this; lengths may differ.
    ///
    /// # Errors
    /// - `TYPE` if ranks ask for different element types, even of the same size. In that case no
    ///   rank has the window.
    /// - `NO_MEM` if some rank cannot allocate its part. In that case no rank has the window.
    /// - `NO_MEM` if the world has already made 2^32 - 1 windows and splits.
    /// - `RMA_SYNC` if another rank is in another call.
    ///
    /// # Cost
    /// A part of 2 MiB or more is backed by large pages if the kernel has them, since a sweep over
    /// it then needs fewer pages. For threads and over TCP this requires that
    /// `/sys/kernel/mm/transparent_hugepage/enabled` is not `never`. For processes that share
    /// memory it requires Linux 6.1 and that `shmem_enabled` next to it is not `deny`. For such
    /// processes, the kernel copies each page when the window is made, which takes 7 to 50 ms for
    /// 16 MiB. For threads and over TCP such a part takes no memory until it is touched. The call
    /// returns `NO_MEM` nevertheless if the part exceeds the memory that the machine and the
    /// control groups of the process leave available. Several parts that each fit may exceed that
    /// limit together.
    ///
    /// # Source
    /// MPI 4.1, section 12.2.2 (MPI_WIN_ALLOCATE).
    #[doc(alias = "MPI_Win_allocate")]
    #[track_caller]
    pub fn window<T: Element>(&self, len: usize) -> Result<Window<T>> {
        let call = Call::named(0, "World::window");
        self.core().calls.begin();
        let made = zeroed::<T>(self.core(), len, Hints::new(), true, &call);
        self.core().handler.report(made).map(|window| self.handed(window))
    }

    /// Makes a window whose part on this rank holds the elements of a vector.
    ///
    /// Every rank calls this; lengths may differ.
    ///
    /// The elements stay in the vector's memory if other ranks do not reach this rank's memory, or
    /// if the ranks are threads of one process. The elements are copied if the vector's memory is
    /// not aligned to 16 bytes. They are also copied if processes share memory, since a window's
    /// memory must then be in a shared segment. [`Window::into_vec`] returns a vector again.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let mut u = world.window_from(vec![world.rank(); 3])?;
    /// u.put([7]).to(1 - world.rank(), 2)?;
    /// u.fence()?;
    /// assert_eq!(u.into_vec()?, [world.rank(), world.rank(), 7]);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`window`](Self::window). The error returns the vector.
    ///
    /// # Source
    /// MPI 4.1, section 12.2.1 (MPI_WIN_CREATE).
    #[doc(alias = "MPI_Win_create")]
    #[track_caller]
    pub fn window_from<T: Element>(&self, elements: Vec<T>) -> Result<Window<T>, Refused<Vec<T>>> {
        let call = Call::named(codes::WINDOW_FROM, "World::window_from");
        self.core().calls.begin();
        let window = filled(self.core(), elements, &call);
        window.map(|window| self.handed(window)).map_err(|refused| refused.reported(&self.core().handler))
    }

    /// Prepares a window that a call of the program has made: sets its handler and begins its
    /// checks.
    fn handed<T: Element>(&self, window: Window<T>) -> Window<T> {
        window.on_error(self.core().handler.get());
        window.core().begin_checks(window.core().lines.since.get());
        window
    }

    /// Makes a window as a part of `call`.
    pub(crate) fn window_in<T: Element>(&self, len: usize, call: &Call) -> Result<Window<T>> {
        window_of(self.core(), len, call)
    }
}

impl WindowCore {
    /// Starts to check the window's epochs, if epochs of the world are checked. `site` is the call
    /// that gives the window to the program.
    pub(super) fn begin_checks(&self, site: &'static Location<'static>) {
        if !self.world.checks.is_on() {
            return;
        }
        if !self.checked.is_on() {
            self.checked.begin(self.peers.len());
            self.collecting.observed.set(true);
            self.allow(true);
        }
        check::begins(self, site);
    }
}

/// Makes a window in this world as a part of `call`.
pub(super) fn window_of<T: Element>(core: &Rc<WorldCore>, len: usize, call: &Call) -> Result<Window<T>> {
    zeroed(core, len, Hints::new(), false, call)
}

/// Makes a window with these hints. `is_lent` is whether the program will access its elements.
pub(super) fn zeroed<T: Element>(
    core: &Rc<WorldCore>,
    len: usize,
    hints: Hints,
    is_lent: bool,
    call: &Call,
) -> Result<Window<T>> {
    let memory = core.endpoint.borrow().memory();
    let region =
        if is_lent { lent_region::<T>(len, core, &memory) } else { region_of::<T>(len, core, &memory) };
    allocate::<T>(core, len, region.map(Arc::new), hints, call)
}

/// Makes a window of the elements of a vector.
fn filled<T: Element>(
    core: &Rc<WorldCore>,
    elements: Vec<T>,
    call: &Call,
) -> Result<Window<T>, Refused<Vec<T>>> {
    let (len, memory) = (elements.len(), core.endpoint.borrow().memory());
    let watches = core.checks.checking.borrow().sees_loads();
    let adopted = if watches { Err(elements) } else { Region::adopt(elements, core.size, &memory) };
    let (region, copied) = match adopted {
        Ok(region) => (Ok(region), None),
        Err(elements) => {
            let region = lent_region::<T>(len, core, &memory);
            if let Ok(region) = &region {
                // SAFETY: the region has room for exactly these elements, and no other reference to
                // it exists yet.
                unsafe { region.base().cast::<T>().copy_from_nonoverlapping(elements.as_ptr(), len) };
            }
            (region, Some(elements))
        }
    };
    let region = region.map(Arc::new);
    let own = region.as_ref().ok().filter(|_| copied.is_none()).cloned();
    allocate::<T>(core, len, region, Hints::new(), call).map_err(|error| {
        // SAFETY: the window was not made on this rank, so this rank never enters a call in which
        // others would access the region.
        let adopted = || own.and_then(|region| unsafe { region.take_vec() });
        Refused::new(copied.or_else(adopted).unwrap_or_default(), error)
    })
}

/// Makes a window of `len` zeroed elements of this type. Every rank calls this.
///
/// # Errors
/// As [`World::window`].
#[track_caller]
pub fn untyped(world: &World, element: ElementType, len: usize) -> Result<UntypedWindow> {
    let (core, call) = (world.core(), Call::named(0, "World::window"));
    core.calls.begin();
    let memory = core.endpoint.borrow().memory();
    let bytes = len.checked_mul(element.size as usize).ok_or_else(|| io::ErrorKind::OutOfMemory.into());
    let region = bytes.and_then(|bytes| region_of::<u8>(bytes, core, &memory));
    let kind = Kind { element, name: "bytes", hints: Hints::new() };
    let made = made(core, len, &kind, region.map(Arc::new), &call);
    core.handler.report(made).map(|core| UntypedWindow::new(world.handed(Window::new(core))))
}

/// Allocates memory for `len` elements.
fn region_of<T: Element>(len: usize, core: &WorldCore, memory: &Memory) -> io::Result<Region> {
    Region::new(bytes_of::<T>(len)?, core.calls.made.get(), core.size, memory)
}

/// Allocates memory for `len` elements that the program will access. Loads from this memory can be
/// watched if that is requested and the system allows it.
fn lent_region<T: Element>(len: usize, core: &WorldCore, memory: &Memory) -> io::Result<Region> {
    if !core.checks.checking.borrow().sees_loads() {
        return region_of::<T>(len, core, memory);
    }
    Region::watchable(bytes_of::<T>(len)?, size_of::<T>(), (core.calls.made.get(), core.size), memory)
}

fn bytes_of<T: Element>(len: usize) -> io::Result<usize> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Makes a window of elements of this type in `region`, together with all ranks. `region` is an
/// error if its memory could not be allocated.
fn allocate<T: Element>(
    core: &Rc<WorldCore>,
    len: usize,
    region: io::Result<Arc<Region>>,
    hints: Hints,
    call: &Call,
) -> Result<Window<T>> {
    let kind = Kind { element: element_type::<T>(), name: std::any::type_name::<T>(), hints };
    made(core, len, &kind, region, call).map(Window::new)
}

/// The kind of window that a call makes, which is the same on all ranks.
struct Kind {
    element: ElementType,
    /// The name of the element type.
    name: &'static str,
    hints: Hints,
}

/// Makes a window of this kind, with `len` elements on this rank.
fn made(
    core: &Rc<WorldCore>,
    len: usize,
    kind: &Kind,
    region: io::Result<Arc<Region>>,
    call: &Call,
) -> Result<Rc<WindowCore>> {
    // The window's number and the position of the call are equal on all ranks. The position
    // distinguishes two attempts to make a window with the same number.
    let number = core.next_made(call)?;
    let attempt = (core.id, core.calls.position(), number);
    let mine = described(len, kind, &region);
    let region = region.ok();
    if let Some(region) = region.as_ref().filter(|_| core.reach.shares_all) {
        core.registry.give(attempt, core.rank, core.size, region.clone());
    }
    let call = Call { hash: call.hash ^ codes::MAKES_WINDOW ^ u64::from(number) << 8, ..*call };
    // The window is registered already here, since ranks that leave this call earlier may send
    // operations on the window at once.
    core.windows.add(number, (len, kind.element));
    let unmade = Unmade(core, number);
    let all = match core.meet(&call, &mine) {
        Ok(all) => all,
        Err(error) => {
            unmake(core, attempt, region);
            return Err(error);
        }
    };
    core.calls.made.set(number + 1);
    let regions = core.registry.take(attempt);
    let mut peers = Vec::with_capacity(core.size);
    for (rank, bytes) in all.iter().enumerate() {
        let peer = peer(core, rank, bytes, kind, regions.get(rank).cloned().flatten());
        peers.push(peer.map_err(|error| error.on_rank(core.rank).at(call.site))?);
    }
    let Some(region) = region else {
        return Err(Error::new(ErrorClass::Intern, "a window without memory"));
    };
    std::mem::forget(unmade);
    let made = Rc::new(window_core(core, number, kind, region, peers, call.site));
    made.allow(true);
    made.fill(0);
    core.windows.collects(&made);
    Ok(made)
}

/// Returns the description of this rank's part for the other ranks. If this rank has no part, the
/// reason follows the description.
fn described(len: usize, kind: &Kind, region: &io::Result<Arc<Region>>) -> Vec<u8> {
    let mut mine = Vec::new();
    mine.put(Description {
        len: len as u64,
        size: kind.element.size,
        kind: code_of(kind.element.kind),
        made: region.is_ok(),
        zero: 0,
        base: region.as_ref().map_or(0, |region| region.base() as u64),
        hints: kind.hints.word(),
    });
    mine.put_counted(kind.name.as_bytes());
    let refusal = region.as_ref().err().map_or(String::new(), ToString::to_string);
    mine.extend_from_slice(refusal.as_bytes());
    mine
}

/// Reads the description that a rank has sent of its part, and returns the part.
///
/// # Errors
/// The rank has no part, or makes another kind of window.
fn peer(
    core: &WorldCore,
    rank: usize,
    bytes: &[u8],
    kind: &Kind,
    region: Option<Arc<Region>>,
) -> Result<Peer> {
    let Kind { element, name, hints } = kind;
    let error = |class, message: String| Err(Error::new(class, message));
    let Some((description, their_element, theirs, refusal)) = Description::read(bytes) else {
        return error(
            ErrorClass::Intern,
            format!("rank {rank} sent an invalid description of its part of a window"),
        );
    };
    let their_hints = Hints::of_word(description.hints);
    if !their_hints.are_possible() {
        return error(
            ErrorClass::Arg,
            format!("rank {rank} has made a window with impossible hints: {their_hints}"),
        );
    }
    if description.hints != hints.word() {
        return error(
            ErrorClass::Arg,
            format!(
                "this rank's window has the hints: {hints}; and rank {rank}'s has: {their_hints}; all ranks must give the same"
            ),
        );
    }
    if their_element != *element {
        return error(
            ErrorClass::Type,
            format!(
                "this rank's window has elements of {element} and rank {rank}'s of {their_element}: all ranks must ask for one type"
            ),
        );
    }
    if theirs != name.as_bytes() {
        return error(
            ErrorClass::Type,
            format!(
                "this rank's window has elements of type `{name}` and rank {rank}'s of type `{}`, of {element} too: all ranks must ask for one type",
                String::from_utf8_lossy(theirs)
            ),
        );
    }
    if !description.made {
        return error(
            ErrorClass::NoMem,
            format!(
                "rank {rank} asked for {} elements of {} bytes, and memory for them could not be allocated: {}",
                description.len,
                element.size,
                String::from_utf8_lossy(refusal)
            ),
        );
    }
    if core.reach.shares_all && region.is_none() {
        return error(ErrorClass::Intern, format!("rank {rank}'s part of the window was not handed over"));
    }
    let reached = rank == core.rank || core.endpoint.borrow().reaches(rank);
    let base = if reached { description.base as *mut u8 } else { std::ptr::null_mut() };
    Ok(Peer { len: description.len as usize, region, base })
}

/// Builds the window of these parts.
fn window_core(
    core: &Rc<WorldCore>,
    number: u32,
    kind: &Kind,
    region: Arc<Region>,
    peers: Vec<Peer>,
    site: &'static Location<'static>,
) -> WindowCore {
    let (key, element, hints) = (WindowKey { world: core.id, window: number }, kind.element, kind.hints);
    WindowCore {
        key,
        element,
        world: core.clone(),
        region,
        peers: Peers::new(peers, !core.reach.shares_all, !core.reach.is_all),
        collecting: Collecting::new(core.reports.explains.get()),
        filling: Filling::new(
            key.window,
            run_bytes(&core.machine) / element.size.max(1) as usize,
            fence::apply_to(element),
        ),
        fast_paths: (0..core.size).map(|_| FastPath::default()).collect(),
        fence: FenceOfWindow::new(core.size, core.choices.mode.get()),
        notes: RefCell::default(),
        checked: Checked::default(),
        posts: PostsOfWindow::new(key.window),
        handler: Handler::default(),
        lines: EpochLines { since: Cell::new(site), first: Cell::new(None) },
        hints,
        attributes: Attributes::default(),
    }
}

/// Cleans up on a rank that could not make the window. If the world has ended meanwhile, other
/// ranks may have made the window and may reach this rank's part. In that case the part is kept,
/// either in the registry, or in the endpoint until all ranks have left the world.
fn unmake(core: &WorldCore, attempt: Attempt, region: Option<Arc<Region>>) {
    if core.alive().is_ok() {
        return core.registry.withdraw(attempt); // all ranks have seen the same error
    }
    if core.reach.shares_all {
        return;
    }
    let endpoint = &mut *core.endpoint.borrow_mut();
    if let Some(region) = region.and_then(Arc::into_inner) {
        endpoint.keep(region.into_memory(), Until::Done(Box::new(|| false)));
    }
}

/// Forgets the window when dropped, unless the window was made.
struct Unmade<'w>(&'w WorldCore, u32);

impl Drop for Unmade<'_> {
    fn drop(&mut self) {
        let Self(world, number) = *self;
        world.forget_window(WindowKey { world: world.id, window: number });
        if world.calls.made.get() > number
            && let Ok(mut endpoint) = world.endpoint.try_borrow_mut()
        {
            ports::close(number, None, &mut endpoint); // the number is used up
        }
    }
}

/// The description of a rank's part of a new window, which the rank sends to all others. In the
/// message, the name of the element type follows. If the part was not made, the reason follows the
/// name.
#[repr(C)]
#[derive(Clone, Copy, NoUninit, CheckedBitPattern)]
struct Description {
    len: u64,
    /// The size and the [code](code_of) of the elements' type.
    size: u32,
    kind: u8,
    made: bool,
    zero: u16,
    /// The address of the rank's elements; 0 if they were not allocated.
    base: u64,
    /// The [hints](Hints::word) of this rank, which must be the same on all ranks.
    hints: u64,
}

impl Description {
    /// Reads a description. Returns it with the element type, the type's name and the reason.
    fn read(bytes: &[u8]) -> Option<(Self, ElementType, &[u8], &[u8])> {
        let mut bytes = Reader(bytes);
        let (own, name): (Self, _) = (bytes.take()?, bytes.counted()?);
        let element = ElementType { size: own.size, kind: kind_of_code(own.kind)? };
        let is_good = own.zero == 0 && (!own.made || bytes.is_empty());
        is_good.then_some((own, element, name, bytes.0))
    }
}

#[cfg(test)]
mod tests {
    use crate::{TransportKind, ranks};
    use fencepost_planner::Result;
    use fencepost_transport::{Cause, Channels, Liveness};

    /// The other ranks may have made the window. When these ranks release the window, they record
    /// the release in the window's memory.
    #[test]
    fn a_part_of_a_window_that_only_others_may_have_made_is_not_used_again() -> Result<()> {
        const LEN: usize = 100_000;
        for transport in [TransportKind::ShmThreads, TransportKind::MixedThreads(vec![0, 0, 1])] {
            ranks(3).transport(transport).run(|world| {
                if world.rank() != 0 {
                    return Ok(());
                }
                let core = world.core();
                let memory = core.endpoint.borrow().memory();
                let place = || Ok::<_, fencepost_planner::Error>(memory.zeroed(LEN + 64)?.base() as usize);
                assert_eq!(place()?, place()?, "memory that was released is used next");
                let first = place()?;
                core.endpoint.borrow_mut().end(Cause { rank: 2, what: "enough".into() });
                let error = world.window::<u8>(LEN).map(drop).expect_err("the world has ended");
                assert!(error.world_ended(), "{error}");
                assert_ne!(place()?, first);
                Ok(())
            })?;
        }
        Ok(())
    }
}
