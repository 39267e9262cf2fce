//! How two ranks of a job authenticate each other, before either rank trusts a byte from the other.
//!
//! A job has a secret of 256 bits that only its ranks were given. The rank that opens a connection
//! (the opener) and the rank that accepts it (the taker) prove to each other that they hold the
//! secret:
//!
//! ```text
//! opener                                                  taker
//! hello    version, facts, job, size, both ranks, nonce  ─▶
//!                                ◀─  answer   version, facts, nonce, tag of (hello, answer)
//! proof    tag of (hello, answer)                        ─▶
//!                                ◀─  verdict  code, tag of (hello, answer, code)
//! ```
//!
//! A tag is a BLAKE3 hash under a key that is derived only from the secret and the message's role.
//! The tag covers all earlier messages, and with them the version, the job, both ranks, which of
//! the ranks is the opener, and both nonces. So a tag of one connection, direction or message is
//! not valid for another (no replay, no reflection). Tags are compared in constant time. All
//! messages have a fixed length, so a stranger cannot cause an allocation by sending a length. The
//! facts (byte order, sizes and alignments) are compared last, between authenticated ranks, so that
//! an incompatible machine is refused with a reason.
//!
//! Both sides are state machines that process bytes. They contain no socket, clock or random
//! source. [`Seal`] makes the optional tags of the records that follow the handshake.

use std::{fmt, io};

/// A job's secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Creates a secret, from the system's random source.
    ///
    /// # Errors
    /// Fails if the system's random source failed.
    pub fn new() -> io::Result<Self> {
        Ok(Self(random_bytes()?))
    }

    /// Returns the secret that was passed on as these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, which must be passed on only through a file descriptor.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Returns bytes from the system's random source, which nobody can predict.
///
/// # Errors
/// Fails if the system's random source failed.
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// A nonce: a number used once.
pub type Nonce = [u8; 32];

/// The identity of a rank: its number, its job, and the job's secret.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The job's secret.
    pub secret: Secret,
    /// The job's name, which is not secret.
    pub job: [u8; 16],
    /// This rank's number.
    pub rank: u32,
    /// The number of ranks of the job.
    pub size: u32,
    /// Whether every record that follows the handshake has a tag.
    pub sealed: bool,
}

/// The version of the protocol, and of this package.
const VERSION: [u8; 4] = [
    1,
    number(env!("CARGO_PKG_VERSION_MAJOR")),
    number(env!("CARGO_PKG_VERSION_MINOR")),
    number(env!("CARGO_PKG_VERSION_PATCH")),
];

const fn number(text: &str) -> u8 {
    let (bytes, mut i, mut value) = (text.as_bytes(), 0, 0u8);
    while i < bytes.len() {
        value = value.wrapping_mul(10).wrapping_add(bytes[i] - b'0');
        i += 1;
    }
    value
}

const MAGIC: &[u8; 8] = b"fencepst";
const HELLO: usize = 8 + 4 + 8 + 16 + 4 + 4 + 4 + 32;
const ANSWER: usize = 4 + 8 + 32 + 32;
const ANSWER_MESSAGE: usize = ANSWER - 32;
const TAG: usize = 32;
const VERDICT: usize = 4 + TAG;

/// Returns the byte order, and sizes and alignments of types. These facts must be equal on both
/// sides, because elements are sent in their memory layout.
fn facts(sealed: bool) -> [u8; 8] {
    [
        u16::from_ne_bytes([1, 2]) as u8,
        size_of::<usize>() as u8,
        align_of::<u64>() as u8,
        align_of::<u128>() as u8,
        align_of::<f64>() as u8,
        size_of::<char>() as u8,
        u8::from(sealed),
        0,
    ]
}

fn mismatch(mine: ([u8; 4], [u8; 8]), theirs: ([u8; 4], [u8; 8])) -> Option<String> {
    let (version, facts) = theirs;
    if version != mine.0 {
        let say = |v: [u8; 4]| format!("{}.{}.{} (protocol {})", v[1], v[2], v[3], v[0]);
        return Some(format!(
            "it runs version {} and this rank version {}: run the same program on all hosts",
            say(version),
            say(mine.0)
        ));
    }
    let names = ["byte order", "pointer size", "alignment of u64", "alignment of u128", "alignment of f64"];
    let names = names.into_iter().chain(["size of char", "setting for tags on every record", "facts"]);
    let differs = names.zip(mine.1.iter().zip(facts)).find(|(_, (mine, theirs))| **mine != *theirs);
    differs.map(|(name, (mine, theirs))| format!("its {name} is {theirs} and this rank's {mine}"))
}

