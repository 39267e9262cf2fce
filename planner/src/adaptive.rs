//! Decides how the bytes of a dynamic epoch travel, by pure functions of a rank's observations and
//! the machine model.
//!
//! A compiled superstep is planned from the operations of all ranks. A dynamic epoch is not: a rank
//! decides at each call and at the fence, from its own operations and its own history, and no other
//! rank has to know its decision. The runtime keeps the history and calls these functions, which
//! keep no state.
//!
//! **When operations leave** ([`predict`], [`Departure::of`]) matters between ranks that exchange
//! messages. At a call, nobody knows which other operations the epoch will have. Mode auto
//! therefore expects the next epoch to be like the last one that began at the same line. The
//! operations of the next epoch leave in pieces if [`Machine`] predicts that the bytes of that last
//! epoch arrive sooner in pieces than in one message. Pieces carry the descriptions of their
//! operations, whereas an epoch that repeats the previous one is replayed without descriptions. So
//! if the last epoch repeated the one before it, the next epoch is not cut into pieces. The second
//! epoch of a line is not cut either: only one epoch precedes it, so nothing shows yet whether
//! epochs of this line repeat.
//!
//! **Which sections are exposed** ([`Rendezvous`]) matters between ranks that read each other's
//! memory. The target reads an exposed section in place, which saves packing and unpacking it. In
//! return, the origin waits at the fence until the target has read the section. This wait costs two
//! frames, an entry and a done. Mode auto exposes sections if all sections together save more than
//! this wait costs.
//!
//! **Which elements travel among the records** ([`run_bytes`]) matters between the same ranks. A
//! few contiguous elements need no description other than a record. The elements follow their
//! record, so the target reads one buffer less.
//!
//! **Which gets are listed** ([`listing_pays`]) also matters between these ranks. If a rank knows
//! which of its elements other ranks read, it need not wait for these ranks before it writes other
//! elements. The gets also need no intermediate copy. Threads of one process read the list in
//! place. Between processes the list has to be sent. Mode auto sends it if this costs less than the
//! intermediate copy.
//!
//! **Which elements follow the census** ([`follows_census`]) matters between ranks that exchange
//! messages. If elements arrive before their target knows that all ranks agree, the target keeps
//! them and copies them to its window later. To save this copy, long elements are sent after the
//! census, at the cost of one latency.
//!
//! **Source** The figures come from [`Machine`], whose default documents how they were measured.
//! The choice between a copy and a rendezvous is the choice between eager and rendezvous protocols:
//! W. Gropp, E. Lusk, *A high-performance MPI implementation on a shared-memory vector
//! supercomputer*, Parallel Computing 22, 1997. Different here: an epoch waits once for all its
//! sections, so one decision covers all sections, instead of a threshold for each section.

use crate::datatype::Datatype;
use crate::ir::pattern::Mode;
use crate::machine::Machine;
use crate::units::Nanos;

/// The observations of a rank about the epochs that began at one line of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// The number of these epochs that have ended.
    pub epochs: u32,
    /// The largest number of bytes that the last of these epochs sent to a single target.
    /// Operations on single elements do not count: collecting such operations until the fence takes
    /// less time than checking after each one whether a piece is full.
    pub most: u64,
    /// Whether the last of these epochs differed from the one before it.
    pub changed: bool,
}

/// When operations are sent to a target whose memory this rank cannot access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Departure {
    /// At the fence.
    #[default]
    Held,
    /// As soon as this many bytes are collected for the target.
    Eager {
        /// The size of a piece in bytes. If it is 0, each operation leaves at its call.
        chunk: u64,
    },
    /// In pieces. The machine model computes their size from the number of bytes to the target in
    /// this epoch so far.
    Growing,
}

/// Predicts when operations of mode auto leave in the next epoch that begins at a line, from the
/// observations about this line.
pub fn predict(observed: &Observed, machine: &Machine) -> Departure {
    let Observed { epochs, most, changed } = *observed;
    if epochs >= 2 && changed && machine.pieces_pay(false, most) {
        Departure::Eager { chunk: machine.chunk(false, most) }
    } else {
        Departure::Held
    }
}

impl Departure {
    /// Returns when an operation of `mode` leaves. `predicted` is the result of [`predict`] for the
    /// epoch.
    pub fn of(mode: Mode, predicted: Self) -> Self {
        match mode {
            Mode::Aggressive => Departure::Eager { chunk: 0 },
            Mode::Pipelined => Departure::Growing,
            Mode::Auto => predicted,
            Mode::Aggregated | Mode::Direct => Departure::Held,
        }
    }

