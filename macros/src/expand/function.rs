//! The function of the superstep. Its body runs between calls of `enter` and `leave`.

use super::arguments::{call_pattern, gathered, hidden, is_plain};
use crate::chain::Scope;
use crate::check::{fenced, idle_fences};
use crate::collect::Body;
use crate::exprs::{is_ok, name_of, strip};
use crate::parse::{ParamKind, Superstep};
use crate::slice::Outcome;
use crate::source::place_of;
use crate::types::{is_mut, strip_type};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, FnArg, Stmt, Type};

/// Returns the function of the superstep.
pub(super) fn function(superstep: &Superstep, body: &Body, outcome: &Outcome) -> TokenStream {
    let Superstep { facade, attrs, vis, sig, returns, .. } = superstep;
    let name = &superstep.sig.ident;
    let windows: Vec<&Ident> = superstep.windows().map(|(name, _)| name).collect();
    let (scope, result) = (hidden("scope"), hidden("result"));
    let reborrows = superstep.params.iter().filter_map(|param| match (&param.kind, &param.pat) {
        (ParamKind::Window { .. }, syn::Pat::Ident(pat)) => {
            let (mutability, name) = (&pat.mutability, &pat.ident);
            Some(quote!(let #mutability #name = &mut *#name;))
        }
        _ => None,
    });
    let statements = statements(superstep, body, &scope);
    // The body sees a reborrow of each window, and the reborrow is `mut` if the user wrote `mut`.
    let mut sig = sig.clone();
    for input in &mut sig.inputs {
        if let FnArg::Typed(typed) = input
            && let syn::Pat::Ident(pat) = &mut *typed.pat
            && (windows.contains(&&pat.ident) || superstep.lists.iter().any(|list| list.name == pat.ident))
        {
            pat.mutability = None;
        }
    }
    let uniform = uniform(superstep);
    let claim = match outcome {
        Outcome::Described(_) => claim(superstep),
        Outcome::Dynamic(_) => quote!(::core::option::Option::None),
    };
    let (apart, all) = gathered(superstep, |_, name| name.to_token_stream());
    let attrs = attrs.iter().filter(|attr| !attr.path().is_ident("track_caller"));
    // Errors name the line that calls the function.
    quote! {
        #(#attrs)*
        #[track_caller]
        #vis #sig {
            #apart
            let #scope = #facade::__private::enter(#name::__superstep(), #all, #uniform, #claim)?;
            #[allow(clippy::redundant_closure_call)]
            let #result = (|| -> #returns {
                #(#reborrows)*
                #statements
            })();
            #scope.leave(#all, #result)
        }
    }
}

