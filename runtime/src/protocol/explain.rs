//! Describes how the last epoch was carried out and why, as text. The data for this is collected
//! only on request.
//!
//! While the data is collected, the fast path of small operations is closed, so that each call is
//! recorded here with its line.

use crate::collect::outbox::DatatypeSource;
use crate::fence::state::history::History;
use crate::protocol::state::explained::{Epochs, Explained, Last, Note};
use crate::state::call::Call;
use crate::state::window_core::WindowCore;
use crate::state::world::WorldCore;
use fencepost_planner::adaptive::{Departure, Rendezvous};
use fencepost_planner::census::{Census, cost, messages};
use fencepost_planner::explain::{explain_rank, number_of};
use fencepost_planner::ir::pattern::{Kind, Mode};
use fencepost_planner::share::Share;
use fencepost_planner::verify::Verified;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::panic::Location;
use std::sync::Arc;

/// The outcome of a dynamic fence.
pub(crate) struct Went {
    /// Whether this rank read memory of others.
    pub(crate) reads: bool,
    /// Whether others read memory of this rank.
    pub(crate) read: bool,
    /// Whether all reads were over before anything was written.
    pub(crate) first: bool,
    /// Whether gets were copied directly to their destination.
    pub(crate) straight: bool,
}

impl WindowCore {
    /// Records that a line has put, got or accumulated this number of elements.
    pub(crate) fn note(
        &self,
        kind: Kind,
        target: usize,
        elements: usize,
        section: bool,
        mode: Mode,
        site: &'static Location<'static>,
    ) {
        if !self.world.reports.explains.get() || elements == 0 {
            return;
        }
        let mode = self.asked(mode);
        let notes = &mut *self.notes.borrow_mut();
        let same_calls = |asked: &Note| {
            std::ptr::eq(asked.site, site) && (asked.kind, asked.mode, asked.section) == (kind, mode, section)
        };
        let place = notes.iter().position(same_calls).unwrap_or_else(|| {
            notes.push(Note {
                site,
                kind,
                mode,
                section,
                operations: 0,
                elements: 0,
                targets: BTreeSet::new(),
            });
            notes.len() - 1
        });
        let asked = &mut notes[place];
        asked.operations += 1;
        asked.elements += elements as u64;
        asked.targets.insert(target);
    }
}

impl WorldCore {
    /// Records the decision about the sections of the epoch that is being ended.
    pub(crate) fn note_rendezvous(&self, decided: Rendezvous) {
        if self.reports.explains.get() {
            self.reports.explained.borrow_mut().rendezvous = decided;
        }
    }

    /// Records the end of a dynamic epoch. The collected operations of the epoch must still exist.
    pub(crate) fn note_fence(&self, windows: &[&WindowCore], call: &Call, went: &Went) {
        if !self.reports.explains.get() || windows.is_empty() {
            return;
        }
        let explained = &mut *self.reports.explained.borrow_mut();
        let text = dynamic(self, windows, call, went, explained);
        explained.add(call.describe(windows), self.reports.traffic.get(), Last::Told(text));
        explained.rendezvous = Rendezvous::default();
        windows.iter().for_each(|window| window.notes.borrow_mut().clear());
    }

    /// Records the end of a prepared epoch.
    pub(crate) fn note_run(&self, windows: &[&WindowCore], call: &Call, share: &Arc<Verified<Share>>) {
        if self.reports.explains.get() {
            let explained = &mut *self.reports.explained.borrow_mut();
            let what = call.describe(windows);
            explained.add(what.clone(), self.reports.traffic.get(), Last::Prepared(what, share.clone()));
        }
    }

    /// Describes the last successful epoch.
    pub(crate) fn explain_last(&self) -> String {
        if !self.reports.explains.get() {
            return "nothing is kept to explain: set FENCEPOST_EXPLAIN=on, or call `Ranks::explain(true)`\n"
                .into();
        }
        let explained = &mut *self.reports.explained.borrow_mut();
        let Some(last) = &explained.last else { return "no epoch has ended yet\n".into() };
        let mut text = self.told(last);
        if !std::mem::replace(&mut explained.cores, true) {
            text.push_str(&self.cores());
        }
        text
    }

    fn told(&self, last: &Last) -> String {
        match last {
            Last::Told(text) => text.clone(),
            Last::Prepared(what, share) => {
                let rank = explain_rank(share, share.rank(), &self.machine);
                format!("{what} on rank {}: prepared\n{rank}", self.rank)
            }
        }
    }

    /// Describes all epochs of this rank so far, grouped by the calls that have ended them.
    ///
    /// Each group contains the number of its epochs, the numbers of messages and bytes that they
    /// sent, and a description of its last epoch with reasons.
    pub(crate) fn explain_all(&self) -> String {
        const MOST: usize = 100;
        let mut text = format!(
            "what rank {} of {} has sent, by the calls that ended its epochs:\n",
            self.rank, self.size
        );
        let calls = self.reports.explained.borrow().calls.clone();
        let calls = calls.borrow();
        for (call, Epochs { count, messages, bytes, last }) in calls.iter().take(MOST) {
            let _ = writeln!(text, "{call}: epochs {count}, messages {messages}, bytes {bytes}; the last:");
            for line in last
                .iter()
                .flat_map(|last| self.told(last).lines().skip(1).map(str::to_owned).collect::<Vec<_>>())
            {
                let _ = writeln!(text, "  {line}");
            }
        }
        if let Some(more) = calls.len().checked_sub(MOST + 1) {
            let _ = writeln!(text, "and {} more calls", more + 1);
        }
        text
    }

