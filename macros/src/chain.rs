//! Calls on windows, recognised by their syntax: operation chains, fences, queries.

use crate::exprs::{name_of, strip};
use crate::parse::{ParamKind, Superstep};
use proc_macro2::{Ident, Span};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, Local, Pat, UnOp};

/// The names in the body that denote windows, worlds or arguments.
#[derive(Debug)]
pub struct Scope {
    /// Maps each name of a window that takes part in the superstep, including second names
    /// (`let w = &u`), to the number of the window.
    pub windows: BTreeMap<String, usize>,
    /// The number of windows that take part in the superstep.
    pub count: usize,
    /// The `&Window` parameters.
    pub shared: BTreeSet<String>,
    /// The `&World` parameters.
    pub worlds: BTreeSet<String>,
    /// The other parameters.
    pub arguments: BTreeSet<String>,
    /// The place where the name of a window is bound to something else, if there is one.
    pub shadowed: Option<Span>,
}

impl Scope {
    /// Returns the names of a superstep's parameters, and the other names that its body gives its
    /// windows.
    pub fn of(superstep: &Superstep) -> Self {
        let mut scope = Scope {
            windows: BTreeMap::new(),
            count: 0,
            shared: BTreeSet::new(),
            worlds: BTreeSet::new(),
            arguments: BTreeSet::new(),
            shadowed: None,
        };
        for param in &superstep.params {
            let names = crate::exprs::bound_by(&param.pat).into_iter().map(|bound| bound.name.to_string());
            match param.kind {
                ParamKind::Window { .. } => {
                    scope.windows.extend(names.map(|name| (name, scope.count)));
                    scope.count += 1;
                }
                ParamKind::SharedWindow => scope.shared.extend(names),
                ParamKind::World => scope.worlds.extend(names),
                ParamKind::Argument => scope.arguments.extend(names),
            }
        }
        let mut aliases = Aliases { scope: &mut scope };
        aliases.visit_block(&superstep.body);
        scope
    }

    /// Returns the window that a name denotes.
    pub fn window(&self, name: &Ident) -> Option<usize> {
        self.windows.get(&name.to_string()).copied()
    }

    /// Returns the window that an expression denotes. Looks behind `&`, `*` and parentheses, but
    /// not behind `&mut`.
    pub fn window_of(&self, expr: &Expr) -> Option<usize> {
        match strip(expr) {
            Expr::Reference(reference) if reference.mutability.is_none() => self.window_of(&reference.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.window_of(&unary.expr),
            other => self.window(name_of(other)?),
        }
    }

    /// Returns whether a name denotes a window, which may also be a `&Window` that does not take
    /// part in the superstep.
    pub fn is_any_window(&self, name: &str) -> bool {
        self.windows.contains_key(name) || self.shared.contains(name)
    }

    /// Returns the new name that `let name = &u;` declares, and the window that it denotes.
    pub fn aliased(&self, local: &Local) -> Option<(Ident, usize)> {
        let (pat, slice) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, is_slice_reference(&typed.ty)),
            pat => (pat, false),
        };
        let Pat::Ident(pat) = pat else { return None };
        let init = local.init.as_ref()?;
        if slice || pat.by_ref.is_some() || pat.mutability.is_some() || init.diverge.is_some() {
            return None;
        }
        match strip(&init.expr) {
            Expr::Reference(_) => Some((pat.ident.clone(), self.window_of(&init.expr)?)),
            // `let x = w;` declares no new name of a window, even if `w` is a name of a window.
            _ => None,
        }
    }
}

/// Returns whether a type is `&[T]` or `&mut [T]`. A name of such a type that is bound to a window
/// denotes the window's elements.
pub fn is_slice_reference(ty: &syn::Type) -> bool {
    matches!(crate::types::strip_type(ty), syn::Type::Reference(reference)
        if matches!(crate::types::strip_type(&reference.elem), syn::Type::Slice(_)))
}

/// Finds other names of windows (`let w = &u`), and names of windows that are bound to something
/// else.
struct Aliases<'s> {
    scope: &'s mut Scope,
}

impl<'a> Visit<'a> for Aliases<'_> {
    fn visit_local(&mut self, local: &'a Local) {
        if let Some((name, window)) = self.scope.aliased(local) {
            let key = name.to_string();
            match self.scope.windows.get(&key) {
                Some(known) if *known != window => self.scope.shadowed = Some(name.span()),
                _ => {
                    self.scope.windows.insert(key, window);
                }
            }
            return;
        }
        visit::visit_local(self, local);
    }

    fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
        if self.scope.is_any_window(&pat.ident.to_string()) && self.scope.shadowed.is_none() {
            self.scope.shadowed = Some(pat.ident.span());
        }
        visit::visit_pat_ident(self, pat);
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// The operation of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    Put,
    Accumulate,
    Get,
    Fetch,
}

