//! [`Lendings`]: the windows of a rank that are posted to ranks which do not reach its memory. The
//! attendant of the rank reads these windows.

use crate::collect::datatypes::{Numbered, Unread};
use crate::collect::lent::Lent;
use crate::collect::limits::most_answered;
use bytemuck::{Pod, Zeroable};
use fencepost_planner::datatype::Datatype;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes of one answer. An answer with a single element may be longer. A rank
/// that gets more makes several requests.
pub(crate) const ANSWER: usize = 1 << 20;

/// The head of a request for elements. The datatypes of the elements follow the head. The elements
/// are numbered consecutively across all these datatypes.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(crate) struct Asked {
    /// The first element that is requested.
    pub(crate) first: u64,
    /// The number of the window, as in the header of the frame. If the two numbers differ, the
    /// request was altered on its way.
    pub(crate) window: u32,
    /// The number of elements.
    pub(crate) count: u32,
}

/// The exposures of one rank, by window.
#[derive(Default)]
pub(crate) struct Lendings(Mutex<All>);

#[derive(Default)]
struct All {
    exposures: BTreeMap<u32, Lending>,
    /// The numbered datatypes, by window and source. They are also kept between exposures.
    numbered: BTreeMap<(u32, usize), Numbered>,
}

/// An exposure.
pub(crate) struct Lending {
    memory: M,
    /// The number of bytes of an element. `len` is the number of elements.
    size: usize,
    len: usize,
    lent: Lent,
    /// The sources, each with the number of this post among the posts to that source.
    sources: Vec<(usize, u64)>,
}

/// The memory that contains M, the content of the window when it was posted.
enum M {
    /// In the window.
    InPlace(*const u8),
    /// Copied, since the window was dropped.
    Copied(Vec<u8>),
}

// SAFETY: the pointer is that of a window. While the exposure is in the list, the window is not
// moved and no rank writes its exposed elements: the owner takes the exposure out before it applies
// anything and before it frees the window.
unsafe impl Send for Lending {}

impl Lending {
    /// Returns an exposure of the window of `len` elements of `size` bytes at `base`.
    pub(crate) fn new(
        base: *const u8,
        (size, len): (usize, usize),
        lent: Lent,
        sources: Vec<(usize, u64)>,
    ) -> Self {
        Self { memory: M::InPlace(base), size, len, lent, sources }
    }

    /// Returns whether rank `from` is one of the sources, and this post is post `number` to that
    /// rank.
    fn is_for(&self, from: usize, number: u32) -> bool {
        self.sources.iter().any(|(source, at)| *source == from && *at as u32 == number)
    }

    /// Returns the elements that a source requests, or `None` for an invalid request.
    fn elements(&self, [first, count]: [usize; 2], asked: &[Datatype]) -> Option<Vec<u8>> {
        let (mut skipped, mut left) = (first, count);
        if left > most(self.size) {
            return None;
        }
        let base = match &self.memory {
            M::InPlace(base) => *base,
            M::Copied(bytes) => bytes.as_ptr(),
        };
        let mut elements = Vec::with_capacity(left * self.size);
        for datatype in asked {
            let inside = datatype.low() >= 0 && datatype.high() <= self.len as i64;
            if !inside {
                return None;
            }
            if skipped >= datatype.size() {
                skipped -= datatype.size();
                continue;
            }
            let (runs, mut before) = datatype.runs_from(std::mem::take(&mut skipped));
            for (at, run) in runs {
                let from = at as usize + std::mem::take(&mut before);
                let taken = left.min(at as usize + run - from);
                left -= taken;
                let read = from as i64..(from + taken) as i64;
                if self.lent.misfit_of(std::iter::once(read), true).is_some() {
                    return None;
                }
                // SAFETY: the elements are in the window and exposed, and no rank writes them while
                // this exposure is in the list.
                elements.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(base.add(from * self.size), taken * self.size)
                });
                if left == 0 {
                    return Some(elements);
                }
            }
        }
        (left == 0).then_some(elements)
    }
}

/// Returns the maximum number of elements, of `size` bytes each, in one answer.
pub(crate) fn most(size: usize) -> usize {
    (ANSWER / size).max(1)
}

impl Lendings {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exposes the window.
    ///
    /// # Safety
    /// Until the exposure is [taken back](Self::take_back), or its elements are
    /// [copied](Self::copy), the window is not moved, and no rank writes its exposed elements.
    pub(crate) unsafe fn expose(&self, window: u32, lending: Lending) {
        self.lock().exposures.insert(window, lending);
    }

    /// Ends the exposure. When this function returns, no rank reads the window.
    pub(crate) fn take_back(&self, window: u32) {
        self.lock().exposures.remove(&window);
    }

    /// Copies the elements of a window that is freed while it is exposed, and keeps the copy until
    /// the world is over.
    pub(crate) fn copy(&self, window: u32) {
        if let Some(lending) = self.lock().exposures.get_mut(&window)
            && let M::InPlace(base) = lending.memory
        {
            let mut copy = vec![0; lending.len * lending.size];
            let whole = 0..lending.len as i64;
            let runs = match &lending.lent {
                Lent::Whole | Lent::Read => std::slice::from_ref(&whole),
                Lent::Part(part) => part.runs(),
            };
            for run in runs {
                let at = run.start as usize * lending.size;
                let len = (run.end - run.start) as usize * lending.size;
                // SAFETY: these are exposed elements of the window, and no rank writes them while
                // the exposure is in the list.
                copy[at..at + len].copy_from_slice(unsafe { std::slice::from_raw_parts(base.add(at), len) });
            }
            lending.memory = M::Copied(copy);
        }
    }

    /// Forgets the numbered datatypes of a window that no longer exists.
    pub(crate) fn forget(&self, window: u32) {
        self.lock().numbered.retain(|(of, _), _| *of != window);
    }

    /// Returns the elements that rank `from` requests. `datatypes` contains their datatypes.
    ///
    /// # Errors
    /// The request is not valid, or a datatype has an unknown number.
    pub(crate) fn elements(
        &self,
        from: usize,
        number: u32,
        Asked { first, window, count }: Asked,
        mut datatypes: &[u8],
    ) -> Result<Vec<u8>, Unread> {
        let All { exposures, numbered } = &mut *self.lock();
        let lending = exposures.get(&window).filter(|lending| lending.is_for(from, number));
        let lending = lending.ok_or(Unread::Invalid)?;
        let first = usize::try_from(first).map_err(|_| Unread::Invalid)?;
        // All datatypes are read first, since later requests may use the numbers that they assign.
        let (numbered, mut all) = (numbered.entry((window, from)).or_default(), Vec::new());
        while !datatypes.is_empty() {
            all.push(numbered.datatype(&mut datatypes)?);
        }
        let elements = all.iter().fold(0, |sum: usize, datatype| sum.saturating_add(datatype.size()));
        if elements.saturating_mul(lending.size) > most_answered(lending.len, lending.size) {
            return Err(Unread::Invalid);
        }
        lending.elements([first, count as usize], &all).ok_or(Unread::Invalid)
    }
}
