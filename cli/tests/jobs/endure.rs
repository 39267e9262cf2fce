//! Over many epochs, which are alternately dynamic and prepared, the memory and the descriptors in
//! use do not grow on any transport.

use crate::launched::{Launched, options, rank_program, run_with, start};
use crate::rank::say;
use fencepost::prelude::*;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The number of ranks. On several hosts, the number of ranks on each host.
const RANKS: usize = 2;
/// The number of epochs within which every kind of epoch, window and part of the world occurs.
const CYCLE: usize = 600;
/// The number of times that each rank reports the resources that it holds. The reports divide the
/// epochs into equal parts of one or more whole cycles.
///
/// The peaks of queues and arenas rise now and then, since they depend on which rank runs ahead. A
/// leak grows in every part. So the part with the least growth shows whether there is a leak.
const REPORTS: usize = 4;
/// The limit for the growth of memory in the part with the least growth. In one cycle, a leak of
/// one buffer every 25 epochs grows to twice this limit. In 25,200 epochs, a leak of two pages
/// every hundred epochs grows to three times this limit.
const SLACK_KIB: u64 = 512;
/// The same limit for the shared memory of a job. In one cycle, a leak of one window every hundred
/// epochs grows to twice this limit.
const SEGMENT_SLACK_KIB: u64 = 64;
/// The limit for the growth of memory in all parts after the first. The peaks of queues stay below
/// it.
const GROWTH_KIB: u64 = 16 << 10;

/// The number of epochs, by default and with `FENCEPOST_TEST_JOBS=full`.
fn epochs() -> usize {
    CYCLE * if crate::full() { 168 } else { 4 }
}

/// The resources that a process holds.
struct Held {
    memory_kib: u64,
    /// The shared memory of the job, or zero on transports without shared memory.
    segment_kib: u64,
    descriptors: usize,
}

/// Returns the value of a line of `/proc/self/status`, in KiB.
pub fn status_kib(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).expect("a line of the status file"))
}

impl Held {
    fn now() -> Result<Self> {
        let (mut segment_kib, mut descriptors) = (0, 0);
        for entry in fs::read_dir("/proc/self/fd")? {
            let path = entry?.path();
            descriptors += 1;
            // One entry is the descriptor of the folder itself. It is closed already, so its link
            // cannot be read.
            if fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().contains("memfd:")) {
                segment_kib += fs::metadata(&path)?.blocks() / 2;
            }
        }
        Ok(Self { memory_kib: status_kib("VmRSS")?, segment_kib, descriptors })
    }

    fn say(&self, rank: usize, epoch: usize) {
        let Self { memory_kib, segment_kib, descriptors } = self;
        say(&format!("held {rank} {epoch} {memory_kib} {segment_kib} {descriptors}"));
    }
}

#[superstep]
fn shift(u: &mut Window<u64>, next: usize, to: usize) -> Result<()> {
    u.put(0..32).to(next, to)?;
    Ok(())
}

/// Sends a buffer of `len` elements.
#[superstep(mode = aggregated)]
fn packed(u: &mut Window<u64>, next: usize, len: usize) -> Result<()> {
    u.put(0..len).to(next, len)?;
    Ok(())
}

/// Executes puts that are sent before their fence, in one piece and in many. The receiver keeps
/// them for one epoch and no longer.
fn early(v: &mut Window<u64>, next: usize, epoch: u64) -> Result<()> {
    let values = vec![epoch; v.len() / 2];
    for (mode, piece) in
        [(Mode::Aggressive, values.len()), (Mode::Aggressive, 1 << 8), (Mode::Pipelined, 1 << 12)]
    {
        v.set_mode(mode);
        for at in (0..values.len()).step_by(piece) {
            v.put(&values[at..at + piece]).to(next, at)?;
        }
        v.fence()?;
        assert_eq!(v[values.len() - 1], epoch);
    }
    v.set_mode(Mode::Auto);
    Ok(())
}

/// Prepares a superstep for one run. Its buffers are freed once the superstep is dropped and the
/// reader has released them.
fn prepared_once(world: &World, v: &mut Window<u64>, next: usize, epoch: u64) -> Result<()> {
    let len = v.len() / 2;
    v[..len].fill(epoch);
    packed::prepare(world, next, len)?.replay(v)?;
    assert_eq!(v[2 * len - 1], epoch);
    Ok(())
}

