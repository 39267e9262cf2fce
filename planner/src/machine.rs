//! [`Machine`]: the cost of communication in the LogGP model, for each kind of link, and the cost
//! of packing.

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::ir::transfers::Side;
use crate::units::Nanos;
use std::fmt;
use std::str::FromStr;

macro_rules! parameters {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident $key:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: f64,)*
        }

        impl $name {
            /// Returns a reference to each number, with the key of the number in a file.
            fn fields(&mut self) -> Vec<(&'static str, &mut f64)> {
                vec![$(($key, &mut self.$field)),*]
            }
        }
    };
}

parameters! {
    /// The cost of a message on one kind of link.
    Link {
        /// `L`: ns from when a message is sent until its receiver sees it.
        latency "latency",
        /// `o`: ns of CPU for each frame, at each end.
        overhead "overhead",
        /// `g`: ns of CPU for each frame that is sent in one packet with the frame before it, at
        /// each end.
        further "further",
        /// Additional ns for each frame with a long payload, since the first lines of its buffer
        /// are in the cache of the sender.
        payload "payload",
        /// `G`: ns a byte, in addition to packing and unpacking.
        per_byte "per_byte",
    }
}

parameters! {
    /// The cost to a core of moving elements in memory.
    Moving {
        /// ns for each run of contiguous elements, packed or unpacked.
        per_run "per_run",
        /// Additional ns for each run of a list, in which runs are at no fixed distance.
        listed "listed",
        /// ns a byte packed.
        pack "pack",
        /// ns a byte unpacked.
        unpack "unpack",
        /// The factor on the cost of a byte packed, unpacked or copied, in programs whose sections
        /// and buffers together fit half of the first cache.
        short "short",
        /// The factor on the cost of a byte packed or unpacked, in programs whose sections and
        /// buffers together do not fit the cache of a core. The lines of these sections and buffers
        /// are in a cache that cores share, and another core may get them sooner from this cache.
        long "long",
        /// ns for each run that is copied directly into or out of another rank's memory. The lines
        /// of the run are also in the cache of the rank that owns the memory.
        remote_run "remote_run",
        /// ns a byte copied directly into or out of another rank's memory, in one run.
        remote "remote",
        /// ns a byte copied in the same way in several runs, such as the rows of a plane. While a
        /// core reads a run, the cache also loads the lines after the run, and another core may be
        /// writing these lines.
        remote_rows "remote_rows",
    }
}

parameters! {
    /// The caches, for computations that pass over their fields repeatedly.
    Caches {
        /// Bytes of the cache that a core has for itself.
        core "core",
        /// Bytes of the caches that the cores of a host share. Each rank counts on an equal share.
        host "host",
        /// ns for each byte of a field that a core loads from the shared caches while all cores do
        /// so.
        near "near",
        /// ns for each byte of a field that a core loads from memory while all cores do so.
        memory "memory",
    }
}

/// The cost of communication and of memory. `Display` writes lines `key = value`, and `parse` reads
/// them. In a text, each key occurs exactly once, and `#` begins a comment. Keys that earlier
/// versions did not have may be missing. The values are times in nanoseconds, factors, and sizes of
/// caches in bytes. `World::measure_machine` measures the machine on which it runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    /// The link between ranks that share memory.
    #[doc(hidden)]
    pub shared: Link,
    /// The link between ranks that share no memory.
    #[doc(hidden)]
    pub network: Link,
    /// Moving elements in memory.
    #[doc(hidden)]
    pub moving: Moving,
    /// The caches of a core and of its host.
    #[doc(hidden)]
    pub caches: Caches,
}