    /// Returns whether the operations collected for a target leave now. `collected` is the number
    /// of their bytes, and `all` is the number of bytes to this target in this epoch so far.
    pub fn is_due(self, collected: u64, all: u64, machine: &Machine) -> bool {
        match self {
            Departure::Held => false,
            Departure::Eager { chunk } => collected >= chunk,
            Departure::Growing => collected >= machine.chunk(false, all),
        }
    }
}

/// The source section of a put or an accumulate to a rank that reads this rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The mode of the operation.
    pub mode: Mode,
    /// The elements at the origin.
    pub source: &'a Datatype,
    /// The elements at the target that receive them.
    pub target: &'a Datatype,
    /// The size of an element in bytes.
    pub size: u32,
}

impl Section<'_> {
    /// Returns the time saved by exposing this section, or `None` if the mode leaves no choice.
    fn saved(&self, machine: &Machine) -> Option<Nanos> {
        (self.mode == Mode::Auto).then(|| machine.saved_by_copying(self.source, self.target, self.size))
    }
}

/// The decision which sections of one rank are exposed in one epoch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rendezvous {
    /// The time saved by exposing the sections of mode auto that are cheaper to read in place, or
    /// `None` if there is no section of mode auto.
    pub saved: Option<Nanos>,
    /// The time that the wait for the readers takes.
    pub price: Nanos,
}

impl Rendezvous {
    /// Returns the decision about these sections.
    pub fn of<'a>(sections: impl IntoIterator<Item = Section<'a>>, machine: &Machine) -> Self {
        let saved = sections.into_iter().filter_map(|section| section.saved(machine));
        let saved = saved.map(|saved| saved.0.max(0.0)).reduce(|sum, saved| sum + saved);
        Self { saved: saved.map(Nanos), price: machine.entry_and_done() }
    }

    /// Returns whether the target reads this section in place. In mode direct, the target always
    /// reads in place. In mode auto, it reads in place if this saves time for this section, and if
    /// all sections together save more than the wait costs.
    pub fn exposes(&self, section: &Section<'_>, machine: &Machine) -> bool {
        let pays = self.saved.is_some_and(|saved| saved.0 > self.price.0);
        section.mode == Mode::Direct || pays && section.saved(machine).is_some_and(|saved| saved.0 > 0.0)
    }
}

/// Returns the maximum number of bytes of contiguous elements that one operation sends among the
/// records, to a rank that reads records in place. For this many bytes, reading in place would save
/// half of the time that a wait for the reader takes. So if one operation alone is worth the wait,
/// its elements are never copied. Several smaller operations of an epoch are copied, even if
/// together they are worth the wait. For the default [`Machine`] the result is about 20 KiB.
pub fn run_bytes(machine: &Machine) -> usize {
    let copy = machine.moving.pack + machine.moving.unpack - machine.moving.remote;
    (machine.entry_and_done().0 / 2.0 / copy.max(0.01)).round() as usize
}

/// The maximum number of gets of an epoch that are listed one by one. The rank whose elements these
/// gets read need not wait before it writes elements that are not in the list.
pub const LISTED: usize = 64;

/// Returns whether it pays to list gets of `bytes` bytes if the list has to be sent. The elements
/// of a get that is not listed are copied once more. These elements are in the cache by then, so
/// this copy costs as much as packing. The list costs twice as much as a wait for a reader.
pub fn listing_pays(bytes: u64, machine: &Machine) -> bool {
    machine.moving.pack * bytes as f64 > 2.0 * machine.entry_and_done().0
}

/// Returns whether it pays to send `bytes` bytes of elements after the census of a fence, to a rank
/// with which this rank exchanges messages. That saves their copy to the window, and costs one
/// latency and the overhead of one more frame at each end. The elements are copied from the cache
/// of the core that has just received them, which takes a quarter of the time of packing (bench
/// `tcp`). For the default [`Machine`] it pays from 150 KiB on.
pub fn follows_census(bytes: u64, machine: &Machine) -> bool {
    let Machine { network, moving, .. } = machine;
    moving.pack / 4.0 * bytes as f64 > network.latency + 2.0 * network.overhead
}

/// Returns whether a get of `mode` between ranks that reach each other's memory is written to its
/// destination at once, without an intermediate copy.
pub fn lands_in_place(mode: Mode) -> bool {
    matches!(mode, Mode::Auto | Mode::Direct)
}
