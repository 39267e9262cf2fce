//! Helpers for types, and for identifiers in tokens, by syntax.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::Type;

/// Returns whether a reference type is `&mut`.
pub fn is_mut(reference: &syn::TypeReference) -> bool {
    reference.mutability.is_some()
}

/// Returns a type without the parentheses around it.
pub fn strip_type(ty: &Type) -> &Type {
    match ty {
        Type::Paren(paren) => strip_type(&paren.elem),
        Type::Group(group) => strip_type(&group.elem),
        other => other,
    }
}

/// Returns the span of the first occurrence of an identifier or keyword in tokens.
pub fn find_ident(tokens: TokenStream, name: &str) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == name => Some(ident.span()),
        TokenTree::Group(group) => find_ident(group.stream(), name),
        _ => None,
    })
}
