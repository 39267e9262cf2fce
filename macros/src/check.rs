//! Refuses supersteps whose syntax shows that they cannot work. The error is at the span that
//! causes it.

use crate::chain::Verb;
use crate::collect::{Body, Flow, Jump, Operation};
use crate::exprs::{bound_by, is_constant, strip};
use crate::messages::*;
use crate::parse::Superstep;
use crate::source::place_of;
use crate::uniform::Cause;
use proc_macro2::Span;
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Error, Expr, Lit, Pat, Result};

/// Refuses a superstep that cannot work.
pub fn check(superstep: &Superstep, body: &Body) -> Result<()> {
    if let Some(odd) = body.odd.first() {
        return Err(Error::new(odd.span, format!("`{}` {}", odd.text, odd.message)));
    }
    if fenced(&body.flow) {
        fences_reach_all(&body.flow, None, &mut Vec::new())?;
        returns_leave_no_fence(&body.flow, false)?;
        ends_fenced(&body.flow)?;
    }
    conflicts(&body.flow, &Stable::of(superstep))
}

/// Returns whether there is a fence anywhere in `flow`.
pub fn fenced(flow: &[Flow]) -> bool {
    flow.iter().any(|step| match step {
        Flow::Fence { .. } => true,
        Flow::Branch { paths, .. } => paths.iter().any(|path| fenced(path)),
        Flow::Loop { body, .. } => fenced(body),
        _ => false,
    })
}

/// Returns whether there is an operation anywhere in `flow`.
fn operates(flow: &[Flow]) -> bool {
    flow.iter().any(|step| match step {
        Flow::Operation(_) => true,
        Flow::Branch { paths, .. } => paths.iter().any(|path| operates(path)),
        Flow::Loop { body, .. } => operates(body),
        _ => false,
    })
}

/// A loop that encloses a step.
struct Around {
    label: Option<String>,
    fenced: bool,
}

/// Checks that all ranks reach every fence equally often: only uniform conditions may decide
/// whether a fence is reached.
fn fences_reach_all<'f>(flow: &'f [Flow], cause: Option<&'f Cause>, loops: &mut Vec<Around>) -> Result<()> {
    let complain = |span: Span, what: &str, cause: &Cause| {
        let line = cause.span.start().line;
        Error::new(
            span,
            format!("{what}: `{}` (line {line}) can differ between ranks; {UNIFORM_HINT}", cause.text),
        )
    };
    for step in flow {
        match step {
            Flow::Fence { span, .. } => {
                if let Some(cause) = cause {
                    return Err(complain(*span, NOT_UNIFORM_FENCE, cause));
                }
            }
            Flow::Branch { cause: here, paths } => {
                for path in paths {
                    fences_reach_all(path, cause.or(here.as_ref()), loops)?;
                }
            }
            Flow::Loop { cause: here, label, body, .. } => {
                loops.push(Around { label: label.clone(), fenced: fenced(body) });
                fences_reach_all(body, cause.or(here.as_ref()), loops)?;
                loops.pop();
            }
            Flow::Jump { kind: Jump::Break(label) | Jump::Continue(label), span } => {
                let target = loops.iter().rev().find(|around| label.is_none() || around.label == *label);
                if let Some(cause) = cause
                    && target.is_some_and(|around| around.fenced)
                {
                    return Err(complain(*span, JUMP_IN_FENCED_LOOP, cause));
                }
            }
            Flow::Operation(_) | Flow::Data | Flow::Jump { .. } => {}
        }
    }
    Ok(())
}

/// Checks that no `return` comes before a fence, unless it returns an error.
fn returns_leave_no_fence(flow: &[Flow], fence_follows: bool) -> Result<()> {
    for (i, step) in flow.iter().enumerate() {
        let follows = fence_follows || fenced(&flow[i + 1..]);
        match step {
            Flow::Jump { kind: Jump::Return, span } if follows => {
                return Err(Error::new(*span, RETURN_BEFORE_FENCE));
            }
            Flow::Branch { paths, .. } => {
                paths.iter().try_for_each(|path| returns_leave_no_fence(path, follows))?
            }
            Flow::Loop { body, .. } => returns_leave_no_fence(body, follows || fenced(body))?,
            _ => {}
        }
    }
    Ok(())
}

