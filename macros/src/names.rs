//! Names: what an expression mentions, what a pattern binds, and which well-known methods do what.

use proc_macro2::{Delimiter, Ident, LineColumn, TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Expr, Macro, Pat, UnOp};

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

/// Methods that take something out of a receiver that is a plain name, an iterator or an `Option`, and would so again;
/// what they are called on else is new each time.
const ADVANCE: &[&str] = &["all", "any", "find", "take"];

/// Methods that change elements of their receiver, never how many there are.
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

/// Methods of the standard collections and iterators that change their receiver in a way that running them again repeats.
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

/// Methods that hand out a way to change elements, never how many there are.
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

/// Methods that change what looks immutable.
const INTERIOR: &[&str] = &[
    "borrow_mut",
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

/// Macros of the standard library and of the usual loggers whose arguments are expressions.
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

/// What a method does to its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Pure,
    /// Its elements change, their number does not.
    Rearrange,
    /// Its elements can be changed through what it returns, their number cannot.
    IterateMut,
    /// It changes, and would change so again if run again.
    Mutate,
    /// The same, where it is a name and not made for this call.
    Advance,
    /// Nobody knows.
    Unknown,
}

/// What `method` does to its receiver.
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

/// Whether `method` may change what it is called on even if that is not `mut`.
pub fn changes_inside(method: &Ident) -> bool {
    among(INTERIOR, method)
}

/// Whether `method` is one of slices, that a window has only through `Deref`.
pub fn is_slice_method(method: &Ident) -> bool {
    among(SLICE, method) || among(REARRANGE, method)
}

/// The arguments of a macro whose tokens are known to be expressions.
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

/// An expression without parentheses around it.
pub fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => strip(&paren.expr),
        Expr::Group(group) => strip(&group.expr),
        other => other,
    }
}

/// The name, if the expression is one.
pub fn name_of(expr: &Expr) -> Option<&Ident> {
    match strip(expr) {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// The name that a place expression is part of: `x` of `x.field[3]` and `*x`.
pub fn root_of(expr: &Expr) -> Option<&Ident> {
    match strip(expr) {
        Expr::Field(field) => root_of(&field.base),
        Expr::Index(index) => root_of(&index.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => root_of(&unary.expr),
        other => name_of(other),
    }
}

/// The names that places are parts of: the one of a place, and each of those that `(a, b.c) = ..` takes a value apart into.
pub fn roots_of(places: &Expr) -> Vec<&Ident> {
    match strip(places) {
        Expr::Tuple(tuple) => tuple.elems.iter().flat_map(roots_of).collect(),
        Expr::Array(array) => array.elems.iter().flat_map(roots_of).collect(),
        Expr::Struct(value) => value.fields.iter().flat_map(|field| roots_of(&field.expr)).collect(),
        Expr::Call(call) => call.args.iter().flat_map(roots_of).collect(),
        place => root_of(place).into_iter().collect(),
    }
}

/// A name that a pattern binds.
pub struct Bound {
    pub name: Ident,
    pub mutable: bool,
}

/// The names that a pattern binds.
pub fn bound_by(pat: &Pat) -> Vec<Bound> {
    struct Binder(Vec<Bound>);
    impl<'a> Visit<'a> for Binder {
        fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
            // `None` and other constants look like bindings; by convention they begin with a capital.
            if !is_constant(&pat.ident) {
                let by_mut_ref = pat.by_ref.is_some() && pat.mutability.is_some();
                self.0
                    .push(Bound { name: pat.ident.clone(), mutable: pat.mutability.is_some() || by_mut_ref });
            }
            visit::visit_pat_ident(self, pat);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut binder = Binder(Vec::new());
    binder.visit_pat(pat);
    binder.0
}

/// Whether a name is a constant's, by its case.
pub fn is_constant(name: &Ident) -> bool {
    name.to_string().trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

/// Every identifier in tokens, those captured by format strings included.
pub fn in_tokens(tokens: TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                into.insert(ident.to_string());
            }
            TokenTree::Group(group) => in_tokens(group.stream(), into),
            TokenTree::Literal(literal) => captured(&literal.to_string(), into),
            TokenTree::Punct(_) => {}
        }
    }
}

/// The names in the braces of a format string.
fn captured(text: &str, into: &mut BTreeSet<String>) {
    if !text.contains('"') {
        return;
    }
    for part in text.split('{').skip(1) {
        let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            into.insert(name);
        }
    }
}

/// Every name that an expression mentions, macros' tokens included.
pub fn mentioned(expr: &Expr) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    in_tokens(quote::quote!(#expr), &mut all);
    all
}

/// What something looks like in the source, on one line and not too long.
pub fn text_of(tokens: &impl quote::ToTokens) -> String {
    let mut line = String::new();
    write_tokens(tokens.to_token_stream(), &mut line, &mut None);
    const LONG: usize = 70;
    if line.chars().count() > LONG {
        line = line.chars().take(LONG - 3).collect::<String>() + "...";
    }
    line
}

/// Tokens with a space where the source has one or more; `end` is where the last one ended.
fn write_tokens(tokens: TokenStream, line: &mut String, end: &mut Option<LineColumn>) {
    fn write(text: &str, from: LineColumn, to: LineColumn, line: &mut String, end: &mut Option<LineColumn>) {
        if end.is_some_and(|end| end != from) {
            line.push(' ');
        }
        line.push_str(text);
        *end = Some(to);
    }
    for token in tokens {
        let (from, to) = (token.span().start(), token.span().end());
        let TokenTree::Group(group) = token else {
            write(&token.to_string(), from, to, line, end);
            continue;
        };
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::None => {
                write_tokens(group.stream(), line, end);
                continue;
            }
        };
        // A group that was parsed and printed has one span for both its delimiters: the whole.
        write(open, from, LineColumn { column: from.column + 1, ..from }, line, end);
        write_tokens(group.stream(), line, end);
        write(close, LineColumn { column: to.column.saturating_sub(1), ..to }, to, line, end);
    }
}
