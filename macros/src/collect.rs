//! [`Body`]: the uses of the windows in order, and the first use that cannot be followed.

use crate::chain::{Scope, Verb, chain_on, is_slice_reference};
use crate::exprs::{children, in_tokens, is_err, name_of, root_of, strip};
use crate::known::{is_slice_method, macro_arguments};
use crate::messages::*;
use crate::parse::Superstep;
use crate::source::text_of;
use crate::uniform::{Cause, Uniform};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, ExprCall, ExprMethodCall, Macro, Pat, Stmt, UnOp};

/// The effects of a superstep's body on its windows.
#[derive(Debug)]
pub struct Body {
    pub scope: Scope,
    pub flow: Vec<Flow>,
    /// The first use of a window that cannot be followed.
    pub hidden: Option<Reason>,
    /// The errors that the walk over the body has found.
    pub odd: Vec<Oddity>,
}

/// The reason why a superstep is dynamic: the code that makes it dynamic, and why.
#[derive(Clone, Debug)]
pub struct Reason {
    pub span: Span,
    pub text: String,
    pub why: String,
}

impl Reason {
    pub fn new(at: &impl ToTokens, why: impl Into<String>) -> Self {
        Self { span: at.to_token_stream().span(), text: text_of(at), why: why.into() }
    }
}

/// A use of a window that is refused wherever it occurs.
#[derive(Debug)]
pub struct Oddity {
    pub span: Span,
    pub text: String,
    pub message: &'static str,
}

/// The facts about a body that the checks read, in the order of execution.
#[derive(Clone, Debug)]
pub enum Flow {
    Operation(Box<Operation>),
    Fence {
        windows: Vec<usize>,
        span: Span,
        /// Whether the fence has assertions.
        asserting: bool,
    },
    /// A read or a write of a window's elements.
    Data,
    /// One of several paths is taken. The condition that chooses it is uniform if `cause` is
    /// `None`.
    Branch {
        cause: Option<Cause>,
        paths: Vec<Vec<Flow>>,
    },
    Loop {
        cause: Option<Cause>,
        label: Option<String>,
        /// Whether this is a `loop`, which only `break` leaves.
        endless: bool,
        body: Vec<Flow>,
    },
    Jump {
        kind: Jump,
        span: Span,
    },
}

/// An exit from straight-line code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Jump {
    Break(Option<String>),
    Continue(Option<String>),
    /// `return` of an `Err`.
    Fail,
    /// Any other `return`.
    Return,
}

/// An operation, as far as syntax shows.
#[derive(Clone, Debug)]
pub struct Operation {
    pub verb: Verb,
    pub window: usize,
    pub span: Span,
    pub local: Option<Expr>,
    pub op: Option<String>,
    pub target: Expr,
    pub place: Expr,
    /// The windows of the sections in the operation.
    pub sections: Vec<usize>,
}

/// Collects the facts about a body in one walk over it.
pub fn collect(superstep: &Superstep) -> Body {
    let scope = Scope::of(superstep);
    let uniform = Uniform::of(superstep, &scope);
    let mut walk = Walk { scope: &scope, uniform, hidden: None, odd: Vec::new(), inside: Inside::Body };
    if let Some(span) = scope.shadowed {
        walk.hidden = Some(Reason {
            span,
            text: "this name".into(),
            why: "is a window's, given to something else".into(),
        });
    }
    let mut conditional = Conditional(None);
    conditional.visit_block(&superstep.body);
    walk.hidden = walk.hidden.or(conditional.0);
    let mut flow = Vec::new();
    walk.block(&superstep.body, &mut flow);
    let Walk { hidden, odd, .. } = walk;
    Body { scope, flow, hidden, odd }
}

/// Finds code that is compiled conditionally. Only the compiler knows whether its condition holds.
struct Conditional(Option<Reason>);

impl<'a> Visit<'a> for Conditional {
    fn visit_attribute(&mut self, attr: &'a syn::Attribute) {
        if self.0.is_none() && (attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr")) {
            let why =
                "leaves out a part of the body by a condition that is not known here: put it on the function";
            self.0 = Some(Reason::new(attr, why));
        }
    }
}

/// The construct around the current place of the walk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Body,
    Closure,
    Macro,
}

struct Walk<'s> {
    scope: &'s Scope,
    uniform: Uniform,
    hidden: Option<Reason>,
    odd: Vec<Oddity>,
    inside: Inside,
}

