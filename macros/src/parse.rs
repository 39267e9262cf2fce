//! Parses tokens into a [`Superstep`], which has the function and its parameters by role.

use crate::list::{List, list, unroll};
use crate::messages::*;
use crate::types::{find_ident, is_mut, strip_type};
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Block, Error, FnArg, GenericArgument, Ident, Item, ItemFn, Pat, Path, PathArguments, Result,
    ReturnType, Signature, Token, Type, Visibility,
};

/// A function that is a superstep.
#[derive(Debug)]
pub struct Superstep {
    /// The path of the facade.
    pub facade: Path,
    /// The name of the prepared superstep's type, if the user has given one.
    pub prepared: Option<Ident>,
    /// The mode that its operations prefer, as a variant of `Mode`.
    pub mode: Option<Ident>,
    /// How the prepared superstep synchronises, as a variant of `Sync`.
    pub sync: Ident,
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    /// The signature as the user wrote it, without `#[uniform]`.
    pub sig: Signature,
    pub body: Block,
    /// The parameters in the order of the source. A list of windows becomes one parameter for each
    /// window.
    pub params: Vec<Param>,
    /// The lists of windows, in the order of the source.
    pub lists: Vec<List>,
    /// The whole return type.
    pub returns: Type,
    /// The type that `Ok` holds in the return type.
    pub value: Type,
    /// Whether `Ok` holds `()`.
    pub returns_unit: bool,
}

/// One parameter.
#[derive(Debug)]
pub struct Param {
    pub pat: Pat,
    /// The name, if the pattern is a plain name.
    pub name: Option<Ident>,
    pub kind: ParamKind,
    pub ty: Type,
    pub uniform: bool,
    /// The index of the list to which the window belongs.
    pub list: Option<usize>,
}

/// The role of a parameter, by the syntax of its type.
#[derive(Debug)]
pub enum ParamKind {
    /// `&mut Window<element>`: a window that takes part.
    Window { element: Box<Type> },
    /// `&Window<T>`: data to read.
    SharedWindow,
    /// `&World`.
    World,
    /// Anything else.
    Argument,
}

/// A parameter as the user wrote it, with its index among the [`params`](Superstep::params).
#[derive(Clone, Copy)]
pub enum Written<'s> {
    Param(usize, &'s Param),
    /// A list of windows, with the index of its first window.
    List(usize, &'s List),
}

impl Superstep {
    /// Returns the name and the element type of the windows that take part, in order.
    pub fn windows(&self) -> impl Iterator<Item = (&Ident, &Type)> {
        self.params.iter().filter_map(|param| match (&param.kind, &param.name) {
            (ParamKind::Window { element }, Some(name)) => Some((name, &**element)),
            _ => None,
        })
    }

    /// Returns the parameters as the user wrote them.
    pub fn written(&self) -> impl Iterator<Item = Written<'_>> {
        self.params.iter().enumerate().filter_map(|(at, param)| match param.list {
            None => Some(Written::Param(at, param)),
            Some(number) => {
                let list = &self.lists[number];
                (param.name.as_ref() == list.windows.first()).then_some(Written::List(at, list))
            }
        })
    }

    /// Returns the return type with another type in `Ok`.
    pub fn returns_with(&self, value: Type) -> Type {
        let mut returns = strip_type(&self.returns).clone();
        if let Some(held) = held_by_ok(&mut returns) {
            *held = value;
        }
        returns
    }

    /// Returns the parameters that are neither windows nor a world.
    pub fn arguments(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|param| matches!(param.kind, ParamKind::Argument))
    }
}

/// The maximum number of parameters that are windows or lists of windows.
const WINDOWS_MAX: usize = 6;
/// The maximum number of windows in all parameters. Plans name windows by the bits of a word.
const ALL_WINDOWS_MAX: usize = 64;

