//! Jobs that a launcher of MPI starts. A stand-in replaces the MPI library and the launcher, so
//! that tests can choose the hosts. `.ci/run mpi` runs the same programs under a real library and
//! launcher.

use crate::launched::{Ended, Launched, rank_program, start};
use crate::points::{Fate, now};
use crate::rank::say;
use fencepost::TransportKind;
use fencepost::prelude::*;
use fencepost_tests_mpi::{DELAY, LEVEL, SERVER, Server, library};
use fencepost_tests_support::counting::allocations_of_process;
use rustix::process::Signal;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The hosts of four ranks: all on one host, two successive ranks on each of two hosts, two
/// alternate ranks on each, each rank on its own host, and three on one and one on another.
const HOSTS: [[u32; 4]; 5] = [[0; 4], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3], [0, 0, 0, 1]];

/// Starts a rank for each of these hosts. A limit keeps the ranks on host 0 from creating files
/// that are long enough for shared memory.
fn limited(hosts: &[u32]) -> Vec<Ended> {
    let script = |rank: usize| {
        format!("{}exec \"$0\" rank placed", if hosts[rank] == 0 { "ulimit -f 1; " } else { "" })
    };
    let (_server, ranks) =
        started(hosts, &[], |rank, set| start("sh", &["-c", &script(rank), &rank_program()], set));
    ranks.into_iter().map(Launched::end).collect()
}

/// Starts a rank for each of these hosts.
fn ranks(hosts: &[u32], variables: &[(&str, &str)], words: &[&str]) -> (Server, Vec<Launched>) {
    started(hosts, variables, |_, set| start(&rank_program(), &[&["rank"], words].concat(), set))
}

fn started(
    hosts: &[u32],
    variables: &[(&str, &str)],
    start: impl Fn(usize, &[(&str, &str)]) -> Launched,
) -> (Server, Vec<Launched>) {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let job = JOBS.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("fencepost-mpi-{}-{job}", std::process::id()));
    let server = Server::start(&path, hosts).expect("a socket");
    let (library, path) = (library().expect("a path"), server.path().display().to_string());
    let size = hosts.len().to_string();
    let one = |number: usize| {
        let rank = number.to_string();
        let set = [
            ("FENCEPOST_MPI", library.to_str().expect("text")),
            (SERVER, &path),
            ("PMI_RANK", &rank),
            ("PMI_SIZE", &size),
        ];
        start(number, &[&set, variables].concat())
    };
    let ranks = (0..hosts.len()).map(one).collect();
    (server, ranks)
}

fn ended(hosts: &[u32], variables: &[(&str, &str)], words: &[&str]) -> Vec<Ended> {
    let (_server, ranks) = ranks(hosts, variables, words);
    ranks.into_iter().map(Launched::end).collect()
}

pub fn hosts() {
    let together = ["Together", "Hosts { ranks_each: 2 }", "Apart", "Apart", "Hosts { ranks_each: 3 }"];
    for (hosts, together) in HOSTS.into_iter().zip(together) {
        for (share, placement) in [("on", together), ("off", "Apart")] {
            for transport in ["tcp", "mpi"] {
                let set = [("FENCEPOST_SHARE", share), ("FENCEPOST_TRANSPORT", transport)];
                for rank in ended(&hosts, &set, &["placed"]) {
                    let expected = format!("placed {placement}\nmet 4\n");
                    assert_eq!(
                        rank.expect(0).out,
                        expected,
                        "{hosts:?}, share {share}, {transport}: {rank:#?}"
                    );
                }
            }
        }
    }
    // A job of one rank needs no other process.
    let alone = [("FENCEPOST_TRANSPORT", "mpi"), ("FENCEPOST_RANKS", "1")];
    for set in [&alone[..1], &alone] {
        ended(&[0], set, &["settings"])[0].expect(0);
    }
    // If the ranks of a host cannot share memory, they use TCP.
    for (hosts, placement) in [(&[0, 0, 1][..], "Apart"), (&[0, 0, 1, 1, 2], "Apart")] {
        for rank in limited(hosts) {
            let expected = format!("placed {placement}\nmet {}\n", hosts.len());
            assert_eq!(rank.expect(0).out, expected, "{hosts:?}: {rank:#?}");
        }
    }
    // If MPI allows calls by one thread only, no thread can serve while a rank computes.
    let set = [(LEVEL, "1"), ("FENCEPOST_TRANSPORT", "mpi")];
    for (number, rank) in ended(&[0, 1], &set, &["placed"]).into_iter().enumerate() {
        let reported = rank.err.contains("does not grant MPI_THREAD_SERIALIZED");
        assert_eq!(
            (rank.expect(0).out.as_str(), reported),
            ("placed Apart\nmet 2\n", number == 0),
            "{rank:#?}"
        );
    }
    for rank in ended(&[0; 7], &[], &["well"]) {
        assert_eq!(rank.expect(0).out.lines().count(), 2, "{rank:#?}");
    }
}

