//! Lists of windows. `fields: &mut [Window<f64>; 7]` is replaced by seven windows, and a loop over
//! `fields` by seven blocks.
//!
//! In all later stages, each window has its own name, as if it were a parameter. So a use of a list
//! is accepted only if it can be rewritten without the list: `for field in fields`, with or without
//! `.iter_mut()` and `.enumerate()`; `fields[3]`; `fields.len()`.

use crate::exprs::{in_tokens, name_of, strip};
use crate::messages::*;
use crate::types::{find_ident, is_mut, strip_type};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, Expr, ExprForLoop, GenericArgument, Lit, Pat, PathArguments, Result, Type};

/// The maximum length of a list. It is limited, since each window gets a block.
const MOST: usize = 64;
/// The maximum number of blocks that replace the loops of a body.
const MOST_BLOCKS: usize = 4096;

/// A list of windows.
#[derive(Debug)]
pub struct List {
    /// The parameter's name.
    pub name: Ident,
    pub element: Type,
    /// The names of the windows of the list.
    pub windows: Vec<Ident>,
}

/// Returns the list of windows that a parameter of this name and type declares, or `None` if the
/// parameter is not a list.
///
/// # Errors
/// If the type does not contain the length as a number, or if there are too many windows.
pub fn list(name: Option<&Ident>, ty: &Type) -> Result<Option<List>> {
    let Type::Reference(reference) = strip_type(ty) else { return Ok(None) };
    let (item, len) = match strip_type(&reference.elem) {
        Type::Array(array) => (&*array.elem, Some(&array.len)),
        Type::Slice(slice) => (&*slice.elem, None),
        _ => return Ok(None),
    };
    let Some(element) = element_of_window(item).filter(|_| is_mut(reference)) else { return Ok(None) };
    let len = len.and_then(number).filter(|len| (1..=MOST).contains(len));
    let (Some(name), Some(len)) = (name, len) else { return Err(Error::new_spanned(ty, LIST_LENGTH)) };
    let windows = (0..len).map(|at| format_ident!("__{name}_{at}", span = name.span())).collect();
    Ok(Some(List { name: name.clone(), element, windows }))
}

/// Returns the element type of `Window<T>`.
fn element_of_window(ty: &Type) -> Option<Type> {
    let Type::Path(path) = strip_type(ty) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Window")?;
    let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    list.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(element) => Some(element.clone()),
        _ => None,
    })
}

/// Returns the number that a literal denotes.
fn number(expr: &Expr) -> Option<usize> {
    match strip(expr) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Rewrites the body so that it uses the windows of lists instead of the lists.
///
/// # Errors
/// If a list is used in another way.
pub fn unroll(block: &mut Block, lists: &[List]) -> Result<()> {
    if lists.is_empty() {
        return Ok(());
    }
    let mut unroll = Unroll { lists, blocks: 0, refused: None };
    unroll.visit_block_mut(block);
    if let Some(refused) = unroll.refused {
        return Err(refused);
    }
    let mut left = Left { lists, found: None };
    left.visit_block(block);
    left.found.map_or(Ok(()), |span| Err(Error::new(span, LIST_USE)))
}

struct Unroll<'l> {
    lists: &'l [List],
    /// The number of blocks that have been written so far.
    blocks: usize,
    refused: Option<Error>,
}