/// Why a handshake failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HandshakeError {
    /// The peer does not send what a rank of this job would send.
    Stranger,
    /// The peer sends what a rank of this job would send, but does not hold the secret.
    Unproven,
    /// The peer holds the secret, but is incompatible with this rank.
    Mismatch(String),
    /// The peer holds the secret, but has itself opened a connection to this rank at the same time.
    /// The connection that the peer opened is used.
    Crossed,
    /// The peer holds the secret, and has marked this rank failed.
    GivenUp,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Stranger => {
                f.write_str("authentication failed: the peer is not a rank of this job")
            }
            HandshakeError::Unproven => {
                f.write_str("authentication failed: the peer does not hold this job's secret")
            }
            HandshakeError::Mismatch(how) => write!(f, "the peer is incompatible with this rank: {how}"),
            HandshakeError::Crossed => {
                f.write_str("both ranks connected at once: the other connection is used")
            }
            HandshakeError::GivenUp => {
                f.write_str("the peer had marked this rank failed before they were connected")
            }
        }
    }
}

impl std::error::Error for HandshakeError {}

/// The decision of the taker about an authenticated opener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The connection is used.
    Welcome,
    /// Both ranks have opened a connection at the same time, and the other connection is used.
    Crossed,
    /// The two ranks are incompatible.
    Mismatch,
    /// The taker has marked the opener failed before.
    GivenUp,
}

/// The use of a tag. Each use has its own key, so that the tag of one use is not valid for another.
#[derive(Clone, Copy)]
enum Role {
    Answer,
    Proof,
    Verdict,
    FromOpener,
    FromTaker,
}

fn key(secret: &Secret, role: Role) -> [u8; 32] {
    blake3::derive_key(
        match role {
            Role::Answer => "fencepost 1 handshake answer of the taker",
            Role::Proof => "fencepost 1 handshake proof of the opener",
            Role::Verdict => "fencepost 1 handshake verdict of the taker",
            Role::FromOpener => "fencepost 1 records from the opener",
            Role::FromTaker => "fencepost 1 records from the taker",
        },
        &secret.0,
    )
}

fn tag(secret: &Secret, role: Role, messages: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(&key(secret, role));
    for part in messages {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Compares `bytes` with the tag in constant time, and returns whether they are equal.
fn is(tag: blake3::Hash, bytes: &[u8]) -> bool {
    <[u8; 32]>::try_from(bytes).is_ok_and(|bytes| tag == blake3::Hash::from(bytes))
}

/// A reader of the fields of a message of known length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = std::array::from_fn(|i| self.0.get(i).copied().unwrap_or_default());
        self.0 = self.0.get(N..).unwrap_or_default();
        field
    }
}

/// A connection that both sides have authenticated: the peer, and the keys.
#[derive(Debug)]
pub struct Session {
    /// The peer's rank.
    pub peer: u32,
    /// The key for the records that this rank sends, and the key for the records that it receives.
    keys: [[u8; 32]; 2],
}

impl Session {
    fn new(secret: &Secret, transcript: &[u8], peer: u32, opener: bool) -> Self {
        let key = |role| *tag(secret, role, &[transcript]).as_bytes();
        let mut keys = [key(Role::FromOpener), key(Role::FromTaker)];
        if !opener {
            keys.reverse();
        }
        Self { peer, keys }
    }

    /// Returns the seal for the records that this rank sends, and the seal for the records that it
    /// receives.
    pub fn seals(&self) -> [Seal; 2] {
        self.keys.map(|key| Seal { key, records: 0 })
    }
}

/// Makes and checks the tags of the records of one direction. A tag also covers the number of its
/// record.
#[derive(Debug)]
pub struct Seal {
    key: [u8; 32],
    records: u64,
}

impl Seal {
    /// The number of bytes of a tag.
    pub const TAG: usize = 16;

    /// Returns the tag of the next record.
    pub fn tag(&mut self, record: &[u8]) -> [u8; Self::TAG] {
        let tag = self.next(record);
        std::array::from_fn(|i| tag.as_bytes()[i])
    }

