//! The messages between the launcher of a job, its hosts and its ranks.
//!
//! A frame is a header of eight bytes (`FP`, the protocol version, the kind and the length),
//! followed by the message. The length of a frame is bounded by [`FRAME_MAX`], and the length of a
//! text by [`TEXT_MAX`]. The reader returns an error for bytes of any other form, and never
//! allocates more memory than bytes have arrived.

use crate::codec::{Malformed, Reader, Writer};
use crate::description::Description;
use crate::exit::Exit;
use std::ffi::OsString;
use std::net::SocketAddr;

/// The version of this protocol, which the launcher, its hosts and its ranks must share.
pub const VERSION: u8 = 3;
/// The length of a frame's header in bytes.
pub const HEADER: usize = 8;
/// The largest length of a message after its header: the arguments and environment of a program, or
/// the table of a large job, must fit.
pub const FRAME_MAX: usize = 8 << 20;
/// The largest length of a text that gives a reason; the writer truncates longer ones.
pub const TEXT_MAX: usize = 4096;

/// The kind of [`Message::Job`].
const JOB: u8 = 1;

/// One message. Each variant's documentation names its sender and its receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Launcher to rank, as the first message: the job. The memory file, if the job has one,
    /// arrives with it.
    Job(Description),
    /// Launcher to rank: the address at which each rank listens.
    Table(Vec<SocketAddr>),
    /// Launcher to rank: another rank has ended.
    Died {
        /// The rank that has ended.
        rank: u32,
        /// How the rank ended, as in `rank 2 of the job was killed by signal 9 (SIGKILL)`.
        how: String,
        /// Whether the rank failed. If not, it has left all its worlds and ended in order.
        failed: bool,
    },
    /// Launcher to host: the job is over.
    Stop,

    /// Rank to launcher, as the first message: the rank has joined, with this version of Fencepost.
    /// A descriptor of its process arrives with the message.
    Joined(String),
    /// Rank to launcher, as the first message: the rank cannot join, for this reason.
    JoinFailed(String),
    /// Rank to launcher: the address at which the rank listens.
    Listening(SocketAddr),
    /// Either direction: the sender is alive.
    Heartbeat,
    /// Rank to launcher: the rank has entered a world.
    Entered,
    /// Rank to launcher: the rank has left a world.
    Left(Ending),
    /// Rank to launcher: the program has taken a snapshot of its state.
    Snapshot {
        /// The step of the program at which the snapshot was taken.
        step: u64,
        /// The folder of the snapshot. Bytes that are not UTF-8 are replaced.
        folder: String,
    },
    /// Rank to launcher, as the last message: the rank's program ends, so it sends no more
    /// heartbeats. The process that the launcher has started may continue, if it is a wrapper.
    Leaving,
    /// Host to launcher, as a message of the rank: the rank's process has ended without leaving the
    /// job, but the process that the launcher has started continues.
    Vanished,

    /// Launcher to host, as the first message: the part of the job that the host should start.
    Start(Box<HostJob>),
    /// Launcher to host: a signal for a rank.
    Signal {
        /// The rank that should receive the signal.
        rank: u32,
        /// The number of the signal.
        signal: i32,
    },
    /// Launcher to host: whether the host should pause reading the output of its ranks, since the
    /// launcher cannot write it.
    PauseOutput(bool),
    /// Launcher to host: whether the host should stop its ranks, since the launcher is stopped.
    Suspend(bool),
    /// Launcher to host: a piece of the standard input of the host's first rank. An empty piece is
    /// the end of the input.
    Input(Vec<u8>),
    /// Host to launcher: `true` if the most recent piece of the input has been passed on, so that
    /// another piece may be sent; `false` if the rank reads no more.
    InputTaken(bool),
    /// Host to launcher: a message from a rank, unchanged.
    Forward {
        /// The rank that has sent the message.
        rank: u32,
        /// The frame of the message.
        frame: Vec<u8>,
    },
    /// Launcher to host: the frame of a message that the host sends to each of its ranks.
    ForwardToAll(Vec<u8>),
    /// Host to launcher: a rank has ended.
    Exited {
        /// The rank that has ended.
        rank: u32,
        /// How it ended.
        exit: Exit,
    },
    /// Host to launcher: output of a rank.
    Output {
        /// The rank that wrote the output.
        rank: u32,
        /// Whether the rank wrote to standard error instead of standard output.
        error: bool,
        /// A piece of the output.
        bytes: Vec<u8>,
    },
}

