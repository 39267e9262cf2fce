//! The declared, owned and passed forms of arguments and generic parameters, and hidden names.

use crate::list::{List, taken_apart};
use crate::parse::{Param, ParamKind, Superstep, Written};
use crate::types::strip_type;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{GenericParam, Type};

/// Returns an identifier that user code cannot see.
pub(super) fn hidden(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns `pattern::<T>(&recording.window::<f64>(0), argument, ..)`, with the given arguments.
pub(super) fn call_pattern(
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

/// Returns the type and const parameters in the form of a call.
pub(super) fn turbofish(superstep: &Superstep) -> TokenStream {
    let names = generic_names(superstep);
    if names.is_empty() { TokenStream::new() } else { quote!(::<#(#names),*>) }
}

/// Returns whether a type is a number, `bool` or `char`. Values of such types are copied, and
/// cannot change.
pub(super) fn is_plain(ty: &Type) -> bool {
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

/// Returns the owned form of an argument's type.
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

/// Returns one type for all arguments: the type of a single argument, otherwise a tuple, which is
/// `()` if there are no arguments.
pub(super) fn bundle(superstep: &Superstep) -> TokenStream {
    let types: Vec<TokenStream> = superstep.arguments().map(|param| owned(&param.ty)).collect();
    match &types[..] {
        [one] => one.clone(),
        several => quote!((#(#several),*)),
    }
}

/// Returns a parameter as the user wrote it.
pub(super) fn input(param: &Param) -> TokenStream {
    let (pat, ty) = (&param.pat, &param.ty);
    quote!(#pat: #ty)
}

/// Returns a parameter under a hidden name.
pub(super) fn plain_input((index, param): (usize, &Param)) -> TokenStream {
    let (name, ty) = (hidden(&format!("argument{index}")), &param.ty);
    quote!(#name: #ty)
}

/// Returns a parameter or a list under a hidden name.
pub(super) fn written_input(superstep: &Superstep, written: Written<'_>) -> TokenStream {
    match written {
        Written::Param(index, param) => plain_input((index, param)),
        Written::List(index, list) => {
            let (name, ty) = (hidden(&format!("argument{index}")), list_type(superstep, list));
            quote!(#name: &mut #ty)
        }
    }
}

/// Returns a type such as `[Window<f64>; 7]`.
pub(super) fn list_type(superstep: &Superstep, list: &List) -> TokenStream {
    let (facade, element, len) = (&superstep.facade, &list.element, list.windows.len());
    quote!([#facade::Window<#element>; #len])
}

/// Returns the statements that bind the windows of lists to their names, and an expression for all
/// windows in the form that a fence takes. `name` returns the name of a parameter, given its index
/// and the name in the source.
pub(super) fn gathered(
    superstep: &Superstep,
    name: impl Fn(usize, &Ident) -> TokenStream,
) -> (TokenStream, TokenStream) {
    let facade = &superstep.facade;
    let (mut apart, mut all) = (TokenStream::new(), Vec::new());
    for written in superstep.written() {
        match written {
            Written::Param(index, Param { kind: ParamKind::Window { .. }, name: Some(own), .. }) => {
                all.push(name(index, own));
            }
            Written::Param(..) => {}
            Written::List(index, list) => {
                let whole = name(index, &list.name);
                apart.extend(taken_apart(&list.windows, &quote!(&mut *#whole)));
                all.extend(list.windows.iter().map(ToTokens::to_token_stream));
            }
        }
    }
    let all = if superstep.lists.is_empty() {
        quote!((#(&mut *#all,)*))
    } else {
        quote!([#(&mut *#all as &mut dyn #facade::AnyWindow),*])
    };
    (apart, all)
}

/// Returns `<T, N>`, or nothing.
pub(super) fn type_names(superstep: &Superstep) -> TokenStream {
    let names = generic_names(superstep);
    if names.is_empty() { TokenStream::new() } else { quote!(<#(#names),*>) }
}

/// Returns the names of the type and const parameters.
fn generic_names(superstep: &Superstep) -> Vec<&Ident> {
    let params = superstep.sig.generics.params.iter().filter_map(|param| match param {
        GenericParam::Type(param) => Some(&param.ident),
        GenericParam::Const(param) => Some(&param.ident),
        GenericParam::Lifetime(_) => None,
    });
    params.collect()
}
