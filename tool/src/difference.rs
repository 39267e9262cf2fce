//! [`Comparison`]: the differences between two plans, class by class.

use crate::same::is_same;
use crate::show::Part;
use crate::source::annotated;
use fencepost_planner::explain::{Sent, explain_rank, number_of};
use fencepost_planner::ids::{ClassId, Id, OperationId, Rank};
use fencepost_planner::ir::pattern::{Local, Mode, Operation, Site};
use fencepost_planner::ir::schedule::{Program, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::Difference;
use fencepost_planner::units::Nanos;
use fencepost_runtime::Compiled;
use std::collections::HashMap;
use std::fmt;

/// Returns the first call that differs, with its source.
pub(crate) fn first_difference(title: &str, difference: &Difference) -> String {
    let text = difference.to_string();
    match (&difference.mine, &difference.planned) {
        (Some(mine), planned) => {
            let label = text.split_once(": ").map_or(text.as_str(), |(_, what)| what);
            let note = match planned {
                Some(planned) => {
                    format!("operation {} of the plan was called in {}", difference.operation, planned.site)
                }
                None => format!("the plan ends before operation {}", difference.operation),
            };
            let label = if planned.is_some() { label } else { "this call is not in the plan" };
            annotated(title, &mine.site, label, &note)
        }
        (None, _) => format!("{title}\n  {text}"),
    }
}

/// The differences between two plans: which operations change in each class of ranks, and how
/// that changes messages, bytes, staging and time.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Both plans as a whole, before and now.
    pub totals: [Total; 2],
    /// Whether the whole plans were compared.
    pub is_whole: bool,
    /// The differences between the plans as a whole, each as a line of text.
    pub whole: Vec<String>,
    /// The classes whose operations differ, epoch by epoch.
    pub classes: Vec<ClassComparison>,
}

/// A plan as a whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Total {
    /// The name of the superstep.
    pub name: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of epochs.
    pub epochs: usize,
    /// The messages of all ranks, and the predicted time.
    pub effect: Effect,
}

/// The messages of one rank or of all ranks, and the predicted time.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Effect {
    /// The number of messages.
    pub messages: u64,
    /// The bytes in these messages.
    pub bytes: u64,
    /// The bytes of staging buffers. For several ranks, the largest number of any rank.
    pub staging: u64,
    /// The predicted time.
    pub predicted: Nanos,
}

/// The differences between two plans for the ranks that are in one class of the first plan and in
/// one class of the second.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassComparison {
    /// The epoch.
    pub epoch: usize,
    /// The first of these ranks.
    pub rank: u32,
    /// The number of these ranks.
    pub ranks: usize,
    /// The messages and the predicted time of each of these ranks, before and now.
    pub effects: [Effect; 2],
    /// The operations that differ, in program order.
    pub changes: Vec<Change>,
}

/// An operation that differs.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The kind of the difference.
    pub kind: ChangeKind,
    /// The operation: its kind, elements and target.
    pub operation: String,
    /// The line of the call, or line 0 if the line is not known.
    pub site: Site,
}

/// The kind of a difference in an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// Only the second plan has the operation.
    Added,
    /// Only the first plan has the operation.
    Removed,
    /// The mode or the round of the operation differs. An operation that moves nothing has neither
    /// a mode nor a round.
    Travels {
        /// Before.
        before: Option<(Mode, u32)>,
        /// Now.
        now: Option<(Mode, u32)>,
    },
}

impl Comparison {
    /// Compares two plans. The time of each plan is predicted for the machine for which the plan
    /// was compiled.
    ///
    /// # Cost
    /// Linear in ranks, plus a line diff (Myers) of the operations of each pair of classes.
    #[must_use]
    pub fn new(before: &Compiled, now: &Compiled) -> Self {
        Self::of_part(before, now, &Part::default())
    }

