//! Finds state on which a pattern must not rely: values, other than elements and the world, that
//! may be different when the pattern is evaluated again.
//!
//! A pattern is evaluated when a superstep is entered or prepared. The body runs later, and a
//! replay runs even later. So only arguments, locals and constants may decide where operations go.
//! Statics, clocks, cells and the order of a hash map are recognised here by their syntax. Two
//! things are assumed, because syntax cannot show them. A function or method with arguments returns
//! the same result for the same arguments. If the type of a value hides a cell, the value does not
//! change after the evaluation.

use super::need::Need;
use crate::collect::Reason;
use crate::exprs::{bound_by, in_tokens, root_of, strip};
use crate::known::{Effect, effect, iterates, macro_arguments, reads_state, state_type};
use crate::parse::{ParamKind, Superstep};
use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Expr, Item, Local, Macro, Pat, Stmt, Type, UnOp};

/// The names that a body binds, and the items of the body. They determine whether a name may have a
/// state.
#[derive(Debug, Default)]
pub struct States {
    /// The parameters, locals, constants and functions of the body.
    bound: BTreeSet<String>,
    /// The items of the body that are statics or use a static.
    kept: BTreeSet<String>,
    /// An `impl` in the body, which must not be repeated in a second copy of the body.
    repeated: Option<Reason>,
}

impl States {
    /// Collects the bindings of one superstep.
    pub fn of(superstep: &Superstep) -> Self {
        let mut states = States::default();
        for param in &superstep.params {
            states.visit_pat(&param.pat);
        }
        states.bound.extend(superstep.sig.generics.const_params().map(|param| param.ident.to_string()));
        let mut items = Items { types: BTreeSet::new(), impls: Vec::new(), functions: Vec::new() };
        items.visit_block(&superstep.body);
        states.visit_block(&superstep.body);
        for (name, _) in &items.functions {
            states.bound.insert(name.clone());
        }
        // A function that names an item with a state has a state, too.
        loop {
            let more: Vec<String> = items
                .functions
                .iter()
                .filter(|(name, tokens)| {
                    !states.kept.contains(name)
                        && (has_static(tokens.clone()) || names_any(tokens.clone(), &states.kept))
                })
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            states.kept.extend(more);
        }
        states.repeated =
            items.impls.into_iter().find(|item| !names_any(item.0.clone(), &items.types)).map(|item| item.1);
        states
    }

    /// Returns the item that the slice cannot copy, if the body has one.
    pub fn repeated(&self) -> Option<&Reason> {
        self.repeated.as_ref()
    }

    /// Returns the first part of an expression that may have another value when it is evaluated
    /// again.
    pub fn first(&self, expr: &Expr) -> Option<Reason> {
        let mut reads = Reads { states: self, found: None };
        reads.visit_expr(expr);
        reads.found
    }

    /// Returns whether a place may be a static or a part of a static: a name in capitals, or a name
    /// that the body does not bind.
    fn may_be_static(&self, place: &Expr) -> bool {
        match strip(place) {
            Expr::Field(field) => self.may_be_static(&field.base),
            Expr::Index(index) => self.may_be_static(&index.expr),
            Expr::Reference(reference) => self.may_be_static(&reference.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.may_be_static(&unary.expr),
            Expr::Path(path) if path.qself.is_none() => {
                let Some(last) = path.path.segments.last() else { return false };
                let name = last.ident.to_string();
                if path.path.segments.len() == 1 {
                    if self.kept.contains(&name) {
                        return true;
                    }
                    if self.bound.contains(&name) || name == "self" {
                        return false;
                    }
                }
                // `Left` is a variant or a struct, but `COUNTER` and `counter` may be statics.
                !name.chars().any(|c| c.is_uppercase()) || !name.chars().any(|c| c.is_lowercase())
            }
            _ => false,
        }
    }
}

impl<'a> Visit<'a> for States {
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.bound.extend(bound_by(pat).into_iter().map(|bound| bound.name.to_string()));
        visit::visit_pat(self, pat);
    }
    fn visit_item(&mut self, item: &'a Item) {
        match item {
            Item::Const(item) => self.bound.extend([item.ident.to_string()]),
            Item::Static(item) => self.kept.extend([item.ident.to_string()]),
            _ => {}
        }
    }
}