/// If no transport between hosts is chosen, MPI and TCP are timed, and all ranks use the faster
/// one.
pub fn wires() {
    let messages = |variables: &[(&str, &str)]| {
        let (server, ranks) = ranks(&[0, 0, 1], variables, &["placed"]);
        for rank in ranks.into_iter().map(Launched::end) {
            assert!(rank.expect(0).out.ends_with("\nmet 3\n"), "{variables:?}: {rank:#?}");
        }
        server.messages()
    };
    // Messages of two lengths are sent 16 times to the other rank and back.
    const TIMED: usize = 64;
    assert_eq!(messages(&[("FENCEPOST_TRANSPORT", "tcp")]), 0);
    assert_eq!(messages(&[(DELAY, "2")]), TIMED, "MPI is slow");
    assert_eq!(messages(&[("FENCEPOST_SEAL", "on")]), 0, "only connections are sealed");
    assert_eq!(messages(&[(LEVEL, "1")]), 0, "no thread may call MPI in the place of a rank");
    assert!(messages(&[("FENCEPOST_TRANSPORT", "mpi")]) > 0);
    assert!(messages(&[]) >= TIMED);
}

/// If the ranks of a host run the same file, only one of them reads it. Different files count as
/// the same program if they have the same content.
pub fn programs() {
    let own = rank_program();
    let named = |name: &str| {
        let name = format!("fencepost-{name}-{}", std::process::id());
        std::env::temp_dir().join(name).display().to_string()
    };
    let (same, other) = (named("same"), named("other"));
    for copy in [&same, &other] {
        std::fs::copy(&own, copy).expect("a copy");
    }
    let mut changed = std::fs::OpenOptions::new().append(true).open(&other).expect("it was copied");
    std::io::Write::write_all(&mut changed, b"changed").expect("a disk");
    drop(changed);
    for (programs, meet) in [
        ([&own, &own, &own], true),
        ([&own, &same, &same], true),
        ([&own, &own, &other], false),
        ([&other, &own, &own], false),
        ([&own, &other, &other], false),
    ] {
        let (_server, ranks) =
            started(&[0, 0, 0], &[], |rank, set| start(programs[rank], &["rank", "placed"], set));
        for rank in ranks.into_iter().map(Launched::end) {
            let all = format!("{}{}", rank.out, rank.err);
            assert_eq!(rank.code == Some(0), meet, "{programs:?}: {rank:#?}");
            let says = if meet { "met 3" } else { "runs another program than rank 0" };
            assert!(all.contains(says), "{programs:?}: {rank:#?}");
        }
    }
    [same, other].iter().for_each(|copy| std::fs::remove_file(copy).expect("it is there"));
}

pub fn refusals() {
    let says = |ranks: Vec<Ended>, text: &str| {
        for ended in ranks {
            let all = format!("{}{}", ended.out, ended.err);
            assert!(ended.code != Some(0) && all.contains(text), "{text}: {ended:#?}");
        }
    };
    // The launcher's number of ranks differs from the library's.
    says(ended(&[0, 0], &[("PMI_SIZE", "3")], &["well"]), "makes it rank");
    says(ended(&[0, 0], &[("FENCEPOST_SHARE", "perhaps")], &["well"]), "FENCEPOST_SHARE is `perhaps`");
    let sealed = [("FENCEPOST_TRANSPORT", "mpi"), ("FENCEPOST_SEAL", "on")];
    says(ended(&[0, 1], &sealed, &["well"]), "what MPI carries can't be sealed");
    let open_mpi = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")];
    let wrong = "it has the interface of MPICH, not of Open MPI or the standard interface";
    says(ended(&[0, 0], &open_mpi, &["well"]), wrong);
    says(ended(&[0, 0], &[(SERVER, "/no/such/socket")], &["well"]), "the stand-in's error 15");
}

