//! Finds expressions whose syntax shows that they have the same value on all ranks: literals,
//! constants, `size()`, `#[uniform]` parameters, and locals that are made only of these.

use crate::chain::Scope;
use crate::exprs::{bound_by, children, is_compound, is_constant, name_of, root_of, roots_of, strip};
use crate::known::{Effect, effect, macro_arguments};
use crate::parse::Superstep;
use crate::source::text_of;
use proc_macro2::Span;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Pat};

/// The part of a condition that may have different values on different ranks.
#[derive(Clone, Debug)]
pub struct Cause {
    pub span: Span,
    pub text: String,
}

/// The names that have the same value on all ranks, at every place where they are bound.
#[derive(Debug)]
pub struct Uniform {
    names: BTreeSet<String>,
    windows: BTreeSet<String>,
}

impl Uniform {
    /// Returns the largest set of names in which each name is made only of uniform values.
    pub fn of(superstep: &Superstep, scope: &Scope) -> Self {
        let mut names = BTreeSet::new();
        let mut locals = Locals(BTreeSet::new());
        locals.visit_block(&superstep.body);
        names.extend(locals.0);
        for param in &superstep.params {
            for bound in bound_by(&param.pat) {
                // A parameter is uniform if it has the attribute. If a local shadows a parameter,
                // both must be uniform.
                if param.uniform {
                    names.insert(bound.name.to_string());
                } else {
                    names.remove(&bound.name.to_string());
                }
            }
        }
        names.extend(superstep.sig.generics.const_params().map(|param| param.ident.to_string()));
        let windows = scope.windows.keys().chain(&scope.worlds).chain(&scope.shared).cloned().collect();
        let mut uniform = Uniform { names, windows };
        loop {
            let mut judge = Judge { uniform: &uniform, here: true, out: BTreeSet::new() };
            judge.visit_block(&superstep.body);
            if judge.out.is_disjoint(&uniform.names) {
                return uniform;
            }
            let out = judge.out;
            uniform.names.retain(|name| !out.contains(name));
        }
    }

    /// Returns the part of `expr` that may differ between ranks, if there is one.
    pub fn cause(&self, expr: &Expr) -> Option<Cause> {
        let differs = || Some(Cause { span: expr.span(), text: text_of(expr) });
        match strip(expr) {
            Expr::Path(path) => {
                let constant = path.path.segments.last().is_some_and(|last| {
                    is_constant(&last.ident) && !self.windows.contains(&last.ident.to_string())
                });
                let known = path.path.get_ident().is_some_and(|name| self.names.contains(&name.to_string()));
                if known || constant { None } else { differs() }
            }
            Expr::MethodCall(call) => {
                if call.method == "size"
                    && call.args.is_empty()
                    && name_of(&call.receiver).is_some_and(|name| self.windows.contains(&name.to_string()))
                {
                    return None;
                }
                if !matches!(effect(&call.method), Effect::Pure | Effect::Advance) {
                    return differs();
                }
                self.cause(&call.receiver).or_else(|| call.args.iter().find_map(|arg| self.cause(arg)))
            }
            // A constructor begins with a capital (`Some(3)`). The result of any other function may
            // depend on the rank.
            Expr::Call(call) => {
                let constructor = matches!(strip(&call.func), Expr::Path(path)
                    if path.path.segments.last().is_some_and(|last| is_constant(&last.ident)));
                if constructor { call.args.iter().find_map(|arg| self.cause(arg)) } else { differs() }
            }
            Expr::Closure(_) | Expr::Macro(_) => differs(),
            other => match children(other) {
                Some(all) => all.into_iter().find_map(|child| self.cause(child)),
                None => differs(),
            },
        }
    }
}

/// Collects all names that patterns in the body bind.
struct Locals(BTreeSet<String>);

impl<'a> Visit<'a> for Locals {
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.0.extend(bound_by(pat).into_iter().map(|bound| bound.name.to_string()));
    }
}

/// Finds the names that are bound or assigned to something that may differ between ranks.
struct Judge<'u> {
    uniform: &'u Uniform,
    /// Whether all ranks reach the current place.
    here: bool,
    out: BTreeSet<String>,
}

impl Judge<'_> {
    fn drop_names(&mut self, pat: &Pat) {
        self.out.extend(bound_by(pat).into_iter().map(|bound| bound.name.to_string()));
    }

    /// Handles a pattern that is bound to a value. If both are tuples, handles them element by
    /// element.
    fn given(&mut self, pat: &Pat, value: &Expr) {
        match (pat, strip(value)) {
            (Pat::Tuple(pats), Expr::Tuple(values)) if pats.elems.len() == values.elems.len() => {
                pats.elems.iter().zip(&values.elems).for_each(|(pat, value)| self.given(pat, value));
            }
            (pat, value) => {
                if self.uniform.cause(value).is_some() {
                    self.drop_names(pat);
                }
            }
        }
    }

    fn assigned(&mut self, places: &Expr, value: &Expr) {
        if !self.here || self.uniform.cause(value).is_some() {
            self.out.extend(roots_of(places).into_iter().map(ToString::to_string));
        }
    }

    fn under(&mut self, uniform: bool, visit: impl FnOnce(&mut Self)) {
        let before = self.here;
        self.here &= uniform;
        visit(self);
        self.here = before;
    }
}

