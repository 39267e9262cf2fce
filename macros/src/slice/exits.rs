//! [`Exit`]: the places where the body may leave early with an error. Determines which exits a
//! pattern can have.
//!
//! A pattern describes a successful execution. So an exit may be left out if its condition cannot
//! be evaluated in the pattern. If the condition can be evaluated, the exit stays, since the code
//! after the exit may rely on the condition, for example for an index, the end of a loop or the
//! size of a buffer.

use super::keepers::{Found, Keepers};
use super::need::{Known, Need};
use crate::exprs::{is_err, mentioned, root_of};
use crate::known::{Effect, effect, macro_arguments};
use crate::parse::Superstep;
use crate::source::place_of;
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Expr, Macro};

/// The line and column of a `?` or a `return`.
pub type ExitPosition = (usize, usize);

/// A place where the body may leave with an error.
pub struct Exit<'a> {
    pub position: ExitPosition,
    /// The expression before a `?`, or `None` for a `return Err(..)` or an `Err(..)?`.
    asked: Option<&'a Expr>,
}

impl Exit<'_> {
    /// Returns whether code of a pattern with these `needs` may rely on the condition of the exit,
    /// and the condition can be evaluated any number of times.
    ///
    /// Returns `false` for a call that is unrelated to the targets of operations, since such a call
    /// may have effects of its own.
    pub fn guards(&self, needs: &BTreeMap<String, Need>) -> bool {
        let Some(asked) = self.asked else { return true };
        let mut asks = Asks { needs, plainly: true };
        asks.visit_expr(asked);
        asks.plainly && mentioned(asked).iter().any(|name| needs.contains_key(name))
    }
}

/// Returns all exits of the body itself, in program order, except the `?` of operations and fences.
pub fn exits<'s>(superstep: &'s Superstep, known: Known<'_>) -> Vec<Exit<'s>> {
    struct Finds<'a, 'k> {
        known: Known<'k>,
        found: Vec<Exit<'a>>,
    }
    impl<'a> Visit<'a> for Finds<'a, '_> {
        fn visit_expr_try(&mut self, question: &'a syn::ExprTry) {
            visit::visit_expr_try(self, question);
            let Found { operation, .. } = Keepers::of(self.known, &question.expr);
            if !operation {
                let asked = (!is_err(&question.expr)).then_some(&*question.expr);
                self.found.push(Exit { position: place_of(question.question_token.span), asked });
            }
        }
        fn visit_expr_return(&mut self, jump: &'a syn::ExprReturn) {
            visit::visit_expr_return(self, jump);
            if jump.expr.as_deref().is_some_and(is_err) {
                self.found.push(Exit { position: place_of(jump.return_token.span), asked: None });
            }
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
        fn visit_expr_async(&mut self, _: &'a syn::ExprAsync) {}
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut finds = Finds { known, found: Vec::new() };
    finds.visit_block(&superstep.body);
    finds.found
}

/// Determines whether an expression only calls functions and uses needed values, without visibly
/// changing anything.
struct Asks<'s> {
    needs: &'s BTreeMap<String, Need>,
    plainly: bool,
}

impl<'a> Visit<'a> for Asks<'_> {
    fn visit_expr_reference(&mut self, reference: &'a syn::ExprReference) {
        self.plainly &= reference.mutability.is_none();
        visit::visit_expr_reference(self, reference);
    }
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let needed = root_of(&call.receiver).is_some_and(|root| self.needs.contains_key(&root.to_string()));
        self.plainly &= needed || effect(&call.method) == Effect::Pure;
        visit::visit_expr_method_call(self, call);
    }
    fn visit_macro(&mut self, mac: &'a Macro) {
        self.plainly &= macro_arguments(mac).is_some();
    }
}
