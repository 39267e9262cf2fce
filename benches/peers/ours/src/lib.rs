//! The common parts of the programs. The clock, the loop and the record follow `../common.h` and
//! `../stats.h` step by step.

pub mod pattern;
pub mod stencil;

use fencepost::prelude::*;
use std::sync::OnceLock;
use std::time::Instant;

/// The seconds that an operation takes: the median, the least and the most of the repetitions.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    pub med: f64,
    pub min: f64,
    pub max: f64,
    pub reps: usize,
    pub iters: u64,
    /// The time that a cache line takes from rank 0 to rank 1 and back, just before and just after
    /// the repetitions.
    pub line: [f64; 2],
}

impl Stat {
    fn of(v: &mut [f64], iters: u64, line: [f64; 2]) -> Self {
        v.sort_by(f64::total_cmp);
        let n = v.len();
        let med = if n % 2 == 1 { v[n / 2] } else { 0.5 * (v[n / 2 - 1] + v[n / 2]) };
        Self { med, min: v[0], max: v[n - 1], reps: n, iters, line }
    }

    /// Divides the times by `n`, the number of operations in a repetition.
    #[must_use]
    pub fn per(mut self, n: usize) -> Self {
        let n = n as f64;
        (self.med, self.min, self.max) = (self.med / n, self.min / n, self.max / n);
        self
    }
}

pub fn env_f64(name: &str, otherwise: f64) -> f64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Returns the seconds since the first call.
fn now() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

fn max_of(world: &World, t: f64) -> Result<f64> {
    let mut all = [t];
    world.allreduce(&mut all, Op::Max)?;
    Ok(all[0])
}

fn from_first(world: &World, value: u64) -> Result<u64> {
    let mut all = [value];
    world.broadcast(0, &mut all)?;
    Ok(all[0])
}

/// Warms up and calibrates, and then times repetitions. The time of a repetition is that of its
/// slowest rank.
pub fn bench(world: &World, mut f: impl FnMut() -> Result<()>) -> Result<Stat> {
    let rep = env_f64("BASE_REP_MS", 8.0) * 1e-3;
    let budget = env_f64("BASE_BUDGET_MS", 150.0) * 1e-3;
    let mut iters = 1_u64;
    if world.size() == 2 {
        line_pulse(world.rank(), true);
    }
    f()?;
    let began = now();
    let slowest = loop {
        let mut two = [0.0; 2];
        for t in &mut two {
            world.barrier()?;
            let t0 = now();
            for _ in 0..iters {
                f()?;
            }
            *t = now() - t0;
        }
        let slowest = max_of(world, two[0].min(two[1]))?;
        let stop = slowest >= rep * 0.5 || iters >= 1 << 22 || now() - began > budget * 2.0;
        if from_first(world, u64::from(stop))? != 0 {
            break slowest;
        }
        let grow = if slowest > 0.0 { rep / slowest } else { 16.0 };
        iters = from_first(world, (iters as f64 * grow.clamp(2.0, 16.0)) as u64)?;
    };
    let reps = ((budget / slowest.max(1e-9)) as u64).clamp(5, 25);
    let reps = from_first(world, reps)?;
    let mut v = Vec::new();
    let before = if world.size() == 2 { line_pulse(world.rank(), false) } else { 0.0 };
    for _ in 0..reps {
        world.barrier()?;
        let t0 = now();
        for _ in 0..iters {
            f()?;
        }
        v.push(max_of(world, now() - t0)? / iters as f64);
    }
    let after = if world.size() == 2 { line_pulse(world.rank(), false) } else { 0.0 };
    Ok(Stat::of(&mut v, iters, [before, after]))
}

/// Prints one figure in one line, on rank 0. `more` has further `"key":value` pairs.
pub fn emit(world: &World, bench: &str, case: &str, variant: &str, s: Stat, unit: &str, more: &str) {
    if world.rank() != 0 {
        return;
    }
    let k = match unit {
        "ns" => 1e9,
        "us" => 1e6,
        _ => 1.0,
    };
    let var = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.into());
    let transport = var("BASE_TRANSPORT", &var("FENCEPOST_TRANSPORT", "local"));
    let comma = if more.is_empty() { "" } else { "," };
    let line = match s.line {
        [0.0, _] => String::new(),
        [before, after] => format!(",\"line\":{before:.1},\"line2\":{after:.1}"),
    };
    println!(
        "{{\"peer\":\"{}\",\"transport\":\"{transport}\",\"P\":{},\"bench\":\"{bench}\",\"case\":\"{case}\",\"variant\":\"{variant}\",\
         \"unit\":\"{unit}\",\"median\":{:.6},\"min\":{:.6},\"max\":{:.6},\"reps\":{},\"iters\":{}{line}{comma}{more}}}",
        var("BASE_PEER", "fencepost"),
        world.size(),
        s.med * k,
        s.min * k,
        s.max * k,
        s.reps,
        s.iters
    );
}

/// Writes a new value into one word of each cache line of a buffer that is sent. So the lines
/// change their owner as in a real program.
pub fn renew(part: &mut [u64], turn: u64) {
    part.iter_mut().step_by(8).for_each(|word| *word = turn);
}

