//! The caches of the machine that a program runs on: the sizes that the system reports, and the
//! time for a byte from a cache or from memory.

use crate::state::world::World;
use fencepost_planner::Result;
use fencepost_planner::element::Op;
use fencepost_planner::machine::Caches;
use std::collections::BTreeSet;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

/// The minimum and the maximum number of bytes that a rank sweeps to time memory.
const LEAST: usize = 16 << 20;
const MOST: usize = 128 << 20;

/// The size of the smallest fields with which shared caches are timed, as a multiple of the size of
/// a core's own cache.
const NEAR: usize = 4;

/// The minimum ratio of the time for a byte from memory to the time for a byte from shared caches.
/// Below this ratio, timing cannot show which fields fit these caches.
const APART: f64 = 1.25;

/// The number of timed sweeps over the fields of each size. The shortest time counts.
const TIMES: usize = 4;

/// Returns the caches of the host with the smallest caches. The result is the same on all ranks.
///
/// The size of a core's own cache is the one that the system reports. Other machines may use the
/// shared caches as well, so the available size is found by timing: a sweep takes longer for each
/// byte once the fields no longer fit these caches. If the system does not report sizes, the sizes
/// of `known` take their place.
///
/// # Errors
/// As [`World::allreduce`].
#[track_caller]
pub(super) fn measured(world: &World, known: &Caches) -> Result<Caches> {
    let (core, host) = sizes(Path::new("/sys/devices/system/cpu")).unwrap_or_default();
    let mut least = [core, host];
    world.allreduce(&mut least, Op::Min)?;
    let mut caches = *known;
    if least[0] > 0 {
        (caches.core, caches.host) = (least[0] as f64, least[1] as f64);
    }
    let ranks = world.placement().ranks_of_a_host(world.size());
    let times = swept(world, &timed(caches.core as usize, caches.host as usize / ranks))?;
    match times[..] {
        [] => {}
        [(_, memory)] => caches.memory = memory,
        [(_, near), .., (_, memory)] => {
            (caches.near, caches.memory) = (near.min(memory), memory);
            if let Some(held) = held(&times) {
                caches.host = caches.host.min(ranks as f64 * held);
            }
        }
    }
    Ok(caches)
}

/// Returns the sizes in bytes of the fields to time, the largest last. If a core's `share` of the
/// shared caches is less than [`NEAR`] times its own cache, only memory is timed.
fn timed(core: usize, share: usize) -> Vec<usize> {
    let largest = share.saturating_mul(2).clamp(LEAST, MOST);
    let own = core.saturating_mul(NEAR).max(1 << 10);
    let doubled = std::iter::successors(Some(own.min(share / 2)), |size| Some(2 * size));
    let shared = doubled.take_while(|&size| own <= share && size <= largest / 2);
    shared.chain([largest]).collect()
}

/// Estimates the size of the largest fields that fit the shared caches. `times` has the time per
/// byte for each size. The estimate is between two successive sizes. At the smaller size, the time
/// per byte is nearer to that of the smallest fields. At the larger size, it is nearer to that of
/// the largest fields. Returns `None` if the times of the smallest and the largest fields hardly
/// differ.
fn held(times: &[(usize, f64)]) -> Option<f64> {
    let (&(_, near), &(_, memory)) = (times.first()?, times.last()?);
    let slow = times.iter().position(|&(_, time)| time > (near * memory).sqrt())?;
    let [(below, _), (above, _)] = *times.get(slow.checked_sub(1)?..=slow)? else { return None };
    (memory > APART * near).then(|| (below as f64 * above as f64).sqrt())
}

/// Returns the size of the largest cache that a core has for itself, and the total size of the
/// last-level caches of all cores. A cache is a core's own if no other core shares it; the threads
/// of one core count as that core.
fn sizes(cpus: &Path) -> Option<(u64, u64)> {
    let read = |path: &Path| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let (mut core, mut all) = (0, BTreeSet::new());
    for cpu in std::fs::read_dir(cpus).ok()?.flatten() {
        let threads = read(&cpu.path().join("topology/thread_siblings_list"));
        let Ok(caches) = std::fs::read_dir(cpu.path().join("cache")) else { continue };
        for cache in caches.flatten() {
            let of = |name: &str| read(&cache.path().join(name));
            let (Some(kind), Some(sharers)) = (of("type"), of("shared_cpu_list")) else { continue };
            let (Some(size), Some(level)) = (of("size").as_deref().and_then(bytes), of("level")) else {
                continue;
            };
            if kind == "Instruction" {
                continue;
            }
            if threads.as_ref() == Some(&sharers) {
                core = core.max(size);
            }
            all.insert((level, sharers, size));
        }
    }
    let last = all.last()?.0.clone();
    let host = all.iter().filter(|(level, ..)| *level == last).map(|(.., size)| size).sum();
    // If all caches are shared, no core has a cache of its own, and the shared caches are used
    // instead.
    Some((if core == 0 { host } else { core }, host))
}

/// Reads a size such as `512K`.
fn bytes(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        _ => 1,
    };
    text.trim_end_matches(['K', 'M', 'G']).parse::<u64>().ok()?.checked_mul(unit)
}

