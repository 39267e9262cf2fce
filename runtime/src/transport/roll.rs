//! Who has left, and whether the world was ended: looked at after a fruitless look only.

use super::{Cause, Loss, Lost};
use crate::sync::{AtomicBool, Mutex, Ordering, lock};

/// The roll of one world.
pub(super) struct Roll {
    ended: AtomicBool,
    gone: Vec<AtomicBool>,
    words: Mutex<Words>,
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
    }

    /// Whether `rank` has left, or was cut off. Acquire: all that it sent can now be seen.
    #[inline]
    pub(super) fn gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Acquire)
    }

    /// Why nothing more can come from `rank`, if so: the world was ended, or it has left.
    #[inline]
    pub(super) fn lost(&self, rank: usize) -> Option<Lost> {
        if self.ended.load(Ordering::Acquire) || self.gone(rank) { self.why(rank) } else { None }
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
