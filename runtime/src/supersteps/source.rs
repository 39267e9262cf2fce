//! [`PlanSource`]: where `name::load` takes a plan from.

use crate::state::world::WorldCore;
use crate::supersteps::state::Superstep;
use fencepost_planner::plan::{self, Plan};
use fencepost_planner::{Error, ErrorClass, Result};
use std::path::{Path, PathBuf};

/// A source from which `name::load` takes the plan of a superstep: the path of a file that `save`
/// wrote, the bytes of such a file (`include_bytes!("exchange-64.plan")`), or the path of a folder.
/// In a folder, `load` takes the file with the name of the superstep and the number of ranks:
/// `exchange-64.plan`. If the folder has no such file, `load` prepares the superstep.
pub trait PlanSource {
    /// Returns the path or the bytes.
    fn plan_source(&self) -> Source<'_>;
}

/// A path, or the bytes of a file.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The path of a file or of a folder.
    Path(&'a Path),
    /// The bytes of a file.
    Bytes(&'a [u8]),
}

macro_rules! paths {
    ($($path:ty)*) => {
        $(impl PlanSource for $path {
            fn plan_source(&self) -> Source<'_> {
                Source::Path(self.as_ref())
            }
        })*
    };
}
paths!(str String Path PathBuf);

impl PlanSource for [u8] {
    fn plan_source(&self) -> Source<'_> {
        Source::Bytes(self)
    }
}

impl<const N: usize> PlanSource for [u8; N] {
    fn plan_source(&self) -> Source<'_> {
        Source::Bytes(self)
    }
}

impl PlanSource for Vec<u8> {
    fn plan_source(&self) -> Source<'_> {
        Source::Bytes(self)
    }
}

impl<T: PlanSource + ?Sized> PlanSource for &T {
    fn plan_source(&self) -> Source<'_> {
        (**self).plan_source()
    }
}

/// The plans that a rank has found at a source.
pub(super) struct Found {
    /// The name of the source, for messages.
    pub(super) name: String,
    /// The plans of all epochs; `None` if the folder has no file for this superstep and number of
    /// ranks.
    pub(super) plans: Option<Result<Vec<Plan>>>,
}

/// Returns the error for a path that does not exist. If the path is relative, the error also names
/// the folder in which the program runs, since it may be the wrong folder.
fn missing(path: &Path) -> Error {
    let is_file = path.extension().is_some_and(|extension| extension == "plan");
    let what = if is_file { "file of a plan" } else { "folder of plans" };
    let here = match std::env::current_dir() {
        Ok(folder) if path.is_relative() => format!(
            " in {}, where the program runs: start it in the folder that has it, or give `load` a path that does not \
             depend on that folder, such as concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/plans\")",
            folder.display()
        ),
        _ => ": write the plans with `fencepost plan`, or give `load` another path".into(),
    };
    Error::new(ErrorClass::Io, format!("there is no {what} {}{here}", path.display()))
}

/// Reads the plans of a superstep in this world, one for each of its `epochs`.
pub(super) fn find(superstep: &Superstep, world: &WorldCore, source: Source<'_>, epochs: usize) -> Found {
    let of_epochs = |name: &str, plans: Result<Vec<Plan>>| {
        let plans = plans?;
        if plans.len() == epochs {
            return Ok(plans);
        }
        let message = format!(
            "{name} has the plans of {} epochs, and this superstep has {epochs}: compile it again",
            plans.len()
        );
        Err(Error::new(ErrorClass::Plan, message))
    };
    let (name, plans) = match source {
        Source::Bytes(bytes) => {
            let name = format!("the plan of {} bytes", bytes.len());
            let plans = plan::all_from_bytes(bytes, &name);
            (name, plans)
        }
        Source::Path(path) if path.is_dir() => {
            let file = path.join(format!("{}-{}.plan", superstep.name, world.size));
            let name = file.display().to_string();
            // A file that cannot be examined counts as present: reading it returns the error.
            if matches!(file.try_exists(), Ok(false)) {
                return Found { name, plans: None };
            }
            (name, plan::load_all(file))
        }
        Source::Path(path) => {
            let plans = if matches!(path.try_exists(), Ok(false)) {
                Err(missing(path))
            } else {
                plan::load_all(path)
            };
            (path.display().to_string(), plans)
        }
    };
    let plans = Some(of_epochs(&name, plans));
    Found { name, plans }
}
