//! [`answer_if_asked`]: compiles the requested plans and ends the program, if the command
//! `fencepost` has started the program for that purpose.

use crate::state::environment::{print, text};
use crate::supersteps::recipe::{self, Recipe};
use fencepost_planner::{Error, ErrorClass, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The variable that names the folder in which a program finds the requests.
const VARIABLE: &str = "FENCEPOST_COMPILE";

/// Compiles the plans that the recipes in the folder of [`VARIABLE`] request, writes them to that
/// folder, and ends the program. Returns at once if the variable is not set.
///
/// The file `recipes` has the recipes. The program first writes the empty file `entered`. For
/// recipe `n`, counted from 0, it writes the plan to `n.plan`, or an error to `n.error`. Last it
/// writes the empty file `answered`.
pub(crate) fn answer_if_asked() {
    let folder = match text(VARIABLE) {
        Ok(None) => return,
        Ok(Some(folder)) => Ok(folder),
        Err(error) => Err(error),
    };
    let code = match folder.and_then(|folder| answer(Path::new(&folder))) {
        Ok(()) => 0,
        Err(error) => {
            print(&error.to_string());
            1
        }
    };
    std::process::exit(code)
}

fn answer(folder: &Path) -> Result<()> {
    let io = |file: &Path, error: std::io::Error| {
        let message = format!("{VARIABLE}: {}: {error}", file.display());
        Error::new(ErrorClass::Io, message).because(error)
    };
    let file = folder.join("entered");
    std::fs::write(&file, "").map_err(|error| io(&file, error))?;
    let file = folder.join("recipes");
    let text = std::fs::read_to_string(&file).map_err(|error| io(&file, error))?;
    for (number, recipe) in recipe::read_written(&text)?.iter().enumerate() {
        let file = folder.join(format!("{number}.plan"));
        // A panic was printed; the other plans are compiled nevertheless.
        let compiled = catch_unwind(AssertUnwindSafe(|| compiled(recipe, &file)));
        let failed = match compiled {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.to_string(),
            Err(payload) => format!("the plan's expression panicked: {}", why(&*payload)),
        };
        let file = file.with_extension("error");
        std::fs::write(&file, failed).map_err(|error| io(&file, error))?;
    }
    let file = folder.join("answered");
    std::fs::write(&file, "").map_err(|error| io(&file, error))
}

/// Returns the text of a panic.
fn why(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a text")
}

fn compiled(recipe: &Recipe, file: &Path) -> Result<()> {
    recipe.compile()?.save(file)
}