/// Returns the body, without fences that order nothing, and with a call of `ended` after the last
/// fence.
fn statements(superstep: &Superstep, body: &Body, scope: &Ident) -> TokenStream {
    let mut block = superstep.body.clone();
    let idle = idle_fences(body).into_iter().map(place_of).collect();
    LeaveOut { idle, scope: &body.scope }.visit_block_mut(&mut block);
    let last = last_fence(&superstep.body, body);
    let statements = block.stmts.iter().enumerate().map(|(i, stmt)| {
        let ended = (last == Some(i) && i + 1 < block.stmts.len()).then(|| quote!(#scope.ended();));
        quote!(#stmt #ended)
    });
    quote!(#(#statements)*)
}

/// Returns the index of the statement that contains the last fence. Returns `None` if there may be
/// hidden calls.
fn last_fence(block: &Block, body: &Body) -> Option<usize> {
    if body.hidden.is_some() {
        return None;
    }
    struct Fences<'s>(&'s Scope, bool);
    impl<'a> Visit<'a> for Fences<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            self.1 |= self.0.fence(expr).is_some();
            visit::visit_expr(self, expr);
        }
    }
    block.stmts.iter().rposition(|stmt: &Stmt| {
        let mut fences = Fences(&body.scope, false);
        fences.visit_stmt(stmt);
        fences.1
    })
}

/// Returns whether the body ends in its last fence, or in the implicit fence of all its windows. At
/// most an `Ok` of names and literals may follow that fence. It does not matter whether such an
/// `Ok` is evaluated before or after the fence.
pub(super) fn ends_in_fence(superstep: &Superstep, body: &Body) -> bool {
    let Some(last) = last_fence(&superstep.body, body) else { return !fenced(&body.flow) };
    let statements = &superstep.body.stmts;
    let is_fence = match &statements[last] {
        Stmt::Expr(expr, _) => {
            let fence = match strip(expr) {
                Expr::Try(inner) => body.scope.fence(&inner.expr),
                inner => body.scope.fence(inner),
            };
            // An assertion about the time after this fence would have to hold as soon as `begin`
            // returns.
            fence.is_some_and(|fence| !fence.asserting)
        }
        _ => false,
    };
    let is_over = |stmt: &Stmt| match stmt {
        Stmt::Expr(expr, None) => match strip(expr) {
            Expr::Call(call) => is_ok(&call.func) && call.args.iter().all(|value| is_there(value, body)),
            _ => false,
        },
        _ => false,
    };
    is_fence && statements[last + 1..].iter().all(is_over)
}

/// Returns whether a value consists only of literals and of names that do not denote windows, so
/// that nothing has to be evaluated.
fn is_there(value: &Expr, body: &Body) -> bool {
    match strip(value) {
        Expr::Tuple(tuple) => tuple.elems.iter().all(|value| is_there(value, body)),
        Expr::Lit(_) => true,
        other => name_of(other).is_some_and(|name| !body.scope.is_any_window(&name.to_string())),
    }
}

struct LeaveOut<'s> {
    idle: Vec<(usize, usize)>,
    scope: &'s Scope,
}

impl VisitMut for LeaveOut<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let idle = self
            .scope
            .fence(expr)
            .is_some_and(|fence| self.idle.contains(&place_of(fence.call.method.span())));
        if idle && let Expr::MethodCall(call) = expr {
            call.method = Ident::new("orders_nothing", call.method.span());
        }
    }
}

/// Returns a hash of the values that must be equal on all ranks.
fn uniform(superstep: &Superstep) -> TokenStream {
    let facade = &superstep.facade;
    let params =
        superstep.params.iter().filter(|param| param.uniform).filter_map(|param| param.name.as_ref());
    let consts = superstep.sig.generics.const_params().map(|param| &param.ident);
    let all: Vec<&Ident> = params.chain(consts).collect();
    if all.is_empty() {
        return quote!(0);
    }
    let with = all.iter().map(|name| {
        let with = Ident::new("with", Span::mixed_site().located_at(name.span()));
        quote_spanned!(name.span()=> .#with(&#name))
    });
    quote!(#facade::__private::UniformHash::new() #(#with)* .word())
}

/// Returns an expression for the pattern with which the calls are compared. The expression is
/// `None` if an argument can be neither borrowed nor copied for the pattern.
fn claim(superstep: &Superstep) -> TokenStream {
    let (facade, name) = (&superstep.facade, &superstep.sig.ident);
    let lent: Option<Vec<TokenStream>> = superstep
        .arguments()
        .map(|param| {
            let name = param.name.as_ref()?;
            match strip_type(&param.ty) {
                Type::Reference(reference) if is_mut(reference) => None,
                Type::Reference(_) => Some(quote!(#name)),
                ty => is_plain(ty).then(|| quote!(#name)),
            }
        })
        .collect();
    let Some(lent) = lent else { return quote!(::core::option::Option::None) };
    let recording = hidden("recording");
    let call = call_pattern(superstep, &recording, lent.into_iter());
    quote! {
        ::core::option::Option::Some(&|#recording: &#facade::__private::Recording| {
            #name::#call.map_err(#facade::__private::error_of)
        })
    }
}