/// The items of a body.
struct Items {
    types: BTreeSet<String>,
    impls: Vec<(TokenStream, Reason)>,
    functions: Vec<(String, TokenStream)>,
}

impl<'a> Visit<'a> for Items {
    fn visit_item(&mut self, item: &'a Item) {
        let mut ty = |name: &Ident| self.types.extend([name.to_string()]);
        match item {
            Item::Struct(item) => ty(&item.ident),
            Item::Enum(item) => ty(&item.ident),
            Item::Union(item) => ty(&item.ident),
            Item::Trait(item) => ty(&item.ident),
            Item::Fn(item) => self.functions.push((item.sig.ident.to_string(), item.to_token_stream())),
            Item::Impl(item) => {
                let mut head = item.self_ty.to_token_stream();
                head.extend(item.trait_.as_ref().map(|implemented| implemented.0.to_token_stream()));
                let why = "is for a type from outside of the body, and the pattern would repeat it: move it out of the function";
                self.impls.push((head, Reason::new(&item.self_ty, why)));
            }
            _ => {}
        }
    }
}

fn names_any(tokens: TokenStream, names: &BTreeSet<String>) -> bool {
    let mut all = BTreeSet::new();
    in_tokens(tokens, &mut all);
    !all.is_disjoint(names)
}

/// Returns whether there is a `static` that is not a lifetime, or a thread-local.
fn has_static(tokens: TokenStream) -> bool {
    let mut quote = false;
    tokens.into_iter().any(|token| {
        let lifetime = std::mem::replace(
            &mut quote,
            matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '\''),
        );
        match token {
            TokenTree::Ident(ident) => (ident == "static" && !lifetime) || ident == "thread_local",
            TokenTree::Group(group) => has_static(group.stream()),
            _ => false,
        }
    })
}

/// Looks for possible state in an expression.
struct Reads<'s> {
    states: &'s States,
    found: Option<Reason>,
}

const STATIC: &str =
    "may be a static, whose value another call may change: pass the value that decides as an argument";

impl Reads<'_> {
    fn found(&mut self, at: &impl ToTokens, why: &str) {
        if self.found.is_none() {
            self.found = Some(Reason::new(at, why));
        }
    }

    /// Handles an argument such as `&COUNTER`.
    fn handed(&mut self, arg: &Expr) {
        if let Expr::Reference(reference) = strip(arg)
            && self.states.may_be_static(&reference.expr)
        {
            self.found(arg, STATIC);
        }
    }
}

impl<'a> Visit<'a> for Reads<'_> {
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let of_cell = call.method == "get" && call.args.is_empty();
        if self.states.may_be_static(&call.receiver) && (effect(&call.method) != Effect::Pure || of_cell) {
            self.found(call, STATIC);
        } else if reads_state(call) {
            self.found(call, "reads what may change between two calls: pass its value as an argument");
        }
        call.args.iter().for_each(|arg| self.handed(arg));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let Expr::Path(path) = strip(&call.func)
            && let Some(last) = path.path.segments.last()
        {
            let name = last.ident.to_string();
            let here = path.path.segments.len() == 1 && self.states.bound.contains(&name);
            const ALWAYS: [&str; 7] =
                ["new", "default", "empty", "size_of", "align_of", "max_value", "min_value"];
            let made = name.starts_with(char::is_uppercase) || ALWAYS.contains(&name.as_str());
            if call.args.is_empty() && !here && !made {
                self.found(
                    call,
                    "is a function of no arguments, which may return something else the next time: pass what it returns as an argument",
                );
            }
        }
        call.args.iter().for_each(|arg| self.handed(arg));
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if path.path.get_ident().is_some_and(|name| self.states.kept.contains(&name.to_string())) {
            self.found(path, "is or has a static, and the pattern would have a static of its own: pass the value that decides as an argument");
        }
    }

    fn visit_expr_unsafe(&mut self, block: &'a syn::ExprUnsafe) {
        self.found(block, UNSAFE);
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        if !is_safe(mac.tokens.clone()) {
            self.found(mac, UNSAFE);
        }
        for arg in macro_arguments(mac).unwrap_or_default() {
            if let Some(reason) = self.states.first(&arg) {
                // The argument was parsed again from tokens, so the reason names the whole macro.
                self.found(mac, &reason.why);
            }
        }
    }
}

