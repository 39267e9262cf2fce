//! Snapshots in folders of hosts. The hosts are two or three groups of threads, each with its own
//! folder.

use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::fs;
use std::path::{Path, PathBuf};

const CELLS: [usize; 2] = [14, 10];

/// A state with an item of each kind.
struct State {
    block: Block<2>,
    cells: Vec<f32>,
    seeds: [u64; 2],
    queue: Vec<u16>,
    time: f64,
}

impl State {
    fn new(world: &World, halo: usize) -> Result<Self> {
        let block = Block::new(world, CELLS)?.halo(halo)?.periodic([false, true]);
        let cells = vec![-1.0; block.len()];
        Ok(Self { block, cells, seeds: [0; 2], queue: vec![9; 9], time: 0.0 })
    }

    /// Sets the state to the state after `step`.
    fn step(&mut self, step: u64) {
        let rank = self.block.rank() as u64;
        self.block.fill(&mut self.cells, |[i, j]| cell(step, i, j));
        self.seeds = [step + rank, 1 << 40];
        self.queue = (0..3 * rank + step).map(|item| item as u16 + 7).collect();
        self.time = step as f64;
    }

    /// Lists the items that any number of ranks can restore. If `with_own`, also lists the items
    /// that belong to single ranks.
    fn items(&mut self, with_own: bool) -> Items<'_> {
        let items = Items::new().block("cells", &self.block, &mut self.cells).value("time", &mut self.time);
        if with_own { items.part("seeds", &mut self.seeds).part("queue", &mut self.queue) } else { items }
    }

    /// Checks that the state, including the halo, is the state after `step`.
    fn check(&self, step: u64, with_own: bool) {
        let rank = self.block.rank() as u64;
        assert_eq!(self.time, step as f64);
        if with_own {
            assert_eq!(self.seeds, [step + rank, 1 << 40]);
            assert!(self.queue.iter().copied().eq((0..3 * rank + step).map(|item| item as u16 + 7)));
        }
        let ([rows, columns], [stride, _]) = (self.block.shape(), self.block.strides());
        let width = (rows - self.block.extent()[0]) / 2;
        for i in 0..rows {
            for j in 0..columns {
                let row = (self.block.origin()[0] + i).checked_sub(width).filter(|&row| row < CELLS[0]);
                let column = (self.block.origin()[1] + j + CELLS[1] - width) % CELLS[1];
                let expected = row.map_or(-1.0, |row| cell(step, row, column));
                assert_eq!(self.cells[i * stride + j], expected, "rank {rank}: {i}, {j}");
            }
        }
    }
}

fn cell(step: u64, i: usize, j: usize) -> f32 {
    (100 * i + j) as f32 + step as f32 / 8.0
}

/// The folders of hosts. Each host has the same number of ranks.
struct Hosts {
    _root: tempfile::TempDir,
    folders: Vec<PathBuf>,
}

impl Hosts {
    fn new(count: usize) -> Result<Self> {
        let root = tempfile::tempdir()?;
        let folders = (0..count).map(|host| root.path().join(format!("host-{host}"))).collect();
        Ok(Self { _root: root, folders })
    }

    /// Returns the folder of this rank's host.
    fn of(&self, world: &World) -> &Path {
        &self.folders[world.rank() * self.folders.len() / world.size()]
    }

    fn open<'w>(&self, world: &'w World) -> Result<Snapshots<'w>> {
        Ok(Snapshots::on_hosts(world, self.of(world), 2)?.every(1).must_succeed())
    }

    /// Takes a snapshot of each of these steps.
    fn save(&self, ranks: usize, with_own: bool, steps: &[u64]) -> Result<()> {
        fencepost::ranks(ranks).run(|world| {
            let mut state = State::new(world, 1)?;
            let mut snapshots = self.open(world)?;
            for &step in steps {
                state.step(step);
                snapshots.offer(step, || state.items(with_own))?;
                snapshots.finish()?;
            }
            Ok(())
        })
    }

    /// Restores the latest snapshot, checks every bit of it, and returns its step.
    fn restore(&self, ranks: usize, halo: usize, with_own: bool) -> Result<Option<u64>> {
        let steps = fencepost::ranks(ranks).collect(|world| {
            let mut state = State::new(world, halo)?;
            let step = self.open(world)?.restore(state.items(with_own))?;
            if let Some(step) = step {
                state.check(step, with_own);
            }
            Ok(step)
        })?;
        assert!(steps.iter().all(|step| *step == steps[0]), "{steps:?}");
        Ok(steps[0])
    }

    /// Returns the names of a snapshot's files on a host.
    fn names(&self, host: usize, step: u64) -> Result<Vec<String>> {
        let entries = fs::read_dir(self.folders[host].join(format!("step-{step}")))?;
        let mut names: Vec<String> = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_>>()?;
        names.sort();
        Ok(names)
    }

    fn file(&self, host: usize, step: u64, name: &str) -> PathBuf {
        self.folders[host].join(format!("step-{step}")).join(name)
    }
}

