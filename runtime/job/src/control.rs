//! The messages between a job's starter, its hosts and its ranks.
//!
//! A frame is eight bytes of head, `FP`, the protocol's version, the kind and the length, and then the message. Frames are
//! bounded by [`FRAME_MAX`], texts by [`TEXT_MAX`]; whatever else the bytes are, reading them gives an error and
//! allocates no more than has come.

use crate::codec::{In, Malformed, Out};
use crate::description::Description;
use crate::exit::Exit;
use std::ffi::OsString;
use std::net::SocketAddr;

/// The version of this protocol: starter, hosts and ranks must have the same.
pub const VERSION: u8 = 1;
/// The head of a frame.
pub const HEAD: usize = 8;
/// The most that a frame holds after its head: arguments and environment of a command, or the table of a large job.
pub const FRAME_MAX: usize = 8 << 20;
/// The most of a text that says why: longer ones are cut.
pub const TEXT_MAX: usize = 4096;

/// One message. Who says it to whom is told by its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Starter to rank, first: the job. The memory file comes with it, where there is one.
    Job(Description),
    /// Starter to rank: where each rank listens.
    Table(Vec<SocketAddr>),
    /// Starter to rank: a rank has ended, and how.
    Died {
        /// Which.
        rank: u32,
        /// How, as in `rank 2 of the job was killed by signal 9 (SIGKILL)`.
        how: String,
    },
    /// Starter to rank: end yourself.
    Stop,

    /// Rank to starter, first: it has read its job, by this version of Fencepost.
    Joined(String),
    /// Rank to starter, first: it cannot join, and why.
    Refused(String),
    /// Rank to starter: it listens here.
    Listening(SocketAddr),
    /// Rank to starter: it lives.
    Beat,
    /// Rank to starter: it has entered a world.
    Entered,
    /// Rank to starter: it has left a world.
    Left(Ending),

    /// Starter to host, first: what to start there.
    Start(Box<HostJob>),
    /// Starter to host: a signal for a rank.
    Signal {
        /// For which.
        rank: u32,
        /// Its number.
        signal: i32,
    },
    /// Starter to host: whether to let ranks wait before they write more; what they wrote is not taken just now.
    Hold(bool),
    /// Between starter and host: a message to or from a rank, as it is.
    Relay {
        /// To or from which.
        rank: u32,
        /// Its frame.
        frame: Vec<u8>,
    },
    /// Host to starter: a rank has ended.
    Exited {
        /// Which.
        rank: u32,
        /// How.
        exit: Exit,
    },
    /// Host to starter: what a rank wrote.
    Output {
        /// Which.
        rank: u32,
        /// Whether to standard error.
        error: bool,
        /// Part of it.
        bytes: Vec<u8>,
    },
}

/// How a rank left a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With a value.
    Finished,
    /// With an error or a panic of its own.
    Failed,
    /// With the error that another rank's end has given it.
    Echo,
}

/// What a host is to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostJob {
    /// The job, as its first rank there sees it; `bind` is what [`bind`](Self::bind) comes to there.
    pub job: Description,
    /// How many ranks.
    pub ranks: u32,
    /// The interface or address to listen at; empty: the one that the host's name stands for.
    pub bind: String,
    /// The version of Fencepost that asks.
    pub release: String,
    /// The program; none of its bytes differ from those that this digest is of.
    pub program: OsString,
    /// BLAKE3 of the program's file, where the starter has it.
    pub digest: Option<[u8; 32]>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs.
    pub folder: OsString,
    /// Variables that it gets besides those that are there.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether each rank keeps to a core of its own.
    pub pin: bool,
}