    /// Compares `tag` with the tag of the next record in constant time, and returns whether they
    /// are equal.
    pub fn is(&mut self, record: &[u8], tag: [u8; Self::TAG]) -> bool {
        // Only whole hashes are compared in constant time. So the expected hash is compared with a
        // copy of itself that begins with `tag`.
        let mut whole = *self.next(record).as_bytes();
        let right = blake3::Hash::from(whole);
        whole[..Self::TAG].copy_from_slice(&tag);
        right == blake3::Hash::from(whole)
    }

    fn next(&mut self, record: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.records.to_le_bytes()).update(record);
        self.records += 1;
        hasher.finalize()
    }
}

/// A message that is arriving, of at most `N` bytes.
#[derive(Debug)]
struct PartialMessage<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> PartialMessage<N> {
    fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Takes in bytes of a message of `whole` bytes. Returns the message once it is complete.
    fn take(&mut self, bytes: &[u8], whole: usize) -> Option<&[u8]> {
        let n = bytes.len().min(whole - self.have);
        self.bytes[self.have..self.have + n].copy_from_slice(&bytes[..n]);
        self.have += n;
        if self.have < whole {
            return None;
        }
        self.have = 0;
        Some(&self.bytes[..whole])
    }
}

/// The side that opens a connection.
#[derive(Debug)]
pub struct Opener {
    me: Identity,
    peer: u32,
    /// The hello, and the answer without its tag.
    transcript: Vec<u8>,
    partial: PartialMessage<ANSWER>,
    answered: bool,
}

/// The result of taking in bytes.
#[derive(Debug)]
pub enum Opening {
    /// More bytes must arrive.
    More,
    /// The caller sends these bytes, and more bytes must arrive.
    Say(Vec<u8>),
    /// Both sides are authenticated.
    Done(Session),
}

impl Opener {
    /// Begins to open a connection to `peer`. Also returns the first message to send. The nonce
    /// must never have been used before.
    pub fn new(me: Identity, peer: u32, nonce: Nonce) -> (Self, Vec<u8>) {
        let mut hello = Vec::with_capacity(HELLO + ANSWER_MESSAGE);
        hello.extend_from_slice(MAGIC);
        hello.extend_from_slice(&VERSION);
        hello.extend_from_slice(&facts(me.sealed));
        hello.extend_from_slice(&me.job);
        for number in [me.size, me.rank, peer] {
            hello.extend_from_slice(&number.to_le_bytes());
        }
        hello.extend_from_slice(&nonce);
        let opener =
            Self { me, peer, transcript: hello.clone(), partial: PartialMessage::new(), answered: false };
        (opener, hello)
    }

    /// Returns how many bytes of the next message are missing. Bytes after it do not belong to the
    /// handshake.
    pub fn wants(&self) -> usize {
        (if self.answered { VERDICT } else { ANSWER }) - self.partial.have
    }

    /// Takes in at most as many bytes as [`wants`](Self::wants) returns.
    ///
    /// # Errors
    /// Fails if the peer cannot prove that it is the rank to which the connection was opened, or if
    /// the peer has refused the connection.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Opening, HandshakeError> {
        let secret = &self.me.secret;
        if !self.answered {
            let Some(answer) = self.partial.take(bytes, ANSWER) else { return Ok(Opening::More) };
            let (message, proof) = answer.split_at(ANSWER_MESSAGE);
            if !is(tag(secret, Role::Answer, &[&self.transcript, message]), proof) {
                return Err(HandshakeError::Unproven);
            }
            self.transcript.extend_from_slice(message);
            self.answered = true;
            return Ok(Opening::Say(tag(secret, Role::Proof, &[&self.transcript]).as_bytes().to_vec()));
        }
        let Some(verdict) = self.partial.take(bytes, VERDICT) else { return Ok(Opening::More) };
        let (code, proof) = verdict.split_at(4);
        if !is(tag(secret, Role::Verdict, &[&self.transcript, code]), proof) {
            return Err(HandshakeError::Unproven);
        }
        let mut fields = Fields(&self.transcript[HELLO..]);
        let theirs = (fields.take(), fields.take());
        match code {
            [0, ..] => Ok(Opening::Done(Session::new(secret, &self.transcript, self.peer, true))),
            [1, ..] => Err(HandshakeError::Crossed),
            [3, ..] => Err(HandshakeError::GivenUp),
            _ => Err(HandshakeError::Mismatch(
                mismatch((VERSION, facts(self.me.sealed)), theirs)
                    .unwrap_or_else(|| "their jobs have different numbers of ranks".into()),
            )),
        }
    }
}