/// The program of each rank: runs the epochs, and reports the resources that it holds [`REPORTS`]
/// times.
pub fn rank(transport: &str, epochs: usize) -> Result<()> {
    let size = fencepost::process()?.map_or(RANKS, |process| process.ranks);
    fencepost::ranks(size).transport(transport.parse()?).run(|world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % world.size());
        let mut u = world.window::<u64>(128)?;
        let mut v = world.window::<u64>(1 << 14)?;
        let mut prepared = shift::prepare(world, next, 32)?;
        for epoch in 1..=epochs {
            run_epoch(&mut u, &mut v, &mut prepared, next, epoch as u64)?;
            if epoch % 25 == 0 {
                early(&mut v, next, epoch as u64)?;
                prepared_once(world, &mut v, next, epoch as u64)?;
            }
            // These windows, worlds and prepared epochs are dropped, and their resources must be
            // freed.
            if epoch % 100 == 0 {
                let mut w = world.window::<u64>(1 << 12)?;
                w.put([epoch as u64]).to(next, 0)?;
                w.fence()?;
                assert_eq!(w[0], epoch as u64);
            }
            if epoch % 200 == 0 {
                // The members are all ranks, the ranks of one host, or some ranks of each host.
                let colour = [0, me / 2, me % 2][epoch / 200 % 3] as u32;
                let part = world.split(Some(colour), me as i64)?.expect("all are members");
                part.barrier()?;
                let mut w = part.window::<u64>(128)?;
                shift::prepare(&part, (part.rank() + 1) % part.size(), 64)?.replay(&mut w)?;
            }
            if reports(epochs).contains(&epoch) {
                // One rank reports after the other, since ranks that are threads share the measured
                // process.
                for rank in 0..world.size() {
                    world.barrier()?;
                    if rank == me {
                        Held::now()?.say(me, epoch);
                    }
                    world.barrier()?;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns the epochs after which each rank reports the resources that it holds.
fn reports(epochs: usize) -> [usize; REPORTS] {
    std::array::from_fn(|part| epochs / REPORTS * (part + 1))
}

/// Runs one epoch. Its kind follows from its number.
fn run_epoch(
    u: &mut Window<u64>,
    v: &mut Window<u64>,
    prepared: &mut shift_prepared,
    next: usize,
    epoch: u64,
) -> Result<()> {
    match epoch % 4 {
        0 => {
            u.put([epoch]).to(next, 0)?;
            u.fence()?;
            assert_eq!(u[0], epoch, "the value that the other rank put");
        }
        1 => {
            u.get(96..112).from(next, 0..16)?;
            u.accumulate([1], Op::Sum).to(next, 120)?;
            u.fence()?;
            assert_eq!(u[120], epoch / 4 + 1, "every accumulate counts once");
        }
        2 if epoch % 40 == 2 => {
            v.put(&vec![epoch; v.len()]).to(next, 0)?;
            v.fence()?;
            assert_eq!(v[v.len() - 1], epoch);
        }
        _ => {
            u[0] = epoch;
            prepared.replay(u)?;
            assert_eq!(u[32], epoch, "the first element of the other rank");
        }
    }
    Ok(())
}

/// The number of puts in one epoch. Each put has one element, and is sent in a frame of its own.
const SMALL_PUTS: usize = 500_000;
/// The bytes of memory that each of [`SMALL_PUTS`] puts may cost the receiver. A frame has 64
/// bytes, and some megabytes are in transit.
const BYTES_A_PUT: u64 = 300;

/// The program of each rank: rank 0 puts to the last rank. The last rank reports the growth of its
/// peak memory.
pub fn small_puts() -> Result<()> {
    let size = fencepost::process()?.map_or(RANKS, |process| process.ranks);
    fencepost::ranks(size).transport("tcp".parse()?).run(|world| {
        let mut u = world.window::<u64>(1000)?;
        u.set_mode(Mode::Aggressive);
        u.fence()?;
        let before = status_kib("VmHWM")?;
        if world.rank() == 0 {
            for at in 0..SMALL_PUTS {
                u.put([at as u64]).to(world.size() - 1, at % 1000)?;
            }
        }
        u.fence()?;
        if world.rank() + 1 == world.size() {
            assert_eq!(u[999], SMALL_PUTS as u64 - 1);
            say(&format!("grown {}", status_kib("VmHWM")? - before));
        }
        Ok(())
    })?;
    Ok(())
}

/// To store early puts, the receiver needs little more memory than their size.
pub fn by_small_puts() {
    for transport in ["tcp", "mixed"] {
        let ended = run_with(&options(transport, &RANKS.to_string()), &["small_puts"], &LIMIT).end();
        ended.expect(0);
        let grown = ended.out.lines().find_map(|line| line.strip_prefix("grown ")?.parse::<u64>().ok());
        let grown = grown.unwrap_or_else(|| panic!("the last rank does not report: {ended:#?}"));
        println!("  {transport}: {} bytes a put", grown * 1024 / SMALL_PUTS as u64);
        assert!(grown * 1024 <= BYTES_A_PUT * SMALL_PUTS as u64, "{transport}: {grown} KiB");
    }
}

/// Runs the epochs on threads of one process.
pub fn by_local() {
    assert_flat("local", threads("local"));
}

/// Runs the epochs on the simulated network, in one process.
pub fn by_sim() {
    assert_flat("sim", threads("sim"));
}

/// Runs the epochs over shared memory.
pub fn by_shm() {
    assert_flat("shm", processes("shm"));
}

/// Runs the epochs over connections.
pub fn by_tcp() {
    assert_flat("tcp", processes("tcp"));
}

/// Runs the epochs on two hosts of two ranks each.
pub fn by_mixed() {
    assert_flat("mixed", processes("mixed"));
}

/// A time limit that only a hanging test reaches.
const LIMIT: [(&str, &str); 1] = [("FENCEPOST_TIMEOUT", "1800s")];

fn threads(transport: &str) -> Launched {
    start(&rank_program(), &["rank", "endure", transport, &epochs().to_string()], &LIMIT)
}

fn processes(transport: &str) -> Launched {
    // The launcher determines the transport of processes, so the word `tcp` has no effect.
    let words = ["endure", "tcp", &epochs().to_string()];
    run_with(&options(transport, &RANKS.to_string()), &words, &LIMIT)
}

fn assert_flat(transport: &str, job: Launched) {
    let ended = job.end();
    ended.expect(0);
    for rank in 0..if transport == "mixed" { 2 * RANKS } else { RANKS } {
        let held = |line: &str| -> Option<Vec<u64>> {
            let rest = line.strip_prefix(&format!("held {rank} "))?;
            rest.split(' ').map(|number| number.parse().ok()).collect()
        };
        let held: Vec<Vec<u64>> = ended.out.lines().filter_map(held).collect();
        assert_eq!(held.len(), REPORTS, "rank {rank} does not report what it holds: {ended:#?}");
        let [memory, segment, descriptors] =
            [1, 2, 3].map(|n| held.iter().map(|line| line[n]).collect::<Vec<_>>());
        println!(
            "  {transport} rank {rank}, after {:?} epochs: memory {memory:?} KiB, segment {segment:?} KiB, descriptors \
             {descriptors:?}",
            reports(epochs())
        );
        let least = |held: &[u64]| held.windows(2).map(|two| two[1].saturating_sub(two[0])).min();
        assert!(least(&memory) <= Some(SLACK_KIB), "{transport}: memory grows in every part: {memory:?}");
        assert!(memory[REPORTS - 1] <= memory[0] + GROWTH_KIB, "{transport}: memory grows: {memory:?}");
        assert_eq!(segment[0] > 0, ["shm", "mixed"].contains(&transport), "whether there is a segment");
        assert!(
            least(&segment) <= Some(SEGMENT_SLACK_KIB),
            "{transport}: the segment grows in every part: {segment:?}"
        );
        assert!(
            least(&descriptors) == Some(0),
            "{transport}: descriptors grow in every part: {descriptors:?}"
        );
    }
}
