//! The parts of an expression that must stay in the slice: operations, exits, and changes of needed
//! names.

use super::need::{Known, Need};
use crate::exprs::{is_compound, is_err, name_of, root_of, roots_of};
use crate::known::{Effect, effect, macro_arguments};
use crate::source::place_of;
use proc_macro2::Span;
use syn::visit::{self, Visit};
use syn::{Expr, Macro};

/// The kinds of parts of an expression that must stay.
#[derive(Default, Clone, Copy)]
pub struct Found {
    /// An operation or a fence.
    pub operation: bool,
    /// An exit by `return`, `break` or `continue`, or by an error. Exits by errors that the slice
    /// leaves out do not count.
    pub jump: bool,
    /// A change of a needed name, or a macro that may change such a name.
    pub changes: bool,
    /// An operation on the right of `&&` or `||`.
    pub in_short_circuit: bool,
}

impl Found {
    /// Returns whether the expression has any part that must stay.
    pub fn any(self) -> bool {
        self.operation || self.jump || self.changes
    }
}

/// Finds the parts of an expression that must stay.
pub struct Keepers<'s> {
    known: Known<'s>,
    found: Found,
    /// The labels of the loops that are inside the expression and enclose the current place.
    loops: Vec<Option<String>>,
    closure: bool,
}

impl<'s> Keepers<'s> {
    /// Returns the kinds of parts of `expr` that must stay.
    pub fn of(known: Known<'s>, expr: &Expr) -> Found {
        let mut keepers = Keepers { known, found: Found::default(), loops: Vec::new(), closure: false };
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

    /// Returns whether the exit by error at this place stays.
    fn stays(&self, span: Span) -> bool {
        self.known.exits.contains(&place_of(span))
    }

    /// Handles an assignment to `places`. If a name is needed only for its shape, assigning a part
    /// of its value does not count.
    fn assigned(&mut self, places: &Expr) {
        let whole = root_of(places).is_none() || name_of(places).is_some();
        roots_of(places).into_iter().for_each(|root| self.changed(root, whole));
    }

    fn changed(&mut self, name: &syn::Ident, shape_too: bool) {
        let need = self.known.needed(name);
        self.found.changes |= need == Some(Need::Value) || (shape_too && need.is_some());
    }

    fn in_loop(&mut self, label: &Option<syn::Label>, visit: impl FnOnce(&mut Self)) {
        self.loops.push(label.as_ref().map(|label| label.name.ident.to_string()));
        visit(self);
        self.loops.pop();
    }
}

impl<'a> Visit<'a> for Keepers<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        let scope = self.known.scope;
        if scope.chain(expr).is_some() || scope.fence(expr).is_some() {
            self.found.operation = true;
        }
        visit::visit_expr(self, expr);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if is_compound(&binary.op) {
            self.assigned(&binary.left);
        }
        if matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_)) {
            let right = Keepers::of(self.known, &binary.right);
            self.found.in_short_circuit |= right.operation;
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        self.assigned(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if let Some(root) = root_of(&call.receiver) {
            match effect(&call.method) {
                Effect::Mutate | Effect::Advance => self.changed(root, true),
                Effect::Rearrange => self.changed(root, false),
                Effect::Pure | Effect::IterateMut | Effect::Unknown => {}
            }
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_return(&mut self, jump: &'a syn::ExprReturn) {
        let stays = !jump.expr.as_deref().is_some_and(is_err) || self.stays(jump.return_token.span);
        self.found.jump |= !self.closure && stays;
        visit::visit_expr_return(self, jump);
    }

    fn visit_expr_try(&mut self, question: &'a syn::ExprTry) {
        self.found.jump |= !self.closure && self.stays(question.question_token.span);
        visit::visit_expr_try(self, question);
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