/// Reads the attribute's options and the function under it.
pub fn parse(options: TokenStream, item: TokenStream) -> Result<Superstep> {
    let options = read_options(options)?;
    let ItemFn { attrs, vis, mut sig, block, .. } = match syn::parse2::<Item>(item)? {
        Item::Fn(function) => function,
        other => return Err(Error::new_spanned(first_token(&other), NOT_A_FUNCTION)),
    };
    refuse_signature(&sig)?;
    let (mut params, mut lists) = (Vec::<Param>::new(), Vec::<List>::new());
    for input in &mut sig.inputs {
        match input {
            FnArg::Receiver(receiver) => return Err(Error::new_spanned(receiver.self_token, METHOD)),
            FnArg::Typed(typed) => {
                let uniform = take_uniform(&mut typed.attrs);
                match list(plain_name(&typed.pat).as_ref(), &typed.ty)? {
                    Some(_) if uniform => return Err(Error::new_spanned(&typed.pat, UNIFORM_WINDOW)),
                    Some(list) => {
                        params.extend(params_of(&list, lists.len()));
                        lists.push(list);
                    }
                    None => params.push(param(typed, uniform)?),
                }
            }
        }
    }
    let (returns, value) = result_type(&sig)?;
    let returns_unit = matches!(strip_type(&value), Type::Tuple(tuple) if tuple.elems.is_empty());
    if !params.iter().any(|param| matches!(param.kind, ParamKind::Window { .. })) {
        return Err(Error::new_spanned(&sig.ident, NO_WINDOW));
    }
    let windows = || params.iter().filter(|param: &&Param| matches!(param.kind, ParamKind::Window { .. }));
    let is_first =
        |param: &&Param| param.list.is_none_or(|list| param.name.as_ref() == lists[list].windows.first());
    if let Some(seventh) =
        windows().filter(is_first).nth(WINDOWS_MAX).or_else(|| windows().nth(ALL_WINDOWS_MAX))
    {
        return Err(Error::new_spanned(&seventh.pat, MANY_WINDOWS));
    }
    let mut body = *block;
    unroll(&mut body, &lists)?;
    Ok(Superstep {
        facade: options.facade,
        prepared: options.prepared,
        mode: options.mode,
        sync: options.sync,
        attrs,
        vis,
        sig,
        body,
        params,
        lists,
        returns,
        value,
        returns_unit,
    })
}

struct Options {
    facade: Path,
    prepared: Option<Ident>,
    mode: Option<Ident>,
    sync: Ident,
}

fn read_options(tokens: TokenStream) -> Result<Options> {
    let fence = Ident::new("Fence", Span::call_site());
    let mut options =
        Options { facade: syn::parse_quote!(::fencepost), prepared: None, mode: None, sync: fence };
    let parser = syn::meta::parser(|meta| {
        if meta.path.is_ident("crate") {
            options.facade = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        } else if meta.path.is_ident("prepared") {
            options.prepared = Some(meta.value()?.parse()?);
            Ok(())
        } else if meta.path.is_ident("mode") {
            options.mode = Some(mode(&meta.value()?.parse()?)?);
            Ok(())
        } else if meta.path.is_ident("sync") {
            options.sync = sync(&meta.value()?.parse()?)?;
            Ok(())
        } else {
            Err(meta.error(OPTION))
        }
    });
    syn::parse::Parser::parse2(parser, tokens)?;
    Ok(options)
}

/// Returns the variant of `Mode` that `#[superstep(mode = word)]` denotes.
fn mode(word: &Ident) -> Result<Ident> {
    let variant = match word.to_string().as_str() {
        "aggressive" => "Aggressive",
        "aggregated" => "Aggregated",
        "pipelined" => "Pipelined",
        "direct" => "Direct",
        _ => return Err(Error::new_spanned(word, MODE)),
    };
    Ok(Ident::new(variant, word.span()))
}

/// Returns the variant of `Sync` that `#[superstep(sync = word)]` denotes.
fn sync(word: &Ident) -> Result<Ident> {
    let variant = match word.to_string().as_str() {
        "fence" => "Fence",
        "pscw" => "Pscw",
        _ => return Err(Error::new_spanned(word, SYNC)),
    };
    Ok(Ident::new(variant, word.span()))
}

