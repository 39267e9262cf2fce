//! [`Machine`]: the cost of communication in the LogGP model, for each kind of link, and the cost
//! of packing.

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::Delta;
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
            /// Returns the keys of its numbers in a file, with a reference to each number.
            fn fields(&mut self) -> Vec<(&'static str, &mut f64)> {
                vec![$(($key, &mut self.$field)),*]
            }
        }
    };
}

parameters! {
    /// The cost of a message on one kind of link.
    Link {
        /// `L`: ns from sent to seen.
        latency "latency",
        /// `o`: ns of CPU for each frame, at each end.
        overhead "overhead",
        /// `g`: ns of CPU for each frame that follows another one of the same two ranks, at each
        /// end. Frames that leave together share the cost of leaving.
        further "further",
        /// Additional ns for each frame with a long payload: the first lines of a buffer that its
        /// sender holds.
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
        /// ns a byte packed.
        pack "pack",
        /// ns a byte unpacked.
        unpack "unpack",
        /// The cost of a byte packed or unpacked in sections that do not fit the cache of a core
        /// together with their buffers, as a factor: their lines are in a cache that cores share,
        /// from which another core may get them sooner.
        long "long",
        /// ns for each run stored into or loaded from another rank's memory, whose owner holds the
        /// lines, too.
        remote_run "remote_run",
        /// ns a byte copied directly into or out of another rank's memory.
        remote "remote",
    }
}

parameters! {
    /// The caches, for computations that pass over their fields repeatedly.
    Caches {
        /// Bytes of the cache that a core has for itself.
        core "core",
        /// Bytes of the caches that the cores of a host share. Each rank counts on its part.
        host "host",
        /// ns a byte of the fields from the shared caches to a core, while all cores do the same.
        near "near",
        /// ns a byte of the fields from memory to a core, while all cores do the same.
        memory "memory",
    }
}

/// The cost of communication and of memory. `Display` writes it as lines `key = value`, and `parse`
/// reads such a text, in which each key occurs exactly once and `#` begins a comment. The values
/// are nanoseconds, and bytes for the sizes of caches. `World::measure_machine` measures the
/// machine on which it runs.
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
    /// to 512 elements, and to sections of 64 bytes to 1 MiB. The example `modes` times these
    /// between two threads, packed and direct, with values that are new in each exchange and are
    /// read after it. With such values, a copy directly from the memory of another rank costs
    /// nearly as much as packing and unpacking together: most of either cost is that each line
    /// changes its owner. The tables are in `benches/log/sections.md`, and the bench `auto`
    /// measures whether the resulting choices are good ones.
    ///
    /// The figures of the network were not measured through Fencepost's transport. They are half of
    /// the 7.7 us that a round trip on loopback TCP took, and the 3.5 GB/s that one stream had,
    /// measured by hand-written programs on the same kind of machine. How the half is divided into
    /// latency and overhead is a guess.
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
                pack: 0.10,
                unpack: 0.17,
                long: 1.0,
                remote_run: 20.0,
                remote: 0.267,
            },
            caches: Caches { core: 1_048_576.0, host: 33_554_432.0, near: 0.03, memory: 0.08 },
        }
    }
}

/// The longest payload that travels in its frame, in bytes: every transport copies it.
pub const SHORT: u64 = 24;

impl Link {
    /// Returns the additional time of a frame with a payload of this many bytes.
    pub(crate) fn payload(&self, bytes: u64) -> f64 {
        if bytes > SHORT { self.payload } else { 0.0 }
    }

    /// Returns the overhead of a frame of a rank and `peer`, if the frame before it, in the same
    /// direction, was one of the rank and `before`.
    pub(crate) fn overhead_after(&self, before: Option<Delta>, peer: Delta) -> f64 {
        if before == Some(peer) { self.further } else { self.overhead }
    }
}

impl Machine {
    /// Returns the link between two ranks that share memory if `shared`.
    pub(crate) fn link(&self, shared: bool) -> &Link {
        if shared { &self.shared } else { &self.network }
    }

