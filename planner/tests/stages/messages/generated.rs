//! Random programs, which are run through plain mailboxes. The reference explains the results, and
//! refuses them if one value is altered.

use super::*;
use fencepost_tests_support::random::Random;
use std::collections::VecDeque;

/// A message in a mailbox. Each message has different bytes.
#[derive(Clone, Debug)]
struct Mail {
    source: usize,
    tag: u32,
    bytes: Vec<u8>,
    send: usize,
    ready: bool,
}

/// A receive that was called: a description of the messages that it may take, and the message that
/// it has taken.
struct Slot {
    call: usize,
    from: Envelope,
    room: usize,
    taken: Option<(Mail, bool)>,
    cancelled: bool,
}

/// One rank: its next call, its slots in the order of their calls, and its mail in the order of
/// arrival.
#[derive(Default)]
struct Mailbox {
    at: usize,
    slots: Vec<Slot>,
    kept: Vec<Mail>,
    complete: BTreeSet<usize>,
}

fn names(from: &Envelope, mail: &Mail) -> bool {
    from.source.is_none_or(|source| source.index() == mail.source)
        && from.tag.is_none_or(|tag| tag == mail.tag)
}

impl Mailbox {
    /// Gives mail to slots, oldest mail and oldest slots first.
    fn sort(&mut self, arriving: bool) {
        for at in 0..self.kept.len() {
            let free = |slot: &&mut Slot| slot.taken.is_none() && !slot.cancelled;
            let mail = self.kept[at].clone();
            if let Some(slot) = self.slots.iter_mut().filter(free).find(|slot| names(&slot.from, &mail)) {
                slot.taken = Some((self.kept.remove(at), arriving));
                return;
            }
        }
    }

    fn became(&self, request: usize) -> Option<Completed> {
        let slot = self.slots.iter().find(|slot| slot.call == request)?;
        if slot.cancelled {
            return Some(Completed::Cancelled);
        }
        let (mail, waited) = slot.taken.as_ref()?;
        let (source, tag) = (mail.source as u32, mail.tag);
        Some(if mail.bytes.len() > slot.room {
            failed(source, tag, ErrorClass::Truncate)
        } else if mail.ready && !waited {
            failed(source, tag, ErrorClass::Assert)
        } else {
            got(source, tag, &mail.bytes)
        })
    }
}

/// Draws the calls of one of `ranks` ranks.
fn random_calls(dice: &mut Random, rank: usize, ranks: usize, number: &mut u8) -> Vec<MessageCall> {
    let mut program = Program::default();
    let mut begun = Vec::new();
    for _ in 0..3 + dice.below(6 - ranks) {
        let other = ((rank + 1 + dice.below(ranks - 1)) % ranks) as u32;
        let tag = dice.below(2) as u32;
        match dice.below(7) {
            0 | 1 => {
                *number += 1;
                let mode = dice.one_of(&[Plain, Synchronous, Ready]);
                begun.push(program.begin_send(mode, other, tag, &vec![*number; 1 + dice.below(2)]));
            }
            2 | 3 => {
                let from = Envelope {
                    source: dice.once_in(2).then_some(Rank(other)),
                    tag: dice.once_in(2).then_some(tag),
                };
                begun.push(program.begin_receive(from, 1 + dice.below(2)));
            }
            4 => {
                program.call(MessageCall::Probe { from: tagged(other, tag), waits: false, found: None });
            }
            5 => {
                let receives = |at: &&usize| matches!(program.0[**at], MessageCall::Receive { .. });
                if let Some(&request) = begun.iter().find(receives)
                    && dice.once_in(3)
                {
                    program.call(MessageCall::Cancel { request });
                }
            }
            _ => {
                let count = dice.one_of(&[All, Any, Several]);
                program.complete(count, &begun, dice.once_in(2), None);
            }
        }
    }
    program.complete(Several, &begun, true, None);
    program.0
}