/// The side that accepts a connection.
#[derive(Debug)]
pub struct Taker {
    me: Identity,
    nonce: Nonce,
    peer: u32,
    transcript: Vec<u8>,
    partial: PartialMessage<HELLO>,
    greeted: bool,
    mismatch: Option<String>,
}

/// The result of taking in bytes.
#[derive(Debug)]
pub enum Taking {
    /// More bytes must arrive.
    More,
    /// The caller sends these bytes, and more bytes must arrive.
    Say(Vec<u8>),
    /// The opener is authenticated as the rank with this number. The caller now decides whether to
    /// accept the opener.
    Proven(u32),
}

impl Taker {
    /// Begins to accept a connection. The nonce must never have been used before.
    pub fn new(me: Identity, nonce: Nonce) -> Self {
        Self {
            me,
            nonce,
            peer: 0,
            transcript: Vec::new(),
            partial: PartialMessage::new(),
            greeted: false,
            mismatch: None,
        }
    }

    /// Returns how many bytes of the next message are missing. Bytes after it do not belong to the
    /// handshake.
    pub fn wants(&self) -> usize {
        (if self.greeted { TAG } else { HELLO }) - self.partial.have
    }

    /// Takes in at most as many bytes as [`wants`](Self::wants) returns.
    ///
    /// # Errors
    /// Fails if the peer may not connect to this rank.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Taking, HandshakeError> {
        if self.greeted {
            let Some(proof) = self.partial.take(bytes, TAG) else { return Ok(Taking::More) };
            if !is(tag(&self.me.secret, Role::Proof, &[&self.transcript]), proof) {
                return Err(HandshakeError::Unproven);
            }
            return Ok(Taking::Proven(self.peer));
        }
        let Some(hello) = self.partial.take(bytes, HELLO) else { return Ok(Taking::More) };
        let mut fields = Fields(hello);
        let magic: [u8; 8] = fields.take();
        let theirs: ([u8; 4], [u8; 8]) = (fields.take(), fields.take());
        let job: [u8; 16] = fields.take();
        let [size, from, to] = std::array::from_fn(|_| u32::from_le_bytes(fields.take()));
        let me = &self.me;
        if magic != *MAGIC || job != me.job || to != me.rank || from == me.rank || from >= me.size {
            return Err(HandshakeError::Stranger);
        }
        let mine = (VERSION, facts(me.sealed));
        self.mismatch = mismatch(mine, theirs).or_else(|| {
            (size != me.size).then(|| {
                format!(
                    "its job has {size} ranks and this rank's job {}: start both with one number",
                    me.size
                )
            })
        });
        self.peer = from;
        self.transcript.extend_from_slice(hello);
        self.transcript.extend_from_slice(&mine.0);
        self.transcript.extend_from_slice(&mine.1);
        self.transcript.extend_from_slice(&self.nonce);
        self.greeted = true;
        let mut answer = self.transcript[HELLO..].to_vec();
        answer.extend_from_slice(tag(&me.secret, Role::Answer, &[&self.transcript]).as_bytes());
        Ok(Taking::Say(answer))
    }

    /// Returns why the authenticated rank is incompatible with this rank, or `None` if it is
    /// compatible.
    pub fn mismatch(&self) -> Option<&str> {
        self.mismatch.as_deref()
    }

    /// Answers the authenticated rank with this verdict. Returns the message to send to that rank,
    /// and a session, which is valid only if the verdict is `Welcome`.
    pub fn decide(&self, verdict: Verdict) -> (Vec<u8>, Session) {
        let code = [verdict as u8, 0, 0, 0];
        let mut reply = code.to_vec();
        reply.extend_from_slice(tag(&self.me.secret, Role::Verdict, &[&self.transcript, &code]).as_bytes());
        (reply, Session::new(&self.me.secret, &self.transcript, self.peer, false))
    }
}
