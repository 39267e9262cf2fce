//! Collecting ahead of time: [`patterns`] evaluates a superstep once per class of its arguments.

use crate::argument::Argument;
use crate::element::ElementType;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{ClassId, WindowId};
use crate::intern::Interner;
use crate::ir::pattern::{Order, Pattern, Patterns, Sync};
use crate::table::Table;
use indexmap::IndexMap;

/// Evaluates a superstep and returns the patterns of all `ranks` ranks.
///
/// `arguments` makes a rank's arguments, and `record` evaluates the superstep with them. `record`
/// also returns whether the superstep queried anything other than its arguments that distinguishes
/// ranks. If arguments have a class, the superstep is first evaluated for the first, the middle and
/// the last rank of the class. If one of these evaluations queries anything that distinguishes
/// ranks, or if the three patterns differ, the superstep is evaluated for each rank of the class.
/// Patterns are compared by content, and equal patterns are kept once.
///
/// # Errors
/// The errors of `arguments` and `record`, with the rank. RANK if there are no ranks, or more than
/// 2³² ranks.
///
/// # Cost
/// One call of `arguments` and one lookup for each rank, and up to three calls of `record` for each
/// class.
pub fn patterns<A: Argument>(
    name: impl Into<String>,
    windows: Table<WindowId, ElementType>,
    ranks: u32,
    arguments: impl Fn(u32) -> Result<A>,
    record: impl Fn(u32, &A) -> Result<(Pattern, bool)>,
) -> Result<Patterns> {
    if ranks == 0 {
        return Err(Error::new(
            ErrorClass::Rank,
            "a world has at least one rank: give a number of ranks above 0",
        ));
    }
    let arguments = |rank| arguments(rank).map_err(|error| error.on_rank(rank as usize));
    // Also returns whether the pattern may represent the other ranks of the rank's class.
    let record = |rank, argument: &A| {
        argument.observed();
        let (pattern, observed) = record(rank, argument).map_err(|error| error.on_rank(rank as usize))?;
        Ok::<_, Error>((pattern, !(argument.observed() | observed)))
    };

    // The ranks of each class of arguments, in order of appearance. In `group_of`, `None` is a rank
    // without a class.
    let mut groups: IndexMap<Vec<u64>, Vec<u32>> = IndexMap::new();
    let mut group_of: Vec<Option<usize>> = Vec::with_capacity(ranks as usize);
    let mut shape = None;
    for rank in 0..ranks {
        let argument = arguments(rank)?;
        if rank == 0 {
            shape = argument.shape().filter(|shape| product(shape) == Some(ranks));
        }
        group_of.push(argument.class().map(|class| {
            let group = groups.entry(class);
            let number = group.index();
            group.or_default().push(rank);
            number
        }));
    }

    let mut classes = Interner::default();
    let shared = groups.values().map(|members| {
        let mut agreed = None;
        let mut samples = vec![members[0], members[members.len() / 2], members[members.len() - 1]];
        samples.dedup();
        for rank in samples {
            let (pattern, stands_for_others) = record(rank, &arguments(rank)?)?;
            if !stands_for_others || agreed.as_ref().is_some_and(|agreed| *agreed != pattern) {
                return Ok(None);
            }
            agreed = Some(pattern);
        }
        Ok(agreed)
    });
    let shared = shared.collect::<Result<Vec<Option<Pattern>>>>()?;
    let mut shared_id: Vec<Option<ClassId>> = vec![None; shared.len()];
    let mut class_of = Vec::with_capacity(ranks as usize);
    for (rank, group) in (0..ranks).zip(group_of) {
        let id = match group.and_then(|group| shared_id[group]) {
            Some(id) => id,
            None => match group.and_then(|group| Some((group, shared[group].clone()?))) {
                Some((group, pattern)) => *shared_id[group].insert(classes.intern(pattern)),
                None => classes.intern(record(rank, &arguments(rank)?)?.0),
            },
        };
        class_of.push(id);
    }
    Ok(Patterns {
        name: name.into(),
        windows,
        shape: shape.unwrap_or_else(|| vec![ranks]),
        classes: classes.into_table(),
        class_of,
        order: Order::Canonical,
        sync: Sync::Fence,
    })
}

fn product(shape: &[u32]) -> Option<u32> {
    shape.iter().try_fold(1u32, |product, &extent| product.checked_mul(extent))
}
