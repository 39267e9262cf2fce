//! [`Stores`]: the folders of a job. Records which ranks see the same folder, and which ranks store
//! copies of other ranks' files.
//!
//! Either all ranks share one folder, or the ranks of each host have a folder of their own. Ranks
//! are in one *store* if they see the same folder. The lowest rank of a store leads the store: it
//! holds the folder, publishes snapshots in it and removes old ones.

use crate::agreement::agreed;
use crate::folder::named;
use crate::writer::Copies;
use fencepost_planner::Result;
use fencepost_runtime::World;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The folders of a job.
#[derive(Debug)]
pub(crate) struct Stores {
    /// The store of each rank.
    of_ranks: Vec<usize>,
    /// The ranks of each store, ascending.
    ranks: Vec<Vec<usize>>,
    /// The number of stores that get each rank's file, or `None` if all ranks share one folder.
    copies: Option<usize>,
}

impl Stores {
    /// Returns the stores of a job in which all ranks share one folder.
    pub(crate) fn shared(ranks: usize) -> Self {
        Self { of_ranks: vec![0; ranks], ranks: vec![(0..ranks).collect()], copies: None }
    }

    /// Determines which ranks see the same folder at their path, and creates folders that do not
    /// exist. All ranks call this.
    ///
    /// # Errors
    /// Fails if a folder cannot be created or opened.
    #[track_caller]
    pub(crate) fn of_hosts(world: &World, path: &Path, copies: usize) -> Result<Self> {
        let seen = agreed(world, identity(path).map_err(|error| error.to_string()))?;
        let mut known: Vec<Vec<u8>> = Vec::new();
        let mut ranks: Vec<Vec<usize>> = Vec::new();
        let mut of_ranks = Vec::with_capacity(world.size());
        for (rank, seen) in world.allgather(seen.as_bytes())?.into_iter().enumerate() {
            let store = known.iter().position(|other| *other == seen).unwrap_or_else(|| {
                known.push(seen);
                ranks.push(Vec::new());
                known.len() - 1
            });
            of_ranks.push(store);
            ranks[store].push(rank);
        }
        let copies = Some(copies.clamp(1, ranks.len()));
        Ok(Self { of_ranks, ranks, copies })
    }

    /// Returns the number of stores.
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the number of stores that get each rank's file, or `None` if all ranks share one
    /// folder.
    pub(crate) fn copies(&self) -> Option<usize> {
        self.copies
    }

    /// Returns the store of a rank.
    pub(crate) fn of(&self, rank: usize) -> usize {
        self.of_ranks[rank]
    }

    /// Returns the rank that leads the store of `rank`.
    pub(crate) fn leader(&self, rank: usize) -> usize {
        self.ranks[self.of(rank)][0]
    }

    /// Returns the rank that serves the file of `rank` in a store. `rank` is a rank of the job that
    /// took the snapshot, which may have had more ranks.
    pub(crate) fn member(&self, store: usize, rank: usize) -> usize {
        if self.of_ranks.get(rank) == Some(&store) {
            return rank;
        }
        self.ranks[store][rank % self.ranks[store].len()]
    }

    /// Returns the rank that writes a copy of `rank`'s file. The returned rank is in the store that
    /// comes `distance` stores after the store of `rank`.
    fn target(&self, rank: usize, distance: usize) -> usize {
        let store = self.of(rank);
        let index = self.ranks[store].partition_point(|&other| other < rank);
        let next = &self.ranks[(store + distance) % self.ranks.len()];
        next[index % next.len()]
    }

    /// Sends the bytes of this rank's file to the ranks that store copies. Returns the bytes of the
    /// files that this rank copies. All ranks call this.
    pub(crate) fn exchange(&self, world: &World, bytes: &mut Vec<u8>) -> Result<Copies<Vec<u8>>> {
        let me = world.rank();
        let mut copies = Vec::new();
        for distance in 1..self.copies.unwrap_or(1) {
            let mut lists = vec![Vec::new(); world.size()];
            let target = self.target(me, distance);
            lists[target] = std::mem::take(bytes);
            let received = world.all_to_all(&lists)?;
            *bytes = std::mem::take(&mut lists[target]);
            let arrived = received.into_iter().enumerate();
            copies.extend(arrived.filter(|(origin, _)| self.target(*origin, distance) == me));
        }
        Ok(copies)
    }

    /// Gathers the bytes of all ranks, and returns them on the first rank of each store. All ranks
    /// call this.
    pub(crate) fn gather(&self, world: &World, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        if self.len() == 1 {
            return world.gather(0, mine);
        }
        let all = world.allgather(mine)?;
        Ok((self.leader(world.rank()) == world.rank()).then_some(all))
    }
}

/// Returns a text that is equal on two ranks if and only if they are on one host and see the same
/// folder.
fn identity(path: &Path) -> io::Result<String> {
    fs::create_dir_all(path).map_err(|error| named(path, error))?;
    let metadata =
        File::open(path).and_then(|folder| folder.metadata()).map_err(|error| named(path, error))?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{} {} {host}", metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks 0 to 2 are in the first store, 3 in the second, and 4 and 5 in the third.
    fn stores() -> Stores {
        let ranks = vec![vec![0, 1, 2], vec![3], vec![4, 5]];
        Stores { of_ranks: vec![0, 0, 0, 1, 2, 2], ranks, copies: Some(3) }
    }

    #[test]
    fn copies_of_a_file_are_in_different_stores_and_spread_over_their_ranks() {
        let stores = stores();
        let targets = |distance| (0..6).map(|rank| stores.target(rank, distance)).collect::<Vec<_>>();
        assert_eq!(targets(1), [3, 3, 3, 4, 0, 1]);
        assert_eq!(targets(2), [4, 5, 4, 0, 3, 3]);
    }

    #[test]
    fn a_rank_serves_its_own_file_if_its_store_has_it() {
        let stores = stores();
        assert_eq!([stores.member(0, 1), stores.member(1, 1), stores.member(2, 1)], [1, 3, 5]);
        assert_eq!(stores.member(2, 1000), 4, "of a larger job");
        assert_eq!([stores.leader(2), stores.leader(3), stores.leader(5)], [0, 3, 4]);
    }
}
