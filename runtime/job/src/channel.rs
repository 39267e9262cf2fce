//! [`Channel`]: framed messages over a socket or a pair of pipes, with descriptors where it is a socket.
//!
//! Nothing here waits: whoever waits does so in `poll`, for as many channels as it has. What can't be sent yet waits in the
//! channel; what has come in part waits there too, and no more of it than has come.

use crate::codec::Malformed;
use crate::control::{self, Message};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// Bytes asked of the system at once.
const PIECE: usize = 1 << 16;
/// Descriptors that may come with one piece.
const DESCRIPTORS: usize = 4;

/// One end of a conversation between a starter and a rank, or a starter and a host.
pub struct Channel {
    line: Line,
    coming: Vec<u8>,
    /// Bytes of `coming` that were read as messages.
    read: usize,
    going: VecDeque<u8>,
    descriptors: VecDeque<OwnedFd>,
    open: bool,
}

enum Line {
    Socket(OwnedFd),
    Pipes { from: OwnedFd, to: OwnedFd },
}

/// What ends a conversation.
#[derive(Debug)]
pub enum Broken {
    /// The other end is gone.
    Closed,
    /// What came is no message.
    Malformed(Malformed),
    /// The system said no.
    Io(io::Error),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Closed => f.write_str("the connection has ended"),
            Broken::Malformed(why) => why.fmt(f),
            Broken::Io(why) => why.fmt(f),
        }
    }
}

impl From<Errno> for Broken {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET => Broken::Closed,
            errno => Broken::Io(errno.into()),
        }
    }
}