/// The operations and sections that wait for a fence.
#[derive(Clone, Default)]
struct Open {
    /// For each window, the first operation that waits.
    operations: BTreeMap<usize, (Span, Verb)>,
    /// The spans of waiting operations that have sections of other windows. The key is the window
    /// of the operation and the window of the section.
    sections: BTreeMap<(usize, usize), Span>,
}

impl Open {
    fn merge(mut self, other: Option<Open>) -> Self {
        for (window, operation) in other.iter().flat_map(|open| &open.operations) {
            self.operations.entry(*window).or_insert(*operation);
        }
        for (pair, span) in other.iter().flat_map(|open| &open.sections) {
            self.sections.entry(*pair).or_insert(*span);
        }
        self
    }
}

fn either(a: Option<Open>, b: Option<Open>) -> Option<Open> {
    match (a, b) {
        (Some(a), b) => Some(a.merge(b)),
        (None, b) => b,
    }
}

/// A loop that is being visited, with the operations and sections that are open when a `break` or a
/// `continue` leaves its body.
struct Frame {
    label: Option<String>,
    breaks: Option<Open>,
    continues: Option<Open>,
}

/// Checks that a body with fences ends in a fence: no operation may be open at the end of the body,
/// or at a `return`.
fn ends_fenced(flow: &[Flow]) -> Result<()> {
    let end = open_after(flow, Open::default(), &mut Vec::new())?;
    nothing_open(end.as_ref())
}

fn nothing_open(open: Option<&Open>) -> Result<()> {
    match open.and_then(|open| open.operations.values().next()) {
        Some((span, verb)) => Err(Error::new(*span, format!("this `{}` {NO_FENCE_AFTER}", verb.name()))),
        None => Ok(()),
    }
}

/// Returns the operations and sections that are open after `flow`, or `None` if the end of `flow`
/// is not reached.
fn open_after(flow: &[Flow], mut open: Open, frames: &mut Vec<Frame>) -> Result<Option<Open>> {
    for step in flow {
        match step {
            Flow::Operation(operation) => {
                open.operations.entry(operation.window).or_insert((operation.span, operation.verb));
                for section in &operation.sections {
                    open.sections.entry((operation.window, *section)).or_insert(operation.span);
                }
            }
            Flow::Fence { windows, .. } => {
                for ((window, section), span) in &open.sections {
                    if windows.contains(window) != windows.contains(section) {
                        return Err(Error::new(
                            *span,
                            format!("the section in this call {SECTION_NOT_FENCED}"),
                        ));
                    }
                }
                open.operations.retain(|window, _| !windows.contains(window));
                open.sections.retain(|(window, _), _| !windows.contains(window));
            }
            Flow::Data => {}
            Flow::Branch { paths, .. } => {
                let mut after = None;
                for path in paths {
                    after = either(after, open_after(path, open.clone(), frames)?);
                }
                match after {
                    Some(after) => open = after,
                    None => return Ok(None),
                }
            }
            Flow::Loop { label, endless, body, .. } => {
                frames.push(Frame { label: label.clone(), breaks: None, continues: None });
                let mut entry = open.clone();
                // The body of the loop is visited twice, because an operation that the first turn
                // leaves open is still open when the second turn begins.
                for _ in 0..2 {
                    let end = open_after(body, entry.clone(), frames)?;
                    let continues = frames.last_mut().and_then(|frame| frame.continues.take());
                    entry = entry.merge(end).merge(continues);
                }
                let breaks = frames.pop().and_then(|frame| frame.breaks);
                match either(breaks, (!endless).then_some(entry)) {
                    Some(after) => open = after,
                    None => return Ok(None),
                }
            }
            Flow::Jump { kind, .. } => {
                let label = match kind {
                    Jump::Fail => return Ok(None),
                    Jump::Return => return nothing_open(Some(&open)).map(|()| None),
                    Jump::Break(label) | Jump::Continue(label) => label,
                };
                let target = frames.iter_mut().rev().find(|frame| label.is_none() || frame.label == *label);
                if let Some(frame) = target {
                    let slot =
                        if matches!(kind, Jump::Break(_)) { &mut frame.breaks } else { &mut frame.continues };
                    *slot = either(slot.take(), Some(open));
                }
                return Ok(None);
            }
        }
    }
    Ok(Some(open))
}

