//! Detects that ranks wait for one another if they cannot read each other's entries. This is the
//! part of [`deadlock`](crate::deadlock) that needs connections.
//!
//! There are four kinds of items, which belong to no world. The thread that holds the lock answers
//! them: either the rank or the fabric's thread.
//!
//! - A waiting rank *asks* the awaited rank for the wait that the awaited rank is in.
//! - The awaited rank *answers*. The answer includes the waits that the awaited rank has seen
//!   itself, for ranks that look for a knot. Before the answer, the awaited rank writes what is
//!   pending for the asking rank: releases, and its current superstep. If frames for the asking
//!   rank wait for credit, the awaited rank answers that it is in no wait. The awaited rank wrote
//!   everything else before it began its wait, and the bytes of a connection arrive in order. So
//!   when the answer arrives, everything that the awaited rank sent before has arrived.
//! - A *probe* has a list of waits, in which the rank of each wait has seen the next wait. It also
//!   has the number of a wait of its receiver, which the last rank of the list has seen. If the
//!   receiver is in that wait, it appends the wait to the list and passes the list on. If the list
//!   began with the receiver, the list is a cycle.
//! - A rank that knows of a cycle, and wants to end its wait, *notifies* the other ranks of the
//!   cycle. It does not end its wait before all of these ranks have notified it.
//!
//! None of these items is repeated within [`AGAIN`], and none is sent to a rank for which
//! [`UNREAD`] bytes or more are still unsent.

use std::time::{Duration, Instant};

use crate::bytes::{Reader, Writer};
use crate::deadlock::{About, Probe, Table, Waiting, Walk, cut, in_order};
use crate::fabric::carrier::Carrier;
use crate::fabric::core::Core;
use crate::stream::{ItemWriter, PROBE};

/// The shortest time after which an item is repeated.
const AGAIN: Duration = Duration::from_millis(500);

/// The maximum number of ranks in a list. Larger cycles are not found.
const MAX_LIST: usize = 1 << 10;

/// The size of a wait in a list, in bytes. `HEAD` is the size of the fields before the text. `TEXT`
/// has two limits on the length of the text: for a list of at most `SHORT` waits, and for a longer
/// list.
const HEAD: usize = 14;
const TEXT: [usize; 2] = [384, 48];
const SHORT: usize = 128;
const _: () = assert!(SHORT * (HEAD + TEXT[0]) <= PROBE && MAX_LIST * (HEAD + TEXT[1]) <= PROBE);

/// If at least this many bytes for a rank are unsent, no item of this module is written for that
/// rank.
const UNREAD: usize = 1 << 20;

/// What a process knows of other ranks' waits.
pub(super) struct Probes {
    /// The entries that this process reads, which include its own.
    pub(super) table: Table,
    known: Vec<Known>,
    /// The number of this rank's wait to which a list has returned, and that list, which is a
    /// cycle.
    cycle: Option<(u64, Vec<Waiting>)>,
    /// The last list that began here and was sent: the number of its first wait, the number of the
    /// wait to which it was sent, and the time.
    begun: Option<(u64, u64, Instant)>,
}

/// What a process knows of one rank.
#[derive(Default)]
struct Known {
    waiting: Option<Waiting>,
    asked: Option<Instant>,
    agreed: u64,
    /// The number of this rank's wait that was last reported to that rank as part of a cycle.
    notified: u64,
}

impl Probes {
    pub(super) fn new(table: Table, ranks: usize) -> Self {
        let known = (0..ranks).map(|_| Known::default()).collect();
        Self { table, known, cycle: None, begun: None }
    }

    /// Creates the probes of a job that is not known yet.
    pub(super) fn none() -> Self {
        Self::new(Table::none(), 0)
    }
}

