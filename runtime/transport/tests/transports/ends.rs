//! The worlds of every transport, and common operations on their ends.

use std::iter::once_with;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

pub use super::waits::{bytes, poll, poll_on, read, released, settled, wait};
use fencepost_transport::mpi::{hybrid_stand_in, mpi_stand_in};
use fencepost_transport::{
    Channels, Endpoint, Frame, Header, Leave, Lent, Liveness, Lost, Notification, Notify, Port, SimConfig,
    Topology, hybrid, local, shm, sim, tcp,
};

pub fn simulated(size: usize, config: SimConfig) -> Vec<Endpoint> {
    sim(size, config).into_iter().map(Endpoint::Sim).collect()
}

pub fn threads(size: usize) -> Vec<Endpoint> {
    local(size).into_iter().map(Endpoint::Local).collect()
}

/// Returns ends in a segment, for ranks that could be processes. Here the ranks are threads.
pub fn processes(size: usize) -> Vec<Endpoint> {
    shm(size).unwrap().into_iter().map(Endpoint::Shm).collect()
}

pub fn sockets(size: usize) -> Vec<Endpoint> {
    tcp(size).unwrap().into_iter().map(Endpoint::Tcp).collect()
}

/// Returns ends over messages of a stand-in for MPI.
pub fn messages(size: usize) -> Vec<Endpoint> {
    mpi_stand_in(size).unwrap().into_iter().map(Endpoint::Mpi).collect()
}

/// Returns the ends of a world whose ranks are on these hosts.
pub fn hosts(hosts: &[u32]) -> Vec<Endpoint> {
    hybrid(hosts).unwrap().into_iter().map(Endpoint::Hybrid).collect()
}

/// Returns the ends of a world whose ranks are on these hosts. The hosts exchange messages through
/// a stand-in for MPI.
pub fn hosts_over_mpi(hosts: &[u32]) -> Vec<Endpoint> {
    hybrid_stand_in(hosts).unwrap().into_iter().map(Endpoint::HybridMpi).collect()
}

/// Returns assignments of `size` ranks to hosts: all on one host, one half on each of two hosts,
/// alternating between two hosts, rank 0 apart from all others, and each rank on its own host.
fn layouts(size: usize) -> Vec<Vec<u32>> {
    let ways: [fn(usize, usize) -> usize; 5] = [
        |_, _| 0,
        |rank, size| usize::from(rank >= size - size / 2),
        |rank, _| rank % 2,
        |rank, _| usize::from(rank > 0),
        |rank, _| rank,
    ];
    let layout = |way: fn(usize, usize) -> usize| (0..size).map(|rank| way(rank, size) as u32).collect();
    let mut all: Vec<Vec<u32>> = ways.map(layout).into();
    all.dedup();
    all
}

/// Returns every transport, with a name for messages. Each world is created when it is used, so
/// that only one world at a time takes addresses.
pub fn transports(size: usize) -> impl Iterator<Item = (String, Vec<Endpoint>)> {
    let calm = SimConfig { max_delay: 0, short_reads: false, ..SimConfig::default() };
    let mut configs = vec![calm.clone(), SimConfig { link_bytes: 7, max_delay: 1, ..calm }];
    configs.extend((1..4).map(|seed| SimConfig { seed, ..SimConfig::default() }));
    configs.push(SimConfig { seed: 9, max_delay: 40, link_bytes: 100, ..SimConfig::default() });
    configs.push(SimConfig { seed: 11, latency: Duration::from_micros(50), ..SimConfig::default() });
    let local = once_with(move || ("local".to_owned(), threads(size)));
    let shm = once_with(move || ("shm".to_owned(), processes(size)));
    let sim = configs.into_iter().map(move |config| (format!("{config:?}"), simulated(size, config)));
    let tcp = once_with(move || ("tcp".to_owned(), sockets(size)));
    let mixed = layouts(size).into_iter().map(|layout| (format!("mixed {layout:?}"), hosts(&layout)));
    let mpi = once_with(move || ("mpi".to_owned(), messages(size)));
    // Takes only the layouts of two halves and of alternating hosts. If all ranks are on one host,
    // there are no messages; the other layouts are similar to MPI alone.
    let over_mpi = layouts(size).into_iter().skip(1).take(2);
    let over_mpi = over_mpi.map(|layout| (format!("MPI and {layout:?}"), hosts_over_mpi(&layout)));
    local.chain(shm).chain(sim).chain(tcp).chain(mpi).chain(mixed).chain(over_mpi)
}

/// Runs `rank` on each end, each in a thread. If a thread panics, the panic continues after all
/// threads have ended.
pub fn run<R: Send>(ends: Vec<Endpoint>, rank: impl Fn(&mut Endpoint) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let rank = &rank;
        let threads: Vec<_> = ends
            .into_iter()
            .map(|mut end| {
                scope.spawn(move || {
                    let value = rank(&mut end);
                    end.leave(Leave::Finished);
                    value
                })
            })
            .collect();
        let ended: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ended
            .into_iter()
            .map(|value| value.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

#[expect(clippy::print_stderr, reason = "says on which transport a panic happened")]
pub fn on_all(size: usize, rank: impl Fn(&mut Endpoint) + Sync) {
    for (name, ends) in transports(size) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(ends, &rank))) {
            eprintln!("on {name} with {size} ranks:");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Posts bytes that are never freed.
pub fn post(end: &mut Endpoint, to: usize, header: Header, payload: &'static [u8]) -> Result<(), Lost> {
    post_on(end, to, Port::FENCE, header, payload)
}

pub fn post_on(
    end: &mut Endpoint,
    to: usize,
    port: Port,
    header: Header,
    payload: &'static [u8],
) -> Result<(), Lost> {
    // SAFETY: the payload is never freed and never changes.
    unsafe { end.post(to, port, Frame::of(header, payload)) }
}

pub fn take(end: &mut Endpoint, from: usize) -> Result<(Header, Vec<u8>), Lost> {
    take_on(end, from, Port::FENCE)
}

pub fn take_on(end: &mut Endpoint, from: usize, port: Port) -> Result<(Header, Vec<u8>), Lost> {
    let frame = poll_on(end, from, port)?;
    let taken = (frame.header, bytes(&frame).to_vec());
    end.release(from, port);
    Ok(taken)
}

/// Cancels the buffers for payloads of `from` on this port. Waits until none of them is in use.
pub fn cancel(end: &mut Endpoint, from: usize, port: Port) {
    end.cancel(from, port);
    wait(end, |end| Ok((end.lent(from) == Lent::Nothing).then_some(()))).unwrap();
}

/// Makes one exchange. Returns the notifications.
pub fn exchange(end: &mut Endpoint, word: u64) -> Result<Vec<Notification>, Lost> {
    end.publish(word)?;
    (0..end.size()).map(|from| read(end, from)).collect()
}

pub const fn header(word: u64) -> Header {
    Header { word, kind: 1, extra: 0 }
}

/// Bytes whose values depend on their position, so that misplaced parts are noticed.
pub static PATTERN: [u8; 3001] = {
    let mut pattern = [0; 3001];
    let mut i = 0;
    while i < pattern.len() {
        pattern[i] = (i * i % 251) as u8;
        i += 1;
    }
    pattern
};

pub fn piece(from: usize, to: usize, n: usize) -> &'static [u8] {
    let start = (37 * from + 11 * to + n) % 1000;
    let len = [0, 1, 15, 16, 17, 300, 2000][(from + to + n) % 7];
    &PATTERN[start..start + len]
}
