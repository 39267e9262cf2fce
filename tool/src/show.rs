//! [`Shown`] prints a plan as text: each operation of each class, with its target, its elements,
//! its mode and its round.

use crate::same::without_lines;
use fencepost_planner::explain::{Member, Route, Staging, cost, cost_at_fence, explain_rank, number_of};
use fencepost_planner::ids::{ClassId, Id, Rank};
use fencepost_planner::ir::pattern::{Local, Operation, Order, Site, Sync};
use fencepost_planner::ir::schedule::{Placement, Schedule};
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::MadeFor;
use fencepost_runtime::Compiled;
use fencepost_runtime::explained::ExplainedShare;
use std::fmt;

/// The part of a plan that is shown. By default, everything is shown.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Part {
    /// One rank, instead of the first rank of each class.
    pub rank: Option<u32>,
    /// One class.
    pub class: Option<u32>,
    /// The operations that are called on one line of one file. The end of the file's path, such as
    /// `main.rs`, is enough.
    pub line: Option<(String, u32)>,
}

impl Part {
    /// Checks that the plan has this part.
    ///
    /// # Errors
    /// If the plan lacks this part. The error names the missing part, and lists the parts that
    /// exist.
    pub fn within(&self, compiled: &Compiled) -> Result<(), String> {
        let (ranks, name) = (compiled.ranks(), compiled.name());
        if let Some(rank) = self.rank.filter(|&rank| rank as usize >= ranks) {
            return Err(format!("rank {rank}: the plan of {name} has the ranks 0 to {}", ranks - 1));
        }
        let classes = compiled.schedules().iter().map(|schedule| schedule.classes.len()).max().unwrap_or(0);
        if let Some(class) = self.class.filter(|&class| class as usize >= classes) {
            return Err(format!("class {class}: the plan of {name} has the classes 0 to {}", classes - 1));
        }
        if let Some((file, line)) = &self.line {
            let all = compiled.schedules().iter().flat_map(|schedule| schedule.classes.values());
            let mut sites: Vec<&Site> =
                all.flat_map(|program| program.pattern.operations.values()).map(|one| &one.site).collect();
            if !sites.iter().any(|site| self.has_line(site)) {
                sites.sort();
                sites.dedup();
                let sites: Vec<String> = sites.iter().map(ToString::to_string).collect();
                return Err(format!(
                    "no operation of {name} is called in {file}:{line}; there are calls in {}",
                    sites.join(", ")
                ));
            }
        }
        Ok(())
    }

    /// Returns the ranks of one epoch that are shown, each with its class and the number of ranks
    /// that it represents.
    pub(crate) fn ranks(&self, schedule: &Schedule) -> Vec<(u32, ClassId, usize)> {
        let class_of = &schedule.class_of;
        if let Some(rank) = self.rank {
            let class = class_of[rank as usize];
            let is_wanted = self.class.is_none_or(|wanted| wanted == class.0);
            return if is_wanted { vec![(rank, class, 1)] } else { Vec::new() };
        }
        let mut first_and_count = vec![(0, 0); schedule.classes.len()];
        for (rank, class) in class_of.iter().enumerate().rev() {
            let (first, count) = &mut first_and_count[class.index()];
            (*first, *count) = (rank as u32, *count + 1);
        }
        let mut all: Vec<_> = first_and_count
            .into_iter()
            .zip(schedule.classes.ids())
            .filter(|((_, count), class)| *count > 0 && self.class.is_none_or(|wanted| wanted == class.0))
            .map(|((first, count), class)| (first, class, count))
            .collect();
        all.sort_unstable();
        all
    }

    /// Returns whether operations of this line are shown.
    pub(crate) fn has_line(&self, site: &Site) -> bool {
        self.line.as_ref().is_none_or(|(file, line)| site.line == *line && is_path_end(file, &site.file))
    }
}

/// Returns whether `path` ends with `end`, and `end` begins with a whole name of a folder or file.
fn is_path_end(end: &str, path: &str) -> bool {
    let before = path.strip_suffix(end.trim_start_matches("./"));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// A plan, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'p> {
    /// The plan.
    pub compiled: &'p Compiled,
    /// The part of the plan that is printed.
    pub part: &'p Part,
    /// Whether the source lines of operations are shown. If not, neither the text nor the classes
    /// depend on source lines.
    pub has_lines: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Head(self.compiled))?;
        let schedules = self.compiled.schedules();
        for (epoch, schedule) in schedules.iter().enumerate() {
            let machine = &self.compiled.made_for().machine;
            f.write_str("\n")?;
            if schedules.len() > 1 {
                writeln!(f, "epoch {epoch} of {}", schedules.len())?;
            }
            if self.has_lines {
                self.epoch(f, schedule, machine)?;
            } else {
                self.epoch(f, &without_lines(schedule), machine)?;
            }
        }
        Ok(())
    }
}