    /// Compares a part of two plans: a rank, the ranks of a class of the second plan, or the
    /// operations that are called on a line.
    #[must_use]
    pub fn of_part(before: &Compiled, now: &Compiled, part: &Part) -> Self {
        let machines = [before, now].map(|plan| plan.made_for().machine);
        let mut classes = Vec::new();
        for (epoch, (old, new)) in before.schedules().iter().zip(now.schedules()).enumerate() {
            let mut pairs: Vec<((ClassId, ClassId), u32, usize)> = Vec::new();
            let mut met = HashMap::new();
            for (rank, pair) in old.class_of.iter().copied().zip(new.class_of.iter().copied()).enumerate() {
                if part.rank.is_some_and(|wanted| wanted as usize != rank)
                    || part.class.is_some_and(|wanted| wanted != pair.1.0)
                {
                    continue;
                }
                let at = *met.entry(pair).or_insert_with(|| {
                    pairs.push((pair, rank as u32, 0));
                    pairs.len() - 1
                });
                pairs[at].2 += 1;
            }
            for ((old_class, new_class), rank, ranks) in pairs {
                let programs = [&old.classes[old_class], &new.classes[new_class]];
                let mut changes =
                    changes(programs, rank, [old, new].map(|schedule| schedule.class_of.len() as u32));
                changes.retain(|change| part.has_line(&change.site));
                if !changes.is_empty() {
                    let effects = [Effect::of(old, rank, &machines[0]), Effect::of(new, rank, &machines[1])];
                    classes.push(ClassComparison { epoch, rank, ranks, effects, changes });
                }
            }
        }
        let mut whole = whole(before, now);
        let both = || before.schedules().iter().zip(now.schedules());
        let is_whole = *part == Part::default();
        if is_whole && whole.is_empty() && classes.is_empty() && !both().all(|(old, new)| is_same(old, new)) {
            whole.push("the same operations are carried out by other instructions".into());
        }
        Self { totals: [before, now].map(Total::of), is_whole, whole, classes }
    }

    /// Returns whether no operation differs. If the whole plans were compared, everything else must
    /// be equal too, including the predicted time.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let are_equal = self.whole.is_empty() && self.totals[0] == self.totals[1];
        self.classes.is_empty() && (are_equal || !self.is_whole)
    }
}

/// Returns the differences between two plans as a whole.
fn whole(before: &Compiled, now: &Compiled) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, old: String, new: String| {
        if old != new {
            lines.push(format!("{what}: {old} -> {new}"));
        }
    };
    line("placement", before.placement().to_string(), now.placement().to_string());
    for (old, new) in before.schedules().iter().zip(now.schedules()) {
        let elements = |schedule: &Schedule| {
            let all = schedule.windows.values().map(|element| format!("{:?}", element.kind));
            all.collect::<Vec<_>>().join(", ")
        };
        line("elements of the windows", elements(old), elements(new));
        line("order", format!("{:?}", old.order), format!("{:?}", new.order));
        line("synchronisation", format!("{:?}", old.sync), format!("{:?}", new.sync));
    }
    lines
}

impl Total {
    fn of(plan: &Compiled) -> Self {
        let mut effect = Effect { predicted: plan.predicted(), ..Effect::default() };
        for schedule in plan.schedules() {
            let sent = Sent::by_all(schedule);
            effect.messages += sent.messages;
            effect.bytes += sent.bytes.0;
            effect.staging = effect.staging.max(schedule.peak().0);
        }
        Self { name: plan.name().into(), ranks: plan.ranks(), epochs: plan.schedules().len(), effect }
    }
}

impl Effect {
    fn of(schedule: &Schedule, rank: u32, machine: &Machine) -> Self {
        let member = explain_rank(schedule, Rank(rank), machine);
        Self {
            messages: member.sent.messages,
            bytes: member.sent.bytes.0,
            staging: member.staging.iter().map(|buffer| buffer.bytes.0 * buffer.copies).sum(),
            predicted: member.terms.predicted(),
        }
    }
}

