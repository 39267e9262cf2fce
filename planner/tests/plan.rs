//! Plan files. A schedule that is written and read again is unchanged. Bytes that are not a plan
//! cause an error without side effects.

use fencepost_planner::ErrorClass;
use fencepost_planner::datatype::Datatype;
use fencepost_planner::element::{ElementKind, ElementType, Op, Scalar};
use fencepost_planner::ids::{BufferId, ClassId, Delta, OperationId, RoundId, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Order, Pattern, Patterns, Site, Sync};
use fencepost_planner::ir::schedule::{
    Buffer, Frame, Instruction, Part, Placement, Program, Routing, Schedule,
};
use fencepost_planner::plan::{
    MadeFor, RANKS_MAX, difference, from_bytes, load, load_all, save, save_all, to_bytes,
};
use fencepost_planner::units::Bytes;
use fencepost_planner::{Machine, Options, verify};
use fencepost_tests_support::counting::{Counting, peak};
use fencepost_tests_support::random::Random;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn element(random: &mut Random) -> ElementType {
    match random.below(4) {
        0 => ElementType::opaque(1 + random.below(300) as u32),
        1 => {
            let (value, index) = (random.one_of(&Scalar::ALL), random.one_of(&Scalar::ALL));
            ElementType { size: value.size() + index.size(), kind: ElementKind::ValueAt(value, index) }
        }
        _ => ElementType::scalar(random.one_of(&Scalar::ALL)),
    }
}

fn datatype(random: &mut Random) -> Datatype {
    match random.below(4) {
        0 => Datatype::run(0..random.below(5)),
        1 => Datatype::nest(
            random.below(100) as i64,
            &[(random.below(4), random.below(40) as i64 - 20 + 2000), (2, 7)],
            1 + random.below(3),
        )
        .unwrap(),
        _ => {
            let list: Vec<i64> = random.many(6, |random| random.below(50) as i64);
            Datatype::elements(list).unwrap()
        }
    }
}

/// Returns a random schedule that may have everything that a plan file can contain. Each of its
/// references refers to an existing item.
fn schedule(seed: u64) -> Schedule {
    let random = &mut Random::new(seed);
    let shape: Vec<u32> = (0..1 + random.below(3)).map(|_| 1 + random.below(5) as u32).collect();
    let ranks: u32 = shape.iter().product();
    let windows: Vec<ElementType> = (0..1 + random.below(3)).map(|_| element(random)).collect();
    let classes = 1 + random.below(4);
    let program = |random: &mut Random| program(random, ranks, windows.len());
    let classes: Vec<Program> = (0..classes).map(|_| program(random)).collect();
    let class_of = (0..ranks).map(|_| ClassId(random.below(classes.len()) as u32)).collect();
    Schedule {
        name: random.one_of(&["", "exchange", "Größe"]).into(),
        windows: windows.into_iter().collect(),
        shape,
        classes: classes.into_iter().collect(),
        class_of,
        order: random.one_of(&[Order::Canonical, Order::Relaxed]),
        sync: random.one_of(&[Sync::Fence, Sync::Pscw]),
        placement: random.one_of(&[
            Placement::Together,
            Placement::Apart,
            Placement::Hosts { ranks_each: 3 },
        ]),
    }
}