#[test]
fn any_number_of_ranks_and_hosts_restores_blocks_with_any_halo() -> Result<()> {
    for count in [1, 2, 3] {
        let hosts = Hosts::new(count)?;
        assert_eq!(hosts.restore(3, 1, false)?, None);
        hosts.save(5, false, &[3, 7, 8])?;
        for ranks in [3, 4, 5, 6, 9] {
            for halo in 0..=2 {
                assert_eq!(hosts.restore(ranks, halo, false)?, Some(8), "{ranks} ranks, halo of {halo}");
            }
        }
        // Now all ranks are on one host, and have only the folder of this host.
        let fewer = Hosts { _root: tempfile::tempdir()?, folders: hosts.folders[..1].to_vec() };
        if count < 3 {
            assert_eq!(fewer.restore(2, 2, false)?, Some(8), "one host has copies of all files");
        }
    }
    Ok(())
}

#[test]
fn each_file_is_in_the_folders_of_two_hosts() -> Result<()> {
    let hosts = Hosts::new(3)?;
    hosts.save(6, true, &[1, 2])?;
    let expected = [[0, 1, 4, 5], [0, 1, 2, 3], [2, 3, 4, 5]];
    for (host, ranks) in expected.into_iter().enumerate() {
        let files = ranks.map(|rank| format!("rank-{rank}.parts"));
        let names: Vec<String> = ["manifest.json".to_owned()].into_iter().chain(files).collect();
        assert_eq!(hosts.names(host, 2)?, names);
        let manifest = |host| fs::read(hosts.file(host, 2, "manifest.json"));
        assert_eq!(manifest(host)?, manifest(0)?, "all hosts have the same manifest");
    }
    Ok(())
}

#[test]
fn a_host_without_its_folder_loses_nothing_and_gets_the_next_snapshots() -> Result<()> {
    for lost in 0..3 {
        let hosts = Hosts::new(3)?;
        hosts.save(6, true, &[1, 2])?;
        fs::remove_dir_all(&hosts.folders[lost])?;
        assert_eq!(hosts.restore(6, 2, true)?, Some(2));
        // The new folder gets a snapshot, and then another host loses its folder.
        hosts.save(6, true, &[3])?;
        assert_eq!(hosts.names(lost, 3)?.len(), 5);
        fs::remove_dir_all(&hosts.folders[(lost + 1) % 3])?;
        assert_eq!(hosts.restore(6, 1, true)?, Some(3));
    }
    Ok(())
}

#[test]
fn ranks_on_other_hosts_than_before_find_their_files() -> Result<()> {
    let mut hosts = Hosts::new(3)?;
    hosts.save(6, true, &[1])?;
    hosts.folders.rotate_left(1);
    assert_eq!(hosts.restore(6, 1, true)?, Some(1));
    hosts.folders.swap(0, 1);
    fs::remove_dir_all(&hosts.folders[2])?;
    assert_eq!(hosts.restore(6, 1, true)?, Some(1));
    Ok(())
}

#[test]
fn files_that_are_missing_on_both_hosts_lead_to_the_snapshot_before() -> Result<()> {
    let hosts = Hosts::new(2)?;
    hosts.save(4, true, &[1, 2])?;
    fs::remove_file(hosts.file(0, 2, "rank-1.parts"))?;
    fs::remove_file(hosts.file(1, 2, "rank-2.parts"))?;
    fs::remove_file(hosts.file(1, 2, "manifest.json"))?;
    assert_eq!(hosts.restore(4, 1, true)?, Some(2), "each has a copy");
    fs::remove_file(hosts.file(1, 2, "rank-1.parts"))?;
    assert_eq!(hosts.restore(4, 1, true)?, Some(1));
    fs::remove_dir_all(hosts.file(0, 1, ""))?;
    fs::remove_dir_all(hosts.file(1, 1, ""))?;
    let error = hosts.restore(4, 1, true).expect_err("nothing is intact");
    assert_eq!(error.class(), ErrorClass::File);
    assert!(error.message().contains("no snapshot in it is intact"), "{error}");
    Ok(())
}