impl<'a> Visit<'a> for Judge<'_> {
    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init {
            self.given(&local.pat, &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        self.assigned(&assign.left, &assign.right);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if is_compound(&binary.op) {
            self.assigned(&binary.left, &binary.right);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_let(&mut self, condition: &'a syn::ExprLet) {
        if self.uniform.cause(&condition.expr).is_some() {
            self.drop_names(&condition.pat);
        }
        visit::visit_expr_let(self, condition);
    }

    fn visit_expr_reference(&mut self, reference: &'a syn::ExprReference) {
        if reference.mutability.is_some()
            && let Some(root) = root_of(&reference.expr)
        {
            self.out.insert(root.to_string());
        }
        visit::visit_expr_reference(self, reference);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let stays = match effect(&call.method) {
            Effect::Pure => true,
            Effect::Advance => self.here && call.args.iter().all(|arg| self.uniform.cause(arg).is_none()),
            _ => false,
        };
        if !stays && let Some(root) = root_of(&call.receiver) {
            self.out.insert(root.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        closure.inputs.iter().for_each(|pat| self.drop_names(pat));
        self.under(false, |judge| visit::visit_expr_closure(judge, closure));
    }

    fn visit_macro(&mut self, mac: &'a syn::Macro) {
        // A macro may assign any name in it, so none of these names is known to be uniform. Macros
        // of the standard library assign nothing.
        if macro_arguments(mac).is_none() {
            crate::exprs::in_tokens(mac.tokens.clone(), &mut self.out);
        }
    }

    fn visit_expr_if(&mut self, branch: &'a syn::ExprIf) {
        let uniform = self.uniform.cause(&branch.cond).is_none();
        self.visit_expr(&branch.cond);
        self.under(uniform, |judge| {
            judge.visit_block(&branch.then_branch);
            if let Some((_, other)) = &branch.else_branch {
                judge.visit_expr(other);
            }
        });
    }

    fn visit_expr_match(&mut self, select: &'a syn::ExprMatch) {
        let mut uniform = self.uniform.cause(&select.expr).is_none();
        for arm in &select.arms {
            if !uniform {
                self.drop_names(&arm.pat);
            }
            if let Pat::Guard(guard) = &arm.pat {
                uniform &= self.uniform.cause(&guard.guard).is_none();
            }
        }
        self.visit_expr(&select.expr);
        self.under(uniform, |judge| select.arms.iter().for_each(|arm| judge.visit_expr(&arm.body)));
    }

    fn visit_expr_for_loop(&mut self, each: &'a syn::ExprForLoop) {
        let uniform = self.uniform.cause(&each.expr).is_none();
        if !uniform {
            self.drop_names(&each.pat);
        }
        self.visit_expr(&each.expr);
        let stays = !leaves_unevenly(self.uniform, &each.body);
        self.under(uniform && stays, |judge| judge.visit_block(&each.body));
    }

    fn visit_expr_while(&mut self, again: &'a syn::ExprWhile) {
        let uniform = self.uniform.cause(&again.cond).is_none();
        self.visit_expr(&again.cond);
        let stays = !leaves_unevenly(self.uniform, &again.body);
        self.under(uniform && stays, |judge| judge.visit_block(&again.body));
    }

    fn visit_expr_loop(&mut self, endless: &'a syn::ExprLoop) {
        let stays = !leaves_unevenly(self.uniform, &endless.body);
        self.under(stays, |judge| judge.visit_block(&endless.body));
    }
}

/// Returns whether a loop's body has a jump under a condition that may differ between ranks.
fn leaves_unevenly(uniform: &Uniform, body: &syn::Block) -> bool {
    struct Jumps<'u>(&'u Uniform, bool, bool);
    impl<'a> Visit<'a> for Jumps<'_> {
        fn visit_expr_break(&mut self, _: &'a syn::ExprBreak) {
            self.2 |= self.1;
        }
        fn visit_expr_continue(&mut self, _: &'a syn::ExprContinue) {
            self.2 |= self.1;
        }
        fn visit_expr_if(&mut self, branch: &'a syn::ExprIf) {
            let before = self.1;
            self.1 |= self.0.cause(&branch.cond).is_some();
            visit::visit_expr_if(self, branch);
            self.1 = before;
        }
        fn visit_expr_match(&mut self, select: &'a syn::ExprMatch) {
            let before = self.1;
            self.1 |= self.0.cause(&select.expr).is_some()
                || select
                    .arms
                    .iter()
                    .any(|arm| matches!(&arm.pat, Pat::Guard(g) if self.0.cause(&g.guard).is_some()));
            visit::visit_expr_match(self, select);
            self.1 = before;
        }
        fn visit_local(&mut self, local: &'a syn::Local) {
            let before = self.1;
            self.1 |= local
                .init
                .as_ref()
                .is_some_and(|init| init.diverge.is_some() && self.0.cause(&init.expr).is_some());
            visit::visit_local(self, local);
            self.1 = before;
        }
        fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {}
    }
    let mut jumps = Jumps(uniform, false, false);
    jumps.visit_block(body);
    jumps.2
}
