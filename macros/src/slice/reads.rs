//! The parts of an expression that a slice must not read, and replacements for the parts that it
//! may read.

use crate::chain::Scope;
use crate::collect::Reason;
use crate::exprs::{in_tokens, is_err, name_of, root_of};
use crate::known::{is_slice_method, macro_arguments};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, Macro, Stmt};

/// Finds parts of an expression that are not available to the slice: elements of windows, the
/// world, operations, and lengths of windows in closures.
pub struct Reads<'s> {
    scope: &'s Scope,
    closure: bool,
    found: Option<Reason>,
}

impl Reads<'_> {
    /// Returns the first part of an expression that is not available to the slice.
    pub fn first(scope: &Scope, expr: &Expr) -> Option<Reason> {
        let mut reads = Reads { scope, closure: false, found: None };
        reads.visit_expr(expr);
        reads.found
    }

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
                // The argument was parsed again from tokens, so the reason names the whole macro.
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

/// Replaces queries of a window by queries of a recorder, and makes loops count their turns.
pub struct Ahead<'s> {
    pub scope: &'s Scope,
    /// The recorder that counts the turns.
    pub counts: &'s Ident,
}

/// Returns the statement that counts one turn at the start of a loop's body. A loop of the body may
/// end because of values that a pattern does not have, such as elements. In the pattern, the
/// statement bounds the turns of such a loop.
pub fn turn(counts: &Ident, span: Span) -> TokenStream {
    quote_spanned!(span=> #counts.turn()?;)
}

impl Ahead<'_> {
    fn counted(&self, body: &mut Block, span: Span) {
        let turn = turn(self.counts, span);
        body.stmts.insert(0, Stmt::Expr(Expr::Verbatim(turn), None));
    }
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
            Expr::ForLoop(each) => self.counted(&mut each.body, each.for_token.span),
            Expr::While(again) => self.counted(&mut again.body, again.while_token.span),
            Expr::Loop(endless) => self.counted(&mut endless.body, endless.loop_token.span),
            _ => {}
        }
    }

    fn visit_expr_closure_mut(&mut self, _: &mut syn::ExprClosure) {}
    fn visit_expr_async_mut(&mut self, _: &mut syn::ExprAsync) {}
    fn visit_expr_const_mut(&mut self, _: &mut syn::ExprConst) {}
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}
