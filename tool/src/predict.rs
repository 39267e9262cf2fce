//! [`Question`] predicts times of plans for several numbers of ranks, values, placements, machines
//! and modes.

use crate::documents::{PredictionDocument, PredictionRow};
use fencepost_planner::explain::Sent;
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::options::Options;
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::Recipe;

/// A machine model and its name: the path of its file, `default`, or `the plan's`.
#[derive(Clone, PartialEq, Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The model.
    pub machine: Machine,
}

/// The variations for which times are predicted. If a list is empty, plans keep the setting with
/// which they were compiled.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Question {
    /// The numbers of ranks.
    pub ranks: Vec<usize>,
    /// The recipe values to vary, each with the texts to try.
    pub values: Vec<(String, Vec<String>)>,
    /// The placements.
    pub placements: Vec<Placement>,
    /// The machines.
    pub machines: Vec<Named>,
    /// The modes.
    pub modes: Vec<Mode>,
}

impl Question {
    /// Returns the recipes to compile: each of `recipes` for each number of ranks, and for each
    /// combination of values.
    #[must_use]
    pub fn recipes(&self, recipes: &[Recipe]) -> Vec<Recipe> {
        let mut all = recipes.to_vec();
        if !self.ranks.is_empty() {
            let of = |recipe: Recipe| self.ranks.iter().map(move |&ranks| Recipe { ranks, ..recipe.clone() });
            all = all.into_iter().flat_map(of).collect();
        }
        for (name, texts) in &self.values {
            let of = |recipe: Recipe| {
                texts.iter().map(move |text| {
                    let mut recipe = recipe.clone();
                    recipe.values.retain(|(known, _)| known != name);
                    recipe.values.push((name.clone(), text.clone()));
                    recipe
                })
            };
            all = all.into_iter().flat_map(of).collect();
        }
        all
    }

    /// Predicts the times of a plan. Returns a row for each placement, machine and mode.
    ///
    /// # Errors
    /// If the plan cannot be compiled for one of the rows. The error states why.
    pub fn rows(&self, plan: &Compiled) -> Result<Vec<PredictionRow>, String> {
        let made_for = plan.made_for();
        let placements = or(&self.placements, || plan.placement());
        let own = || Named {
            name: if made_for.machine == Machine::default() { "default" } else { "the plan's" }.into(),
            machine: made_for.machine,
        };
        let machines = or(&self.machines, own);
        let modes = or(&self.modes, || made_for.options.mode);
        let mut rows = Vec::new();
        for &placement in &placements {
            for Named { name, machine } in &machines {
                for &mode in &modes {
                    let options = Options { mode, ..made_for.options };
                    let is_same = (placement, machine, options)
                        == (plan.placement(), &made_for.machine, made_for.options);
                    let compiled =
                        if is_same { Ok(plan.clone()) } else { plan.with(placement, machine, &options) };
                    rows.push(row(&compiled.map_err(|error| error.to_string())?, name, mode));
                }
            }
        }
        Ok(rows)
    }
}

fn or<T: Clone>(given: &[T], own: impl FnOnce() -> T) -> Vec<T> {
    if given.is_empty() { vec![own()] } else { given.to_vec() }
}

/// Predicts the times of a plan as it was compiled.
pub(crate) fn row(plan: &Compiled, machine: &str, mode: Mode) -> PredictionRow {
    let (mut messages, mut bytes) = (0, 0);
    for schedule in plan.schedules() {
        let sent = Sent::by_all(schedule);
        messages += sent.messages;
        bytes += sent.bytes.0;
    }
    PredictionRow {
        name: plan.name().into(),
        ranks: plan.ranks(),
        values: plan.made_for().values.iter().cloned().collect(),
        placement: plan.placement().to_string(),
        machine: machine.into(),
        mode: mode.to_string(),
        prepared: plan.predicted().0,
        at_fence: plan.predicted_at_fence().0,
        bound: plan.bound().0,
        messages,
        bytes,
    }
}

/// Returns the column names and the rows of a table of predictions, as text. Times are in
/// microseconds. Each recipe value has its own column.
#[must_use]
pub fn table(document: &PredictionDocument) -> (Vec<String>, Vec<Vec<String>>) {
    let mut names: Vec<&String> = document.rows.iter().flat_map(|row| row.values.keys()).collect();
    names.sort();
    names.dedup();
    let mut head: Vec<String> = vec!["plan".into(), "ranks".into()];
    head.extend(names.iter().map(|name| (*name).clone()));
    let rest =
        ["placement", "machine", "mode", "prepared us", "at a fence us", "at least us", "messages", "bytes"];
    head.extend(rest.map(String::from));
    let line = |row: &PredictionRow| {
        let mut line = vec![row.name.clone(), row.ranks.to_string()];
        line.extend(names.iter().map(|name| row.values.get(*name).cloned().unwrap_or_default()));
        line.extend([row.placement.clone(), row.machine.clone(), row.mode.clone()]);
        line.extend([row.prepared, row.at_fence, row.bound].map(|time| format!("{:.2}", time / 1e3)));
        line.extend([row.messages, row.bytes].map(|count| count.to_string()));
        line
    };
    (head, document.rows.iter().map(line).collect())
}
