//! Our tree to tokens. Nothing here can fail.
//!
//! The function keeps its signature; its body runs between `enter` and `leave`. Beside it stand an empty enum of its
//! name, which holds `pattern`, `compile`, `prepare` and `load`, and the type of the prepared superstep.

use crate::check::{fenced, idle_fences};
use crate::collect::{Body, Reason};
use crate::messages::OTHER_MODE;
use crate::parse::{Param, ParamKind, Superstep, is_mut, strip_type};
use crate::slice::{Outcome, Slice, place_of};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, FnArg, GenericParam, Item, ReturnType, Stmt, Type};

/// The whole expansion.
pub fn expand(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let function = function(superstep, body, outcome);
    let (vis, name) = (&superstep.vis, &superstep.sig.ident);
    let cfgs: Vec<&Attribute> = superstep.attrs.iter().filter(|attr| attr.path().is_ident("cfg")).collect();
    let doc = format!("What can be done with the superstep [`{name}`](fn@{name}) without calling it.");
    let about = about(superstep, body, outcome);
    let ahead = match outcome {
        Outcome::Described(slice) => described(superstep, slice, &cfgs),
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

/// On an error: the diagnostic, and the function as it was, where that compiles.
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
        // Its `?`, or its calls of what there is not, would be errors of their own.
        function.sig.constness = None;
        function.block = syn::parse_quote!({ loop {} });
    }
    quote! {
        #[allow(unused, clippy::all, clippy::pedantic)]
        #function
        #complaint
    }
}

/// What the runtime is told of a superstep.
fn about(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let facade = &superstep.facade;
    let ident = &superstep.sig.ident;
    let name = ident.to_string();
    let span = ident.span();
    let column = span.start().column as u32 + 1;
    let line = quote_spanned!(span=> ::core::line!());
    let fences = fenced(&body.flow);
    let mode = match &superstep.mode {
        Some(mode) => quote!(::core::option::Option::Some(#facade::Mode::#mode)),
        None => quote!(::core::option::Option::None),
    };
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
                mode: #mode,
                dynamic: #dynamic,
            };
            &SUPERSTEP
        }
    }
}

/// The line that made a superstep dynamic, and why.
fn because(reason: &Reason) -> String {
    format!("line {}: `{}` {}", reason.span.start().line, reason.text, reason.why)
}

/// An identifier that no user's code can see.
fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// The function itself.
fn function(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let Superstep { facade, attrs, vis, sig, returns, .. } = superstep;
    let name = &superstep.sig.ident;
    let windows: Vec<&Ident> = superstep.windows().map(|(name, _)| name).collect();
    let (scope, result) = (hidden("scope"), hidden("result"));
    let reborrows = superstep.params.iter().filter_map(|param| match (&param.kind, &param.pat) {
        (ParamKind::Window { .. }, syn::Pat::Ident(pat)) => {
            let (mutability, name) = (&pat.mutability, &pat.ident);
            Some(quote!(let #mutability #name = &mut *#name;))
        }
        _ => None,
    });
    let statements = statements(superstep, body, &scope);
    // The window that the body has is a reborrow, and that one is `mut` where the user says so.
    let mut sig = sig.clone();
    for input in &mut sig.inputs {
        if let FnArg::Typed(typed) = input
            && let syn::Pat::Ident(pat) = &mut *typed.pat
            && windows.contains(&&pat.ident)
        {
            pat.mutability = None;
        }
    }
    let uniform = uniform(superstep);
    let claim = match outcome {
        Outcome::Described(_) => claim(superstep),
        Outcome::Dynamic(_) => quote!(::core::option::Option::None),
    };
    // Errors name the line of the function's name.
    let enter = Ident::new("enter", Span::mixed_site().located_at(name.span()));
    let leave = Ident::new("leave", Span::mixed_site().located_at(name.span()));
    quote! {
        #(#attrs)*
        #vis #sig {
            let #scope = #facade::__private::#enter(#name::__superstep(), (#(&mut *#windows,)*), #uniform, #claim)?;
            #[allow(clippy::redundant_closure_call)]
            let #result = (|| -> #returns {
                #(#reborrows)*
                #statements
            })();
            #scope.#leave((#(&mut *#windows,)*), #result)
        }
    }
}

