//! [`compile`]: the plans of recipes, which a program compiles unless they are stencils.

use crate::plans::{Compilation, Made, here};
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::{self, Recipe};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the plan or the error of each recipe. Stencils are compiled here. For the other plans
/// the program that `program` returns is started, if there are any: it compiles them instead of
/// entering its first world, and then ends.
///
/// The program's standard output goes to standard error, to keep it out of the output of the
/// command that calls this.
///
/// # Errors
/// Those of `program`. States why the program cannot be started, or how it ended without compiling
/// the plans.
pub fn compile<A: AsRef<OsStr>>(
    program: impl FnOnce() -> Result<PathBuf, String>,
    arguments: &[A],
    recipes: &[Recipe],
) -> Result<Vec<Compilation>, String> {
    let asked: Vec<Recipe> = recipes.iter().filter(|recipe| !recipe.is_stencil).cloned().collect();
    let answers = if asked.is_empty() { Vec::new() } else { answers(&program()?, arguments, &asked)? };
    let mut answers = answers.into_iter();
    let of = |recipe: &Recipe| if recipe.is_stencil { Some(here(recipe)) } else { answers.next() };
    Ok(recipes.iter().filter_map(of).collect())
}

/// Returns the answers of a program.
fn answers<A: AsRef<OsStr>>(
    program: &Path,
    arguments: &[A],
    recipes: &[Recipe],
) -> Result<Vec<Compilation>, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("a folder for plans: {error}"))?;
    let io = |error: std::io::Error| format!("{}: {error}", folder.path().display());
    std::fs::write(folder.path().join("recipes"), recipe::written(recipes)).map_err(io)?;
    let mut command = Command::new(program);
    command.args(arguments).env("FENCEPOST_COMPILE", folder.path()).stdin(Stdio::null());
    command.stdout(std::io::stderr());
    let status = command.status().map_err(|error| format!("{}: {error}", program.display()))?;
    // The program's own file is kept, so that program and plan are of one release.
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
    let shown = program.display();
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