/// Encodes a list: for each wait the rank, the number, the length of the text, and the text.
pub(super) fn written(waits: &[Waiting]) -> Vec<u8> {
    let most = TEXT[usize::from(waits.len() > SHORT)];
    let mut bytes = Vec::new();
    for Waiting { rank, number, text, .. } in waits {
        let text = cut(text, most);
        bytes.put(*rank as u32);
        bytes.put(*number);
        bytes.put(text.len() as u16);
        bytes.put_all(text.as_bytes());
    }
    bytes
}

/// Decodes a list that goes to `to`. Returns `None` if it is not valid in a job of `ranks` ranks.
pub(super) fn read(bytes: &[u8], to: usize, ranks: usize) -> Option<Vec<Waiting>> {
    let (mut bytes, mut waits) = (Reader(bytes), Vec::<Waiting>::new());
    while !bytes.is_empty() {
        let (rank, number) = (bytes.take::<u32>()? as usize, bytes.take::<u64>()?);
        let len: u16 = bytes.take()?;
        let text = bytes.bytes(len)?;
        if rank >= ranks || number == 0 || waits.len() == MAX_LIST {
            return None;
        }
        if let Some(last) = waits.last_mut() {
            (last.awaited, last.seen) = (rank, number);
        }
        let text = String::from_utf8_lossy(text).into_owned();
        waits.push(Waiting { rank, awaited: to, text, number, seen: 0, others: Vec::new() });
    }
    (!waits.is_empty()).then_some(waits)
}

/// Encodes which ranks a wait is about.
fn written_about(waiting: &Waiting) -> Vec<u8> {
    let mut bytes = Vec::new();
    for About { rank, ends, seen } in waiting.about() {
        bytes.put(rank as u32);
        bytes.put(u8::from(ends));
        bytes.put(seen);
    }
    bytes
}

/// Decodes which ranks a wait is about, in a job of `ranks` ranks.
fn read_about(bytes: &[u8], ranks: usize) -> Option<Vec<About>> {
    let (mut bytes, mut all) = (Reader(bytes), Vec::new());
    while !bytes.is_empty() {
        let rank = bytes.take::<u32>()? as usize;
        let about = About { rank, ends: bytes.take()?, seen: bytes.take()? };
        all.push((rank < ranks).then_some(about)?);
    }
    Some(all)
}

impl<C: Carrier> Core<C> {
    /// Returns whether items of this module may be sent to `to`.
    fn may_report(&self, to: usize) -> bool {
        let Some(peer) = self.peers.get(to) else { return false };
        to != self.me()
            && !peer.said_goodbye
            && !peer.is_gone()
            && peer.out.bytes.len() - peer.out.sent < UNREAD
    }

    /// Asks `rank` for the wait that it is in.
    pub(super) fn ask(&mut self, rank: usize, now: Instant) {
        if !self.may_report(rank) || self.peers[rank].link.is_none() {
            return;
        }
        let asked = &mut self.probes.known[rank].asked;
        if asked.is_none_or(|asked| now - asked >= AGAIN) {
            *asked = Some(now);
            self.peers[rank].write_item(|writer| writer.ask());
            self.send(rank);
        }
    }

    /// Answers `to`, which has asked for the wait that this rank is in.
    pub(super) fn answer(&mut self, to: usize) {
        if !self.may_report(to) {
            return;
        }
        let mut own = self.probes.table.read(self.me());
        for number in self.numbers() {
            let Some(channel) = self.channels.get(&number) else { continue };
            if !channel.members.contains(&(to as u32)) || !self.listens(channel, to) {
                continue;
            }
            if channel.pairs[to].has_waiting() {
                own = None;
            }
            let Some(channel) = self.channels.get_mut(&number) else { continue };
            channel.piggyback(number, to, &mut self.peers[to].out.bytes);
        }
        let out = &mut self.peers[to].out.bytes;
        match own {
            Some(own) => {
                ItemWriter(out, 0).waits(own.number, own.awaited as u32, &written_about(&own), &own.text)
            }
            None => ItemWriter(out, 0).waits(0, 0, &[], ""),
        }
        self.mark_dirty(to);
    }

