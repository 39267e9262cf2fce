//! Lists of windows: `fields: &mut [Window<f64>; 7]` is seven windows, and a loop over it is seven blocks.
//!
//! All that follows sees windows with names of their own, as if each were a parameter. So a list is used in the ways that can be
//! written without it: `for field in fields`, with or without `.iter_mut()` and `.enumerate()`; `fields[3]`; `fields.len()`.

use crate::exprs::{name_of, strip};
use crate::messages::*;
use crate::types::{find_ident, is_mut, strip_type};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Error, Expr, ExprForLoop, GenericArgument, Lit, Pat, PathArguments, Result, Type};

/// The largest length of a list: a block is written for each window of it.
const MOST: usize = 64;

/// A list of windows.
#[derive(Debug)]
pub struct List {
    /// The parameter's name.
    pub name: Ident,
    pub element: Type,
    /// The names of its windows.
    pub windows: Vec<Ident>,
}

/// The list of windows that a parameter is, by its name and its type as written; `None` if it is none.
///
/// # Errors
/// The length is not part of the type, as a number, or there are too many windows.
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

/// The element type of `Window<T>`.
fn element_of_window(ty: &Type) -> Option<Type> {
    let Type::Path(path) = strip_type(ty) else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Window")?;
    let PathArguments::AngleBracketed(list) = &last.arguments else { return None };
    list.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(element) => Some(element.clone()),
        _ => None,
    })
}

/// The number that a literal is.
fn number(expr: &Expr) -> Option<usize> {
    match strip(expr) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Writes the body with the windows of lists in the place of the lists.
///
/// # Errors
/// A list is used in another way.
pub fn unroll(block: &mut Block, lists: &[List]) -> Result<()> {
    if lists.is_empty() {
        return Ok(());
    }
    let mut unroll = Unroll { lists, refused: None };
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
    refused: Option<Error>,
}

impl Unroll<'_> {
    fn list(&self, expr: &Expr) -> Option<&List> {
        match strip(expr) {
            Expr::Reference(reference) => self.list(&reference.expr),
            other => name_of(other).and_then(|name| self.lists.iter().find(|list| list.name == *name)),
        }
    }

    /// The list that the head of a loop goes over, and whether it counts.
    fn iterated(&self, head: &Expr) -> Option<(&List, bool)> {
        let Expr::MethodCall(call) = strip(head) else { return Some((self.list(head)?, false)) };
        match call.method.to_string().as_str() {
            "iter" | "iter_mut" | "into_iter" if call.args.is_empty() => {
                Some((self.list(&call.receiver)?, false))
            }
            "enumerate" if call.args.is_empty() => Some((self.iterated(&call.receiver)?.0, true)),
            _ => None,
        }
    }

    /// What an expression with a list in it is, where it is another one.
    fn other(&self, expr: &Expr) -> Result<Option<Expr>> {
        match expr {
            Expr::ForLoop(each) => match self.iterated(&each.expr) {
                Some((list, counts)) => copies(list, counts, each).map(Some),
                None => Ok(None),
            },
            Expr::Index(index) => {
                let Some(list) = self.list(&index.expr) else { return Ok(None) };
                match number(&index.index).and_then(|at| list.windows.get(at)) {
                    Some(window) => {
                        let mut window = window.clone();
                        window.set_span(list_span(&index.expr));
                        Ok(Some(syn::parse_quote!(#window)))
                    }
                    None => Err(Error::new_spanned(index, LIST_INDEX)),
                }
            }
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

fn list_span(expr: &Expr) -> Span {
    name_of(expr).map_or_else(Span::call_site, Ident::span)
}

/// A block for each window of a list, in the place of a loop over it.
fn copies(list: &List, counts: bool, each: &ExprForLoop) -> Result<Expr> {
    let (number, window) = match (&*each.pat, counts) {
        (Pat::Ident(pat), false) => (None, &pat.ident),
        (Pat::Tuple(tuple), true) => match (tuple.elems.first(), tuple.elems.get(1)) {
            (Some(number), Some(Pat::Ident(pat))) if tuple.elems.len() == 2 => (Some(number), &pat.ident),
            _ => return Err(Error::new_spanned(&each.pat, LIST_PATTERN)),
        },
        _ => return Err(Error::new_spanned(&each.pat, LIST_PATTERN)),
    };
    let mut leaves = Leaves { inside: 0, found: None };
    leaves.visit_block(&each.body);
    if let Some(span) = leaves.found.or_else(|| each.label.as_ref().map(|label| label.name.ident.span())) {
        return Err(Error::new(span, LIST_LEFT));
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (at, own) in list.windows.iter().enumerate() {
        let mut body = each.body.clone();
        let mut rename = Rename { from: window, to: own, refused: None };
        rename.visit_block_mut(&mut body);
        if let Some(span) = rename.refused {
            return Err(Error::new(span, LIST_SHADOWED));
        }
        if let Some(number) = number {
            body.stmts.insert(0, syn::parse_quote!(let #number = #at;));
        }
        blocks.push(body);
    }
    Ok(syn::parse_quote!({ #(#blocks)* }))
}

/// Finds a `break` or `continue` of the loop itself.
struct Leaves {
    /// The number of loops around what is visited.
    inside: usize,
    found: Option<Span>,
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

/// Gives a window its own name.
struct Rename<'n> {
    from: &'n Ident,
    to: &'n Ident,
    /// A place where the name is given to something else.
    refused: Option<Span>,
}

impl Rename<'_> {
    fn renamed(&self, ident: &Ident) -> Ident {
        let mut to = self.to.clone();
        to.set_span(ident.span());
        to
    }

    fn tokens(&self, tokens: TokenStream) -> TokenStream {
        let mut is_member = false;
        let each = tokens.into_iter().map(|token| {
            let token = match token {
                TokenTree::Ident(ident) if ident == *self.from && !is_member => self.renamed(&ident).into(),
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), self.tokens(group.stream()));
                    inner.set_span(group.span());
                    inner.into()
                }
                other => other,
            };
            is_member = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
            token
        });
        each.collect()
    }
}

impl VisitMut for Rename<'_> {
    fn visit_expr_path_mut(&mut self, path: &mut syn::ExprPath) {
        if path.qself.is_none() && path.path.is_ident(self.from) {
            let renamed = self.renamed(&path.path.segments[0].ident);
            path.path.segments[0].ident = renamed;
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
            self.refused.get_or_insert(pat.ident.span());
        }
        visit_mut::visit_pat_ident_mut(self, pat);
    }
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        mac.tokens = self.tokens(std::mem::take(&mut mac.tokens));
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

/// Finds what is left of a list.
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

/// `let [__fields_0, ..] = fields;`, each of them `&mut`.
pub fn taken_apart(windows: &[Ident], list: &TokenStream) -> TokenStream {
    quote!(let [#(#windows),*] = #list;)
}
