//! What does it cost to write a field to a file, and to read it, compared with writing and reading
//! a file of the same length in order?
//!
//! The field has 1 GiB and four ranks. The limits write and read a file of that length, 4 MiB at a
//! time. Either one thread does this, or four threads do a quarter each. All writers wait until the
//! bytes are on the disk. All readers find the file in the page cache.

use fencepost::grid::Block;
use fencepost::prelude::*;
use fencepost::snapshots::Field;
use fencepost_benches::Contest;
use fencepost_benches::contest::short;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const RANKS: usize = 4;
const PIECE: usize = 4 << 20;

/// Divides a file equally among threads. Times `act` on all pieces of a thread's share, and `end`
/// after the last piece.
fn by_threads(
    threads: usize,
    len: usize,
    iterations: u64,
    act: impl Fn(usize, &mut [u8]) -> io::Result<()> + Sync,
    end: impl Fn() -> io::Result<()>,
) -> Duration {
    let mut buffers = vec![vec![1_u8; PIECE]; threads];
    let clock = Instant::now();
    for _ in 0..iterations {
        std::thread::scope(|scope| {
            for (thread, buffer) in buffers.iter_mut().enumerate() {
                let act = &act;
                scope.spawn(move || {
                    let part = len / threads;
                    for at in (thread * part..(thread + 1) * part).step_by(PIECE) {
                        act(at, buffer).expect("the disk has room");
                    }
                });
            }
        });
        end().expect("the disk works");
    }
    clock.elapsed()
}

fn plain_write(path: &Path, threads: usize, len: usize, iterations: u64) -> Duration {
    let mut taken = Duration::ZERO;
    for _ in 0..iterations {
        let clock = Instant::now();
        let file = File::create(path).expect("a folder for temporary files");
        taken += clock.elapsed();
        taken += by_threads(
            threads,
            len,
            1,
            |at, buffer| file.write_all_at(buffer, at as u64),
            || file.sync_all(),
        );
    }
    taken
}

fn plain_read(path: &Path, threads: usize, len: usize, iterations: u64) -> Duration {
    let file = File::open(path).expect("the file is there");
    by_threads(threads, len, iterations, |at, buffer| file.read_exact_at(buffer, at as u64), || Ok(()))
}

/// Times `act` on each rank with the cells of its block. Returns the time of the slowest rank.
fn by_ranks<const D: usize>(
    global: [usize; D],
    iterations: u64,
    act: impl Fn(&World, &Block<D>, &mut [f64]) -> Result<()> + Sync,
) -> Duration {
    let times: Result<Vec<Duration>> = fencepost::ranks(RANKS).collect(|world| {
        let block = Block::new(world, global)?.halo(1)?;
        let mut cells = world.window::<f64>(block.len())?;
        cells.fill(1.0);
        world.barrier()?;
        let clock = Instant::now();
        for _ in 0..iterations {
            act(world, &block, &mut cells)?;
        }
        world.barrier()?;
        Ok(clock.elapsed())
    });
    times.expect("the world works").into_iter().max().unwrap_or_default()
}

fn save<const D: usize>(path: &Path, global: [usize; D], iterations: u64) -> Duration {
    by_ranks(global, iterations, |world, block, cells| Field::save(world, block, cells, path))
}

fn load<const D: usize>(path: &Path, global: [usize; D], iterations: u64) -> Duration {
    by_ranks(global, iterations, |_, block, cells| Field::open(path)?.load(block, cells))
}

/// Writes a NumPy file of zeros of this element type, in Fortran order if `fortran`, else in C
/// order.
fn zeros(path: PathBuf, descr: &str, size: usize, fortran: bool, shape: &str, elements: usize) -> PathBuf {
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let mut header = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    header.extend(format!("{text:<117}\n").bytes());
    let file = OpenOptions::new().write(true).create_new(true).open(&path).expect("it is new");
    file.write_all_at(&header, 0).expect("the disk has room");
    let zeros = vec![0; PIECE];
    for at in (0..elements * size).step_by(PIECE) {
        file.write_all_at(&zeros, (header.len() + at) as u64).expect("the disk has room");
    }
    path
}

fn main() {
    // The field has 1 GiB, or 16 MiB in the short pass.
    let by = if short() { 8 } else { 1 };
    let (plane, space) = ([8192 / by, 16384 / by], [512 / by, 512, 512 / by]);
    let (elements, len) = (plane[0] * plane[1], plane[0] * plane[1] * 8);
    let folder = Rc::new(TempDir::new().expect("a folder for temporary files"));
    let at = |name: &str| folder.path().join(name);
    let shape = format!("{plane:?}").replace('[', "(").replace(']', ")");
    let cubes = format!("{space:?}").replace('[', "(").replace(']', ")");
    let single = zeros(at("single.npy"), "<f4", 4, false, &shape, elements);
    let swapped = zeros(at("swapped.npy"), ">f8", 8, false, &shape, elements);
    let columns = zeros(at("columns.npy"), "<f8", 8, true, &shape, elements);
    let [written, other, third] = ["plain", "plane.npy", "space.npy"].map(at);
    let pillars = zeros(at("pillars.npy"), "<f8", 8, true, &cubes, elements);
    save(&other, plane, 1);
    save(&third, space, 1);
    let plain = |threads: usize| {
        let path = written.clone();
        move |n| plain_write(&path, threads, len, n)
    };
    let (a, b) = (other.clone(), third.clone());
    let write = Contest::new("field: 1 GiB written by 4 ranks", 1)
        .side("pwrite and fsync, one thread", plain(1))
        .side("pwrite and fsync, four threads", plain(4))
        .held("Field::save, a plane", 1.2, move |n| save(&a, plane, n))
        .side("Field::save, a space", move |n| save(&b, space, n));
    let plain = |threads: usize| {
        let path = other.clone();
        move |n| plain_read(&path, threads, len, n)
    };
    let (c, d) = (other.clone(), third.clone());
    let read = Contest::new("field: 1 GiB read by 4 ranks", 1)
        .side("pread, one thread", plain(1))
        .side("pread, four threads", plain(4))
        .held("Field::load, a plane", 1.2, move |n| load(&c, plane, n))
        .side("Field::load, a space", move |n| load(&d, space, n))
        .side("Field::load, f64 from f32", move |n| load(&single, plane, n))
        .side("Field::load, the high byte first", move |n| load(&swapped, plane, n))
        .side("Field::load, a plane by columns", move |n| load(&columns, plane, n))
        .side("Field::load, a space by columns", move |n| load(&pillars, space, n));
    fencepost_benches::main(vec![write, read]);
}
