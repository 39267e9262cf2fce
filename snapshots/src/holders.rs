//! Restores items from the files of ranks, which may be in different folders.
//!
//! Each file gets a *holder*: a rank that sees the file. A holder compares the whole file with the
//! checksums of the manifest. If the file differs, a rank that sees a copy becomes the holder. Each
//! rank then requests boxes of cells from the holders, which send the bytes. A rank needs memory
//! only for the bytes that it receives and sends.

use crate::agreement::print;
use crate::cells::file_runs;
use crate::compare::wrong_in_file;
use crate::items::{Items, Shape};
use crate::manifest::{InFile, Manifest, file_of_rank};
use crate::stores::Stores;
use fencepost_planner::Result;
use fencepost_planner::element::Op;
use fencepost_runtime::World;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The number of words of a request: the item, the rank that saved it, and up to three words each
/// for the first cell and the extent.
const WORDS: usize = 8;

/// A box of cells that this rank needs from the file of a rank.
struct Need {
    /// The number of the item in this rank's list. `saved` is the number of the item in the
    /// manifest.
    item: usize,
    saved: usize,
    /// The number of the stored box that contains this box.
    number: usize,
    /// The rank that has saved this box.
    rank: usize,
    origin: Vec<usize>,
    extent: Vec<usize>,
}

impl Need {
    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        (words[0], words[1]) = (self.saved as u64, self.rank as u64);
        for (d, (&origin, &extent)) in self.origin.iter().zip(&self.extent).enumerate() {
            (words[2 + d], words[5 + d]) = (origin as u64, extent as u64);
        }
        words
    }
}

/// Restores the items of this rank that are stored in files of ranks. All ranks call this.
///
/// The inner result is an error on all ranks if a rank cannot read data that it serves. At least
/// one rank gets the reason; the errors of the other ranks may be empty.
pub(crate) fn load(
    world: &World,
    stores: &Stores,
    folder: &Path,
    manifest: &Manifest,
    items: &mut Items<'_>,
) -> Result<Result<(), String>> {
    if !manifest.has_files() {
        return Ok(Ok(()));
    }
    let holders = match holders(world, stores, folder, manifest)? {
        Ok(holders) => holders,
        Err(why) => return Ok(Err(why)),
    };
    let (me, ranks) = (world.rank(), world.size());
    let needs = needs(manifest, items, me);
    let mut requests = vec![Vec::new(); ranks];
    for need in &needs {
        requests[holders[need.rank]].extend(need.words());
    }
    // A rank sends no request to itself.
    let own = std::mem::take(&mut requests[me]);
    let mut asked = world.all_to_all(&requests)?;
    asked[me] = own;
    let served: Result<Vec<_>, _> = asked.iter().map(|words| serve(folder, manifest, words)).collect();
    if world.allreduce_one(u64::from(served.is_err()), Op::Max)? != 0 {
        return Ok(Err(served.err().unwrap_or_default()));
    }
    let mut served = served.unwrap_or_default();
    let own = std::mem::take(&mut served[me]);
    let mut got = world.all_to_all(&served)?;
    got[me] = own;
    drop(served);
    let mut done = vec![0; ranks];
    for need in &needs {
        let holder = holders[need.rank];
        let len = need.extent.iter().product::<usize>() * manifest.items[need.saved].size;
        let bytes = &got[holder][done[holder]..][..len];
        let put = items.all_mut()[need.item].put(need.number, (&need.origin, &need.extent), bytes);
        if let Err(why) = put {
            return Ok(Err(why));
        }
        done[holder] += len;
    }
    Ok(Ok(()))
}

/// Returns the boxes that this rank needs from the files of ranks.
fn needs(manifest: &Manifest, items: &Items<'_>, me: usize) -> Vec<Need> {
    let mut needs = Vec::new();
    for (item, listed) in items.all().iter().enumerate() {
        let of_item = manifest.items.iter().enumerate().find(|(_, saved)| saved.name == listed.name);
        let Some((saved, of_item)) = of_item else { continue };
        let mut need = |number, rank, origin, extent| {
            needs.push(Need { item, saved, number, rank, origin, extent });
        };
        if let Shape::Block { .. } = listed.shape {
            for (number, (first, extent)) in listed.boxes().into_iter().enumerate() {
                for rank in 0..manifest.ranks {
                    let Some(file) = of_item.in_file(rank) else { continue };
                    if let Some((first, extent)) = common((&first, &extent), (file.origin, file.extent)) {
                        need(number, rank, first, extent);
                    }
                }
            }
        } else if let Some(file) = of_item.in_file(me) {
            need(0, me, file.origin.to_vec(), file.extent.to_vec());
        }
    }
    needs
}

