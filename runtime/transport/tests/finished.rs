//! Ranks that have never communicated open no connections to announce their end, whether they
//! finish or end because their launcher reports the death of a rank. Even so, a rank that waits for
//! one of them is notified. The test is alone in its file, since it counts the descriptors of the
//! process.

mod fabrics;

use std::sync::Arc;
use std::time::Duration;

use fencepost_transport::{
    Cause, Channels, Leave, Liveness, Loss, Lost, Pause, Port, Settings, TcpEnd, TcpFabric, Topology,
};

const RANKS: usize = 6;

/// Returns the ranks of a job whose launcher reports the end of each rank within `obituary`. If
/// `obituary` is zero, there is no launcher.
fn job(obituary: Duration) -> Vec<(Arc<TcpFabric>, TcpEnd)> {
    fabrics::job(RANKS, Settings { obituary, ..Settings::default() })
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Waits until nothing more can arrive from `from`, and returns the reason.
fn loss(end: &mut TcpEnd, from: usize) -> Lost {
    let mut pause = Pause::new();
    loop {
        match end.poll(from, Port::FENCE) {
            Ok(Some(_)) => end.release(from, Port::FENCE),
            Ok(None) => end.idle(&mut pause),
            Err(lost) => return lost,
        }
    }
}

fn finished(rank: usize) -> Lost {
    Lost { rank, how: Loss::Left(Leave::Finished) }
}

/// Returns how many descriptors the ranks open when they leave.
fn taken(obituary: Duration) -> usize {
    let mut ranks = job(obituary);
    let before = descriptors();
    ranks.iter_mut().for_each(|(_, end)| end.leave(Leave::Finished));
    descriptors() - before
}

/// Returns how many descriptors the ranks open when rank 5 dies. Four other ranks are notified of
/// the death. Each of them then ends the world and leaves.
fn taken_by_a_death(obituary: Duration) -> usize {
    let mut ranks = job(obituary);
    let before = descriptors();
    for (fabric, end) in &mut ranks[..4] {
        fabric.mark_failed(5, "killed");
        let lost = loss(end, 5);
        assert_eq!(lost.rank, 5, "{lost}");
        end.end(Cause { rank: lost.rank, what: lost.to_string() });
        end.leave(Leave::Failed(lost.to_string()));
    }
    let taken = descriptors() - before;
    // Rank 4 was not notified of the death, and waits for rank 3. It receives the reason for the
    // end of the world.
    let lost = loss(&mut ranks[4].1, 3);
    assert!(lost.rank == 5 && matches!(&lost.how, Loss::Ended(what) if what.contains("killed")), "{lost}");
    taken
}

#[test]
fn ranks_that_never_spoke_finish_without_connections_and_are_known_to_have_finished() {
    let long = Duration::from_secs(600);
    assert!(taken(Duration::ZERO) > 0, "without a launcher they tell each other");
    assert_eq!(taken(long), 0);
    assert!(taken_by_a_death(Duration::ZERO) > 0, "without a launcher they tell each other");
    assert_eq!(taken_by_a_death(long), 0);

    let mut ranks = job(long);
    let mut waiting = ranks.pop().unwrap();
    // Rank 0 has left, but its process still exists. When the waiting rank asks, rank 0 answers
    // that it has left.
    ranks[0].1.leave(Leave::Finished);
    assert_eq!(loss(&mut waiting.1, 0), finished(0));
    // Rank 1 has ended, which the launcher reports. Rank 1 waits for no rank.
    ranks[1].1.leave(Leave::Finished);
    drop(ranks.remove(1));
    assert_eq!(waiting.1.poll(1, Port::FENCE).map(|_| ()), Ok(()), "nothing is known of it");
    waiting.0.mark_finished(1);
    assert_eq!(loss(&mut waiting.1, 1), finished(1));
    assert!(waiting.1.lost(2).is_none());
    // Ranks 3 and 4 fail later. The errors name these ranks, and not a rank that has finished.
    let (_, mut third) = ranks.remove(2);
    assert_eq!(third.rank(), 3);
    third.leave(Leave::Failed("no luck".into()));
    assert_eq!(loss(&mut waiting.1, 3), Lost { rank: 3, how: Loss::Left(Leave::Failed("no luck".into())) });
    waiting.0.mark_failed(4, "rank 4 of the job was killed by signal 9 (SIGKILL)");
    let Lost { rank, how } = loss(&mut waiting.1, 4);
    assert!(rank == 4 && matches!(how, Loss::Died(_)), "{rank}: {how:?}");
}