/// Returns the spans of fences that order nothing. Such a fence is in straight-line code, is not
/// the last fence, and has no assertions. Its windows have no operations since their previous
/// fence, or since the beginning. Returns no spans if there may be hidden calls.
pub fn idle_fences(body: &Body) -> Vec<Span> {
    let mut idle = Vec::new();
    if body.hidden.is_some() {
        return idle;
    }
    let flow = &body.flow;
    let mut busy = BTreeSet::new();
    for (i, step) in flow.iter().enumerate() {
        match step {
            Flow::Fence { windows, span, asserting } => {
                let last = !fenced(&flow[i + 1..]);
                if !last && !asserting && windows.iter().all(|window| !busy.contains(window)) {
                    idle.push(*span);
                }
                busy.retain(|window| !windows.contains(window));
            }
            Flow::Operation(operation) => {
                busy.insert(operation.window);
                busy.extend(&operation.sections);
            }
            Flow::Branch { .. } | Flow::Loop { .. } if operates(std::slice::from_ref(step)) => return idle,
            _ => {}
        }
    }
    idle
}

/// Returns whether the first use of the windows in straight-line code is a fence that orders
/// nothing.
pub fn opens(body: &Body) -> bool {
    let mut steps = body.flow.iter().filter(|step| !matches!(step, Flow::Branch { .. } | Flow::Loop { .. }));
    let Some(Flow::Fence { span, .. }) = steps.next() else { return false };
    idle_fences(body).first().is_some_and(|idle| place_of(*idle) == place_of(*span))
}

/// Refuses two operations in straight-line code that belong to one epoch and conflict, if their
/// syntax shows that they touch the same elements.
fn conflicts(flow: &[Flow], stable: &Stable) -> Result<()> {
    let mut epoch: Vec<&Operation> = Vec::new();
    for step in flow {
        match step {
            Flow::Operation(later) => {
                if let Some(earlier) = epoch.iter().find(|earlier| clash(earlier, later, stable)) {
                    let line = earlier.span.start().line;
                    return Err(Error::new(
                        later.span,
                        format!(
                            "this `{}` {SAME_ELEMENTS} (`{}`, line {line}): {SAME_ELEMENTS_HINT}",
                            later.verb.name(),
                            earlier.verb.name()
                        ),
                    ));
                }
                epoch.push(later);
            }
            Flow::Fence { windows, .. } => epoch.retain(|operation| !windows.contains(&operation.window)),
            Flow::Branch { paths, .. } => {
                paths.iter().try_for_each(|path| conflicts(path, stable))?;
                if fenced(std::slice::from_ref(step)) {
                    epoch.clear();
                }
            }
            Flow::Loop { body, .. } => {
                conflicts(body, stable)?;
                if fenced(body) {
                    epoch.clear();
                }
            }
            // Statements after a jump are reached only by another path.
            Flow::Jump { .. } => epoch.clear(),
            Flow::Data => {}
        }
    }
    Ok(())
}

fn clash(a: &Operation, b: &Operation, stable: &Stable) -> bool {
    let reads = |verb| matches!(verb, Verb::Get | Verb::Fetch);
    if a.window != b.window || (reads(a.verb) && reads(b.verb)) {
        return false;
    }
    if a.verb == Verb::Accumulate && b.verb == Verb::Accumulate && a.op == b.op {
        return false;
    }
    if !stable.same(&a.target, &b.target)
        || matches!(strip(&a.target), Expr::Path(path) if path.path.is_ident("None"))
    {
        return false;
    }
    match (interval(a), interval(b)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low.max(b_low) < a_high.min(b_high),
        _ => stable.same(&a.place, &b.place),
    }
}

