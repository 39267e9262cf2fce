//! The transports that whole programs are tested on.

use fencepost::TransportKind;
use fencepost::transport::SimConfig;

/// Every kind of transport between threads, and simulated links for each of some seeds.
pub fn transports(seeds: impl IntoIterator<Item = u64>) -> Vec<TransportKind> {
    let mut all = vec![
        TransportKind::Local,
        TransportKind::ShmThreads,
        TransportKind::TcpThreads,
        TransportKind::MixedThreads(vec![0, 0, 1, 1]),
    ];
    all.extend(seeds.into_iter().map(sim));
    all
}

/// Simulated links that a seed decides about.
pub fn sim(seed: u64) -> TransportKind {
    TransportKind::Sim(SimConfig { seed, ..SimConfig::default() })
}

/// The transports that play the random program of this seed: two of them do always, each other one an eighth of the programs.
pub fn of_program(seed: u64, ranks: usize) -> Vec<TransportKind> {
    let mut all = vec![TransportKind::Local, sim(seed)];
    all.extend(match seed % 8 {
        0 => Some(TransportKind::ShmThreads),
        1 => Some(TransportKind::TcpThreads),
        2 => Some(TransportKind::MixedThreads((0..ranks as u32).map(|rank| rank % 2).collect())),
        _ => None,
    });
    all
}
