//! The segment between real processes. The test program starts itself once for each rank, and
//! passes the memory file to these processes. An environment variable gives each process its role
//! and its rank. A failed check ends the process with a panic.

#![cfg(target_os = "linux")]

mod waits;

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use fencepost_transport::{
    Channels, CreateJoin, Created, Endpoint, Frame, Header, Leave, Liveness, Loss, Lost, Notify, Number,
    Port, Segment, ShmEnd, Topology,
};
use waits::{bytes, poll, read, released, settled, wait};

const PART: &str = "FENCEPOST_TEST_PART";

/// Runs the program of the child processes. Returns at once in the test's own process.
#[test]
fn a_rank_plays_its_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let mut words = part.split(' ');
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).unwrap();
    let (which, fd, rank, size) = (number(), number(), number(), number());
    // SAFETY: the parent has passed this descriptor to this process, and no other code here uses
    // it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let segment = Segment::join(fd).unwrap();
    let mut end = Endpoint::Shm(ShmEnd::of_job(&segment, 0, rank, size).unwrap());
    PARTS[which](&mut end);
    end.leave(Leave::Finished);
}

const PARTS: [fn(&mut Endpoint); 3] = [talk, lose_the_last, split];

/// Starts a process for each rank.
fn start(segment: &Segment, part: usize) -> Vec<Child> {
    let fd = rustix::io::dup(segment.fd()).unwrap(); // not closed when a program is started
    let size = segment.ranks();
    (0..size)
        .map(|rank| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "a_rank_plays_its_part", "--nocapture"])
                .env(PART, format!("{part} {} {rank} {size}", fd.as_raw_fd()))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect()
}

/// Sends notifications and frames between all pairs. Each rank sends payloads of many lengths from
/// the heap, and payloads in the segment.
fn talk(end: &mut Endpoint) {
    let (me, size) = (end.rank(), end.size());
    let memory = end.memory().zeroed(4096).unwrap();
    for e in 0..300u64 {
        let len = (e * 37 % 3000) as usize;
        let payload = vec![(me as u64 + e) as u8; len];
        // SAFETY: these 4096 bytes belong to this rank, and no rank reads them: all ranks have
        // released the frames that were posted from them.
        unsafe { memory.base().write_bytes(e as u8, 4096) };
        for to in 0..size {
            end.draft(to).count = (e as usize * size + me) as u32;
            let header = |kind| Header { word: e, kind, extra: me as u32 };
            // SAFETY: the payload is readable; it is on the heap, so it is copied.
            unsafe { end.post(to, Port::FENCE, Frame { header: header(1), payload: payload.as_ptr(), len }) }
                .unwrap();
            // SAFETY: the payload stays unchanged until all ranks have released it, for which this
            // rank waits.
            unsafe {
                end.post(to, Port::FENCE, Frame { header: header(2), payload: memory.base(), len: 4096 })
            }
            .unwrap();
        }
        drop(payload);
        end.publish(e).unwrap();
        for from in 0..size {
            let notification = read(end, from).unwrap();
            assert_eq!((notification.word, notification.count as usize), (e, e as usize * size + from));
            let frame = poll(end, from).unwrap();
            assert_eq!((frame.header.kind, frame.header.extra), (1, from as u32));
            assert!(frame.len == len && bytes(&frame).iter().all(|&byte| byte == (from as u64 + e) as u8));
            end.release(from, Port::FENCE);
            let frame = poll(end, from).unwrap();
            assert!(frame.len == 4096 && bytes(&frame).iter().all(|&byte| byte == e as u8));
            end.release(from, Port::FENCE);
        }
        end.settle().unwrap();
        for other in 0..size {
            settled(end, other).unwrap();
            released(end, other, 2 * (e + 1));
        }
    }
}

