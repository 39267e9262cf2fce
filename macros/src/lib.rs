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
//! crate of Fencepost. It emits calls to the facade's hidden `__private`. It deliberately makes no
//! decision about a schedule.

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
/// The function takes its windows as `&mut Window<T>`, or several windows of one type as a list
/// `&mut [Window<T>; 7]`, and returns a `Result`. A body without a fence gets one at its end, over
/// all its windows. A body with fences must end in a fence. An error, or a panic, discards the
/// operations that were collected.
///
/// A list such as `fields: &mut [Window<T>; 7]` holds a fixed number of windows of one type, at
/// most 64. The function uses the list as `for field in fields` (or `fields.iter_mut()`, with or
/// without `.enumerate()`), `fields[0]` and `fields.len()`. The attribute replaces such a loop by a
/// block for each window, so the loop must not contain a fence, a `break` or a `continue`. If the
/// number of windows is known only at run time, use a function without the attribute. Such a
/// function puts, and then calls `world.fence(&mut fields)`. `run` and `replay` take the list in
/// the same form as the function, `begin` takes it by value, and `pattern` takes a recorder for
/// each window of the list.
///
/// The attribute also declares an empty enum of the same name. Its associated functions do not call
/// the function:
/// - `name::pattern(recorders.., arguments..)` records the calls, without windows and without a
///   world;
/// - `name::compile(ranks, |rank| Ok(arguments))` compiles the superstep ahead of time, for any
///   number of ranks. Several arguments are passed as a tuple, and arguments that the function
///   takes by reference are passed by value. The page of the crate has a complete program;
/// - `name::prepare(world, arguments..)` and `name::load(world, source, arguments..)` return a
///   prepared superstep: a plan that all ranks have agreed on. `load` takes the path of a plan, its
///   bytes (`include_bytes!("exchange-64.plan")`), or a folder. From a folder it takes the plan of
///   this superstep for this number of ranks, such as `exchange-64.plan`. If the folder has no such
///   plan, `load` prepares the superstep. If a plan assumes that certain ranks share memory, but
///   these ranks exchange messages in this world, the plan is compiled again when it is loaded.
///   `Compiled::with` compiles ahead for another placement. `explain` of a loaded superstep begins
///   with the way in which its plan was obtained. `save` of a prepared superstep writes its plan.
///
/// A prepared superstep has three methods that run it. The signature of each method follows from
/// that of the function:
/// - `run` has the parameters and the result of the function. It runs the body and matches the
///   body's calls with those of the plan. A call that is not in the plan is an error of class
///   `PLAN`.
/// - `replay` takes only the windows, in the order of the function, and returns `Result<()>`. It
///   does not run the body: operations go where the arguments of `prepare` or `load` sent them. It
///   exists if the body consists only of operations between sections of windows (ranges, datatypes,
///   `v.section(..)`). A plan does not contain values that are put (slices, and parts of slices),
///   tickets, or work on elements. If the body visibly has any of these, `replay` is a compile
///   error. If the body has any of these but its syntax does not show it, `replay` is an error of
///   class `PLAN` on all ranks.
/// - `begin` runs the first half of the superstep. It takes the windows by value, and returns a
///   `Running`. `finish` of the `Running` runs the second half, and returns the windows, as a tuple
///   if there are several. If there is a `replay`, `begin` takes only the windows, and is the first
///   half of a replay. Otherwise `begin` takes all parameters of the function, and is the first
///   half of a `run`. If a source is an argument of a generic type, `begin` is the first half of a
///   `run`, too, since values may be passed for such an argument. `begin` of a `run` executes the
///   body up to its last fence and copies the slices that are put. `finish` then also returns the
///   value that the body has returned, unless it is `()`. Epochs before the last one are run whole.
///   `begin` does not wait in the last epoch. But if the body continues after its last fence (other
///   than with an `Ok` of names and literals), or passes assertions to that fence, `begin` runs the
///   whole body.
///
/// A superstep whose targets or datatypes do not follow from its arguments alone is *dynamic*: it
/// can be called, and is planned at run time. Compiling it ahead is a compile error that shows the
/// line that makes it dynamic.
///
/// # The pattern
/// A pattern is the part of the body that decides where operations go. It describes a successful
/// execution. It is evaluated when the superstep is entered for the first time, prepared, loaded or
/// compiled. So the functions in the pattern are called once more at that time. A check that needs
/// a window's elements is not part of the pattern. A pattern may make at most 2^24 turns of its
/// loops, and have at most 2^20 operations and fences. A pattern that exceeds these limits, or that
/// panics, is ignored when the superstep is entered. When the superstep is prepared, loaded or
/// compiled, such a pattern is an error of class `PLAN`. Iterators, functions and macros that do
/// not end are not counted, and an allocation that fails ends the process.
///
/// Statics, thread-locals, functions without arguments, cells, locks, clocks, iterated hash maps
/// and unsafe code make a superstep dynamic if they affect operations, as far as the syntax shows
/// that. Three things are assumed, and not checked at compile time. Functions and methods with
/// arguments return the same result for the same arguments. Methods with names of the standard
/// library have the effects of the standard methods. Values of types that hide a cell do not change
/// between the evaluation of the pattern and the execution of the body. The first execution
/// compares the calls with the pattern. Each later execution also compares them, unless
/// `FENCEPOST_CHECK` is `off`. `run` of a prepared superstep always compares the calls. `replay`
/// runs no body, so it has no calls to compare.
///
/// # Options
/// - `#[superstep(crate = path)]`: the path of the facade, if it is not `::fencepost`.
/// - `#[superstep(prepared = Name)]`: a name for the type that `prepare` and `load` return, so that
///   a struct of your own can have a field of this type.
/// - `#[superstep(mode = direct)]` (or `aggressive`, `aggregated`, `pipelined`): the mode that the
///   superstep's operations prefer if they have no mode of their own. This mode takes precedence
///   over the mode of their window and of the environment.
/// - `#[superstep(sync = pscw)]`: `prepare` and `load` return a superstep that synchronises by
///   posts and starts, only between ranks that exchange something, and not by a fence of all ranks.
///   See below.
///
/// `#[uniform]` on a parameter promises that all ranks pass the same value. Fences may then depend
/// on conditions and loop bounds that are made of this value. The promise is checked: a hash of the
/// values is part of every synchronisation.
///
/// # Posts and starts
/// A prepared superstep with `sync = pscw` is not a call of all ranks. Only `prepare` and `load`
/// are: every rank must call them. `run`, `replay`, `begin` and `finish` wait only for the
/// *partners* of a rank. Two ranks are partners if an operation of one rank has the other rank as
/// its target. The n-th run of a rank matches the n-th run of each of its partners. A rank without
/// partners need not run the superstep. Runs are not ordered with fences and other calls of all
/// ranks: such a call may come between different runs on different ranks. Several plans may be in
/// flight at once and finish in any order, since each window is in only one of them.
///
/// If the function is called directly, it is a superstep of all ranks and ends in a fence, like any
/// other superstep. A dynamic superstep can only be called directly: preparing it is a compile
/// error that shows the line that makes it dynamic.
#[proc_macro_attribute]
pub fn superstep(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute(options.into(), item.into()).into()
}

/// Derives `Element` for a struct of numbers, so that windows can hold it.
///
/// The struct must be `Copy` and `#[repr(C)]` (or `transparent`), and not generic. Its fields must
/// be elements, and there must be no padding between or after the fields. Such elements can be put,
/// got and replaced. Arithmetic operators act on numbers only. An item that breaks these rules does
/// not compile.
#[proc_macro_derive(Element)]
pub fn element(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    element::derive(item.into()).into()
}

/// Expands the attribute. The tokens are those of `proc_macro2`, so tests can call this function.
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
