//! [`Window`]: one rank's part of a distributed array, and the calls on it.

use crate::collect::fast_path::FastPath;
use crate::kernel::element::Element;
use crate::state::window_core::WindowCore;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// One rank's part of a distributed array that other ranks put into, get from and accumulate into.
///
/// A window derefs to a slice of the local part. Operations are collected, and happen at the next
/// [fence](Self::fence) of the window. Until then no rank sees their effects. A window is neither
/// `Send` nor `Sync`: pass the slice to threads.
///
/// # Source
/// MPI 4.1, section 12.2.1 (MPI_WIN_ALLOCATE); active target synchronisation only.
pub struct Window<T: Element> {
    /// Makes the window neither `Send` nor `Sync`. The compiler's error names the first such field,
    /// which is this field.
    threads: PhantomData<dyn OtherThreadsTakeTheSliceOfAWindow>,
    /// The elements, at the address that only the program uses.
    pub(crate) data: *mut T,
    pub(crate) len: usize,
    /// The fast paths of small operations, by target.
    pub(crate) fast_paths: Rc<[FastPath]>,
    pub(crate) core: Rc<WindowCore>,
    element: PhantomData<T>,
}

/// The trait that the compiler's error names if a thread takes a window. The name of the trait
/// describes the solution: `let cells = &mut u[..];` before the thread.
trait OtherThreadsTakeTheSliceOfAWindow {}

impl<T: Element> Window<T> {
    pub(crate) fn new(core: Rc<WindowCore>) -> Self {
        let len = core.peers[core.world.rank].len;
        let (data, fast_paths) = (core.region.lent().cast(), core.fast_paths.clone());
        Self { threads: PhantomData, data, len, fast_paths, core, element: PhantomData }
    }

    pub(crate) fn core(&self) -> &Rc<WindowCore> {
        &self.core
    }

    /// Returns this rank.
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.world.rank
    }

    /// Returns the number of ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.core.world.size
    }

    /// Returns the number of elements of this rank's part.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether this rank's part has no elements.
    #[doc(hidden)]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Discards the operations that this rank has collected for the next fence. No rank sees their
    /// effects, and tickets of gets stay empty.
    ///
    /// A rank that drops a window with such operations reports them when its program returns
    /// success, unless a call on the window or the world has returned an error before. With a
    /// [check](crate::Ranks::check), which debug builds have, `run` returns `RMA_SYNC` instead,
    /// with the line of the first operation.
    ///
    /// ```
    /// # fencepost_runtime::ranks(2).run(|world| {
    /// let mut u = world.window::<u64>(1)?;
    /// u.put([7]).to(1 - world.rank(), 0)?;
    /// u.discard();
    /// u.fence()?;
    /// assert_eq!(u[0], 0);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn discard(&mut self) {
        self.core.discard();
    }

    /// Returns the number of elements of `rank`'s part; `None` if there is no such rank.
    ///
    /// ```
    /// # fencepost_runtime::ranks(3).run(|world| {
    /// let u = world.window::<f32>(10 * world.rank())?;
    /// assert_eq!((u.len_of(2), u.len_of(3)), (Some(20), None));
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn len_of(&self, rank: usize) -> Option<usize> {
        self.core.peers.get(rank).map(|peer| peer.len)
    }
}

impl<T: Element> Deref for Window<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements of the region are at `data`, aligned and initialised (zeroed; any
        // bit pattern is valid). Other ranks touch the elements only while this rank is inside a
        // call that has the window by `&mut`, or while a superstep that was begun owns the window
        // (W1). If the elements are mapped twice (`Region::lent`), this holds for both mappings,
        // and the compiler does not assume that the address of either mapping is unique.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T: Element> DerefMut for Window<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `&mut self` is the only way to this rank's elements.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T: Element> Drop for Window<T> {
    fn drop(&mut self) {
        self.core.note_unfenced();
        self.core.world.forget_window(self.core.key);
        self.core.attributes.drop_all();
    }
}

impl<T: Element + std::fmt::Debug> std::fmt::Debug for Window<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
