//! A rank reads and writes the elements that it keeps between the halves of a superstep, while
//! other ranks copy the elements next to them. The tests are made for the sanitizers, under which
//! `.ci/run threads addresses` runs them. Without the sanitizers they check values.
//!
//! Two tests have deliberate races, which `.ci/run threads` must report: each accesses one element
//! that is not kept.

use fencepost::prelude::*;
use fencepost::{TransportKind, World, ranks};

const ROUNDS: u64 = 200;

/// Elements that arrive and leave are next to elements that stay: `[leaves, comes, is kept]`, three
/// times.
#[superstep]
fn interleaved(u: &mut Window<u64>) -> Result<()> {
    let next = (u.rank() + 1) % u.size();
    for at in [0, 3, 6] {
        u.put(at..at + 1).to(next, at + 1)?;
    }
    u.get(10..11).from(next, 9)
}

/// Transports on which ranks reach each other's memory and copy directly.
fn memory() -> [TransportKind; 2] {
    [TransportKind::Local, TransportKind::ShmThreads]
}

fn filled(world: &World) -> Result<Window<u64>> {
    let mut u = world.window::<u64>(12)?;
    (0..12).for_each(|element| u[element] = 100 * world.rank() as u64 + element as u64);
    Ok(u)
}

/// The elements that no call touches, and the elements that calls only read.
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
                        // Each rank in turn is late, so that the other ranks copy to each rank
                        // before, during and after this loop.
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
                        // All elements belong to the rank again.
                        [1, 4, 7, 10].into_iter().for_each(|element| u[element] = 0);
                    }
                    Ok(())
                })?;
            }
        }
    }
    Ok(())
}

/// Accesses an element by its address between the halves, although the rank does not keep the
/// element.
fn not_kept(transport: TransportKind, element: usize, access: unsafe fn(*mut u64)) -> Result<()> {
    ranks(2).transport(transport).mode(Mode::Direct).run(|world| {
        let mut u = filled(world)?;
        let address = u[element..].as_mut_ptr();
        let mut interleaved = interleaved::prepare(world)?;
        for _ in 0..ROUNDS {
            let running = interleaved.begin(u)?;
            // SAFETY: this is not sound, on purpose: another rank accesses the element.
            unsafe { access(address) };
            u = running.finish()?;
        }
        Ok(())
    })
}

/// Reads an element. No other thread may write the element meanwhile.
unsafe fn read(element: *mut u64) {
    // SAFETY: the caller guarantees that no other thread writes the element.
    unsafe { element.read_volatile() };
}

/// Writes an element. No other thread may access the element meanwhile.
unsafe fn write(element: *mut u64) {
    // SAFETY: the caller guarantees that no other thread accesses the element.
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

/// A number of elements that is large enough for MPI to send them directly from their window.
const LONG: usize = 1 << 20;

#[superstep]
fn give(u: &mut Window<u64>, v: &mut Window<u64>, other: usize) -> Result<()> {
    v.put(u.section(0..LONG)).to(other, 0)?;
    Ok(())
}

/// MPI still sends from a window whose run was dropped. The memory of the window must not be
/// reused.
#[test]
fn memory_that_a_dropped_run_has_lent_is_not_used_again() {
    let ended = ranks(2).transport(TransportKind::MpiThreads).run(|world| {
        let (u, v) = (world.window::<u64>(LONG)?, world.window::<u64>(LONG)?);
        let lent = u.as_ptr_range();
        let mut give = give::prepare(world, 1 - world.rank())?;
        if world.rank() == 1 {
            return give.begin(u, v)?.finish().map(drop);
        }
        drop(give.begin(u, v)?);
        let later: Vec<Vec<u64>> = (0..4).map(|_| vec![1; LONG]).collect();
        for elements in later.iter().map(|elements| elements.as_ptr_range()) {
            assert!(elements.end <= lent.start || lent.end <= elements.start, "it is given to somebody else");
        }
        Ok(())
    });
    if let Err(told) = ended {
        // The other rank had not finished.
        let told = told.to_string();
        assert!(told.contains("dropped the superstep that it began at"), "{told}");
    }
}
