//! [`compile`] gets the plans of recipes. Plans of stencils are compiled here, and other plans by a
//! program.

use crate::plans::{Compilation, Made, here};
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::{self, Recipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Returns the plan or the error of each recipe. Stencils are compiled here. If there are other
/// plans, the program that `program` returns is started. That program compiles the other plans
/// instead of entering its first world, and then ends.
///
/// The program's standard output goes to standard error, to keep it out of the output of the
/// calling command.
///
/// # Errors
/// Those of `program`. If the program cannot be started, or ends without compiling the plans, the
/// error states why. A program that has not entered a world within `limit` is ended, unless `limit`
/// is 0.
pub fn compile<A: AsRef<OsStr>>(
    program: impl FnOnce() -> Result<PathBuf, String>,
    arguments: &[A],
    limit: Duration,
    recipes: &[Recipe],
) -> Result<Vec<Compilation>, String> {
    let asked: Vec<Recipe> = recipes.iter().filter(|recipe| !recipe.is_stencil).cloned().collect();
    let answers = if asked.is_empty() { Vec::new() } else { answers(&program()?, arguments, limit, &asked)? };
    let mut answers = answers.into_iter();
    let of = |recipe: &Recipe| if recipe.is_stencil { Some(here(recipe)) } else { answers.next() };
    Ok(recipes.iter().filter_map(of).collect())
}

/// Starts a program. Returns its answer to each recipe: a plan or an error.
fn answers<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    limit: Duration,
    recipes: &[Recipe],
) -> Result<Vec<Compilation>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a folder for plans: {error}"))?;
    let io = |error: io::Error| format!("{}: {error}", folder.path().display());
    std::fs::write(folder.path().join("recipes"), recipe::written(recipes)).map_err(io)?;
    let mut command = Command::new(program);
    command.args(arguments).env("FENCEPOST_COMPILE", folder.path()).stdin(Stdio::null());
    command.stdout(io::stderr());
    let shown = program.display();
    let entered = folder.path().join("entered");
    let most = Some(limit).filter(|limit| !limit.is_zero());
    let ended = command.spawn().and_then(|child| ended(child, most, || entered.exists()));
    let Some(status) = ended.map_err(|error| format!("{shown}: {error}"))? else {
        return Err(format!(
            "{shown} has not entered a world within {limit:?}, so it was ended and compiled no plans: with these arguments, it must call `fencepost::run`, `collect`, `launch` or `process`; give a longer --limit if it does so later"
        ));
    };
    // The bytes that the program wrote are kept. If this command wrote the plan again, program and
    // plan could be of different releases.
    let read = |path: &Path| -> Compilation {
        let file = std::fs::read(path).map_err(io)?;
        let plan = Compiled::open(path).map_err(|error| error.message().to_owned())?;
        Ok(Made { plan, file })
    };
    let answer = |number: usize| -> Option<Compilation> {
        let file = folder.path().join(format!("{number}.plan"));
        let failed = std::fs::read_to_string(file.with_extension("error")).ok();
        failed.map(Err).or_else(|| file.exists().then(|| read(&file)))
    };
    let answers: Vec<Option<Compilation>> = (0..recipes.len()).map(answer).collect();
    if folder.path().join("answered").exists() {
        let missing = || Err("the program wrote neither a plan nor an error for this recipe".to_owned());
        return Ok(answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect());
    }
    Err(match recipes.iter().zip(&answers).find(|(_, answer)| answer.is_none()) {
        _ if status.success() => format!(
            "{shown} ended without entering a world, so it compiled no plans: with these arguments, it must call `fencepost::run`, `collect`, `launch` or `process`, and it must be built with this release"
        ),
        Some((recipe, _)) if answers.iter().any(Option::is_some) || !status.success() => {
            format!("{shown} ended ({status}) before it compiled the plan {}", recipe.name)
        }
        _ => format!("{shown}: {status}"),
    })
}

/// Waits until a program has ended, and returns its exit status. If the program has not ended
/// within `limit`, and `has_entered` then returns false, ends the program and returns `None`.
fn ended(
    mut child: Child,
    limit: Option<Duration>,
    has_entered: impl FnOnce() -> bool,
) -> io::Result<Option<ExitStatus>> {
    // Kernels before Linux 5.3 have no such descriptor. With these kernels there is no limit.
    let Ok(process) = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) else {
        return child.wait().map(Some);
    };
    let began = Instant::now();
    let has_ended = loop {
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], left.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            polled => break polled? > 0,
        }
    };
    if !has_ended && !has_entered() {
        child.kill()?;
        child.wait()?;
        return Ok(None);
    }
    child.wait().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_has_entered_a_world_has_as_long_as_it_needs() {
        let start = || {
            let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
            let input = child.stdin.take();
            (child, input)
        };
        // The program ends when its input ends, which is after the limit.
        let (child, input) = start();
        let status = ended(child, Some(Duration::ZERO), || {
            drop(input);
            true
        });
        assert!(status.unwrap().unwrap().success());
        let (child, input) = start();
        assert_eq!(ended(child, Some(Duration::ZERO), || false).unwrap(), None);
        drop(input);
        let (child, input) = start();
        drop(input);
        let status = ended(child, None, || panic!("it has ended before")).unwrap();
        assert!(status.unwrap().success());
    }
}