/// Reads a word of each cache line that arrived.
pub fn look(part: &[u64]) {
    std::hint::black_box(part.iter().step_by(8).fold(0, |sum: u64, word| sum.wrapping_add(*word)));
}

/// Returns an error unless `ok` is true on all ranks.
pub fn require(world: &World, ok: bool, what: &str) -> Result<()> {
    let mut all = [u32::from(ok)];
    world.allreduce(&mut all, Op::Min)?;
    if all[0] == 0 {
        return Err(Error::new(ErrorClass::Other, format!("CHECK FAILED: {what}")));
    }
    Ok(())
}

/// Xorshift64*, as in `../stats.h`.
pub fn rng_next(s: &mut u64) -> u64 {
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    s.wrapping_mul(2_685_821_657_736_338_717)
}

/// Returns how long one step of a chain of multiply-adds takes, in nanoseconds. This time shows the
/// present speed of the core.
fn alu_ns() -> f64 {
    let mut best = 1e9_f64;
    for _ in 0..5 {
        let mut x = 1_u64;
        let t0 = now();
        for _ in 0..200_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // SAFETY: the block has no instruction.
            unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack, preserves_flags)) };
        }
        let t = (now() - t0) / 200_000.0 * 1e9;
        std::hint::black_box(x);
        best = best.min(t);
    }
    best
}

/// Does the same as `line_pulse` of `../stats.h`: returns how long a word takes from one rank to
/// the other and back, in nanoseconds, through a page that ranks 0 and 1 share. With `steer`, if
/// the time is not from `BASE_LINE_LO` to `BASE_LINE_HI`, both ranks sleep a little and measure
/// again.
fn line_pulse(me: usize, steer: bool) -> f64 {
    use std::cell::Cell;
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{
        AtomicI64,
        Ordering::{Acquire, Relaxed, Release},
    };
    thread_local!(static SLEPT: Cell<f64> = const { Cell::new(0.0) });
    thread_local!(static PAGE: Cell<Option<[&'static AtomicI64; 3]>> = const { Cell::new(None) });
    let page = PAGE.get().or_else(|| {
        let file =
            std::fs::File::options().read(true).write(true).open(std::env::var_os("BASE_PULSE")?).ok()?;
        // SAFETY: this is a new mapping of an existing page, which is never unmapped.
        let page = unsafe { mmap(std::ptr::null_mut(), 4096, 3, 1, file.as_raw_fd(), 0) };
        // SAFETY: as above. Words in the page are accessed only atomically.
        let word = |at| unsafe { &*page.add(at).cast::<AtomicI64>() };
        (page as isize != -1).then(|| [word(0), word(256), word(512)])
    });
    PAGE.set(page);
    let (Some([ping, pong, verdict]), true) = (page, me < 2) else { return 0.0 };
    loop {
        let mut i = [ping, pong][me].load(Relaxed);
        let mut v = [0.0; 5];
        for v in &mut v {
            let t0 = now();
            for _ in 0..200 {
                i += 1;
                if me == 0 {
                    ping.store(i, Release);
                    while pong.load(Acquire) != i {}
                } else {
                    while ping.load(Acquire) != i {}
                    pong.store(i, Release);
                }
            }
            *v = (now() - t0) / 200.0 * 1e9;
        }
        v.sort_by(f64::total_cmp);
        let line = v[2];
        if !steer {
            return line;
        }
        // Rank 0 decides whether both ranks measure again.
        if me == 0 {
            let (low, high) = (env_f64("BASE_LINE_LO", 0.0), env_f64("BASE_LINE_HI", 1e9));
            let off = !(low..=high).contains(&line) && SLEPT.get() < env_f64("BASE_LINE_MS", 1000.0);
            if off {
                SLEPT.set(SLEPT.get() + 40.0);
            }
            verdict.store(i << 1 | i64::from(off), Release);
        } else {
            while verdict.load(Acquire) >> 1 != i {}
        }
        if verdict.load(Acquire) & 1 == 0 {
            return line;
        }
        std::thread::sleep(std::time::Duration::from_millis(40));
    }
}

unsafe extern "C" {
    fn mmap(at: *mut u8, len: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn sched_setaffinity(pid: i32, len: usize, mask: *const u64) -> i32;
}

/// With `OURS_PIN`, keeps each rank on core `rank` modulo the number of cores, as
/// `mpirun --bind-to core` does.
fn pin(rank: usize) {
    if std::env::var_os("OURS_PIN").is_some() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mask = 1_u64 << (rank % cores);
        // SAFETY: the call reads the eight bytes of `mask`.
        unsafe { sched_setaffinity(0, 8, &mask) };
    }
}

/// Runs a program on all ranks. As the last figure, prints the core speed of the slowest rank.
pub fn main(program: impl Fn(&World) -> Result<()> + Sync) -> Result<()> {
    fencepost::run(|world| {
        pin(world.rank());
        program(world)?;
        let t = max_of(world, alu_ns() * 1e-9)?;
        emit(
            world,
            "calib",
            "alu_step",
            "-",
            Stat { med: t, min: t, max: t, reps: 1, iters: 1, line: [0.0; 2] },
            "ns",
            "",
        );
        Ok(())
    })?;
    Ok(())
}
