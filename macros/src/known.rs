//! Well-known methods and macros, by name: the effect of methods on their receivers, and the
//! meaning of the macros' tokens.

use proc_macro2::Ident;
use syn::{Expr, ExprMethodCall, Macro};

/// Methods that do not change their receiver.
const PURE: &[&str] = &[
    "abs",
    "abs_diff",
    "as_deref",
    "as_ref",
    "as_slice",
    "as_str",
    "binary_search",
    "ceil",
    "chain",
    "checked_add",
    "checked_div",
    "checked_mul",
    "checked_rem",
    "checked_sub",
    "chunks",
    "chunks_exact",
    "clamp",
    "clone",
    "cloned",
    "cmp",
    "collect",
    "concat",
    "contains",
    "contains_key",
    "copied",
    "count",
    "count_ones",
    "cycle",
    "div_ceil",
    "div_euclid",
    "ends_with",
    "enumerate",
    "eq",
    "filter",
    "filter_map",
    "first",
    "flat_map",
    "flatten",
    "floor",
    "fold",
    "ge",
    "get",
    "gt",
    "ilog2",
    "into",
    "into_iter",
    "is_empty",
    "is_err",
    "is_multiple_of",
    "is_none",
    "is_ok",
    "is_power_of_two",
    "is_some",
    "isqrt",
    "iter",
    "keys",
    "last",
    "le",
    "leading_zeros",
    "len",
    "lt",
    "map",
    "map_or",
    "max",
    "min",
    "ne",
    "next_multiple_of",
    "next_power_of_two",
    "ok",
    "ok_or",
    "ok_or_else",
    "partition_point",
    "pow",
    "product",
    "rank",
    "rem_euclid",
    "rev",
    "saturating_add",
    "saturating_mul",
    "saturating_sub",
    "signum",
    "size",
    "skip",
    "skip_while",
    "split_at",
    "split_first",
    "split_last",
    "starts_with",
    "step_by",
    "sum",
    "take_while",
    "to_owned",
    "to_string",
    "to_vec",
    "trailing_ones",
    "trailing_zeros",
    "unsigned_abs",
    "unwrap",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "values",
    "windows",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
    "zip",
];

/// Methods that take something out of their receiver, such as an iterator or an `Option`. If the
/// call is repeated with the same receiver, something else is taken. This matters only if the
/// receiver is a name, since any other receiver is made again for each call.
const ADVANCE: &[&str] = &["all", "any", "find", "take"];

/// Methods that change elements of their receiver but cannot change the length.
const REARRANGE: &[&str] = &[
    "copy_from_slice",
    "clone_from_slice",
    "fill",
    "fill_with",
    "reverse",
    "rotate_left",
    "rotate_right",
    "sort",
    "sort_by",
    "sort_by_key",
    "sort_unstable",
    "sort_unstable_by",
    "sort_unstable_by_key",
    "swap",
    "copy_within",
    "swap_with_slice",
];

/// Methods of the standard collections and iterators that change their receiver. If the call is
/// repeated, the receiver changes again.
const MUTATE: &[&str] = &[
    "append",
    "clear",
    "dedup",
    "drain",
    "extend",
    "extend_from_slice",
    "insert",
    "next",
    "next_back",
    "nth",
    "pop",
    "pop_back",
    "pop_front",
    "push",
    "push_back",
    "push_front",
    "push_str",
    "remove",
    "resize",
    "retain",
    "set",
    "split_off",
    "swap_remove",
    "truncate",
];

/// Methods that return `&mut` to elements but cannot change the length.
const ITERATE_MUT: &[&str] = &[
    "iter_mut",
    "chunks_mut",
    "chunks_exact_mut",
    "as_mut_slice",
    "first_mut",
    "last_mut",
    "get_mut",
    "split_at_mut",
];

/// Methods that change a receiver that looks immutable.
const INTERIOR: &[&str] = &[
    "borrow_mut",
    "call_once",
    "compare_and_swap",
    "compare_exchange_weak",
    "fetch_nand",
    "fetch_not",
    "fetch_update",
    "get_or_init",
    "get_or_insert_with",
    "get_or_try_init",
    "recv",
    "recv_timeout",
    "replace",
    "send",
    "try_read",
    "try_recv",
    "try_send",
    "try_update",
    "try_write",
    "update",
    "fetch_add",
    "fetch_and",
    "fetch_max",
    "fetch_min",
    "fetch_or",
    "fetch_sub",
    "fetch_xor",
    "compare_exchange",
    "lock",
    "replace_with",
    "set",
    "store",
    "try_borrow_mut",
    "try_lock",
    "write",
];

