//! The decisions of a dynamic epoch about its bytes: pure functions of what a rank observed and of the machine.
//!
//! A compiled superstep is planned with all that all ranks do in view. A dynamic epoch is not: a rank decides at each
//! call and at the fence, from its own operations and its own history, and no other rank has to know. The runtime keeps
//! the history and asks here; nothing here keeps anything.
//!
//! **When operations leave** ([`predict`], [`Departure::of`]) matters between ranks that exchange messages. Nobody knows at
//! a call what else the epoch will have, so mode auto takes the last epoch that began at the same line for the next one:
//! its operations leave in pieces where [`Machine`] says that pieces of as many bytes are over sooner than one message.
//! They leave with their descriptions, and an epoch that repeats is replayed without any, so an epoch that repeated the one
//! before it stays whole; so does a line's second epoch, since the first one had nothing to repeat.
//!
//! **Which sections are exposed** ([`Rendezvous`]) matters between ranks that read each other's memory. The target reads an
//! exposed section in place, which saves packing and unpacking it, and the origin waits at the fence until the target has
//! read it, which costs an entry and a done. Mode auto exposes sections where all of them together save more than that.
//!
//! **Which elements travel among the records** ([`run_bytes`]) matters there, too. Some elements next to each other need no
//! description but a record, and they follow it, so that what a target reads is one buffer less.
//!
//! **Which gets are listed** ([`listing_pays`]) matters there too. A rank that knows what others read of its memory need not
//! wait for them before it writes something else, and they need no copy between. The list is read in place where values
//! are shared; between processes it is sent, which mode auto does where it costs less than that copy.
//!
//! **Source** The numbers are those of [`Machine`], whose default says how they were measured. The choice between a copy and
//! a rendezvous is that of eager and rendezvous protocols: W. Gropp, E. Lusk, *A high-performance MPI implementation on a
//! shared-memory vector supercomputer*, Parallel Computing 22, 1997. Different here: one wait is paid for all sections of
//! an epoch, so they are decided together and not one by one by a threshold.

use crate::datatype::Datatype;
use crate::ir::pattern::Mode;
use crate::machine::Machine;
use crate::units::Nanos;

/// The observations of a rank about the epochs that began at one line of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// The number of these epochs that have ended.
    pub epochs: u32,
    /// The bytes that the last one sent to the target that received most, operations on single elements apart: to collect
    /// those for the fence takes less time than to ask after each of them whether a piece is full.
    pub most: u64,
    /// Whether the last one was not the same as the one before it.
    pub changed: bool,
}

/// When operations leave for a target whose memory is not reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Departure {
    /// At the fence.
    #[default]
    Held,
    /// As soon as this many bytes are collected for the target.
    Eager {
        /// The size of a piece in bytes; with 0, each operation leaves at its call.
        chunk: u64,
    },
    /// In pieces of the size that the machine model has for all bytes of this epoch to the target so far.
    Growing,
}

/// When operations of mode auto leave in the next epoch that begins at a line, by what was observed there.
pub fn predict(observed: &Observed, machine: &Machine) -> Departure {
    let Observed { epochs, most, changed } = *observed;
    if epochs >= 2 && changed && machine.pieces_pay(false, most) {
        Departure::Eager { chunk: machine.chunk(false, most) }
    } else {
        Departure::Held
    }
}

impl Departure {
    /// When an operation of `mode` leaves; `predicted` is what [`predict`] returned for the epoch.
    pub fn of(mode: Mode, predicted: Self) -> Self {
        match mode {
            Mode::Aggressive => Departure::Eager { chunk: 0 },
            Mode::Pipelined => Departure::Growing,
            Mode::Auto => predicted,
            Mode::Aggregated | Mode::Direct => Departure::Held,
        }
    }

    /// Returns whether what is collected for a target leaves now: `collected` bytes, of `all` bytes to it in this epoch.
    pub fn is_due(self, collected: u64, all: u64, machine: &Machine) -> bool {
        match self {
            Departure::Held => false,
            Departure::Eager { chunk } => collected >= chunk,
            Departure::Growing => collected >= machine.chunk(false, all),
        }
    }
}

/// A section that is the source of a put or an accumulate, to a rank that reads this rank's memory.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// The mode of the operation.
    pub mode: Mode,
    /// The elements at the origin.
    pub source: &'a Datatype,
    /// The elements at the target that they go to.
    pub target: &'a Datatype,
    /// The size of an element in bytes.
    pub size: u32,
}

impl Section<'_> {
    /// Returns the time that exposing it saves; `None` where the mode leaves no choice.
    fn saved(&self, machine: &Machine) -> Option<Nanos> {
        (self.mode == Mode::Auto).then(|| machine.saved_by_copying(self.source, self.target, self.size))
    }
}

/// The decision about all sections of one rank in one epoch.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rendezvous {
    /// The time saved by exposing the sections of mode auto that are cheaper to read in place; `None` if there is no section
    /// of mode auto.
    pub saved: Option<Nanos>,
    /// The time that the wait for the readers takes.
    pub price: Nanos,
}

impl Rendezvous {
    /// The decision for these sections.
    pub fn of<'a>(sections: impl IntoIterator<Item = Section<'a>>, machine: &Machine) -> Self {
        let saved = sections.into_iter().filter_map(|section| section.saved(machine));
        let saved = saved.map(|saved| saved.0.max(0.0)).reduce(|sum, saved| sum + saved);
        Self { saved: saved.map(Nanos), price: machine.entry_and_done() }
    }

    /// Returns whether the target reads this section in place: one of mode direct always, one of mode auto where that saves
    /// time and all of them save more than the wait costs.
    pub fn exposes(&self, section: &Section<'_>, machine: &Machine) -> bool {
        let pays = self.saved.is_some_and(|saved| saved.0 > self.price.0);
        section.mode == Mode::Direct || pays && section.saved(machine).is_some_and(|saved| saved.0 > 0.0)
    }
}

/// The most bytes of elements next to each other that one operation sends among the records, to a rank that reads records in
/// place: as many as are copied there and back in half of the time that it takes to wait for one who reads them where they
/// are. So nothing that is worth such a wait is copied, unless an epoch has several of these; at most some 20 KiB.
pub fn run_bytes(machine: &Machine) -> usize {
    let copy = machine.moving.pack + machine.moving.unpack - machine.moving.remote;
    (machine.entry_and_done().0 / 2.0 / copy.max(0.01)).round() as usize
}

/// The most gets of an epoch that are listed one by one for the ranks that they read from, so that these need not wait
/// before they write what nobody reads.
pub const LISTED: usize = 64;

/// Returns whether gets of `bytes` bytes are listed where the list has to be sent: a get that is not listed is copied once
/// more, out of the cache that it was just copied to, as what is packed is; the list costs twice what a wait for a reader does.
pub fn listing_pays(bytes: u64, machine: &Machine) -> bool {
    machine.moving.pack * bytes as f64 > 2.0 * machine.entry_and_done().0
}

/// Returns whether a get of `mode` between ranks that reach each other's memory lands where it belongs at once, without a
/// copy between.
pub fn lands_in_place(mode: Mode) -> bool {
    matches!(mode, Mode::Auto | Mode::Direct)
}