/// Runs the programs in a random order of steps, and records their results. Calls that cannot
/// return are cut off.
fn run(dice: &mut Random, programs: &mut [Vec<MessageCall>]) {
    let ranks = programs.len();
    let mut boxes: Vec<Mailbox> = (0..ranks).map(|_| Mailbox::default()).collect();
    let mut flying: Vec<Vec<VecDeque<Mail>>> = vec![vec![VecDeque::new(); ranks]; ranks];
    let mut idle = 0;
    while idle < 60 * ranks {
        idle += 1;
        let (from, rank) = (dice.below(ranks), dice.below(ranks));
        if dice.once_in(2)
            && let Some(mail) = flying[from][rank].pop_front()
        {
            boxes[rank].kept.push(mail);
            boxes[rank].sort(true);
            idle = 0;
            continue;
        }
        let at = boxes[rank].at;
        let Some(mut call) = programs[rank].get(at).cloned() else { continue };
        let taken = |source: usize, send: usize| {
            boxes.iter().flat_map(|mailbox| &mailbox.slots).any(|slot| {
                slot.taken.as_ref().is_some_and(|(mail, _)| (mail.source, mail.send) == (source, send))
            })
        };
        match &mut call {
            MessageCall::Send { to, tag, bytes, mode, .. } => {
                let ready = *mode == Ready;
                let mail = Mail { source: rank, tag: *tag, bytes: bytes.clone(), send: at, ready };
                flying[rank][to.index()].push_back(mail);
            }
            MessageCall::Receive { from, room, .. } => {
                let slot = Slot { call: at, from: *from, room: *room, taken: None, cancelled: false };
                boxes[rank].slots.push(slot);
                boxes[rank].sort(false);
            }
            MessageCall::Cancel { request } => {
                let slot = boxes[rank].slots.iter_mut().find(|slot| slot.call == *request).expect("it began");
                slot.cancelled = slot.taken.is_none();
            }
            MessageCall::Probe { from, found, .. } => {
                let mail = boxes[rank].kept.iter().find(|mail| names(from, mail));
                *found = Some(mail.map(|mail| (Rank::new(mail.source), mail.tag, mail.bytes.len())));
            }
            MessageCall::Complete { requests, count, waits, completed } => {
                let active: Vec<usize> =
                    requests.iter().copied().filter(|at| !boxes[rank].complete.contains(at)).collect();
                let mut ready = Vec::new();
                for &request in &active {
                    let became = match &programs[rank][request] {
                        MessageCall::Send { mode: Synchronous, .. } => {
                            taken(rank, request).then_some(Completed::Sent)
                        }
                        // Some sends complete only when their message is taken.
                        MessageCall::Send { .. } => {
                            (taken(rank, request) || dice.once_in(2)).then_some(Completed::Sent)
                        }
                        _ => boxes[rank].became(request),
                    };
                    ready.extend(became.map(|became| (request, became)));
                }
                match count {
                    All if ready.len() < active.len() => ready.clear(),
                    Any if !ready.is_empty() => ready = vec![dice.one_of(&ready)],
                    _ => {}
                }
                if ready.is_empty() && *waits && !active.is_empty() {
                    continue;
                }
                boxes[rank].complete.extend(ready.iter().map(|(request, _)| *request));
                *completed = Some(ready);
            }
        }
        programs[rank][at] = call;
        boxes[rank].at += 1;
        idle = 0;
    }
    for (mailbox, program) in boxes.iter().zip(programs) {
        program.truncate(mailbox.at);
    }
}

/// Alters one value that was received, if there is one. Returns its position.
fn alter(dice: &mut Random, programs: &mut [Vec<MessageCall>]) -> Option<(usize, usize)> {
    let mut all = Vec::new();
    for (rank, program) in programs.iter().enumerate() {
        for (at, call) in program.iter().enumerate() {
            if let MessageCall::Complete { completed: Some(completed), .. } = call {
                let received = |(_, what): &(usize, Completed)| matches!(what, Completed::Received { .. });
                let first = completed.iter().position(received);
                all.extend(first.map(|place| (rank, at, place)));
            }
        }
    }
    if all.is_empty() {
        return None;
    }
    let (rank, at, place) = dice.one_of(&all);
    if let MessageCall::Complete { completed: Some(completed), .. } = &mut programs[rank][at]
        && let Completed::Received { bytes, .. } = &mut completed[place].1
    {
        bytes[0] ^= 0x80; // no message has this bit
    }
    Some((rank, at))
}

#[test]
fn what_programs_of_messages_bring_is_explained_and_nothing_else_is() {
    let (mut received, mut altered) = (0, 0);
    for seed in 0..300 {
        let dice = &mut Random::new(seed);
        let ranks = 2 + dice.below(2);
        let mut number = 0;
        let mut programs: Vec<Vec<MessageCall>> =
            (0..ranks).map(|rank| random_calls(dice, rank, ranks, &mut number)).collect();
        run(dice, &mut programs);
        assert_eq!(explains_messages(&programs, 0).unwrap(), None, "seed {seed}: {programs:#?}");
        received += usize::from(programs.iter().flatten().any(|call| {
            matches!(call, MessageCall::Complete { completed: Some(completed), .. } if !completed.is_empty())
        }));
        if let Some((rank, at)) = alter(dice, &mut programs) {
            altered += 1;
            let wrong = explains_messages(&programs, 0).unwrap();
            assert_eq!(wrong, Some((Rank::new(rank), at)), "seed {seed}");
        }
    }
    assert!(received > 200 && altered > 100, "{received} {altered}");
}