pub fn deaths() {
    const WAYS: [(&str, usize); 5] = [("kill", 1), ("exit", 3), ("leave", 2), ("panic", 0), ("stop", 1)];
    let pairs = HOSTS.into_iter().flat_map(|hosts| [(hosts, "tcp"), (hosts, "mpi")]);
    for (at, (hosts, transport)) in pairs.enumerate() {
        // By default, each way to die is tried on half of the pairs of hosts and transport.
        for (_, (how, victim)) in
            WAYS.into_iter().enumerate().filter(|(way, _)| crate::full() || (at / 2 + at + way) % 2 == 0)
        {
            // If a rank is alone on its host and stops, it stays stopped until its launcher kills
            // it.
            if how == "stop" && hosts.iter().filter(|host| **host == hosts[victim]).count() == 1 {
                continue;
            }
            let set = [
                ("FENCEPOST_HEARTBEAT", "50ms"),
                ("FENCEPOST_SILENCE", "1s"),
                ("FENCEPOST_TRANSPORT", transport),
            ];
            let words = ["die", &victim.to_string(), "7", how];
            for (rank, ended) in ended(&hosts, &set, &words).into_iter().enumerate() {
                let named = ended
                    .out
                    .lines()
                    .any(|line| line.starts_with("told at") && line.contains(&format!("rank {victim}")));
                let dies = rank == victim || named && ended.code != Some(0);
                assert!(
                    dies,
                    "{hosts:?}, {transport}, rank {victim} by {how}: rank {rank} ends with {ended:#?}"
                );
            }
        }
    }
}

/// Puts the first elements of `u` into the window of the other rank.
#[superstep]
fn give(u: &mut Window<u64>, v: &mut Window<u64>, len: usize, other: usize) -> Result<()> {
    v.put(u.section(0..len)).to(other, 0)?;
    Ok(())
}

/// Runs a prepared superstep in which both ranks send `len` elements, `runs` times.
pub fn gives(len: usize, runs: usize) -> Result<()> {
    fencepost::ranks(2).transport(TransportKind::Mpi).run(|world| {
        let (mut u, mut v) = (world.window::<u64>(len)?, world.window::<u64>(len)?);
        let mut give = give::prepare(world, len, 1 - world.rank())?;
        for _ in 0..runs {
            give.replay(&mut u, &mut v)?;
        }
        Ok(())
    })
}

/// A run of a prepared superstep sends one message for each frame, a second message if the payload
/// of the frame is long, and no others. A payload is long from 16 KiB on within a host, and from 64
/// KiB on between hosts.
pub fn frames() {
    const RUNS: usize = 200;
    let near = [(1, 1), (2047, 1), (2048, 2), (100_000, 2)].map(|frames| ([0, 0], frames));
    let far = [(8191, 1), (8192, 2)].map(|frames| ([0, 1], frames));
    for (hosts, (len, each)) in near.into_iter().chain(far) {
        let messages = |runs: usize| {
            let set = [
                ("FENCEPOST_HEARTBEAT", "30s"),
                ("FENCEPOST_SILENCE", "120s"),
                ("FENCEPOST_TRANSPORT", "mpi"),
                ("FENCEPOST_SHARE", "off"),
            ];
            let (server, ranks) = ranks(&hosts, &set, &["gives", &len.to_string(), &runs.to_string()]);
            for rank in ranks.into_iter().map(Launched::end) {
                rank.expect(0);
            }
            server.messages()
        };
        let (none, some) = (messages(0), messages(RUNS));
        let (sent, frames) = (some.saturating_sub(none), 2 * RUNS * each);
        // The number of messages into which ranks pack their first and last items varies. A rank
        // that is delayed reports its releases in a separate message.
        assert!(
            sent.abs_diff(frames) <= RUNS / 10,
            "{len} elements, hosts {hosts:?}: {sent} messages, not {frames}"
        );
    }
}