impl Unroll<'_> {
    fn list(&self, expr: &Expr) -> Option<&List> {
        match strip(expr) {
            Expr::Reference(reference) => self.list(&reference.expr),
            other => name_of(other).and_then(|name| self.lists.iter().find(|list| list.name == *name)),
        }
    }

    /// Returns the list that a loop with this head iterates over, and whether the loop enumerates
    /// the windows.
    fn iterated(&self, head: &Expr) -> Option<(&List, bool)> {
        let Expr::MethodCall(call) = strip(head) else { return Some((self.list(head)?, false)) };
        match call.method.to_string().as_str() {
            "iter" | "iter_mut" | "into_iter" if call.args.is_empty() => {
                Some((self.list(&call.receiver)?, false))
            }
            "enumerate" if call.args.is_empty() => match self.iterated(&call.receiver)? {
                (list, false) => Some((list, true)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the window that `fields[0]` denotes.
    fn indexed(&self, index: &syn::ExprIndex) -> Result<Option<Ident>> {
        let Some(list) = self.list(&index.expr) else { return Ok(None) };
        match number(&index.index).and_then(|at| list.windows.get(at)) {
            Some(window) => {
                Ok(Some(renamed(window, name_of(&index.expr).map_or_else(Span::call_site, Ident::span))))
            }
            None => Err(Error::new_spanned(index, LIST_INDEX)),
        }
    }

    /// Returns the replacement of an expression that uses a list.
    fn other(&mut self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::ForLoop(each) => {
                let Some((list, counts)) = self.iterated(&each.expr) else { return Ok(None) };
                let (copies, written) = (copies(list, counts, each)?, list.windows.len());
                self.blocks += written;
                if self.blocks > MOST_BLOCKS {
                    return Err(Error::new(each.for_token.span, LIST_BLOCKS));
                }
                Ok(Some(copies))
            }
            // `fields[0]` becomes a name that already is a `&mut`. So `&mut fields[0]` becomes
            // `&mut *name`, and not `&mut name`.
            Expr::Reference(reference) if reference.mutability.is_some() => match strip(&reference.expr) {
                Expr::Index(index) => Ok(self.indexed(index)?.map(|window| syn::parse_quote!(&mut *#window))),
                _ => Ok(None),
            },
            Expr::Index(index) => Ok(self.indexed(index)?.map(|window| syn::parse_quote!(#window))),
            Expr::MethodCall(call) if call.method == "len" && call.args.is_empty() => {
                let Some(list) = self.list(&call.receiver) else { return Ok(None) };
                let len = list.windows.len();
                Ok(Some(syn::parse_quote!(#len)))
            }
            _ => Ok(None),
        }
    }
}

impl VisitMut for Unroll<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match self.other(expr) {
            Ok(Some(other)) => *expr = other,
            Ok(None) => {}
            Err(error) => {
                self.refused.get_or_insert(error);
                return;
            }
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

/// Returns the name of a window with the span `place`.
fn renamed(window: &Ident, place: Span) -> Ident {
    let mut window = window.clone();
    window.set_span(window.span().located_at(place));
    window
}

/// Returns the name in a pattern that is nothing but a name.
fn only_name(pat: &Pat) -> Option<&Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.mutability.is_none() && pat.subpat.is_none() => {
            Some(&pat.ident)
        }
        _ => None,
    }
}

/// Returns a block for each window of a list, in place of a loop over the list.
fn copies(list: &List, counts: bool, each: &ExprForLoop) -> Result<Expr> {
    let named = match (&*each.pat, counts) {
        (Pat::Tuple(tuple), true) if tuple.elems.len() == 2 => {
            only_name(&tuple.elems[1]).map(|window| (Some(&tuple.elems[0]), window))
        }
        (pat, false) => only_name(pat).map(|window| (None, window)),
        _ => None,
    };
    let Some((number, window)) = named else { return Err(Error::new_spanned(&each.pat, LIST_PATTERN)) };
    let mut leaves = Leaves { inside: 0, found: None, fences: None };
    leaves.visit_block(&each.body);
    if let Some(span) = leaves.fences {
        return Err(Error::new(span, LIST_FENCE));
    }
    if let Some(span) = leaves.found.or_else(|| each.label.as_ref().map(|label| label.name.ident.span())) {
        return Err(Error::new(span, LIST_LEFT));
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (at, own) in list.windows.iter().enumerate() {
        let mut body = each.body.clone();
        let mut rename = Rename { from: window, to: own, refused: None };
        rename.visit_block_mut(&mut body);
        if let Some((span, why)) = rename.refused {
            return Err(Error::new(span, why));
        }
        if let Some(number) = number {
            body.stmts.insert(0, syn::parse_quote!(let #number = #at;));
        }
        blocks.push(body);
    }
    let mut all: syn::ExprBlock = syn::parse_quote!({ #(#blocks)* });
    all.attrs.clone_from(&each.attrs);
    Ok(Expr::Block(all))
}

/// Finds each fence in a loop, and each `break` and `continue` without a label that concerns this
/// loop and not an inner one. A fence is refused for two reasons. First, its copies would have the
/// same place in the program and could not be distinguished. Second, one copy of the fence may
/// order something and another copy nothing.
struct Leaves {
    /// The number of loops around the current place.
    inside: usize,
    found: Option<Span>,
    fences: Option<Span>,
}

impl Leaves {
    fn in_loop(&mut self, visit: impl FnOnce(&mut Self)) {
        self.inside += 1;
        visit(self);
        self.inside -= 1;
    }

    fn leaves(&mut self, label: Option<&syn::Lifetime>, span: Span) {
        if self.inside == 0 && label.is_none() {
            self.found.get_or_insert(span);
        }
    }
}

impl<'a> Visit<'a> for Leaves {
    fn visit_expr_break(&mut self, jump: &'a syn::ExprBreak) {
        self.leaves(jump.label.as_ref(), jump.break_token.span);
        visit::visit_expr_break(self, jump);
    }
    fn visit_expr_continue(&mut self, jump: &'a syn::ExprContinue) {
        self.leaves(jump.label.as_ref(), jump.continue_token.span);
    }
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if call.method == "fence" || call.method == "fence_with" {
            self.fences.get_or_insert(call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }
    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        let word = |word| find_ident(mac.tokens.clone(), word);
        if self.inside == 0 {
            self.found = self.found.or_else(|| word("break").or_else(|| word("continue")));
        }
        self.fences = self.fences.or_else(|| word("fence").or_else(|| word("fence_with")));
    }
    fn visit_expr_for_loop(&mut self, each: &'a ExprForLoop) {
        self.visit_expr(&each.expr);
        self.in_loop(|leaves| leaves.visit_block(&each.body));
    }
    fn visit_expr_while(&mut self, again: &'a syn::ExprWhile) {
        self.in_loop(|leaves| visit::visit_expr_while(leaves, again));
    }
    fn visit_expr_loop(&mut self, endless: &'a syn::ExprLoop) {
        self.in_loop(|leaves| leaves.visit_block(&endless.body));
    }
    fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Replaces the name that the loop binds by the name of a window.
struct Rename<'n> {
    from: &'n Ident,
    to: &'n Ident,
    /// The first place where the name denotes something other than the window, with the error
    /// message.
    refused: Option<(Span, &'static str)>,
}

impl Rename<'_> {
    fn refuse(&mut self, span: Span, why: &'static str) {
        self.refused.get_or_insert((span, why));
    }

    /// Replaces the name in the tokens of a macro, wherever it can only denote the window. A
    /// member, a part of a path or a name in a binding does not denote the window, and is left
    /// unchanged.
    fn tokens(&mut self, tokens: TokenStream) -> TokenStream {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: Option<usize>, c: char| {
            let token = at.and_then(|at| tokens.get(at));
            matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == c)
        };
        let mut all = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let (one, two) = (at.checked_sub(1), at.checked_sub(2));
            all.push(match token {
                TokenTree::Ident(ident) if ident == self.from => {
                    let is_member = is(one, '.') && !is(two, '.');
                    if is_member {
                        token.clone()
                    } else if is(one, ':')
                        || is(Some(at + 1), ':')
                        || is(Some(at + 1), '=') && !is(Some(at + 2), '=')
                    {
                        self.refuse(ident.span(), LIST_SHADOWED);
                        token.clone()
                    } else {
                        renamed(self.to, ident.span()).into()
                    }
                }
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), self.tokens(group.stream()));
                    inner.set_span(group.span());
                    inner.into()
                }
                TokenTree::Literal(literal) => {
                    let mut names = BTreeSet::new();
                    in_tokens(TokenTree::from(literal.clone()).into(), &mut names);
                    if names.contains(&self.from.to_string()) {
                        self.refuse(literal.span(), LIST_TEXT);
                    }
                    token.clone()
                }
                TokenTree::Punct(_) | TokenTree::Ident(_) => token.clone(),
            });
        }
        all.into_iter().collect()
    }
}

impl VisitMut for Rename<'_> {
    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        if path.qself.is_none() && path.path.is_ident(self.from) {
            path.path.segments[0].ident = renamed(self.to, path.path.segments[0].ident.span());
        }
    }
    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        if name_of(&field.expr) == Some(self.from) {
            field.colon_token.get_or_insert_default();
        }
        visit_mut::visit_field_value_mut(self, field);
    }
    fn visit_pat_ident_mut(&mut self, pat: &mut syn::PatIdent) {
        if pat.ident == *self.from {
            self.refuse(pat.ident.span(), LIST_SHADOWED);
        }
        visit_mut::visit_pat_ident_mut(self, pat);
    }
    fn visit_local_mut(&mut self, local: &mut syn::Local) {
        // The alias would denote a different window in each copy of the block.
        if let Some(init) = &local.init
            && let Expr::Reference(reference) = strip(&init.expr)
            && name_of(&reference.expr) == Some(self.from)
        {
            self.refuse(reference.and_token.span, LIST_ALIAS);
        }
        visit_mut::visit_local_mut(self, local);
    }
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        mac.tokens = self.tokens(std::mem::take(&mut mac.tokens));
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Finds remaining uses of a list.
struct Left<'l> {
    lists: &'l [List],
    found: Option<Span>,
}

impl Left<'_> {
    fn look(&mut self, ident: &Ident) {
        if self.lists.iter().any(|list| list.name == *ident) {
            self.found.get_or_insert(ident.span());
        }
    }
}

impl<'a> Visit<'a> for Left<'_> {
    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        path.path.get_ident().into_iter().for_each(|ident| self.look(ident));
    }
    fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
        self.look(&pat.ident);
        visit::visit_pat_ident(self, pat);
    }
    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        let names = self.lists.iter().map(|list| list.name.to_string());
        let found = names.into_iter().find_map(|name| find_ident(mac.tokens.clone(), &name));
        self.found = self.found.or(found);
    }
    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// Returns `let [__fields_0, ..] = fields;`, where each binding is a `&mut`.
pub fn taken_apart(windows: &[Ident], list: &TokenStream) -> TokenStream {
    quote!(let [#(#windows),*] = #list;)
}