/// The body, without fences that order nothing, and with a note after the last one.
fn statements(superstep: &Superstep, body: &Body, scope: &Ident) -> TokenStream {
    let mut block = superstep.body.clone();
    let idle = idle_fences(body).into_iter().map(place_of).collect();
    let facade = superstep.facade.clone();
    LeaveOut { idle, facade, scope: &body.scope }.visit_block_mut(&mut block);
    let last = last_fence(&superstep.body, body);
    let statements = block.stmts.iter().enumerate().map(|(i, stmt)| {
        let ended = (last == Some(i) && i + 1 < block.stmts.len()).then(|| quote!(#scope.ended();));
        quote!(#stmt #ended)
    });
    quote!(#(#statements)*)
}

/// The statement that holds the last fence.
fn last_fence(block: &Block, body: &Body) -> Option<usize> {
    struct Fences<'s>(&'s crate::chain::Scope, bool);
    impl<'a> syn::visit::Visit<'a> for Fences<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.1 |= self.0.fence(expr).is_some();
            syn::visit::visit_expr(self, expr);
        }
    }
    block.stmts.iter().rposition(|stmt: &Stmt| {
        let mut fences = Fences(&body.scope, false);
        syn::visit::Visit::visit_stmt(&mut fences, stmt);
        fences.1
    })
}

struct LeaveOut<'s> {
    idle: Vec<(usize, usize)>,
    facade: syn::Path,
    scope: &'s crate::chain::Scope,
}

impl VisitMut for LeaveOut<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let idle = self
            .scope
            .fence(expr)
            .is_some_and(|fence| self.idle.contains(&place_of(fence.call.method.span())));
        if idle {
            let facade = &self.facade;
            *expr = Expr::Verbatim(quote!(#facade::__private::orders_nothing()));
        }
    }
}