/// How a rank left a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The program returned a value.
    Finished,
    /// The program failed with an error or a panic of its own.
    Failed,
    /// The program failed because another rank had failed.
    SecondaryFailure,
    /// The program ended because it was asked to, and has saved its state.
    Stopped,
}

/// The part of a job that a host should start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostJob {
    /// The job as described to the host's first rank, with two exceptions: the host resolves the
    /// listening address from [`bind`](Self::bind), and counts the cores itself.
    pub job: Description,
    /// The number of ranks on the host.
    pub ranks: u32,
    /// The interface or address at which the ranks listen.
    pub bind: String,
    /// The launcher's version of Fencepost.
    pub release: String,
    /// The program to run; its file must have the digest below.
    pub program: OsString,
    /// The BLAKE3 digest of the program's file, if the launcher could read that file.
    pub digest: Option<[u8; 32]>,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// The working directory of the ranks.
    pub folder: OsString,
    /// Environment variables of the ranks, in addition to those of the host.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether each rank is pinned to a core.
    pub pin: bool,
    /// The index of the first rank's core among those of the host. It may be above 0, since several
    /// hosts of a job may be one machine.
    pub first_core: u32,
}

impl Message {
    /// Encodes the message as a frame, header included.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = Writer(vec![0; HEADER]);
        let kind = self.write(&mut out);
        let Writer(mut bytes) = out;
        let length = (bytes.len() - HEADER) as u32;
        bytes[..2].copy_from_slice(b"FP");
        bytes[2..4].copy_from_slice(&[VERSION, kind]);
        bytes[4..HEADER].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Returns whether a frame that begins with this header holds a [`Job`](Self::Job).
    pub(crate) fn is_job(header: &[u8]) -> bool {
        header.get(3) == Some(&JOB)
    }

    fn write(&self, out: &mut Writer) -> u8 {
        match self {
            Message::Job(job) => {
                job.write(out);
                JOB
            }
            Message::Table(addresses) => {
                out.list(addresses, |out, &address| out.address(address));
                2
            }
            Message::Died { rank, how, failed } => {
                out.u32(*rank);
                out.u8(u8::from(*failed));
                out.bytes(truncate(how).as_bytes());
                3
            }
            Message::Stop => 4,
            Message::Joined(release) => {
                out.bytes(truncate(release).as_bytes());
                16
            }
            Message::JoinFailed(why) => {
                out.bytes(truncate(why).as_bytes());
                17
            }
            Message::Listening(address) => {
                out.address(*address);
                18
            }
            Message::Heartbeat => 19,
            Message::Entered => 20,
            Message::Left(ending) => {
                out.u8(*ending as u8);
                21
            }
            Message::Leaving => 22,
            Message::Vanished => 23,
            Message::Snapshot { step, folder } => {
                out.u64(*step);
                out.bytes(truncate(folder).as_bytes());
                24
            }
            Message::Start(host) => {
                host.write(out);
                32
            }
            Message::Signal { rank, signal } => {
                out.u32(*rank);
                out.u32(*signal as u32);
                33
            }
            Message::Forward { rank, frame } => {
                out.u32(*rank);
                out.bytes(frame);
                34
            }
            Message::ForwardToAll(frame) => {
                out.bytes(frame);
                39
            }
            Message::PauseOutput(hold) => {
                out.u8(u8::from(*hold));
                37
            }
            Message::Suspend(stop) => {
                out.u8(u8::from(*stop));
                38
            }
            Message::Input(bytes) => {
                out.bytes(bytes);
                40
            }
            Message::InputTaken(more) => {
                out.u8(u8::from(*more));
                41
            }
            Message::Exited { rank, exit } => {
                out.u32(*rank);
                exit.write(out);
                35
            }
            Message::Output { rank, error, bytes } => {
                out.u32(*rank);
                out.u8(u8::from(*error));
                out.bytes(bytes);
                36
            }
        }
    }

