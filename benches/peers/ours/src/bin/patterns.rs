//! Measures the same as `../../mpi_patterns.c`: random patterns without conflicts. In each epoch, a
//! rank calls the operations that the pattern has for this epoch, and then fences.
//!
//! `BASE_PATTERNS` names a file. If the file does not exist, this program writes the patterns and
//! the digest of each epoch to it. Otherwise, the file must have the same patterns and digests. The
//! program compares `BASE_PATTERN_COUNT` patterns, and also times the first `BASE_PATTERN_TIMED`.

use fencepost::bytemuck::cast_slice;
use fencepost::prelude::*;
use ours::pattern::{Action, Operation, Pattern, Value, values};
use ours::{bench, emit, env_f64, require};
use std::collections::BTreeSet;

/// Returns the FNV-1a hash of these bytes.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the digest of the windows of all ranks. A window includes the elements that gets have
/// fetched.
fn digest<T: Value>(world: &World, window: &[T]) -> Result<u64> {
    let all = world.allgather(&[fnv(cast_slice(window))])?.concat();
    Ok(fnv(cast_slice(&all)))
}

fn epoch<T: Value>(window: &mut Window<T>, source: &[T], operations: &[Operation]) -> Result<()> {
    for Operation { action, target, local, remote, .. } in operations {
        let (local, remote) = (&local.datatype, &remote.datatype);
        match *action {
            Action::Put => window.put((source, local)).to(*target, remote)?,
            Action::Get => window.get(local).from(*target, remote)?,
            Action::Accumulate(op) => window.accumulate((source, local), op).to(*target, remote)?,
        }
    }
    window.fence()
}

/// Runs a pattern. Returns its text with the digests.
fn run<T: Value>(world: &World, number: usize, timed: bool) -> Result<String> {
    let rank = world.rank();
    let pattern = Pattern::draw::<T>(number, world.size());
    let len = pattern.len;
    let mut window = world.window::<T>(2 * len)?; // gets land in the second half
    window[..len].copy_from_slice(&values::<T>(number, 0, rank, len));
    window.fence()?; // MPI allows no puts into a window in an epoch in which its rank stores there
    let mut digests = vec![digest(world, &window)?];
    for (turn, operations) in pattern.epochs.iter().enumerate() {
        epoch(&mut window, &values(number, turn + 1, rank, len), &operations[rank])?;
        digests.push(digest(world, &window)?);
    }
    let different: BTreeSet<&u64> = digests.iter().collect();
    require(world, different.len() == digests.len(), "patterns: an epoch changes nothing")?;
    if timed {
        let source = vec![T::zeroed(); len]; // no sum overflows, however often an epoch is repeated
        for (turn, operations) in pattern.epochs.iter().enumerate() {
            let s = bench(world, || epoch(&mut window, &source, &operations[rank]))?;
            let all = operations.iter().flatten();
            let elements: usize = all.clone().map(|operation| operation.remote.datatype.size()).sum();
            let case = format!("{}_{len}/epoch{turn}", T::NAME);
            let more = format!("\"pattern\":{number},\"operations\":{},\"elements\":{elements}", all.count());
            emit(world, "patterns", &case, "dynamic", s, "us", &more);
        }
    }
    Ok(pattern.text::<T>(&digests[1..]))
}

/// Writes the file that `BASE_PATTERNS` names, or checks that it has this text.
fn compare(world: &World, text: &str) -> Result<()> {
    let Some(path) = std::env::var_os("BASE_PATTERNS") else { return Ok(()) };
    let same = world.rank() != 0
        || match std::fs::read_to_string(&path) {
            Ok(expected) => expected == text,
            Err(_) => std::fs::write(&path, text).is_ok(),
        };
    require(world, same, "patterns: the file has other digests, or cannot be written")
}

fn main() -> Result<()> {
    ours::main(|world| {
        let count = env_f64("BASE_PATTERN_COUNT", 36.0) as usize;
        let timed = env_f64("BASE_PATTERN_TIMED", 9.0) as usize;
        let mut text = format!("patterns {count} ranks {}\n", world.size());
        for number in 0..count {
            text += &match number % 3 {
                0 => run::<f64>(world, number, number < timed),
                1 => run::<u64>(world, number, number < timed),
                _ => run::<i32>(world, number, number < timed),
            }?;
        }
        compare(world, &text)
    })
}
