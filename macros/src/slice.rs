//! [`Slice`]: the part of the body that the operations' targets and datatypes depend on.
//!
//! A backward slice by name: an operation needs the names in its target, its place and its section, a kept condition
//! or loop needs those in its head, and a needed name keeps every statement that gives it a value, until nothing is
//! added. All bindings of one name are taken together, which keeps more than it must and never less. Of a slice that is
//! put only the *shape* is needed, so what fills a buffer can go while what sizes it stays.
//!
//! What cannot be followed is never guessed: it makes the superstep dynamic, with the line as the [`Reason`].

use crate::chain::{Chain, Scope, Verb};
use crate::check::idle_fences;
use crate::collect::{Body, Reason, children, is_err};
use crate::names::{
    Effect, bound_by, changes_inside, effect, in_tokens, is_slice_method, macro_arguments, mentioned,
    name_of, root_of, strip, text_of,
};
use crate::parse::{ParamKind, Superstep, is_mut, strip_type};
use crate::shape::{Shape, shape};
use crate::uniform::is_compound;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Local, Macro, Pat, Stmt, Type};

type Sliced = Result<TokenStream, Reason>;

/// What became of the body.
#[derive(Debug)]
pub enum Outcome {
    /// Its pattern can be had without running it.
    Described(Slice),
    /// It cannot, and why.
    Dynamic(Reason),
}

/// The body of `pattern`.
#[derive(Debug)]
pub struct Slice {
    pub statements: TokenStream,
    /// Whether the body is nothing but operations between sections, as far as syntax shows: replaying needs no body.
    pub replays: bool,
}

/// How much of a name is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Need {
    /// How many elements it has.
    Shape,
    /// Its value.
    Value,
}

/// Slice the body, or say which line keeps it from being sliced.
///
/// Returns of errors stay where they can: a check that a later index relies on. Where one depends on what the slice
/// cannot have, all of them go, since a pattern is what an execution that succeeds does.
pub fn slice(superstep: &Superstep, body: &Body) -> Outcome {
    match describe(superstep, body, true).or_else(|_| describe(superstep, body, false)) {
        Ok(slice) => Outcome::Described(slice),
        Err(reason) => Outcome::Dynamic(reason),
    }
}

fn describe(superstep: &Superstep, body: &Body, errors: bool) -> Result<Slice, Reason> {
    if let Some(reason) = &body.hidden {
        return Err(reason.clone());
    }
    for param in superstep.arguments() {
        if let Some(why) = not_owned(&param.ty) {
            return Err(Reason::new(&param.ty, why));
        }
    }
    let idle = idle_fences(&body.flow).into_iter().map(place_of).collect::<Vec<_>>();
    let mut needs = BTreeMap::new();
    loop {
        let mut slicer = Slicer {
            superstep,
            scope: &body.scope,
            idle: &idle,
            needs: &needs,
            found: needs.clone(),
            errors,
            whole: superstep.returns_unit,
        };
        let statements = slicer.block(&superstep.body, true)?;
        let (found, replays) = (slicer.found, slicer.whole);
        if found == needs {
            unknown_changes(superstep, &needs)?;
            return Ok(Slice { statements, replays });
        }
        needs = found;
    }
}

/// Why an argument of this type has no owned form that a closure could return.
fn not_owned(ty: &Type) -> Option<&'static str> {
    struct Borrows(Option<&'static str>);
    impl<'a> Visit<'a> for Borrows {
        fn visit_type(&mut self, ty: &'a Type) {
            match ty {
                Type::Reference(_) => {
                    self.0 = Some("is an argument that holds a reference: take its owned form by reference")
                }
                Type::ImplTrait(_) => {
                    self.0 = Some("is an argument whose type has no name: make it a generic parameter")
                }
                Type::TraitObject(_) => {
                    self.0 = Some("is an argument without a size: make it a generic parameter")
                }
                Type::Ptr(_) => self.0 = Some("is a pointer, which nothing is known about: take a reference"),
                _ => visit::visit_type(self, ty),
            }
        }
        fn visit_lifetime(&mut self, lifetime: &'a syn::Lifetime) {
            if lifetime.ident == "_" {
                self.0 = Some("is an argument that borrows: take its owned form by reference");
            }
        }
    }
    let mut borrows = Borrows(None);
    match strip_type(ty) {
        Type::Reference(reference) => match strip_type(&reference.elem) {
            Type::Slice(slice) => borrows.visit_type(&slice.elem),
            inner => borrows.visit_type(inner),
        },
        other => borrows.visit_type(other),
    }
    borrows.0
}

