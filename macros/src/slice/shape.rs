//! Determines how many elements a value has, without the elements themselves. A pattern needs
//! nothing else of a slice that is put.

use crate::chain::Scope;
use crate::collect::Reason;
use crate::exprs::{bound_by, in_tokens, name_of, strip};
use crate::parse::Superstep;
use crate::types::strip_type;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, Item, Local, Pat, Path, RangeLimits, Type};

/// A value with as many elements as the original.
pub enum Shape<'a> {
    /// This expression replaces the original value.
    Value(TokenStream),
    /// The original value has as many elements as the value of this name, so only the shape of the
    /// name is needed.
    Name(&'a syn::Ident),
}

/// Returns whether a type is a slice, an array or a `Vec`, or a reference to one.
fn is_list(ty: &Type) -> bool {
    match strip_type(ty) {
        Type::Slice(_) | Type::Array(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Vec"),
        Type::Reference(reference) => is_list(&reference.elem),
        _ => false,
    }
}

/// Returns the names that are lists of values at every place where they are bound. If any other
/// name is put, it may be a range or a datatype.
pub fn lists(superstep: &Superstep) -> BTreeSet<String> {
    let mut bindings = Bindings::default();
    for param in &superstep.params {
        bindings.bound(&param.pat, Some(&param.ty), None);
    }
    bindings.visit_block(&superstep.body);
    let Bindings { mut lists, values, others } = bindings;
    lists.extend(values.iter().flat_map(|(names, _)| names.clone()));
    lists.retain(|name| !others.contains(name));
    loop {
        let before = lists.len();
        for (names, value) in &values {
            if !is_values(value, &lists) {
                lists.retain(|name| !names.contains(name));
            }
        }
        if lists.len() == before {
            return lists;
        }
    }
}

#[derive(Default)]
struct Bindings {
    /// The names that are bound somewhere with the type of a list.
    lists: BTreeSet<String>,
    /// For each binding without a declared type, its names and the value that they are bound to.
    values: Vec<(Vec<String>, Expr)>,
    /// The names that are bound somewhere to something that is not visibly a list.
    others: BTreeSet<String>,
}

impl Bindings {
    fn bound(&mut self, pat: &Pat, ty: Option<&Type>, value: Option<&Expr>) {
        let names: Vec<String> = bound_by(pat).into_iter().map(|bound| bound.name.to_string()).collect();
        match (pat, ty, value) {
            (Pat::Type(typed), _, _) if is_list(&typed.ty) => self.lists.extend(names),
            (_, Some(ty), _) if is_list(ty) => self.lists.extend(names),
            (Pat::Ident(_), None, Some(value)) => self.values.push((names, value.clone())),
            _ => self.others.extend(names),
        }
    }
}

impl<'a> Visit<'a> for Bindings {
    fn visit_local(&mut self, local: &'a Local) {
        self.bound(&local.pat, None, local.init.as_ref().map(|init| &*init.expr));
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
            init.diverge.iter().for_each(|(_, diverge)| self.visit_expr(diverge));
        }
    }
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.bound(pat, None, None);
    }
    fn visit_item(&mut self, _: &'a Item) {}
}

