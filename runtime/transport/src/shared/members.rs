//! Who has left, whether the world was ended, and where each rank is: looked at after a fruitless look only.
//!
//! It is made of flags and of texts that are written once: a rank that dies in the middle leaves nothing locked.

use std::io;

use crate::shared::slice::{Heap, Placed, Places};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Line, Ordering, UnsafeCell, fence, yield_now};
use crate::{Cause, Leave, Loss, Lost};

/// The roll of one world.
#[derive(Clone)]
pub struct Roll {
    ended: Placed<AtomicBool>,
    why_ended: Placed<Words>,
    gone: Placed<AtomicBool>,
    /// Whose ends are dropped, and who has noticed that all are.
    detached: Placed<AtomicBool>,
    #[cfg_attr(loom, expect(dead_code, reason = "only segments outlive worlds"))]
    swept: Placed<AtomicBool>,
    why_gone: Placed<Words>,
    /// The word of the superstep that each rank entered last.
    at: Placed<Line<AtomicU64>>,
    /// Whether each rank may be touching memory of others.
    touching: Placed<Line<AtomicBool>>,
    /// Those whom somebody else found dead, where ranks can die apart.
    dead: Option<Dead>,
}

/// Ranks that were struck off all rolls at once.
#[derive(Clone)]
pub(crate) struct Dead {
    /// How many there are.
    count: Placed<AtomicU32>,
    why: Placed<Words>,
    /// Why each left its last world, if that was with an error, and it ended by itself and in no world.
    parting: Placed<Words>,
    /// Which of them each rank of this world is.
    of: std::sync::Arc<[u32]>,
}

/// Bytes of a text at most; what is longer is cut.
const TEXT: usize = 1000;

/// What became of a rank, written once.
#[repr(C)]
pub(crate) struct Words {
    state: AtomicU32,
    text: UnsafeCell<Text>,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Text {
    rank: u32,
    kind: u32,
    len: u32,
    bytes: [u8; TEXT],
}

/// States of [`Words`].
const UNWRITTEN: u32 = 0;
const CLAIMED: u32 = 1;
const WRITTEN: u32 = 2;

// SAFETY: a text is written by who has claimed it, once, and read after the Acquire load of the state that the writer
// stored with Release afterwards.
unsafe impl Sync for Words {}
// SAFETY: it is plain data.
unsafe impl Send for Words {}

impl Words {
    pub(crate) fn new() -> Self {
        let text = Text { rank: 0, kind: 0, len: 0, bytes: [0; TEXT] };
        Self { state: AtomicU32::new(UNWRITTEN), text: UnsafeCell::new(text) }
    }

    /// Write, unless somebody has. Gives whether this is what is written now.
    fn write(&self, lost: &Lost) -> bool {
        if self.state.compare_exchange(UNWRITTEN, CLAIMED, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        let (kind, said) = match &lost.how {
            Loss::Left(Leave::Finished) => (0, ""),
            Loss::Left(Leave::Failed(why)) => (1, &why[..]),
            Loss::Left(Leave::Panicked(why)) => (2, &why[..]),
            Loss::Cut => (3, ""),
            Loss::Died(how) => (4, &how[..]),
            Loss::Ended(why) => (5, &why[..]),
        };
        let cut = (0..=TEXT.min(said.len())).rev().find(|&end| said.is_char_boundary(end));
        let len = cut.unwrap_or(0);
        // SAFETY: claimed by this thread, and nobody reads before it is written.
        self.text.with_mut(|text| unsafe {
            (*text).rank = lost.rank as u32;
            (*text).kind = kind;
            (*text).len = len as u32;
            (&mut (*text).bytes)[..len].copy_from_slice(&said.as_bytes()[..len]);
        });
        self.state.store(WRITTEN, Ordering::Release); // the loads in `read` and `is_written`
        true
    }

    fn is_written(&self) -> bool {
        self.state.load(Ordering::Acquire) == WRITTEN
    }

    fn read(&self) -> Option<Lost> {
        if !self.is_written() {
            return None;
        }
        // SAFETY: it was written, and is not written again.
        let text = self.text.with(|text| unsafe { *text });
        let said = || {
            let bytes = &text.bytes[..TEXT.min(text.len as usize)];
            String::from_utf8_lossy(bytes).into_owned()
        };
        let how = match text.kind {
            0 => Loss::Left(Leave::Finished),
            1 => Loss::Left(Leave::Failed(said())),
            2 => Loss::Left(Leave::Panicked(said())),
            3 => Loss::Cut,
            4 => Loss::Died(said()),
            _ => Loss::Ended(said()),
        };
        Some(Lost { rank: text.rank as usize, how })
    }
}

#[cfg(not(loom))]
impl Dead {
    /// Nobody yet, of so many.
    pub(crate) fn place(ranks: usize, places: &mut impl Places) -> io::Result<Self> {
        Ok(Self {
            count: places.place(1, || AtomicU32::new(0))?,
            why: places.place(ranks, Words::new)?,
            parting: places.place(ranks, Words::new)?,
            of: (0..ranks as u32).collect(),
        })
    }