/// The head of the text: the plan, and the machine and options for which it was made.
struct Head<'p>(&'p Compiled);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let compiled = self.0;
        let MadeFor { machine, options, recipe, values } = compiled.made_for();
        writeln!(
            f,
            "{}: {}, {}",
            compiled.name(),
            number_of(compiled.ranks() as u64, "rank"),
            placed(compiled.placement())
        )?;
        if !recipe.is_empty() {
            writeln!(f, "recipe: {recipe}")?;
        }
        values.iter().try_for_each(|(name, value)| writeln!(f, "{name}: {value}"))?;
        writeln!(f, "mode: {}", options.mode)?;
        if let Some(cap) = options.cap {
            writeln!(f, "at most {cap} of staging a rank")?;
        }
        if *machine == Machine::default() {
            writeln!(f, "machine: the default model")
        } else {
            writeln!(f, "machine:")?;
            machine.to_string().lines().try_for_each(|line| writeln!(f, "  {line}"))
        }
    }
}

/// Describes which ranks share memory.
pub(crate) fn placed(placement: Placement) -> String {
    match placement {
        Placement::Together => "in shared memory".into(),
        Placement::Apart => "without shared memory".into(),
        Placement::Hosts { ranks_each } => {
            format!("{} to a host", number_of(ranks_each as u64, "rank"))
        }
    }
}

impl Shown<'_> {
    fn epoch(&self, f: &mut fmt::Formatter<'_>, schedule: &Schedule, machine: &Machine) -> fmt::Result {
        if schedule.sync == Sync::Pscw {
            writeln!(f, "posts and starts between partners")?;
        }
        if schedule.order == Order::Relaxed {
            writeln!(f, "the order of operations on one element is not kept")?;
        }
        let (at_fence, _) = cost_at_fence(schedule, machine);
        writeln!(f, "{}; not prepared {:.2} us", cost(schedule, machine), at_fence.0 / 1e3)?;
        for (rank, class, count) in self.part.ranks(schedule) {
            let operations = &schedule.classes[class].pattern.operations;
            let is_shown = |operation: &&Operation| self.part.has_line(&operation.site);
            if self.part.line.is_some() && !operations.values().any(|operation| is_shown(&operation)) {
                continue;
            }
            let member = explain_rank(schedule, Rank(rank), machine);
            writeln!(f, "\n{}", Title { member: &member, count })?;
            for (operation, row) in operations.values().zip(&member.rows) {
                if self.part.has_line(&operation.site) {
                    writeln!(f, "  {}", Line { operation, row, has_site: self.has_lines })?;
                }
            }
        }
        Ok(())
    }
}

/// The title of a class: the messages that a rank of the class sends.
struct Title<'m> {
    member: &'m Member,
    count: usize,
}

impl fmt::Display for Title<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Member { class, rank, sent, staging, .. } = self.member;
        write!(f, "class {class}: rank {rank}")?;
        if self.count > 1 {
            write!(f, " and {} like it", self.count - 1)?;
        }
        let staged: u64 = staging.iter().map(|Staging { bytes, copies, .. }| bytes.0 * copies).sum();
        write!(
            f,
            ": {}, {} bytes, in {}; staging {staged} bytes",
            number_of(sent.messages, "message"),
            sent.bytes.0,
            number_of(sent.rounds, "round")
        )
    }
}

/// The line of an operation.
struct Line<'o> {
    operation: &'o Operation,
    row: &'o fencepost_planner::explain::Row,
    has_site: bool,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { kind, window, remote, local, site, .. } = self.operation;
        write!(f, "{} {kind} {window} {remote}", self.row.operation)?;
        match self.row.target {
            Some(target) => write!(f, " of rank {target}")?,
            None => f.write_str(" of no rank")?,
        }
        match local {
            Local::Buffer => f.write_str(" with a buffer")?,
            Local::Section { window, datatype } => write!(f, " with own {window} {datatype}")?,
        }
        match self.row.route {
            Route::Nothing(why) => write!(f, ": moves nothing, {why}")?,
            Route::Own { copied: true, .. } => f.write_str(": copied")?,
            Route::Own { copied: false, .. } => f.write_str(": through a buffer")?,
            Route::Sent { mode, round, .. } => write!(f, ": {mode}, round {round}")?,
        }
        if self.has_site && site.line > 0 {
            write!(f, ", {site}")?;
        }
        Ok(())
    }
}

/// Explains a part of a plan: how each operation travels, why, and its cost in the other mode.
#[must_use]
pub fn explained(compiled: &Compiled, part: &Part) -> String {
    let mut explained = compiled.explain();
    for (epoch, schedule) in explained.epochs.iter_mut().zip(compiled.schedules()) {
        let machine = &compiled.made_for().machine;
        let ExplainedShare::Whole(plan) = &mut epoch.share else { continue };
        let ranks = part.ranks(schedule).into_iter();
        plan.members = ranks
            .map(|(rank, _, ranks)| {
                let mut member = explain_rank(schedule, Rank(rank), machine);
                member.ranks = ranks;
                member.rows.retain(|row| part.has_line(&row.site));
                member
            })
            .filter(|member| part.line.is_none() || !member.rows.is_empty())
            .collect();
    }
    explained.to_string()
}