/// Runs prepared supersteps of several lengths, and counts what the ranks allocate meanwhile.
pub fn counted() -> Result<()> {
    const RUNS: usize = 200;
    fencepost::ranks(2).transport(TransportKind::Mpi).run(|world| {
        for len in [1, 1000, 10_000, 100_000] {
            let (mut u, mut v) = (world.window::<u64>(len)?, world.window::<u64>(len)?);
            let mut give = give::prepare(world, len, 1 - world.rank())?;
            let mut before = 0;
            for run in 0..2 * RUNS {
                if run == RUNS {
                    before = allocations_of_process();
                }
                give.replay(&mut u, &mut v)?;
            }
            say(&format!("{len} elements: {} allocations", allocations_of_process() - before));
        }
        Ok(())
    })
}

/// Over MPI a prepared superstep that has run before allocates nothing.
pub fn allocations() {
    const MOST: usize = 5;
    let set = [
        ("FENCEPOST_HEARTBEAT", "30s"),
        ("FENCEPOST_SILENCE", "120s"),
        ("FENCEPOST_TRANSPORT", "mpi"),
        ("FENCEPOST_SHARE", "off"),
    ];
    for rank in ended(&[0, 0], &set, &["counted"]) {
        let counts = rank.expect(0).out.lines().filter_map(|line| line.split(' ').nth_back(1));
        let counts: Vec<usize> = counts.filter_map(|count| count.parse().ok()).collect();
        // If a message arrives further ahead of its use than all earlier messages, it may need more
        // memory than was kept.
        assert!(counts.len() == 4 && counts.iter().all(|count| *count <= MOST), "{rank:#?}");
    }
}

/// Rank 0 sends 8 MiB, and then computes for at least a second, until `file` exists. Rank 1 creates
/// `file` once the 8 MiB have arrived, and a get of rank 0's elements under a lock is done.
pub fn busy(file: &str) -> Result<()> {
    const LONG: usize = (8 << 20) / 8;
    const LIMIT: i64 = 60_000_000_000;
    fencepost::run(|world| {
        let elements = world.lock_window::<u64>(16)?;
        let served = Path::new(file);
        match world.rank() {
            0 => {
                world.attach_buffer(LONG * 8 + 1024)?;
                let begun = now();
                world.message(1, 0).buffered().send(vec![begun as u64; LONG])?;
                while !served.exists() || now() < begun + 1_000_000_000 {
                    assert!(now() < begun + LIMIT, "rank 1 is not served while rank 0 computes");
                    (0..100_000).for_each(|_| std::hint::spin_loop());
                }
                world.detach_buffer()?;
            }
            1 => {
                let came = world.recv::<u64>(0, 0)?.0;
                let after = |since: i64| (now() - since) / 1000;
                let arrived = after(came[LONG - 1] as i64);
                let asked = now();
                let lock = elements.lock(0, LockType::Exclusive)?;
                let ticket = lock.get(0..16)?;
                lock.flush()?;
                assert_eq!(ticket.take()?, [0; 16]);
                lock.unlock()?;
                say(&format!("8 MiB after {arrived} us, a get under a lock after {} us", after(asked)));
                std::fs::File::create(served).expect("a folder");
            }
            _ => {}
        }
        world.barrier()
    })
}

/// While a rank computes, MPI sends the bytes that the rank has given to MPI, and the rank's
/// service thread serves other ranks.
pub fn computes() {
    for hosts in [[0, 0], [0, 1]] {
        let file = std::env::temp_dir().join(format!("fencepost-served-{}-{}", std::process::id(), hosts[1]));
        let set = [("FENCEPOST_TRANSPORT", "mpi"), ("FENCEPOST_SHARE", "off")];
        for (number, rank) in ended(&hosts, &set, &["busy", &file.display().to_string()]).iter().enumerate() {
            assert_eq!(rank.expect(0).out.contains("8 MiB after"), number == 1, "{hosts:?}: {rank:#?}");
        }
        std::fs::remove_file(&file).expect("rank 1 has made it");
    }
}

/// Each rank sends elements of its window to the next rank, in place.
#[superstep]
fn turn(u: &mut Window<u64>, v: &mut Window<u64>, next: usize) -> Result<()> {
    v.put(u.section(0..LONG)).to(next, 0)?;
    Ok(())
}