/// Returns the operations of a rank that differ.
fn changes([old, new]: [&Program; 2], rank: u32, ranks: [u32; 2]) -> Vec<Change> {
    let described = |operation: &Operation, ranks: u32| {
        let Operation { kind, window, target, remote, local, .. } = operation;
        let target = match target.map(|target| target.from(Rank(rank), ranks)) {
            Some(Some(target)) => format!("rank {}", target.0),
            Some(None) | None => "no rank".into(),
        };
        let local = match local {
            Local::Buffer => "a buffer".into(),
            Local::Section { window, datatype } => format!("own {window} {datatype}"),
        };
        format!("{kind} {window} {remote} of {target} with {local}")
    };
    let list = |program: &Program, ranks| -> Vec<String> {
        program.pattern.operations.values().map(|operation| described(operation, ranks)).collect()
    };
    let (before, now) = (list(old, ranks[0]), list(new, ranks[1]));
    let route = |program: &Program, at: usize| {
        let route = program.routes.get(OperationId::new(at)).copied().flatten();
        route.map(|route| (route.mode, route.round.0))
    };
    let site = |program: &Program, at: usize| program.pattern.operations[OperationId::new(at)].site.clone();
    let mut changes = Vec::new();
    for part in similar::capture_diff_slices(similar::Algorithm::Myers, &before, &now) {
        let (tag, old_part, new_part) = part.as_tag_tuple();
        if tag == similar::DiffTag::Equal {
            for (from, to) in old_part.zip(new_part) {
                let kind = ChangeKind::Travels { before: route(old, from), now: route(new, to) };
                if route(old, from) != route(new, to) {
                    changes.push(Change { kind, operation: now[to].clone(), site: site(new, to) });
                }
            }
            continue;
        }
        let removed = |at: usize| Change {
            kind: ChangeKind::Removed,
            operation: before[at].clone(),
            site: site(old, at),
        };
        let added =
            |at: usize| Change { kind: ChangeKind::Added, operation: now[at].clone(), site: site(new, at) };
        changes.extend(old_part.map(removed).chain(new_part.map(added)));
    }
    changes
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, now] = &self.totals;
        writeln!(f, "--- {before}\n+++ {now}")?;
        if self.is_empty() {
            return f.write_str(match self.is_whole {
                true => "the plans do the same\n",
                false => "this part of the plans does the same\n",
            });
        }
        writeln!(f, "all ranks: {}", Effects([before.effect, now.effect]))?;
        if before.ranks != now.ranks {
            writeln!(f, "only the ranks that both plans have are compared")?;
        }
        if before.epochs != now.epochs {
            writeln!(f, "only the epochs that both plans have are compared")?;
        }
        self.whole.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        let has_epochs = before.epochs.max(now.epochs) > 1;
        for ClassComparison { epoch, rank, ranks, effects, changes } in &self.classes {
            f.write_str("\n")?;
            if has_epochs {
                write!(f, "epoch {epoch}, ")?;
            }
            write!(f, "rank {rank}")?;
            if *ranks > 1 {
                write!(f, " and {} like it", ranks - 1)?;
            }
            writeln!(f, ": {}", Effects(*effects))?;
            changes.iter().try_for_each(|change| writeln!(f, "{change}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ranks, epochs, .. } = self;
        write!(f, "{name}: {}", number_of(*ranks as u64, "rank"))?;
        if *epochs > 1 { write!(f, ", {}", number_of(*epochs as u64, "epoch")) } else { Ok(()) }
    }
}

/// The effects before and now, on one line. A figure that differs is printed as `before -> now`.
struct Effects([Effect; 2]);

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, now] = &self.0;
        let both = |before: String, now: String| {
            if before == now { before } else { format!("{before} -> {now}") }
        };
        let count = |of: fn(&Effect) -> u64| both(of(before).to_string(), of(now).to_string());
        let time = |effect: &Effect| format!("{:.2}", effect.predicted.0 / 1e3);
        write!(
            f,
            "messages {}, bytes {}, staging {}, predicted us {}",
            count(|effect| effect.messages),
            count(|effect| effect.bytes),
            count(|effect| effect.staging),
            both(time(before), time(now))
        )
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, operation, site } = self;
        let sign = match kind {
            ChangeKind::Added => '+',
            ChangeKind::Removed => '-',
            ChangeKind::Travels { .. } => '~',
        };
        write!(f, "{sign} {operation}")?;
        if let ChangeKind::Travels { before, now } = kind {
            let travels = |route: &Option<(Mode, u32)>| match route {
                Some((mode, round)) => format!("{mode}, round {round}"),
                None => "moves nothing".into(),
            };
            write!(f, ": {} -> {}", travels(before), travels(now))?;
        }
        if site.line > 0 { write!(f, " ({site})") } else { Ok(()) }
    }
}