/// Returns whether an expression is a list of values, as far as syntax shows.
pub fn is_values(expr: &Expr, lists: &BTreeSet<String>) -> bool {
    match strip(expr) {
        Expr::Array(_) | Expr::Repeat(_) => true,
        Expr::Macro(mac) => mac.mac.path.is_ident("vec"),
        Expr::Reference(reference) => is_values(&reference.expr, lists),
        Expr::Index(index) => matches!(strip(&index.index), Expr::Range(_)),
        Expr::Call(call) => matches!(strip(&call.func), Expr::Path(path)
            if path.path.segments.len() > 1 && path.path.segments.iter().rev().nth(1).is_some_and(|of| of.ident == "Vec")),
        Expr::MethodCall(call) if call.method == "collect" => call.turbofish.as_ref().is_some_and(|given| {
            let mut names = BTreeSet::new();
            in_tokens(quote!(#given), &mut names);
            names.contains("Vec")
        }),
        Expr::MethodCall(call) if call.method == "clone" => is_values(&call.receiver, lists),
        Expr::MethodCall(call) => call.method == "to_vec" || call.method == "as_slice",
        other => name_of(other).is_some_and(|name| lists.contains(&name.to_string())),
    }
}

/// A function that makes an expression part of the slice unchanged.
pub type Keep<'k> = &'k mut dyn FnMut(&Expr) -> Result<TokenStream, Reason>;

/// Returns the shape of a source, or of the value from which a local buffer is made, if the syntax
/// shows the shape.
pub fn shape<'a>(
    expr: &'a Expr,
    scope: &Scope,
    facade: &Path,
    keep: Keep<'_>,
) -> Result<Option<Shape<'a>>, Reason> {
    let zero = quote_spanned!(expr.span()=> #facade::__private::zero());
    let value = |tokens| Ok(Some(Shape::Value(tokens)));
    match strip(expr) {
        Expr::Array(array) => {
            let zeros = array.elems.iter().map(|_| &zero);
            value(quote!([#(#zeros),*]))
        }
        Expr::Repeat(repeat) => {
            let len = keep(&repeat.len)?;
            value(quote!([#zero; #len]))
        }
        Expr::Macro(mac) if mac.mac.path.is_ident("vec") => {
            let tokens = &mac.mac.tokens;
            match syn::parse2::<Expr>(quote!([#tokens])) {
                Ok(Expr::Array(array)) => {
                    let zeros = array.elems.iter().map(|_| &zero);
                    value(quote!(::std::vec![#(#zeros),*]))
                }
                Ok(Expr::Repeat(repeat)) => {
                    let len = keep(&repeat.len)?;
                    // The length may come from an argument that has not been checked yet. If it is
                    // too large, `zeros` panics and does not abort.
                    value(quote_spanned!(expr.span()=> #facade::__private::zeros(0..(#len))))
                }
                _ => Ok(None),
            }
        }
        // For elements of a window, the range determines their number.
        Expr::Index(index) if scope.window_of(&index.expr).is_some() => {
            let Expr::Range(range) = strip(&index.index) else { return Ok(None) };
            let start = range.start.as_deref().map_or(Ok(quote!(0)), &mut *keep)?;
            let window = &index.expr;
            let end = range.end.as_deref().map_or_else(|| Ok(quote!((#window).length()?)), &mut *keep)?;
            let end = match range.limits {
                RangeLimits::HalfOpen(_) => end,
                RangeLimits::Closed(_) => quote!((#end) + 1),
            };
            let span = expr.span();
            value(quote_spanned!(span=> #facade::__private::zeros((#start)..(#end))[..]))
        }
        Expr::Index(index) => match (name_of(&index.expr), strip(&index.index)) {
            (Some(name), Expr::Range(range)) if range.start.is_none() && range.end.is_none() => {
                Ok(Some(Shape::Name(name)))
            }
            _ => Ok(None),
        },
        Expr::Reference(reference) => Ok(match shape(&reference.expr, scope, facade, keep)? {
            Some(Shape::Value(tokens)) => Some(Shape::Value(quote!(&#tokens))),
            other => other,
        }),
        Expr::MethodCall(call)
            if call.args.is_empty()
                && ["as_slice", "clone", "to_vec", "as_ref"].contains(&call.method.to_string().as_str()) =>
        {
            let method = &call.method;
            Ok(match shape(&call.receiver, scope, facade, keep)? {
                Some(Shape::Value(tokens)) => Some(Shape::Value(quote!((#tokens).#method()))),
                other => other,
            })
        }
        other => Ok(name_of(other).map(Shape::Name)),
    }
}
