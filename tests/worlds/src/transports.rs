//! The transports on which whole programs are tested. `FENCEPOST_TEST_TRANSPORTS=tcp,mixed`
//! restricts tests to the named transports.

use fencepost::TransportKind;
use fencepost::transport::SimConfig;

/// Returns every kind of transport between threads, and simulated links for each of these seeds.
pub fn transports(seeds: impl IntoIterator<Item = u64>) -> Vec<TransportKind> {
    let mut all = vec![
        TransportKind::Local,
        TransportKind::ShmThreads,
        TransportKind::TcpThreads,
        TransportKind::MixedThreads(vec![0, 0, 1, 1]),
        TransportKind::MpiThreads,
        TransportKind::MixedMpiThreads(vec![0, 1]),
    ];
    all.extend(seeds.into_iter().map(sim));
    requested(all)
}

/// Returns the transports among `all` that `FENCEPOST_TEST_TRANSPORTS` names, or all of them if the
/// variable is not set.
///
/// # Panics
///
/// Panics if the variable names none of these transports, since a test of no transport would always
/// pass.
pub fn requested(mut all: Vec<TransportKind>) -> Vec<TransportKind> {
    let Ok(names) = std::env::var("FENCEPOST_TEST_TRANSPORTS") else { return all };
    all.retain(|kind| names == "all" || names.split(',').any(|asked| asked == name(kind)));
    assert!(!all.is_empty(), "FENCEPOST_TEST_TRANSPORTS={names}: this test has none of these transports");
    all
}

/// Returns the name of a transport in `FENCEPOST_TEST_TRANSPORTS`.
fn name(kind: &TransportKind) -> &'static str {
    match kind {
        TransportKind::Local => "local",
        TransportKind::ShmThreads => "shm",
        TransportKind::TcpThreads => "tcp",
        TransportKind::MixedThreads(_) => "mixed",
        TransportKind::MpiThreads | TransportKind::MixedMpiThreads(_) => "mpi",
        TransportKind::Sim(_) => "sim",
        _ => "another",
    }
}

/// Returns simulated links that a seed determines.
pub fn sim(seed: u64) -> TransportKind {
    TransportKind::Sim(SimConfig { seed, ..SimConfig::default() })
}

/// Returns the transports that play the random program of this seed. Two transports play every
/// program, and each of the others plays an eighth of the programs.
pub fn of_program(seed: u64, ranks: usize) -> Vec<TransportKind> {
    let mut all = vec![TransportKind::Local, sim(seed)];
    all.extend(match seed % 8 {
        0 => Some(TransportKind::ShmThreads),
        1 => Some(TransportKind::TcpThreads),
        2 => Some(TransportKind::MixedThreads((0..ranks as u32).map(|rank| rank % 2).collect())),
        3 => Some(TransportKind::MpiThreads),
        4 => Some(TransportKind::MixedMpiThreads((0..ranks as u32).map(|rank| rank % 2).collect())),
        _ => None,
    });
    all
}