/// The number of elements of a message that is long enough to be sent in place.
const LONG: usize = 1 << 17;

/// Rank 1 dies, and does not receive the elements that rank 0 then sends to it.
pub fn lends(how: &str) -> Result<()> {
    fencepost::ranks(3).transport(TransportKind::Mpi).run(|world| {
        let (me, next) = (world.rank(), (world.rank() + 1) % world.size());
        let (mut u, mut v) = (world.window_from(vec![0; LONG])?, world.window::<u64>(LONG)?);
        let mut turn = turn::prepare(world, next)?;
        for round in 0..3 {
            u.fill(10 * round + me as u64);
            turn.replay(&mut u, &mut v)?;
            let before = 10 * round + ((me + 2) % 3) as u64;
            assert!(v.iter().all(|element| *element == before), "what the rank before has sent");
        }
        world.barrier()?;
        Fate { rank: 1, point: 1, how }.at(me, 1);
        // The first sends may still succeed, because rank 1 may have received them before it died.
        let error = loop {
            if let Err(error) = turn.replay(&mut u, &mut v) {
                break error;
            }
        };
        u.fill(1);
        let place = u.as_ptr();
        let elements = u.into_vec()?;
        let is_copied = !std::ptr::eq(elements.as_ptr(), place);
        say(&format!("told: {error}; the elements are copied: {is_copied}"));
        Err(error)
    })
}

/// Memory that MPI may still use for a rank that has died is not freed. While the rank may still be
/// alive, the call does not return.
pub fn lent() {
    let by_mpi = [
        ("FENCEPOST_HEARTBEAT", "50ms"),
        ("FENCEPOST_SILENCE", "500ms"),
        ("FENCEPOST_TRANSPORT", "mpi"),
        ("FENCEPOST_SHARE", "off"),
    ];
    let died = |number: usize, rank: &Ended| {
        let all = format!("{}{}", rank.out, rank.err);
        assert!(rank.code != Some(0) && all.contains("rank 1"), "rank {number}: {rank:#?}");
    };
    let ended = ended(&[0; 3], &by_mpi, &["lends", "kill"]);
    [0, 2].iter().for_each(|rank| died(*rank, &ended[*rank]));
    // Rank 0 can never reuse the memory of its elements, and gets a copy.
    for (rank, is_copied) in [(0, true), (2, false)] {
        let told = format!("the elements are copied: {is_copied}");
        assert!(ended[rank].out.contains(&told), "rank {rank}: {ended:#?}");
    }
    // Nobody on rank 1's host kills rank 1 while it is stopped, so it may continue and receive.
    let soon = [&by_mpi[..], &[("FENCEPOST_GRACE", "300ms")]].concat();
    let (_server, ranks) = ranks(&[0, 1, 0], &soon, &["lends", "stop"]);
    let Ok([first, stopped, last]) = <[Launched; 3]>::try_from(ranks) else { panic!("three ranks") };
    let ended = [first, last].map(Launched::end);
    stopped.kill(Signal::KILL);
    stopped.end();
    [0, 2].iter().zip(&ended).for_each(|(rank, ended)| died(*rank, ended));
    assert!(ended[0].err.contains("as long as MPI uses its windows for rank 1"), "{ended:#?}");
    assert!(!ended[0].out.contains("told: "), "{ended:#?}");
}

pub fn hillslope() {
    let words = ["hillslope", "-n", "4", "--years", "5e5"];
    let digest = |text: &str| text.lines().find(|line| line.starts_with("digest ")).map(str::to_owned);
    let threads = [&["rank"], &words[..], &["--transport", "local"]].concat();
    let expected = digest(&start(&rank_program(), &threads, &[]).end().expect(0).out);
    assert!(expected.is_some(), "it prints a digest");
    for hosts in HOSTS {
        for (share, transport) in [("on", "tcp"), ("off", "tcp"), ("on", "mpi"), ("off", "mpi")] {
            let ranks =
                ended(&hosts, &[("FENCEPOST_SHARE", share), ("FENCEPOST_TRANSPORT", transport)], &words);
            let found = digest(&ranks[0].expect(0).out);
            assert_eq!(found, expected, "{hosts:?}, share {share}, {transport}: {ranks:#?}");
        }
    }
}
