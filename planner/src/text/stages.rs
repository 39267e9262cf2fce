//! Writes the stages between patterns and schedule as text.

use super::{mode, ranks};
use crate::ids::{ClassId, Delta, LinkId};
use crate::ir::chunks::Chunks;
use crate::ir::demand::{Demand, Load};
use crate::ir::messages::Messages;
use crate::ir::peers::{Peer, Peers};
use crate::ir::placed::Placed;
use crate::ir::rounds::{RoundAssignment, Rounds};
use crate::ir::routed::{Route, Routed};
use crate::ir::transfers::{Side, Transfer, Transfers};
use crate::table::Table;
use std::fmt::{self, Formatter, Write};

impl fmt::Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Side::Window { window, datatype } => write!(f, "{window} {datatype}"),
            Side::Operation { operation, first, count } => {
                write!(f, "{operation} {first}..{}", first + count)
            }
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -> {}", self.kind, self.source, self.target)?;
        for fold in &self.folds {
            write!(f, " with {} at {}", fold.source, fold.into)?;
        }
        if self.asked != crate::ir::pattern::Mode::Auto {
            write!(f, " mode {}", mode(self.asked))?;
        }
        write!(f, " of")?;
        for operation in self.operations.iter().take(4) {
            write!(f, " {operation}")?;
        }
        if self.operations.len() > 4 {
            write!(f, " and {} more", self.operations.len() - 4)?;
        }
        Ok(())
    }
}

/// Writes the classes and their peers; `more` appends to a peer's line.
fn peers(f: &mut Formatter<'_>, peers: &Peers, more: impl Fn(ClassId, usize) -> String) -> fmt::Result {
    for (id, class) in peers.classes.iter() {
        writeln!(f, "class {id} of pattern {}", class.pattern)?;
        for (place, peer) in class.peers.iter().enumerate() {
            writeln!(f, "  {}{}", describe(peer), more(id, place))?;
        }
    }
    ranks(f, &peers.class_of)
}

fn describe(peer: &Peer) -> String {
    let mut text = peer.delta.to_string();
    if peer.delta == Delta::SELF {
        if let Some(link) = peer.sends {
            let _ = write!(text, " {link}");
        }
        return text;
    }
    text.push_str(if peer.shared { " shared" } else { " apart" });
    for (word, link) in [("sends", peer.sends), ("receives", peer.receives)] {
        if let Some(link) = link {
            let _ = write!(text, " {word} {link}");
        }
    }
    text
}

fn transfers(f: &mut Formatter<'_>, links: &Table<LinkId, Vec<Transfer>>) -> fmt::Result {
    for (id, link) in links.iter() {
        writeln!(f, "link {id}")?;
        link.iter().try_for_each(|transfer| writeln!(f, "  {transfer}"))?;
    }
    Ok(())
}

impl fmt::Display for Transfers<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        transfers(f, &self.links)?;
        peers(f, &self.peers, |_, _| String::new())
    }
}

impl fmt::Display for Messages<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn routes(f: &mut Formatter<'_>, links: &Table<LinkId, Route>) -> fmt::Result {
    for (id, link) in links.iter() {
        writeln!(f, "link {id}")?;
        link.direct.iter().try_for_each(|transfer| writeln!(f, "  direct {transfer}"))?;
        for message in &link.messages {
            writeln!(f, "  {}", mode(message.mode))?;
            message.transfers.iter().try_for_each(|transfer| writeln!(f, "    {transfer}"))?;
        }
    }
    Ok(())
}

impl fmt::Display for Routed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        routes(f, &self.links)?;
        peers(f, &self.peers, |_, _| String::new())
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Load { messages_out, messages_in, bytes_out, bytes_in, operations_in } = self;
        write!(
            f,
            "out {messages_out} messages {bytes_out}, in {messages_in} messages {bytes_in} {operations_in} operations"
        )
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.classes.iter().try_for_each(|(id, load)| writeln!(f, "class {id} {load}"))?;
        writeln!(f, "h {}", self.h)
    }
}

/// Returns the rounds of the links to and from one peer as text.
fn assignment(assignment: &RoundAssignment) -> String {
    let mut text = String::new();
    for (word, rounds) in [("sends in", &assignment.sends), ("receives in", &assignment.receives)] {
        if !rounds.is_empty() {
            let _ = write!(text, " {word}");
            for round in rounds {
                let _ = write!(text, " {round}");
            }
        }
    }
    text
}

impl fmt::Display for Rounds<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        routes(f, &self.routed.links)?;
        peers(f, &self.routed.peers, |class, place| assignment(&self.assignments[class][place]))?;
        writeln!(f, "rounds {} h {}", self.rounds, self.h)
    }
}

/// Writes the frames, with the position of each if `at` is given.
fn frames(f: &mut Formatter<'_>, chunks: &Chunks<'_>, at: Option<&Table<LinkId, Vec<u64>>>) -> fmt::Result {
    for (id, link) in chunks.cuts.links.iter() {
        writeln!(f, "link {id}")?;
        link.direct.iter().try_for_each(|transfer| writeln!(f, "  direct {transfer}"))?;
        for (index, frame) in link.frames.iter().enumerate() {
            write!(f, "  {} frame {} B", mode(frame.mode), frame.bytes)?;
            at.map_or(Ok(()), |at| write!(f, " at {}", at[id][index]))?;
            writeln!(f)?;
            for (transfer, at) in frame.transfers.iter().zip(&frame.at) {
                writeln!(f, "    {at}: {transfer}")?;
            }
        }
    }
    Ok(())
}

impl fmt::Display for Chunks<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        frames(f, self, None)?;
        peers(f, &self.cuts.peers, |class, place| assignment(&self.assignments[class][place]))
    }
}

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        frames(f, &self.chunks, Some(&self.at))?;
        peers(f, &self.chunks.cuts.peers, |class, place| match self.buffers[class][place] {
            Some(buffer) => {
                let reclaim = if buffer.reclaim { " reclaimed" } else { "" };
                format!(" buffer {} B x{}{reclaim}", buffer.bytes, buffer.copies)
            }
            None => String::new(),
        })?;
        writeln!(f, "peak {}", self.peak)
    }
}
