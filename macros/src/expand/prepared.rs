//! The type of the prepared superstep, with `run`, `replay` and `begin`.

use super::arguments::{gathered, hidden, list_type, turbofish, type_names, written_input};
use super::function::ends_in_fence;
use crate::collect::Body;
use crate::parse::{Param, ParamKind, Superstep, Written};
use crate::slice::Slice;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Attribute, GenericParam, Type};

/// Returns the name of the prepared superstep's type.
pub(super) fn prepared_name(superstep: &Superstep) -> Ident {
    superstep.prepared.clone().unwrap_or_else(|| format_ident!("{}_prepared", superstep.sig.ident))
}

/// The two halves of a prepared superstep.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Halves {
    /// The halves of a replay, which does not run the body.
    Replayed,
    /// The first half is the body up to its last fence, and the second half is that fence.
    Body,
    /// The first half is the whole superstep, since the body continues after its last fence. The
    /// second half is empty.
    Whole,
}

impl Halves {
    /// Returns the halves of a superstep whose pattern is available.
    pub(super) fn of(superstep: &Superstep, body: &Body, slice: &Slice) -> Self {
        if slice.replays && !slice.generic {
            Self::Replayed
        } else if ends_in_fence(superstep, body) {
            Self::Body
        } else {
            Self::Whole
        }
    }
}

/// Returns the type that `prepare` and `load` return.
pub(super) fn prepared_type(
    superstep: &Superstep,
    (replays, halves): (bool, Halves),
    cfgs: &[&Attribute],
) -> TokenStream {
    let Superstep { facade, vis, sig, returns, .. } = superstep;
    let (name, prepared) = (&sig.ident, prepared_name(superstep));
    let (types, lifetimes): (Vec<&GenericParam>, Vec<&GenericParam>) =
        sig.generics.params.iter().partition(|param| !matches!(param, GenericParam::Lifetime(_)));
    let type_idents = sig.generics.type_params().map(|param| &param.ident);
    let names = type_names(superstep);
    let turbofish = turbofish(superstep);
    let clause = &sig.generics.where_clause;
    let doc = format!("The superstep [`{name}`](fn@{name}), prepared: all ranks have agreed on its plan.");
    // The parameters get hidden names, since a parameter may have the name of the function.
    let inputs = superstep.written().map(|written| written_input(superstep, written));
    let passed = superstep.written().map(|written| argument(place_of(written)));
    let (apart, all) = gathered(superstep, |index, _| argument(index).to_token_stream());
    let bound = hidden("bound");
    let begin = match halves {
        Halves::Replayed => begin_replay(superstep, &lifetimes),
        _ => begin_body(superstep, &lifetimes, halves),
    };
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
            /// Runs the superstep once: takes the parameters of its function, and returns the
            /// function's result. Runs the body, and matches its calls with those of the plan, one
            /// by one.
            ///
            /// # Errors
            /// `PLAN` at the first call that is not in the plan. Otherwise the errors of the
            /// superstep.
            #[track_caller]
            pub fn run <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #returns #clause {
                let #bound = {
                    #apart
                    self.core.bind(#all)?
                };
                #name #turbofish (#(#passed),*)
            }

            #replay

            #begin

            /// Returns the operations of all ranks whose order matters because they access the same
            /// elements. If one rank has planned for all processes, since their calls are numerous
            /// and all different, each other rank returns only the conflicts on its own windows.
            pub fn conflicts(&self) -> ::std::vec::Vec<#facade::Conflict> {
                self.core.conflicts()
            }

            /// Writes the plan to the file `path`, which `load` and `Compiled::open` read. All
            /// ranks call this, and rank 0 writes.
            ///
            /// # Errors
            /// If the file cannot be written, `IO` or `FILE` on rank 0, and `RMA_SYNC` on the other
            /// ranks. Otherwise the errors of a barrier.
            #[track_caller]
            pub fn save(&self, path: impl ::core::convert::AsRef<::std::path::Path>) -> #facade::Result<()> {
                self.core.save(path)
            }

            /// Returns where each operation of all ranks goes and why, and which operations
            /// conflict. If one rank has planned for all processes, each other rank returns its own
            /// operations.
            pub fn explain(&self) -> #facade::explain::Explained {
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

