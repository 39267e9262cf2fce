//! Waits that last, between ranks that read no entries of each other's: what [`waiting`](crate::deadlock) needs of
//! connections.
//!
//! Four items, which belong to no world and which whoever has the lock answers, the rank or the thread that serves:
//!
//! - Who waits *asks* the awaited rank in which wait it is.
//! - That one *answers*. First it writes whatever it owes to who asks: what it has released, which superstep it is in. If
//!   frames for it wait for credit, the answer is that it is in no wait. Whatever else it had sent before its wait was
//!   written before, and bytes of a connection come in order; so all of it has come when the answer has.
//! - A *probe* is a list of waits of which each has seen the next, and the number of a wait of the rank that it goes to.
//!   If that rank is in this wait, it puts its own to the list and hands it on, or finds that the list began with it.
//! - Who knows a ring, and would end its wait, tells the others; and does not before all have told it.
//!
//! None of them is repeated in less than [`AGAIN`], and none is said to who does not read what there is already.

use std::time::{Duration, Instant};

use crate::deadlock::{Afar, Probe, Table, Waiting, Walk, cut, in_order};
use crate::stream::{PROBE, Pen};
use crate::tcp::core::Core;
use crate::tcp::fabric::Shared;

/// How long something is not said again.
const AGAIN: Duration = Duration::from_millis(500);

/// Ranks at most in a list: larger rings are not found.
const MOST: usize = 1 << 10;

/// Bytes of a wait in a list before its text, and of the text, in a short list and in a long one.
const HEAD: usize = 14;
const TEXT: [usize; 2] = [384, 48];
const SHORT: usize = 128;
const _: () = assert!(SHORT * (HEAD + TEXT[0]) <= PROBE && MOST * (HEAD + TEXT[1]) <= PROBE);

/// Bytes that wait for one who does not read them, beyond which nothing of this is said.
const UNREAD: usize = 1 << 20;

/// What a process knows of waits elsewhere.
pub(super) struct Probes {
    /// The entries that it reads, its own at least.
    pub(super) table: Table,
    known: Vec<Known>,
    /// The list that came back, and to which wait.
    ring: Option<(u64, Vec<Waiting>)>,
    /// From which wait the last list was handed on that began here, behind which wait, and when.
    begun: Option<(u64, u64, Instant)>,
}

/// What it knows of one rank.
#[derive(Default)]
struct Known {
    waiting: Option<Waiting>,
    asked: Option<Instant>,
    agreed: u64,
    /// What it was told that this rank agreed to.
    told: u64,
}

impl Probes {
    pub(super) fn new(table: Table, ranks: usize) -> Self {
        let known = (0..ranks).map(|_| Known::default()).collect();
        Self { table, known, ring: None, begun: None }
    }

    /// Of a job that is not known yet.
    pub(super) fn none() -> Self {
        Self::new(Table::none(), 0)
    }
}