/// The last rank sends a frame and kills itself. All other ranks wait for it.
fn lose_the_last(end: &mut Endpoint) {
    let last = end.size() - 1;
    if end.rank() == last {
        let header = Header { word: 9, ..Header::default() };
        (0..last).for_each(|to| {
            // SAFETY: the payload is on the heap, so it is copied.
            unsafe { end.post(to, Port::FENCE, Frame { header, payload: [7u8; 100].as_ptr(), len: 100 }) }
                .unwrap();
        });
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    let frame = poll(end, last).unwrap();
    assert_eq!(bytes(&frame), [7; 100], "what it sent before it died is received");
    end.release(last, Port::FENCE);
    let lost = wait(end, |end| end.poll(last, Port::FENCE).map(|frame| frame.map(drop))).unwrap_err();
    assert_eq!(lost, Lost { rank: last, how: Loss::Died("killed by signal 9".into()) });
    assert_eq!(end.publish(1), Ok(()));
    assert_eq!(read(end, last), Err(lost));
}

/// Creates worlds of some ranks repeatedly. Freed memory is reused.
fn split(end: &mut Endpoint) {
    let (me, size) = (end.rank(), end.size());
    let members: Vec<usize> = (0..size).filter(|rank| rank % 2 == me % 2).rev().collect();
    let index = members.iter().position(|&rank| rank == me).unwrap();
    for round in 0..40u64 {
        let number = if index == 0 {
            let Created::Number(Number { world, part }) = end.create(&members).unwrap() else {
                panic!("no number")
            };
            let bytes = [world.to_le_bytes(), part.to_le_bytes()];
            for &to in &members[1..] {
                // SAFETY: the payload is on the heap, so it is copied.
                unsafe {
                    end.post(
                        to,
                        Port::FENCE,
                        Frame { header: Header::default(), payload: bytes.as_ptr().cast(), len: 16 },
                    )
                }
                .unwrap();
            }
            Number { world, part }
        } else {
            let frame = poll(end, members[0]).unwrap();
            let bytes = bytes(&frame);
            let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let number = Number { world: word(0), part: word(8) };
            end.release(members[0], Port::FENCE);
            number
        };
        let mut part = end.join(number, &members, index).unwrap();
        assert_eq!((part.rank(), part.size()), (index, members.len()));
        for e in 0..3 {
            part.publish(round).unwrap();
            for (from, &member) in members.iter().enumerate() {
                assert_eq!(read(&mut part, from).unwrap().word, round, "rank {member} in exchange {e}");
            }
        }
        part.leave(Leave::Finished);
    }
}

fn reap(mut child: Child) -> ExitStatus {
    child.wait().unwrap()
}

#[test]
fn processes_talk_as_threads_do() {
    for size in [1, 2, 5] {
        let segment = Segment::create(size).unwrap();
        for (rank, child) in start(&segment, 0).into_iter().enumerate() {
            assert!(reap(child).success(), "rank {rank} of {size}");
        }
    }
}

#[test]
fn a_rank_that_was_killed_and_struck_off_is_named_by_all_who_wait_for_it() {
    for size in [2, 4] {
        let segment = Segment::create(size).unwrap();
        let mut children = start(&segment, 1);
        let last = reap(children.pop().unwrap());
        assert!(!last.success());
        assert!(segment.mark_failed(size - 1, "killed by signal 9"));
        assert!(!segment.mark_failed(size - 1, "again"), "that is no news");
        assert!(children.into_iter().map(reap).all(|status| status.success()));
    }
}

#[test]
fn a_rank_that_parted_is_quoted_where_it_never_was_and_nowhere_else() {
    let segment = std::sync::Arc::new(Segment::create(4).unwrap());
    let mut worlds =
        [0, 1].map(|world| [0, 1, 2, 3].map(|rank| Some(ShmEnd::of_job(&segment, world, rank, 4).unwrap())));
    // All ranks have been in the first world; only ranks 0 and 3 join the second.
    let [first, second] = &mut worlds;
    for rank in [1, 2] {
        std::mem::forget(second[rank].take());
    }
    first[1].take().unwrap().leave(Leave::Failed("no luck".into()));
    first[2].take().unwrap().leave(Leave::Finished);
    segment.record_exit(1, "no luck");
    let mut said =
        |world: usize, rank| worlds[world][0].as_mut().unwrap().poll(rank, Port::FENCE).map(|_| ());
    assert_eq!(said(1, 1), Ok(()), "it has parted, and may still be there");
    let ended = ["exited with code 1", "exited with code 0", "was killed by signal 9"];
    (1..4).zip(ended).for_each(|(rank, how)| assert!(segment.mark_failed(rank, how)));
    let left = |rank, how: &str| Err(Lost { rank, how: Loss::Left(Leave::Failed(how.into())) });
    assert_eq!(said(0, 1), left(1, "no luck"));
    assert_eq!(said(0, 2), Err(Lost { rank: 2, how: Loss::Left(Leave::Finished) }));
    assert_eq!(said(1, 1), left(1, "it ended without having been in this world: no luck"));
    let died = |rank, how: &str| Err(Lost { rank, how: Loss::Died(how.into()) });
    assert_eq!(said(1, 2), died(2, "exited with code 0"));
    for world in [0, 1] {
        assert_eq!(said(world, 3), died(3, "was killed by signal 9"));
    }
}

#[test]
fn processes_make_worlds_of_some_of_them() {
    let segment = Segment::create(5).unwrap();
    assert!(start(&segment, 2).into_iter().map(reap).all(|status| status.success()));
}

#[test]
fn what_is_no_segment_is_refused() {
    let file = rustix::fs::memfd_create("other", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 1 << 20).unwrap();
    assert!(Segment::join(file).err().unwrap().to_string().contains("not a segment of this version"));
}

/// The last word of the head is the number of bytes of the job's tables.
#[test]
fn a_segment_of_another_build_is_refused() {
    let segment = Segment::create(2).unwrap();
    let file = std::fs::File::from(segment.fd().try_clone_to_owned().unwrap());
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 56).unwrap();
    let tables = u64::from_ne_bytes(bytes).wrapping_sub(128);
    file.write_all_at(&tables.to_ne_bytes(), 56).unwrap();
    let why = Segment::join(file.into()).err().unwrap().to_string();
    assert!(why.contains("another build"), "{why}");
}

#[test]
fn a_segment_is_mapped_once_in_a_process_and_its_ranks_are_those_of_the_job() {
    let segment = std::sync::Arc::new(Segment::create(2).unwrap());
    let again = Segment::join(rustix::io::fcntl_dupfd_cloexec(segment.fd(), 0).unwrap());
    assert!(again.err().unwrap().to_string().contains("same address"));
    for (rank, size) in [(0, 3), (2, 2)] {
        assert!(ShmEnd::of_job(&segment, 0, rank, size).is_err());
    }
    assert!(ShmEnd::of_job(&segment, u32::MAX, 0, 2).is_err());
}