    /// Takes in the answer of `from`.
    ///
    /// # Errors
    /// Fails if no correct rank would send it.
    pub(super) fn answered(
        &mut self,
        from: usize,
        number: u64,
        awaited: usize,
        about: &[u8],
        text: String,
    ) -> Result<(), &'static str> {
        let mut others = read_about(about, self.peers.len()).ok_or("it sent an invalid list of ranks")?;
        let is_of_awaited = others.first().is_none_or(|first| first.rank == awaited && first.ends);
        if awaited >= self.peers.len() || !is_of_awaited {
            return Err("it waits for a rank that does not exist");
        }
        let seen = if others.is_empty() { 0 } else { others.remove(0).seen };
        let waiting = Waiting { rank: from, awaited, text, number, seen, others };
        let waiting = (number != 0).then_some(waiting);
        let known = &mut self.probes.known[from].waiting;
        if *known != waiting {
            *known = waiting;
            self.events += 1;
        }
        Ok(())
    }

    /// Takes in a list that was sent to this rank for its wait number `seen`.
    ///
    /// # Errors
    /// Fails if the list is invalid.
    pub(super) fn probed(&mut self, seen: u64, list: &[u8]) -> Result<(), &'static str> {
        let me = self.me();
        let mut waits = read(list, me, self.peers.len()).ok_or("it sent an invalid list of waits")?;
        let Some(own) = self.probes.table.read(me).filter(|own| own.number == seen) else { return Ok(()) };
        if let Some(last) = waits.last_mut() {
            last.seen = seen;
        }
        if waits[0].rank != me {
            // A list that names this rank already is dropped. This rank knows its own waits better
            // than the list does, and a list that names a rank twice is not a cycle of its first
            // rank.
            if waits.iter().all(|waiting| waiting.rank != me) && own.others.is_empty() {
                waits.push(own);
                self.hand_on(waits);
            }
        } else if waits[0].number == seen
            && self.probes.cycle.as_ref().is_none_or(|(number, _)| *number != seen)
        {
            self.probes.cycle = Some((seen, in_order(waits)));
            self.events += 1;
        }
        Ok(())
    }

    /// Continues a list as far as entries are readable here, and sends it to the next rank.
    fn hand_on(&mut self, waits: Vec<Waiting>) {
        match self.probes.table.walk(waits) {
            Walk::Open => {}
            Walk::Remote(probe) => self.send_on(&probe),
            Walk::Cycle(waits) => {
                let (to, seen) = (waits[0].rank, waits[0].number);
                self.send_on(&Probe { to, seen, waits });
            }
        }
    }

    fn send_on(&mut self, Probe { to, seen, waits }: &Probe) {
        if self.may_report(*to) && waits.len() <= MAX_LIST {
            let list = written(waits);
            self.peers[*to].write_item(|writer| writer.probe(*seen, &list));
            self.mark_dirty(*to);
        }
    }

    /// Takes in the report of `from` that its wait `number` is in a cycle.
    pub(super) fn agreed(&mut self, from: usize, number: u64) {
        let known = &mut self.probes.known[from];
        known.agreed = known.agreed.max(number);
        self.events += 1;
    }

    /// Returns the wait of `rank`, if it is known. If `ask` is set, also asks the rank, so that a
    /// later call can return the answer.
    pub(super) fn waiting_of(&mut self, rank: usize, ask: bool) -> Option<Waiting> {
        if ask {
            self.ask(rank, Instant::now());
        }
        self.probes.known.get(rank)?.waiting.clone()
    }

    /// Begins a list of waits, or passes one on.
    pub(super) fn probe(&mut self, probe: &Probe) {
        let (now, Some(first)) = (Instant::now(), probe.waits.first()) else { return };
        let this = (first.number, probe.seen);
        if self.probes.begun.is_some_and(|(own, seen, at)| (own, seen) == this && now - at < AGAIN) {
            return;
        }
        self.probes.begun = Some((this.0, this.1, now));
        self.send_on(probe);
        self.flush_dirty();
    }

    /// Returns the cycle that contains this rank's wait `number`, if one is known.
    pub(super) fn cycle_of(&self, number: u64) -> Option<Vec<Waiting>> {
        self.probes.cycle.as_ref().filter(|(to, _)| *to == number).map(|(_, cycle)| cycle.clone())
    }

    /// Notifies `rank` that this rank's wait `number` is in a cycle.
    pub(super) fn agree_with(&mut self, rank: usize, number: u64) {
        if self.may_report(rank) && self.probes.known[rank].notified != number {
            self.probes.known[rank].notified = number;
            self.peers[rank].write_item(|writer| writer.agree(number));
            self.send(rank);
        }
    }

    /// Returns the greatest number of the waits that `rank` has reported to be in a cycle.
    pub(super) fn agreed_of(&self, rank: usize) -> u64 {
        self.probes.known.get(rank).map_or(0, |known| known.agreed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadlock::{GONE, OTHERS};
    use crate::stream::ABOUT;

    fn waiting(rank: usize, awaited: usize, text: &str) -> Waiting {
        let (text, others) = (text.into(), Vec::new());
        Waiting { rank, awaited, text, number: rank as u64 + 1, seen: awaited as u64 + 1, others }
    }

    #[test]
    fn a_list_arrives_as_it_was_sent_and_no_longer_than_is_accepted() {
        for count in [1, 2, SHORT, SHORT + 1, MAX_LIST] {
            let mut waits: Vec<Waiting> =
                (0..count).map(|rank| waiting(rank, rank + 1, &"ä".repeat(300))).collect();
            let bytes = written(&waits);
            assert!(bytes.len() <= PROBE, "{count} waits");
            waits.iter_mut().for_each(|w| w.text = cut(&w.text, TEXT[usize::from(count > SHORT)]).into());
            if let Some(last) = waits.last_mut() {
                last.seen = 0; // sent separately from the list
            }
            assert_eq!(read(&bytes, count, count + 1), Some(waits));
        }
        let long = written(&(0..=MAX_LIST).map(|rank| waiting(rank, 0, "")).collect::<Vec<_>>());
        assert_eq!(read(&long, 0, MAX_LIST + 1), None);
    }

    #[test]
    fn what_a_wait_is_about_arrives_as_it_was_sent_and_nothing_else_does() {
        let about = |rank, ends, seen| About { rank, ends, seen };
        let mut waits = waiting(0, 1, "a receive");
        waits.others = vec![about(2, true, GONE), about(3, false, 0)];
        let mut bytes = written_about(&waits);
        assert!(bytes.len() * (OTHERS + 1) / 3 <= ABOUT);
        assert_eq!(
            read_about(&bytes, 4),
            Some(vec![about(1, true, 2), about(2, true, GONE), about(3, false, 0)])
        );
        assert_eq!(read_about(&bytes, 3), None, "rank 3 does not exist");
        for len in (1..bytes.len()).filter(|len| len % (bytes.len() / 3) != 0) {
            assert_eq!(read_about(&bytes[..len], 4), None, "{len} bytes");
        }
        bytes[4] = 2;
        assert_eq!(read_about(&bytes, 4), None);
    }

    #[test]
    fn an_invalid_list_is_refused() {
        let good = written(&[waiting(1, 2, "one"), waiting(2, 0, "two")]);
        assert!(read(&good, 0, 3).is_some());
        assert_eq!(read(&good, 0, 2), None, "rank 2 does not exist");
        assert_eq!(read(&[], 0, 3), None);
        let whole = good.len() / 2;
        for len in (1..good.len()).filter(|&len| len != whole) {
            assert_eq!(read(&good[..len], 0, 3), None, "{len} bytes");
        }
        let mut none = good;
        none[4..12].fill(0);
        assert_eq!(read(&none, 0, 3), None, "a wait has a number");
    }
}