impl Verb {
    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Put => "put",
            Verb::Accumulate => "accumulate",
            Verb::Get => "get",
            Verb::Fetch => "fetch",
        }
    }
}

/// A complete operation: `u.put(source).mode(m).to(target, place)`.
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    pub verb: Verb,
    pub window: usize,
    pub receiver: &'a Expr,
    /// The source or the section, or `None` for a fetch.
    pub local: Option<&'a Expr>,
    pub op: Option<&'a Expr>,
    pub modes: Vec<&'a Expr>,
    pub target: &'a Expr,
    pub place: &'a Expr,
    /// The name of the method as the source has it.
    pub method: &'a Ident,
    /// The last call of the chain.
    pub end: &'a ExprMethodCall,
}

/// Returns the operation that an expression calls, if `receiver` accepts the receiver of the call.
pub fn chain_on<'a>(expr: &'a Expr, receiver: impl Fn(&Expr) -> Option<usize>) -> Option<Chain<'a>> {
    let Expr::MethodCall(end) = strip(expr) else { return None };
    if end.args.len() != 2 {
        return None;
    }
    let (target, place) = (&end.args[0], &end.args[1]);
    let name = end.method.to_string();
    if name == "fetch" {
        let window = receiver(&end.receiver)?;
        return Some(Chain {
            verb: Verb::Fetch,
            window,
            receiver: &end.receiver,
            local: None,
            op: None,
            modes: Vec::new(),
            target,
            place,
            method: &end.method,
            end,
        });
    }
    let mut modes = Vec::new();
    let mut inner = strip(&end.receiver);
    loop {
        let Expr::MethodCall(call) = inner else { return None };
        if call.method == "mode" && call.args.len() == 1 {
            modes.push(&call.args[0]);
            inner = strip(&call.receiver);
            continue;
        }
        let (verb, count) = match (name.as_str(), call.method.to_string().as_str()) {
            ("to", "put") => (Verb::Put, 1),
            ("to", "accumulate") => (Verb::Accumulate, 2),
            ("from", "get") => (Verb::Get, 1),
            _ => return None,
        };
        if call.args.len() != count {
            return None;
        }
        return Some(Chain {
            verb,
            window: receiver(&call.receiver)?,
            receiver: &call.receiver,
            local: Some(&call.args[0]),
            op: call.args.get(1),
            modes,
            target,
            place,
            method: &call.method,
            end,
        });
    }
}

impl Scope {
    /// Returns the operation on a window that an expression calls.
    pub fn chain<'a>(&self, expr: &'a Expr) -> Option<Chain<'a>> {
        chain_on(expr, |receiver| self.window_of(receiver))
    }

    /// Returns the fence that an expression calls.
    pub fn fence<'a>(&self, expr: &'a Expr) -> Option<Fence<'a>> {
        let Expr::MethodCall(call) = strip(expr) else { return None };
        let asserting = call.method == "fence_with";
        if call.method != "fence" && !asserting {
            return None;
        }
        if let Some(window) = self.window_of(&call.receiver) {
            if call.args.len() != usize::from(asserting) {
                return None;
            }
            return Some(Fence { windows: vec![window], call, asserting });
        }
        let world = name_of(&call.receiver)?;
        if !self.worlds.contains(&world.to_string()) {
            return None;
        }
        let windows = match strip(call.args.first()?) {
            Expr::Tuple(tuple) => tuple.elems.iter().map(|elem| self.fenced(elem)).collect::<Option<_>>()?,
            one => vec![self.fenced(one)?],
        };
        Some(Fence { windows, call, asserting })
    }

    /// Returns the window in `&mut u`, `u` or `&mut *u`.
    fn fenced(&self, expr: &Expr) -> Option<usize> {
        match strip(expr) {
            Expr::Reference(reference) => self.fenced(&reference.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.fenced(&unary.expr),
            other => self.window(name_of(other)?),
        }
    }

    /// Returns the window and the call of `u.section(elements)`, if the window takes part.
    pub fn section<'a>(&self, expr: &'a Expr) -> Option<(usize, &'a ExprMethodCall)> {
        match strip(expr) {
            Expr::MethodCall(call) if call.method == "section" && call.args.len() == 1 => {
                Some((self.window_of(&call.receiver)?, call))
            }
            _ => None,
        }
    }
}

/// A fence in the source.
#[derive(Clone, Debug)]
pub struct Fence<'a> {
    pub windows: Vec<usize>,
    pub call: &'a ExprMethodCall,
    /// Whether the fence has assertions.
    pub asserting: bool,
}
