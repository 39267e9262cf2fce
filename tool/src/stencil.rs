//! [`compile`] compiles the plan of a stencil's halo exchange. This needs no program.
//!
//! The calls are those of the superstep in the README: each block puts its inner edges into the
//! halos of its neighbours. So a program with this superstep can load the plan.

use fencepost_planner::collect::patterns;
use fencepost_planner::element::{ElementType, Scalar};
use fencepost_planner::grid::{Block, Neighbour};
use fencepost_planner::ids::{Delta, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Mode, Operation, Pattern, Site};
use fencepost_planner::{Error, ErrorClass, Result};
use fencepost_runtime::__private::of_patterns;
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::{Ask, Recipe};

/// The keys of a stencil.
pub(crate) const KEYS: [&str; 6] = ["cells", "halo", "star", "periodic", "grid", "element"];

/// The type of the elements, unless a recipe names another.
const ELEMENT: &str = "f64";

/// Compiles the plan of a recipe for a stencil. The superstep has the recipe's name, without a
/// number of ranks at its end.
///
/// # Errors
/// Those of making the [`Block`] of each rank, and those of compiling.
#[track_caller]
pub(crate) fn compile(recipe: &Recipe) -> Result<Compiled> {
    recipe.compile_by(|ask| match dimensions(ask)? {
        1 => exchange::<1>(recipe, ask),
        2 => exchange::<2>(recipe, ask),
        _ => exchange::<3>(recipe, ask),
    })
}

/// Checks a stencil without compiling it.
///
/// # Errors
/// If the first block cannot be made as the recipe asks. The error states why.
#[track_caller]
pub(crate) fn check(recipe: &Recipe) -> Result<()> {
    let ask = recipe.ask();
    let dimensions = dimensions(&ask)?;
    for (key, text) in &recipe.values {
        let items = text.split(',').count();
        if items != 1 && items != dimensions {
            let message = format!(
                "`{key}` has {items} items, where `cells` has {dimensions}: give {dimensions}, or one for all"
            );
            return Err(Error::new(ErrorClass::Arg, message));
        }
    }
    let of = |name: &str| recipe.values.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str());
    if of("star") == Some("true") && of("halo").is_some_and(|halo| halo.contains(',')) {
        let message = "a star has one width in all dimensions: give one number as `halo`";
        return Err(Error::new(ErrorClass::Arg, message));
    }
    let has_halo = match dimensions {
        1 => block::<1>(recipe, &ask)?.widths() != [0; 1],
        2 => block::<2>(recipe, &ask)?.widths() != [0; 2],
        _ => block::<3>(recipe, &ask)?.widths() != [0; 3],
    };
    let message = "a halo of 0 cells is never exchanged: give a width from 1 in some dimension";
    if has_halo { Ok(()) } else { Err(Error::new(ErrorClass::Arg, message)) }
}

fn dimensions(ask: &Ask) -> Result<usize> {
    let cells = ask.value("cells", Vec::<usize>::new())?.len();
    let message = "a stencil has `cells` in 1, 2 or 3 dimensions: give them, such as cells = [512, 512]";
    if (1..=3).contains(&cells) { Ok(cells) } else { Err(Error::new(ErrorClass::Arg, message)) }
}

/// Returns the block of rank 0.
fn block<const D: usize>(recipe: &Recipe, ask: &Ask) -> Result<Block<D>> {
    let mut block = Block::at(0, ask.ranks(), ask.value("cells", [0; D])?)?;
    if recipe.values.iter().any(|(name, _)| name == "grid") {
        block = block.grid(ask.value("grid", [0; D])?)?;
    }
    block = if ask.value("star", false)? {
        block.star(ask.value("halo", 1)?)?
    } else {
        block.halos(ask.value("halo", [1; D])?)?
    };
    Ok(block.periodic(ask.value("periodic", [false; D])?))
}

fn exchange<const D: usize>(recipe: &Recipe, ask: &Ask) -> Result<Compiled> {
    let first = block::<D>(recipe, ask)?;
    let element = element(&ask.value("element", ELEMENT.to_owned())?)?;
    let window = WindowId(0);
    let windows = [ElementType::scalar(element)].into_iter().collect();
    let pattern = |rank: u32, block: &Block<D>| {
        let put = |n: Neighbour<D>| Operation {
            kind: Kind::Put,
            window,
            target: Some(Delta::between(Rank(rank), Rank(n.rank as u32))),
            remote: block.halo_of(&n),
            local: Local::Section { window, datatype: block.inner_edge(&n) },
            mode: Mode::Auto,
            site: Site::default(),
        };
        Ok((Pattern { operations: block.neighbours().map(put).collect() }, false))
    };
    let name = superstep(&recipe.name);
    let patterns = patterns(name, windows, first.ranks() as u32, |rank| first.of(rank as usize), pattern)?;
    of_patterns(name, vec![patterns])
}

/// Returns the number of ranks at the end of a recipe's name, as in `exchange-64`. A world
/// of that number of ranks loads the file of such a recipe.
pub(crate) fn ranks_in(name: &str) -> Option<&str> {
    let (superstep, ranks) = name.rsplit_once('-')?;
    let is_number = !ranks.is_empty() && ranks.chars().all(|c| c.is_ascii_digit());
    (!superstep.is_empty() && is_number).then_some(ranks)
}

/// Returns the name of the superstep of a recipe: its name without a number of ranks at its end.
#[must_use]
pub fn superstep(recipe: &str) -> &str {
    ranks_in(recipe).map_or(recipe, |ranks| &recipe[..recipe.len() - ranks.len() - 1])
}

/// Returns the element type with this name.
///
/// # Errors
/// `ARG` if no type has this name. The error lists the names.
#[track_caller]
pub(crate) fn element(name: &str) -> Result<Scalar> {
    let of = |scalar: &Scalar| format!("{scalar:?}").to_lowercase();
    Scalar::ALL.into_iter().find(|scalar| of(scalar) == name).ok_or_else(|| {
        let names: Vec<String> = Scalar::ALL.iter().map(of).collect();
        let message = format!("`{name}` is not a type of elements: give one of {}", names.join(", "));
        Error::new(ErrorClass::Arg, message)
    })
}
