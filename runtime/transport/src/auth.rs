//! How two ranks of a job know one another, before either believes a byte that the other sends.
//!
//! A job has a secret of 256 bits that only its ranks were given. Who opens a connection and who takes it show each
//! other that they have it:
//!
//! ```text
//! opener                                                  taker
//! hello    version, facts, job, size, both ranks, nonce  ─▶
//!                                ◀─  answer   version, facts, nonce, tag of (hello, answer)
//! proof    tag of (hello, answer)                        ─▶
//!                                ◀─  verdict  code, tag of (hello, answer, code)
//! ```
//!
//! A tag is BLAKE3 keyed with what the secret, the message's role and nothing else give, over all that was said before:
//! version, job, both ranks, who opened, and both nonces. So a tag of one connection, direction or message is none of
//! another (no replay, no reflection). Tags are compared in constant time. All messages have a fixed length, so nothing
//! is allocated by what a stranger claims; the facts (byte order, sizes and alignments) are compared last, between
//! ranks that are known, so that unlike machines are refused with words.
//!
//! Both sides are machines over bytes: they hold no socket, clock or source of chance. [`Seal`] is the optional tag of
//! every record that follows.

use std::{fmt, io};

/// A job's secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new one, from the system's source of chance.
    ///
    /// # Errors
    /// The system gives none.
    pub fn new() -> io::Result<Self> {
        Ok(Self(chance()?))
    }

    /// One that was handed over.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// To be handed over, by descriptor only.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Bytes that nobody can foretell.
///
/// # Errors
/// The system gives none.
pub fn chance<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// A nonce: a number used once.
pub type Nonce = [u8; 32];

/// What a rank says of itself, and knows of its job.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The job's secret.
    pub secret: Secret,
    /// The job's name, which is no secret.
    pub job: [u8; 16],
    /// This rank.
    pub rank: u32,
    /// How many ranks the job has.
    pub size: u32,
    /// Whether every record that follows carries a tag.
    pub sealed: bool,
}

/// The version of all that travels, and of this package.
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
const SAID: usize = ANSWER - 32;
const TAG: usize = 32;
const VERDICT: usize = 4 + TAG;

/// Byte order, sizes and alignments: what must be alike where elements travel as they lie.
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

fn unlike(mine: ([u8; 4], [u8; 8]), theirs: ([u8; 4], [u8; 8])) -> Option<String> {
    let (version, facts) = theirs;
    if version != mine.0 {
        let say = |v: [u8; 4]| format!("{}.{}.{} (protocol {})", v[1], v[2], v[3], v[0]);
        return Some(format!("it runs version {} and this rank {}", say(version), say(mine.0)));
    }
    let names = ["byte order", "pointer size", "alignment of u64", "alignment of u128", "alignment of f64"];
    let names = names.into_iter().chain(["size of char", "setting for tags on every record", "facts"]);
    let differs = names.zip(mine.1.iter().zip(facts)).find(|(_, (mine, theirs))| **mine != *theirs);
    differs.map(|(name, (mine, theirs))| format!("its {name} is {theirs} and this rank's {mine}"))
}

/// Why somebody was not let in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It does not speak as a rank of this job would.
    Stranger,
    /// It speaks so, and does not have the secret.
    Unproven,
    /// It has the secret, and can't work with this rank.
    Unlike(String),
    /// It has the secret, and connects to this rank itself: the other connection is used.
    Crossed,
    /// It has the secret, and takes this rank for dead.
    GivenUp,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Stranger => f.write_str("it is no rank of this job"),
            Refusal::Unproven => f.write_str("it has not the secret of this job"),
            Refusal::Unlike(how) => write!(f, "it can't work with this rank: {how}"),
            Refusal::Crossed => f.write_str("both connected at once"),
            Refusal::GivenUp => f.write_str("it has given this rank up before they were connected"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What the taker decides about a proven opener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The connection is used.
    Welcome,
    /// The other one is.
    Crossed,
    /// The two can't work together.
    Unlike,
    /// The opener was taken for dead before.
    GivenUp,
}

/// What a tag says: a key for each, so that none stands for another.
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

fn tag(secret: &Secret, role: Role, said: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(&key(secret, role));
    for part in said {
        hasher.update(part);
    }
    hasher.finalize()
}