/// Returns the cells that two boxes have in common, if there are any.
fn common(one: (&[usize], &[usize]), other: (&[usize], &[usize])) -> Option<(Vec<usize>, Vec<usize>)> {
    let along = |d: usize| {
        let first = one.0[d].max(other.0[d]);
        let end = (one.0[d] + one.1[d]).min(other.0[d] + other.1[d]);
        (first < end).then(|| (first, end - first))
    };
    (0..one.0.len()).map(along).collect()
}

/// Returns the bytes that a rank requests with `words`.
fn serve(folder: &Path, manifest: &Manifest, words: &[u64]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for request in words.chunks_exact(WORDS) {
        let (saved, rank) = (&manifest.items[request[0] as usize], request[1] as usize);
        let Some(InFile { origin, extent: whole, at, .. }) = saved.in_file(rank) else { continue };
        let extent: Vec<usize> = request[5..].iter().take(whole.len()).map(|&cells| cells as usize).collect();
        let inside: Vec<usize> =
            origin.iter().zip(&request[2..]).map(|(o, &cell)| cell as usize - o).collect();
        let path = folder.join(file_of_rank(rank));
        let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let len = extent.iter().product::<usize>() * saved.size;
        bytes
            .try_reserve(len)
            .map_err(|_| named(&format_args!("there is no memory for {len} bytes of it")))?;
        let file = File::open(&path).map_err(|error| named(&error))?;
        for (first, cells) in file_runs(whole, &inside, &extent) {
            let begin = bytes.len();
            bytes.resize(begin + cells * saved.size, 0);
            file.read_exact_at(&mut bytes[begin..], at + first * saved.size as u64)
                .map_err(|error| named(&error))?;
        }
    }
    Ok(bytes)
}

/// Returns, for each rank's file, the rank that serves the file. All of these files are intact. All
/// ranks call this.
///
/// The inner result is an error on all ranks if no intact copy of a file is found. At least one
/// rank gets the reason; the errors of the other ranks may be empty.
fn holders(
    world: &World,
    stores: &Stores,
    folder: &Path,
    manifest: &Manifest,
) -> Result<Result<Vec<usize>, String>> {
    let (me, step) = (world.rank(), manifest.step);
    let mut here = Vec::new();
    if stores.leader(me) == me {
        here = (0..manifest.ranks).filter(|&rank| folder.join(file_of_rank(rank)).exists()).collect();
    }
    // For each file, the stores that have it, in the order in which they are tried.
    let mut stored: Vec<Vec<usize>> = vec![Vec::new(); manifest.ranks];
    for (leader, files) in world.allgather(&here)?.into_iter().enumerate() {
        files.into_iter().for_each(|rank| stored[rank].push(stores.of(leader)));
    }
    let wanted = manifest.copies.unwrap_or(1);
    let fewer = stored.iter().filter(|stores| (1..wanted).contains(&stores.len())).count();
    if me == 0 && fewer > 0 {
        print(&format!(
            "the files of {fewer} ranks have lost copies in the snapshot of step {step}; the remaining copies are used"
        ));
    }
    for (rank, stored) in stored.iter_mut().enumerate() {
        // If the rank that wrote the file is a rank of this job, its store is tried first.
        // Otherwise the store that is tried first differs from file to file, to spread the work.
        let is_own = |&store: &usize| stores.member(store, rank) == rank;
        let first = stored.iter().position(is_own).unwrap_or(rank % stored.len().max(1));
        stored.rotate_left(first);
    }
    let mut holders = vec![0; manifest.ranks];
    let mut tried: Vec<usize> = (0..manifest.ranks).collect();
    let mut whys = Vec::new();
    for attempt in 0.. {
        if let Some(&rank) = tried.iter().find(|&&rank| stored[rank].len() <= attempt) {
            let missing = || format!("{} is in no folder", file_of_rank(rank));
            let why = if stored[rank].is_empty() { missing() } else { whys.pop().unwrap_or_default() };
            return Ok(Err(why));
        }
        for &rank in &tried {
            holders[rank] = stores.member(stored[rank][attempt], rank);
        }
        let mut failed = Vec::new();
        for &rank in tried.iter().filter(|&&rank| holders[rank] == me) {
            let wrong = wrong_in_file(&folder.join(file_of_rank(rank)), manifest, rank);
            let Some(why) = wrong.into_iter().next() else { continue };
            if attempt + 1 < stored[rank].len() {
                print(&format!("a file of a snapshot is damaged, and a copy of it is used: {why}"));
            } else {
                whys.push(why);
            }
            failed.push(rank);
        }
        tried = world.allgather(&failed)?.concat();
        if tried.is_empty() {
            break;
        }
    }
    Ok(Ok(holders))
}
