//! The items that are emitted with a dynamic superstep, whose pattern is not available.

use super::arguments::{bundle, type_names};
use super::prepared::{Halves, prepared_name, prepared_type};
use crate::collect::Reason;
use crate::parse::{ParamKind, Superstep};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::Attribute;

/// Returns a text that names the line that makes a superstep dynamic, and why.
pub(super) fn because(reason: &Reason) -> String {
    format!("line {}: `{}` {}", reason.span.start().line, reason.text, reason.why)
}

/// Returns the same items as for other supersteps, for a superstep whose pattern is not available.
/// Using one of these items is a compile error that shows the reason.
pub(super) fn dynamic(superstep: &Superstep, reason: &Reason, cfgs: &[&Attribute]) -> TokenStream {
    let Superstep { facade, sig, .. } = superstep;
    let name = &sig.ident;
    let generics = &sig.generics;
    let clause = &generics.where_clause;
    let line = reason.span.start().line;
    let why = because(reason).replace('{', "{{").replace('}', "}}");
    let message = format!("superstep `{name}` cannot be compiled ahead: {why}");
    let label = format!("`{name}` is planned at run time, because of line {line}");
    let note = "it runs as it is; to compile it ahead, let its targets and places follow from its arguments alone, in whole calls on the windows themselves";
    let trait_name = format_ident!("__Ahead");
    let bound = quote_spanned!(reason.span=> __Ahead);
    let arguments: Vec<TokenStream> = superstep
        .arguments()
        .map(|param| {
            let ty = &param.ty;
            quote!(_: #ty)
        })
        .collect();
    let mut first = true;
    let inputs = superstep.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Window { .. } if std::mem::take(&mut first) => {
            Some(quote!(window: &(impl #bound + ?Sized)))
        }
        ParamKind::Window { element } => Some(quote!(_: &#facade::__private::Recorder<#element>)),
        ParamKind::Argument => {
            let ty = &param.ty;
            Some(quote!(_: #ty))
        }
        ParamKind::SharedWindow | ParamKind::World => None,
    });
    let closure = if reason.why.starts_with("is an argument") || reason.why.starts_with("is a pointer") {
        quote!(impl #bound)
    } else {
        let bundle = bundle(superstep);
        quote!(impl ::core::ops::FnMut(usize) -> #facade::Result<#bundle> + #bound)
    };
    let prepared = prepared_name(superstep);
    let prepared_generics = type_names(superstep);
    let prepared_type = prepared_type(superstep, (false, Halves::Whole), cfgs);
    quote! {
        #prepared_type

        #(#cfgs)*
        const _: () = {
            #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
            pub trait #trait_name {
                fn never(&self) -> ::core::convert::Infallible;
            }

            #[allow(unused, clippy::all, clippy::pedantic)]
            impl #name {
                /// Not available: this superstep is planned at run time.
                pub fn pattern #generics (#(#inputs),*) -> #facade::Result<()> #clause {
                    match window.never() {}
                }
                /// Not available: this superstep is planned at run time.
                pub fn compile #generics (ranks: usize, arguments: #closure) -> #facade::Result<#facade::Compiled> #clause {
                    match arguments.never() {}
                }
                /// Not available: this superstep is planned at run time.
                pub fn prepare #generics (world: &(impl #bound + ?Sized) #(, #arguments)*) -> #facade::Result<#prepared #prepared_generics> #clause {
                    match world.never() {}
                }
                /// Not available: this superstep is planned at run time.
                pub fn load #generics (world: &(impl #bound + ?Sized), source: impl #facade::__private::PlanSource #(, #arguments)*) -> #facade::Result<#prepared #prepared_generics> #clause {
                    match world.never() {}
                }
            }
        };
    }
}
