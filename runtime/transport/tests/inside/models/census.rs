//! Models of a census by messages over the queues of frames, and of epochs with such a census. One
//! model has all six waits. Each of the others leaves out one of the waits. In further models,
//! messages are lost, duplicated or early.
//!
//! In round k of a sparse census, rank r sends to rank r + 2^k, and then awaits rank r - 2^k. If
//! the census is by hosts, rank 0 acts for rank 1 as well. In a reduced census, each rank sends a
//! note to the rank above. Then ranks 0 and 1 exchange the numbers of notes that each rank must
//! expect. Rank 2 sends its numbers to rank 0 before that, and receives the result afterwards. A
//! message has the number of its census. It contains the ranks that its sender knows to have
//! entered, the smallest census number among the messages of these ranks, and numbers of notes.

use std::mem::ManuallyDrop;

use loom::cell::UnsafeCell;
use loom::thread;

use super::{load, model, rejected, sent, store, stored};
use crate::sync::Arc;
use crate::{Cause, Channels, Frame, Header, Liveness, LocalEnd, Port, Topology, local};

/// The wait that a model leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Without W1, a rank accesses the other rank's window before the last message has arrived.
    Entry,
    /// Without W1, a rank sends a message before the message of the previous round has arrived.
    Rounds,
    /// Without W2, a rank changes its window before the other rank has reported that it has read
    /// this window.
    ReadsFirst,
    /// Without W3, a rank leaves before the other rank has reported that it has read this rank's
    /// window. Nothing is applied.
    Leaving,
    /// Without W4, a rank uses one arena instead of two alternating ones.
    Reuse,
    /// Without W5, rank 0 does not await the messages of the first census.
    Skew,
    /// Without W6, ranks leave out the second census, because the first one ended without failure.
    Composition,
    /// Without a check of its number, a rank accepts a message of any census as one of this census.
    Number,
}

/// The fault of one message of rank 0: its message in the first round of census 0, or its note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Lost,
    Doubled,
    /// The message of census 1 arrives before that of census 0.
    Early,
}

/// How ranks act in a census. This determines the ranks to which a rank sends, and the ranks that
/// it awaits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// Each rank acts for itself, in a sparse census.
    Sparse,
    /// Rank 0 acts for rank 1 as well, and rank 2 for itself.
    Hosts,
    /// Each rank acts for itself, in a reduced census.
    Reduced,
}

/// All variants. All of them are possible with three ranks.
const STANDINGS: [Standing; 3] = [Standing::Sparse, Standing::Hosts, Standing::Reduced];

struct World {
    size: usize,
    standing: Standing,
    without: Without,
    fault: Fault,
    /// Whether the note has the fault instead of the message.
    of_note: bool,
    windows: Vec<UnsafeCell<u64>>,
    /// The arenas, by `[rank][set]`.
    arenas: Vec<[UnsafeCell<u64>; 2]>,
}

impl World {
    fn new(size: usize, standing: Standing, without: Without, fault: Fault, of_note: bool) -> Arc<Self> {
        let windows = (0..size).map(|_| UnsafeCell::new(0)).collect();
        let arenas = (0..size).map(|_| [0; 2].map(UnsafeCell::new)).collect();
        Arc::new(Self { size, standing, without, fault, of_note, windows, arenas })
    }

    /// Returns the steps of rank `me`. Each step has the rank to which `me` sends, and the rank
    /// that it awaits.
    fn steps(&self, me: usize) -> Vec<(Option<usize>, Option<usize>)> {
        let size = self.size;
        match (self.standing, me) {
            (Standing::Hosts, 0) => vec![(None, Some(1)), (Some(2), Some(2)), (Some(1), None)],
            (Standing::Hosts, 1) => vec![(Some(0), None), (None, Some(0))],
            (Standing::Hosts, _) => vec![(Some(0), Some(0))],
            (Standing::Reduced, 0) if size == 3 => vec![(None, Some(2)), (Some(1), Some(1)), (Some(2), None)],
            (Standing::Reduced, 2) => vec![(Some(0), None), (None, Some(0))],
            (Standing::Reduced, _) => vec![(Some(1 - me), Some(1 - me))],
            (Standing::Sparse, _) => (0..size.next_power_of_two().trailing_zeros())
                .map(|round| (Some((me + (1 << round)) % size), Some((me + size - (1 << round)) % size)))
                .collect(),
        }
    }
}

const CENSUS: u32 = 1;
const SETTLED: u32 = 2;
const NOTE: u32 = 3;

