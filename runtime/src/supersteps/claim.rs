//! Compares the calls of a superstep with its pattern, which is a claim about these calls.

use crate::collect::outbox::{DATATYPE, DatatypeSource, Head, code_of};
use crate::kernel::contained::drop_payload;
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use crate::supersteps::recorder::Recording;
use crate::supersteps::state::RecordedEpoch;
use crate::supersteps::state::{Superstep, Supersteps};
use fencepost_planner::datatype::Datatype;
use fencepost_planner::ids::{Id, Rank, WindowId};
use fencepost_planner::ir::pattern::{Kind, Local, Operation};
use fencepost_planner::{Error, ErrorClass, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The pattern of a superstep, with the arguments with which the superstep is entered.
pub type Claim<'c> = &'c dyn Fn(&Recording) -> Result<()>;

impl Supersteps {
    /// Compares the calls on `windows` with the claim of the superstep around this fence.
    ///
    /// # Errors
    /// `PLAN` at the first difference.
    pub(crate) fn compare(&self, world: &WorldCore, windows: &[&WindowCore], call: &Call) -> Result<()> {
        let mut running = self.running.borrow_mut();
        let Some(running) = running.last_mut() else { return Ok(()) };
        let Some(claim) = running.claim().cloned() else { return Ok(()) };
        let entered = &self.entered.borrow()[running.windows..];
        let ids: Vec<Option<WindowId>> = windows
            .iter()
            .map(|window| {
                let place = entered.iter().position(|entered| entered.key == window.key);
                place.map(WindowId::new)
            })
            .collect();
        if ids.iter().all(Option::is_none) {
            return Ok(());
        }
        let differs = |message: String| Err(call.error(world, ErrorClass::Plan, message));
        let Some(epoch) = claim.get(running.next) else {
            return differs(format!(
                "the pattern has {} epochs, and this fence ends another one",
                claim.len()
            ));
        };
        running.next += 1;
        let mut fenced: Vec<WindowId> = ids.iter().flatten().copied().collect();
        let mut claimed = epoch.windows.clone();
        fenced.sort_unstable();
        claimed.sort_unstable();
        if fenced != claimed {
            return differs(format!(
                "this fence is of windows {fenced:?} of the superstep, counted from 0, but in the pattern it is of {claimed:?}"
            ));
        }
        for (window, id) in windows.iter().zip(ids) {
            let Some(id) = id else { continue };
            if let Some(difference) = differs_from(world, window, id, &epoch.pattern.operations, entered) {
                return differs(difference);
            }
        }
        Ok(())
    }

    /// Returns whether the calls of the superstep that is entered must be compared with its
    /// pattern: the first time that the superstep is entered, and each time under the checker.
    #[inline]
    pub(super) fn compares(&self, superstep: &'static Superstep) -> bool {
        self.check.get() || self.compared.borrow().get(superstep.number()) != Some(&true)
    }

    /// Returns the calls that the superstep must make according to its pattern.
    #[cold]
    pub(super) fn claim(
        &self,
        superstep: &'static Superstep,
        claim: Claim<'_>,
        windows: &[&WindowCore],
        world: &WorldCore,
    ) -> Option<Rc<[RecordedEpoch]>> {
        let number = superstep.number();
        let mut compared = self.compared.borrow_mut();
        let len = compared.len().max(number + 1);
        compared.resize(len, false);
        compared[number] = true;
        drop(compared);
        let lengths =
            windows.iter().map(|window| window.peers.iter().map(|peer| peer.len).collect()).collect();
        let recording = Recording::of(world.rank as u32, world.size as u32, lengths);
        // A pattern that fails, panics or does not end makes no claim. The body runs without a
        // claim, and its own error is more precise.
        evaluate(superstep, || claim(&recording)).ok()?;
        let (epochs, _) = recording.finish(windows.len(), superstep.fences).ok()?;
        Some(epochs.into())
    }
}

/// Evaluates a pattern. The code is the user's, and ranks that wait for this rank must be notified
/// of a failure. So a panic becomes an error.
///
/// # Errors
/// The errors of the pattern; `PLAN` if it panics.
pub(crate) fn evaluate(superstep: &Superstep, record: impl FnOnce() -> Result<()>) -> Result<()> {
    // A panic leaves only the recording incomplete, and the recording is not read after an error.
    catch_unwind(AssertUnwindSafe(record)).unwrap_or_else(|payload| {
        let said = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(said), _) => (*said).to_owned(),
            (None, Some(said)) => said.clone(),
            (None, None) => "a payload that is not text".to_owned(),
        };
        drop_payload(payload);
        let Superstep { name, file, line, .. } = superstep;
        let message = format!(
            "the pattern of superstep `{name}` ({file}:{line}) panicked while it was evaluated: {said}: check the arguments before the first operation, and return an error"
        );
        Err(Error::new(ErrorClass::Plan, message))
    })
}

