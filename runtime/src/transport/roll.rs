//! Who has left, whether the world was ended, and where each rank is: looked at after a fruitless look only.

use super::{Cause, Loss, Lost};
use crate::sync::{AtomicBool, AtomicU64, Line, Mutex, Ordering, fence, lock};

/// The roll of one world.
pub(super) struct Roll {
    ended: AtomicBool,
    gone: Vec<AtomicBool>,
    words: Mutex<Words>,
    /// The word of the superstep that each rank entered last.
    at: Vec<Line<AtomicU64>>,
    /// Whether each rank may be touching memory of others.
    touching: Vec<Line<AtomicBool>>,
}

#[derive(Default)]
struct Words {
    ended: Option<Cause>,
    gone: Vec<Option<Loss>>,
}

impl Roll {
    pub(super) fn new(size: usize) -> Self {
        Self {
            ended: AtomicBool::new(false),
            gone: (0..size).map(|_| AtomicBool::new(false)).collect(),
            words: Mutex::new(Words { ended: None, gone: vec![None; size] }),
            at: (0..size).map(|_| Line(AtomicU64::new(0))).collect(),
            touching: (0..size).map(|_| Line(AtomicBool::new(false))).collect(),
        }
    }

    /// `rank` sends nothing any more. Gives whether this is news.
    pub(super) fn strike(&self, rank: usize, how: Loss) -> bool {
        let mut words = lock(&self.words);
        if words.gone[rank].is_some() {
            return false;
        }
        words.gone[rank] = Some(how);
        drop(words);
        // Release: whoever sees it sees all that was sent before.
        self.gone[rank].store(true, Ordering::Release);
        true
    }

    /// End the world, unless it has ended.
    pub(super) fn end(&self, cause: Cause) {
        lock(&self.words).ended.get_or_insert(cause);
        self.ended.store(true, Ordering::Release);
        fence(Ordering::SeqCst); // pairs with the one in `touch`
    }

    pub(super) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// `rank` has entered the superstep of `word`. Release: whoever sees it sees all that the rank sent before.
    #[inline]
    pub(super) fn announce(&self, rank: usize, word: u64) {
        self.at[rank].0.store(word, Ordering::Release);
    }

    /// Where `rank` is.
    #[inline]
    pub(super) fn announced(&self, rank: usize) -> u64 {
        self.at[rank].0.load(Ordering::Acquire)
    }

    /// `rank` begins or ends to touch memory of others; whether the world goes on, where it begins. By the fence, either
    /// this rank sees that the world was ended, or whoever ended it sees that this rank touches.
    #[inline]
    pub(super) fn touch(&self, rank: usize, on: bool) -> bool {
        self.touching[rank].0.store(on, Ordering::Release); // the load in `touches`
        if on {
            fence(Ordering::SeqCst); // pairs with the one in `end`
        }
        !on || !self.ended()
    }

    /// Whether `rank` may be touching memory of others: not once it has left, even by unwinding. Acquire: where it has
    /// ceased, its accesses lie before.
    pub(super) fn touches(&self, rank: usize) -> bool {
        self.touching[rank].0.load(Ordering::Acquire) && !self.gone(rank)
    }

    /// Whether `rank` has left, or was cut off. Acquire: all that it sent can now be seen.
    #[inline]
    pub(super) fn gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Acquire)
    }

    /// Why nothing more can come from `rank`, if so: the world was ended, or it has left.
    #[inline]
    pub(super) fn lost(&self, rank: usize) -> Option<Lost> {
        if self.ended() || self.gone(rank) { self.why(rank) } else { None }
    }

    #[cold]
    fn why(&self, rank: usize) -> Option<Lost> {
        let words = lock(&self.words);
        match (&words.ended, &words.gone[rank]) {
            (Some(cause), _) => Some(Lost { rank: cause.rank, how: Loss::Ended(cause.what.clone()) }),
            (None, Some(how)) => Some(Lost { rank, how: how.clone() }),
            (None, None) => None,
        }
    }
}