/// The bit position, in a message, of the numbers of notes that three ranks must expect. Each
/// number has four bits.
const COUNTS: u32 = 16;

/// The reason why a rank stops.
type Told = String;

fn post(end: &mut LocalEnd, to: usize, header: Header) -> Result<(), Told> {
    // SAFETY: an empty payload needs no memory.
    unsafe { end.post(to, Port::FENCE, Frame::bare(header)) }.map_err(|lost| lost.to_string())
}

/// Returns the header of the next frame of `from`, which has no payload. If the frame is lost, the
/// rank gives up after a few polls, as it would after a transport's time limit.
fn take(end: &mut LocalEnd, from: usize, fault: Fault) -> Result<Header, Told> {
    let mut looks = 0;
    loop {
        if let Some(frame) = end.poll(from, Port::FENCE).map_err(|lost| lost.to_string())? {
            end.release(from, Port::FENCE);
            return Ok(frame.header);
        }
        looks += 1;
        if fault == Fault::Lost && looks > 2 {
            return Err(format!("rank {from} is silent"));
        }
        thread::yield_now();
    }
}

/// Posts a frame with this fault. `early` is the header that is posted first for [`Fault::Early`].
fn post_faulty(
    end: &mut LocalEnd,
    to: usize,
    fault: Fault,
    header: Header,
    early: Header,
) -> Result<(), Told> {
    match fault {
        Fault::Lost => return Ok(()),
        Fault::None => {}
        Fault::Doubled => post(end, to, header)?,
        Fault::Early => post(end, to, early)?,
    }
    post(end, to, header)
}

/// Ends the world, because `from` has sent a message that does not belong to the census.
fn refuse(end: &mut LocalEnd, from: usize, word: u64, number: u64) -> Told {
    let what = format!("rank {from} has sent a message of census {word} in census {number}");
    end.end(Cause { rank: from, what: what.clone() });
    what
}

/// Takes part in census `number`. A rank that receives a message of another census ends the world.
fn census(end: &mut LocalEnd, world: &World, number: u64) -> Result<(), Told> {
    let World { size, standing, without, fault, of_note, .. } = *world;
    let me = end.rank();
    let fault_of = |note: bool| {
        if (me, number, of_note) == (0, 0, note) { fault } else { Fault::None }
    };
    // The number of notes that each rank must expect, as far as this rank knows. `noted` are the
    // ranks whose notes this rank has.
    let (mut counts, mut noted) = (0u32, 0u32);
    if standing == Standing::Reduced {
        let to = (me + 1) % size;
        let note = |number: u64| Header { word: number, kind: NOTE, extra: 0 };
        post_faulty(end, to, fault_of(true), note(number), note(1))?;
        counts = 1 << (4 * to);
    }
    // The ranks that are known to have entered. `least` is the smallest census number in the
    // messages of these ranks.
    let (mut heard, mut least) = (1u32 << me, number as u32);
    let steps = world.steps(me);
    let last = steps.iter().rposition(|(_, from)| from.is_some());
    let mut first = fault_of(false);
    for (i, (to, from)) in steps.into_iter().enumerate() {
        let message = |number: u64, least: u32| Header {
            word: number,
            kind: CENSUS,
            extra: heard | least << 8 | counts << COUNTS,
        };
        if let Some(to) = to {
            let fault = std::mem::replace(&mut first, Fault::None);
            post_faulty(end, to, fault, message(number, least), message(1, 1))?;
        }
        let awaited = match without {
            Without::Entry => last != Some(i),
            Without::Rounds => last == Some(i),
            Without::Skew => (me, number) != (0, 0),
            _ => true,
        };
        let Some(from) = from.filter(|_| awaited) else { continue };
        let Header { extra, .. } = loop {
            let header = take(end, from, fault)?;
            let of_this = header.word == number || without == Without::Number;
            let new = header.kind == NOTE && noted >> from & 1 == 0;
            if !of_this || header.kind != CENSUS && !new {
                return Err(refuse(end, from, header.word, number));
            }
            if header.kind == CENSUS {
                break header;
            }
            least = least.min(header.word as u32);
            noted |= 1 << from;
        };
        heard |= extra & 0xff;
        least = least.min(extra >> 8 & 0xff);
        // Rank 2 replaces its numbers, because it receives the total of all ranks, including its
        // own numbers.
        counts = extra >> COUNTS | if me == 2 { 0 } else { counts };
    }
    if !matches!(without, Without::Entry | Without::Rounds | Without::Skew) {
        assert_eq!(heard, (1 << size) - 1, "a rank has not been heard of");
        if counts >> (4 * me) & 0xf > noted.count_ones() {
            // The rank knows whose note it lacks.
            let from = (me + size - 1) % size;
            let Header { word, kind, .. } = take(end, from, fault)?;
            if kind != NOTE || word != number && without != Without::Number {
                return Err(refuse(end, from, word, number));
            }
            least = least.min(word as u32);
        }
    }
    assert_eq!(least, number as u32, "what was said in another census is believed");
    Ok(())
}