#[test]
fn a_flipped_byte_anywhere_on_one_host_changes_nothing_and_on_both_leads_to_the_snapshot_before() -> Result<()>
{
    let hosts = Hosts::new(2)?;
    hosts.save(2, true, &[1, 2])?;
    let mut bits = (0..8).cycle().map(|bit| 1_u8 << bit);
    for name in hosts.names(0, 2)? {
        let paths = [0, 1].map(|host| hosts.file(host, 2, &name));
        let bytes = fs::read(&paths[0])?;
        assert_eq!(bytes, fs::read(&paths[1])?);
        // The manifest is long, so the test damages only some of its bytes.
        let step = if name == "manifest.json" { 37 } else { 1 };
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.clone();
            damaged[at] ^= bits.next().unwrap_or(1);
            let host = at / step % 2;
            fs::write(&paths[host], &damaged)?;
            assert_eq!(hosts.restore(2, 1, true)?, Some(2), "{name} of host {host}: byte {at}");
            fs::write(&paths[1 - host], damaged)?;
            assert_eq!(hosts.restore(2, 1, true)?, Some(1), "{name} of both: byte {at}");
            paths.iter().try_for_each(|path| fs::write(path, &bytes))?;
        }
        for len in [0, bytes.len() - 1] {
            fs::write(&paths[1], &bytes[..len])?;
            assert_eq!(hosts.restore(2, 1, true)?, Some(2), "{name}: {len} bytes");
            fs::write(&paths[1], &bytes)?;
        }
    }
    Ok(())
}

#[test]
fn a_host_that_has_only_an_older_snapshot_gets_the_newer_one_from_others() -> Result<()> {
    let hosts = Hosts::new(2)?;
    hosts.save(4, true, &[1])?;
    let older = hosts.folders[1].with_file_name("older");
    fs::rename(hosts.file(1, 1, ""), &older)?;
    hosts.save(4, true, &[5])?;
    fs::remove_dir_all(hosts.file(1, 5, ""))?;
    fs::rename(&older, hosts.file(1, 1, ""))?;
    assert_eq!(hosts.restore(4, 1, true)?, Some(5));
    // Without the newer snapshot, a file of the older snapshot on one host is enough.
    fs::remove_dir_all(hosts.file(0, 5, ""))?;
    fs::remove_dir_all(hosts.file(0, 1, ""))?;
    assert_eq!(hosts.restore(4, 1, true)?, Some(1));
    Ok(())
}

/// Two jobs have taken a snapshot of the same step, and one host's folder was missing during the
/// second job.
#[test]
fn files_of_different_snapshots_of_one_step_are_never_mixed() -> Result<()> {
    let hosts = Hosts::new(2)?;
    hosts.save(4, false, &[2])?;
    let away = hosts.folders[1].with_file_name("away");
    fs::rename(&hosts.folders[1], &away)?;
    fs::remove_dir_all(&hosts.folders[0])?;
    hosts.save(2, false, &[2])?;
    fs::remove_dir_all(&hosts.folders[1])?;
    fs::rename(&away, &hosts.folders[1])?;
    fs::remove_file(hosts.file(0, 2, "rank-1.parts"))?;
    assert_eq!(hosts.restore(3, 1, false)?, Some(2), "host 1 has all of the first one");
    Ok(())
}

/// Offers this step, and waits until the snapshot is written.
fn offer(snapshots: &mut Snapshots<'_>, step: u64) -> Result<()> {
    let mut time = step;
    snapshots.offer(step, || Items::new().part("time", std::slice::from_mut(&mut time)))?;
    snapshots.finish()
}

