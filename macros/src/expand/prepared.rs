//! The type of the prepared superstep, with `run` and `replay`.

use super::arguments::{hidden, plain_input, turbofish, type_names};
use crate::parse::{Param, ParamKind, Superstep};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
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
    // Under names of ours, since a parameter may be named as the function is.
    let inputs = superstep.params.iter().enumerate().map(plain_input);
    let passed = (0..superstep.params.len()).map(|index| hidden(&format!("argument{index}")));
    let is_window = |(_, param): &(usize, &Param)| matches!(param.kind, ParamKind::Window { .. });
    let windows = superstep.params.iter().enumerate().filter(is_window);
    let windows = windows.map(|(index, _)| hidden(&format!("argument{index}")));
    let bound = hidden("bound");
    let replay = if replays { replay(superstep, &lifetimes) } else { no_replay(superstep, &lifetimes) };
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
            /// Runs it once: takes the parameters of the superstep's function, and returns what that returns. The body is run,
            /// and its calls are matched with the plan's, one by one.
            ///
            /// # Errors
            /// `PLAN` at the first call that is not the plan's; otherwise as the superstep.
            #[track_caller]
            pub fn run <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #returns #clause {
                let #bound = self.core.bind((#(&mut *#windows,)*))?;
                #name #turbofish (#(#passed),*)
            }

            #replay

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

/// `replay`, of a superstep that is nothing but operations between sections.
fn replay(superstep: &Superstep, lifetimes: &[&GenericParam]) -> TokenStream {
    let (facade, clause) = (&superstep.facade, &superstep.sig.generics.where_clause);
    let inputs = superstep.windows().map(|(name, element)| quote!(#name: &mut #facade::Window<#element>));
    let windows = superstep.windows().map(|(name, _)| name);
    let taken = superstep.windows().map(|(name, element)| quote!(#name: #facade::Window<#element>));
    let elements: Vec<_> = superstep.windows().map(|(_, element)| element).collect();
    let names: Vec<_> = superstep.windows().map(|(name, _)| name).collect();
    let (all, types) = match (&names[..], &elements[..]) {
        ([name], [element]) => (quote!(#name), quote!(#facade::Window<#element>)),
        _ => (quote!((#(#names,)*)), quote!((#(#facade::Window<#elements>,)*))),
    };
    quote! {
        /// Begins a `replay`, and returns without having waited for another rank: takes the windows themselves, whose
        /// elements are as they are now for all that the superstep reads. `finish` of what it returns ends the superstep and
        /// returns the windows; until then this rank may compute.
        ///
        /// # Errors
        /// `RMA_SYNC` where a superstep of the world was begun and is not finished; otherwise as `replay`. The windows are
        /// dropped.
        ///
        /// # Cost
        /// That of this rank's packs and sends, which is all that other ranks wait for. The first time also the elements that
        /// the rank keeps are found, and the verifier shows that the schedule leaves them alone.
        #[track_caller]
        pub fn begin <#(#lifetimes),*> (&mut self, #(#taken),*) -> #facade::Result<#facade::Running<#types>> #clause {
            self.core.begin(#all)
        }

        /// Runs the plan once, without the body: takes the windows alone. Operations go where the arguments of `prepare` or
        /// `load` said. Nothing is counted, described or planned.
        ///
        /// # Errors
        /// `SIZE` for a window shorter than the plan needs; `PLAN`, with nothing moved, where a call takes its elements from
        /// values, which are not in a plan; otherwise as a fence.
        #[track_caller]
        pub fn replay <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #facade::Result<()> #clause {
            self.core.replay((#(&mut *#windows,)*))
        }
    }
}

/// `replay`, of one whose body does more: asking for it is an error that says so.
fn no_replay(superstep: &Superstep, lifetimes: &[&GenericParam]) -> TokenStream {
    let (facade, clause) = (&superstep.facade, &superstep.sig.generics.where_clause);
    let inputs = superstep.windows().skip(1).map(|(_, element)| quote!(, _: &mut #facade::Window<#element>));
    let taken = superstep.windows().skip(1).map(|(_, element)| quote!(, _: #facade::Window<#element>));
    quote! {
        /// Not to be had: the body of this superstep has to run.
        pub fn begin <#(#lifetimes),*> (
            &mut self,
            window: impl #facade::__private::Replays
            #(#taken)*
        ) -> #facade::Result<()> #clause {
            match window.never() {}
        }

        /// Not to be had: the body of this superstep has to run.
        pub fn replay <#(#lifetimes),*> (
            &mut self,
            window: &mut (impl #facade::__private::Replays + ?Sized)
            #(#inputs)*
        ) -> #facade::Result<()> #clause {
            match window.never() {}
        }
    }
}
