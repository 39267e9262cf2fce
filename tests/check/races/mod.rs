//! The 92 MPI-2 cases of RMARaceBench (Schwitanski, Jenke, Klotz, Müller: Correctness 2023),
//! rewritten from their descriptions. Each case has its original name and verdict. Its result here
//! is in [`How`]. As in the original, rank 1 owns the elements, and ranks 0 and 2 access them. If a
//! conflict is found, `// CONFLICT` marks its two lines.

mod atomic;
mod conflict;
mod hybrid;
mod misc;
mod sync;

use crate::ends::{End, ends};
use crate::table::row;
use fencepost::prelude::*;
use fencepost::{Check, Locked, TransportKind};
use std::fmt::Write;

/// The result of a case.
pub(crate) enum How {
    /// The program runs. Its name states whether a conflict is found.
    Runs(fn(&World) -> Result<()>),
    /// The program is a race in RMARaceBench. Here it has a defined meaning, and the text is the
    /// reason. The program runs, and no conflict is reported.
    Defined(&'static str, fn(&World) -> Result<()>),
    /// The call in the marked line is an error of this class, on one rank.
    Told(ErrorClass, fn(&World) -> Result<()>),
    /// The program does not compile. The text is the heading of the program in `src/refused.rs`.
    Refused(&'static str),
}

/// A case: its name, which ends in its original verdict, and its result here.
pub(crate) type Case = (&'static str, How);

/// A suite: its file, the text of the file, its cases, and the number of cases.
type Suite = (&'static str, &'static str, &'static [Case], usize);

const SUITES: [Suite; 5] = [
    ("conflict.rs", include_str!("conflict.rs"), conflict::CASES, 21),
    ("sync.rs", include_str!("sync.rs"), sync::CASES, 21),
    ("atomic.rs", include_str!("atomic.rs"), atomic::CASES, 10),
    ("misc.rs", include_str!("misc.rs"), misc::CASES, 18),
    ("hybrid.rs", include_str!("hybrid.rs"), hybrid::CASES, 22),
];

/// Runs an epoch with the calls `act` on the part of rank 1, under a lock of type `kind`.
pub(crate) fn under(
    u: &LockWindow<u64>,
    kind: LockType,
    act: impl FnOnce(&Locked<'_, u64>) -> Result<()>,
) -> Result<()> {
    let lock = u.lock(1, kind)?;
    act(&lock)?;
    lock.unlock()
}

/// Changes a window back to one for fences, even if an epoch has failed. All ranks are then
/// notified of the conflicts that were found.
pub(crate) fn over(u: LockWindow<u64>, ended: Result<()>) -> Result<()> {
    let changed = u.into_window();
    ended.and(changed.map(drop).map_err(Into::into))
}

/// Rank 0 and rank 2 each access the part of rank 1 in a shared epoch.
pub(crate) fn shared(
    world: &World,
    first: fn(&Locked<'_, u64>) -> Result<()>,
    second: fn(&Locked<'_, u64>) -> Result<()>,
) -> Result<()> {
    let u = world.lock_window::<u64>(16)?;
    let ended = match world.rank() {
        0 => under(&u, LockType::Shared, first),
        2 => under(&u, LockType::Shared, second),
        _ => Ok(()),
    };
    over(u, ended)
}

/// Rank 0 accesses the part of rank 1 in a shared epoch, and rank 1 reads the element at `load` in
/// another shared epoch.
pub(crate) fn loaded(
    world: &World,
    first: fn(&Locked<'_, u64>) -> Result<()>,
    load: fn(&fencepost::LocalPart<'_, u64>) -> Result<u64>,
) -> Result<()> {
    let u = world.lock_window::<u64>(16)?;
    let ended = match world.rank() {
        0 => under(&u, LockType::Shared, first),
        1 => u.local(load).map(drop),
        _ => Ok(()),
    };
    over(u, ended)
}

/// Returns the numbers of the marked lines of a case.
fn marked(text: &str, name: &str) -> Vec<usize> {
    let own = text.lines().enumerate().skip_while(|(_, line)| !line.contains(&format!("\"{name}\"")));
    let own = own.enumerate().take_while(|(i, (_, line))| *i == 0 || !line.trim_start().starts_with("(\""));
    own.filter(|(_, (_, line))| line.contains("// CONFLICT")).map(|(_, (at, _))| at + 1).collect()
}

/// Returns whether a conflict was found in these lines and reported to all ranks. Both the rank
/// that owns the elements and another rank of the conflict must have reported it. If both accesses
/// are of rank 1, only that rank may report the conflict, at its call.
fn is_found(file: &str, lines: &[usize], is_remote: bool, ends: &[End]) -> bool {
    let named = |text: &str| lines.iter().all(|line| text.contains(&format!("races/{file}:{line}")));
    let told = |class: &ErrorClass| matches!(class, ErrorClass::RmaConflict | ErrorClass::RmaSync);
    let part = |end: &End| end.as_ref().is_err_and(|(class, _)| *class == ErrorClass::RmaConflict);
    let all = |end: &End| end.as_ref().is_err_and(|(class, text)| told(class) && named(text));
    let others = (0..4).filter(|rank| *rank != 1);
    lines.len() == 2
        && part(&ends[1])
        && all(&ends[1])
        && match is_remote {
            true => (part(&ends[0]) || part(&ends[2])) && ends.iter().all(all),
            false => others.map(|rank| &ends[rank]).all(End::is_ok),
        }
}

/// Runs all cases on these transports. Returns the table of their results.
///
/// # Panics
/// Panics if the result of a case differs from its entry.
pub(crate) fn judged(transports: &[TransportKind]) -> String {
    let (mut table, mut wrong) = (String::new(), String::new());
    let (mut all, mut races) = (0, 0);
    let refused = include_str!("../../../src/refused.rs");
    for (file, text, suite, count) in SUITES {
        assert_eq!(suite.len(), count, "{file}");
        for (name, how) in suite {
            let (lines, yes) = (marked(text, name), name.ends_with("-yes"));
            let run = |program: &fn(&World) -> Result<()>, judge: &dyn Fn(&[End]) -> bool| {
                let mut wrong = String::new();
                for transport in transports {
                    let ends = ends(transport, Check::Conflicts, |world| {
                        let ended = program(world);
                        ended.and(world.barrier())
                    });
                    match ends {
                        Ok(ends) if judge(&ends) => {}
                        ends => drop(writeln!(wrong, "{name} on {transport:?}: {ends:?}")),
                    }
                }
                wrong
            };
            let silent = |ends: &[End]| ends.iter().all(End::is_ok);
            let becomes = match how {
                How::Runs(program) if yes => {
                    wrong += &run(program, &|ends| is_found(file, &lines, name.contains("-remote-"), ends));
                    let by = if name.contains("-remote-") { ", told to all" } else { " at the call" };
                    format!("found in {file}:{lines:?}{by}")
                }
                How::Runs(program) => {
                    wrong += &run(program, &silent);
                    "silent".to_owned()
                }
                How::Defined(why, program) => {
                    wrong += &run(program, &silent);
                    format!("defined: {why}")
                }
                How::Told(class, program) => {
                    let [line] = &lines[..] else { panic!("{name}: {lines:?}") };
                    let told = |end: &End| {
                        let text = format!("races/{file}:{line}:");
                        end.as_ref().is_err_and(|(found, said)| found == class && said.contains(&text))
                    };
                    wrong += &run(program, &|ends| ends.iter().filter(|end| told(end)).count() == 1);
                    format!("{class:?} at {file}:{line}")
                }
                How::Refused(what) => {
                    assert!(refused.contains(what), "{name}: no program in src/refused.rs is: {what}");
                    format!("does not compile: {what}")
                }
            };
            assert!(lines.is_empty() != matches!(how, How::Told(..)) || yes, "{name}: {lines:?}");
            let mode = match how {
                How::Refused(_) => "the compiler",
                How::Told(..) => "always",
                _ => "conflicts",
            };
            table += &row(&format!("RMARaceBench {}/{name}", &file[..file.len() - 3]), &becomes, mode);
            (all, races) = (all + 1, races + usize::from(yes));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!((all, races), (92, 53));
    format!("{table}{all} cases of RMARaceBench, {races} of them with a race\n")
}
