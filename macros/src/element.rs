//! `#[derive(Element)]`: makes a struct of numbers an element of windows.
//!
//! This file refuses structs whose syntax shows that they are not elements. The derive emits code
//! that makes the compiler check the remaining rules: each field is an element, and there is no
//! padding between the fields.

use crate::messages::*;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Path, Result, Token, Type};

/// Returns the implementations for a struct, or only a compile error if the item cannot be an
/// element.
pub fn derive(item: TokenStream) -> TokenStream {
    syn::parse2(item).and_then(|input| implementations(&input)).unwrap_or_else(Error::into_compile_error)
}

fn implementations(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields(input)?;
    let name = &input.ident;
    let each_is_one = fields.iter().map(|field| quote_spanned!(field.span()=> element::<#field>();));
    Ok(quote! {
        const _: () = {
            const fn element<T: ::fencepost::Element>() {}
            #(#each_is_one)*
            ::core::assert!(
                ::core::mem::size_of::<#name>() == 0 #(+ ::core::mem::size_of::<#fields>())*,
                #PADDING
            );
        };
        // SAFETY: every field is an element, and an element with all bits zero is valid.
        unsafe impl ::fencepost::__private::Zeroable for #name {}
        // SAFETY: every field is an element, the order of the fields is fixed, and the assertion
        // above excludes padding between them. So every bit pattern of the struct is a value.
        unsafe impl ::fencepost::__private::Pod for #name {}
    })
}

/// Returns the types of the fields of a struct whose layout is fixed.
fn fields(input: &DeriveInput) -> Result<Vec<&Type>> {
    let fields = match &input.data {
        Data::Struct(of) => &of.fields,
        Data::Enum(of) => return Err(Error::new(of.enum_token.span, ELEMENT_ENUM)),
        Data::Union(of) => return Err(Error::new(of.union_token.span, ELEMENT_UNION)),
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, ELEMENT_GENERIC));
    }
    if matches!(fields, Fields::Unit) || fields.is_empty() {
        return Err(Error::new_spanned(&input.ident, ELEMENT_EMPTY));
    }
    if !fixed(&input.attrs)? {
        return Err(Error::new_spanned(&input.ident, ELEMENT_REPR));
    }
    Ok(fields.iter().map(|field| &field.ty).collect())
}

/// Returns whether the attributes fix the order of the fields.
fn fixed(attrs: &[Attribute]) -> Result<bool> {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("repr")) {
        let words = attr.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated)?;
        let is = |path: &Path| path.is_ident("C") || path.is_ident("transparent");
        if words.iter().any(|word| is(word.path())) {
            return Ok(true);
        }
    }
    Ok(false)
}