#[test]
fn the_program_goes_on_when_one_host_cannot_write_and_no_host_has_that_snapshot() -> Result<()> {
    let hosts = Hosts::new(2)?;
    // A file in place of the folder `writing-2` stops a rank that writes. A folder in place of the
    // manifest stops the first rank of its host.
    for (step, name) in [(2, "writing-2"), (4, "writing-4/manifest.json")] {
        fencepost::ranks(4).run(|world| {
            let mut snapshots = Snapshots::on_hosts(world, hosts.of(world), 2)?.every(1).keep(10);
            offer(&mut snapshots, step - 1)?;
            if world.rank() == 3 {
                let path = hosts.folders[1].join(name);
                if name.contains('/') { fs::create_dir_all(path)? } else { fs::write(path, "in the way")? }
            }
            world.barrier()?;
            offer(&mut snapshots, step)?;
            world.barrier()?;
            let exists = |step: u64| hosts.of(world).join(format!("step-{step}")).exists();
            assert!(exists(step - 1) && !exists(step), "step {step}");
            if world.rank() == 3 && !name.contains('/') {
                fs::remove_file(hosts.folders[1].join(name))?;
            }
            Ok(())
        })?;
    }
    fencepost::ranks(4).run(|world| {
        let mut time = [0_u64];
        let restored = hosts.open(world)?.restore(Items::new().part("time", &mut time))?;
        assert_eq!((restored, time), (Some(3), [3]));
        Ok(())
    })
}

#[test]
fn with_must_succeed_all_ranks_get_an_error_that_names_the_file_of_the_host() -> Result<()> {
    let hosts = Hosts::new(2)?;
    let messages = fencepost::ranks(4).collect(|world| {
        let mut snapshots = hosts.open(world)?;
        if world.rank() == 2 {
            // This folder has the name that the copy of rank 1's file should get.
            fs::create_dir_all(hosts.folders[1].join("writing-1/rank-1.parts"))?;
        }
        world.barrier()?;
        let error = offer(&mut snapshots, 1).expect_err("a folder is in the way");
        offer(&mut snapshots, 2)?;
        Ok(error.message().to_owned())
    })?;
    for message in messages {
        let words =
            ["the snapshot of step 1 could not be written", "rank 3: ", "host-1/writing-1/rank-1.parts"];
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    Ok(())
}

#[test]
fn a_folder_of_one_host_that_another_job_holds_is_an_error_on_all_ranks() -> Result<()> {
    let hosts = Hosts::new(2)?;
    fencepost::ranks(1).run(|world| {
        let _held = Snapshots::on_hosts(world, &hosts.folders[1], 2)?;
        let lock = fs::File::open(hosts.folders[1].join("lock"))?;
        // Ranks of another job of this process.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                fencepost::ranks(4).collect(|world| {
                    let error = hosts.open(world).map(drop).expect_err("it is in use");
                    Ok(error.message().to_owned())
                })
            });
            for message in other.join().expect("no panic")? {
                assert!(message.contains("rank 2: ") && message.contains("holds this folder"), "{message}");
            }
            drop(lock);
            Ok(())
        })
    })
}

#[test]
fn snapshots_of_a_shared_folder_are_not_restored_by_several_hosts() -> Result<()> {
    let hosts = Hosts::new(2)?;
    fencepost::ranks(2).run(|world| {
        let mut state = State::new(world, 1)?;
        state.step(1);
        let mut snapshots = Snapshots::new(world, &hosts.folders[0])?.every(1).must_succeed();
        snapshots.offer(1, || state.items(false))?;
        snapshots.finish()
    })?;
    let error = hosts.restore(2, 1, false).expect_err("it was shared");
    assert_eq!(error.class(), ErrorClass::File);
    assert!(error.message().contains("open it by `Snapshots::new`"), "{error}");
    // If there is one host only, its folder has everything.
    let one = Hosts { _root: tempfile::tempdir()?, folders: hosts.folders[..1].to_vec() };
    assert_eq!(one.restore(3, 2, false)?, Some(1));
    // A folder of a host that has all files is restored like a shared folder.
    hosts.save(2, false, &[2])?;
    fencepost::ranks(3).run(|world| {
        let mut state = State::new(world, 1)?;
        let step = Snapshots::new(world, &hosts.folders[0])?.restore(state.items(false))?;
        assert_eq!(step, Some(2));
        state.check(2, false);
        Ok(())
    })
}