    /// Describes how many ranks share the cores, if there are more ranks than cores. Having more
    /// ranks than cores is normal.
    ///
    /// If ranks are processes, their cores are not known here, and the text is empty.
    fn cores(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.reach.kind.is_of_processes() || self.size <= cores {
            return String::new();
        }
        format!(
            "  cores: {} ranks share {cores}; a rank that waits lets others run (reported once)\n",
            self.size
        )
    }
}

fn dynamic(
    world: &WorldCore,
    windows: &[&WindowCore],
    call: &Call,
    went: &Went,
    explained: &Explained,
) -> String {
    let mut text = String::new();
    let (now, before) = (world.reports.traffic.get(), explained.before);
    let replayed = if world.fence.changed.get() { "dynamic" } else { "replayed" };
    let _ = writeln!(text, "{} on rank {}: {replayed}", call.describe(windows), world.rank);
    if let Some(why) = world.supersteps.dynamic() {
        let _ = writeln!(text, "  not compiled ahead: {why}");
    }
    let waits = match (went.reads || went.read, went.first) {
        (false, _) => "",
        (true, false) => ", and a wait for the ranks that read this rank's memory",
        (true, true) => {
            ", and a wait for readers before anything was written, since they read elements that were to be written"
        }
    };
    let _ = writeln!(
        text,
        "  rounds: one exchange of words{waits}\n  {}\n  sent: {}, {} bytes, {} of them descriptions",
        census(world),
        number_of(now.messages - before.messages, "message"),
        now.bytes - before.bytes,
        now.described - before.described
    );
    let early: u64 = windows
        .iter()
        .map(|window| {
            window.fence.remembered.borrow().left.iter().map(|left| u64::from(left.frames)).sum::<u64>()
        })
        .sum();
    if early > 0 {
        let _ = writeln!(text, "  early: {} had left before the fence", number_of(early, "message"));
    }
    let (mut exposed, mut bytes) = (0u64, 0u64);
    for window in windows {
        for target in 0..world.size {
            // SAFETY: only the owner of the set that was filled changes it, and other ranks only
            // read it.
            let outbox = unsafe { &*window.region.outbox(window.filling.set.get(), target) };
            for wide in &outbox.wide {
                if let DatatypeSource::Exposed(_, section) = &wide.source {
                    exposed += 1;
                    bytes += section.size() as u64 * u64::from(window.element.size);
                }
            }
        }
    }
    if exposed > 0 {
        let _ = writeln!(text, "  direct: {exposed} sections of {bytes} bytes together were read in place");
    }
    if let Rendezvous { saved: Some(saved), price } = explained.rendezvous {
        let _ = writeln!(
            text,
            "  auto: reading sections in place saves {:.0} ns, and waiting for the readers costs {:.0} ns",
            saved.0, price.0
        );
    }
    if windows.iter().any(|window| !window.filling.pending.borrow().gets.is_empty()) {
        let how =
            if went.straight { "direct: gets were copied to their destination" } else { "gets were staged" };
        let _ = writeln!(text, "  {how}");
    }
    for window in windows.iter().filter(|window| window.peers.far) {
        let _ = writeln!(
            text,
            "  auto: window {} {}",
            window.key.window,
            history(&window.fence.history.borrow())
        );
    }
    for window in windows {
        let notes = &mut *window.notes.borrow_mut();
        notes.sort_by_key(|asked| (asked.site.file(), asked.site.line(), asked.site.column()));
        for Note { site, kind, mode, section, operations, elements, targets } in &*notes {
            let (number, source) = (window.key.window, if *section { " with a section" } else { "" });
            let _ = writeln!(
                text,
                "  {}:{}: {operations} x {kind}{source}, {elements} elements of {} bytes, {} with ranks {} of window {number}",
                site.file(),
                site.line(),
                window.element.size,
                mode,
                targets.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
            );
        }
    }
    text
}

/// Describes which census the last exchange took, and why.
fn census(world: &WorldCore) -> String {
    let (places, census) = (world.census.roles.places(), world.census.taken.get());
    let (rounds, messages) = messages(census, places);
    let cost = |census| cost(census, places, &world.machine);
    let who = match census {
        Census::Sparse | Census::Reduced if places.have_leaders() => {
            let groups = if places.memory { "hosts" } else { "groups of a machine" };
            format!("one rank of each of {} {groups}, which sends for the others", places.groups)
        }
        _ => "each rank".into(),
    };
    let why = match world.census.chosen {
        Some(_) => "the program or FENCEPOST_CENSUS has chosen it".into(),
        None if census == Census::Reduced => {
            format!("each rank had something for {} others or more in the fence before", world.census.dense)
        }
        None if world.reach.is_all => "all ranks share memory".into(),
        None => format!(
            "by the model direct costs {:.0} ns, and sparse {:.0} ns",
            cost(Census::Direct),
            cost(Census::Sparse)
        ),
    };
    let (rounds, messages) = (number_of(rounds.into(), "round"), number_of(messages.into(), "message"));
    format!("census: {census}, {rounds} of {messages} for {who}: {why}")
}

fn history(history: &History) -> String {
    match history.predicted() {
        Departure::Eager { chunk } => {
            format!("is pipelined in pieces of {chunk} bytes, by what followed its last line in earlier epochs")
        }
        Departure::Held | Departure::Growing => {
            "is aggregated: in earlier epochs little followed its last line, or always the same, or there were none"
                .into()
        }
    }
}