/// Takes part in an epoch. Each rank stores into its window, fills an arena for the rank above, and
/// enters. It reads the window of the rank above, and posts a frame to that rank to report that it
/// has read the window. It waits for such a frame of the rank below, and then applies the arena of
/// the rank below.
fn epoch(end: &mut LocalEnd, world: &World, e: u64) -> Result<(), Told> {
    let World { size, without, .. } = *world;
    let me = end.rank();
    let (above, below) = ((me + 1) % size, (me + size - 1) % size);
    let set = if without == Without::Reuse { 0 } else { e as usize % 2 };
    store(&world.windows[me], stored(me, e));
    store(&world.arenas[me][set], sent(me, e));
    if without != Without::Composition || e == 0 {
        census(end, world, e)?;
    }
    assert_eq!(load(&world.windows[above]), stored(above, e));
    post(end, above, Header { word: e, kind: SETTLED, extra: 0 })?;
    let settled = |end: &mut LocalEnd| -> Result<(), Told> {
        let header = take(end, below, world.fault)?;
        assert_eq!((header.word, header.kind), (e, SETTLED));
        Ok(())
    };
    match without {
        Without::Leaving => return Ok(()),
        Without::ReadsFirst => {}
        _ => settled(end)?,
    }
    let value = load(&world.arenas[below][set]);
    assert_eq!(value, sent(below, e));
    store(&world.windows[me], value);
    if without == Without::ReadsFirst {
        settled(end)?;
    }
    Ok(())
}

/// Runs `program` on each rank. Returns the result of each rank.
fn run(world: &Arc<World>, program: fn(&mut LocalEnd, &World) -> Result<(), Told>) -> Vec<Result<(), Told>> {
    // `ManuallyDrop`, because a dropped end leaves its world, which is not possible while a
    // rejected model unwinds.
    let mut ends = local(world.size).into_iter().map(ManuallyDrop::new);
    let mut first = ends.next().expect("a rank at least");
    let others: Vec<_> = ends
        .map(|mut end| {
            let world = Arc::clone(world);
            thread::spawn(move || (program(&mut end, &world), end))
        })
        .collect();
    let result = program(&mut first, world);
    let others: Vec<_> =
        others.into_iter().map(|other| other.join().expect("a panic ends the model")).collect();
    drop(ManuallyDrop::into_inner(first));
    let others = others.into_iter().map(|(result, end)| {
        drop(ManuallyDrop::into_inner(end));
        result
    });
    [result].into_iter().chain(others).collect()
}

fn epochs(size: usize, standing: Standing, without: Without) {
    let results = run(&World::new(size, standing, without, Fault::None, false), |end, world| {
        (0..2).try_for_each(|e| epoch(end, world, e))
    });
    results.into_iter().for_each(|result| result.expect("nobody is told anything"));
}

/// Returns whether `complaint` reports a data race, or a wrong value that a rank has read.
fn is_seen(complaint: &str) -> bool {
    ["Causality violation", "left == right"].iter().any(|what| complaint.contains(what))
}

#[track_caller]
fn caught(without: Without) {
    for standing in STANDINGS {
        let complaint = rejected(2, move || epochs(3, standing, without));
        assert!(is_seen(&complaint), "{standing:?}: {complaint}");
    }
}

#[test]
fn epochs_with_a_census_by_messages_and_all_waits_are_accepted() {
    for standing in [Standing::Sparse, Standing::Reduced] {
        model(2, move || epochs(2, standing, Without::Nothing));
    }
    for standing in STANDINGS {
        model(0, move || epochs(3, standing, Without::Nothing));
    }
}

#[test]
fn w1_a_window_touched_before_the_census_is_complete_is_caught() {
    caught(Without::Entry);
}

#[test]
fn w2_an_element_written_before_its_reader_has_said_that_it_read_it_is_caught() {
    caught(Without::ReadsFirst);
}

