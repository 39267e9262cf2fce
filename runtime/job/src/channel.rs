//! [`Channel`]: framed messages over a socket or a pair of pipes; a socket also carries file
//! descriptors.
//!
//! No function here blocks: the caller waits in `poll`, for all of its channels at once. The
//! channel buffers the bytes that can't be sent yet, and the bytes of a message that has arrived
//! only in part.

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

/// The number of bytes that one system call reads.
const PIECE: usize = 1 << 16;
/// The largest number of descriptors accepted in one read.
const DESCRIPTORS: usize = 4;

/// One end of the connection between the launcher and a rank, or between the launcher and a host.
pub struct Channel {
    stream: Stream,
    /// The received bytes.
    incoming: Vec<u8>,
    /// The number of bytes of `incoming` that are decoded.
    decoded: usize,
    /// The bytes that are not sent yet.
    outgoing: VecDeque<u8>,
    descriptors: VecDeque<OwnedFd>,
    open: bool,
}

enum Stream {
    Socket(OwnedFd),
    Pipes { from: OwnedFd, to: OwnedFd },
}

/// Why a channel can no longer be used.
#[derive(Debug)]
pub enum ChannelError {
    /// The other end is closed.
    Closed,
    /// The other end sent a malformed message.
    Malformed(Malformed),
    /// A system call failed.
    Io(io::Error),
}

impl std::fmt::Display for ChannelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ChannelError::Closed => f.write_str("the connection was closed"),
            ChannelError::Malformed(why) => why.fmt(f),
            ChannelError::Io(why) => why.fmt(f),
        }
    }
}

impl From<Errno> for ChannelError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET => ChannelError::Closed,
            errno => ChannelError::Io(errno.into()),
        }
    }
}

