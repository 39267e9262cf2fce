//! The `#[superstep]` attribute of Fencepost, and `#[derive(Element)]`.
//!
//! A superstep is a function whose calls on its windows happen between two fences. The attribute reads the function
//! while the program builds: it cuts the body into epochs at its fences, refuses what cannot work, and slices out what
//! the operations' targets and datatypes depend on, so that the pattern can be had without running the function.
//!
//! ```text
//! tokens ─parse▶ Superstep ─collect▶ Body ─check▶ ─slice▶ Slice (or the line that made it dynamic) ─expand▶ tokens
//! ```
//!
//! The derive is one file, `element`, apart from this pipeline.
//!
//! Everything here is syntax: the crate sees names, never types or values, and depends on no other crate of Fencepost;
//! what it emits are calls to the facade's hidden `__private`. What is deliberately absent: any decision about a
//! schedule.

mod chain;
mod check;
mod collect;
#[cfg(test)]
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

/// Make a function a superstep: its puts, gets and accumulates happen at a fence, and their pattern is known.
///
/// The function takes its windows as `&mut Window<T>`, or several of one type as
/// `&mut [Window<T>; 7]`, and returns a `Result`. A body without a fence gets one at its
/// end, over all its windows; a body with fences must end in one. An error, or a panic, discards what was collected.
///
/// A list, `fields: &mut [Window<T>; 7]`, is as many windows of one type, at most 64. The function
/// uses it by `for field in fields` (or `fields.iter_mut()`, with or without `.enumerate()`),
/// `fields[0]` and `fields.len()`. The attribute writes a block for each window, so such a loop has
/// no fence, no `break` and no `continue`. Where only the run knows how many windows there are, a
/// function without the attribute puts and calls `world.fence(&mut fields)`. `run` and `replay`
/// take the list as the function does, `begin` takes it by value, and `pattern` takes a recorder
/// for each of its windows.
///
/// The attribute also declares an empty enum of the same name, with what can be done without calling the function:
/// - `name::pattern(recorders.., arguments..)` records the calls, without windows and without a world;
/// - `name::compile(ranks, |rank| Ok(arguments))` compiles it ahead of time, for any number of ranks. Several arguments are a tuple,
///   and those that the function takes by reference are values; the crate's page has a whole program;
/// - `name::prepare(world, arguments..)` and `name::load(world, path, arguments..)` return a prepared superstep: a plan that
///   all ranks have agreed on. A plan that takes ranks to share memory which exchange messages here is compiled again as it is
///   loaded; `Compiled::with` compiles ahead for another placement.
///
/// A prepared superstep has three methods, each with one signature, which follows from that of the function:
/// - `run` takes what the function takes and returns what it returns. The body is run, its calls are matched with the plan's,
///   and a call that is not the plan's is an error of class `PLAN`.
/// - `replay` takes the windows alone, in the order of the function, and returns `Result<()>`. The body is not run: operations
///   go where the arguments of `prepare` or `load` said. It is there where the body is nothing but operations between sections
///   of windows (ranges, datatypes, `v.section(..)`). Values that are put (slices, and parts of them), tickets, and work on elements are in no plan: then
///   `replay` is a compile error where the body shows it, and else an error of class `PLAN` on all ranks.
/// - `begin` is the first half: it takes the windows by value, and returns a `Running`; `finish` of that is the second half, and
///   returns them, several as a tuple. Where there is a `replay` it takes the windows alone, and is the first half of that. Else,
///   and where a source is an argument of a generic type, which may be values, it takes what the function takes, and is the first half of a `run`: it runs the body up to its last fence, copies the
///   slices that are put, and `finish` returns what the body has returned as well, where that is not `()`. Epochs before the
///   last one are run whole. `begin` does not wait in the last one; only where the body goes on after its last fence (other
///   than with an `Ok` of names and literals), or asserts something there, all of it is run by `begin`.
///
/// A superstep whose targets or datatypes cannot be had from its arguments alone is *dynamic*: it runs, and is planned
/// at run time. Asking to compile it ahead is then a compile error that shows the line that made it so.
///
/// # The pattern
/// A pattern is the part of the body that decides where operations go, and what an execution that succeeds does. It is
/// evaluated when the superstep is entered for the first time, prepared, loaded or compiled; functions that it calls are
/// called once more then. A check that asks for a window's elements is not in it. A pattern may make 2^24 turns of its
/// loops and have 2^20 operations and fences; beyond that, and where it panics, it claims nothing where the superstep is
/// entered, and is an error of class `PLAN` elsewhere. Iterators, functions and macros that do not end are not counted,
/// and an allocation that fails ends the process.
///
/// Statics, thread-locals, functions of no arguments, cells, locks, clocks, hash maps that are iterated and unsafe code
/// make a superstep dynamic where they decide about operations, as far as they are seen by how they are written.
/// Believed without being seen: functions and methods with arguments return the same for the same arguments, methods
/// with the names of the standard library do what those do, and types that hide a cell are not changed meanwhile. The
/// first execution, and each under `FENCEPOST_CHECK=mark`, compares the calls with the pattern; a prepared superstep
/// that runs its body compares them each time, and `replay` has no body to compare with.
///
/// # Options
/// `#[superstep(crate = path)]`: where the facade is, if not at `::fencepost`. `#[superstep(prepared = Name)]`: a name
/// for the type that `prepare` and `load` return, to keep it in a struct of your own. `#[superstep(mode = direct)]` (or
/// `aggressive`, `aggregated`, `pipelined`): the mode that operations without one of their own prefer here, before that
/// of their window and of the environment. `#[superstep(sync = pscw)]`: what `prepare` and `load` return synchronises by posts
/// and starts between the ranks that exchange something, and not by a fence of all; see below.
///
/// `#[uniform]` on a parameter promises that all ranks pass the same value: fences may then stand under conditions and
/// bounds made of it. The promise is checked: a hash of the values is part of every synchronisation.
///
/// # Posts and starts
/// A superstep with `sync = pscw` that is prepared is no call of all ranks any more. `prepare` and `load` are, and every rank
/// makes them. `run`, `replay`, `begin` and `finish` wait for the *partners* of a rank alone, which are the ranks that an
/// operation of one names of the other: the n-th run of the one belongs to the n-th of the other. A rank without partners
/// need not run it. Runs are in no order with fences and other calls of all ranks, which may come between in other places on
/// each rank, and several plans may be in flight at once, finished in any order: each window is in one of them.
///
/// Called plainly, as the function that it is, it is a superstep of all ranks and ends in a fence, as any other. So does one
/// that is dynamic, which cannot be prepared: asking for it is the compile error that shows the line.
#[proc_macro_attribute]
pub fn superstep(options: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    attribute(options.into(), item.into()).into()
}

/// Derives `Element` for a struct of numbers, so that windows can hold it.
///
/// The struct is `Copy` and `#[repr(C)]` (or `transparent`), not generic, its fields are elements themselves, and there is no
/// padding between or after them. Elements of it can be put, got and replaced; the arithmetic operators act on numbers.
/// An item that breaks these rules does not compile.
#[proc_macro_derive(Element)]
pub fn element(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    element::derive(item.into()).into()
}

/// The attribute, in tokens that can be tested.
fn attribute(options: TokenStream, item: TokenStream) -> TokenStream {
    match understand(options, item.clone()) {
        Ok((superstep, body, slice)) => expand::expand(&superstep, &body, &slice),
        Err(error) => expand::harmless(item, &error),
    }
}

/// Everything that can fail.
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