fn program(random: &mut Random, ranks: u32, windows: usize) -> Program {
    let delta =
        |random: &mut Random| Delta(random.below(2 * ranks as usize - 1) as i64 - i64::from(ranks) + 1);
    let window = |random: &mut Random| WindowId(random.below(windows) as u32);
    let operations: Vec<Operation> = random.many(4, |random| Operation {
        kind: random.one_of(&[Kind::Put, Kind::Get, Kind::Accumulate(Op::Sum), Kind::Accumulate(Op::MaxLoc)]),
        window: window(random),
        target: if random.below(5) == 0 { None } else { Some(delta(random)) },
        remote: datatype(random),
        local: if random.below(2) == 0 {
            Local::Buffer
        } else {
            Local::Section { window: window(random), datatype: datatype(random) }
        },
        mode: random.one_of(&Mode::ALL),
        site: Site {
            file: random.one_of(&["src/main.rs", "halo.rs"]).into(),
            line: random.below(500) as u32,
            column: 9,
        },
    });
    let routes = operations.iter().map(|operation| {
        operation.target.map(|_| Routing {
            mode: random.one_of(&Mode::ALL[1..]),
            instead: random.below(2) == 0,
            round: RoundId(random.below(9) as u32),
        })
    });
    let routes: Vec<Option<Routing>> = routes.collect();
    let buffers: Vec<Buffer> = random.many(3, |random| Buffer {
        peer: delta(random),
        bytes: random.below(1 << 20) as u64,
        copies: 1 + random.below(2) as u32,
    });
    let part = |random: &mut Random| {
        if operations.is_empty() || random.below(2) == 0 {
            Part::Window { owner: delta(random), window: window(random), datatype: datatype(random) }
        } else {
            let operation = OperationId(random.below(operations.len()) as u32);
            Part::Operation { operation, first: random.below(300), count: random.below(300) }
        }
    };
    let op = |random: &mut Random| (random.below(2) == 0).then(|| random.one_of(&Op::ALL));
    let instructions = random.many(12, |random| {
        let buffer = BufferId(random.below(buffers.len().max(1)) as u32);
        let (at, bytes) = (random.below(5000) as u64, random.below(5000) as u64);
        match random.below(10) {
            1 if !buffers.is_empty() => Instruction::Reclaim { buffer },
            2 if !buffers.is_empty() => Instruction::Pack { from: part(random), element: 8, buffer, at },
            3 if !buffers.is_empty() => Instruction::Send { buffer, at, bytes, round: RoundId(3) },
            4 => Instruction::Await {
                peer: delta(random),
                frame: random.one_of(&[Frame::Entry, Frame::Data { bytes }, Frame::Done]),
            },
            5 => Instruction::Copy {
                from: part(random),
                to: part(random),
                op: op(random),
                element: element(random),
            },
            6 => Instruction::Unpack {
                peer: delta(random),
                at,
                to: part(random),
                op: op(random),
                element: element(random),
            },
            7 => Instruction::Release { peer: delta(random) },
            8 => Instruction::Done { peer: delta(random) },
            9 if !buffers.is_empty() => Instruction::Combine {
                from: part(random),
                into: datatype(random),
                op: random.one_of(&Op::ALL),
                element: element(random),
                buffer,
                at,
            },
            _ => Instruction::Expose { peer: delta(random) },
        }
    });
    Program {
        least_len: (0..windows).map(|_| random.below(10_000)).collect(),
        pattern: Pattern { operations: operations.iter().cloned().collect() },
        routes: routes.into_iter().collect(),
        buffers: buffers.iter().cloned().collect(),
        instructions,
    }
}

// A second implementation of the format, written only from its description.
const HEADER: usize = 56;
const ENTRY: usize = 32;

