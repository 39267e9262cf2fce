//! The items that are emitted with a superstep whose pattern is available.

use super::arguments::{bundle, call_pattern, hidden, input, is_plain, plain_input, type_names};
use super::prepared::{Halves, prepared_name, prepared_type};
use crate::collect::Body;
use crate::parse::{ParamKind, Superstep};
use crate::slice::Slice;
use crate::types::{is_mut, strip_type};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Type};

/// Returns `pattern`, `compile`, `prepare`, `load` and the prepared superstep of a superstep whose
/// pattern is available.
pub(super) fn described(
    superstep: &Superstep,
    body: &Body,
    slice: &Slice,
    cfgs: &[&Attribute],
) -> TokenStream {
    let Superstep { facade, sig, .. } = superstep;
    let pattern_returns = superstep.returns_with(syn::parse_quote!(()));
    let name = &sig.ident;
    let generics = &sig.generics;
    let clause = &generics.where_clause;
    let prepared = prepared_name(superstep);
    let statements = &slice.statements;
    let inputs = superstep.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Window { element } => {
            let name = &param.name;
            Some(quote!(#name: &#facade::__private::Recorder<#element>))
        }
        ParamKind::Argument => Some(input(param)),
        ParamKind::SharedWindow | ParamKind::World => None,
    });
    let elements: Vec<&Type> = superstep.windows().map(|(_, element)| element).collect();

    let bundle = bundle(superstep);
    let (recording, all, again) = (hidden("recording"), hidden("all"), hidden("again"));
    let single = superstep.arguments().count() == 1;
    let part = |index: usize, of: TokenStream| {
        let index = syn::Index::from(index);
        if single { of } else { quote!((#of).#index) }
    };
    let lent = superstep.arguments().enumerate().map(|(index, param)| match strip_type(&param.ty) {
        Type::Reference(reference) if is_mut(reference) => {
            let own = part(index, quote!(#again()?));
            quote!(&mut #own)
        }
        Type::Reference(_) => {
            let own = part(index, quote!(*#all));
            quote!(&#own)
        }
        ty if is_plain(ty) => part(index, quote!(*#all)),
        _ => part(index, quote!(#again()?)),
    });
    let record = call_pattern(superstep, &recording, lent);
    let told = (0..superstep.arguments().count()).map(|index| {
        let own = part(index, quote!(*#all));
        quote!((&#facade::__private::Told(&#own)).told())
    });

    let arguments: Vec<TokenStream> = superstep.arguments().enumerate().map(plain_input).collect();
    let names =
        (0..superstep.arguments().count()).map(|index| hidden(&format!("argument{index}")).to_token_stream());
    let once = call_pattern(superstep, &recording, names);
    let prepared_generics = type_names(superstep);
    let prepared_type = prepared_type(superstep, (slice.replays, Halves::of(superstep, body, slice)), cfgs);
    quote! {
        #prepared_type

        #(#cfgs)*
        #[allow(unused, unreachable_code, clippy::all, clippy::pedantic)]
        impl #name {
            /// Records the calls of this superstep on recorders in place of its windows; needs no
            /// world.
            pub fn pattern #generics (#(#inputs),*) -> #pattern_returns #clause {
                #statements
                ::core::result::Result::Ok(())
            }

            /// Compiles this superstep for `ranks` ranks that share memory, on the default machine
            /// model; needs no world. `arguments` returns the arguments of each rank.
            /// `Compiled::with` compiles for another placement, such as that of `World::placement`,
            /// and for another machine.
            ///
            /// # Errors
            /// The errors of `arguments` and of the calls, with the rank.
            pub fn compile #generics (
                ranks: usize,
                arguments: impl ::core::ops::FnMut(usize) -> #facade::Result<#bundle>,
            ) -> #facade::Result<#facade::Compiled> #clause {
                #facade::__private::compile(
                    #name::__superstep(),
                    &[#(#facade::__private::element_type::<#elements>()),*],
                    ranks,
                    arguments,
                    |#all: &#bundle| {
                        use #facade::__private::{TellArgument as _, TellNothing as _};
                        ::std::vec![#(#told),*]
                    },
                    |#recording: &#facade::__private::Recording, #all: &#bundle, #again: &dyn ::core::ops::Fn() -> #facade::Result<#bundle>| {
                        #name::#record.map_err(#facade::__private::error_of)
                    },
                )
            }

            /// Prepares this superstep: all ranks describe it, agree on its plan, and compile it.
            ///
            /// # Errors
            /// The errors of the calls, and an error if ranks do not agree.
            #[track_caller]
            pub fn prepare #generics (
                world: &#facade::World
                #(, #arguments)*
            ) -> #facade::Result<#prepared #prepared_generics> #clause {
                let core = #facade::__private::prepare(
                    #name::__superstep(),
                    world,
                    &[#(#facade::__private::element_type::<#elements>()),*],
                    |#recording: &#facade::__private::Recording| #name::#once.map_err(#facade::__private::error_of),
                )?;
                ::core::result::Result::Ok(#prepared { core, types: ::core::marker::PhantomData })
            }

            /// Prepares this superstep from the plan in a file, after comparing it with this rank's
            /// own pattern. The source is the path of the file, its bytes (of `include_bytes!`), or
            /// the path of a folder. From a folder, `load` takes the file of this superstep for
            /// this number of ranks. If there is no such file, it prepares the superstep. A plan
            /// that was made for another placement of the ranks is compiled again from its own
            /// calls.
            ///
            /// # Errors
            /// The errors of `prepare`. `FILE` or `PLAN` if the file is not a plan, or not a plan
            /// for these calls.
            #[track_caller]
            pub fn load #generics (
                world: &#facade::World,
                source: impl #facade::__private::PlanSource
                #(, #arguments)*
            ) -> #facade::Result<#prepared #prepared_generics> #clause {
                let core = #facade::__private::load(
                    #name::__superstep(),
                    world,
                    &source,
                    &[#(#facade::__private::element_type::<#elements>()),*],
                    |#recording: &#facade::__private::Recording| #name::#once.map_err(#facade::__private::error_of),
                )?;
                ::core::result::Result::Ok(#prepared { core, types: ::core::marker::PhantomData })
            }
        }
    }
}
