//! The errors with which a world's ranks end.

use fencepost::{ErrorClass, Ranks, Result, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `program` on every rank of `world`. Returns the error of each rank, by rank.
///
/// Exactly the ranks of `panics` must panic. The entry of a rank that panics is `None`.
#[track_caller]
pub fn ends(
    world: &Ranks,
    panics: &[usize],
    program: impl Fn(&World) -> Result<()> + Sync,
) -> Vec<Option<(ErrorClass, String)>> {
    let (size, returned) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let whole = world.run(|world| {
        size.store(world.size(), Ordering::Relaxed);
        let result = program(world);
        let error = result.as_ref().err().map(|error| (error.class(), error.to_string()));
        returned.lock().unwrap().push((world.rank(), error));
        result
    });
    let mut returned = returned.into_inner().unwrap();
    returned.sort_by_key(|(rank, _)| *rank);
    let mut ends: Vec<Option<(ErrorClass, String)>> = vec![None; size.into_inner()];
    let mut panicked: Vec<usize> = (0..ends.len()).collect();
    for (rank, error) in returned {
        panicked.retain(|&other| other != rank);
        ends[rank] = error;
    }
    assert_eq!(panicked, panics, "ranks that panicked: {whole:?}");
    ends
}