fn number(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

fn taken_apart(file: &[u8]) -> Vec<([u8; 8], Vec<u8>)> {
    let entries = file[HEADER..].chunks(ENTRY).take(7);
    entries.map(|e| (e[..8].try_into().unwrap(), file[number(e, 8)..][..number(e, 16)].to_vec())).collect()
}

fn put_together(sections: &[([u8; 8], Vec<u8>)]) -> Vec<u8> {
    let mut offset = HEADER + ENTRY * sections.len();
    let mut table = Vec::new();
    let mut identity = 2u32.to_le_bytes().to_vec();
    for (i, (name, bytes)) in sections.iter().enumerate() {
        table.extend(name);
        table.extend((offset as u64).to_le_bytes());
        table.extend((bytes.len() as u64).to_le_bytes());
        table.extend(&blake3::hash(bytes).as_bytes()[..8]);
        offset += bytes.len();
        if i < 5 {
            identity.extend(name);
            identity.extend((bytes.len() as u64).to_le_bytes());
            identity.extend(bytes);
        }
    }
    let mut file = b"\x89FPLAN\r\n".to_vec();
    file.extend(3u32.to_le_bytes());
    file.extend((sections.len() as u32).to_le_bytes());
    file.extend((offset as u64).to_le_bytes());
    file.extend(blake3::hash(&identity).as_bytes());
    file.extend(table);
    sections.iter().for_each(|(_, bytes)| file.extend(bytes));
    file
}

/// Returns patterns with the operations that the schedule lists as requested.
fn asked_by(schedule: &Schedule) -> Patterns {
    Patterns {
        name: schedule.name.clone(),
        windows: schedule.windows.clone(),
        shape: schedule.shape.clone(),
        classes: schedule.classes.values().map(|program| program.pattern.clone()).collect(),
        class_of: schedule.class_of.clone(),
        order: schedule.order,
        sync: schedule.sync,
    }
}

fn refused(file: &[u8], words: &[&str]) {
    let error = from_bytes(file).expect_err("this is not a plan");
    assert_eq!(error.class(), ErrorClass::File);
    for word in words {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
}

/// Edits a few bytes.
fn edit(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len().max(1));
    let to = (at + random.below(9)).min(bytes.len());
    match random.below(7) {
        0 => bytes.insert(at.min(bytes.len()), random.bits() as u8),
        1 if !bytes.is_empty() => drop(bytes.remove(at)),
        2 if !bytes.is_empty() => bytes[at] = random.one_of(&[0, 1, 2, 0x7f, 0x80, 0xff]),
        3 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        4 => {
            let part = bytes[at.min(to)..to].to_vec();
            let into = random.below(bytes.len() + 1);
            drop(bytes.splice(into..into, part));
        }
        5 => drop(bytes.splice(at.min(to)..to, *b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f")),
        6 => bytes.truncate(at),
        _ => {}
    }
}

#[test]
fn every_schedule_comes_back_as_it_was() {
    let mut lengths = 0;
    for seed in 0..3000 {
        let schedule = schedule(seed);
        let bytes = to_bytes(&schedule).unwrap();
        let (plan, peak) = peak(|| from_bytes(&bytes));
        let plan = plan.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(peak > 0 && peak <= justified(bytes.len()), "{peak} bytes for a file of {}", bytes.len());
        assert_eq!(plan.schedule, schedule, "seed {seed}");
        assert_eq!(plan.digest, schedule.digest());
        assert_eq!(to_bytes(&plan.schedule).unwrap(), bytes);
        assert_eq!(put_together(&taken_apart(&bytes)), bytes, "the format is as described");
        lengths += bytes.len();
    }
    assert!(lengths > 3000 * 300);
}

#[test]
fn how_it_synchronises_is_one_byte_and_another_value_is_refused() {
    for seed in 0..50 {
        let head = |sync| {
            let schedule = Schedule { sync, ..schedule(seed) };
            assert_eq!(from_bytes(&to_bytes(&schedule).unwrap()).unwrap().schedule.sync, sync);
            taken_apart(&to_bytes(&schedule).unwrap())
        };
        let (fence, mut posts) = (head(Sync::Fence), head(Sync::Pscw));
        assert_eq!(fence[1..5], posts[1..5]);
        let differs = |at: &usize| fence[0].1[*at] != posts[0].1[*at];
        let at: Vec<usize> = (0..fence[0].1.len()).filter(differs).collect();
        assert_eq!((at.len(), fence[0].1[at[0]], posts[0].1[at[0]]), (1, 0, 1));
        for byte in 2..=255 {
            posts[0].1[at[0]] = byte;
            refused(&put_together(&posts), &["a synchronisation"]);
        }
    }
}

#[test]
fn unequal_schedules_have_unequal_digests() {
    let digests: std::collections::HashSet<_> = (0..3000).map(|seed| schedule(seed).digest()).collect();
    assert_eq!(digests.len(), 3000);
    let mut other = schedule(1);
    other.shape.push(1);
    assert_ne!(other.digest(), schedule(1).digest());
    let digest = schedule(1).digest();
    assert_eq!(digest.to_string()[..16], format!("{:016x}", digest.short().swap_bytes()));
}

#[test]
fn a_plan_is_saved_and_loaded() {
    let folder = std::env::temp_dir().join(format!("fencepost-plan-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("halo.plan");
    save(&schedule(5), &path).unwrap();
    let plan = load(&path).unwrap();
    assert_eq!(plan.schedule, schedule(5));
    assert!(plan.made_by.starts_with("fencepost "));
    std::fs::write(&path, b"u = 1").unwrap();
    let error = load(&path).unwrap_err();
    assert_eq!(error.class(), ErrorClass::File);
    assert!(error.message().contains("halo.plan") && error.message().contains("not a plan file"), "{error}");
    assert_eq!(load(folder.join("none.plan")).unwrap_err().class(), ErrorClass::Io);
    assert_eq!(save(&schedule(5), folder.join("none/x.plan")).unwrap_err().class(), ErrorClass::Io);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Returns a record of the machine, the options and the recipe of a plan.
fn made_for() -> MadeFor {
    let machine = Machine { network: Machine::default().shared, ..Machine::default() };
    let options = Options { mode: Mode::Pipelined, chunk: Some(Bytes(4096)), ..Options::default() };
    let values = vec![("cells".into(), "[512, 512]".into()), ("deep".into(), String::new())];
    MadeFor { recipe: "exchange-64".into(), values, ..MadeFor::new(&machine, &options) }
}

#[test]
fn a_plan_remembers_what_it_was_made_for_outside_its_digest() {
    let folder = std::env::temp_dir().join(format!("fencepost-made-for-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("halo.plan");
    save_all([&schedule(5)], &made_for(), &path).unwrap();
    let plan = load(&path).unwrap();
    assert_eq!((plan.made_for, plan.digest), (Some(made_for()), schedule(5).digest()));
    assert_eq!(from_bytes(&to_bytes(&schedule(5)).unwrap()).unwrap().made_for, None);
    // A checksum covers the record, so a file in which a byte of the record is changed is refused.
    let good = std::fs::read(&path).unwrap();
    let at = good.windows(11).position(|bytes| bytes == b"exchange-64").expect("the recipe's name");
    for byte in at - 40..at + 11 {
        let mut changed = good.clone();
        changed[byte] ^= 1;
        assert!(from_bytes(&changed).unwrap_err().message().contains("checksum"));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_plans_of_several_epochs_are_one_file() {
    let folder = std::env::temp_dir().join(format!("fencepost-plans-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("steps.plan");
    let epochs = [schedule(5), schedule(6), schedule(5)];
    save_all(&epochs, &made_for(), &path).unwrap();
    let plans: Vec<Schedule> = load_all(&path).unwrap().into_iter().map(|plan| plan.schedule).collect();
    assert_eq!(plans, epochs);
    assert!(load(&path).unwrap_err().message().contains("behind its end"), "one plan is asked for");
    let good = std::fs::read(&path).unwrap();
    save_all(&epochs[..1], &made_for(), &path).unwrap();
    let first = std::fs::read(&path).unwrap().len();
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load_all(&path)
    };
    // A file is refused if it is cut anywhere except between two plans, or if bytes are inserted or
    // appended.
    let ends = [first - 1, first, first + 1, first + 40, good.len() - first, good.len() - 1];
    for end in ends.into_iter().chain((0..good.len()).step_by(61)) {
        let whole = end == first || good.len() - end == first;
        assert_eq!(read(&good[..end]).is_ok(), whole, "{end} of {} bytes", good.len());
    }
    let error = read(&[&good[..], b"x"].concat()).unwrap_err();
    assert!(error.message().contains("after the plans of 3 epochs"), "{error}");
    for at in [16, 17, 23, first + 16, first + 23] {
        let mut edited = good.clone();
        edited[at] ^= 1;
        assert_eq!(read(&edited).unwrap_err().class(), ErrorClass::File, "byte {at}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn each_defect_of_a_file_is_named_in_its_error() {
    let good = to_bytes(&schedule(7)).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    refused(&[], &["empty"]);
    refused(b"#!/bin/sh\necho", &["not a plan file", "begins with"]);
    refused(&with(0, b"\x09"), &["not a plan file"]);
    refused(&good[..good.len() - 1], &["truncated", &format!("{} bytes of {}", good.len() - 1, good.len())]);
    refused(&good[..20], &["truncated", "20 bytes"]);
    refused(&[&good[..], b"x"].concat(), &["1 bytes behind its end"]);
    refused(&with(8, &4u32.to_le_bytes()), &["format version 4", "update Fencepost"]);
    refused(&with(8, &2u32.to_le_bytes()), &["format version 2", "compile the plan again"]);
    refused(&with(8, &0u32.to_le_bytes()), &["format version 0", "compile the plan again"]);
    refused(&with(12, &6u32.to_le_bytes()), &["6 sections"]);
    refused(&with(16, &u64::MAX.to_le_bytes()), &["truncated"]);
    refused(&with(16, &1u64.to_le_bytes()), &["behind its end"]);
    refused(&with(24, &[0; 32]), &["edited"]);
    refused(&with(HEADER, b"programs"), &["`programs`", "expected `schedule`"]);
    for i in 0..6 {
        for (field, value) in [(8, u64::MAX), (16, u64::MAX), (8, 0), (16, 0), (8, 1 << 63), (16, 1 << 63)] {
            if number(&good, HEADER + ENTRY * i + field) as u64 != value {
                refused(&with(HEADER + ENTRY * i + field, &value.to_le_bytes()), &["damaged"]);
            }
        }
    }
    refused(&with(good.len() - 1, &[good[good.len() - 1] ^ 1]), &["checksum", "`made by`"]);
}

#[test]
fn every_truncation_is_refused() {
    for seed in 0..40 {
        let good = to_bytes(&schedule(seed)).unwrap();
        for length in 0..good.len() {
            refused(&good[..length], &[if length == 0 { "empty" } else { "truncated" }]);
        }
    }
}

/// Returns how much memory may be used to read a file of `length` bytes, if the file is for few
/// ranks.
fn justified(length: usize) -> isize {
    300 * length as isize + (64 << 10)
}

#[test]
fn no_edit_goes_unseen() {
    let random = &mut Random::new(1);
    let files: Vec<Vec<u8>> = (0..50).map(|seed| to_bytes(&schedule(seed)).unwrap()).collect();
    for _ in 0..100_000 {
        let good = random.one_of(&files);
        let mut file = good.clone();
        (0..1 + random.below(3)).for_each(|_| edit(random, &mut file));
        let (result, peak) = peak(|| from_bytes(&file));
        assert!(result.is_err() || file == good);
        assert!(peak <= justified(file.len()), "{peak} bytes for a file of {}", file.len());
    }
}

/// Sections are edited, and then the checksums and the digest are made to match again. A file that
/// is still accepted must be a plan in its only encoding.
#[test]
fn edits_with_good_digests_are_refused_or_are_plans() {
    let random = &mut Random::new(2);
    let files: Vec<Vec<u8>> = (0..200).map(|seed| to_bytes(&schedule(seed)).unwrap()).collect();
    let mut accepted = 0;
    for _ in 0..100_000 {
        let mut sections = taken_apart(&random.one_of(&files));
        for _ in 0..1 + random.below(2) {
            let section = random.below(6);
            edit(random, &mut sections[section].1);
        }
        let file = put_together(&sections);
        let (result, peak) = peak(|| from_bytes(&file));
        assert!(peak <= justified(file.len()), "{peak} bytes for a file of {}", file.len());
        match result {
            Err(error) => assert_eq!(error.class(), ErrorClass::File, "{error}"),
            Ok(plan) => {
                accepted += 1;
                // Encoding the plan again gives the same bytes, except for the name of the program
                // that wrote the file.
                let again = to_bytes(&plan.schedule).unwrap();
                assert_eq!(taken_apart(&again)[..5], sections[..5]);
                assert_eq!(plan.digest, plan.schedule.digest());
                // The verifier has a verdict on every file that can be read.
                let patterns = asked_by(&plan.schedule);
                drop(verify(&patterns, plan.schedule));
            }
        }
    }
    assert!((1000..60_000).contains(&accepted), "{accepted}");
}

#[test]
fn random_bytes_are_refused() {
    let random = &mut Random::new(3);
    for _ in 0..10_000 {
        let mut file: Vec<u8> = random.many(400, |random| random.bits() as u8);
        if random.below(2) == 0 && file.len() > 24 {
            let length = file.len() as u64;
            file[..8].copy_from_slice(b"\x89FPLAN\r\n");
            file[8..16].copy_from_slice(&[1, 0, 0, 0, 6, 0, 0, 0]);
            file[16..24].copy_from_slice(&length.to_le_bytes());
        }
        refused(&file, &[]);
    }
}

/// Encodes a number in base 128, as in the format.
fn word(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Returns a file of few bytes that consistently claims `ranks` ranks.
fn few_bytes_for(ranks: u64) -> Vec<u8> {
    let mut small = schedule(0);
    small.name = String::new();
    small.windows = [ElementType::opaque(1)].into_iter().collect();
    (small.shape, small.class_of) = (vec![1], vec![ClassId(0)]);
    let nothing = Program {
        pattern: Pattern::default(),
        routes: Default::default(),
        least_len: [0].into_iter().collect(),
        buffers: Default::default(),
        instructions: Vec::new(),
    };
    small.classes = [nothing].into_iter().collect();
    let mut sections = taken_apart(&to_bytes(&small).unwrap());
    let ranks = word(ranks);
    // The new section has the name, the ranks and one extent. The windows, the order and the
    // placement are unchanged.
    let head = sections[0].1.clone();
    sections[0].1 = [&head[..1], &ranks, &[1], &ranks, &head[4..]].concat();
    // This section has one class, one level, one line and one run.
    sections[1].1 = [&[1, 1, 1, 1][..], &ranks, &[0]].concat();
    put_together(&sections)
}

#[test]
fn the_number_of_ranks_is_bounded() {
    assert_eq!(from_bytes(&few_bytes_for(100_172)).unwrap().schedule.class_of.len(), 100_172);
    for ranks in [0, u64::from(RANKS_MAX) + 1, u64::from(u32::MAX), u64::MAX] {
        let (_, peak) = peak(|| refused(&few_bytes_for(ranks), &["section `schedule`"]));
        assert!(peak < 1 << 16, "{peak}");
    }
}

/// Creates a new folder for the files of one test only.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("fencepost-plan-{name}-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn a_file_that_is_read_while_it_is_written_is_one_plan_or_the_other() {
    let folder = folder("while");
    let (path, plans) = (folder.join("halo.plan"), [schedule(11), schedule(12)]);
    save(&plans[0], &path).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let done = &done;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut read = 0;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) || read == 0 {
                        match load(&path) {
                            Ok(plan) => assert!(plans.contains(&plan.schedule)),
                            Err(error) => return Err(error.to_string()),
                        }
                        read += 1;
                    }
                    Ok(())
                })
            })
            .collect();
        let writers: Vec<_> =
            plans.iter().map(|plan| scope.spawn(|| (0..200).try_for_each(|_| save(plan, &path)))).collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(written.iter().all(Result::is_ok), "{written:?}");
        for reader in readers {
            assert_eq!(reader.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no other file is left");
    std::fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_file_that_is_not_regular_is_refused_at_once() {
    let folder = folder("fifo");
    let path = folder.join("fifo.plan");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (tell, told) = std::sync::mpsc::channel();
    let of = path.clone();
    std::thread::spawn(move || tell.send((load(&of).map(drop), load_all(&of).map(drop))));
    let (one, all) =
        told.recv_timeout(std::time::Duration::from_secs(20)).expect("nobody waits for a writer");
    for refused in [one, all, load(&folder).map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.class(), ErrorClass::File, "{error}");
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
    for refused in [save(&schedule(11), &path), save(&schedule(11), &folder)] {
        assert_eq!(refused.unwrap_err().class(), ErrorClass::Io);
    }
    // A link is followed, and is not replaced.
    let (link, file) = (folder.join("link.plan"), folder.join("file.plan"));
    save(&schedule(11), &file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    save(&schedule(12), &link).unwrap();
    assert_eq!(load(&file).unwrap().schedule, schedule(12));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3, "no other file is left");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn numbers_have_one_spelling() {
    let good = taken_apart(&to_bytes(&schedule(11)).unwrap());
    for section in 0..5 {
        // The first number of each section is below 128 here, so one byte would hold it. The test
        // writes the number in two bytes.
        let mut sections = good.clone();
        let first = sections[section].1[0];
        assert!(first < 0x80);
        sections[section].1.splice(..1, [first | 0x80, 0]);
        refused(&put_together(&sections), &["shortest"]);
    }
}

#[test]
fn tables_hold_what_is_referred_to_and_no_more() {
    // No call is in a source file with this name.
    let good = taken_apart(&to_bytes(&schedule(11)).unwrap());
    let mut sections = good.clone();
    sections[2].1[0] += 1;
    sections[2].1.extend(b"\x04none");
    refused(&put_together(&sections), &["canonical encoding"]);
    // A line of three ranks of one class is encoded as two runs, although one run would be enough.
    let mut sections = taken_apart(&few_bytes_for(3));
    sections[1].1 = vec![1, 1, 1, 2, 1, 0, 2, 0];
    refused(&put_together(&sections), &["canonical encoding"]);
}

#[test]
fn the_first_difference_is_named_with_both_lines() {
    let operation = |target: i64, line| Operation {
        kind: Kind::Put,
        window: WindowId(0),
        target: Some(Delta(target)),
        remote: Datatype::run(0..4),
        local: Local::Buffer,
        mode: Mode::Auto,
        site: Site { file: "halo.rs".into(), line, column: 5 },
    };
    let pattern = |operations: &[Operation]| Pattern { operations: operations.iter().cloned().collect() };
    let planned = pattern(&[operation(1, 10), operation(2, 11)]);

    assert_eq!(difference(&pattern(&[operation(1, 20), operation(2, 31)]), &planned), None);
    assert_eq!(difference(&Pattern::default(), &Pattern::default()), None);
    let changed = difference(&pattern(&[operation(1, 20), operation(3, 31)]), &planned).unwrap();
    assert_eq!(changed.operation, OperationId(1));
    assert_eq!(
        changed.to_string(),
        "operation 1 at halo.rs:31 is not as planned at halo.rs:11: its target is +3, in the plan it is +2"
    );
    let more =
        difference(&pattern(&[operation(1, 20), operation(2, 31), operation(2, 32)]), &planned).unwrap();
    assert_eq!(more.to_string(), "operation 2 at halo.rs:32 is one more than the plan has");
    let fewer = difference(&pattern(&[operation(1, 20)]), &planned).unwrap();
    assert_eq!(fewer.to_string(), "the plan has an operation 1, from halo.rs:11, that is not called");

    let edits: [fn(&mut Operation); 6] = [
        |operation| operation.kind = Kind::Accumulate(Op::Sum),
        |operation| operation.window = WindowId(1),
        |operation| operation.target = None,
        |operation| operation.remote = Datatype::run(0..5),
        |operation| operation.local = Local::Section { window: WindowId(0), datatype: Datatype::run(0..4) },
        |operation| operation.mode = Mode::Direct,
    ];
    let names = ["kind", "window", "target is", "target datatype", "origin", "mode"];
    for (edit, name) in edits.into_iter().zip(names) {
        let mut mine = operation(1, 10);
        edit(&mut mine);
        let text = difference(&pattern(&[mine, operation(2, 11)]), &planned).unwrap().to_string();
        assert!(text.contains(&format!("its {name}")), "{text}");
    }
}