    /// Returns the number of bytes that are packed or unpacked in the time of these. A section, its
    /// two buffers and the section at the other end share the caches.
    fn long(&self, bytes: f64) -> f64 {
        if 4.0 * bytes > self.caches.core { bytes * self.moving.long } else { bytes }
    }

    /// Returns the time of packing these elements of `size` bytes each.
    pub(crate) fn pack(&self, side: &Side, size: u32) -> Nanos {
        let bytes = self.long(bytes(side, size));
        Nanos(self.moving.per_run * runs(side) + self.moving.pack * bytes)
    }

    /// Returns the time of unpacking these elements.
    pub(crate) fn unpack(&self, side: &Side, size: u32) -> Nanos {
        let bytes = self.long(bytes(side, size));
        Nanos(self.moving.per_run * runs(side) + self.moving.unpack * bytes)
    }

    /// Returns the time of copying these elements directly. `remote` is the side in another rank's
    /// memory.
    pub(crate) fn copy(&self, remote: &Side, local: &Side, size: u32) -> Nanos {
        Nanos(self.copied(runs(remote), runs(local), bytes(remote, size)))
    }

    fn copied(&self, remote_runs: f64, local_runs: f64, bytes: f64) -> f64 {
        self.moving.remote_run * remote_runs
            + self.moving.per_run * (local_runs - remote_runs).max(0.0)
            + self.moving.remote * bytes
    }

    /// Returns the time that a direct copy of elements of `size` bytes saves over packing and
    /// unpacking them. It is negative if the runs in the memory of the other rank are short.
    pub(crate) fn saved_by_copying(&self, remote: &Datatype, local: &Datatype, size: u32) -> Nanos {
        let (theirs, own) = (remote.run_count() as f64, local.run_count() as f64);
        let bytes = remote.size() as f64 * f64::from(size);
        let moved = (self.moving.pack + self.moving.unpack) * self.long(bytes);
        let packed = self.moving.per_run * (theirs + own) + moved;
        Nanos(packed - self.copied(theirs, own, bytes))
    }

    /// Returns the time of a message of `bytes` bytes, from sent to seen, without packing.
    pub(crate) fn message(&self, shared: bool, bytes: u64) -> Nanos {
        let link = self.link(shared);
        Nanos(link.latency + 2.0 * link.overhead + link.payload(bytes) + link.per_byte * bytes as f64)
    }

    /// Returns the time of the two frames of a direct copy: an entry before it, and a done after
    /// it.
    pub(crate) fn entry_and_done(&self) -> Nanos {
        self.message(true, 0) * 2.0
    }

    /// Returns the chunk, in bytes, with which a pipelined message of `bytes` bytes completes
    /// soonest. With chunks of `c` bytes, the last one is unpacked `c` bytes after the rest, and
    /// each chunk costs the overheads of a frame.
    pub(crate) fn chunk(&self, shared: bool, bytes: u64) -> u64 {
        let link = self.link(shared);
        let tail = self.moving.unpack + link.per_byte;
        let each = 2.0 * link.further + link.payload;
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

fn runs(side: &Side) -> f64 {
    side.window().map_or(1, |(_, datatype): (_, &Datatype)| datatype.run_count()) as f64
}

fn bytes(side: &Side, size: u32) -> f64 {
    side.size() as f64 * f64::from(size)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        copy.fields().into_iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))
    }
}

impl FromStr for Machine {
    type Err = Error;

    /// Reads lines `key = value`; `#` begins a comment.
    ///
    /// # Errors
    /// Class `Arg`, naming the line or the keys: a line that is not `key = value`, an unknown key,
    /// one that is given twice, a value that is not a number from 0 up, keys that are missing.
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
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Err(Error::new(ErrorClass::Arg, format!("the machine model has no value for {missing}")));
        }
        Ok(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::Machine;

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
        assert!(text.replacen("1234.5", "NaN", 1).parse::<Machine>().is_err());
    }
}