/// Methods of slices that a window has through `Deref` and that cannot communicate.
const SLICE: &[&str] = &[
    "as_mut_ptr",
    "as_ptr",
    "as_ref",
    "array_windows",
    "binary_search",
    "deref",
    "deref_mut",
    "as_mut",
    "rchunks",
    "split_first",
    "split_last",
    "to_owned",
    "to_vec",
    "windows",
    "last_mut",
    "first_mut",
    "split_at",
    "split_at_mut",
    "chunks",
    "chunks_exact",
    "chunks_exact_mut",
    "chunks_mut",
    "concat",
    "contains",
    "ends_with",
    "first",
    "get_mut",
    "get_unchecked",
    "get_unchecked_mut",
    "into_iter",
    "iter",
    "iter_mut",
    "last",
    "starts_with",
];

/// Macros whose arguments are expressions, from the standard library and from the usual loggers.
const EXPRESSION_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "eprint",
    "eprintln",
    "format",
    "panic",
    "print",
    "println",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "format_args",
];

fn among(list: &[&str], name: &Ident) -> bool {
    let name = name.to_string();
    list.contains(&name.as_str())
}

/// The effect of a method on its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// No effect.
    Pure,
    /// The elements of the receiver change, but their number does not.
    Rearrange,
    /// The elements of the receiver can be changed through the result, but their number cannot.
    IterateMut,
    /// The receiver changes, and would change again if the call were repeated.
    Mutate,
    /// The same as `Mutate` if the receiver is a name. Otherwise the receiver was made for this
    /// call only.
    Advance,
    /// The effect is not known.
    Unknown,
}

/// Returns the effect of `method` on its receiver.
pub fn effect(method: &Ident) -> Effect {
    match () {
        () if among(PURE, method) => Effect::Pure,
        () if among(REARRANGE, method) => Effect::Rearrange,
        () if among(MUTATE, method) => Effect::Mutate,
        () if among(ADVANCE, method) => Effect::Advance,
        () if among(ITERATE_MUT, method) => Effect::IterateMut,
        () => Effect::Unknown,
    }
}

/// Returns whether a call may change its receiver even if the receiver is not `mut`.
pub fn changes_inside(call: &ExprMethodCall) -> bool {
    let method = &call.method;
    match (method.to_string().as_str(), call.args.len()) {
        // On a string or an iterator this call returns a new value.
        ("replace", 2) | ("take", 1) => false,
        ("take", _) => true,
        // Iterators need a `mut` receiver for these methods. So without `mut`, this is a method of
        // another type.
        ("next" | "next_back" | "nth", _) => false,
        _ => among(INTERIOR, method) || matches!(effect(method), Effect::Mutate | Effect::Rearrange),
    }
}

/// Returns whether a call reads state that other code may change: an atomic, a lock, a cell, a
/// channel or a clock.
pub fn reads_state(call: &ExprMethodCall) -> bool {
    const OF_ANY: [&str; 9] =
        ["load", "lock", "try_lock", "try_borrow", "try_read", "recv", "try_recv", "recv_timeout", "elapsed"];
    among(&OF_ANY, &call.method) || (among(&["borrow", "read"], &call.method) && call.args.is_empty())
}

/// Returns whether values of a type with this name can change without being assigned.
pub fn state_type(name: &str) -> bool {
    const TYPES: [&str; 13] = [
        "Cell",
        "Condvar",
        "Instant",
        "LazyCell",
        "LazyLock",
        "Mutex",
        "OnceCell",
        "OnceLock",
        "Receiver",
        "RefCell",
        "RwLock",
        "SystemTime",
        "UnsafeCell",
    ];
    TYPES.contains(&name) || name.strip_prefix("Atomic").is_some_and(|of| !of.is_empty())
}

/// Returns whether a method iterates over a whole map or set.
pub fn iterates(method: &Ident) -> bool {
    const METHODS: [&str; 10] = [
        "drain",
        "into_iter",
        "into_keys",
        "into_values",
        "iter",
        "iter_mut",
        "keys",
        "retain",
        "values",
        "values_mut",
    ];
    among(&METHODS, method)
}

/// Returns whether `method` is a method of slices, which a window has only through `Deref`.
pub fn is_slice_method(method: &Ident) -> bool {
    among(SLICE, method) || among(REARRANGE, method)
}

/// Returns the arguments of a macro whose tokens are known to be expressions.
pub fn macro_arguments(mac: &Macro) -> Option<Vec<Expr>> {
    let name = &mac.path.segments.last()?.ident;
    if !among(EXPRESSION_MACROS, name) {
        return None;
    }
    if let Ok(list) = mac.parse_body_with(crate::parse::Exprs::parse_terminated) {
        return Some(list.into_iter().collect());
    }
    let repeat: syn::ExprRepeat = syn::parse2({
        let tokens = &mac.tokens;
        quote::quote!([#tokens])
    })
    .ok()?;
    Some(vec![*repeat.expr, *repeat.len])
}
