//! Helpers for expressions and for the names in expressions, by syntax.

use proc_macro2::{Ident, TokenStream, TokenTree};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat, UnOp};

/// Returns an expression without the parentheses around it.
pub fn strip(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => strip(&paren.expr),
        Expr::Group(group) => strip(&group.expr),
        other => other,
    }
}

/// Returns whether an expression is an `Err(..)`, or an `Err(..)` with `?` after it.
pub fn is_err(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Call(call) => matches!(strip(&call.func), Expr::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "Err")),
        Expr::Try(inner) => is_err(&inner.expr),
        _ => false,
    }
}

/// Returns the direct parts of an expression in the order of evaluation, or `None` if the
/// expression may skip some of its parts.
pub fn children(expr: &Expr) -> Option<Vec<&Expr>> {
    Some(match expr {
        Expr::Array(array) => array.elems.iter().collect(),
        Expr::Assign(assign) => vec![&*assign.right, &*assign.left],
        Expr::Binary(binary) => vec![&*binary.left, &*binary.right],
        Expr::Call(call) => std::iter::once(&*call.func).chain(&call.args).collect(),
        Expr::Cast(cast) => vec![&*cast.expr],
        Expr::Field(field) => vec![&*field.base],
        Expr::Group(group) => vec![&*group.expr],
        Expr::Index(index) => vec![&*index.expr, &*index.index],
        Expr::Infer(_) | Expr::Lit(_) | Expr::Path(_) => Vec::new(),
        Expr::Let(condition) => vec![&*condition.expr],
        Expr::MethodCall(call) => std::iter::once(&*call.receiver).chain(&call.args).collect(),
        Expr::Paren(paren) => vec![&*paren.expr],
        Expr::Range(range) => range.start.iter().chain(&range.end).map(|end| &**end).collect(),
        Expr::RawAddr(address) => vec![&*address.expr],
        Expr::Reference(reference) => vec![&*reference.expr],
        Expr::Repeat(repeat) => vec![&*repeat.expr, &*repeat.len],
        Expr::Struct(value) => {
            value.fields.iter().map(|field| &field.expr).chain(value.rest.as_deref()).collect()
        }
        Expr::Try(inner) => vec![&*inner.expr],
        Expr::Tuple(tuple) => tuple.elems.iter().collect(),
        Expr::Unary(unary) => vec![&*unary.expr],
        _ => return None,
    })
}

/// Returns whether a function is `Ok`.
pub fn is_ok(func: &Expr) -> bool {
    matches!(strip(func), Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ok"))
}

/// Returns whether an operator is `+=` or another compound assignment.
pub fn is_compound(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// Returns the name, if the expression is only a name.
pub fn name_of(expr: &Expr) -> Option<&Ident> {
    match strip(expr) {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// Returns the name to which a place expression belongs: `x` for `x.field[3]` and `*x`.
pub fn root_of(expr: &Expr) -> Option<&Ident> {
    match strip(expr) {
        Expr::Field(field) => root_of(&field.base),
        Expr::Index(index) => root_of(&index.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => root_of(&unary.expr),
        other => name_of(other),
    }
}

/// Returns the names to which place expressions belong. A destructuring assignment such as
/// `(a, b.c) = ..` has one name for each of its places.
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

/// Returns the names that a pattern binds.
pub fn bound_by(pat: &Pat) -> Vec<Bound> {
    struct Binder(Vec<Bound>);
    impl<'a> Visit<'a> for Binder {
        fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
            // `None` and other constants look like bindings, but by convention they begin with a
            // capital.
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

/// Returns whether a name is that of a constant: its first letter is a capital.
pub fn is_constant(name: &Ident) -> bool {
    name.to_string().trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

/// Collects every identifier in tokens, including those that format strings capture.
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

/// Collects the names in the braces of a format string.
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

/// Returns every name that an expression mentions, including those in the tokens of macros.
pub fn mentioned(expr: &Expr) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    in_tokens(quote::quote!(#expr), &mut all);
    all
}