    fn read(kind: u8, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Reader(bytes);
        let message = match kind {
            1 => Message::Job(Description::read(&mut bytes)?),
            2 => Message::Table(bytes.list(7, Reader::address)?),
            3 => Message::Died { rank: bytes.u32()?, failed: bytes.bool()?, how: text(&mut bytes)? },
            4 => Message::Stop,
            16 => Message::Joined(text(&mut bytes)?),
            17 => Message::JoinFailed(text(&mut bytes)?),
            18 => Message::Listening(bytes.address()?),
            19 => Message::Heartbeat,
            20 => Message::Entered,
            21 => Message::Left(match bytes.u8()? {
                0 => Ending::Finished,
                1 => Ending::Failed,
                2 => Ending::SecondaryFailure,
                3 => Ending::Stopped,
                _ => return Err(Malformed("unknown kind of ending")),
            }),
            22 => Message::Leaving,
            23 => Message::Vanished,
            24 => Message::Snapshot { step: bytes.u64()?, folder: text(&mut bytes)? },
            32 => Message::Start(Box::new(HostJob::read(&mut bytes)?)),
            33 => Message::Signal { rank: bytes.u32()?, signal: bytes.u32()? as i32 },
            34 => Message::Forward { rank: bytes.u32()?, frame: bytes.bytes()?.to_vec() },
            39 => Message::ForwardToAll(bytes.bytes()?.to_vec()),
            35 => Message::Exited { rank: bytes.u32()?, exit: Exit::read(&mut bytes)? },
            36 => {
                Message::Output { rank: bytes.u32()?, error: bytes.bool()?, bytes: bytes.bytes()?.to_vec() }
            }
            37 => Message::PauseOutput(bytes.bool()?),
            38 => Message::Suspend(bytes.bool()?),
            40 => Message::Input(bytes.bytes()?.to_vec()),
            41 => Message::InputTaken(bytes.bool()?),
            _ => return Err(Malformed("unknown kind of message")),
        };
        bytes.end()?;
        Ok(message)
    }
}

impl HostJob {
    fn write(&self, out: &mut Writer) {
        self.job.write(out);
        out.u32(self.ranks);
        out.bytes(self.bind.as_bytes());
        out.bytes(self.release.as_bytes());
        out.os(&self.program);
        out.list(self.digest.as_slice(), |out, digest| out.0.extend(digest));
        out.list(&self.arguments, |out, argument| out.os(argument));
        out.os(&self.folder);
        out.list(&self.environment, |out, (name, value)| {
            out.os(name);
            out.os(value);
        });
        out.u8(u8::from(self.pin));
        out.u32(self.first_core);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        let host = Self {
            job: Description::read(bytes)?,
            ranks: bytes.u32()?,
            bind: bytes.text()?,
            release: bytes.text()?,
            program: bytes.os()?,
            digest: bytes.list(32, Reader::array)?.pop(),
            arguments: bytes.list(4, Reader::os)?,
            folder: bytes.os()?,
            environment: bytes.list(8, |bytes| Ok((bytes.os()?, bytes.os()?)))?,
            pin: bytes.bool()?,
            first_core: bytes.u32()?,
        };
        let last = host.job.rank.checked_add(host.ranks);
        if host.ranks == 0 || last.is_none_or(|last| last > host.job.size) {
            return Err(Malformed("a host has ranks that the job does not have"));
        }
        Ok(host)
    }
}

fn text(bytes: &mut Reader<'_>) -> Result<String, Malformed> {
    let text = bytes.text()?;
    if text.len() > TEXT_MAX { Err(Malformed("a text is too long")) } else { Ok(text) }
}