/// Measures, for each of these sizes, the nanoseconds for a byte on the slowest rank. The largest
/// size is the last. Each size is the total of two fields. All ranks compute one field from the
/// other at the same time. Returns an empty list if a rank has no memory for the fields.
#[track_caller]
fn swept(world: &World, sizes: &[usize]) -> Result<Vec<(usize, f64)>> {
    let cells = |bytes: usize| bytes / (2 * size_of::<f64>());
    let (mut u, mut v) = (Vec::new(), Vec::new());
    let most = sizes.last().map_or(0, |&bytes| cells(bytes));
    let fits = u.try_reserve_exact(most).is_ok() && v.try_reserve_exact(most).is_ok();
    if fits {
        u.resize(most, 1.0_f64);
        v.resize(most, 1.0_f64);
    }
    let mut refused = [u8::from(!fits)];
    world.allreduce(&mut refused, Op::Max)?;
    if refused[0] > 0 {
        return Ok(Vec::new());
    }
    let mut times = Vec::new();
    for &bytes in sizes {
        let mut least = u64::MAX;
        for _ in 0..TIMES {
            world.barrier()?;
            let clock = Instant::now();
            for (next, now) in v[..cells(bytes)].iter_mut().zip(&u) {
                *next = 0.5 * now;
            }
            black_box(&mut v);
            let mut slowest = [clock.elapsed().as_nanos() as u64];
            world.allreduce(&mut slowest, Op::Max)?;
            least = least.min(slowest[0]);
            std::mem::swap(&mut u, &mut v);
        }
        times.push((bytes, least as f64 / bytes as f64));
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::{bytes, held, sizes, timed};
    use std::path::Path;

    #[test]
    fn sizes_are_read_as_the_system_writes_them() {
        for (text, size) in [("512K", 524_288), ("32M", 33_554_432), ("64", 64)] {
            assert_eq!(bytes(text), Some(size));
        }
        assert!(
            ["", "K", "12X", "99999999999999999999", "99999999999999999G"]
                .iter()
                .all(|text| bytes(text).is_none())
        );
    }

    #[test]
    fn fields_of_doubling_size_are_timed_whatever_the_sizes_of_the_caches() {
        const MIB: usize = 1 << 20;
        assert_eq!(timed(2 * MIB, 240 * MIB), [8, 16, 32, 64, 128].map(|size| size * MIB));
        assert_eq!(timed(MIB, 6 * MIB), [3, 6, 16].map(|size| size * MIB));
        // Here a core has no cache of its own, or its own cache is nearly as large as all caches
        // together.
        assert_eq!(timed(32 * MIB, 32 * MIB), [64 * MIB]);
        // The list is short, whatever sizes a machine model has.
        for core in [0, 1, MIB, usize::MAX] {
            for share in [0, 1, MIB, usize::MAX] {
                let sizes = timed(core, share);
                assert!(sizes.len() < 20 && sizes.is_sorted(), "{core} {share}: {sizes:?}");
            }
        }
    }

    #[test]
    fn shared_caches_hold_fields_up_to_the_size_at_which_a_byte_takes_longer() {
        let shared = [(8, 0.033), (16, 0.034), (32, 0.036), (64, 0.059), (128, 0.075)];
        let held = |times: &[(usize, f64)]| held(times).map(|size| size as usize);
        assert_eq!(held(&shared), Some(45));
        // Noise in the time of a larger field does not hide that a smaller field is slow.
        assert_eq!(held(&[(8, 0.03), (16, 0.06), (32, 0.03), (64, 0.07)]), Some(11));
        assert_eq!(held(&[(8, 0.03), (16, 0.033)]), None);
        assert_eq!(held(&[]), None);
    }

    #[test]
    fn a_core_has_the_caches_that_no_other_core_shares() {
        let folder = std::env::temp_dir().join(format!("fencepost-caches-{}", std::process::id()));
        let write = |path: String, text: &str| {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, format!("{text}\n")).expect("a file");
        };
        // Two pairs of threads. Each pair has caches of 48K and 1M of its own. One pair shares a
        // cache of 16M with other cores, and the other pair shares a cache of 8M.
        for cpu in 0..4 {
            let pair = if cpu < 2 { "0-1" } else { "2-3" };
            write(format!("cpu{cpu}/topology/thread_siblings_list"), pair);
            let (last, more) = if cpu < 2 { ("16M", "0-1,8") } else { ("8M", "2-3,9") };
            for (index, level, kind, size, sharers) in [
                (0, "1", "Data", "48K", pair),
                (1, "1", "Instruction", "64M", pair),
                (2, "2", "Unified", "1024K", pair),
                (3, "3", "Unified", last, more),
            ] {
                for (name, text) in
                    [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", sharers)]
                {
                    write(format!("cpu{cpu}/cache/index{index}/{name}"), text);
                }
            }
        }
        let found = sizes(&folder);
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(found, Some((1 << 20, 24 << 20)));
        assert_eq!(sizes(Path::new("/no/such/folder")), None);
    }
}