fn refuse_signature(sig: &Signature) -> Result<()> {
    if let Some(token) = &sig.asyncness {
        return Err(Error::new_spanned(token, ASYNC));
    }
    if let Some(token) = &sig.constness {
        return Err(Error::new_spanned(token, CONST));
    }
    if let Some(abi) = &sig.abi {
        return Err(Error::new_spanned(abi, EXTERN));
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        return Err(Error::new_spanned(token, UNSAFE));
    }
    if let Some(span) = find_ident(quote::quote!(#sig), "Self") {
        return Err(Error::new(span, SELF_TYPE));
    }
    Ok(())
}

fn take_uniform(attrs: &mut Vec<Attribute>) -> bool {
    let before = attrs.len();
    attrs.retain(|attr| !attr.path().is_ident("uniform"));
    attrs.len() < before
}

fn param(typed: &syn::PatType, uniform: bool) -> Result<Param> {
    let kind = kind_of(&typed.ty);
    let name = plain_name(&typed.pat);
    match kind {
        ParamKind::Window { .. } | ParamKind::SharedWindow => {
            if name.is_none() {
                return Err(Error::new_spanned(&typed.pat, WINDOW_PATTERN));
            }
            if uniform {
                return Err(Error::new_spanned(&typed.pat, UNIFORM_WINDOW));
            }
        }
        ParamKind::Argument => {
            if let Some(span) = find_ident(quote_type(&typed.ty), "Window") {
                return Err(Error::new(span, WINDOW_BY_VALUE));
            }
            if uniform && name.is_none() {
                return Err(Error::new_spanned(&typed.pat, UNIFORM_PATTERN));
            }
        }
        ParamKind::World => {}
    }
    Ok(Param { pat: (*typed.pat).clone(), name, kind, ty: (*typed.ty).clone(), uniform, list: None })
}

/// Returns the name, if a pattern is a plain name.
fn plain_name(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(pat.ident.clone()),
        _ => None,
    }
}

/// Returns the windows of a list as parameters.
fn params_of(list: &List, number: usize) -> impl Iterator<Item = Param> {
    list.windows.iter().map(move |name| Param {
        pat: syn::parse_quote!(#name),
        name: Some(name.clone()),
        kind: ParamKind::Window { element: Box::new(list.element.clone()) },
        ty: Type::Verbatim(TokenStream::new()), // the list has the type of the parameter
        uniform: false,
        list: Some(number),
    })
}

fn quote_type(ty: &Type) -> TokenStream {
    quote::quote!(#ty)
}

fn kind_of(ty: &Type) -> ParamKind {
    let Type::Reference(reference) = strip_type(ty) else { return ParamKind::Argument };
    let Type::Path(path) = strip_type(&reference.elem) else { return ParamKind::Argument };
    let Some(last) = path.path.segments.last() else { return ParamKind::Argument };
    if last.ident == "World" && last.arguments.is_empty() {
        return ParamKind::World;
    }
    if last.ident != "Window" {
        return ParamKind::Argument;
    }
    let element = match &last.arguments {
        PathArguments::AngleBracketed(list) => list.args.iter().find_map(|arg| match arg {
            GenericArgument::Type(element) => Some(element.clone()),
            _ => None,
        }),
        _ => None,
    };
    match (element, is_mut(reference)) {
        (Some(element), true) => ParamKind::Window { element: Box::new(element) },
        (Some(_), false) => ParamKind::SharedWindow,
        (None, _) => ParamKind::Argument,
    }
}

/// Returns the return type, and the type that `Ok` holds in it.
fn result_type(sig: &Signature) -> Result<(Type, Type)> {
    let ReturnType::Type(_, ty) = &sig.output else {
        return Err(Error::new_spanned(&sig.ident, NO_RESULT));
    };
    let mut stripped = strip_type(ty).clone();
    let Some(value) = held_by_ok(&mut stripped) else {
        return Err(Error::new_spanned(ty, NO_RESULT));
    };
    if let Some(span) = find_ident(quote_type(ty), "impl") {
        return Err(Error::new(span, IMPL_RESULT));
    }
    Ok(((**ty).clone(), value.clone()))
}

/// Returns the type that `Ok` holds, if the type is written as a `Result`.
fn held_by_ok(ty: &mut Type) -> Option<&mut Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last_mut().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(list) = &mut last.arguments else { return None };
    match list.args.first_mut()? {
        GenericArgument::Type(held) => Some(held),
        _ => None,
    }
}

/// Returns the first identifier or keyword of an item, which shows the kind of the item.
fn first_token(item: &Item) -> TokenStream {
    quote::quote!(#item).into_iter().find(|token| matches!(token, TokenTree::Ident(_))).into_iter().collect()
}

/// A list of expressions separated by commas.
pub type Exprs = Punctuated<syn::Expr, Token![,]>;