/// Whether `bytes` are the tag; takes as long whatever they are.
fn is(tag: blake3::Hash, bytes: &[u8]) -> bool {
    <[u8; 32]>::try_from(bytes).is_ok_and(|bytes| tag == blake3::Hash::from(bytes))
}

/// Reads the fields of a message of known length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let field = std::array::from_fn(|i| self.0.get(i).copied().unwrap_or_default());
        self.0 = self.0.get(N..).unwrap_or_default();
        field
    }
}

/// What is known of a connection once both are proven.
#[derive(Debug)]
pub struct Session {
    /// Who is at the other end.
    pub peer: u32,
    /// The keys of what I send, and of what I get.
    keys: [[u8; 32]; 2],
}

impl Session {
    fn new(secret: &Secret, said: &[u8], peer: u32, opener: bool) -> Self {
        let key = |role| *tag(secret, role, &[said]).as_bytes();
        let mut keys = [key(Role::FromOpener), key(Role::FromTaker)];
        if !opener {
            keys.reverse();
        }
        Self { peer, keys }
    }

    /// The seals of what I send, and of what I get.
    pub fn seals(&self) -> [Seal; 2] {
        self.keys.map(|key| Seal { key, records: 0 })
    }
}

/// Tags records of one direction, each with its number.
#[derive(Debug)]
pub struct Seal {
    key: [u8; 32],
    records: u64,
}

impl Seal {
    /// Bytes of a tag.
    pub const TAG: usize = 16;

    /// The tag of the next record.
    pub fn tag(&mut self, record: &[u8]) -> [u8; Self::TAG] {
        let tag = self.next(record);
        std::array::from_fn(|i| tag.as_bytes()[i])
    }

    /// Whether this is the tag of the next record; takes as long whatever it is.
    pub fn is(&mut self, record: &[u8], tag: [u8; Self::TAG]) -> bool {
        // Both halves of a comparison in constant time are this one's.
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

/// A message that is coming, of at most so many bytes.
#[derive(Debug)]
struct Coming<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Coming<N> {
    fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Take in what belongs to a message of `whole` bytes; gives it once it is whole.
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
    /// Hello, and what of the answer is not its tag.
    said: Vec<u8>,
    coming: Coming<ANSWER>,
    answered: bool,
}

/// What comes of bytes that were taken in.
#[derive(Debug)]
pub enum Opening {
    /// More must come.
    More,
    /// Send this; more must come.
    Say(Vec<u8>),
    /// Both are proven.
    Done(Session),
}

impl Opener {
    /// Begin to open a connection to `peer`; gives what to send first. The nonce was never used before.
    pub fn new(me: Identity, peer: u32, nonce: Nonce) -> (Self, Vec<u8>) {
        let mut hello = Vec::with_capacity(HELLO + SAID);
        hello.extend_from_slice(MAGIC);
        hello.extend_from_slice(&VERSION);
        hello.extend_from_slice(&facts(me.sealed));
        hello.extend_from_slice(&me.job);
        for number in [me.size, me.rank, peer] {
            hello.extend_from_slice(&number.to_le_bytes());
        }
        hello.extend_from_slice(&nonce);
        let opener = Self { me, peer, said: hello.clone(), coming: Coming::new(), answered: false };
        (opener, hello)
    }

    /// How many bytes are missing of what comes next. What follows is not the handshake's.
    pub fn wants(&self) -> usize {
        (if self.answered { VERDICT } else { ANSWER }) - self.coming.have
    }

    /// Take in at most as many bytes as [`wants`](Self::wants) says.
    ///
    /// # Errors
    /// The other side is not the one that was called, or has said no.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Opening, Refusal> {
        let secret = &self.me.secret;
        if !self.answered {
            let Some(answer) = self.coming.take(bytes, ANSWER) else { return Ok(Opening::More) };
            let (said, proof) = answer.split_at(SAID);
            if !is(tag(secret, Role::Answer, &[&self.said, said]), proof) {
                return Err(Refusal::Unproven);
            }
            self.said.extend_from_slice(said);
            self.answered = true;
            return Ok(Opening::Say(tag(secret, Role::Proof, &[&self.said]).as_bytes().to_vec()));
        }
        let Some(verdict) = self.coming.take(bytes, VERDICT) else { return Ok(Opening::More) };
        let (code, proof) = verdict.split_at(4);
        if !is(tag(secret, Role::Verdict, &[&self.said, code]), proof) {
            return Err(Refusal::Unproven);
        }
        let mut fields = Fields(&self.said[HELLO..]);
        let theirs = (fields.take(), fields.take());
        match code {
            [0, ..] => Ok(Opening::Done(Session::new(secret, &self.said, self.peer, true))),
            [1, ..] => Err(Refusal::Crossed),
            [3, ..] => Err(Refusal::GivenUp),
            _ => Err(Refusal::Unlike(
                unlike((VERSION, facts(self.me.sealed)), theirs)
                    .unwrap_or_else(|| "their jobs differ in size".into()),
            )),
        }
    }
}

/// The side that takes a connection.
#[derive(Debug)]
pub struct Taker {
    me: Identity,
    nonce: Nonce,
    peer: u32,
    said: Vec<u8>,
    coming: Coming<HELLO>,
    greeted: bool,
    unlike: Option<String>,
}

/// What comes of bytes that were taken in.
#[derive(Debug)]
pub enum Taking {
    /// More must come.
    More,
    /// Send this; more must come.
    Say(Vec<u8>),
    /// This rank is proven: decide.
    Proven(u32),
}

impl Taker {
    /// Begin to take a connection. The nonce was never used before.
    pub fn new(me: Identity, nonce: Nonce) -> Self {
        Self { me, nonce, peer: 0, said: Vec::new(), coming: Coming::new(), greeted: false, unlike: None }
    }