    /// The same, for a world of some of them.
    pub(crate) fn of(&self, members: &[u32]) -> Self {
        Self { of: members.iter().map(|&member| self.of[member as usize]).collect(), ..self.clone() }
    }

    /// `rank`, the caller, is about to end by itself, in no world; it left the last with this error.
    pub(crate) fn part(&self, rank: usize, why: &str) {
        let said = format!("it ended without having been in this world: {why}");
        self.parting[self.of[rank] as usize].write(&Lost { rank, how: Loss::Left(Leave::Failed(said)) });
    }

    /// `rank` has died. Gives whether this is news.
    pub(crate) fn strike(&self, rank: usize, how: &str) -> bool {
        let news = self.why[self.of[rank] as usize].write(&Lost { rank, how: Loss::Died(how.into()) });
        if news {
            self.count[0].fetch_add(1, Ordering::Release); // the load in `has`
        }
        news
    }
}

impl Dead {
    #[inline]
    fn has(&self, rank: usize) -> bool {
        self.count[0].load(Ordering::Acquire) != 0 && self.why[self.of[rank] as usize].is_written()
    }

    /// What became of `rank`, which has not left the world where this is asked. If it parted, it has never been there.
    fn how(&self, rank: usize) -> Option<Loss> {
        let at = self.of[rank] as usize;
        let died = self.why[at].read()?;
        Some(self.parting[at].read().unwrap_or(died).how)
    }
}

impl Roll {
    /// A roll on this process's heap.
    pub(crate) fn new(size: usize) -> Self {
        Self::place(size, None, &mut Heap).expect("a heap has room")
    }

    pub(crate) fn place(size: usize, dead: Option<Dead>, places: &mut impl Places) -> io::Result<Self> {
        Ok(Self {
            ended: places.place(1, || AtomicBool::new(false))?,
            why_ended: places.place(1, Words::new)?,
            gone: places.place(size, || AtomicBool::new(false))?,
            detached: places.place(size, || AtomicBool::new(false))?,
            swept: places.place(size, || AtomicBool::new(false))?,
            why_gone: places.place(size, Words::new)?,
            at: places.place(size, || Line(AtomicU64::new(0)))?,
            touching: places.place(size, || Line(AtomicBool::new(false)))?,
            dead,
        })
    }

    /// `rank` sends nothing any more. Gives whether this is news.
    pub(crate) fn strike(&self, rank: usize, how: Loss) -> bool {
        let news = self.why_gone[rank].write(&Lost { rank, how });
        if news {
            // Release: whoever sees it sees all that was sent before.
            self.gone[rank].store(true, Ordering::Release);
        }
        news
    }

    /// End the world, unless it has ended.
    pub(crate) fn end(&self, cause: Cause) {
        self.why_ended[0].write(&Lost { rank: cause.rank, how: Loss::Ended(cause.what) });
        self.ended[0].store(true, Ordering::Release);
        fence(Ordering::SeqCst); // pairs with the one in `touch`
    }