/// Returns the first difference between the calls on `window` and the calls that `claimed` has for
/// this window.
fn differs_from(
    world: &WorldCore,
    window: &WindowCore,
    id: WindowId,
    claimed: &fencepost_planner::table::Table<fencepost_planner::ids::OperationId, Operation>,
    entered: &[Rc<WindowCore>],
) -> Option<String> {
    let moving = |operation: &&Operation| operation.window == id && !operation.remote.is_empty();
    let target = |operation: &Operation| operation.target?.from(Rank(world.rank as u32), world.size as u32);
    let set = window.filling.set.get();
    for rank in 0..world.size {
        // SAFETY: only this rank touches the set that it is filling, and it collects nothing
        // meanwhile.
        let outbox = unsafe { &*window.region.outbox(set, rank) };
        let made = outbox.records.iter().map(|record| {
            let head = Head(record.head);
            let element = |at: usize| Datatype::run(at..at + 1);
            if let Some(of_value) = head.of_value() {
                let section = Some((window.key, element(record.value as usize)));
                return (of_value.code(), element(head.at()), section);
            }
            if head.code() != DATATYPE {
                return (head.code(), element(head.at()), None);
            }
            let wide = &outbox.wide[head.at()];
            let section = match &wide.source {
                DatatypeSource::Section(key, section, _) => Some((*key, section.clone())),
                DatatypeSource::Bytes(_) | DatatypeSource::Exposed(..) => None,
            };
            (wide.code, wide.remote.clone(), section)
        });
        let mut claimed = claimed
            .values()
            .filter(moving)
            .filter(|operation| operation.kind != Kind::Get && target(operation) == Some(Rank(rank as u32)));
        for (code, remote, section) in made {
            let what = format!("on rank {rank} elements {remote} of window {id}");
            let Some(operation) = claimed.next() else {
                return Some(format!("a call that the pattern does not have: {what}"));
            };
            let same_section = match (&operation.local, section) {
                (Local::Section { window, datatype }, Some((key, section))) => {
                    entered.get(window.index()).is_some_and(|window| window.key == key)
                        && *datatype == section
                }
                (_, section) => section.is_none(),
            };
            if code_of(operation.kind) != code || operation.remote != remote || !same_section {
                return Some(format!(
                    "a call that is not as in the pattern: {what}, where the call at {} has {:?} of elements {}",
                    operation.site, operation.kind, operation.remote
                ));
            }
        }
        if let Some(operation) = claimed.next() {
            return Some(format!("the pattern has a call at {} that was not made", operation.site));
        }
    }
    let pending = window.filling.pending.borrow();
    let mut made = pending.gets.iter();
    let claimed = claimed.values().filter(moving).filter(|operation| operation.kind == Kind::Get);
    for operation in claimed.filter(|operation| operation.target.is_some()) {
        let Some(get) = made.next() else {
            return Some(format!("the pattern has a get at {} that was not made", operation.site));
        };
        if target(operation) != Some(Rank(get.target() as u32)) || operation.remote != pending.remote(get) {
            return Some(format!(
                "a get that is not as in the pattern: from rank {} elements {}, where the call at {} has elements {}",
                get.target(),
                pending.remote(get),
                operation.site,
                operation.remote
            ));
        }
    }
    made.next().map(|get| {
        format!(
            "a get that the pattern does not have: from rank {} elements {}",
            get.target(),
            pending.remote(get)
        )
    })
}
