//! What a rank keeps between the halves of a superstep, read and written while others copy next to it: for the sanitizers, which
//! `.ci/run threads addresses` runs this under, and by values without them.
//!
//! Two races are planted, which `.ci/run threads` must see: each uses one element that is not kept.

use fencepost::prelude::*;
use fencepost::{TransportKind, World, ranks};

const ROUNDS: u64 = 200;

/// Elements that come and leave are next to elements that stay: `[leaves, comes, is kept]`, three times over.
#[superstep]
fn interleaved(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    for at in [0, 3, 6] {
        u.put(at..at + 1).to(next, at + 1)?;
    }
    u.get(10..11).from(next, 9)
}

/// Memory that ranks reach, in which they copy directly.
fn memory() -> [TransportKind; 2] {
    [TransportKind::Local, TransportKind::ShmThreads]
}

fn filled(world: &World) -> Result<Window<u64>> {
    let mut u = world.window::<u64>(12)?;
    (0..12).for_each(|element| u[element] = 100 * world.rank() as u64 + element as u64);
    Ok(u)
}

/// The elements that no call touches, and those that calls read.
const UNTOUCHED: [usize; 4] = [2, 5, 8, 11];
const READ: [usize; 4] = [0, 3, 6, 9];

#[test]
fn kept_elements_next_to_those_that_others_copy_are_read_and_written_between_the_halves() -> Result<()> {
    for size in [2, 3] {
        for transport in memory() {
            for mode in [Mode::Direct, Mode::Auto] {
                ranks(size).transport(transport.clone()).mode(mode).run(|world| {
                    let mut u = filled(world)?;
                    let mut interleaved = interleaved::prepare(world)?;
                    for round in 0..ROUNDS {
                        let mut running = interleaved.begin(u)?;
                        // Ranks take turns in being late, so that each is copied to before, during and after this.
                        let spells = if round % size as u64 == world.rank() as u64 { 20 } else { 1 };
                        for spell in 0..spells {
                            for element in UNTOUCHED {
                                let kept = &mut running.kept_mut(element..element + 1)?[0];
                                *kept = if spell == 0 { element as u64 + round } else { *kept };
                            }
                            for element in READ {
                                let expected = 100 * world.rank() as u64 + element as u64;
                                assert_eq!(running.kept(element..element + 1)?, [expected]);
                            }
                        }
                        u = running.finish()?;
                        let (previous, next) = ((world.rank() + size - 1) % size, (world.rank() + 1) % size);
                        for at in [0, 3, 6] {
                            assert_eq!(u[at + 1], 100 * previous as u64 + at as u64);
                        }
                        assert_eq!(u[10], 100 * next as u64 + 9);
                        assert!(UNTOUCHED.iter().all(|&element| u[element] == element as u64 + round));
                        // All of it is the rank's own again.
                        [1, 4, 7, 10].into_iter().for_each(|element| u[element] = 0);
                    }
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// Uses an element between the halves that is not kept, by its address.
fn not_kept(transport: TransportKind, element: usize, access: unsafe fn(*mut u64)) -> Result<()> {
    ranks(2).transport(transport).mode(Mode::Direct).run(|world| {
        let mut u = filled(world)?;
        let address = u[element..].as_mut_ptr();
        let mut interleaved = interleaved::prepare(world)?;
        for _ in 0..ROUNDS {
            let running = interleaved.begin(u)?;
            // SAFETY: not sound: another rank touches the element.
            unsafe { access(address) };
            u = running.finish()?;
        }
        Ok(())
    })
}

/// # Safety
/// Nobody writes the element meanwhile.
unsafe fn read(element: *mut u64) {
    // SAFETY: the caller's.
    unsafe { element.read_volatile() };
}

/// # Safety
/// Nobody accesses the element meanwhile.
unsafe fn write(element: *mut u64) {
    // SAFETY: the caller's.
    unsafe { element.write_volatile(7) };
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn an_element_that_comes_is_read_between_the_halves() -> Result<()> {
    memory().into_iter().try_for_each(|transport| not_kept(transport, 4, read))
}

#[test]
#[ignore = "a race on purpose, for the thread sanitizer"]
fn an_element_that_is_fetched_is_written_between_the_halves() -> Result<()> {
    memory().into_iter().try_for_each(|transport| not_kept(transport, 9, write))
}