impl Channel {
    /// Creates a channel, and the socket that is its other end. Both are closed on exec.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok((Self::from_socket(here), there))
    }

    /// Creates a channel over a stream socket.
    pub fn from_socket(socket: OwnedFd) -> Self {
        Self::new(Stream::Socket(socket))
    }

    /// Creates a channel over two pipes, and makes the pipes nonblocking.
    ///
    /// # Errors
    /// The system call that makes a pipe nonblocking failed.
    pub fn from_pipes(from: OwnedFd, to: OwnedFd) -> io::Result<Self> {
        for end in [&from, &to] {
            rustix::io::ioctl_fionbio(end, true)?;
        }
        Ok(Self::new(Stream::Pipes { from, to }))
    }

    fn new(stream: Stream) -> Self {
        Self {
            stream,
            incoming: Vec::new(),
            decoded: 0,
            outgoing: VecDeque::new(),
            descriptors: VecDeque::new(),
            open: true,
        }
    }

    /// Returns the descriptor that is readable when a message arrives.
    pub fn source(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Socket(socket) => socket.as_fd(),
            Stream::Pipes { from, .. } => from.as_fd(),
        }
    }

    /// Returns the descriptor that is writable when more bytes can be sent.
    pub fn sink(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Socket(socket) => socket.as_fd(),
            Stream::Pipes { to, .. } => to.as_fd(),
        }
    }

    /// Returns the number of buffered bytes that are not sent yet.
    pub fn unsent(&self) -> usize {
        self.outgoing.len()
    }

    /// Returns whether more messages may arrive.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Sends a message, or as much of it as can be sent now; [`flush`](Self::flush) sends the rest.
    ///
    /// # Errors
    /// The other end is closed.
    pub fn send(&mut self, message: &Message) -> Result<(), ChannelError> {
        self.send_frame(&message.to_frame())
    }

    /// Sends an encoded message.
    ///
    /// # Errors
    /// The other end is closed.
    pub fn send_frame(&mut self, frame: &[u8]) -> Result<(), ChannelError> {
        self.outgoing.extend(frame);
        self.flush()
    }

    /// Sends a message together with a file descriptor.
    ///
    /// # Errors
    /// The other end is closed, or the channel is not a socket that accepts the message at once.
    pub fn send_with_descriptor(
        &mut self,
        message: &Message,
        descriptor: BorrowedFd<'_>,
    ) -> Result<(), ChannelError> {
        let Stream::Socket(socket) = &self.stream else {
            return Err(ChannelError::Io(io::ErrorKind::Unsupported.into()));
        };
        if !self.outgoing.is_empty() {
            return Err(ChannelError::Io(io::ErrorKind::WouldBlock.into()));
        }
        let frame = message.to_frame();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = sendmsg(socket, &[IoSlice::new(&frame)], &mut ancillary, flags)?;
        self.outgoing.extend(&frame[sent..]);
        Ok(())
    }

    /// Sends as many buffered bytes as can be sent now.
    ///
    /// # Errors
    /// The other end is closed.
    pub fn flush(&mut self) -> Result<(), ChannelError> {
        while !self.outgoing.is_empty() {
            let (piece, _) = self.outgoing.as_slices();
            let written = match &self.stream {
                Stream::Socket(socket) => {
                    rustix::net::send(socket, piece, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                }
                Stream::Pipes { to, .. } => rustix::io::write(to, piece),
            };
            match written {
                Ok(count) => drop(self.outgoing.drain(..count)),
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    self.outgoing.clear();
                    return Err(errno.into());
                }
            }
        }
        Ok(())
    }

    /// Reads until a message is complete, and returns it. Returns `None` if no more bytes have
    /// arrived.
    ///
    /// # Errors
    /// The other end is closed and all its messages have been returned, or the other end sent a
    /// malformed message.
    pub fn receive(&mut self) -> Result<Option<Message>, ChannelError> {
        loop {
            match control::parse_frame(&self.incoming[self.decoded..]) {
                Ok(Some((message, length))) => {
                    self.decoded += length;
                    if self.decoded == self.incoming.len() {
                        self.incoming.clear();
                        self.decoded = 0;
                    }
                    return Ok(Some(message));
                }
                Ok(None) if !self.open => return Err(ChannelError::Closed),
                Ok(None) => {}
                Err(why) => {
                    self.open = false;
                    return Err(ChannelError::Malformed(why));
                }
            }
            if !self.try_fill()? {
                return Ok(None);
            }
        }
    }

    /// Returns the header of the next message, as far as it has arrived. The bytes stay in the
    /// socket, since another process may hold the socket, too.
    ///
    /// # Errors
    /// The system call failed, as it does for pipes.
    pub(crate) fn peek_header(&self) -> rustix::io::Result<Vec<u8>> {
        let mut header = [0; control::HEADER];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (count, _) = rustix::net::recv(self.source(), &mut header[..], flags)?;
        Ok(header[..count].to_vec())
    }

    /// Returns whether a message has arrived only in part.
    pub fn is_partial(&self) -> bool {
        self.decoded < self.incoming.len()
    }

    /// Returns the next received descriptor, in the order of arrival.
    pub fn take_descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }

    /// Returns the first received bytes that are not decoded, as text. They are usually the output
    /// of another program.
    pub fn unparsed_text(&self) -> String {
        let bytes = &self.incoming[self.decoded..];
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim().to_owned()
    }

    /// Reads once, and returns whether bytes or the end of the stream arrived.
    fn try_fill(&mut self) -> Result<bool, ChannelError> {
        self.incoming.drain(..self.decoded);
        self.decoded = 0;
        let before = self.incoming.len();
        self.incoming.resize(before + PIECE, 0);
        let received = match &self.stream {
            Stream::Socket(socket) => {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
                let mut ancillary = RecvAncillaryBuffer::new(&mut space);
                let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
                let into = &mut [IoSliceMut::new(&mut self.incoming[before..])];
                let received = recvmsg(socket, into, &mut ancillary, flags).map(|message| message.bytes);
                for message in ancillary.drain() {
                    if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                        // Descriptors beyond the limit are closed here.
                        self.descriptors.extend(descriptors.take(DESCRIPTORS));
                    }
                }
                received
            }
            Stream::Pipes { from, .. } => rustix::io::read(from, &mut self.incoming[before..]),
        };
        self.incoming.truncate(before + *received.as_ref().unwrap_or(&0));
        match received {
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
    fn messages_arrive_in_order_and_then_the_end() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::from_socket(there);
        assert!(there.receive().expect("open").is_none());
        for rank in 0..100 {
            here.send(&Message::Died { rank, how: "x".repeat(rank as usize), failed: true }).expect("sent");
        }
        drop(here);
        for rank in 0..100 {
            let message =
                there.receive().expect("all messages that were sent can be read").expect("a message");
            assert_eq!(message, Message::Died { rank, how: "x".repeat(rank as usize), failed: true });
        }
        assert!(matches!(there.receive(), Err(ChannelError::Closed)));
        assert!(matches!(there.send(&Message::Heartbeat), Err(ChannelError::Closed)));
    }

    #[test]
    fn unsent_bytes_are_buffered_until_the_socket_accepts_them() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::from_socket(there);
        let long = Message::Forward { rank: 0, frame: vec![7; 3 << 20] };
        here.send(&long).expect("open");
        assert!(here.unsent() > 0, "the message is longer than a socket buffer");
        let received = loop {
            here.flush().expect("open");
            if let Some(message) = there.receive().expect("open") {
                break message;
            }
        };
        assert_eq!((received == long, here.unsent()), (true, 0));
    }

    #[test]
    fn a_descriptor_arrives_with_its_message_and_is_closed_on_exec() {
        let (mut here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::from_socket(there);
        let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        File::from(memory.try_clone().expect("a copy")).write_all(b"here").expect("written");
        here.send_with_descriptor(&Message::Heartbeat, memory.as_fd()).expect("sent");
        assert_eq!(there.receive().expect("open"), Some(Message::Heartbeat));
        let received = there.take_descriptor().expect("it arrived");
        assert!(there.take_descriptor().is_none());
        let flags = rustix::io::fcntl_getfd(&received).expect("open");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        let (mut file, mut text) = (File::from(received), String::new());
        file.rewind().expect("a file");
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "here");
    }

    #[test]
    fn pipes_carry_the_same_messages_and_no_descriptors() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let (back, forth) = rustix::pipe::pipe().expect("a pipe");
        let mut here = Channel::from_pipes(back, to).expect("pipes");
        let mut there = Channel::from_pipes(from, forth).expect("pipes");
        here.send(&Message::Stop).expect("sent");
        assert_eq!(there.receive().expect("open"), Some(Message::Stop));
        assert!(there.receive().expect("open").is_none());
        let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
        assert!(here.send_with_descriptor(&Message::Heartbeat, memory.as_fd()).is_err());
        drop(there);
        assert!(matches!(here.send(&Message::Heartbeat), Err(ChannelError::Closed)));
    }

    #[test]
    fn malformed_bytes_close_the_channel_and_can_be_shown() {
        let (here, there) = Channel::pair().expect("a pair");
        let mut there = Channel::from_socket(there);
        rustix::net::send(here.source(), b"Welcome to b!\n", SendFlags::empty()).expect("sent");
        assert!(matches!(there.receive(), Err(ChannelError::Malformed(_))));
        assert_eq!(there.unparsed_text(), "Welcome to b!");
        assert!(!there.is_open());
    }
}