impl Message {
    /// The message as a frame, head and all.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut out = Out(vec![0; HEAD]);
        let kind = self.write(&mut out);
        let Out(mut bytes) = out;
        let length = (bytes.len() - HEAD) as u32;
        bytes[..2].copy_from_slice(b"FP");
        bytes[2..4].copy_from_slice(&[VERSION, kind]);
        bytes[4..HEAD].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn write(&self, out: &mut Out) -> u8 {
        match self {
            Message::Job(job) => {
                job.write(out);
                1
            }
            Message::Table(addresses) => {
                out.list(addresses, |out, &address| out.address(address));
                2
            }
            Message::Died { rank, how } => {
                out.u32(*rank);
                out.bytes(cut(how).as_bytes());
                3
            }
            Message::Stop => 4,
            Message::Joined(release) => {
                out.bytes(cut(release).as_bytes());
                16
            }
            Message::Refused(why) => {
                out.bytes(cut(why).as_bytes());
                17
            }
            Message::Listening(address) => {
                out.address(*address);
                18
            }
            Message::Beat => 19,
            Message::Entered => 20,
            Message::Left(ending) => {
                out.u8(*ending as u8);
                21
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
            Message::Relay { rank, frame } => {
                out.u32(*rank);
                out.bytes(frame);
                34
            }
            Message::Hold(hold) => {
                out.u8(u8::from(*hold));
                37
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
        let mut bytes = In(bytes);
        let message = match kind {
            1 => Message::Job(Description::read(&mut bytes)?),
            2 => Message::Table(bytes.list(7, In::address)?),
            3 => Message::Died { rank: bytes.u32()?, how: text(&mut bytes)? },
            4 => Message::Stop,
            16 => Message::Joined(text(&mut bytes)?),
            17 => Message::Refused(text(&mut bytes)?),
            18 => Message::Listening(bytes.address()?),
            19 => Message::Beat,
            20 => Message::Entered,
            21 => Message::Left(match bytes.u8()? {
                0 => Ending::Finished,
                1 => Ending::Failed,
                2 => Ending::Echo,
                _ => return Err(Malformed("an ending of no known kind")),
            }),
            32 => Message::Start(Box::new(HostJob::read(&mut bytes)?)),
            33 => Message::Signal { rank: bytes.u32()?, signal: bytes.u32()? as i32 },
            34 => Message::Relay { rank: bytes.u32()?, frame: bytes.bytes()?.to_vec() },
            35 => Message::Exited { rank: bytes.u32()?, exit: Exit::read(&mut bytes)? },
            36 => {
                Message::Output { rank: bytes.u32()?, error: bytes.bool()?, bytes: bytes.bytes()?.to_vec() }
            }
            37 => Message::Hold(bytes.bool()?),
            _ => return Err(Malformed("of no known kind")),
        };
        bytes.end()?;
        Ok(message)
    }
}

impl HostJob {
    fn write(&self, out: &mut Out) {
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
    }

    fn read(bytes: &mut In<'_>) -> Result<Self, Malformed> {
        let host = Self {
            job: Description::read(bytes)?,
            ranks: bytes.u32()?,
            bind: bytes.text()?,
            release: bytes.text()?,
            program: bytes.os()?,
            digest: bytes.list(32, In::array)?.pop(),
            arguments: bytes.list(4, In::os)?,
            folder: bytes.os()?,
            environment: bytes.list(8, |bytes| Ok((bytes.os()?, bytes.os()?)))?,
            pin: bytes.bool()?,
        };
        let last = host.job.rank.checked_add(host.ranks);
        if host.ranks == 0 || last.is_none_or(|last| last > host.job.size) {
            return Err(Malformed("ranks that the job does not have"));
        }
        Ok(host)
    }
}

fn text(bytes: &mut In<'_>) -> Result<String, Malformed> {
    let text = bytes.text()?;
    if text.len() > TEXT_MAX { Err(Malformed("a text that is too long")) } else { Ok(text) }
}

/// At most [`TEXT_MAX`] bytes of `text`.
pub(crate) fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(TEXT_MAX)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The first frame of `bytes` and how long it is, head included, once it is there whole.
///
/// # Errors
/// No frame begins so.
pub fn first(bytes: &[u8]) -> Result<Option<(Message, usize)>, Malformed> {
    let known = bytes.len().min(2);
    if bytes[..known] != b"FP"[..known] {
        return Err(Malformed("it does not begin as one of ours"));
    }
    if bytes.get(2).is_some_and(|&version| version != VERSION) {
        return Err(Malformed("it is of another version of Fencepost"));
    }
    let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if length > FRAME_MAX {
        return Err(Malformed("it is too long"));
    }
    let Some(message) = bytes.get(HEAD..HEAD + length) else { return Ok(None) };
    Ok(Some((Message::read(head[3], message)?, HEAD + length)))
}

/// For fuzzers: messages of a job's control channel, one after another.
///
/// Gives how many there are before one that is refused, or not whole.
#[cfg(any(test, fuzzing))]
pub fn read_all(mut data: &[u8]) -> usize {
    let mut count = 0;
    while let Ok(Some((message, length))) = first(data) {
        assert_eq!(message.to_frame(), data[..length], "what is read is what was written");
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
            hosts: vec![HostRanks { name: "a".into(), ranks: 2 }, HostRanks { name: "b".into(), ranks: 1 }],
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
        };
        vec![
            Message::Job(description()),
            Message::Table(vec![here, "[::1]:9".parse().expect("an address")]),
            Message::Died { rank: 2, how: "was killed by signal 9 (SIGKILL)".into() },
            Message::Stop,
            Message::Joined("0.1.0".into()),
            Message::Refused("no".into()),
            Message::Listening(here),
            Message::Beat,
            Message::Entered,
            Message::Left(Ending::Finished),
            Message::Left(Ending::Failed),
            Message::Left(Ending::Echo),
            Message::Start(Box::new(host.clone())),
            Message::Start(Box::new(HostJob { digest: None, pin: false, ..host })),
            Message::Signal { rank: 1, signal: 15 },
            Message::Hold(true),
            Message::Relay { rank: 1, frame: Message::Beat.to_frame() },
            Message::Exited { rank: 1, exit: Exit::Code(3) },
            Message::Exited { rank: 1, exit: Exit::Signal(9) },
            Message::Exited { rank: 0, exit: Exit::Silent(Duration::from_millis(5)) },
            Message::Exited { rank: 0, exit: Exit::NotStarted { code: 127, why: "no".into() } },
            Message::Exited { rank: 0, exit: Exit::Lost("the way".into()) },
            Message::Output { rank: 0, error: true, bytes: b"oh\n".to_vec() },
        ]
    }

    #[test]
    fn what_is_written_is_read_back() {
        for message in one_of_each() {
            let frame = message.to_frame();
            assert_eq!(first(&frame), Ok(Some((message, frame.len()))));
        }
    }

    #[test]
    fn messages_follow_each_other() {
        let all: Vec<u8> = one_of_each().iter().flat_map(Message::to_frame).collect();
        assert_eq!(read_all(&all), one_of_each().len());
        assert_eq!(read_all(&all[..all.len() - 1]), one_of_each().len() - 1);
    }

    #[test]
    fn part_of_a_frame_is_awaited_and_never_read() {
        for frame in one_of_each().iter().map(Message::to_frame) {
            for cut in 0..frame.len() {
                assert_eq!(first(&frame[..cut]), Ok(None), "{cut} of {}", frame.len());
            }
        }
    }

    #[test]
    fn a_message_that_is_cut_or_followed_by_more_is_refused() {
        for frame in one_of_each().iter().map(Message::to_frame) {
            for length in (0..frame.len() + 4 - HEAD).filter(|&length| length + HEAD != frame.len()) {
                let mut other = frame.clone();
                other.resize(HEAD + length, 0);
                other[4..HEAD].copy_from_slice(&(length as u32).to_le_bytes());
                assert!(first(&other).is_err(), "{length} instead of {}: {frame:?}", frame.len() - HEAD);
            }
        }
    }

    #[test]
    fn other_versions_other_beginnings_and_long_frames_are_refused_by_their_head() {
        let frame = Message::Beat.to_frame();
        for (at, says) in [(0, "begin"), (1, "begin"), (2, "version"), (3, "kind"), (7, "long")] {
            let mut other = frame.clone();
            other[at] ^= 0x40;
            let refused = first(&other).expect_err("must be refused");
            assert!(refused.0.contains(says), "{refused:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        let how = "é".repeat(TEXT_MAX);
        let frame = Message::Died { rank: 0, how }.to_frame();
        let Ok(Some((Message::Died { how, .. }, _))) = first(&frame) else { panic!("it is not read back") };
        assert_eq!(how, "é".repeat(TEXT_MAX / 2));
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert!(!format!("{:?}", description()).contains('9'.to_string().repeat(2).as_str()));
        assert!(format!("{:?}", description()).contains("Secret(..)"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Whatever is read is what its bytes say: written again, it gives the same bytes.
        #[test]
        fn damaged_frames_are_refused_or_mean_what_they_say(
            which in 0..23_usize,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut frame = one_of_each()[which].to_frame();
            for (at, byte) in damage {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            if let Ok(Some((message, length))) = first(&frame) {
                prop_assert_eq!(&message.to_frame()[..], &frame[..length]);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_awaited(kind: u8, mut bytes in prop::collection::vec(any::<u8>(), HEAD..200)) {
            let length = (bytes.len() - HEAD) as u32;
            bytes[..4].copy_from_slice(&[b'F', b'P', VERSION, kind]);
            bytes[4..HEAD].copy_from_slice(&length.to_le_bytes());
            if let Ok(Some((message, _))) = first(&bytes) {
                prop_assert_eq!(message.to_frame(), bytes);
            }
        }
    }
}