/// A span as something that can be compared.
pub fn place_of(span: Span) -> (usize, usize) {
    (span.start().line, span.start().column)
}

struct Slicer<'s> {
    superstep: &'s Superstep,
    scope: &'s Scope,
    idle: &'s [(usize, usize)],
    /// What is needed, as found by the last round.
    needs: &'s BTreeMap<String, Need>,
    /// The same, as found by this one.
    found: BTreeMap<String, Need>,
    /// Whether returns of errors stay.
    errors: bool,
    /// Nothing was left out, and no operation has a buffer of its own.
    whole: bool,
}

impl Slicer<'_> {
    fn need(&mut self, name: String, need: Need) {
        if !self.scope.is_any_window(&name) {
            let known = self.found.entry(name).or_insert(need);
            *known = (*known).max(need);
        }
    }

    fn needed(&self, name: &syn::Ident) -> Option<Need> {
        self.needs.get(&name.to_string()).copied()
    }

    fn dropped(&mut self) -> TokenStream {
        self.whole = false;
        TokenStream::new()
    }

    /// An expression as it is, once it is sure that it reads nothing but arguments and locals.
    fn keep(&mut self, expr: &Expr) -> Sliced {
        let mut reads = Reads { scope: self.scope, closure: false, found: None };
        reads.visit_expr(expr);
        if let Some(reason) = reads.found {
            return Err(reason);
        }
        for name in mentioned(expr) {
            self.need(name, Need::Value);
        }
        let mut kept = expr.clone();
        Ahead { scope: self.scope }.visit_expr_mut(&mut kept);
        Ok(kept.to_token_stream())
    }

    fn shape<'a>(&mut self, expr: &'a Expr) -> Result<Option<Shape<'a>>, Reason> {
        let (scope, facade) = (self.scope, &self.superstep.facade);
        shape(expr, scope, facade, &mut |inner| self.keep(inner))
    }

    fn block(&mut self, block: &Block, tail: bool) -> Sliced {
        let mut out = TokenStream::new();
        for (i, stmt) in block.stmts.iter().enumerate() {
            let last = i + 1 == block.stmts.len();
            out.extend(match stmt {
                Stmt::Local(local) => self.local(local)?,
                Stmt::Item(item) => item.to_token_stream(),
                Stmt::Macro(stmt) => self.mac(&stmt.mac)?,
                Stmt::Expr(expr, semi) => self.expr(expr, tail && last && semi.is_none())?,
            });
        }
        Ok(out)
    }

    fn local(&mut self, local: &Local) -> Sliced {
        if self.scope.aliased(local).is_some() {
            return Ok(local.to_token_stream());
        }
        let need = bound_by(&local.pat).iter().filter_map(|bound| self.needed(&bound.name)).max();
        let Some(init) = &local.init else {
            return Ok(if need.is_some() { local.to_token_stream() } else { TokenStream::new() });
        };
        let keepers = Keepers::of(self, &init.expr);
        let diverging = init.diverge.as_ref().map(|(_, diverge)| Keepers::of(self, diverge));
        let leaves = diverging.as_ref().is_some_and(|keepers| keepers.jump);
        if diverging.as_ref().is_some_and(|keepers| keepers.operation) {
            return Err(Reason::new(local, "has an operation in its `else`"));
        }
        if need.is_none() && !keepers.changes && !keepers.jump && !leaves {
            if keepers.operation {
                self.whole = false;
                return self.expr(&init.expr, false);
            }
            return Ok(self.dropped());
        }
        if keepers.operation {
            let why = "is fetched, or computed together with an operation, and decides where operations go";
            return Err(Reason::new(local, why));
        }
        let pat = &local.pat;
        if need == Some(Need::Shape) && init.diverge.is_none() && !keepers.jump {
            match self.shape(&init.expr)? {
                Some(Shape::Value(value)) => return Ok(quote!(let #pat = #value;)),
                Some(Shape::Name(name)) => {
                    self.need(name.to_string(), Need::Shape);
                    return Ok(local.to_token_stream());
                }
                None => {}
            }
        }
        let value = self.keep(&init.expr)?;
        Ok(match &init.diverge {
            Some((_, diverge)) => {
                let diverge = self.inside(diverge, false)?;
                // It may have ended in what the slice leaves out, a panic for one.
                quote!(let #pat = #value else { #diverge ::core::unreachable!() };)
            }
            None => quote!(let #pat = #value;),
        })
    }

    /// The statements that an expression comes to; `passes` where its `Result` is passed on.
    fn expr(&mut self, expr: &Expr, passes: bool) -> Sliced {
        if let Some(chain) = self.scope.chain(expr) {
            return if passes {
                self.operation(&chain)
            } else {
                Err(Reason::new(expr, "has its `Result` used otherwise than by `?`"))
            };
        }
        if let Some(fence) = self.scope.fence(expr) {
            if self.idle.contains(&place_of(fence.call.method.span())) {
                return Ok(TokenStream::new());
            }
            let names: Vec<_> = self.superstep.windows().map(|(name, _)| name).collect();
            let mut windows = fence.windows.iter().map(|window| names[*window]);
            let first = windows.next();
            let span = fence.call.method.span();
            return Ok(quote_spanned!(span=> #first.fence_with_others(&[#(#windows.id()),*])?;));
        }
        let keepers = Keepers::of(self, expr);
        match strip(expr) {
            Expr::Try(inner) => self.expr(&inner.expr, true),
            Expr::MethodCall(call)
                if (call.method == "unwrap" || call.method == "expect")
                    && (self.scope.chain(&call.receiver).is_some()
                        || self.scope.fence(&call.receiver).is_some()) =>
            {
                self.expr(&call.receiver, true)
            }
            Expr::Block(block) => {
                let inner = self.block(&block.block, passes)?;
                let label = &block.label;
                Ok(quote!(#label { #inner }))
            }
            Expr::Unsafe(block) => {
                let inner = self.block(&block.block, passes)?;
                Ok(quote!(unsafe { #inner }))
            }
            Expr::Return(jump) => self.leave(jump.expr.as_deref(), jump.return_token.span),
            Expr::Break(jump) => {
                let label = &jump.label;
                Ok(quote_spanned!(jump.break_token.span=> break #label;))
            }
            Expr::Continue(jump) => Ok(quote!(#jump;)),
            Expr::Macro(mac) => self.mac(&mac.mac),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Ok(TokenStream::new()),
            Expr::Lit(_) | Expr::Path(_) => Ok(TokenStream::new()),
            Expr::Call(call) if is_ok(&call.func) => {
                let mut out = TokenStream::new();
                for arg in &call.args {
                    out.extend(self.expr(arg, false)?);
                }
                Ok(out)
            }
            _ if !keepers.any() => Ok(self.dropped()),
            Expr::If(branch) => {
                self.plain(&branch.cond)?;
                let cond = self.keep(&branch.cond)?;
                let then = self.block(&branch.then_branch, passes)?;
                let other = match &branch.else_branch {
                    Some((_, other)) => {
                        let other = self.inside(other, passes)?;
                        quote!(else { #other })
                    }
                    None => TokenStream::new(),
                };
                let token = branch.if_token;
                Ok(quote!(#token #cond { #then } #other))
            }
            Expr::Match(select) => {
                self.plain(&select.expr)?;
                let value = self.keep(&select.expr)?;
                let mut arms = TokenStream::new();
                for arm in &select.arms {
                    let pat = match &arm.pat {
                        Pat::Guard(guard) => {
                            let pat = &guard.pat;
                            let guard = self.keep(&guard.guard)?;
                            quote!(#pat if #guard)
                        }
                        pat => pat.to_token_stream(),
                    };
                    let body = self.inside(&arm.body, passes)?;
                    arms.extend(quote!(#pat => { #body }));
                }
                Ok(quote!(match #value { #arms }))
            }
            Expr::ForLoop(each) => {
                self.plain(&each.expr)?;
                let all = self.keep(&each.expr)?;
                let body = self.block(&each.body, false)?;
                let (label, pat) = (&each.label, &each.pat);
                Ok(quote!(#label for #pat in #all { #body }))
            }
            Expr::While(again) => {
                self.plain(&again.cond)?;
                let cond = self.keep(&again.cond)?;
                let body = self.block(&again.body, false)?;
                let label = &again.label;
                Ok(quote!(#label while #cond { #body }))
            }
            Expr::Loop(endless) => {
                let body = self.block(&endless.body, false)?;
                let label = &endless.label;
                Ok(quote!(#label loop { #body }))
            }
            Expr::Assign(assign) => self.assign(&assign.left, &assign.right, expr),
            Expr::Binary(binary) if is_compound(&binary.op) => self.assign(&binary.left, &binary.right, expr),
            Expr::MethodCall(call)
                if root_of(&call.receiver).is_some_and(|root| self.needed(root).is_some())
                    && effect(&call.method) == Effect::Mutate =>
            {
                let need = root_of(&call.receiver).and_then(|root| self.needed(root));
                if need == Some(Need::Shape) && call.method == "push" {
                    let (receiver, facade) = (&call.receiver, &self.superstep.facade);
                    return Ok(quote!(#receiver.push(#facade::__private::zero());));
                }
                let kept = self.keep(expr)?;
                Ok(quote!(#kept;))
            }
            other => {
                let (Some(all), false) = (children(other), keepers.in_short_circuit) else {
                    unknown_changes(self.superstep, self.needs)?;
                    return Err(Reason::new(other, "has an operation where it may be left out"));
                };
                self.whole = false;
                let mut out = TokenStream::new();
                for child in all {
                    out.extend(self.expr(child, false)?);
                }
                Ok(out)
            }
        }
    }

    /// The statements of an expression that gets braces of its own.
    fn inside(&mut self, expr: &Expr, passes: bool) -> Sliced {
        match expr {
            Expr::Block(block) if block.label.is_none() => self.block(&block.block, passes),
            other => self.expr(other, passes),
        }
    }

    /// The head of a condition or a loop has no operation in it.
    fn plain(&self, head: &Expr) -> Result<(), Reason> {
        if Keepers::of(self, head).operation {
            return Err(Reason::new(head, "has an operation in a condition"));
        }
        Ok(())
    }

    fn assign(&mut self, left: &Expr, right: &Expr, whole: &Expr) -> Sliced {
        let need = root_of(left).and_then(|root| self.needed(root));
        let plain = name_of(left).is_some();
        match need {
            Some(Need::Value) => {
                let kept = self.keep(whole)?;
                Ok(quote!(#kept;))
            }
            Some(Need::Shape) if plain => {
                let value = match self.shape(right)? {
                    Some(Shape::Value(value)) => value,
                    Some(Shape::Name(name)) => {
                        self.need(name.to_string(), Need::Shape);
                        right.to_token_stream()
                    }
                    None => self.keep(right)?,
                };
                Ok(quote!(#left = #value;))
            }
            _ => {
                self.whole = false;
                self.expr(right, false)
            }
        }
    }

    /// `return value`.
    fn leave(&mut self, value: Option<&Expr>, span: Span) -> Sliced {
        let out = quote_spanned!(span=> return ::core::result::Result::Ok(()););
        let Some(value) = value else { return Ok(out) };
        if is_err(value) {
            let names = mentioned(value);
            let locals = names.iter().any(|name| {
                self.scope.is_any_window(name) || self.scope.worlds.contains(name) || self.is_local(name)
            });
            // The user's own error where it says nothing that the slice does not know; else one that says where.
            return Ok(if locals {
                let (facade, line) = (&self.superstep.facade, span.start().line as u32);
                quote_spanned!(span=> return ::core::result::Result::Err(::core::convert::From::from(#facade::__private::left(#line)));)
            } else {
                for name in names {
                    self.need(name, Need::Value);
                }
                quote_spanned!(span=> return #value;)
            });
        }
        let ok = matches!(strip(value), Expr::Call(call) if is_ok(&call.func));
        let operation = Keepers::of(self, value).operation;
        if ok || operation {
            let inner = self.expr(value, true)?;
            return Ok(quote!(#inner #out));
        }
        let kept = self.keep(value)?;
        Ok(quote_spanned!(span=> return (#kept).map(|_| ());))
    }

    /// Whether a name is a local that is not needed so far.
    fn is_local(&self, name: &str) -> bool {
        struct Finds<'n>(&'n str, bool);
        impl<'a> Visit<'a> for Finds<'_> {
            fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
                self.1 |= pat.ident == self.0;
            }
        }
        let mut finds = Finds(name, false);
        finds.visit_block(&self.superstep.body);
        finds.1 && !self.needs.contains_key(name)
    }

    fn operation(&mut self, chain: &Chain<'_>) -> Sliced {
        let receiver = chain.receiver;
        let (target, place) = (self.keep(chain.target)?, self.keep(chain.place)?);
        let (method, end) = (chain.method, &chain.end.method);
        let turbofish = &chain.end.turbofish;
        let Some(local) = chain.local else {
            self.whole = false;
            return Ok(quote!(#receiver.#method(#target, #place)?;));
        };
        let local = self.source(chain.verb, local)?;
        let op = match chain.op {
            Some(op) => {
                let op = self.keep(op)?;
                quote!(, #op)
            }
            None => TokenStream::new(),
        };
        let mut modes = TokenStream::new();
        for mode in &chain.modes {
            let mode = self.keep(mode)?;
            modes.extend(quote!(.mode(#mode)));
        }
        Ok(quote!(#receiver.#method(#local #op) #modes .#end #turbofish (#target, #place)?;))
    }

    /// The origin's side of an operation: a section as it is, of a slice only the shape.
    fn source(&mut self, verb: Verb, local: &Expr) -> Sliced {
        if let Some((_, call)) = self.scope.section(local) {
            let (receiver, elements) = (&call.receiver, self.keep(&call.args[0])?);
            let method = &call.method;
            return Ok(quote!(#receiver.#method(#elements)));
        }
        if verb == Verb::Get {
            return self.keep(local);
        }
        self.whole &= !self.looks_like_values(local);
        match self.shape(local)? {
            Some(Shape::Value(value)) => {
                self.whole = false;
                Ok(value)
            }
            Some(Shape::Name(name)) => {
                self.need(name.to_string(), Need::Shape);
                Ok(local.to_token_stream())
            }
            None => self.keep(local),
        }
    }

    /// Whether a source is a slice of values, not a section, as far as syntax shows.
    fn looks_like_values(&self, local: &Expr) -> bool {
        match strip(local) {
            Expr::Reference(_) => true,
            other => name_of(other).is_some_and(|name| {
                self.superstep.arguments().any(|param| {
                    param.name.as_ref() == Some(name)
                        && match strip_type(&param.ty) {
                            Type::Reference(reference) => is_list(&reference.elem),
                            ty => is_list(ty),
                        }
                })
            }),
        }
    }

    fn mac(&mut self, mac: &Macro) -> Sliced {
        if macro_arguments(mac).is_some() {
            return Ok(self.dropped());
        }
        // A macro that nothing is known about may jump or assign: it stays, with all it names.
        let mut names = BTreeSet::new();
        in_tokens(mac.tokens.clone(), &mut names);
        for name in names {
            self.need(name, Need::Value);
        }
        self.whole = false;
        Ok(quote!(#mac;))
    }
}

fn is_list(ty: &Type) -> bool {
    match strip_type(ty) {
        Type::Slice(_) | Type::Array(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Vec"),
        _ => false,
    }
}

/// `Ok`.
fn is_ok(func: &Expr) -> bool {
    matches!(strip(func), Expr::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Ok"))
}

/// Finds what the slice cannot have: elements of windows, the world, operations, lengths in closures.
struct Reads<'s> {
    scope: &'s Scope,
    closure: bool,
    found: Option<Reason>,
}

impl Reads<'_> {
    fn found(&mut self, at: &impl ToTokens, why: &str) {
        if self.found.is_none() {
            self.found = Some(Reason::new(at, why));
        }
    }
}

const READ: &str = "reads a window's elements, and decides where operations go";

impl<'a> Visit<'a> for Reads<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if self.scope.chain(expr).is_some() {
            return self.found(expr, "is an operation inside of what decides where operations go");
        }
        match expr {
            Expr::MethodCall(call) if self.scope.window_of(&call.receiver).is_some() => {
                match call.method.to_string().as_str() {
                    "rank" | "size" => {}
                    "len" | "is_empty" | "len_of" if self.closure => {
                        self.found(call, "asks for a length in a closure: ask before it, in a `let`")
                    }
                    "len" | "is_empty" | "len_of" => {}
                    _ => self.found(call, READ),
                }
                call.args.iter().for_each(|arg| self.visit_expr(arg));
            }
            Expr::MethodCall(call)
                if is_slice_method(&call.method)
                    && root_of(&call.receiver)
                        .is_some_and(|root| self.scope.is_any_window(&root.to_string())) =>
            {
                self.found(call, READ);
            }
            Expr::Index(index)
                if root_of(&index.expr).is_some_and(|root| self.scope.is_any_window(&root.to_string())) =>
            {
                self.found(index, READ);
            }
            Expr::Path(_) => {
                if let Some(name) = name_of(expr) {
                    if self.scope.is_any_window(&name.to_string()) {
                        self.found(expr, READ);
                    } else if self.scope.worlds.contains(&name.to_string()) {
                        self.found(expr, "is the world, which a pattern does not have: ask the window, `u.rank()`, `u.size()`");
                    }
                }
            }
            _ => visit::visit_expr(self, expr),
        }
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        let outside = std::mem::replace(&mut self.closure, true);
        visit::visit_expr_closure(self, closure);
        self.closure = outside;
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        for arg in macro_arguments(mac).unwrap_or_default() {
            let mut inner = Reads { scope: self.scope, closure: true, found: None };
            inner.visit_expr(&arg);
            if inner.found.is_some() && self.found.is_none() {
                // The argument was parsed anew: the macro itself has the place.
                self.found = Some(Reason::new(mac, READ));
            }
        }
        let mut names = BTreeSet::new();
        in_tokens(mac.tokens.clone(), &mut names);
        let unseen =
            names.iter().any(|name| self.scope.shared.contains(name) || self.scope.worlds.contains(name));
        if unseen {
            self.found(mac, READ);
        }
    }
}

/// Turns what a window is asked into what a recorder answers.
struct Ahead<'s> {
    scope: &'s Scope,
}

impl VisitMut for Ahead<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        match expr {
            Expr::MethodCall(call) if self.scope.window_of(&call.receiver).is_some() => {
                let (receiver, args) = (&call.receiver, &call.args);
                let span = call.method.span();
                let asked = match call.method.to_string().as_str() {
                    "len" => quote_spanned!(span=> #receiver.length()?),
                    "is_empty" => quote_spanned!(span=> (#receiver.length()? == 0)),
                    "len_of" => quote_spanned!(span=> #receiver.length_of(#args)?),
                    _ => return,
                };
                *expr = Expr::Verbatim(asked);
            }
            Expr::Return(jump) if !jump.expr.as_deref().is_some_and(is_err) => {
                *expr = syn::parse_quote!(return ::core::result::Result::Ok(()));
            }
            _ => {}
        }
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
}

/// What in an expression has to stay.
#[derive(Default, Clone, Copy)]
struct Found {
    operation: bool,
    /// A way out of it, but for errors.
    jump: bool,
    /// A change of something needed, or a macro that may be one.
    changes: bool,
    in_short_circuit: bool,
}

impl Found {
    fn any(self) -> bool {
        self.operation || self.jump || self.changes
    }
}

struct Keepers<'s, 'n> {
    slicer: &'s Slicer<'n>,
    found: Found,
    /// Labels of the loops inside the expression that are being visited.
    loops: Vec<Option<String>>,
    closure: bool,
}

impl<'s, 'n> Keepers<'s, 'n> {
    fn of(slicer: &'s Slicer<'n>, expr: &Expr) -> Found {
        let mut keepers = Keepers { slicer, found: Found::default(), loops: Vec::new(), closure: false };
        keepers.visit_expr(expr);
        keepers.found
    }

    fn jump(&mut self, label: Option<&syn::Lifetime>) {
        let inside = match label {
            None => !self.loops.is_empty(),
            Some(label) => self.loops.iter().flatten().any(|inner| label.ident == inner),
        };
        self.found.jump |= !inside && !self.closure;
    }

    fn changed(&mut self, place: &Expr, shape_too: bool) {
        if let Some(root) = root_of(place) {
            let need = self.slicer.needed(root);
            self.found.changes |= need == Some(Need::Value) || (shape_too && need.is_some());
        }
    }

    fn in_loop(&mut self, label: &Option<syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.loops.push(label.as_ref().map(|label| label.name.ident.to_string()));
        visit(self);
        self.loops.pop();
    }
}

impl<'a> Visit<'a> for Keepers<'_, '_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let scope = self.slicer.scope;
        if scope.chain(expr).is_some() || scope.fence(expr).is_some() {
            self.found.operation = true;
        }
        visit::visit_expr(self, expr);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if is_compound(&binary.op) {
            self.changed(&binary.left, name_of(&binary.left).is_some());
        }
        if matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_)) {
            let right = Keepers::of(self.slicer, &binary.right);
            self.found.in_short_circuit |= right.operation;
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        self.changed(&assign.left, name_of(&assign.left).is_some());
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        match effect(&call.method) {
            Effect::Mutate => self.changed(&call.receiver, true),
            Effect::Rearrange => self.changed(&call.receiver, false),
            Effect::Pure | Effect::IterateMut | Effect::Unknown => {}
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_return(&mut self, jump: &'a syn::ExprReturn) {
        self.found.jump |= !self.closure && (self.slicer.errors || !jump.expr.as_deref().is_some_and(is_err));
        visit::visit_expr_return(self, jump);
    }

    fn visit_expr_break(&mut self, jump: &'a syn::ExprBreak) {
        self.jump(jump.label.as_ref());
        visit::visit_expr_break(self, jump);
    }

    fn visit_expr_continue(&mut self, jump: &'a syn::ExprContinue) {
        self.jump(jump.label.as_ref());
    }

    fn visit_expr_for_loop(&mut self, each: &'a syn::ExprForLoop) {
        self.visit_expr(&each.expr);
        self.in_loop(&each.label, |keepers| keepers.visit_block(&each.body));
    }

    fn visit_expr_while(&mut self, again: &'a syn::ExprWhile) {
        self.in_loop(&again.label, |keepers| {
            keepers.visit_expr(&again.cond);
            keepers.visit_block(&again.body);
        });
    }

    fn visit_expr_loop(&mut self, endless: &'a syn::ExprLoop) {
        self.in_loop(&endless.label, |keepers| keepers.visit_block(&endless.body));
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        let outside = std::mem::replace(&mut self.closure, true);
        visit::visit_expr_closure(self, closure);
        self.closure = outside;
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        self.found.changes |= macro_arguments(mac).is_none();
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

/// A needed name is changed only in ways that the slice repeats: by assignments and by the standard collections' own
/// methods. Anything else is unknown.
fn unknown_changes(superstep: &Superstep, needs: &BTreeMap<String, Need>) -> Result<(), Reason> {
    let mut mutable = Mutable(BTreeSet::new());
    for param in &superstep.params {
        mutable.visit_pat(&param.pat);
        if let (Type::Reference(reference), Some(name)) = (strip_type(&param.ty), &param.name)
            && is_mut(reference)
            && matches!(param.kind, ParamKind::Argument)
        {
            mutable.0.insert(name.to_string());
        }
    }
    let references: BTreeSet<String> = superstep
        .arguments()
        .filter(|param| matches!(strip_type(&param.ty), Type::Reference(reference) if is_mut(reference)))
        .filter_map(|param| param.name.as_ref().map(ToString::to_string))
        .collect();
    mutable.visit_block(&superstep.body);
    let mut changes = Changes {
        needs,
        mutable: &mutable.0,
        references: &references,
        inside: false,
        iterated: false,
        found: None,
    };
    changes.visit_block(&superstep.body);
    changes.found.map_or(Ok(()), Err)
}

/// Names that may be changed.
struct Mutable(BTreeSet<String>);

impl<'a> Visit<'a> for Mutable {
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.0.extend(bound_by(pat).into_iter().filter(|b| b.mutable).map(|b| b.name.to_string()));
    }
}

struct Changes<'s> {
    needs: &'s BTreeMap<String, Need>,
    mutable: &'s BTreeSet<String>,
    /// Arguments that are `&mut` themselves: handing one on lets it be changed.
    references: &'s BTreeSet<String>,
    /// In a closure or a macro, where the slice does not look.
    inside: bool,
    /// In the head of a `for` loop.
    iterated: bool,
    found: Option<Reason>,
}

impl Changes<'_> {
    fn need(&self, place: &Expr) -> Option<(String, Need)> {
        let root = root_of(place)?.to_string();
        self.needs.get(&root).map(|need| (root, *need))
    }

    fn change(&mut self, at: &impl ToTokens, name: &str) {
        if self.found.is_none() {
            let why = format!(
                "may change `{name}` in a way that cannot be followed, and `{name}` decides where operations go"
            );
            self.found = Some(Reason::new(at, why));
        }
    }
}

impl<'a> Visit<'a> for Changes<'_> {
    fn visit_expr_reference(&mut self, reference: &'a syn::ExprReference) {
        if reference.mutability.is_some()
            && let Some((name, need)) = self.need(&reference.expr)
        {
            let elements = self.iterated || matches!(strip(&reference.expr), Expr::Index(_));
            if need == Need::Value || !elements {
                self.change(reference, &name);
            }
        }
        visit::visit_expr_reference(self, reference);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if let Some((name, need)) = self.need(&call.receiver) {
            let mutable = self.mutable.contains(&name);
            let unknown = match effect(&call.method) {
                Effect::Pure => false,
                Effect::Mutate => mutable && self.inside,
                Effect::Rearrange => mutable && self.inside && need == Need::Value,
                Effect::IterateMut => mutable && need == Need::Value,
                Effect::Unknown => mutable,
            };
            if unknown || (!mutable && changes_inside(&call.method)) {
                self.change(call, &name);
            }
        }
        for arg in &call.args {
            self.handed_on(arg, call);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        for arg in &call.args {
            self.handed_on(arg, call);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        if self.inside
            && let Some((name, Need::Value)) = self.need(&assign.left)
        {
            self.change(assign, &name);
        }
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if self.inside
            && is_compound(&binary.op)
            && let Some((name, Need::Value)) = self.need(&binary.left)
        {
            self.change(binary, &name);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        let outside = std::mem::replace(&mut self.inside, true);
        visit::visit_expr_closure(self, closure);
        self.inside = outside;
    }

    fn visit_expr_for_loop(&mut self, each: &'a syn::ExprForLoop) {
        let outside = std::mem::replace(&mut self.iterated, true);
        self.visit_expr(&each.expr);
        self.iterated = outside;
        self.visit_block(&each.body);
    }

    fn visit_macro(&mut self, mac: &'a Macro) {
        match macro_arguments(mac) {
            Some(arguments) => {
                let mut inner = Changes {
                    needs: self.needs,
                    mutable: self.mutable,
                    references: self.references,
                    inside: true,
                    iterated: false,
                    found: None,
                };
                arguments.iter().for_each(|arg| inner.visit_expr(arg));
                if inner.found.is_some() && self.found.is_none() {
                    self.found =
                        inner.found.map(|reason| Reason { span: mac.span(), text: text_of(mac), ..reason });
                }
            }
            None => {
                let mut names = BTreeSet::new();
                in_tokens(mac.tokens.clone(), &mut names);
                if let Some(name) =
                    names.iter().find(|name| self.mutable.contains(*name) && self.needs.contains_key(*name))
                {
                    self.change(mac, name);
                }
            }
        }
    }

    fn visit_item(&mut self, _: &'a syn::Item) {}
}

impl Changes<'_> {
    fn handed_on(&mut self, arg: &Expr, call: &impl ToTokens) {
        if let Some(name) = name_of(arg).map(ToString::to_string)
            && self.references.contains(&name)
            && self.needs.contains_key(&name)
        {
            self.change(call, &name);
        }
    }
}
