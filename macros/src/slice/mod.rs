//! [`Slice`]: the part of the body on which the operations' targets and datatypes depend.
//!
//! This is a backward slice by name. An operation needs the names in its target, its place and its
//! section. A kept condition or loop needs the names in its head. If a name is needed, every
//! statement that gives it a value is kept. This repeats until nothing is added. All bindings of
//! one name are treated as one. This may keep more than necessary, but never less. If a Rust slice
//! is put, only its *shape* is needed. So the code that fills a buffer can be left out, while the
//! code that determines its size stays.
//!
//! Code that cannot be followed makes the superstep dynamic. The [`Reason`] names the line of this
//! code. Assumptions about unseen code are listed in `state`. The first execution, and each
//! execution under `FENCEPOST_CHECK`, compares the resulting pattern with the body's calls.

mod changes;
mod exits;
mod keepers;
mod need;
mod reads;
mod round;
mod shape;
mod state;

use crate::check::idle_fences;
use crate::collect::{Body, Reason};
use crate::parse::Superstep;
use crate::source::place_of;
use crate::types::strip_type;
use changes::unknown_changes;
use exits::{ExitPosition, exits};
use need::{Known, Need};
use proc_macro2::TokenStream;
use round::{Round, round};
use shape::lists;
use state::{States, no_states};
use std::collections::{BTreeMap, BTreeSet};
use syn::Type;
use syn::visit::{self, Visit};

/// The result of slicing a body.
#[derive(Debug)]
pub enum Outcome {
    /// The pattern is available without running the body.
    Described(Slice),
    /// The pattern is not available, for this reason.
    Dynamic(Reason),
}

/// The body of `pattern`.
#[derive(Debug)]
pub struct Slice {
    pub statements: TokenStream,
    /// Whether the body, as far as syntax shows, only calls operations with sections on both sides.
    /// A replay then need not run the body.
    pub replays: bool,
    /// Whether the caller chooses the type of a source. If the source is not a section but values,
    /// a replay has to run the body.
    pub generic: bool,
}

/// Slices the body, or returns the line that prevents this.
///
/// A pattern describes a successful execution. Each exit by error stays if the slice can evaluate
/// its condition, since a later index or the end of a loop may rely on this condition. An exit that
/// needs elements is left out. So the evaluation of a pattern may continue where the body would
/// have returned an error. Therefore its evaluation is bounded, a pattern that panics is ignored,
/// and a pattern contains no unsafe code.
pub fn slice(superstep: &Superstep, body: &Body) -> Outcome {
    match described(superstep, body) {
        Ok(slice) => Outcome::Described(slice),
        Err(reason) => Outcome::Dynamic(reason),
    }
}

fn described(superstep: &Superstep, body: &Body) -> Result<Slice, Reason> {
    if let Some(reason) = &body.hidden {
        return Err(reason.clone());
    }
    for param in superstep.arguments() {
        if let Some(why) = not_owned(&param.ty) {
            return Err(Reason::new(&param.ty, why));
        }
    }
    let states = States::of(superstep);
    if let Some(reason) = states.repeated() {
        return Err(reason.clone());
    }
    let lists = lists(superstep);
    let mut stay = BTreeSet::new();
    let (mut slice, mut needs) = describe(superstep, body, &states, &stay)?;
    let known =
        Known { scope: &body.scope, needs: &needs, exits: &BTreeSet::new(), lists: &lists, states: &states };
    let mut open = exits(superstep, known);
    loop {
        let before = stay.len();
        open.retain(|exit| {
            if !exit.guards(&needs) {
                return true;
            }
            stay.insert(exit.position);
            match describe(superstep, body, &states, &stay) {
                Ok(with) => {
                    (slice, needs) = with;
                    false
                }
                Err(_) => {
                    stay.remove(&exit.position);
                    true
                }
            }
        });
        // An exit that stays may need further names, and another exit may guard these names. So
        // this repeats until no further exit stays.
        if stay.len() == before {
            return Ok(slice);
        }
    }
}

/// Returns the slice with the exits in `stay`, and the needs of that slice.
fn describe(
    superstep: &Superstep,
    body: &Body,
    states: &States,
    stay: &BTreeSet<ExitPosition>,
) -> Result<(Slice, BTreeMap<String, Need>), Reason> {
    let idle = idle_fences(body).into_iter().map(place_of).collect::<Vec<_>>();
    let lists = lists(superstep);
    let mut needs = BTreeMap::new();
    loop {
        let known = Known { scope: &body.scope, needs: &needs, exits: stay, lists: &lists, states };
        let Round { statements, found, whole, generic } = round(superstep, &idle, known)?;
        if found == needs {
            unknown_changes(superstep, &needs)?;
            no_states(superstep, &needs)?;
            return Ok((Slice { statements, replays: whole, generic }, needs));
        }
        needs = found;
    }
}

/// Returns why an argument of this type has no owned form that a closure could return, or `None` if
/// the argument has such a form.
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
