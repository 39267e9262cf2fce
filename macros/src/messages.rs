//! The messages of this crate: one for each refusal, with the remedy.

pub const ELEMENT_ENUM: &str = "an enum cannot be an element: some of its bit patterns are not values; keep its number in an integer field, and make the enum of that number";
pub const ELEMENT_UNION: &str =
    "a union cannot be an element, since which of its fields is valid is not known: write a struct";
pub const ELEMENT_GENERIC: &str = "an element cannot be generic, since whether it has padding depends on its parameters: write a struct for each type that you need";
pub const ELEMENT_EMPTY: &str = "an element has at least one byte: give the struct a field";
pub const ELEMENT_REPR: &str =
    "an element has one layout in memory on every rank: put `#[repr(C)]` on the struct";
pub const PADDING: &str = "an element has no padding: order its fields from the largest to the smallest, and fill the rest with a field of bytes";

pub const NOT_A_FUNCTION: &str = "`#[superstep]` belongs on a function; put it on the free function that has the puts, gets and accumulates";
pub const METHOD: &str = "a superstep cannot be a method: make it a free function that takes its windows as `&mut Window<T>` parameters, and call that from the method";
pub const SELF_TYPE: &str = "a superstep cannot mention `Self`, which is not known outside an impl: write the type, and make it a free function";
pub const ASYNC: &str = "a superstep cannot be `async`: its fence waits for all ranks; remove `async` and call it from a blocking context";
pub const CONST: &str = "a superstep cannot be `const`: it communicates; remove `const`";
pub const UNSAFE: &str =
    "a superstep cannot be `unsafe`: remove it, and use an `unsafe` block inside for what needs one";
pub const EXTERN: &str = "a superstep has the Rust ABI: remove `extern`, and call it from an `extern` function if there must be one";
pub const NO_RESULT: &str = "a superstep returns a `Result`, since each call in it and the fence at its end can fail: write `-> Result<()>`";
pub const IMPL_RESULT: &str = "a superstep cannot return `impl Trait`: write the type inside `Result<..>`";
pub const NO_WINDOW: &str =
    "a superstep needs a window: take at least one `&mut Window<T>` parameter, or leave out `#[superstep]`";
pub const WINDOW_BY_VALUE: &str = "a window takes part as `&mut Window<T>` only: make each window a parameter of its own, written `name: &mut Window<T>`, or several of one type a list, `fields: &mut [Window<T>; 7]`";
pub const MANY_WINDOWS: &str = "at most six parameters are windows, or lists of them, and no more than 64 windows in all: take those of one type as a list, `fields: &mut [Window<T>; 7]`";
pub const LIST_LENGTH: &str = "a list of windows has its length in its type, as a literal number from 1 to 64: write `fields: &mut [Window<T>; 7]`; if only the run knows the length, put and `world.fence(&mut fields)` in a function without the attribute";
pub const LIST_USE: &str = "a list of windows is used in a superstep by `for field in fields` (or `fields.iter_mut()`, with or without `.enumerate()`), `fields[0]` and `fields.len()`: write it in one of these ways";
pub const LIST_INDEX: &str = "an index into a list of windows is a number below its length here: write `fields[0]`, or a loop over `fields.iter_mut().enumerate()`";
pub const LIST_PATTERN: &str = "a loop over a list of windows names each of them: write `for field in fields`, or `for (i, field) in fields.iter_mut().enumerate()`";
pub const LIST_LEFT: &str = "a loop over a list of windows goes over all of them: use an `if` instead of `break`, `continue` and labels";
pub const LIST_SHADOWED: &str = "another value gets the name of a window of a list: use another name";
pub const LIST_ALIAS: &str = "a window of a list has the name of its loop: use that name";
pub const LIST_TEXT: &str =
    "the text of a macro names a window of a list: hand the window over as an argument of the macro";
pub const LIST_FENCE: &str = "a fence in a loop over a list of windows: end the loop before it, and fence after all windows have their operations";
pub const LIST_BLOCKS: &str =
    "nested loops over lists of windows are written out as more than 4096 blocks: divide the superstep";
pub const WINDOW_PATTERN: &str =
    "a window parameter needs a plain name: write `name: &mut Window<T>` and take it apart in the body";
pub const UNIFORM_WINDOW: &str =
    "`#[uniform]` is for parameters that have the same value on all ranks; a window never has: remove it";
pub const UNIFORM_PATTERN: &str =
    "a `#[uniform]` parameter needs a plain name: write `name: Type` and take it apart in the body";
pub const OPTION: &str = "unknown option: use `crate = path::to::fencepost`, `prepared = TypeName`, `mode = direct` or `sync = pscw`";
pub const SYNC: &str = "unknown synchronisation: use pscw, which is posts and starts between the ranks that exchange something, or fence";
pub const MODE: &str =
    "unknown mode: use aggressive, aggregated, pipelined or direct; leave the option out for auto";

pub const NOT_UNIFORM_FENCE: &str = "this fence may not be reached by all ranks";
pub const JUMP_IN_FENCED_LOOP: &str = "this jump may skip a fence on some ranks only";
pub const UNIFORM_HINT: &str = "a fence may stand under conditions and bounds made of literals, constants, `size()` and parameters marked `#[uniform]`; move the fence out, or mark the parameter";
pub const FENCE_IN_CLOSURE: &str =
    "is a fence in a closure, which may be called any number of times, or never: move it out of the closure";
pub const RETURN_BEFORE_FENCE: &str = "returning `Ok` here leaves out a fence that other ranks wait in; return after the last fence, or return an error, which every rank gets";
pub const NO_FENCE_AFTER: &str = "comes after the last fence of the superstep and would never complete; add a fence after it, or move it up";
pub const OTHER_MODE: &str = "is another synchronisation mode than the fence that this superstep ends in: an epoch has one mode; do it before or after, in a function without `#[superstep]`";
pub const SCOPED_EPOCH: &str = "is an epoch of its own inside a superstep: a superstep is an epoch already; move it to a function without `#[superstep]`, or use `fetch` and take the ticket after a fence";
pub const SHARED_WINDOW: &str =
    "takes part in the superstep's fence only as `&mut Window<T>`: write its type so, or leave this call out";
pub const NOT_A_WINDOW: &str = "is not seen to be a window, so nothing would fence it here: write its type as `&mut Window<T>` in the parameter list, without an alias";
pub const UNFINISHED_PUT: &str = "does nothing without a target: add `.to(target, place)?`";
pub const UNFINISHED_GET: &str = "does nothing without a target: add `.from(target, place)?`";
pub const SECTION_NOT_FENCED: &str = "is read at a fence that it is not part of: fence both windows together, with `world.fence((&mut u, &mut v))?`";
pub const SAME_ELEMENTS: &str = "touches the same elements as an earlier call of this epoch";
pub const SAME_ELEMENTS_HINT: &str =
    "give it another place, put a fence between them, or accumulate both with one operator";