/// Returns the hidden name of the parameter with this index.
fn argument(index: usize) -> Ident {
    hidden(&format!("argument{index}"))
}

fn place_of(written: Written<'_>) -> usize {
    match written {
        Written::Param(index, _) | Written::List(index, _) => index,
    }
}

/// Returns the parameters that are windows or lists of windows: the index, the name, and the type
/// without `&mut`.
fn window_params(superstep: &Superstep) -> impl Iterator<Item = (usize, &Ident, TokenStream)> {
    let facade = &superstep.facade;
    superstep.written().filter_map(move |written| match written {
        Written::Param(index, Param { kind: ParamKind::Window { element }, name: Some(name), .. }) => {
            Some((index, name, quote!(#facade::Window<#element>)))
        }
        Written::Param(..) => None,
        Written::List(index, list) => Some((index, &list.name, list_type(superstep, list))),
    })
}

/// Returns `replay` of a superstep that consists only of operations between sections.
fn replay(superstep: &Superstep, lifetimes: &[&GenericParam]) -> TokenStream {
    let (facade, clause) = (&superstep.facade, &superstep.sig.generics.where_clause);
    let inputs = window_params(superstep).map(|(_, name, ty)| quote!(#name: &mut #ty));
    let (apart, all) = gathered(superstep, |_, name| name.to_token_stream());
    quote! {
        /// Runs the plan once, without the body: takes only the windows. Operations go where the
        /// arguments of `prepare` or `load` sent them. Nothing is counted, described or planned.
        ///
        /// # Errors
        /// `SIZE` if a window is shorter than the plan needs. `PLAN` if a call takes its elements
        /// from values, which are not in a plan; in this case nothing is moved. Otherwise the
        /// errors of a fence.
        #[track_caller]
        pub fn replay <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #facade::Result<()> #clause {
            #apart
            self.core.replay(#all)
        }
    }
}

/// Returns `replay` of a superstep whose body must run. Using this `replay` is a compile error that
/// explains why.
fn no_replay(superstep: &Superstep, lifetimes: &[&GenericParam]) -> TokenStream {
    let (facade, clause) = (&superstep.facade, &superstep.sig.generics.where_clause);
    let inputs = window_params(superstep).skip(1).map(|(_, _, ty)| quote!(, _: &mut #ty));
    quote! {
        /// Not available: the body of this superstep must run.
        pub fn replay <#(#lifetimes),*> (
            &mut self,
            window: &mut (impl #facade::__private::Replays + ?Sized)
            #(#inputs)*
        ) -> #facade::Result<()> #clause {
            match window.never() {}
        }
    }
}

/// Returns the windows that `begin` takes, and their type. A single window is unchanged, and
/// several windows are a tuple.
fn taken(superstep: &Superstep, names: &[Ident]) -> (TokenStream, TokenStream) {
    let types: Vec<_> = window_params(superstep).map(|(_, _, ty)| ty).collect();
    match (names, &types[..]) {
        ([name], [ty]) => (quote!(#name), quote!(#ty)),
        _ => (quote!((#(#names,)*)), quote!((#(#types,)*))),
    }
}

/// Returns `begin` of a superstep that is replayed.
fn begin_replay(superstep: &Superstep, lifetimes: &[&GenericParam]) -> TokenStream {
    let (facade, clause) = (&superstep.facade, &superstep.sig.generics.where_clause);
    let inputs = window_params(superstep).map(|(_, name, ty)| quote!(#name: #ty));
    let names: Vec<Ident> = window_params(superstep).map(|(_, name, _)| name.clone()).collect();
    let (windows, types) = taken(superstep, &names);
    quote! {
        /// Begins a `replay`: takes the windows by value, and returns without waiting for another
        /// rank. The superstep reads the elements of the windows as they are at this call. Epochs
        /// before the last one are run whole. `finish` of the result ends the superstep and returns
        /// the windows; until then this rank may compute.
        ///
        /// # Errors
        /// `RMA_SYNC` if a superstep of the world was begun and is not finished. With posts and
        /// starts, only a run of this plan counts. Otherwise the errors of `replay`. The windows
        /// are dropped.
        ///
        /// # Cost
        /// The cost of this rank's packs and sends. Other ranks wait for nothing else. The first
        /// call also determines the elements that the rank keeps, and the verifier proves that the
        /// schedule leaves them alone.
        #[track_caller]
        pub fn begin <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #facade::Result<#facade::Running<#types>> #clause {
            self.core.begin(#windows)
        }
    }
}

/// Returns `begin` of a superstep whose body must run.
fn begin_body(superstep: &Superstep, lifetimes: &[&GenericParam], halves: Halves) -> TokenStream {
    let Superstep { facade, sig, value, returns_unit, .. } = superstep;
    let (name, turbofish, clause) = (&sig.ident, turbofish(superstep), &sig.generics.where_clause);
    let taken_types: Vec<(usize, TokenStream)> =
        window_params(superstep).map(|(index, _, ty)| (index, ty)).collect();
    let type_of = |index| taken_types.iter().find(|(taken, _)| *taken == index).map(|(_, ty)| ty);
    let inputs = superstep.written().map(|written| {
        let index = place_of(written);
        match type_of(index) {
            Some(ty) => {
                let name = argument(index);
                quote!(mut #name: #ty)
            }
            None => written_input(superstep, written),
        }
    });
    let passed = superstep.written().map(|written| {
        let (index, name) = (place_of(written), argument(place_of(written)));
        if type_of(index).is_some() { quote!(&mut #name) } else { quote!(#name) }
    });
    let names: Vec<Ident> = taken_types.iter().map(|(index, _)| argument(*index)).collect();
    let (apart, all) = gathered(superstep, |index, _| {
        let name = argument(index);
        quote!((&mut #name))
    });
    let (windows, types) = taken(superstep, &names);
    let (bound, returned) = (hidden("bound"), hidden("returned"));
    let (running, given) = if *returns_unit {
        (quote!(#facade::Running<#types>), quote!(#returned))
    } else {
        (quote!(#facade::Running<#types, #facade::Returns<#value>>), quote!(#facade::Returns(#returned)))
    };
    let returns = superstep.returns_with(Type::Verbatim(running));
    let (bind, does, cost) = match halves {
        Halves::Whole => (
            quote!(bind),
            "Runs the whole superstep, since its body continues after its last fence. Takes the parameters of the \
             superstep's function, the windows by value. `finish` of the result has nothing left to wait for.",
            "That of `run`. The first call also determines the elements that the rank keeps, and the verifier proves \
             that the schedule leaves them alone.",
        ),
        Halves::Body | Halves::Replayed => (
            quote!(bind_half),
            "Begins a `run`: takes the parameters of the superstep's function, the windows by value. Runs the body up to \
             its last fence, and returns without waiting for another rank at that fence. Slices that are put may be \
             reused afterwards. The last epoch reads the elements of the windows as they are at that fence. `finish` of \
             the result ends the superstep, and returns the windows and the value that the body has returned. Tickets \
             have their elements then. Until then this rank may compute.",
            "That of the body, of a copy of the slices that are put, and of this rank's packs and sends. Other ranks wait \
             for nothing else. The first call also determines the elements that the rank keeps, and the verifier proves \
             that the schedule leaves them alone.",
        ),
    };
    quote! {
        #[doc = #does]
        ///
        /// # Errors
        /// `RMA_SYNC` if a superstep of the world was begun and is not finished. With posts and
        /// starts, only a run of this plan counts. Otherwise the errors of `run`. The windows are
        /// dropped.
        ///
        /// # Cost
        #[doc = #cost]
        #[track_caller]
        pub fn begin <#(#lifetimes),*> (&mut self, #(#inputs),*) -> #returns #clause {
            let #bound = {
                #apart
                self.core.#bind(#all)?
            };
            let #returned = #name #turbofish (#(#passed),*)?;
            ::core::mem::drop(#bound);
            ::core::result::Result::Ok(self.core.begun(#windows, #given)?)
        }
    }
}
