//! The `#[superstep]` attribute of Fencepost, and `#[derive(Element)]`.
//!
//! A superstep is a function whose calls on its windows happen between two fences. The attribute
//! reads the function while the program builds. It cuts the body into epochs at its fences, refuses
//! bodies that cannot work, and slices out the code on which the operations' targets and datatypes
//! depend. So the pattern is available without running the function.
//!
//! ```text
//! tokens ─parse▶ Superstep ─collect▶ Body ─check▶ ─slice▶ Slice (or the line that made it dynamic)
//!     ─expand▶ tokens
//! ```
//!
//! The derive is one file, `element`, separate from this pipeline.
//!
//! Everything here is syntax: the crate sees names, never types or values, and depends on no other
//! crate of Fencepost. It emits calls to the facade's hidden `__private`. Deliberately absent is
//! any decision about a schedule.

mod chain;
mod check;
mod collect;
#[cfg(test)]
#[path = "../tests/inside/draw.rs"]
mod draw;
mod element;
mod expand;
mod exprs;
mod known;
mod list;
mod messages;
mod parse;
mod slice;
mod source;
#[cfg(test)]
mod tests;
mod types;
mod uniform;

use proc_macro2::TokenStream;

/// Makes a function a superstep: its puts, gets and accumulates happen at a fence, and their
/// pattern is known.
///
/// The function takes its windows as `&mut Window<T>`, or several of one type as
/// `&mut [Window<T>; 7]`, and returns a `Result`. A body without a fence gets one at its end, over
/// all its windows. A body with fences must end in one. An error, or a panic, discards the
/// operations that were collected.
///
/// A list, `fields: &mut [Window<T>; 7]`, holds as many windows of one type, at most 64. The
/// function uses it as `for field in fields` (or `fields.iter_mut()`, with or without
/// `.enumerate()`), `fields[0]` and `fields.len()`. The attribute writes a block for each window,
/// so such a loop has no fence, no `break` and no `continue`. If the number of windows is known
/// only at run time, use a function without the attribute that puts and calls
/// `world.fence(&mut fields)`. `run` and `replay` take the list as the function does, `begin` takes
/// it by value, and `pattern` takes a recorder for each of its windows.
///
/// The attribute also declares an empty enum of the same name, for everything that does not call
/// the function:
/// - `name::pattern(recorders.., arguments..)` records the calls, without windows and without a
///   world;
/// - `name::compile(ranks, |rank| Ok(arguments))` compiles the superstep ahead of time, for any
///   number of ranks. Several arguments are a tuple, and arguments that the function takes by
///   reference are values; the crate's page has a whole program;
/// - `name::prepare(world, arguments..)` and `name::load(world, source, arguments..)` return a
///   prepared superstep: a plan that all ranks have agreed on. `load` takes the path of a plan, its
///   bytes (`include_bytes!("exchange-64.plan")`), or a folder: from a folder it takes the plan of
///   this superstep for this number of ranks, `exchange-64.plan`, and if there is none, `load`
///   prepares the superstep. If a plan assumes that certain ranks share memory, but they exchange
///   messages here, it is compiled again when it is loaded; `Compiled::with` compiles ahead for
///   another placement. `explain` of a superstep that was loaded begins with how it was obtained.
///   `save` of a prepared superstep writes its plan.
///
/// A prepared superstep has three methods that run it. The signature of each follows from the
/// signature of the function:
/// - `run` has the parameters and the result of the function. It runs the body and matches the
///   body's calls with those of the plan. A call that is not in the plan is an error of class
///   `PLAN`.
/// - `replay` takes only the windows, in the order of the function, and returns `Result<()>`. It
///   does not run the body: operations go where the arguments of `prepare` or `load` sent them. It
///   exists if the body consists only of operations between sections of windows (ranges, datatypes,
///   `v.section(..)`). Values that are put (slices, and parts of them), tickets, and work on
///   elements are in no plan. If the function has any of these, `replay` is a compile error if the
///   body shows them, and otherwise an error of class `PLAN` on all ranks.
/// - `begin` is the first half. It takes the windows by value, and returns a `Running`. Its
///   `finish` is the second half, and returns the windows, several of them as a tuple. If there is
///   a `replay`, `begin` takes only the windows, and is the first half of a replay. Otherwise it
///   takes all parameters of the function, and is the first half of a `run`. The same holds if a
///   source is an argument of a generic type, which may be values. `begin` then runs the body up to
///   its last fence and copies the slices that are put, and `finish` also returns the value that
///   the body has returned, if that is not `()`. Epochs before the last one are run whole. `begin`
///   does not wait in the last epoch. But if the body continues after its last fence (other than
///   with an `Ok` of names and literals), or passes assertions to that fence, `begin` runs all of
///   it.
///
/// A superstep whose targets or datatypes do not follow from its arguments alone is *dynamic*: it
/// runs, and is planned at run time. Compiling it ahead is a compile error that shows the line that
/// makes it dynamic.
///
/// # The pattern
/// A pattern is the part of the body that decides where operations go. It describes a successful
/// execution. It is evaluated when the superstep is entered for the first time, prepared, loaded or
/// compiled; the functions that it calls are called once more then. A check that needs a window's
/// elements is not part of the pattern. A pattern may make 2^24 turns of its loops and have 2^20
/// operations and fences. A pattern that exceeds these limits, or that panics, is ignored when the
/// superstep is entered. When the superstep is prepared, loaded or compiled, such a pattern is an
/// error of class `PLAN`. Iterators, functions and macros that do not end are not counted, and an
/// allocation that fails ends the process.
///
/// Statics, thread-locals, functions without arguments, cells, locks, clocks, iterated hash maps
/// and unsafe code make a superstep dynamic if they affect operations, as far as the syntax shows
/// that. Three things are assumed without being checked at compile time: functions and methods with
/// arguments return the same result for the same arguments, methods with names of the standard
/// library have the effects of the standard methods, and types that hide a cell are not changed
/// meanwhile. The first execution compares the calls with the pattern. Each later execution also
/// does so, unless `FENCEPOST_CHECK` is `off`. A prepared superstep that runs its body compares the
/// calls each time, and `replay` has no body to compare with.
///
/// # Options
/// - `#[superstep(crate = path)]`: the path of the facade, if it is not `::fencepost`.
/// - `#[superstep(prepared = Name)]`: a name for the type that `prepare` and `load` return, to keep
///   it in a struct of your own.
/// - `#[superstep(mode = direct)]` (or `aggressive`, `aggregated`, `pipelined`): the mode that
///   operations without a mode of their own prefer here. This mode takes precedence over the mode
///   of their window and of the environment.
/// - `#[superstep(sync = pscw)]`: a superstep that `prepare` or `load` returns synchronises by
///   posts and starts between the ranks that exchange something, instead of a fence of all ranks;
///   see below.
///
/// `#[uniform]` on a parameter promises that all ranks pass the same value. Fences may then be
/// under conditions and bounds that are made of this value. The promise is checked: a hash of the
/// values is part of every synchronisation.
///
/// # Posts and starts
/// A prepared superstep with `sync = pscw` is no longer a call of all ranks. `prepare` and `load`
/// still are, and every rank must make them. `run`, `replay`, `begin` and `finish` wait only for
/// the *partners* of a rank. Two ranks are partners if an operation of either rank names the other.
/// The n-th run of a rank matches the n-th run of each of its partners. A rank without partners
/// need not run the superstep. Runs have no order with respect to fences and other calls of all
/// ranks, which may come in between at different points on each rank. Several plans may be in
/// flight at once and finish in any order, since each window is in only one of them.
///
/// If the function is called directly, it is a superstep of all ranks and ends in a fence, like any
/// other. So is a dynamic superstep, which cannot be prepared: preparing it is a compile error that
/// shows the line.
#[proc_macro_attribute]
pub fn superstep(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute(options.into(), item.into()).into()
}

/// Derives `Element` for a struct of numbers, so that windows can hold it.
///
/// The struct must be `Copy` and `#[repr(C)]` (or `transparent`), and not generic. Its fields must
/// be elements themselves, and there must be no padding between or after them. Its elements can be
/// put, got and replaced; the arithmetic operators act on numbers only. An item that breaks these
/// rules does not compile.
#[proc_macro_derive(Element)]
pub fn element(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    element::derive(item.into()).into()
}

/// Expands the attribute. Tests can call this function, since its tokens are those of
/// `proc_macro2`.
fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    match understand(options, item.clone()) {
        Ok((superstep, body, slice)) => expand::expand(&superstep, &body, &slice),
        Err(error) => expand::harmless(item, &error),
    }
}

/// Runs all stages that can fail.
fn understand(
    options: TokenStream,
    item: TokenStream,
) -> syn::Result<(parse::Superstep, collect::Body, slice::Outcome)> {
    let superstep = parse::parse(options, item)?;
    let body = collect::collect(&superstep);
    check::check(&superstep, &body)?;
    let slice = slice::slice(&superstep, &body);
    Ok((superstep, body, slice))
}