/// Truncates `text` to at most [`TEXT_MAX`] bytes, at a character boundary.
pub(crate) fn truncate(text: &str) -> &str {
    fencepost_transport::deadlock::cut(text, TEXT_MAX)
}

/// Decodes the first frame of `bytes`. Returns the message and the length of its frame, or `None`
/// while the frame is incomplete.
///
/// # Errors
/// `bytes` do not begin with a valid frame.
pub fn parse_frame(bytes: &[u8]) -> Result<Option<(Message, usize)>, Malformed> {
    let known = bytes.len().min(2);
    if bytes[..known] != b"FP"[..known] {
        return Err(Malformed("it does not begin with `FP`"));
    }
    if bytes.get(2).is_some_and(|&version| version != VERSION) {
        return Err(Malformed("it has another protocol version"));
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    if length > FRAME_MAX {
        return Err(Malformed("its length exceeds the limit"));
    }
    let Some(message) = bytes.get(HEADER..HEADER + length) else { return Ok(None) };
    Ok(Some((Message::read(header[3], message)?, HEADER + length)))
}

/// For fuzzers: decodes consecutive messages of a job's control channel.
///
/// Returns the number of messages before the first one that is malformed or incomplete.
#[cfg(any(test, fuzzing))]
pub fn read_all(mut data: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(Some((message, length))) = parse_frame(data) {
        assert_eq!(message.to_frame(), data[..length], "encoding a decoded message reproduces its bytes");
        (count, data) = (count + 1, &data[length..]);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{HostRanks, Limits, Reach};
    use fencepost_transport::auth::Secret;
    use proptest::prelude::*;
    use std::time::Duration;

    fn description() -> Description {
        Description {
            job: [7; 16],
            secret: Secret::from_bytes([9; 32]),
            rank: 1,
            size: 3,
            reach: Reach::Tcp,
            hosts: vec![
                HostRanks { host: 0, name: "a".into(), ranks: 2 },
                HostRanks { host: 1, name: "b".into(), ranks: 1 },
            ],
            cores: 4,
            bind: "::1".parse().expect("an address"),
            sealed: true,
            limits: Limits { heartbeat: Duration::from_secs(1), silence: Duration::from_secs(9) },
        }
    }

    fn one_of_each() -> Vec<Message> {
        let here: SocketAddr = "127.0.0.1:80".parse().expect("an address");
        let host = HostJob {
            job: description(),
            ranks: 2,
            bind: "eth0".into(),
            release: "0.1.0".into(),
            program: "/bin/true".into(),
            digest: Some([3; 32]),
            arguments: vec!["-x".into(), "".into()],
            folder: "/".into(),
            environment: vec![("A".into(), "b".into())],
            pin: true,
            first_core: 3,
        };
        vec![
            Message::Job(description()),
            Message::Table(vec![here, "[::1]:9".parse().expect("an address")]),
            Message::Died { rank: 2, how: "was killed by signal 9 (SIGKILL)".into(), failed: true },
            Message::Stop,
            Message::Joined("0.1.0".into()),
            Message::JoinFailed("no".into()),
            Message::Listening(here),
            Message::Heartbeat,
            Message::Entered,
            Message::Left(Ending::Finished),
            Message::Left(Ending::Failed),
            Message::Left(Ending::SecondaryFailure),
            Message::Left(Ending::Stopped),
            Message::Snapshot { step: 40, folder: "out/snapshots".into() },
            Message::Start(Box::new(host.clone())),
            Message::Start(Box::new(HostJob { digest: None, pin: false, ..host })),
            Message::Signal { rank: 1, signal: 15 },
            Message::PauseOutput(true),
            Message::Suspend(false),
            Message::Input(b"12\n".to_vec()),
            Message::InputTaken(true),
            Message::Leaving,
            Message::Vanished,
            Message::Forward { rank: 1, frame: Message::Heartbeat.to_frame() },
            Message::ForwardToAll(Message::Stop.to_frame()),
            Message::Exited { rank: 1, exit: Exit::Code(3) },
            Message::Exited { rank: 1, exit: Exit::Signal(9) },
            Message::Exited { rank: 0, exit: Exit::Silent(Duration::from_millis(5)) },
            Message::Exited { rank: 0, exit: Exit::NotStarted { code: 127, why: "no".into() } },
            Message::Exited { rank: 0, exit: Exit::Lost("the connection".into()) },
            Message::Output { rank: 0, error: true, bytes: b"oh\n".to_vec() },
        ]
    }

    #[test]
    fn every_message_is_decoded_as_it_was_encoded() {
        for message in one_of_each() {
            let frame = message.to_frame();
            assert_eq!(parse_frame(&frame), Ok(Some((message, frame.len()))));
        }
    }

    #[test]
    fn consecutive_messages_are_all_decoded() {
        let all: Vec<u8> = one_of_each().iter().flat_map(Message::to_frame).collect();
        assert_eq!(read_all(&all), one_of_each().len());
        assert_eq!(read_all(&all[..all.len() - 1]), one_of_each().len() - 1);
    }

    #[test]
    fn a_partial_frame_is_not_decoded() {
        for frame in one_of_each().iter().map(Message::to_frame) {
            for cut in 0..frame.len() {
                assert_eq!(parse_frame(&frame[..cut]), Ok(None), "{cut} of {}", frame.len());
            }
        }
    }

    #[test]
    fn a_message_with_missing_or_extra_bytes_is_refused() {
        for frame in one_of_each().iter().map(Message::to_frame) {
            for length in (0..frame.len() + 4 - HEADER).filter(|&length| length + HEADER != frame.len()) {
                let mut other = frame.clone();
                other.resize(HEADER + length, 0);
                other[4..HEADER].copy_from_slice(&(length as u32).to_le_bytes());
                assert!(
                    parse_frame(&other).is_err(),
                    "{length} instead of {}: {frame:?}",
                    frame.len() - HEADER
                );
            }
        }
    }

    #[test]
    fn a_header_with_another_magic_version_kind_or_an_excessive_length_is_refused() {
        let frame = Message::Heartbeat.to_frame();
        for (at, says) in [(0, "begin"), (1, "begin"), (2, "version"), (3, "kind"), (7, "length")] {
            let mut other = frame.clone();
            other[at] ^= 0x40;
            let refused = parse_frame(&other).expect_err("must be refused");
            assert!(refused.0.contains(says), "{refused:?}");
        }
    }

    #[test]
    fn a_long_text_is_truncated_at_a_character_boundary() {
        let how = "é".repeat(TEXT_MAX);
        let frame = Message::Died { rank: 0, how, failed: true }.to_frame();
        let Ok(Some((Message::Died { how, .. }, _))) = parse_frame(&frame) else {
            panic!("it is not decoded")
        };
        assert_eq!(how, "é".repeat(TEXT_MAX / 2));
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert!(!format!("{:?}", description()).contains('9'.to_string().repeat(2).as_str()));
        assert!(format!("{:?}", description()).contains("Secret(..)"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Encoding a decoded message reproduces its bytes.
        #[test]
        fn corrupted_frames_are_refused_or_decoded_exactly(
            which: prop::sample::Index,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut frame = which.get(&one_of_each()).to_frame();
            for (at, byte) in damage {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            if let Ok(Some((message, length))) = parse_frame(&frame) {
                prop_assert_eq!(&message.to_frame()[..], &frame[..length]);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_decoded_exactly(
            kind: u8,
            mut bytes in prop::collection::vec(any::<u8>(), HEADER..200),
        ) {
            let length = (bytes.len() - HEADER) as u32;
            bytes[..4].copy_from_slice(&[b'F', b'P', VERSION, kind]);
            bytes[4..HEADER].copy_from_slice(&length.to_le_bytes());
            if let Ok(Some((message, _))) = parse_frame(&bytes) {
                prop_assert_eq!(message.to_frame(), bytes);
            }
        }
    }
}
