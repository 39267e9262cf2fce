//! How many elements a value has, without the elements: what the pattern needs to know of a slice that is put.

use crate::chain::Scope;
use crate::collect::Reason;
use crate::exprs::{name_of, strip};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Path, RangeLimits};

/// A value with as many elements as the original.
pub enum Shape<'a> {
    /// This expression in its place.
    Value(TokenStream),
    /// As many as this name has: only its own shape is needed.
    Name(&'a syn::Ident),
}

/// Makes an expression part of the slice as it is.
pub type Keep<'k> = &'k mut dyn FnMut(&Expr) -> Result<TokenStream, Reason>;

/// The shape of a source, or of what a local buffer is made from, where the syntax shows one.
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
                    value(quote!(::std::vec![#zero; #len]))
                }
                _ => Ok(None),
            }
        }
        // Elements of a window: as many as the range says.
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
