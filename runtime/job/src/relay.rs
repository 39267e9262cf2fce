//! [`Relay`]: what ranks write, handed on in whole lines, each with its rank before it where that was asked for.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// A line that is longer is handed on in parts.
const LINE_MAX: usize = 1 << 16;

/// More than this waits to be written only by what has been read already: ranks have to wait before they write more.
const WAITING_MAX: usize = 1 << 20;

/// So much is written at once: a pipe that is ready takes it and does not block.
const PIECE: usize = 4096;

/// Output of ranks on its way to this process's own, which nobody need read: nothing here waits.
#[derive(Default)]
pub(crate) struct Relay {
    tag: bool,
    /// Lines that have not ended, by rank and whether they are errors.
    begun: BTreeMap<(u32, bool), Vec<u8>>,
    /// Our output, and that of errors.
    ours: [Stream; 2],
}

#[derive(Default)]
struct Stream {
    /// What could not be written yet.
    waiting: VecDeque<u8>,
    /// Whether whoever read it does so no more.
    closed: bool,
    /// Why it takes nothing more, where that is not for want of a reader.
    refused: Option<Errno>,
}

impl Relay {
    pub(crate) fn new(tag: bool) -> Self {
        Self { tag, ..Self::default() }
    }

    /// Add to a list for `poll` what is waited for before more can be written.
    pub(crate) fn watch(&self, fds: &mut Vec<PollFd<'_>>) {
        for (error, stream) in self.ours.iter().enumerate() {
            if !stream.waiting.is_empty() {
                fds.push(PollFd::from_borrowed_fd(descriptor(error), PollFlags::OUT));
            }
        }
    }

    /// Whether so much waits that no more should be taken from ranks.
    pub(crate) fn is_full(&self) -> bool {
        self.ours.iter().any(|stream| stream.waiting.len() > WAITING_MAX)
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.ours.iter().all(|stream| stream.waiting.is_empty())
    }

    /// Write what can be written now.
    pub(crate) fn flush(&mut self) {
        for (error, stream) in self.ours.iter_mut().enumerate() {
            stream.flush(descriptor(error));
        }
    }

    /// Why output was lost that somebody may have wanted.
    pub(crate) fn refused(&self) -> Option<io::Error> {
        self.ours.iter().find_map(|stream| stream.refused).map(io::Error::from)
    }

    /// A line of the starter's own, to standard error.
    pub(crate) fn say(&mut self, line: &str) {
        self.write(true, format!("fencepost: {line}\n").as_bytes());
    }

    /// A rank has written something.
    pub(crate) fn wrote(&mut self, rank: u32, error: bool, bytes: &[u8]) {
        let ready = self.ready(rank, error, bytes);
        self.write(error, &ready);
    }

    /// A rank writes no more: the line that it has not ended is handed on; with a tag, it is ended.
    pub(crate) fn ended(&mut self, rank: u32) {
        for error in [false, true] {
            if let Some(rest) = self.begun.remove(&(rank, error)).filter(|rest| !rest.is_empty()) {
                let rest = if self.tag { tagged(rank, &rest) } else { rest };
                self.write(error, &rest);
            }
        }
    }

    /// What can be handed on now.
    fn ready(&mut self, rank: u32, error: bool, bytes: &[u8]) -> Vec<u8> {
        let begun = self.begun.entry((rank, error)).or_default();
        begun.extend(bytes);
        // A line that is written over again and again is shown each time, where it is not tagged.
        let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r' && !self.tag;
        let end = match begun.iter().rposition(ends) {
            Some(last) => last + 1,
            None if begun.len() >= LINE_MAX => begun.len(),
            None => 0,
        };
        let lines: Vec<u8> = begun.drain(..end).collect();
        if !self.tag {
            return lines;
        }
        lines.split_inclusive(|&byte| byte == b'\n').flat_map(|line| tagged(rank, line)).collect()
    }

    fn write(&mut self, error: bool, bytes: &[u8]) {
        let stream = &mut self.ours[usize::from(error)];
        if !stream.closed {
            stream.waiting.extend(bytes);
        }
    }
}

/// Our output, or that of errors.
fn descriptor(error: usize) -> BorrowedFd<'static> {
    if error == 0 { rustix::stdio::stdout() } else { rustix::stdio::stderr() }
}

impl Stream {
    /// One that nobody reads any more is no failure: what is left is thrown away.
    fn flush(&mut self, to: BorrowedFd<'_>) {
        while !self.waiting.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            if !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1)) {
                return;
            }
            let (piece, _) = self.waiting.as_slices();
            match rustix::io::write(to, &piece[..piece.len().min(PIECE)]) {
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    self.closed = true;
                    self.refused = Some(errno).filter(|errno| *errno != Errno::PIPE);
                    self.waiting.clear();
                }
            }
        }
    }
}

fn tagged(rank: u32, line: &[u8]) -> Vec<u8> {
    let mut tagged = format!("[{rank}] ").into_bytes();
    tagged.extend(line);
    if !line.ends_with(b"\n") {
        tagged.push(b'\n');
    }
    tagged
}

/// A line to standard error of one who has no ranks to watch meanwhile.
pub(crate) fn say(line: &str) {
    // Nobody may be there to read it.
    let _: io::Result<()> = io::stderr().write_all(format!("fencepost: {line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::io::Read;

    #[test]
    fn lines_are_tagged_whole_and_never_mixed() {
        let mut relay = Relay::new(true);
        assert_eq!(relay.ready(0, false, b"one\ntw"), b"[0] one\n");
        assert_eq!(relay.ready(1, false, b"three\n\n"), b"[1] three\n[1] \n");
        assert_eq!(relay.ready(0, true, b"oh"), b"");
        assert_eq!(relay.ready(0, false, b"o\nx"), b"[0] two\n");
        assert_eq!(relay.begun[&(0, true)], b"oh");
        assert_eq!(relay.ready(2, false, &[b'y'; LINE_MAX]).len(), LINE_MAX + 5, "no line is kept for ever");
    }

    #[test]
    fn what_nobody_reads_waits_and_what_is_read_goes_on() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let mut stream = Stream::default();
        let all: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
        stream.waiting.extend(&all);
        let mut read = Vec::new();
        while !stream.waiting.is_empty() {
            let before = stream.waiting.len();
            stream.flush(to.as_fd());
            assert!(stream.waiting.len() < before, "there is room");
            let mut piece = vec![0; before - stream.waiting.len()];
            let count = rustix::io::read(&from, &mut piece).expect("a pipe");
            read.extend_from_slice(&piece[..count]);
        }
        drop(to);
        std::fs::File::from(from).read_to_end(&mut read).expect("a pipe");
        assert_eq!(read, all);
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        drop(from);
        stream.waiting.extend(b"lost");
        stream.flush(to.as_fd());
        assert!(stream.closed && stream.waiting.is_empty());
    }

    #[test]
    fn without_tags_lines_go_on_whole_and_no_byte_is_changed() {
        let mut relay = Relay::new(false);
        assert_eq!(relay.ready(0, false, b"one\ntw"), b"one\n");
        assert_eq!(relay.ready(1, false, b"\xff\n"), b"\xff\n");
        assert_eq!(relay.ready(0, false, b"o\n50 %\r"), b"two\n50 %\r");
        assert_eq!(relay.ready(0, false, b"no end"), b"");
        relay.ended(0);
        assert_eq!(relay.ours[0].waiting, b"no end");
        assert_eq!(relay.ready(2, false, &[b'y'; LINE_MAX]).len(), LINE_MAX, "no line is kept for ever");
    }
}
