//! Supersteps ahead of time: compiled for any number of ranks without a world, or prepared in one.

use crate::record::{RecordedEpoch, Recording};
use crate::superstep::Superstep;
use fencepost_planner::argument::Argument;
use fencepost_planner::collect::patterns;
use fencepost_planner::element::ElementType;
use fencepost_planner::ids::WindowId;
use fencepost_planner::ir::pattern::{Pattern, Patterns};
use fencepost_planner::table::Table;
use fencepost_planner::{Class, Error, Result};
use std::cell::RefCell;

/// An argument as an [`Argument`], or as one that says nothing.
#[derive(Debug)]
pub struct Told<'a, T>(pub &'a T);

/// Chosen first: the type says which ranks are alike.
pub trait TellArgument<'a> {
    /// The argument itself.
    fn told(&self) -> &'a dyn Argument;
}

impl<'a, T: Argument> TellArgument<'a> for Told<'a, T> {
    fn told(&self) -> &'a dyn Argument {
        self.0
    }
}

/// Chosen for all other types: each rank is evaluated for itself.
pub trait TellNothing<'a> {
    /// An argument that says nothing.
    fn told(&self) -> &'a dyn Argument;
}

impl<'a, T> TellNothing<'a> for &Told<'a, T> {
    fn told(&self) -> &'a dyn Argument {
        struct Nothing;
        impl Argument for Nothing {}
        &Nothing
    }
}

/// All arguments of one rank.
struct Bundle<'t, A> {
    arguments: A,
    tell: &'t dyn for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
}

impl<A> Argument for Bundle<'_, A> {
    fn class(&self) -> Option<Vec<u64>> {
        let mut key = Vec::new();
        for part in (self.tell)(&self.arguments) {
            let mut class = part.class()?;
            key.push(class.len() as u64);
            key.append(&mut class);
        }
        Some(key)
    }

    fn shape(&self) -> Option<Vec<u32>> {
        (self.tell)(&self.arguments).into_iter().find_map(|part| part.shape())
    }

    fn observed(&self) -> bool {
        // Every part is asked, so that each forgets.
        (self.tell)(&self.arguments).into_iter().fold(false, |any, part| part.observed() | any)
    }
}

/// The patterns of all ranks of a superstep, epoch by epoch, each with the windows that its fence is of.
///
/// `tell` gives the arguments as far as they tell which ranks are alike; `record` evaluates the superstep, and makes its
/// arguments once more where it takes them by value.
///
/// # Errors
/// Those of `arguments` and `record`; `RMA_SYNC` where ranks fence differently.
pub(crate) fn describe<A>(
    superstep: &Superstep,
    windows: &[ElementType],
    ranks: u32,
    arguments: impl FnMut(usize) -> Result<A>,
    tell: impl for<'a> Fn(&'a A) -> Vec<&'a dyn Argument>,
    record: impl Fn(&Recording, &A, &dyn Fn() -> Result<A>) -> Result<()>,
) -> Result<Vec<(Vec<WindowId>, Patterns)>> {
    let arguments = RefCell::new(arguments);
    let make = |rank: u32| (arguments.borrow_mut())(rank as usize);
    let epochs = |rank: u32, given: &A| {
        let recording = Recording::new(rank, ranks);
        let again = || {
            recording.observe();
            make(rank)
        };
        record(&recording, given, &again)?;
        recording.finish(windows.len(), superstep.fences)
    };
    if ranks == 0 {
        return Err(Error::new(Class::Rank, "a world has at least one rank: give a number of ranks above 0"));
    }
    let first = epochs(0, &make(0)?).map_err(|error| error.on_rank(0).in_superstep(superstep.name))?.0;
    let table: Table<WindowId, ElementType> = windows.iter().copied().collect();
    let mut all = Vec::new();
    for (number, RecordedEpoch { windows: fenced, .. }) in first.iter().enumerate() {
        let bundle = |rank| Ok(Bundle { arguments: make(rank)?, tell: &tell });
        let one = |rank: u32, bundle: &Bundle<'_, A>| -> Result<(Pattern, bool)> {
            let (mut mine, observed) = epochs(rank, &bundle.arguments)?;
            let alike = mine.len() == first.len() && mine[number].windows == *fenced;
            if !alike {
                let message = "ranks do not fence alike: fences may depend on what is the same on all ranks only";
                return Err(Error::new(Class::RmaSync, message));
            }
            Ok((mine.swap_remove(number).pattern, observed))
        };
        let patterns = patterns(superstep.name, table.clone(), ranks, bundle, one)
            .map_err(|error| error.in_superstep(superstep.name))?;
        all.push((fenced.clone(), patterns));
    }
    Ok(all)
}

