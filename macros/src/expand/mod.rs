//! Translates the tree of a superstep to tokens. This stage cannot fail.
//!
//! The function keeps its signature, and its body runs between calls of `enter` and `leave`. The
//! expansion also has an empty enum of the same name, which holds `pattern`, `compile`, `prepare`
//! and `load`, and the type of the prepared superstep.

mod arguments;
mod described;
mod dynamic;
mod function;
mod prepared;

use crate::check::{fenced, opens};
use crate::collect::Body;
use crate::messages::OTHER_MODE;
use crate::parse::Superstep;
use crate::slice::Outcome;
use described::described;
use dynamic::{because, dynamic};
use function::function;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, FnArg, Item, ReturnType, Type};

/// Returns the whole expansion.
pub fn expand(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let function = function(superstep, body, outcome);
    let (vis, name) = (&superstep.vis, &superstep.sig.ident);
    let cfgs: Vec<&Attribute> = superstep.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let doc = format!("What can be done with the superstep [`{name}`](fn@{name}) without calling it.");
    let about = about(superstep, body, outcome);
    let ahead = match outcome {
        Outcome::Described(slice) => described(superstep, body, slice, &cfgs),
        Outcome::Dynamic(reason) => dynamic(superstep, reason, &cfgs),
    };
    quote! {
        #function

        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #vis enum #name {}

        #(#cfgs)*
        #[allow(dead_code, clippy::all, clippy::pedantic)]
        impl #name {
            #about
        }

        #ahead
    }
}

/// Returns the diagnostic for an error, and the unchanged function if the function compiles.
pub fn harmless(item: TokenStream, error: &syn::Error) -> TokenStream {
    let complaint = error.to_compile_error();
    let Ok(Item::Fn(mut function)) = syn::parse2::<Item>(item.clone()) else {
        return quote!(#item #complaint);
    };
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.retain(|attr| !attr.path().is_ident("uniform"));
        }
    }
    let returns_result = matches!(&function.sig.output, ReturnType::Type(_, ty)
        if matches!(&**ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result")));
    let missing = error.to_string().contains(OTHER_MODE);
    if !returns_result || function.sig.constness.is_some() || missing {
        // In this case, a `?` in the body or a call of a missing method would cause further errors.
        function.sig.constness = None;
        function.block = syn::parse_quote!({ loop {} });
    }
    quote! {
        #[allow(unused, clippy::all, clippy::pedantic)]
        #function
        #complaint
    }
}

/// Returns the description of a superstep for the runtime.
fn about(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let facade = &superstep.facade;
    let ident = &superstep.sig.ident;
    let name = ident.to_string();
    let span = ident.span();
    let column = span.start().column as u32 + 1;
    let line = quote_spanned!(span=> ::core::line!());
    let (fences, opens) = (fenced(&body.flow), opens(body));
    let mode = match &superstep.mode {
        Some(mode) => quote!(::core::option::Option::Some(#facade::Mode::#mode)),
        None => quote!(::core::option::Option::None),
    };
    let sync = &superstep.sync;
    let dynamic = match outcome {
        Outcome::Described(_) => quote!(::core::option::Option::None),
        Outcome::Dynamic(reason) => {
            let why = because(reason);
            quote!(::core::option::Option::Some(#why))
        }
    };
    quote! {
        #[doc(hidden)]
        pub fn __superstep() -> &'static #facade::__private::Superstep {
            static SUPERSTEP: #facade::__private::Superstep = #facade::__private::Superstep {
                name: #name,
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: #line,
                column: #column,
                fences: #fences,
                opens: #opens,
                mode: #mode,
                sync: #facade::__private::Sync::#sync,
                dynamic: #dynamic,
                known: #facade::__private::Known::new(),
            };
            &SUPERSTEP
        }
    }
}
