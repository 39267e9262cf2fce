//! The type of the prepared superstep.

use super::arguments::{hidden, plain_input, turbofish, type_names};
use crate::parse::{ParamKind, Superstep};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, GenericParam};

/// The prepared superstep's name.
pub(super) fn prepared_name(superstep: &Superstep) -> Ident {
    superstep.prepared.clone().unwrap_or_else(|| format_ident!("{}_prepared", superstep.sig.ident))
}

/// The type that `prepare` and `load` give.
pub(super) fn prepared_type(superstep: &Superstep, replays: bool, cfgs: &[&Attribute]) -> TokenStream {
    let Superstep { facade, vis, sig, returns, .. } = superstep;
    let (name, prepared) = (&sig.ident, prepared_name(superstep));
    let (types, lifetimes): (Vec<&GenericParam>, Vec<&GenericParam>) =
        sig.generics.params.iter().partition(|param| !matches!(param, GenericParam::Lifetime(_)));
    let type_idents = sig.generics.type_params().map(|param| &param.ident);
    let names = type_names(superstep);
    let turbofish = turbofish(superstep);
    let clause = &sig.generics.where_clause;
    let doc = format!("The superstep [`{name}`](fn@{name}), prepared: all ranks have agreed on its plan.");
    let windows: Vec<&Ident> = superstep.windows().map(|(name, _)| name).collect();
    let run = if replays {
        let inputs = superstep.windows().map(|(name, element)| quote!(#name: &mut #facade::Window<#element>));
        quote! {
            /// Run it once: no counting, no descriptions, no planning.
            ///
            /// # Errors
            /// `SIZE` for a window shorter than the plan needs; otherwise as a fence.
            #[track_caller]
            pub fn run <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #facade::Result<()> #clause {
                self.core.run((#(&mut *#windows,)*))
            }
        }
    } else {
        let inputs = superstep.params.iter().enumerate().map(|(index, param)| match param.kind {
            ParamKind::Window { .. } => {
                let (name, ty) = (&param.name, &param.ty);
                quote!(#name: #ty)
            }
            _ => plain_input((index, param)),
        });
        let passed = superstep.params.iter().enumerate().map(|(index, param)| match param.kind {
            ParamKind::Window { .. } => param.name.to_token_stream(),
            _ => hidden(&format!("argument{index}")).to_token_stream(),
        });
        let bound = hidden("bound");
        quote! {
            /// Run it once: its calls are matched with the plan's, one by one.
            ///
            /// # Errors
            /// `PLAN` at the first call that is not the plan's; otherwise as the superstep.
            #[track_caller]
            pub fn run <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #returns #clause {
                let #bound = self.core.bind((#(&mut *#windows,)*))?;
                #name #turbofish (#(#passed),*)
            }
        }
    };
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[allow(non_camel_case_types, dead_code)]
        #vis struct #prepared <#(#types),*> {
            core: #facade::__private::Prepared,
            types: ::core::marker::PhantomData<fn() -> (#(#type_idents,)*)>,
        }

        #(#cfgs)*
        #[allow(dead_code, clippy::all, clippy::pedantic)]
        impl <#(#types),*> #prepared #names {
            #run

            /// Operations of all ranks that touch the same elements in ways whose order matters.
            pub fn conflicts(&self) -> ::std::vec::Vec<#facade::Conflict> {
                self.core.conflicts()
            }

            /// For each operation of all ranks where it goes and why, and which conflict.
            pub fn explain(&self) -> ::std::string::String {
                self.core.explain()
            }
        }

        #(#cfgs)*
        impl <#(#types),*> ::core::fmt::Debug for #prepared #names {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Debug::fmt(&self.core, f)
            }
        }
    }
}
