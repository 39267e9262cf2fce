//! One round of slicing: determines which statements stay, given the needs, and which names these
//! statements need.

use super::changes::unknown_changes;
use super::keepers::Keepers;
use super::need::{Known, Need};
use super::reads::{Ahead, Reads, turn};
use super::shape::{Shape, is_values, shape};
use super::state::{UNSAFE, is_safe};
use crate::chain::{Chain, Verb};
use crate::collect::Reason;
use crate::exprs::{
    bound_by, children, in_tokens, is_compound, is_err, is_ok, mentioned, name_of, root_of, roots_of, strip,
};
use crate::known::{Effect, effect, macro_arguments};
use crate::parse::Superstep;
use crate::source::place_of;
use crate::types::strip_type;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{BinOp, Block, Expr, Local, Macro, Pat, Stmt, Type};

type Sliced = Result<TokenStream, Reason>;

/// The result of one round.
pub struct Round {
    /// The statements that stay.
    pub statements: TokenStream,
    /// All needs, including the needs of the statements that stay.
    pub found: BTreeMap<String, Need>,
    /// Whether nothing was left out, and no operation has a buffer of its own.
    pub whole: bool,
    /// Whether a source is of a type that the caller chooses.
    pub generic: bool,
}

/// Slices the body once, without the fences at the places `idle`.
pub fn round(superstep: &Superstep, idle: &[(usize, usize)], known: Known<'_>) -> Result<Round, Reason> {
    let whole = superstep.returns_unit;
    let mut slicer = Slicer { superstep, idle, known, found: known.needs.clone(), whole, generic: false };
    let statements = slicer.block(&superstep.body, true)?;
    Ok(Round { statements, found: slicer.found, whole: slicer.whole, generic: slicer.generic })
}

struct Slicer<'s> {
    superstep: &'s Superstep,
    idle: &'s [(usize, usize)],
    known: Known<'s>,
    /// The needs that this round has found so far.
    found: BTreeMap<String, Need>,
    /// Whether nothing was left out, and no operation has a buffer of its own.
    whole: bool,
    /// Whether a source is of a type that the caller chooses.
    generic: bool,
}

