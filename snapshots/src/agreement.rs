//! Agreement of ranks on errors, and reports on standard error.

use fencepost_planner::element::Op;
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::World;

/// Returns the value if every rank has a value. Otherwise returns an error on all ranks, with the
/// reason of the lowest rank whose `result` is an error.
#[track_caller]
pub(crate) fn agreed<T>(world: &World, result: Result<T, String>) -> Result<T> {
    agreed_as(world, ErrorClass::Io, result)
}

/// Does the same as [`agreed`], with an error of this class.
#[track_caller]
pub(crate) fn agreed_as<T>(world: &World, class: ErrorClass, result: Result<T, String>) -> Result<T> {
    let ok = world.allreduce_one(u64::from(result.is_err()), Op::Max)? == 0;
    match result {
        Ok(value) if ok => Ok(value),
        result => {
            let why = result.err().unwrap_or_default();
            Err(Error::new(class, first_reason(world, &why)?))
        }
    }
}

/// Returns, on all ranks, the reason of the lowest rank whose `why` is not empty. All ranks call
/// this.
pub(crate) fn first_reason(world: &World, why: &str) -> Result<String> {
    let reasons = world.gather(0, why.as_bytes())?;
    let mut first = reasons.map_or(Vec::new(), |reasons| {
        let rank = reasons.iter().position(|why| !why.is_empty()).unwrap_or(0);
        format!("rank {rank}: {}", String::from_utf8_lossy(&reasons[rank])).into_bytes()
    });
    world.broadcast_vec(0, &mut first)?;
    Ok(String::from_utf8_lossy(&first).into_owned())
}

/// Writes a line to standard error. A line that cannot be written is lost.
#[expect(clippy::print_stderr, reason = "tests capture what this macro prints")]
pub(crate) fn print(line: &str) {
    let _ = std::panic::catch_unwind(|| eprintln!("fencepost: {line}"));
}