/// A list as it travels: of each wait the rank, the number, and the text behind its length.
pub(super) fn written(waits: &[Waiting]) -> Vec<u8> {
    let most = TEXT[usize::from(waits.len() > SHORT)];
    let mut bytes = Vec::new();
    for Waiting { rank, number, text, .. } in waits {
        let text = cut(text, most);
        bytes.extend_from_slice(&(*rank as u32).to_le_bytes());
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// Such a list that goes to `to`, where it is one, of ranks of so many.
pub(super) fn read(mut bytes: &[u8], to: usize, ranks: usize) -> Option<Vec<Waiting>> {
    let mut waits: Vec<Waiting> = Vec::new();
    while !bytes.is_empty() {
        let (rank, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
        let (rank, number) = (u32::from_le_bytes(*rank) as usize, u64::from_le_bytes(*number));
        if rank >= ranks || number == 0 || waits.len() == MOST {
            return None;
        }
        if let Some(last) = waits.last_mut() {
            (last.awaited, last.seen) = (rank, number);
        }
        let text = String::from_utf8_lossy(text).into_owned();
        waits.push(Waiting { rank, awaited: to, text, number, seen: 0 });
        bytes = rest;
    }
    (!waits.is_empty()).then_some(waits)
}

impl Core {
    /// Whether anything of this may be said to `to`.
    fn may_tell(&self, to: usize) -> bool {
        let Some(peer) = self.peers.get(to) else { return false };
        let parts = peer.said_goodbye || peer.heard_goodbye;
        let gone = parts || peer.died.is_some() || peer.doomed.is_some();
        to != self.me() && !gone && peer.out.len() - peer.sent < UNREAD
    }

    /// Ask `rank` in which wait it is.
    fn ask(&mut self, rank: usize, now: Instant) {
        if !self.may_tell(rank) || self.peers[rank].link.is_none() {
            return;
        }
        let asked = &mut self.probes.known[rank].asked;
        if asked.is_none_or(|asked| now - asked >= AGAIN) {
            *asked = Some(now);
            self.peers[rank].say(|pen| pen.ask());
            self.send(rank);
        }
    }

    /// Answer `to`, which asks in which wait this rank is.
    pub(super) fn answer(&mut self, to: usize) {
        if !self.may_tell(to) {
            return;
        }
        let mut own = self.probes.table.read(self.me());
        for number in self.numbers() {
            let Some(channel) = self.channels.get(&number) else { continue };
            if !channel.members.contains(&(to as u32)) || !self.listens(channel, to) {
                continue;
            }
            if channel.pairs[to].outbound.waits() {
                own = None;
            }
            let Some(channel) = self.channels.get_mut(&number) else { continue };
            channel.tidings(number, to, &mut self.peers[to].out);
        }
        let out = &mut self.peers[to].out;
        match own {
            Some(Waiting { awaited, text, number, .. }) => Pen(out, 0).waits(number, awaited as u32, &text),
            None => Pen(out, 0).waits(0, 0, ""),
        }
        self.soil(to);
    }

    /// `from` has answered.
    ///
    /// # Errors
    /// With what no rank would.
    pub(super) fn answered(
        &mut self,
        from: usize,
        number: u64,
        awaited: usize,
        text: String,
    ) -> Result<(), &'static str> {
        if awaited >= self.peers.len() {
            return Err("it waits for a rank that there is not");
        }
        let waiting = (number != 0).then_some(Waiting { rank: from, awaited, text, number, seen: 0 });
        let known = &mut self.probes.known[from].waiting;
        if *known != waiting {
            *known = waiting;
            self.news += 1;
        }
        Ok(())
    }

    /// A list has come, to this rank in this wait.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn probed(&mut self, seen: u64, list: &[u8]) -> Result<(), &'static str> {
        let me = self.me();
        let mut waits = read(list, me, self.peers.len()).ok_or("it sent a list of waits that is none")?;
        let Some(own) = self.probes.table.read(me).filter(|own| own.number == seen) else { return Ok(()) };
        if let Some(last) = waits.last_mut() {
            last.seen = seen;
        }
        if waits[0].rank != me {
            // What it says of this rank, this rank knows better; and what it says of it twice is no ring of it.
            if waits.iter().all(|waiting| waiting.rank != me) {
                waits.push(own);
                self.hand_on(waits);
            }
        } else if waits[0].number == seen
            && self.probes.ring.as_ref().is_none_or(|(number, _)| *number != seen)
        {
            self.probes.ring = Some((seen, in_order(waits)));
            self.news += 1;
        }
        Ok(())
    }

    /// Go on with a list as far as entries are here, and send it where it goes then.
    fn hand_on(&mut self, waits: Vec<Waiting>) {
        match self.probes.table.walk(waits) {
            Walk::Nowhere => {}
            Walk::Away(probe) => self.send_on(&probe),
            Walk::Round(waits) => {
                let (to, seen) = (waits[0].rank, waits[0].number);
                self.send_on(&Probe { to, seen, waits });
            }
        }
    }

    fn send_on(&mut self, Probe { to, seen, waits }: &Probe) {
        if self.may_tell(*to) && waits.len() <= MOST {
            let list = written(waits);
            self.peers[*to].say(|pen| pen.probe(*seen, &list));
            self.soil(*to);
        }
    }

    /// `from` knows to be in a ring in this wait.
    pub(super) fn agreed(&mut self, from: usize, number: u64) {
        let known = &mut self.probes.known[from];
        known.agreed = known.agreed.max(number);
        self.news += 1;
    }
}

impl Afar for Shared {
    fn waiting(&self, rank: usize, ask: bool) -> Option<Waiting> {
        let mut core = self.lock();
        if ask {
            core.ask(rank, Instant::now());
        }
        core.probes.known.get(rank)?.waiting.clone()
    }

    fn probe(&self, probe: Probe) {
        let mut core = self.lock();
        let (now, Some(first)) = (Instant::now(), probe.waits.first()) else { return };
        let this = (first.number, probe.seen);
        if core.probes.begun.is_some_and(|(own, seen, at)| (own, seen) == this && now - at < AGAIN) {
            return;
        }
        core.probes.begun = Some((this.0, this.1, now));
        core.send_on(&probe);
        core.tidy();
    }

    fn ring(&self, number: u64) -> Option<Vec<Waiting>> {
        let core = self.lock();
        core.probes.ring.as_ref().filter(|(to, _)| *to == number).map(|(_, ring)| ring.clone())
    }

    fn agree(&self, rank: usize, number: u64) {
        let mut core = self.lock();
        if core.may_tell(rank) && core.probes.known[rank].told != number {
            core.probes.known[rank].told = number;
            core.peers[rank].say(|pen| pen.agree(number));
            core.send(rank);
        }
    }

    fn agreed(&self, rank: usize) -> u64 {
        self.lock().probes.known.get(rank).map_or(0, |known| known.agreed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(rank: usize, awaited: usize, text: &str) -> Waiting {
        Waiting { rank, awaited, text: text.into(), number: rank as u64 + 1, seen: awaited as u64 + 1 }
    }

    #[test]
    fn a_list_comes_as_it_was_sent_and_no_longer_than_is_believed() {
        for count in [1, 2, SHORT, SHORT + 1, MOST] {
            let mut waits: Vec<Waiting> =
                (0..count).map(|rank| waiting(rank, rank + 1, &"ä".repeat(300))).collect();
            let bytes = written(&waits);
            assert!(bytes.len() <= PROBE, "{count} waits");
            waits.iter_mut().for_each(|w| w.text = cut(&w.text, TEXT[usize::from(count > SHORT)]).into());
            if let Some(last) = waits.last_mut() {
                last.seen = 0; // which goes beside the list
            }
            assert_eq!(read(&bytes, count, count + 1), Some(waits));
        }
        let long = written(&(0..=MOST).map(|rank| waiting(rank, 0, "")).collect::<Vec<_>>());
        assert_eq!(read(&long, 0, MOST + 1), None);
    }

    #[test]
    fn what_is_no_list_of_ranks_is_refused() {
        let good = written(&[waiting(1, 2, "one"), waiting(2, 0, "two")]);
        assert!(read(&good, 0, 3).is_some());
        assert_eq!(read(&good, 0, 2), None, "there is no rank 2");
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
