//! The results of the ranks of a program. The ranks are threads or processes.

use fencepost::prelude::*;
use fencepost::{Check, Ranks, TransportKind, ranks};

/// The result of one rank.
pub(crate) type End = std::result::Result<(), (ErrorClass, String)>;

/// Returns whether the ranks are processes.
pub(crate) fn are_processes(transport: &TransportKind) -> bool {
    matches!(transport, TransportKind::Shm | TransportKind::Tcp)
}

/// Returns the lowest rank of this process.
pub(crate) fn lowest(transport: &TransportKind) -> usize {
    let process = are_processes(transport).then(fencepost::process);
    process.map_or(0, |process| process.expect("it has joined").expect("a rank").rank)
}

fn write(end: &End) -> Vec<u8> {
    let Err((class, text)) = end else { return Vec::new() };
    let class = ErrorClass::ALL.iter().position(|known| known == class).expect("a class") as u8;
    [&[class], text.as_bytes()].concat()
}

fn read(bytes: &[u8]) -> End {
    let Some((class, text)) = bytes.split_first() else { return Ok(()) };
    Err((ErrorClass::ALL[usize::from(*class)], String::from_utf8_lossy(text).into_owned()))
}

/// Runs a program on four ranks, and returns the result of each rank. In a job, each process
/// returns the results of all ranks.
pub(crate) fn ends(
    transport: &TransportKind,
    check: Check,
    program: impl Fn(&World) -> Result<()> + Sync,
) -> Result<Vec<End>> {
    ends_of(ranks(4).transport(transport.clone()).check(check), transport, program)
}

/// Like [`ends`], runs a program and returns the result of each rank. `asked` has the settings of
/// the world, which include `transport`.
pub(crate) fn ends_of(
    asked: Ranks,
    transport: &TransportKind,
    program: impl Fn(&World) -> Result<()> + Sync,
) -> Result<Vec<End>> {
    let all = asked.collect(|world| {
        let end = program(world).map_err(|error| (error.class(), error.to_string()));
        if !are_processes(transport) {
            return Ok(vec![end]);
        }
        let all = world.allgather(&write(&end))?;
        Ok(all.iter().map(|bytes| read(bytes)).collect())
    });
    Ok(all?.into_iter().flatten().collect())
}
