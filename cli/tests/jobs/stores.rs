//! Snapshots of jobs on two hosts. Each host has a folder of its own.

use crate::launched::{run, start};
use crate::rank::say;
use fencepost::prelude::*;
use fencepost::snapshots::{Items, Snapshots};
use std::path::Path;

const CELLS: [usize; 2] = [300, 200];

/// Two hosts that this machine pretends to have, with two ranks each.
const HOSTS: [&str; 4] = ["--pretend-hosts", "2", "-n", "4"];

/// The program of a rank. It continues from the last snapshot, and takes a snapshot of every third
/// step. Ranks 0 and 1 use one folder, and ranks 2 and 3 another one.
pub fn rank(folder: &str, steps: usize) -> Result<()> {
    fencepost::run(|world| {
        let block = Block::new(world, CELLS)?.halo(1)?;
        let mut u = vec![0_u64; block.len()];
        let folder = Path::new(folder).join(format!("host-{}", world.rank() / 2));
        let mut snapshots = Snapshots::on_hosts(world, folder, 2)?.every(3).must_succeed();
        let restored = snapshots.restore(Items::new().block("u", &block, &mut u))?;
        for step in restored.map_or(1, |step| step + 1)..=steps as u64 {
            block.fill(&mut u, |[i, j]| (i * CELLS[1] + j) as u64 * step);
            snapshots.offer(step, || Items::new().block("u", &block, &mut u))?;
            // Without this wait, the next offer may come before the snapshot is written, and would
            // be skipped.
            snapshots.finish()?;
        }
        let rows = block.rows().flat_map(|row| row.of(&u).to_vec());
        let own = rows.fold(0, u64::wrapping_add);
        let sum = world.allreduce_one(own, Op::Sum)?;
        if world.rank() == 0 {
            let step = restored.map_or("the beginning".to_owned(), |step| format!("step {step}"));
            say(&format!("from {step}, sum {sum}"));
        }
        Ok(())
    })
}

/// Returns the sum of all cells after a step.
fn sum(step: u64) -> u64 {
    let cells = (CELLS[0] * CELLS[1]) as u64;
    cells * (cells - 1) / 2 * step
}

/// Before each job but the first, the folder of one host is deleted, alternately of host 1 and of
/// host 0. The last job runs on one host, and continues from the files in that host's folder.
pub fn lost() {
    let root = tempfile::tempdir().expect("a folder");
    let path = root.path().to_str().expect("text");
    let job = |options: &[&str], steps: u64, from: &str| {
        let ended = run(options, &["saves", path, &steps.to_string()]).end();
        assert_eq!(ended.expect(0).out, format!("from {from}, sum {}\n", sum(steps)), "{ended:#?}");
        ended
    };
    let lose = |host: &str| std::fs::remove_dir_all(root.path().join(host)).expect("it was there");
    job(&HOSTS, 7, "the beginning");
    lose("host-1");
    job(&HOSTS, 10, "step 6").says("the files of 4 ranks have lost copies");
    verify(&root.path().join("host-1"));
    lose("host-0");
    job(&HOSTS, 13, "step 9");
    lose("host-1");
    job(&["-n", "2"], 16, "step 12");
}

/// Checks that the command can verify the folder of one host, whichever files of ranks it has.
fn verify(folder: &Path) {
    let verified = || {
        let words = ["snapshots", "--verify", folder.to_str().expect("text")];
        start(env!("CARGO_BIN_EXE_fencepost"), &words, &[]).end()
    };
    let out = verified().expect(0).out.clone();
    assert!(
        out.lines()
            .any(|line| line.trim_start().starts_with("9  ") && line.ends_with("intact, 4 ranks here")),
        "{out}"
    );
    let path = folder.join("step-9/rank-1.parts");
    let mut bytes = std::fs::read(&path).expect("a file");
    bytes[1000] ^= 1;
    std::fs::write(&path, &bytes).expect("written");
    bytes[1000] ^= 1;
    verified().expect(1).says("step-9/rank-1.parts: ");
    std::fs::remove_file(&path).expect("it was there");
    assert!(verified().expect(0).out.contains("intact, 3 ranks here"));
    std::fs::write(&path, &bytes).expect("written");
}