impl Default for Machine {
    /// Returns the model of a two-core server.
    ///
    /// The figures of shared memory and of moving are fitted by hand to row and column halos of 16
    /// to 512 elements, and to sections of 64 bytes to 1 MiB. The example `modes` times these halos
    /// and sections between two threads, packed and direct. The values are new in each exchange,
    /// and are read after it. With such values, a copy directly from the memory of another rank
    /// costs nearly as much as packing and unpacking together, since most of the cost is that each
    /// line changes its owner. The tables are in `benches/log/sections.md`, and the bench `auto`
    /// measures whether the resulting choices are good ones.
    ///
    /// The figures of the network were not measured through Fencepost's transport. Programs that
    /// were written by hand measured them on the same kind of machine: a round trip on loopback TCP
    /// took 7.7 us, and one stream had 3.5 GB/s. A message takes half of a round trip. How this
    /// half is divided into latency and overhead is a guess.
    ///
    /// The figures of threads are also used between processes that share memory. The figures of the
    /// caches are for sweeps of stencils over two fields of `f64` in two and three dimensions, by
    /// two cores of an EPYC.
    fn default() -> Self {
        Self {
            shared: Link { latency: 90.0, overhead: 60.0, further: 60.0, payload: 110.0, per_byte: 0.0 },
            network: Link {
                latency: 1_850.0,
                overhead: 1_000.0,
                further: 1_000.0,
                payload: 0.0,
                per_byte: 0.29,
            },
            moving: Moving {
                per_run: 0.2,
                listed: 0.0,
                pack: 0.10,
                unpack: 0.17,
                short: 1.0,
                long: 1.0,
                remote_run: 20.0,
                remote: 0.267,
                remote_rows: 0.267,
            },
            caches: Caches { core: 1_048_576.0, host: 33_554_432.0, near: 0.03, memory: 0.08 },
        }
    }
}

/// The keys that texts of earlier versions do not have. They may be missing from any text. Without
/// them, a run of a list costs as much as any other run, and a byte of a short section or of rows
/// costs as much as any other byte.
const LATER: [&str; 3] = ["moving.listed", "moving.short", "moving.remote_rows"];

/// The bytes of the first cache of a core.
const FIRST_CACHE: f64 = 32_768.0;

/// The longest payload, in bytes, that every transport copies into the frame itself.
pub const SHORT: u64 = 24;

impl Link {
    /// Returns the additional time of a frame with a payload of this many bytes.
    pub(crate) fn payload(&self, bytes: u64) -> f64 {
        if bytes > SHORT { self.payload } else { 0.0 }
    }

    /// Returns the overhead of a frame. `is_further` is whether the frame shares a packet with the
    /// frame before it.
    pub(crate) fn overhead(&self, is_further: bool) -> f64 {
        if is_further { self.further } else { self.overhead }
    }
}

impl Moving {
    /// Sets the figures of [`LATER`] to the values that they have if a text leaves them out.
    fn without_later(&mut self) {
        (self.listed, self.short, self.remote_rows) = (0.0, 1.0, self.remote);
    }
}

impl Machine {
    /// Returns the link of shared memory if `shared`, and otherwise that of the network.
    pub(crate) fn link(&self, shared: bool) -> &Link {
        if shared { &self.shared } else { &self.network }
    }

    /// Returns the machine for a program whose packs and unpacks move this number of bytes in all.
    /// The section that is sent, the section that is received, and their two buffers share the
    /// caches.
    pub(crate) fn while_moving(&self, bytes: f64) -> Self {
        let mut machine = *self;
        let Moving { pack, unpack, short, long, remote, remote_rows, .. } = &mut machine.moving;
        if 2.0 * bytes <= FIRST_CACHE / 2.0 {
            [pack, unpack, remote, remote_rows].into_iter().for_each(|figure| *figure *= *short);
        } else if 2.0 * bytes > self.caches.core {
            [pack, unpack].into_iter().for_each(|figure| *figure *= *long);
        }
        machine
    }

    /// Returns the time of packing these elements of `size` bytes each.
    pub(crate) fn pack(&self, side: &Side, size: u32) -> Nanos {
        Nanos(self.runs(datatype(side)) + self.moving.pack * bytes(side, size))
    }

    /// Returns the time of unpacking these elements.
    pub(crate) fn unpack(&self, side: &Side, size: u32) -> Nanos {
        Nanos(self.runs(datatype(side)) + self.moving.unpack * bytes(side, size))
    }

