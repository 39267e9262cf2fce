//! [`Relay`]: what ranks write, handed on, each line with its rank before it where that was asked for.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// A line that is longer is handed on in parts.
const LINE_MAX: usize = 1 << 16;

/// Output of ranks on its way to this process's own.
#[derive(Default)]
pub(super) struct Relay {
    tag: bool,
    /// Lines that have not ended, by rank and whether they are errors.
    begun: BTreeMap<(u32, bool), Vec<u8>>,
    /// Whether whoever read our output does so no more, and that of errors.
    closed: [bool; 2],
}

impl Relay {
    pub(super) fn new(tag: bool) -> Self {
        Self { tag, ..Self::default() }
    }

    /// A rank has written something.
    pub(super) fn wrote(&mut self, rank: u32, error: bool, bytes: &[u8]) {
        let ready = self.ready(rank, error, bytes);
        self.write(error, &ready);
    }

    /// A rank writes no more: the line that it has not ended is ended.
    pub(super) fn ended(&mut self, rank: u32) {
        for error in [false, true] {
            if let Some(rest) = self.begun.remove(&(rank, error)).filter(|rest| !rest.is_empty()) {
                self.write(error, &tagged(rank, &rest));
            }
        }
    }

    /// What can be handed on now.
    fn ready(&mut self, rank: u32, error: bool, bytes: &[u8]) -> Vec<u8> {
        if !self.tag {
            return bytes.to_vec();
        }
        let begun = self.begun.entry((rank, error)).or_default();
        begun.extend(bytes);
        let end = match begun.iter().rposition(|&byte| byte == b'\n') {
            Some(last) => last + 1,
            None if begun.len() >= LINE_MAX => begun.len(),
            None => 0,
        };
        let lines: Vec<u8> = begun.drain(..end).collect();
        lines.split_inclusive(|&byte| byte == b'\n').flat_map(|line| tagged(rank, line)).collect()
    }

    /// One that nobody reads any more is no failure: what is left is thrown away.
    fn write(&mut self, error: bool, bytes: &[u8]) {
        let closed = &mut self.closed[usize::from(error)];
        if *closed || bytes.is_empty() {
            return;
        }
        let all = |to: &mut dyn Write| to.write_all(bytes).and_then(|()| to.flush());
        let written: io::Result<()> = if error { all(&mut io::stderr()) } else { all(&mut io::stdout()) };
        *closed = written.is_err();
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

/// A line of the starter's own, to standard error.
pub(super) fn say(line: &str) {
    // Nobody may be there to read it.
    let _: io::Result<()> = writeln!(io::stderr(), "fencepost: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn without_tags_bytes_go_on_as_they_come() {
        let mut relay = Relay::new(false);
        assert_eq!(relay.ready(0, false, b"one\ntw"), b"one\ntw");
        assert_eq!(relay.ready(1, false, b"\xff"), b"\xff");
    }
}