impl Channel {
    /// A channel, and the socket that is its other end; both are closed on exec.
    ///
    /// # Errors
    /// No more descriptors.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok((Self::over(here), there))
    }

    /// A channel over a stream socket.
    pub fn over(socket: OwnedFd) -> Self {
        Self::new(Line::Socket(socket))
    }

    /// A channel over two pipes, which it makes nonblocking.
    ///
    /// # Errors
    /// The system's.
    pub fn pipes(from: OwnedFd, to: OwnedFd) -> io::Result<Self> {
        for end in [&from, &to] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Self::new(Line::Pipes { from, to }))
    }

    fn new(line: Line) -> Self {
        Self {
            line,
            coming: Vec::new(),
            read: 0,
            going: VecDeque::new(),
            descriptors: VecDeque::new(),
            open: true,
        }
    }

    /// What is readable when something comes.
    pub fn source(&self) -> BorrowedFd<'_> {
        match &self.line {
            Line::Socket(socket) => socket.as_fd(),
            Line::Pipes { from, .. } => from.as_fd(),
        }
    }

    /// What is writable when something can go.
    pub fn sink(&self) -> BorrowedFd<'_> {
        match &self.line {
            Line::Socket(socket) => socket.as_fd(),
            Line::Pipes { to, .. } => to.as_fd(),
        }
    }

    /// Whether something waits to be sent, how many bytes.
    pub fn waiting(&self) -> usize {
        self.going.len()
    }

    /// Whether the other end may still say something.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Send a message, or what of it can be sent now; [`flush`](Self::flush) sends the rest.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn send(&mut self, message: &Message) -> Result<(), Broken> {
        self.going.extend(message.to_frame());
        self.flush()
    }

    /// Send a message that a descriptor comes with.
    ///
    /// # Errors
    /// The other end is gone, or this is not a socket that is ready to take the message at once.
    pub fn give(&mut self, message: &Message, descriptor: BorrowedFd<'_>) -> Result<(), Broken> {
        let Line::Socket(socket) = &self.line else {
            return Err(Broken::Io(io::ErrorKind::Unsupported.into()));
        };
        self.flush_to(0)?;
        let frame = message.to_frame();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = sendmsg(socket, &[IoSlice::new(&frame)], &mut ancillary, flags)?;
        self.going.extend(&frame[sent..]);
        Ok(())
    }

    /// All that waits must have been sent, but for `left` bytes.
    fn flush_to(&self, left: usize) -> Result<(), Broken> {
        if self.going.len() > left { Err(Broken::Io(io::ErrorKind::WouldBlock.into())) } else { Ok(()) }
    }

    /// Send what waits, as far as it can be sent now.
    ///
    /// # Errors
    /// The other end is gone.
    pub fn flush(&mut self) -> Result<(), Broken> {
        while !self.going.is_empty() {
            let (piece, _) = self.going.as_slices();
            let sent = match &self.line {
                Line::Socket(socket) => {
                    rustix::net::send(socket, piece, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                }
                Line::Pipes { to, .. } => rustix::io::write(to, piece),
            };
            match sent {
                Ok(sent) => drop(self.going.drain(..sent)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.going.clear();
                    return Err(errno.into());
                }
            }
        }
        Ok(())
    }

    /// Take in what has come, until there is a whole message or nothing more; then give the message.
    ///
    /// # Errors
    /// The other end is gone and all that it said has been given; or it says what is no message.
    pub fn receive(&mut self) -> Result<Option<Message>, Broken> {
        loop {
            match control::first(&self.coming[self.read..]) {
                Ok(Some((message, length))) => {
                    self.read += length;
                    if self.read == self.coming.len() {
                        self.coming.clear();
                        self.read = 0;
                    }
                    return Ok(Some(message));
                }
                Ok(None) if !self.open => return Err(Broken::Closed),
                Ok(None) => {}
                Err(why) => {
                    self.open = false;
                    return Err(Broken::Malformed(why));
                }
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The descriptor that came first and was not taken.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }

    /// What has come and is no message, as text: what another program has printed instead.
    pub fn rubbish(&self) -> String {
        let bytes = &self.coming[self.read..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim().to_owned()
    }

    /// Read once; whether that told anything.
    fn fill(&mut self) -> Result<bool, Broken> {
        self.coming.drain(..self.read);
        self.read = 0;
        let had = self.coming.len();
        self.coming.resize(had + PIECE, 0);
        let got = match &self.line {
            Line::Socket(socket) => {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
                let into = &mut [IoSliceMut::new(&mut self.coming[had..])];
                let got = recvmsg(socket, into, &mut ancillary, flags).map(|message| message.bytes);
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        // More than the protocol has are closed here.
                        self.descriptors.extend(descriptors.take(DESCRIPTORS));
                    }
                }
                got
            }
            Line::Pipes { from, .. } => rustix::io::read(from, &mut self.coming[had..]),
        };
        self.coming.truncate(had + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => {
                self.open = false;
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => {
                self.open = false;
                Err(errno.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};

    #[test]
    fn messages_come_in_order_and_then_the_end() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::over(there);
        assert!(there.receive().expect("open").is_none());
        for rank in 0..100 {
            here.send(&Message::Died { rank, how: "x".repeat(rank as usize) }).expect("sent");
        }
        drop(here);
        for rank in 0..100 {
            let message = there.receive().expect("all that was said can be read").expect("a message");
            assert_eq!(message, Message::Died { rank, how: "x".repeat(rank as usize) });
        }
        assert!(matches!(there.receive(), Err(Broken::Closed)));
        assert!(matches!(there.send(&Message::Beat), Err(Broken::Closed)));
    }

    #[test]
    fn what_can_not_be_sent_waits_until_it_can() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::over(there);
        let long = Message::Relay { rank: 0, frame: vec![7; 3 << 20] };
        here.send(&long).expect("open");
        assert!(here.waiting() > 0, "it is longer than any socket takes");
        let got = loop {
            here.flush().expect("open");
            if let Some(message) = there.receive().expect("open") {
                break message;
            }
        };
        assert_eq!((got == long, here.waiting()), (true, 0));
    }

    #[test]
    fn a_descriptor_comes_with_its_message_and_is_closed_on_exec() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::over(there);
        let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        File::from(memory.try_clone().expect("a copy")).write_all(b"here").expect("written");
        here.give(&Message::Beat, memory.as_fd()).expect("sent");
        assert_eq!(there.receive().expect("open"), Some(Message::Beat));
        let got = there.take_descriptor().expect("it came");
        assert!(there.take_descriptor().is_none());
        let flags = rustix::io::fcntl_getfd(&got).expect("open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let (mut file, mut text) = (File::from(got), String::new());
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "here");
    }

    #[test]
    fn pipes_carry_the_same_messages_and_no_descriptors() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let (back, forth) = rustix::pipe::pipe().expect("a pipe");
        let mut here = Channel::pipes(back, to).expect("pipes");
        let mut there = Channel::pipes(from, forth).expect("pipes");
        here.send(&Message::Stop).expect("sent");
        assert_eq!(there.receive().expect("open"), Some(Message::Stop));
        assert!(there.receive().expect("open").is_none());
        let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        assert!(here.give(&Message::Beat, memory.as_fd()).is_err());
        drop(there);
        assert!(matches!(here.send(&Message::Beat), Err(Broken::Closed)));
    }

    #[test]
    fn what_is_no_message_ends_the_conversation_and_can_be_shown() {
        let (here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::over(there);
        rustix::net::send(here.source(), b"Welcome to b!\n", SendFlags::empty()).expect("sent");
        assert!(matches!(there.receive(), Err(Broken::Malformed(_))));
        assert_eq!(there.rubbish(), "Welcome to b!");
        assert!(!there.is_open());
    }
}
