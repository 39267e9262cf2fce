//! [`OutputRelay`]: forwards the output of ranks in whole lines, each tagged with its rank if the
//! user asked for that. Without tags, a line whose end takes long to arrive is forwarded in parts.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The length from which a line is forwarded in parts.
const LINE_MAX: usize = 1 << 16;

/// How long an incomplete line waits for its end.
const PARTIAL_WAIT: Duration = Duration::from_millis(200);

/// The number of unwritten bytes above which the launcher stops reading from ranks, so that they
/// wait before they write more.
const WAITING_MAX: usize = 1 << 20;

/// The number of bytes that one system call writes: a pipe that is ready accepts that many without
/// blocking.
const PIECE: usize = 4096;

/// The output of ranks in transit to the output of this process. No function blocks, since that
/// output may have no reader.
#[derive(Default)]
pub(crate) struct OutputRelay {
    tag: bool,
    /// The incomplete lines, by rank and by whether they are for standard error.
    partial_lines: BTreeMap<(u32, bool), PartialLine>,
    /// Standard output and standard error of this process.
    outputs: [Output; 2],
}

/// A line whose end has not arrived.
#[derive(Default)]
struct PartialLine {
    bytes: Vec<u8>,
    /// The time at which its first byte arrived.
    since: Option<Instant>,
}

#[derive(Default)]
struct Output {
    /// The bytes that are not written yet.
    unwritten: VecDeque<u8>,
    /// Whether nothing more can be written.
    closed: bool,
    /// Why a write failed, unless the reason was that the reader is gone.
    error: Option<Errno>,
}

impl OutputRelay {
    pub(crate) fn new(tag: bool) -> Self {
        Self { tag, ..Self::default() }
    }

    /// Adds the descriptors with unwritten bytes to a list for `poll`.
    pub(crate) fn watch(&self, fds: &mut Vec<PollFd<'_>>) {
        for (error, stream) in self.outputs.iter().enumerate() {
            if !stream.unwritten.is_empty() {
                fds.push(PollFd::from_borrowed_fd(descriptor(error), PollFlags::OUT));
            }
        }
    }

    /// Returns whether the launcher should stop reading the output of ranks.
    pub(crate) fn is_full(&self) -> bool {
        self.outputs.iter().any(|stream| stream.unwritten.len() > WAITING_MAX)
    }

    /// Returns whether all output is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.outputs.iter().all(|stream| stream.unwritten.is_empty())
    }

    /// Writes as much as is possible without blocking.
    pub(crate) fn flush(&mut self) {
        for (error, stream) in self.outputs.iter_mut().enumerate() {
            stream.flush(descriptor(error));
        }
    }

    /// Returns the error with which output was lost. A reader that is gone does not count as an
    /// error.
    pub(crate) fn write_error(&self) -> Option<io::Error> {
        self.outputs.iter().find_map(|stream| stream.error).map(io::Error::from)
    }

    /// Writes a line of the launcher itself to standard error.
    pub(crate) fn report(&mut self, line: &str) {
        self.write(true, format!("fencepost: {line}\n").as_bytes());
    }

    /// Returns whether there is output for a terminal that stops background writers, and this
    /// process is in the background.
    pub(crate) fn is_stopped_by_terminal(&self) -> bool {
        let stops = |(error, stream): (usize, &Output)| {
            let to = descriptor(error);
            !stream.unwritten.is_empty()
                && tcgetattr(to).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP))
                && tcgetpgrp(to).is_ok_and(|group| group != getpgrp())
        };
        self.outputs.iter().enumerate().any(stops)
    }

    /// Handles output of a rank.
    pub(crate) fn on_output(&mut self, rank: u32, error: bool, bytes: &[u8], now: Instant) {
        let ready = self.ready(rank, error, bytes, now);
        self.write(error, &ready);
    }

    /// Returns the earliest time at which [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let since = self.partial_lines.values().filter_map(|line| line.since).min();
        since.filter(|_| !self.tag).map(|since| since + PARTIAL_WAIT)
    }

    /// Forwards incomplete lines that have waited for their end too long, such as a prompt. Tagged
    /// lines wait until they are complete.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.deadline().is_none_or(|then| then > now) {
            return;
        }
        let mut expired = Vec::new();
        for (&(_, error), line) in &mut self.partial_lines {
            if line.since.is_some_and(|since| since + PARTIAL_WAIT <= now) {
                expired.push((error, std::mem::take(line).bytes));
            }
        }
        for (error, bytes) in expired {
            self.write(error, &bytes);
        }
    }

    /// Forwards the incomplete line of a rank that has ended. A tagged line gets a newline at its
    /// end.
    pub(crate) fn on_exit(&mut self, rank: u32) {
        for error in [false, true] {
            let rest = self.partial_lines.remove(&(rank, error)).map(|line| line.bytes);
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                let rest = if self.tag { tagged(rank, &rest) } else { rest };
                self.write(error, &rest);
            }
        }
    }

    /// Adds output to the rank's incomplete line, and returns the lines that are complete.
    fn ready(&mut self, rank: u32, error: bool, bytes: &[u8], now: Instant) -> Vec<u8> {
        let PartialLine { bytes: line, since } = self.partial_lines.entry((rank, error)).or_default();
        line.extend(bytes);
        // Without tags, output is also forwarded at each carriage return, with which a program
        // overwrites a line.
        let ends = |byte: &u8| *byte == b'\n' || *byte == b'\r' && !self.tag;
        let end = match line.iter().rposition(ends) {
            Some(last) => last + 1,
            None if line.len() >= LINE_MAX => line.len(),
            None => 0,
        };
        let lines: Vec<u8> = line.drain(..end).collect();
        // An incomplete line keeps the time of its first byte, unless a part of it is forwarded
        // now.
        let begun = since.filter(|_| end == 0).unwrap_or(now);
        *since = (!line.is_empty()).then_some(begun);
        if !self.tag {
            return lines;
        }
        lines.split_inclusive(|&byte| byte == b'\n').flat_map(|line| tagged(rank, line)).collect()
    }

    fn write(&mut self, error: bool, bytes: &[u8]) {
        let stream = &mut self.outputs[usize::from(error)];
        if !stream.closed {
            stream.unwritten.extend(bytes);
        }
    }
}