    /// Returns the time of copying these elements directly. `remote` is the side in another rank's
    /// memory.
    pub(crate) fn copy(&self, remote: &Side, local: &Side, size: u32) -> Nanos {
        Nanos(self.copied(datatype(remote), datatype(local), bytes(remote, size)))
    }

    fn runs(&self, datatype: Option<&Datatype>) -> f64 {
        self.moving.per_run * runs(datatype) + self.moving.listed * listed(datatype)
    }

    fn copied(&self, remote: Option<&Datatype>, local: Option<&Datatype>, bytes: f64) -> f64 {
        let (theirs, own) = (runs(remote), runs(local));
        let per_byte = if theirs > 1.0 { self.moving.remote_rows } else { self.moving.remote };
        self.moving.remote_run * theirs
            + self.moving.per_run * (own - theirs).max(0.0)
            + self.moving.listed * listed(remote).max(listed(local))
            + per_byte * bytes
    }

    /// Returns the time that a direct copy of elements of `size` bytes saves over packing and
    /// unpacking them. It is negative if the runs in the memory of the other rank are short.
    pub(crate) fn saved_by_copying(&self, remote: &Datatype, local: &Datatype, size: u32) -> Nanos {
        let bytes = remote.size() as f64 * f64::from(size);
        let machine = self.while_moving(2.0 * bytes);
        let Moving { pack, unpack, .. } = machine.moving;
        let packed = self.runs(Some(remote)) + self.runs(Some(local)) + (pack + unpack) * bytes;
        Nanos(packed - machine.copied(Some(remote), Some(local), bytes))
    }

    /// Returns the time of a message of `bytes` bytes, from when it is sent until it is seen,
    /// without packing.
    pub(crate) fn message(&self, shared: bool, bytes: u64) -> Nanos {
        let link = self.link(shared);
        Nanos(link.latency + 2.0 * link.overhead + link.payload(bytes) + link.per_byte * bytes as f64)
    }

    /// Returns the time of the two frames of a direct copy: an entry before the copy, and a done
    /// after it.
    pub(crate) fn entry_and_done(&self) -> Nanos {
        self.message(true, 0) * 2.0
    }

    /// Returns the chunk, in bytes, with which a pipelined message of `bytes` bytes completes
    /// soonest. The transfer and unpacking of the last chunk delay the end, so a large chunk costs
    /// time. Each chunk costs the overheads of a frame, so a small chunk costs time as well.
    pub(crate) fn chunk(&self, shared: bool, bytes: u64) -> u64 {
        let link = self.link(shared);
        let tail = self.moving.unpack + link.per_byte;
        let each = 2.0 * link.overhead + link.payload;
        let best = (bytes as f64 * each / tail.max(1e-6)).sqrt();
        (best as u64).clamp(4096, 1 << 30).next_power_of_two()
    }

    /// Returns whether a message of `bytes` bytes completes sooner in pieces.
    pub(crate) fn pieces_pay(&self, shared: bool, bytes: u64) -> bool {
        bytes >= 4 * self.chunk(shared, bytes)
    }

    fn fields(&mut self) -> Vec<(String, &mut f64)> {
        let mut all = Vec::new();
        for (prefix, fields) in [
            ("shared", self.shared.fields()),
            ("network", self.network.fields()),
            ("moving", self.moving.fields()),
            ("caches", self.caches.fields()),
        ] {
            all.extend(fields.into_iter().map(|(key, value)| (format!("{prefix}.{key}"), value)));
        }
        all
    }
}

fn datatype(side: &Side) -> Option<&Datatype> {
    side.window().map(|(_, datatype)| datatype)
}

fn runs(datatype: Option<&Datatype>) -> f64 {
    datatype.map_or(1, Datatype::run_count) as f64
}

/// Returns the number of runs that are at no fixed distance from those before them.
fn listed(datatype: Option<&Datatype>) -> f64 {
    datatype.map_or(0, |datatype| datatype.pieces().len().saturating_sub(1)) as f64
}