    #[inline]
    pub(crate) fn ended(&self) -> bool {
        self.ended[0].load(Ordering::Acquire)
    }

    /// `rank` has entered the superstep of `word`. Release: whoever sees it sees all that the rank sent before.
    #[inline]
    pub(crate) fn announce(&self, rank: usize, word: u64) {
        self.at[rank].0.store(word, Ordering::Release);
    }

    /// Where `rank` is.
    #[inline]
    pub(crate) fn announced(&self, rank: usize) -> u64 {
        self.at[rank].0.load(Ordering::Acquire)
    }

    /// `rank` begins or ends to touch memory of others; whether the world goes on, where it begins. By the fence, either
    /// this rank sees that the world was ended, or whoever ended it sees that this rank touches.
    #[inline]
    pub(crate) fn touch(&self, rank: usize, on: bool) -> bool {
        self.touching[rank].0.store(on, Ordering::Release); // the load in `touches`
        if on {
            fence(Ordering::SeqCst); // pairs with the one in `end`
        }
        !on || !self.ended()
    }

    /// Whether `rank` may be touching memory of others: not once it has left, even by unwinding. Acquire: where it has
    /// ceased, its accesses lie before.
    pub(crate) fn touches(&self, rank: usize) -> bool {
        self.touching[rank].0.load(Ordering::Acquire) && !self.gone(rank)
    }

    /// Whether `rank` has left, was cut off, or has died. Acquire: all that it sent can now be seen.
    #[inline]
    pub(crate) fn gone(&self, rank: usize) -> bool {
        self.gone[rank].load(Ordering::Acquire) || self.dead.as_ref().is_some_and(|dead| dead.has(rank))
    }

    /// The end of `rank` is dropped: it reads no memory of this world any more but this roll.
    pub(crate) fn detach(&self, rank: usize) {
        self.detached[rank].store(true, Ordering::Release);
    }

    /// Why nothing more can come from `rank`, if so: the world was ended, or it has left.
    #[inline]
    pub(crate) fn lost(&self, rank: usize) -> Option<Lost> {
        if self.ended() || self.gone(rank) { self.why(rank) } else { None }
    }

    #[cold]
    fn why(&self, rank: usize) -> Option<Lost> {
        if self.ended() {
            // Who was first may still be writing, or have died of it.
            for _ in 0..PATIENCE {
                if let Some(lost) = self.why_ended[0].read() {
                    return Some(lost);
                }
                yield_now();
            }
            let how = "of a rank that could not say why any more".to_owned();
            return Some(self.why_gone(rank).unwrap_or(Lost { rank, how: Loss::Ended(how) }));
        }
        self.why_gone(rank)
    }

    fn why_gone(&self, rank: usize) -> Option<Lost> {
        let left = self.why_gone[rank].read();
        left.or_else(|| Some(Lost { rank, how: self.dead.as_ref()?.how(rank)? }))
    }
}

/// When its memory may be given back.
#[cfg(not(loom))]
impl Roll {
    /// Whether all ends are dropped. Acquire: all that they read lies before.
    pub(crate) fn all_detached(&self) -> bool {
        self.all(&self.detached)
    }

    /// `rank` looks at this roll no more.
    pub(crate) fn sweep(&self, rank: usize) -> bool {
        self.swept[rank].store(true, Ordering::Release);
        true
    }

    /// Whether nobody but the caller looks at this roll any more.
    pub(crate) fn all_swept(&self) -> bool {
        self.all(&self.swept)
    }

    fn all(&self, flags: &Placed<AtomicBool>) -> bool {
        let dead = |rank| self.dead.as_ref().is_some_and(|dead| dead.has(rank));
        flags.iter().enumerate().all(|(rank, flag)| flag.load(Ordering::Acquire) || dead(rank))
    }
}

/// How often a text that is being written is looked for.
const PATIENCE: usize = 1000;