/// The message that explains why unsafe code is not evaluated in a pattern.
pub const UNSAFE: &str = "is unsafe code, and the check that makes it right may be one that a pattern does not have: pass what it computes as an argument";

/// Returns whether tokens have no `unsafe` in them.
pub fn is_safe(tokens: TokenStream) -> bool {
    !names_any(tokens, &BTreeSet::from(["unsafe".to_owned()]))
}

/// Checks that no needed name is bound to something that changes without being assigned or that is
/// iterated in an unspecified order.
pub fn no_states(superstep: &Superstep, needs: &BTreeMap<String, Need>) -> Result<(), Reason> {
    let mut bindings = Bindings { needs, found: None, hashed: BTreeSet::new() };
    for param in superstep.params.iter().filter(|param| matches!(param.kind, ParamKind::Argument)) {
        bindings.of(&param.pat, param.ty.to_token_stream(), &param.ty);
    }
    bindings.visit_block(&superstep.body);
    let mut orders = Orders { hashed: &bindings.hashed, found: None };
    orders.visit_block(&superstep.body);
    bindings.found.or(orders.found).map_or(Ok(()), Err)
}

struct Bindings<'s> {
    needs: &'s BTreeMap<String, Need>,
    found: Option<Reason>,
    /// The needed locals that are hash maps or hash sets.
    hashed: BTreeSet<String>,
}

impl Bindings<'_> {
    fn of(&mut self, pat: &Pat, made_of: TokenStream, at: &impl ToTokens) {
        let mut names = BTreeSet::new();
        in_tokens(made_of, &mut names);
        let Some(ty) = names.iter().find(|name| state_type(name)) else { return };
        for bound in bound_by(pat) {
            let name = bound.name.to_string();
            if self.needs.get(&name) == Some(&Need::Value) && self.found.is_none() {
                let why = format!(
                    "makes `{name}` something that changes without being assigned (`{ty}`), and `{name}` decides where operations go: pass its value as an argument"
                );
                self.found = Some(Reason::new(at, why));
            }
        }
    }
}

impl<'a> Visit<'a> for Bindings<'_> {
    fn visit_local(&mut self, local: &'a Local) {
        let mut made_of = match &local.pat {
            Pat::Type(typed) => typed.ty.to_token_stream(),
            _ => TokenStream::new(),
        };
        made_of.extend(local.init.as_ref().map(|init| init.expr.to_token_stream()));
        if names_any(made_of.clone(), &BTreeSet::from(["HashMap".to_owned(), "HashSet".to_owned()])) {
            let needed = bound_by(&local.pat).into_iter().map(|bound| bound.name.to_string());
            self.hashed.extend(needed.filter(|name| self.needs.contains_key(name)));
        }
        let whole = Stmt::Local(local.clone());
        self.of(&local.pat, made_of, &whole);
        visit::visit_local(self, local);
    }
    fn visit_item(&mut self, _: &'a Item) {}
    fn visit_type(&mut self, _: &'a Type) {}
}

struct Orders<'s> {
    hashed: &'s BTreeSet<String>,
    found: Option<Reason>,
}

impl Orders<'_> {
    fn iterated(&mut self, place: &Expr, at: &impl ToTokens) {
        let place = match strip(place) {
            Expr::Reference(reference) => &reference.expr,
            other => other,
        };
        if self.found.is_none() && root_of(place).is_some_and(|root| self.hashed.contains(&root.to_string()))
        {
            let why = "goes through a hash map or set made here, whose order differs each time: use a `BTreeMap` or `BTreeSet`";
            self.found = Some(Reason::new(at, why));
        }
    }
}

impl<'a> Visit<'a> for Orders<'_> {
    fn visit_expr_for_loop(&mut self, each: &'a syn::ExprForLoop) {
        self.iterated(&each.expr, &each.expr);
        visit::visit_expr_for_loop(self, each);
    }
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if iterates(&call.method) {
            self.iterated(&call.receiver, call);
        }
        visit::visit_expr_method_call(self, call);
    }
    fn visit_item(&mut self, _: &'a Item) {}
}
