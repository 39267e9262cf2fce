//! Numbers that are kept or sent in 32 bits, and how each of them behaves at its limit.
//!
//! - The number of a superstep wraps: two such numbers are compared by [`earlier`], which is
//!   correct while they differ by less than 2^31.
//! - The number of a window or a split does not wrap: the window or the split that would get the
//!   last number is refused (`WorldCore::next_made`).
//! - If an epoch has more operations than [`most_operations`], its fence fails on all ranks before
//!   anything is sent.
//! - The count of a notification saturates ([`count_more`]). The count has to be exact only if it
//!   is small. Otherwise it only has to differ from zero.

/// Returns whether the superstep of `word` comes before the superstep of `than`, by the numbers in
/// the high halves of these words.
pub(crate) fn earlier(word: u64, than: u64) -> bool {
    let (number, than) = ((word >> 32) as u32, (than >> 32) as u32);
    than.wrapping_sub(number) as i32 > 0
}

/// Returns a notification's count, increased by `records`.
pub(crate) fn count_more(count: u32, records: usize) -> u32 {
    count.saturating_add(u32::try_from(records).unwrap_or(u32::MAX))
}

/// Returns the maximum number of puts and accumulates that a rank may collect in one epoch on one
/// window for one target. The same limit holds for the gets of a rank.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn most_operations() -> usize {
    u32::MAX as usize
}

#[cfg(test)]
thread_local! {
    static MOST: std::cell::Cell<usize> = const { std::cell::Cell::new(u32::MAX as usize) };
}

/// Returns the maximum number of operations in one epoch. Tests of this package can lower it for
/// this rank.
#[cfg(test)]
pub(crate) fn most_operations() -> usize {
    MOST.get()
}

/// The maximum number of times that one rank may get the whole of a window in one epoch.
pub(crate) const MOST_TIMES: usize = 256;

/// Returns the maximum number of bytes that one rank may get in one epoch from another rank's
/// window of `len` elements. A datatype may name an element many times, so a short request can ask
/// for very many bytes. The limit is 256 times the whole window, or 16 MiB if that is more.
pub(crate) fn most_answered(len: usize, size: usize) -> usize {
    len.saturating_mul(size).saturating_mul(MOST_TIMES).clamp(16 << 20, isize::MAX as usize)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::run::ranks;
    use crate::state::transport_kind::TransportKind;
    use fencepost_planner::ErrorClass;
    use fencepost_planner::ir::pattern::Mode;
    use fencepost_transport::SimConfig;

    fn transports() -> Vec<TransportKind> {
        let mut all = vec![TransportKind::Local, TransportKind::Sim(SimConfig::default())];
        all.extend([
            TransportKind::ShmThreads,
            TransportKind::TcpThreads,
            TransportKind::MixedThreads(vec![0, 0, 1]),
        ]);
        all
    }

    #[test]
    fn superstep_numbers_are_compared_around_their_end() {
        let word = |number: u32| u64::from(number) << 32 | 0xffff_ffff;
        for number in [0, 1, 77, 1 << 31, u32::MAX - 1, u32::MAX] {
            let next = number.wrapping_add(1);
            assert!(earlier(word(number), word(next)) && !earlier(word(next), word(number)), "{number}");
            assert!(!earlier(word(number), word(number)), "{number}");
            assert!(earlier(word(number), word(number.wrapping_add(i32::MAX as u32))), "{number}");
        }
    }

    #[test]
    fn a_notification_never_counts_many_records_as_none() {
        assert_eq!(count_more(0, 1 << 32), u32::MAX);
        assert_eq!(count_more(1 << 31, 1 << 31), u32::MAX);
        assert_eq!(count_more(2, 3), 5);
    }

    #[test]
    fn more_operations_than_travel_are_refused_on_all_ranks_and_the_world_goes_on() {
        for transport in transports() {
            let run = ranks(3).transport(transport.clone()).run(|world| {
                if world.rank() == 0 {
                    MOST.set(4);
                }
                let mut u = world.window::<u64>(8)?;
                let right = (world.rank() + 1) % 3;
                for (puts, gets) in [(5, 0), (0, 5), (4, 4), (5, 5)] {
                    (0..puts).try_for_each(|at| u.put([7]).to(right, at))?;
                    (0..gets).try_for_each(|at| u.fetch(right, at..at + 2).map(drop))?;
                    let fenced = u.fence();
                    let many = puts.max(gets) > 4;
                    assert_eq!(fenced.is_err(), many, "{transport:?}, {puts} puts, {gets} gets: {fenced:?}");
                    if let (true, Err(error)) = (world.rank() == 0, fenced) {
                        assert_eq!(error.class(), ErrorClass::Size, "{error}");
                    }
                }
                assert_eq!(u[..], [7, 7, 7, 7, 0, 0, 0, 0]);
                Ok(())
            });
            run.unwrap();
        }
    }

    #[test]
    fn what_can_leave_early_no_more_waits_for_the_fence() {
        let run = ranks(2).transport(TransportKind::Sim(SimConfig::default())).run(|world| {
            let mut u = world.window::<u64>(4)?;
            u.set_mode(Mode::Aggressive);
            let peer = 1 - world.rank();
            // The counter starts as if the maximum number of frames, except one, had been sent
            // early.
            u.core().fence.remembered.borrow_mut().begin_at(peer, u32::MAX - 1);
            u.put([1]).to(peer, 0)?;
            u.put([2]).to(peer, 1)?;
            u.put([3]).to(peer, 2)?;
            let waits = |target| u.core().outbox(target, |outbox| outbox.records.len());
            assert_eq!(waits(peer), 2, "the first one has left");
            // The counter claims more early frames than were sent, so the peer refuses the fence.
            u.fence().unwrap_err();
            Ok(())
        });
        run.unwrap();
    }
}