/// A hash of what must be equal on all ranks.
fn uniform(superstep: &Superstep) -> TokenStream {
    let facade = &superstep.facade;
    let params =
        superstep.params.iter().filter(|param| param.uniform).filter_map(|param| param.name.as_ref());
    let consts = superstep.sig.generics.const_params().map(|param| &param.ident);
    let all: Vec<&Ident> = params.chain(consts).collect();
    if all.is_empty() {
        return quote!(0);
    }
    let with = all.iter().map(|name| {
        let with = Ident::new("with", Span::mixed_site().located_at(name.span()));
        quote_spanned!(name.span()=> .#with(&#name))
    });
    quote!(#facade::__private::UniformHash::new() #(#with)* .word())
}

/// The pattern that the calls are compared with, where all arguments can be lent for it.
fn claim(superstep: &Superstep) -> TokenStream {
    let (facade, name) = (&superstep.facade, &superstep.sig.ident);
    let lent: Option<Vec<TokenStream>> = superstep
        .arguments()
        .map(|param| {
            let name = param.name.as_ref()?;
            match strip_type(&param.ty) {
                Type::Reference(reference) if is_mut(reference) => None,
                Type::Reference(_) => Some(quote!(#name)),
                ty => is_plain(ty).then(|| quote!(#name)),
            }
        })
        .collect();
    let Some(lent) = lent else { return quote!(::core::option::Option::None) };
    let recording = hidden("recording");
    let call = call_pattern(superstep, &recording, lent.into_iter());
    quote! {
        ::core::option::Option::Some(&|#recording: &#facade::__private::Recording| {
            #name::#call.map_err(#facade::__private::error_of)
        })
    }
}

/// `pattern::<T>(&recording.window::<f64>(0), argument, ..)`, with the arguments given.
fn call_pattern(
    superstep: &Superstep,
    recording: &Ident,
    mut arguments: impl Iterator<Item = TokenStream>,
) -> TokenStream {
    let turbofish = turbofish(superstep);
    let mut window = 0usize;
    let inputs = superstep.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Window { element } => {
            window += 1;
            let index = window - 1;
            Some(quote!(&#recording.window::<#element>(#index)))
        }
        ParamKind::Argument => arguments.next(),
        ParamKind::SharedWindow | ParamKind::World => None,
    });
    let inputs: Vec<TokenStream> = inputs.collect();
    quote!(pattern #turbofish (#(#inputs),*))
}

/// The type and const parameters, as given at a call.
fn turbofish(superstep: &Superstep) -> TokenStream {
    let names: Vec<&Ident> = superstep
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if names.is_empty() { TokenStream::new() } else { quote!(::<#(#names),*>) }
}

/// Types of numbers and the like: copied, and the same each time.
fn is_plain(ty: &Type) -> bool {
    const PLAIN: [&str; 16] = [
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
        "bool", "char",
    ];
    match strip_type(ty) {
        Type::Path(path) => {
            path.path.get_ident().is_some_and(|name| PLAIN.contains(&name.to_string().as_str()))
        }
        Type::Tuple(tuple) => tuple.elems.iter().all(is_plain),
        Type::Array(array) => is_plain(&array.elem),
        _ => false,
    }
}

/// The owned form of an argument's type.
fn owned(ty: &Type) -> TokenStream {
    let Type::Reference(reference) = strip_type(ty) else { return ty.to_token_stream() };
    match strip_type(&reference.elem) {
        Type::Slice(slice) => {
            let element = &slice.elem;
            quote!(::std::vec::Vec<#element>)
        }
        Type::Path(path) if path.path.is_ident("str") => quote!(::std::string::String),
        Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Path") => {
            quote!(::std::path::PathBuf)
        }
        inner => inner.to_token_stream(),
    }
}

/// All arguments in one type: one as it is, several as a tuple, none as `()`.
fn bundle(superstep: &Superstep) -> TokenStream {
    let types: Vec<TokenStream> = superstep.arguments().map(|param| owned(&param.ty)).collect();
    match &types[..] {
        [one] => one.clone(),
        several => quote!((#(#several),*)),
    }
}

/// The prepared superstep's name.
fn prepared_name(superstep: &Superstep) -> Ident {
    superstep.prepared.clone().unwrap_or_else(|| format_ident!("{}_prepared", superstep.sig.ident))
}

/// `pattern`, `compile`, `prepare`, `load` and the prepared superstep of one whose pattern can be had.
fn described(superstep: &Superstep, slice: &Slice, cfgs: &[&Attribute]) -> TokenStream {
    let Superstep { facade, sig, pattern_returns, .. } = superstep;
    let name = &sig.ident;
    let generics = &sig.generics;
    let clause = &generics.where_clause;
    let prepared = prepared_name(superstep);
    let statements = &slice.statements;
    let inputs = superstep.params.iter().filter_map(|param| match &param.kind {
        ParamKind::Window { element } => {
            let name = &param.name;
            Some(quote!(#name: &#facade::Recorder<#element>))
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
    let replays = slice.replays;
    let prepared_type = prepared_type(superstep, slice.replays, cfgs);
    quote! {
        #prepared_type

        #(#cfgs)*
        #[allow(unused, unreachable_code, clippy::all, clippy::pedantic)]
        impl #name {
            /// Records the calls of this superstep on recorders in the place of its windows: needs no world.
            pub fn pattern #generics (#(#inputs),*) -> #pattern_returns #clause {
                #statements
                ::core::result::Result::Ok(())
            }

            /// Compiles this superstep for `ranks` ranks, `arguments` giving each rank's: needs no world.
            ///
            /// # Errors
            /// Those of `arguments` and of the calls, with the rank.
            pub fn compile #generics (
                ranks: u32,
                arguments: impl ::core::ops::FnMut(usize) -> #facade::Result<#bundle>,
            ) -> #facade::Result<#facade::Compiled> #clause {
                #facade::__private::compile(
                    #name::__superstep(),
                    &[#(#facade::element_type::<#elements>()),*],
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
            /// Those of the calls, and of ranks that do not agree.
            #[track_caller]
            pub fn prepare #generics (
                world: &#facade::World
                #(, #arguments)*
            ) -> #facade::Result<#prepared #prepared_generics> #clause {
                let core = #facade::__private::prepare(
                    #name::__superstep(),
                    world,
                    &[#(#facade::element_type::<#elements>()),*],
                    #replays,
                    |#recording: &#facade::__private::Recording| #name::#once.map_err(#facade::__private::error_of),
                )?;
                ::core::result::Result::Ok(#prepared { core, types: ::core::marker::PhantomData })
            }

            /// Prepares this superstep from the plan in a file, after comparing it with this rank's own pattern.
            ///
            /// # Errors
            /// As `prepare`; and `FILE` or `PLAN` for a file that is not a plan, or not one for these calls.
            #[track_caller]
            pub fn load #generics (
                world: &#facade::World,
                path: impl ::core::convert::AsRef<::std::path::Path>
                #(, #arguments)*
            ) -> #facade::Result<#prepared #prepared_generics> #clause {
                let core = #facade::__private::load(
                    #name::__superstep(),
                    world,
                    path.as_ref(),
                    &[#(#facade::element_type::<#elements>()),*],
                    #replays,
                    |#recording: &#facade::__private::Recording| #name::#once.map_err(#facade::__private::error_of),
                )?;
                ::core::result::Result::Ok(#prepared { core, types: ::core::marker::PhantomData })
            }
        }
    }
}

/// A parameter as written.
fn input(param: &Param) -> TokenStream {
    let (pat, ty) = (&param.pat, &param.ty);
    quote!(#pat: #ty)
}

/// A parameter under a name of ours.
fn plain_input((index, param): (usize, &Param)) -> TokenStream {
    let (name, ty) = (hidden(&format!("argument{index}")), &param.ty);
    quote!(#name: #ty)
}

/// `<T, N>`, or nothing.
fn type_names(superstep: &Superstep) -> TokenStream {
    let names: Vec<&Ident> = superstep
        .sig
        .generics
        .params
        .iter()
        .filter_map(|param| match param {
            GenericParam::Type(param) => Some(&param.ident),
            GenericParam::Const(param) => Some(&param.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect();
    if names.is_empty() { TokenStream::new() } else { quote!(<#(#names),*>) }
}

/// The type that `prepare` and `load` give.
fn prepared_type(superstep: &Superstep, replays: bool, cfgs: &[&Attribute]) -> TokenStream {
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

/// The same names of one whose pattern cannot be had: asking for it is an error that shows why.
fn dynamic(superstep: &Superstep, reason: &Reason, cfgs: &[&Attribute]) -> TokenStream {
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
        ParamKind::Window { element } => Some(quote!(_: &#facade::Recorder<#element>)),
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
    let prepared_type = prepared_type(superstep, false, cfgs);
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
                /// Not to be had: this superstep is planned at run time.
                pub fn pattern #generics (#(#inputs),*) -> #facade::Result<()> #clause {
                    match window.never() {}
                }
                /// Not to be had: this superstep is planned at run time.
                pub fn compile #generics (ranks: u32, arguments: #closure) -> #facade::Result<#facade::Compiled> #clause {
                    match arguments.never() {}
                }
                /// Not to be had: this superstep is planned at run time.
                pub fn prepare #generics (world: &(impl #bound + ?Sized) #(, #arguments)*) -> #facade::Result<#prepared #prepared_generics> #clause {
                    match world.never() {}
                }
                /// Not to be had: this superstep is planned at run time.
                pub fn load #generics (world: &(impl #bound + ?Sized), path: impl ::core::convert::AsRef<::std::path::Path> #(, #arguments)*) -> #facade::Result<#prepared #prepared_generics> #clause {
                    match world.never() {}
                }
            }
        };
    }
}