    /// How many bytes are missing of what comes next. What follows is not the handshake's.
    pub fn wants(&self) -> usize {
        (if self.greeted { TAG } else { HELLO }) - self.coming.have
    }

    /// Take in at most as many bytes as [`wants`](Self::wants) says.
    ///
    /// # Errors
    /// The other side is not one to let in.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Taking, Refusal> {
        if self.greeted {
            let Some(proof) = self.coming.take(bytes, TAG) else { return Ok(Taking::More) };
            if !is(tag(&self.me.secret, Role::Proof, &[&self.said]), proof) {
                return Err(Refusal::Unproven);
            }
            return Ok(Taking::Proven(self.peer));
        }
        let Some(hello) = self.coming.take(bytes, HELLO) else { return Ok(Taking::More) };
        let mut fields = Fields(hello);
        let magic: [u8; 8] = fields.take();
        let theirs: ([u8; 4], [u8; 8]) = (fields.take(), fields.take());
        let job: [u8; 16] = fields.take();
        let [size, from, to] = std::array::from_fn(|_| u32::from_le_bytes(fields.take()));
        let me = &self.me;
        if magic != *MAGIC || job != me.job || to != me.rank || from == me.rank || from >= me.size {
            return Err(Refusal::Stranger);
        }
        let mine = (VERSION, facts(me.sealed));
        self.unlike = unlike(mine, theirs).or_else(|| {
            (size != me.size)
                .then(|| format!("its job has {size} ranks and this one {}: give both one number", me.size))
        });
        self.peer = from;
        self.said.extend_from_slice(hello);
        self.said.extend_from_slice(&mine.0);
        self.said.extend_from_slice(&mine.1);
        self.said.extend_from_slice(&self.nonce);
        self.greeted = true;
        let mut answer = self.said[HELLO..].to_vec();
        answer.extend_from_slice(tag(&me.secret, Role::Answer, &[&self.said]).as_bytes());
        Ok(Taking::Say(answer))
    }

    /// Why the proven rank can't work with this one, if so.
    pub fn unlike(&self) -> Option<&str> {
        self.unlike.as_deref()
    }

    /// Tell the proven rank what was decided: gives what to send, and the session. Only a `Welcome` begins one.
    pub fn decide(&self, verdict: Verdict) -> (Vec<u8>, Session) {
        let code = [verdict as u8, 0, 0, 0];
        let mut say = code.to_vec();
        say.extend_from_slice(tag(&self.me.secret, Role::Verdict, &[&self.said, &code]).as_bytes());
        (say, Session::new(&self.me.secret, &self.said, self.peer, false))
    }
}