impl Slicer<'_> {
    fn need(&mut self, name: String, need: Need) {
        if !self.known.scope.is_any_window(&name) {
            let known = self.found.entry(name).or_insert(need);
            *known = (*known).max(need);
        }
    }

    fn dropped(&mut self) -> TokenStream {
        self.whole = false;
        TokenStream::new()
    }

    /// Keeps an expression, after checking that it reads only arguments and locals.
    fn keep(&mut self, expr: &Expr) -> Sliced {
        let reason = Reads::first(self.known.scope, expr).or_else(|| self.known.states.first(expr));
        if let Some(reason) = reason {
            return Err(reason);
        }
        for name in mentioned(expr) {
            self.need(name, Need::Value);
        }
        let mut kept = expr.clone();
        if let Some(counts) = self.counts() {
            Ahead { scope: self.known.scope, counts }.visit_expr_mut(&mut kept);
        }
        Ok(kept.to_token_stream())
    }

    /// Returns the recorder that counts the turns of loops.
    fn counts(&self) -> Option<&Ident> {
        self.superstep.windows().next().map(|(name, _)| name)
    }

    fn turn(&self, span: Span) -> TokenStream {
        self.counts().map_or_else(TokenStream::new, |counts| turn(counts, span))
    }

    fn shape<'a>(&mut self, expr: &'a Expr) -> Result<Option<Shape<'a>>, Reason> {
        // A part of the expression must stay, for example because it changes a needed name. So the
        // expression is not replaced by its shape.
        if Keepers::of(self.known, expr).any() {
            return Ok(None);
        }
        let (scope, facade) = (self.known.scope, &self.superstep.facade);
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
        if self.known.scope.aliased(local).is_some() {
            return Ok(local.to_token_stream());
        }
        let need = bound_by(&local.pat).iter().filter_map(|bound| self.known.needed(&bound.name)).max();
        let Some(init) = &local.init else {
            return Ok(if need.is_some() { local.to_token_stream() } else { TokenStream::new() });
        };
        let keepers = Keepers::of(self.known, &init.expr);
        let diverging = init.diverge.as_ref().map(|(_, diverge)| Keepers::of(self.known, diverge));
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
                // The `else` block may have ended in code that the slice leaves out, such as a
                // panic.
                quote!(let #pat = #value else { #diverge ::core::unreachable!() };)
            }
            None => quote!(let #pat = #value;),
        })
    }

    /// Returns the statements that replace an expression. `passes` is whether the `Result` of the
    /// expression is passed on.
    fn expr(&mut self, expr: &Expr, passes: bool) -> Sliced {
        if let Some(chain) = self.known.scope.chain(expr) {
            return if passes {
                self.operation(&chain)
            } else {
                Err(Reason::new(expr, "has its `Result` used otherwise than by `?`"))
            };
        }
        if let Some(fence) = self.known.scope.fence(expr) {
            if self.idle.contains(&place_of(fence.call.method.span())) {
                return Ok(TokenStream::new());
            }
            let names: Vec<_> = self.superstep.windows().map(|(name, _)| name).collect();
            let mut windows = fence.windows.iter().map(|window| names[*window]);
            let first = windows.next();
            let span = fence.call.method.span();
            return Ok(quote_spanned!(span=> #first.fence_with_others(&[#(#windows.id()),*])?;));
        }
        let keepers = Keepers::of(self.known, expr);
        match strip(expr) {
            Expr::Try(inner) if self.known.exits.contains(&place_of(inner.question_token.span)) => {
                // The expression may do more than check a condition, so a replay has to run the
                // body.
                self.whole = false;
                if is_err(&inner.expr) && mentioned(&inner.expr).iter().any(|name| self.is_local(name)) {
                    return Ok(self.left(inner.question_token.span));
                }
                let asked = self.keep(expr)?;
                Ok(quote!(#asked;))
            }
            Expr::Try(inner) => {
                self.whole &= Keepers::of(self.known, &inner.expr).operation;
                self.expr(&inner.expr, true)
            }
            Expr::MethodCall(call)
                if (call.method == "unwrap" || call.method == "expect")
                    && (self.known.scope.chain(&call.receiver).is_some()
                        || self.known.scope.fence(&call.receiver).is_some()) =>
            {
                self.expr(&call.receiver, true)
            }
            Expr::Block(block) => {
                let inner = self.block(&block.block, passes)?;
                let label = &block.label;
                Ok(quote!(#label { #inner }))
            }
            Expr::Unsafe(_) if keepers.any() => Err(Reason::new(expr, UNSAFE)),
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
                let (label, pat, turn) = (&each.label, &each.pat, self.turn(each.for_token.span));
                Ok(quote!(#label for #pat in #all { #turn #body }))
            }
            Expr::While(again) => {
                self.plain(&again.cond)?;
                let cond = self.keep(&again.cond)?;
                let body = self.block(&again.body, false)?;
                let (label, turn) = (&again.label, self.turn(again.while_token.span));
                Ok(quote!(#label while #cond { #turn #body }))
            }
            Expr::Loop(endless) => {
                let body = self.block(&endless.body, false)?;
                let (label, turn) = (&endless.label, self.turn(endless.loop_token.span));
                Ok(quote!(#label loop { #turn #body }))
            }
            Expr::Assign(assign) => self.assign(&assign.left, &assign.right, expr),
            Expr::Binary(binary) if is_compound(&binary.op) => self.assign(&binary.left, &binary.right, expr),
            Expr::MethodCall(call)
                if match (
                    root_of(&call.receiver).and_then(|root| self.known.needed(root)),
                    effect(&call.method),
                ) {
                    (Some(_), Effect::Mutate | Effect::Advance) => true,
                    (need, Effect::Rearrange) => need == Some(Need::Value),
                    _ => false,
                } =>
            {
                let need = root_of(&call.receiver).and_then(|root| self.known.needed(root));
                let counted = !call.args.iter().any(|arg| Keepers::of(self.known, arg).any());
                if need == Some(Need::Shape) && call.method == "push" && counted {
                    let (receiver, facade) = (&call.receiver, &self.superstep.facade);
                    return Ok(quote!(#receiver.push(#facade::__private::zero());));
                }
                let kept = self.keep(expr)?;
                Ok(quote!(#kept;))
            }
            Expr::Binary(both)
                if matches!(both.op, BinOp::And(_) | BinOp::Or(_)) && !keepers.operation && {
                    Keepers::of(self.known, &both.right).any()
                } =>
            {
                // The right side is evaluated only sometimes.
                self.whole = false;
                let left = self.keep(&both.left)?;
                let right = self.expr(&both.right, false)?;
                let not = matches!(both.op, BinOp::Or(_)).then(|| quote!(!));
                Ok(quote!(if #not (#left) { #right }))
            }
            other => {
                let (Some(all), false) = (children(other), keepers.in_short_circuit) else {
                    unknown_changes(self.superstep, self.known.needs)?;
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

    /// Returns the statements that replace an expression. The caller puts them into braces, so a
    /// block gets no braces of its own.
    fn inside(&mut self, expr: &Expr, passes: bool) -> Sliced {
        match expr {
            Expr::Block(block) if block.label.is_none() => self.block(&block.block, passes),
            other => self.expr(other, passes),
        }
    }

    /// Checks that the head of a condition or a loop contains no operation.
    fn plain(&self, head: &Expr) -> Result<(), Reason> {
        if Keepers::of(self.known, head).operation {
            return Err(Reason::new(head, "has an operation in a condition"));
        }
        Ok(())
    }

    fn assign(&mut self, left: &Expr, right: &Expr, whole: &Expr) -> Sliced {
        let need = roots_of(left).into_iter().filter_map(|root| self.known.needed(root)).max();
        let plain = name_of(left).is_some();
        match need {
            Some(need) if need == Need::Value || root_of(left).is_none() => {
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
                let mut out = self.expr(right, false)?;
                if Keepers::of(self.known, left).any() {
                    out.extend(self.expr(left, false)?);
                }
                Ok(out)
            }
        }
    }

    /// Returns a statement that returns a generated error. The slice uses this statement if the
    /// user's own error mentions something that the slice does not know.
    fn left(&self, span: Span) -> TokenStream {
        let (facade, line) = (&self.superstep.facade, span.start().line as u32);
        quote_spanned!(span=> return ::core::result::Result::Err(::core::convert::From::from(#facade::__private::left(#line)));)
    }

    /// Returns the statements of `return value`.
    fn leave(&mut self, value: Option<&Expr>, span: Span) -> Sliced {
        let out = quote_spanned!(span=> return ::core::result::Result::Ok(()););
        let Some(value) = value else { return Ok(out) };
        if is_err(value) {
            let names = mentioned(value);
            let locals = names.iter().any(|name| {
                self.known.scope.is_any_window(name)
                    || self.known.scope.worlds.contains(name)
                    || self.is_local(name)
            });
            // Returns the user's own error, unless this error mentions something that the slice
            // does not know. In that case, returns a generated error that names the line.
            return Ok(if locals || self.known.states.first(value).is_some() {
                self.left(span)
            } else {
                for name in names {
                    self.need(name, Need::Value);
                }
                quote_spanned!(span=> return #value;)
            });
        }
        let ok = matches!(strip(value), Expr::Call(call) if is_ok(&call.func));
        let operation = Keepers::of(self.known, value).operation;
        if ok || operation {
            let inner = self.expr(value, true)?;
            return Ok(quote!(#inner #out));
        }
        let kept = self.keep(value)?;
        Ok(quote_spanned!(span=> return (#kept).map(|_| ());))
    }

    /// Returns whether a name is a local that has not been needed so far.
    fn is_local(&self, name: &str) -> bool {
        struct Finds<'n>(&'n str, bool);
        impl<'a> Visit<'a> for Finds<'_> {
            fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
                self.1 |= pat.ident == self.0;
            }
        }
        let mut finds = Finds(name, false);
        finds.visit_block(&self.superstep.body);
        finds.1 && !self.known.needs.contains_key(name)
    }

    fn operation(&mut self, chain: &Chain<'_>) -> Sliced {
        let receiver = chain.receiver;
        let (target, place) = (self.keep(chain.target)?, self.keep(chain.place)?);
        let (method, end) = (chain.method, &chain.end.method);
        let turbofish = &chain.end.turbofish;
        // In the recorder, `Location::caller` returns the position of the call's parentheses, so
        // these get the span of the method's name.
        let span = end.span();
        let Some(local) = chain.local else {
            self.whole = false;
            return Ok(quote_spanned!(span=> #receiver.#method(#target, #place)?;));
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
        Ok(quote_spanned!(span=> #receiver.#method(#local #op) #modes .#end #turbofish (#target, #place)?;))
    }

    /// Returns the expression for the origin's side of an operation. A section is unchanged, and a
    /// slice is replaced by a value of the same shape.
    fn source(&mut self, verb: Verb, local: &Expr) -> Sliced {
        if let Some((_, call)) = self.known.scope.section(local) {
            let (receiver, elements) = (&call.receiver, self.keep(&call.args[0])?);
            let method = &call.method;
            return Ok(quote!(#receiver.#method(#elements)));
        }
        if verb == Verb::Get {
            return self.keep(local);
        }
        // If a part of a slice is put, the pattern puts as many elements as the datatype of the
        // part has.
        if let Expr::Tuple(pair) = strip(local)
            && pair.elems.len() == 2
        {
            self.whole = false;
            let (facade, elements) = (&self.superstep.facade, self.keep(&pair.elems[1])?);
            return Ok(quote_spanned!(local.span()=>
                #facade::__private::zeros(0..#facade::Datatype::from(#elements).size())));
        }
        // A plan does not contain the values that are put, so a replay has to run the body for
        // them.
        self.whole &= !is_values(local, self.known.lists) && !matches!(strip(local), Expr::Reference(_));
        match self.shape(local)? {
            Some(Shape::Value(value)) => {
                self.whole = false;
                Ok(value)
            }
            Some(Shape::Name(name)) => {
                let list = self.known.lists.contains(&name.to_string());
                let borrowed = matches!(strip(local), Expr::Reference(_));
                if list || borrowed {
                    self.need(name.to_string(), Need::Shape);
                    return Ok(local.to_token_stream());
                }
                self.generic |= self.is_generic(name);
                // The source may be a range or a datatype. In this case its value matters, and not
                // only the number of elements.
                self.keep(local)
            }
            None => self.keep(local),
        }
    }

    /// Returns whether `name` is an argument of a type that the caller chooses.
    fn is_generic(&self, name: &Ident) -> bool {
        let superstep = self.superstep;
        let chosen = |ty: &Type| match strip_type(ty) {
            Type::Path(path) => {
                superstep.sig.generics.type_params().any(|param| path.path.is_ident(&param.ident))
            }
            _ => false,
        };
        let is_named = |pat: &Pat| matches!(pat, Pat::Ident(pat) if pat.ident == *name);
        superstep.arguments().any(|param| is_named(&param.pat) && chosen(&param.ty))
    }

    fn mac(&mut self, mac: &Macro) -> Sliced {
        if macro_arguments(mac).is_some() {
            return Ok(self.dropped());
        }
        if !self.superstep.returns_unit {
            // In the pattern, a `return` in the macro would return the wrong type.
            return Err(Reason::new(mac, "is a macro that nothing is known about and that may return"));
        }
        if !is_safe(mac.tokens.clone()) {
            return Err(Reason::new(mac, UNSAFE));
        }
        // The macro may jump or assign. So it stays, and all names in it are needed.
        let mut names = BTreeSet::new();
        in_tokens(mac.tokens.clone(), &mut names);
        for name in names {
            self.need(name, Need::Value);
        }
        self.whole = false;
        Ok(quote!(#mac;))
    }
}