impl Walk<'_> {
    fn hide(&mut self, at: &impl ToTokens, why: &str) {
        if self.hidden.is_none() {
            self.hidden = Some(Reason::new(at, why));
        }
    }

    fn refuse(&mut self, span: Span, at: &impl ToTokens, message: &'static str) {
        self.odd.push(Oddity { span, text: text_of(at), message });
    }

    fn block(&mut self, block: &Block, out: &mut Vec<Flow>) {
        for stmt in &block.stmts {
            self.stmt(stmt, out);
        }
    }

    fn stmt(&mut self, stmt: &Stmt, out: &mut Vec<Flow>) {
        match stmt {
            Stmt::Local(local) => {
                if self.scope.aliased(local).is_some() {
                    return;
                }
                let Some(init) = &local.init else { return };
                if self.bare_window(&init.expr) {
                    if matches!(&local.pat, Pat::Type(typed) if is_slice_reference(&typed.ty)) {
                        out.push(Flow::Data);
                    } else {
                        self.hide(local, "gives the window another name that may change it");
                    }
                    return;
                }
                self.expr(&init.expr, out);
                if let Some((_, diverge)) = &init.diverge {
                    let mut other = Vec::new();
                    self.expr(diverge, &mut other);
                    let cause = self.uniform.cause(&init.expr);
                    out.push(Flow::Branch { cause, paths: vec![other, Vec::new()] });
                }
            }
            Stmt::Item(item) => {
                if let syn::Item::Macro(item) = item
                    && self.mentions_window(item.mac.tokens.clone())
                {
                    self.hide(item, "is a macro that uses the window");
                }
            }
            Stmt::Expr(expr, semi) => {
                if semi.is_some()
                    && let Expr::MethodCall(call) = strip(expr)
                    && self.scope.window_of(&call.receiver).is_some()
                {
                    match call.method.to_string().as_str() {
                        "put" | "accumulate" => self.refuse(call.method.span(), &call.method, UNFINISHED_PUT),
                        "get" => self.refuse(call.method.span(), &call.method, UNFINISHED_GET),
                        _ => {}
                    }
                }
                self.expr(expr, out);
            }
            Stmt::Macro(stmt) => self.mac(&stmt.mac, out),
        }
    }

    fn expr(&mut self, expr: &Expr, out: &mut Vec<Flow>) {
        if let Some(chain) = self.scope.chain(expr) {
            if self.inside == Inside::Closure {
                self.hide(
                    expr,
                    "is a call in a closure, which may be called any number of times: use a `for` loop",
                );
            } else if self.inside == Inside::Macro {
                self.hide(expr, "is a call among the tokens of a macro");
            }
            let mut sections = Vec::new();
            for part in chain.local.iter().chain(&chain.op).chain(&chain.modes) {
                match self.scope.section(part) {
                    Some((window, call)) => {
                        sections.push(window);
                        self.expr(&call.args[0], out);
                    }
                    None => self.expr(part, out),
                }
            }
            self.expr(chain.target, out);
            self.expr(chain.place, out);
            out.push(Flow::Operation(Box::new(Operation {
                verb: chain.verb,
                window: chain.window,
                span: chain.method.span(),
                local: chain.local.cloned(),
                op: chain.op.map(|op| op.to_token_stream().to_string()),
                target: chain.target.clone(),
                place: chain.place.clone(),
                sections,
            })));
            return;
        }
        if let Some(fence) = self.scope.fence(expr) {
            if self.inside != Inside::Body {
                self.refuse(fence.call.method.span(), expr, FENCE_IN_CLOSURE);
            }
            if fence.asserting
                && let Some(assertions) = fence.call.args.last()
            {
                self.expr(assertions, out);
            }
            let span = fence.call.method.span();
            out.push(Flow::Fence { windows: fence.windows, span, asserting: fence.asserting });
            return;
        }
        self.other(expr, out);
    }

    /// Handles an expression that is neither an operation nor a fence.
    fn other(&mut self, expr: &Expr, out: &mut Vec<Flow>) {
        match expr {
            Expr::MethodCall(call) => self.method(call, out),
            Expr::Call(call) => self.call(call, out),
            Expr::Path(_) => {
                if self.bare_window(expr) {
                    self.hide(expr, "uses the window whole, where only calls on it can be followed");
                }
            }
            Expr::Index(index) => {
                if self.elements_of(&index.expr) {
                    out.push(Flow::Data);
                } else {
                    self.expr(&index.expr, out);
                }
                self.expr(&index.index, out);
            }
            Expr::Unary(unary) => {
                let twice = matches!(unary.op, UnOp::Deref(_))
                    && matches!(strip(&unary.expr), Expr::Unary(inner) if matches!(inner.op, UnOp::Deref(_)));
                if twice && self.bare_window(&unary.expr) {
                    out.push(Flow::Data);
                } else {
                    self.expr(&unary.expr, out);
                }
            }
            Expr::If(branch) => {
                self.expr(&branch.cond, out);
                let mut then = Vec::new();
                self.block(&branch.then_branch, &mut then);
                let mut other = Vec::new();
                if let Some((_, branch)) = &branch.else_branch {
                    self.expr(branch, &mut other);
                }
                out.push(Flow::Branch { cause: self.uniform.cause(&branch.cond), paths: vec![then, other] });
            }
            Expr::Match(select) => {
                self.expr(&select.expr, out);
                let mut cause = self.uniform.cause(&select.expr);
                let mut paths = Vec::new();
                for arm in &select.arms {
                    let mut path = Vec::new();
                    if let Pat::Guard(guard) = &arm.pat {
                        self.expr(&guard.guard, &mut path);
                        cause = cause.or_else(|| self.uniform.cause(&guard.guard));
                    }
                    self.expr(&arm.body, &mut path);
                    paths.push(path);
                }
                out.push(Flow::Branch { cause, paths });
            }
            Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_)) => {
                self.expr(&binary.left, out);
                let mut right = Vec::new();
                self.expr(&binary.right, &mut right);
                if !right.is_empty() {
                    let cause = self.uniform.cause(&binary.left);
                    out.push(Flow::Branch { cause, paths: vec![right, Vec::new()] });
                }
            }
            Expr::ForLoop(each) => {
                self.expr(&each.expr, out);
                let mut body = Vec::new();
                self.block(&each.body, &mut body);
                let (cause, label) = (self.uniform.cause(&each.expr), label_of(&each.label));
                out.push(Flow::Loop { cause, label, endless: false, body });
            }
            Expr::While(again) => {
                let mut body = Vec::new();
                self.expr(&again.cond, &mut body);
                self.block(&again.body, &mut body);
                let (cause, label) = (self.uniform.cause(&again.cond), label_of(&again.label));
                out.push(Flow::Loop { cause, label, endless: false, body });
            }
            Expr::Loop(endless) => {
                let mut body = Vec::new();
                self.block(&endless.body, &mut body);
                out.push(Flow::Loop { cause: None, label: label_of(&endless.label), endless: true, body });
            }
            Expr::Block(block) => {
                let mut body = Vec::new();
                self.block(&block.block, &mut body);
                match label_of(&block.label) {
                    // A labelled block is treated as a loop that is left at its end.
                    Some(label) => {
                        let kind = Jump::Break(Some(label.clone()));
                        body.push(Flow::Jump { kind, span: block.block.brace_token.span.close() });
                        out.push(Flow::Loop { cause: None, label: Some(label), endless: true, body });
                    }
                    None => out.append(&mut body),
                }
            }
            Expr::Unsafe(block) => self.block(&block.block, out),
            Expr::Break(jump) => {
                if let Some(value) = &jump.expr {
                    self.expr(value, out);
                }
                let label = jump.label.as_ref().map(|label| label.ident.to_string());
                self.jump(Jump::Break(label), jump.break_token.span, out);
            }
            Expr::Continue(jump) => {
                let label = jump.label.as_ref().map(|label| label.ident.to_string());
                self.jump(Jump::Continue(label), jump.continue_token.span, out);
            }
            Expr::Return(jump) => {
                if let Some(value) = &jump.expr {
                    self.expr(value, out);
                }
                let kind = if jump.expr.as_deref().is_some_and(is_err) { Jump::Fail } else { Jump::Return };
                self.jump(kind, jump.return_token.span, out);
            }
            Expr::Closure(closure) => {
                let outside = std::mem::replace(&mut self.inside, Inside::Closure);
                let mut inner = Vec::new();
                self.expr(&closure.body, &mut inner);
                self.inside = outside;
                if inner.iter().any(|flow| matches!(flow, Flow::Data)) {
                    out.push(Flow::Data);
                }
            }
            Expr::Macro(mac) => self.mac(&mac.mac, out),
            other => match children(other) {
                Some(all) => {
                    for child in all {
                        self.expr(child, out);
                    }
                }
                None => {
                    if self.mentions_window(other.to_token_stream()) {
                        self.hide(other, "uses the window in a path that cannot be followed");
                    }
                }
            },
        }
    }

    fn jump(&self, kind: Jump, span: Span, out: &mut Vec<Flow>) {
        // In a closure a `return` leaves only the closure.
        if self.inside == Inside::Body {
            out.push(Flow::Jump { kind, span });
        }
    }

    fn method(&mut self, call: &ExprMethodCall, out: &mut Vec<Flow>) {
        let name = call.method.to_string();
        if let Some(chain) =
            chain_on(&Expr::MethodCall(call.clone()), |receiver| root_of(receiver).map(|_| 0))
            && let Some(root) = root_of(chain.receiver)
        {
            let key = root.to_string();
            if self.scope.shared.contains(&key) {
                self.refuse(root.span(), root, SHARED_WINDOW);
            } else if self.scope.arguments.contains(&key) && chain.verb != Verb::Fetch {
                self.refuse(root.span(), root, NOT_A_WINDOW);
            }
        }
        if self.scope.window_of(&call.receiver).is_some() {
            match name.as_str() {
                "rank" | "size" | "len" | "is_empty" | "len_of" => {}
                "put" | "accumulate" | "get" => self.hide(
                    call,
                    "keeps an unfinished call, where only whole chains (`u.put(..).to(..)?`) can be followed",
                ),
                "section" => self
                    .hide(call, "keeps a section: write it where it is used, `u.put(v.section(..)).to(..)?`"),
                "post" | "start" | "complete" | "wait" | "test" | "lock" | "lock_all" | "unlock"
                | "unlock_all" | "flush" | "flush_all" => {
                    self.refuse(call.method.span(), &call.method, OTHER_MODE)
                }
                "epoch" => self.refuse(call.method.span(), &call.method, SCOPED_EPOCH),
                "set_mode" => self.hide(call, "sets the window's mode: give the mode with each call instead"),
                _ if is_slice_method(&call.method) => out.push(Flow::Data),
                _ => self.hide(call, "calls a method that may communicate"),
            }
        } else if is_slice_method(&call.method) && self.elements_of(&call.receiver) {
            out.push(Flow::Data);
        } else {
            self.expr(&call.receiver, out);
        }
        for arg in &call.args {
            self.argument(arg, call, out);
        }
    }

    fn call(&mut self, call: &ExprCall, out: &mut Vec<Flow>) {
        let by_path = matches!(strip(&call.func), Expr::Path(path) if path.path.segments.len() > 1
        && path.path.segments.last().is_some_and(|last| {
            ["put", "accumulate", "get", "fetch", "fence", "to", "from"].contains(&last.ident.to_string().as_str())
        }));
        if by_path && self.mentions_window(call.to_token_stream()) {
            self.hide(call, "calls the window by path: write it as a method, `u.put(..)`");
            return;
        }
        self.expr(&call.func, out);
        for arg in &call.args {
            self.argument(arg, call, out);
        }
    }

    /// Handles an argument of a call.
    fn argument(&mut self, arg: &Expr, call: &impl ToTokens, out: &mut Vec<Flow>) {
        if self.bare_window(arg) {
            self.hide(call, "hands the window to a function, which may call anything on it");
        } else {
            self.expr(arg, out);
        }
    }

    fn mac(&mut self, mac: &Macro, out: &mut Vec<Flow>) {
        if !self.mentions_window(mac.tokens.clone()) {
            return;
        }
        let Some(arguments) = macro_arguments(mac) else {
            self.hide(mac, "has the window among the tokens of a macro");
            return;
        };
        let outside = std::mem::replace(&mut self.inside, Inside::Macro);
        for arg in &arguments {
            if self.bare_window(arg) {
                self.hide(mac, "has the window among the tokens of a macro");
            } else {
                self.expr(arg, out);
            }
        }
        self.inside = outside;
    }

    /// Returns whether an expression is only a window, behind any `&`, `&mut` and `*`.
    fn bare_window(&self, expr: &Expr) -> bool {
        match strip(expr) {
            Expr::Reference(reference) => self.bare_window(&reference.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.bare_window(&unary.expr),
            other => name_of(other).is_some_and(|name| self.scope.window(name).is_some()),
        }
    }

    /// Returns whether indexing an expression reads or writes a window's elements.
    fn elements_of(&self, expr: &Expr) -> bool {
        self.bare_window(expr)
    }

    fn mentions_window(&self, tokens: TokenStream) -> bool {
        let mut names = BTreeSet::new();
        in_tokens(tokens, &mut names);
        names.iter().any(|name| self.scope.windows.contains_key(name))
    }
}

fn label_of(label: &Option<syn::Label>) -> Option<String> {
    label.as_ref().map(|label| label.name.ident.to_string())
}