/// Returns the elements that an operation touches at its target, if the source gives them as
/// numbers.
fn interval(operation: &Operation) -> Option<(u64, u64)> {
    match strip(&operation.place) {
        Expr::Range(range) if matches!(range.limits, syn::RangeLimits::HalfOpen(_)) => {
            Some((number(range.start.as_deref()?)?, number(range.end.as_deref()?)?))
        }
        place => {
            let at = number(place)?;
            let count = match operation.verb {
                Verb::Fetch => 1,
                _ => count(operation.local.as_ref()?)?,
            };
            Some((at, at + count))
        }
    }
}

fn number(expr: &Expr) -> Option<u64> {
    match strip(expr) {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Int(int) => int.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

fn count(local: &Expr) -> Option<u64> {
    match strip(local) {
        Expr::Array(array) => Some(array.elems.len() as u64),
        Expr::Repeat(repeat) => number(&repeat.len),
        Expr::Reference(reference) => count(&reference.expr),
        Expr::Range(range) if matches!(range.limits, syn::RangeLimits::HalfOpen(_)) => {
            number(range.end.as_deref()?)?.checked_sub(number(range.start.as_deref()?)?)
        }
        _ => None,
    }
}

/// The names that may change. Any other name is bound once and is not `mut`, so it has one value
/// throughout.
struct Stable {
    changing: BTreeSet<String>,
}

impl Stable {
    fn of(superstep: &Superstep) -> Self {
        struct Bindings(BTreeMap<String, (usize, bool)>);
        impl<'a> Visit<'a> for Bindings {
            fn visit_pat(&mut self, pat: &'a Pat) {
                for bound in bound_by(pat) {
                    let entry = self.0.entry(bound.name.to_string()).or_default();
                    *entry = (entry.0 + 1, entry.1 | bound.mutable);
                }
            }
        }
        let mut bindings = Bindings(BTreeMap::new());
        for param in &superstep.params {
            bindings.visit_pat(&param.pat);
            if matches!(crate::types::strip_type(&param.ty), syn::Type::Reference(r) if crate::types::is_mut(r))
            {
                // The rank and the size of a window do not change. The value behind any other
                // `&mut` may change.
                if matches!(param.kind, crate::parse::ParamKind::Argument) {
                    bindings.visit_pat(&param.pat);
                }
            }
        }
        bindings.visit_block(&superstep.body);
        let changing = bindings.0.into_iter().filter(|(_, (times, mutable))| *times > 1 || *mutable);
        Self { changing: changing.map(|(name, _)| name).collect() }
    }

    /// Returns whether two expressions have the same text and the same value.
    fn same(&self, a: &Expr, b: &Expr) -> bool {
        struct Constant<'s>(&'s Stable, bool);
        impl<'a> Visit<'a> for Constant<'_> {
            fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
                self.1 &=
                    path.path.get_ident().is_none_or(|name| !self.0.changing.contains(&name.to_string()));
            }
            fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
                self.1 &= matches!(strip(&call.func), Expr::Path(path)
                    if path.path.segments.last().is_some_and(|last| is_constant(&last.ident)));
                visit::visit_expr_call(self, call);
            }
            fn visit_macro(&mut self, _: &'a syn::Macro) {
                self.1 = false;
            }
            fn visit_expr_closure(&mut self, _: &'a syn::ExprClosure) {
                self.1 = false;
            }
        }
        let (a, b) = (strip(a), strip(b));
        if a.to_token_stream().to_string() != b.to_token_stream().to_string() {
            return false;
        }
        let mut constant = Constant(self, true);
        constant.visit_expr(a);
        constant.1
    }
}
