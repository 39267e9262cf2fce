//! Finds changes of needed names that the slice would not repeat.

use super::need::Need;
use crate::collect::Reason;
use crate::exprs::{bound_by, in_tokens, is_compound, is_constant, name_of, root_of, roots_of, strip};
use crate::known::{Effect, changes_inside, effect, macro_arguments};
use crate::parse::{ParamKind, Superstep};
use crate::source::text_of;
use crate::types::{is_mut, strip_type};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Expr, Macro, Pat, Type};

/// Checks that needed names change only in ways that the slice repeats: by assignments and by the
/// standard collections' own methods. Any other change is unknown.
pub fn unknown_changes(superstep: &Superstep, needs: &BTreeMap<String, Need>) -> Result<(), Reason> {
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

/// The names that may be changed.
struct Mutable(BTreeSet<String>);

impl<'a> Visit<'a> for Mutable {
    fn visit_pat(&mut self, pat: &'a Pat) {
        self.0.extend(bound_by(pat).into_iter().filter(|b| b.mutable).map(|b| b.name.to_string()));
    }
}

/// The bindings of a pattern to parts of a value.
struct Parts {
    /// Whether any binding is `ref mut`.
    by_mut: bool,
    /// Whether there are any bindings.
    bind: bool,
}

impl<'a> Visit<'a> for Parts {
    fn visit_pat_ident(&mut self, pat: &'a syn::PatIdent) {
        self.by_mut |= pat.by_ref.is_some() && pat.mutability.is_some();
        self.bind |= !is_constant(&pat.ident);
        visit::visit_pat_ident(self, pat);
    }
    fn visit_expr(&mut self, _: &'a Expr) {}
}

struct Changes<'s> {
    needs: &'s BTreeMap<String, Need>,
    mutable: &'s BTreeSet<String>,
    /// The arguments that are `&mut` themselves. If such an argument is passed to a function, the
    /// function can change the value behind it.
    references: &'s BTreeSet<String>,
    /// Whether the visit is in a closure or a macro, which the slice does not examine.
    inside: bool,
    /// Whether the visit is in the head of a `for` loop.
    iterated: bool,
    found: Option<Reason>,
}

impl Changes<'_> {
    fn need(&self, place: &Expr) -> Option<(String, Need)> {
        let root = root_of(place)?.to_string();
        self.needs.get(&root).map(|need| (root, *need))
    }

    /// Handles an assignment to `places`. If the assignment is in code that the slice does not
    /// examine, it is an unknown change.
    fn assigned(&mut self, places: &Expr, at: &impl ToTokens) {
        let value = |root: &&syn::Ident| self.needs.get(&root.to_string()) == Some(&Need::Value);
        if self.inside
            && let Some(root) = roots_of(places).into_iter().find(value)
        {
            self.change(at, &root.to_string());
        }
    }

    /// Handles a pattern that is bound to `value`. A binding may refer to a part of the value, and
    /// the value can then be changed through the binding.
    fn bound(&mut self, pat: &Pat, value: &Expr) {
        let Some((name, _)) = self.need(value) else { return };
        let mut parts = Parts { by_mut: false, bind: false };
        parts.visit_pat(pat);
        let reference = matches!(pat, Pat::Type(typed)
            if matches!(strip_type(&typed.ty), Type::Reference(reference) if is_mut(reference)));
        // Destructuring does not copy the value behind a `&mut`.
        let plain = matches!(pat, Pat::Ident(_) | Pat::Type(_) | Pat::Wild(_));
        let apart = !plain && parts.bind && name_of(value).is_some() && self.references.contains(&name);
        if parts.by_mut || reference || apart {
            self.change(pat, &name);
        }
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
                Effect::Mutate | Effect::Advance => mutable && self.inside,
                Effect::Rearrange => mutable && self.inside && need == Need::Value,
                Effect::IterateMut => mutable && need == Need::Value,
                Effect::Unknown => mutable,
            };
            if unknown || (!mutable && changes_inside(call)) {
                self.change(call, &name);
            }
        }
        for arg in &call.args {
            self.handed_on(arg, call);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        // A closure that is `mut`, or a `&mut` to such a closure, changes the variables that it has
        // captured.
        if let Some(name) = name_of(&call.func).map(ToString::to_string)
            && (self.mutable.contains(&name) || self.references.contains(&name))
            && self.needs.contains_key(&name)
        {
            self.change(call, &name);
        }
        for arg in &call.args {
            self.handed_on(arg, call);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
        self.assigned(&assign.left, assign);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        if is_compound(&binary.op) {
            self.assigned(&binary.left, binary);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if let Some(init) = &local.init {
            self.bound(&local.pat, &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_let(&mut self, condition: &'a syn::ExprLet) {
        self.bound(&condition.pat, &condition.expr);
        visit::visit_expr_let(self, condition);
    }

    fn visit_expr_match(&mut self, select: &'a syn::ExprMatch) {
        select.arms.iter().for_each(|arm| self.bound(&arm.pat, &select.expr));
        visit::visit_expr_match(self, select);
    }

    fn visit_expr_raw_addr(&mut self, address: &'a syn::ExprRawAddr) {
        if matches!(address.mutability, syn::PointerMutability::Mut(_))
            && let Some((name, _)) = self.need(&address.expr)
        {
            self.change(address, &name);
        }
        visit::visit_expr_raw_addr(self, address);
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