fn bytes(side: &Side, size: u32) -> f64 {
    side.size() as f64 * f64::from(size)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut copy, mut without) = (*self, *self);
        without.moving.without_later();
        copy.fields()
            .into_iter()
            .zip(without.fields())
            .filter(|((key, value), (_, without))| !LATER.contains(&key.as_str()) || value != without)
            .try_for_each(|((key, value), _)| writeln!(f, "{key} = {value}"))
    }
}

impl FromStr for Machine {
    type Err = Error;

    /// Reads lines `key = value`; `#` begins a comment.
    ///
    /// # Errors
    /// Class `Arg` for a line that is not `key = value`, an unknown key, a key that is given twice,
    /// a value that is not a number from 0 up, and missing keys. The message names the line or the
    /// keys.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |line: usize, what: String| {
            Error::new(ErrorClass::Arg, format!("line {} of the machine model: {what}", line + 1))
        };
        let mut machine = Self::default();
        let mut fields: Vec<(String, &mut f64, bool)> =
            machine.fields().into_iter().map(|(key, value)| (key, value, false)).collect();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| wrong(number, format!("{line:?} is not `key = value`")))?;
            let (key, value) = (key.trim(), value.trim());
            let known = fields.iter().map(|(key, ..)| key.as_str()).collect::<Vec<_>>().join(", ");
            let Some((_, field, given)) = fields.iter_mut().find(|(name, ..)| name == key) else {
                return Err(wrong(number, format!("there is no key {key:?}; there are {known}")));
            };
            if std::mem::replace(given, true) {
                return Err(wrong(number, format!("{key} is given twice")));
            }
            **field = value
                .parse()
                .ok()
                .filter(|ns: &f64| ns.is_finite() && *ns >= 0.0)
                .ok_or_else(|| wrong(number, format!("{value:?} is not a number, 0 or more")))?;
        }
        let missing: Vec<String> = fields.into_iter().filter(|field| !field.2).map(|field| field.0).collect();
        let (later, missing): (Vec<String>, Vec<String>) =
            missing.into_iter().partition(|key| LATER.contains(&key.as_str()));
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(Error::new(ErrorClass::Arg, format!("the machine model has no value for {missing}")));
        }
        let mut without = machine;
        without.moving.without_later();
        for ((key, value), (_, without)) in machine.fields().into_iter().zip(without.fields()) {
            if later.contains(&key) {
                *value = *without;
            }
        }
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::{LATER, Machine, Moving};

    #[test]
    fn a_model_reads_as_it_is_written_and_no_key_may_be_missing_unknown_or_doubled() {
        let machine = Machine {
            network: super::Link { latency: 1234.5, ..Machine::default().network },
            ..Machine::default()
        };
        let text = machine.to_string();
        assert_eq!(text.parse::<Machine>().unwrap(), machine);
        for (at, line) in text.lines().enumerate() {
            let without: String =
                text.lines().enumerate().filter(|(i, _)| *i != at).map(|(_, l)| format!("{l}\n")).collect();
            let key = line.split(' ').next().unwrap();
            assert!(without.parse::<Machine>().unwrap_err().message().contains(key));
            assert!(format!("{text}{line}").parse::<Machine>().unwrap_err().message().contains("twice"));
        }
        assert!(
            format!("{text}shared.speed = 1")
                .parse::<Machine>()
                .unwrap_err()
                .message()
                .contains("shared.latency")
        );
        assert!(text.replacen("1234.5", "-1", 1).parse::<Machine>().is_err());
        // A text of an earlier version has no value for the figures that were added later.
        assert!(LATER.iter().all(|key| !text.contains(key)));
        let moving = Moving { listed: 2.0, short: 0.5, remote_rows: 0.3, ..machine.moving };
        let later = Machine { moving, ..machine };
        assert_eq!(later.to_string().parse::<Machine>().unwrap(), later);
        assert!(text.replacen("1234.5", "NaN", 1).parse::<Machine>().is_err());
    }
}