/// Returns standard output or standard error of this process.
fn descriptor(error: usize) -> BorrowedFd<'static> {
    if error == 0 { rustix::stdio::stdout() } else { rustix::stdio::stderr() }
}

impl Output {
    /// Writes as much as is possible without blocking. If the reader is gone, the rest is discarded
    /// without an error.
    fn flush(&mut self, to: BorrowedFd<'_>) {
        while !self.unwritten.is_empty() {
            let mut fds = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
            if !matches!(poll(&mut fds, Some(&Timespec::default())), Ok(1)) {
                return;
            }
            let (piece, _) = self.unwritten.as_slices();
            match rustix::io::write(to, &piece[..piece.len().min(PIECE)]) {
                Ok(count) => drop(self.unwritten.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    self.closed = true;
                    self.error = Some(errno).filter(|errno| *errno != Errno::PIPE);
                    self.unwritten.clear();
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

/// Writes a line to standard error. This may block, so it is for callers that have no ranks to
/// watch meanwhile.
pub(crate) fn report(line: &str) {
    // An error means that standard error has no reader.
    let _: io::Result<()> = io::stderr().write_all(format!("fencepost: {line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::io::Read;

    #[test]
    fn whole_lines_are_tagged_and_never_mixed() {
        let (mut relay, now) = (OutputRelay::new(true), Instant::now());
        assert_eq!(relay.ready(0, false, b"one\ntw", now), b"[0] one\n");
        assert_eq!(relay.ready(1, false, b"three\n\n", now), b"[1] three\n[1] \n");
        assert_eq!(relay.ready(0, true, b"oh", now), b"");
        assert_eq!(relay.ready(0, false, b"o\nx", now), b"[0] two\n");
        assert_eq!(relay.partial_lines[&(0, true)].bytes, b"oh");
        assert_eq!(
            relay.ready(2, false, &[b'y'; LINE_MAX], now).len(),
            LINE_MAX + 5,
            "a long line is forwarded in parts"
        );
    }

    #[test]
    fn unread_output_is_buffered_and_discarded_when_the_reader_closes() {
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        let mut stream = Output::default();
        let all: Vec<u8> = (0..1 << 20).map(|at| (at % 251) as u8).collect();
        stream.unwritten.extend(&all);
        let mut read = Vec::new();
        while !stream.unwritten.is_empty() {
            let before = stream.unwritten.len();
            stream.flush(to.as_fd());
            assert!(stream.unwritten.len() < before, "there is room");
            let mut piece = vec![0; before - stream.unwritten.len()];
            let count = rustix::io::read(&from, &mut piece).expect("a pipe");
            read.extend_from_slice(&piece[..count]);
        }
        drop(to);
        std::fs::File::from(from).read_to_end(&mut read).expect("a pipe");
        assert_eq!(read, all);
        let (from, to) = rustix::pipe::pipe().expect("a pipe");
        drop(from);
        stream.unwritten.extend(b"lost");
        stream.flush(to.as_fd());
        assert!(stream.closed && stream.unwritten.is_empty());
    }

    #[test]
    fn without_tags_lines_are_forwarded_unchanged() {
        let (mut relay, now) = (OutputRelay::new(false), Instant::now());
        assert_eq!(relay.ready(0, false, b"one\ntw", now), b"one\n");
        assert_eq!(relay.ready(1, false, b"\xff\n", now), b"\xff\n");
        assert_eq!(relay.ready(0, false, b"o\n50 %\r", now), b"two\n50 %\r");
        assert_eq!(relay.ready(0, false, b"no end", now), b"");
        relay.on_exit(0);
        assert_eq!(relay.outputs[0].unwritten, b"no end");
        assert_eq!(
            relay.ready(2, false, &[b'y'; LINE_MAX], now).len(),
            LINE_MAX,
            "a long line is forwarded in parts"
        );
    }

    #[test]
    fn each_incomplete_line_waits_for_its_own_end() {
        let (mut relay, then) = (OutputRelay::new(false), Instant::now());
        let step = PARTIAL_WAIT / 4;
        relay.on_output(0, false, b"prompt: ", then);
        // Output of other ranks, and more of the same line, do not extend the wait.
        relay.on_output(1, false, b"whole\nand a part", then + step);
        relay.on_output(0, false, b"still", then + 3 * step);
        assert_eq!(relay.deadline(), Some(then + PARTIAL_WAIT));
        relay.expire(then + 4 * step);
        assert_eq!(relay.outputs[0].unwritten, b"whole\nprompt: still");
        assert_eq!(relay.deadline(), Some(then + step + PARTIAL_WAIT));
        relay.on_output(1, false, b"\n", then + 4 * step);
        assert_eq!(relay.deadline(), None);
        assert_eq!(relay.outputs[0].unwritten, b"whole\nprompt: stilland a part\n");
        // A tagged line waits until its rank ends.
        let mut tagged = OutputRelay::new(true);
        tagged.on_output(0, false, b"a part", then);
        assert_eq!(tagged.deadline(), None);
    }
}