#[test]
fn w3_leaving_before_the_reader_has_said_that_it_read_is_caught() {
    caught(Without::Leaving);
}

#[test]
fn w4_an_arena_used_again_at_once_is_caught_with_a_census_by_messages() {
    caught(Without::Reuse);
}

#[test]
fn w5_a_rank_that_does_not_await_its_messages_is_caught() {
    for standing in STANDINGS {
        let complaint = rejected(2, move || epochs(3, standing, Without::Skew));
        assert!(is_seen(&complaint) || complaint.contains("of census"), "{complaint}");
    }
}

#[test]
fn w6_an_epoch_without_a_census_of_its_own_is_caught() {
    caught(Without::Composition);
}

/// Runs a model in which rank 2 reads the window of rank 1. Rank 2 knows through rank 0 that rank 1
/// has entered.
fn by_way_of_another(without: Without) {
    let results = run(&World::new(3, Standing::Hosts, without, Fault::None, false), |end, world| {
        if end.rank() == 1 {
            store(&world.windows[1], stored(1, 0));
        }
        census(end, world, 0)?;
        if end.rank() == 2 {
            assert_eq!(load(&world.windows[1]), stored(1, 0));
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.expect("nobody is told anything"));
}

#[test]
fn a_rank_that_is_heard_of_by_way_of_another_has_entered() {
    model(0, || by_way_of_another(Without::Nothing));
}

#[test]
fn w1_a_message_sent_before_that_of_the_round_before_has_come_is_caught() {
    let complaint = rejected(2, || by_way_of_another(Without::Rounds));
    assert!(is_seen(&complaint), "{complaint}");
}

/// Runs two censuses with this fault, without epochs.
fn censuses(
    (size, standing, of_note): (usize, Standing, bool),
    without: Without,
    fault: Fault,
) -> Vec<Result<(), Told>> {
    run(&World::new(size, standing, without, fault, of_note), |end, world| {
        (0..2).try_for_each(|number| census(end, world, number))
    })
}

/// The censuses in which a message or a note of rank 0 has a fault, each with the bound on
/// preemptions of its model.
const FAULTY: [((usize, Standing, bool), usize); 7] = [
    ((2, Standing::Sparse, false), 2),
    ((3, Standing::Sparse, false), 0),
    ((3, Standing::Hosts, false), 0),
    ((2, Standing::Reduced, false), 2),
    ((3, Standing::Reduced, false), 0),
    ((2, Standing::Reduced, true), 2),
    ((3, Standing::Reduced, true), 0),
];

#[test]
fn a_doubled_message_or_an_early_one_is_told() {
    for fault in [Fault::Doubled, Fault::Early] {
        for (faulty, preemptions) in FAULTY {
            model(preemptions, move || {
                let results = censuses(faulty, Without::Nothing, fault);
                let receiver = if faulty.1 == Standing::Hosts { 2 } else { 1 };
                let told = results[receiver].as_ref().expect_err("it is sent what is not of its census");
                assert!(told.contains("rank 0 has sent a message of census"), "{told}");
                // The other ranks either receive this reason, or have completed all censuses.
                let names = |told: &Told| told.contains("rank 0 has sent") || told.contains("left");
                assert!(results.iter().filter_map(|result| result.as_ref().err()).all(names), "{results:?}");
            });
        }
    }
}

#[test]
fn a_message_of_another_census_that_is_believed_is_caught() {
    for fault in [Fault::Doubled, Fault::Early] {
        for faulty in STANDINGS.map(|standing| (3, standing, false)) {
            let complaint = rejected(1, move || drop(censuses(faulty, Without::Number, fault)));
            assert!(complaint.contains("what was said in another census is believed"), "{complaint}");
        }
    }
}

#[test]
fn no_census_is_complete_where_a_message_of_it_was_lost() {
    for (faulty, preemptions) in FAULTY {
        model(preemptions, move || {
            let results = censuses(faulty, Without::Nothing, Fault::Lost);
            // Other ranks may have completed census 0, since all ranks had entered it. No rank
            // completes census 1.
            assert!(results.iter().all(Result::is_err), "{results:?}");
            let receiver = if faulty.1 == Standing::Hosts { 2 } else { 1 };
            let told = results[receiver].as_ref().expect_err("all are");
            assert!(told.contains("rank 0 is silent") || told.contains("rank 0 has sent"), "{told}");
        });
    }
}
