//! `fencepost compare`: predicts and measures the times of a plan in all modes on this machine.

use crate::plans::{Subject, open};
use crate::predict::{aligned, value};
use crate::progress::Progress;
use crate::{fail, print, usage};
use clap::{Args, ValueHint};
use fencepost_job::{Reach, Start, pin_thread};
use fencepost_planner::ErrorClass;
use fencepost_planner::explain::number_of;
use fencepost_planner::machine::Machine;
use fencepost_runtime::recipe::Recipe;
use fencepost_runtime::{Compiled, TransportKind};
use fencepost_tool::compare::{Candidate, best, candidates, measure};
use fencepost_tool::documents::{Content, MeasurementDocument, MeasurementRow};
use fencepost_tool::files::machine;
use fencepost_tool::predict::Question;
use fencepost_tool::recipes::Recipes;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The options of `fencepost compare`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Compare {
    /// How ranks communicate here: local (threads), shm or tcp
    #[arg(long, value_name = "TRANSPORT", default_value = "shm", value_parser = ["local", "shm", "tcp"])]
    transport: String,
    /// How long to measure each plan
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = fencepost_job::duration)]
    time: Duration,
    /// The file of the machine model by which times are predicted and `auto` chooses [default: that
    /// of the plan]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    machine: Option<PathBuf>,
    /// The file of another machine's model, for which times are predicted as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    elsewhere: Option<PathBuf>,
    /// The folder with plans.toml, for a program
    #[arg(long, value_name = "FOLDER", default_value = "plans", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// The recipe of a program's plan
    #[arg(long, value_name = "NAME")]
    recipe: Option<String>,
    /// A value of a program's plan to vary: NAME=VALUE;VALUE, or NAME=FROM..TO, doubling each time
    #[arg(long, value_name = "NAME=VALUES", requires = "recipe")]
    sweep: Option<String>,
    /// Save the fastest plan in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "sweep")]
    keep_best: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The plans to measure, as a rank of the job
    #[arg(long, value_name = "FOLDER", hide = true)]
    compiled: Option<PathBuf>,
    #[command(flatten)]
    subject: Subject,
}

const AFTER: &str = "\
The plan is measured without its program. Its windows are just long enough. Before each run, a rank writes the elements \
that are sent; after it, the rank reads the elements that arrived. The modes take turns. A mode is left out if its \
schedule equals that of an earlier row, such as `auto`. Noise is the difference between the medians of the odd and the \
even turns, relative to the measured time.

Examples:
  fencepost compare plans/exchange-4.plan
  fencepost compare --transport tcp --machine here.txt --elsewhere cluster.txt plans/exchange-4.plan
  fencepost compare --recipe exchange-4 --sweep cells=64..4096 ./heat2d";

impl Compare {
    /// Starts a job that measures the plans. In a rank of that job, measures the plans and prints
    /// the table.
    pub fn run(&self) -> ExitCode {
        match self.compared() {
            Ok(code) => code,
            Err(why) => usage(&why),
        }
    }

    fn compared(&self) -> Result<ExitCode, String> {
        if let Some(folder) = &self.compiled {
            return self.as_rank(&plans_in(folder)?);
        }
        for path in self.machine.iter().chain(&self.elsewhere) {
            machine(path)?; // so that only one process reports an invalid model
        }
        let plans = self.plans()?;
        let ranks = plans.first().map_or(0, Compiled::ranks);
        if let Some(other) = plans.iter().find(|plan| plan.ranks() != ranks) {
            return Err(format!("plans of {ranks} and of {} ranks: compare them one by one", other.ranks()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let Some(shared) = shared(ranks, cores) {
            // A JSON document has no field for this line.
            if self.json {
                fail(0, &shared)
            } else {
                print(format!("{shared}\n").as_bytes())
            };
        }
        if self.transport == "local" {
            return self.as_rank(&plans);
        }
        let folder = tempfile::tempdir().map_err(|error| format!("a folder for plans: {error}"))?;
        for (number, plan) in plans.iter().enumerate() {
            let file = folder.path().join(format!("{number}.plan"));
            plan.save(file).map_err(|error| error.message().to_owned())?;
        }
        let reach = if self.transport == "tcp" { Reach::Tcp } else { Reach::Shm };
        let too_many = |_| format!("{ranks} ranks are too many to run here");
        let start = Start::this_program(ranks.try_into().map_err(too_many)?, reach);
        let start = start.map_err(|error| error.to_string())?;
        // The options come before the subject, since all words behind the subject belong to the
        // program.
        let mut arguments: Vec<OsString> = start.arguments.clone();
        arguments.insert(1, folder.path().into());
        arguments.insert(1, "--compiled".into());
        Ok(ExitCode::from(Start { pin: true, arguments, ..start }.run()))
    }

    /// Returns the plans to compare.
    fn plans(&self) -> Result<Vec<Compiled>, String> {
        if let Some(plan) = self.subject.plan() {
            if self.sweep.is_some() {
                return Err("the values of a plan are fixed: to sweep them, give its program instead".into());
            }
            return Ok(vec![open(plan)?]);
        }
        self.subject.program()?;
        let mut recipes: Vec<Recipe> = Recipes::read(&self.folder)?.all;
        let names: Vec<String> = recipes.iter().map(|recipe| recipe.name.clone()).collect();
        recipes.retain(|recipe| self.recipe.as_ref().is_none_or(|name| recipe.name == *name));
        if recipes.len() != 1 {
            let wrong =
                self.recipe.as_ref().map_or(String::new(), |name| format!("there is no recipe {name}: "));
            return Err(format!("{wrong}give one recipe with --recipe: one of {}", names.join(", ")));
        }
        let values = self.sweep.iter().map(|text| value(text)).collect::<Result<_, _>>()?;
        let recipes = Question { values, ..Question::default() }.recipes(&recipes);
        let made = self.subject.compile(&recipes)?;
        made.into_iter().map(|made| made.map(|made| made.plan)).collect()
    }

    /// Measures the plans on the ranks of this process.
    fn as_rank(&self, plans: &[Compiled]) -> Result<ExitCode, String> {
        let ranks = plans.first().map_or(0, Compiled::ranks);
        let model = self.machine.as_deref().map(machine).transpose()?;
        let other = self.elsewhere.as_deref().map(machine).transpose()?;
        let transport = match self.transport.as_str() {
            "local" => TransportKind::Local,
            "shm" => TransportKind::Shm,
            _ => TransportKind::Tcp,
        };
        let progress = Progress::of("measuring");
        let measured = fencepost_runtime::ranks(ranks).transport(transport).collect(|world| {
            if self.transport == "local" {
                // If two threads ran on one core, no cache lines would move between cores.
                pin_thread(world.rank());
            }
            let mut all = Vec::new();
            for plan in plans {
                let model = model.unwrap_or(plan.made_for().machine);
                let candidates = candidates(plan, world.placement(), &model)?;
                let rows = measure(world, &candidates, &self.transport, self.time)?;
                all.push((candidates, rows));
            }
            Ok((world.rank(), all))
        });
        drop(progress);
        let measured = match measured {
            Ok(measured) => measured,
            Err(error) if error.class() == ErrorClass::Plan => return Err(error.to_string()),
            Err(error) => return Ok(fail(fencepost_job::FAILED, &error.to_string())),
        };
        match measured.into_iter().find(|(rank, _)| *rank == 0) {
            Some((_, all)) => self.report(&all, other.as_ref()),
            None => Ok(ExitCode::SUCCESS),
        }
    }

    fn report(
        &self,
        all: &[(Vec<Candidate>, Vec<MeasurementRow>)],
        other: Option<&Machine>,
    ) -> Result<ExitCode, String> {
        if let (Some(path), [(candidates, rows)]) = (&self.keep_best, all) {
            let fastest = rows.iter().zip(candidates).min_by(|a, b| a.0.measured.total_cmp(&b.0.measured));
            if let Some((_, candidate)) = fastest {
                candidate.plan.save(path).map_err(|error| error.message().to_owned())?;
            }
        }
        if self.json {
            let rows = all.iter().flat_map(|(_, rows)| rows).cloned().collect();
            return Ok(print(Content::Measurement(MeasurementDocument { rows }).to_json().as_bytes()));
        }
        let mut text = String::new();
        for (candidates, rows) in all {
            text += &table(candidates, rows, other)?;
        }
        text += &crossover(all);
        Ok(print(text.as_bytes()))
    }
}

/// Returns a line about ranks that share cores, if there are more ranks than cores.
fn shared(ranks: usize, cores: usize) -> Option<String> {
    let cores_text = number_of(cores as u64, "core");
    (ranks > cores)
        .then(|| format!("{ranks} ranks share {cores_text}: measured times include waiting for a core"))
}

/// Opens the numbered plans of a folder.
fn plans_in(folder: &Path) -> Result<Vec<Compiled>, String> {
    let path = |number: usize| folder.join(format!("{number}.plan"));
    (0..).map(path).take_while(|path| path.exists()).map(|path| open(&path)).collect()
}

fn named(row: &MeasurementRow) -> String {
    match row.chunk {
        Some(chunk) => format!("{}, chunks of {} KiB", row.prediction.mode, chunk / 1024),
        None => row.prediction.mode.clone(),
    }
}

fn table(
    candidates: &[Candidate],
    rows: &[MeasurementRow],
    other: Option<&Machine>,
) -> Result<String, String> {
    let Some(MeasurementRow { prediction, transport, .. }) = rows.first() else { return Ok(String::new()) };
    let values: Vec<String> =
        prediction.values.iter().map(|(name, value)| format!(", {name} {value}")).collect();
    let mut text =
        format!("{} on {} ranks over {transport}{}\n", prediction.name, prediction.ranks, values.concat());
    let mut head: Vec<String> =
        ["mode", "predicted us", "measured us", "ratio", "noise"].map(String::from).into();
    if other.is_some() {
        head.push("predicted elsewhere us".into());
    }
    let mut lines = Vec::new();
    for (candidate, row) in candidates.iter().zip(rows) {
        let micros = |nanos: f64| format!("{:.2}", nanos / 1e3);
        let mut line = vec![
            named(row),
            micros(row.prediction.prepared),
            micros(row.measured),
            format!("{:.2}", row.measured / row.prediction.prepared),
            format!("{:.1} %", 100.0 * row.noise),
        ];
        if let Some(machine) = other {
            let plan = candidate
                .plan
                .with(candidate.plan.placement(), machine, &candidate.plan.made_for().options)
                .map_err(|error| error.to_string())?;
            line.push(micros(plan.predicted().0));
        }
        lines.push(line);
    }
    text += &aligned(&head, lines, &["mode"]);
    if let Some((first, margin)) = best(rows) {
        let noise = rows.iter().map(|row| row.noise).fold(0.0, f64::max);
        let doubt = if margin > noise { "" } else { ", which is within the noise" };
        text += &format!("fastest: {}, by {:.1} % of its time{doubt}\n\n", named(first), 100.0 * margin);
    }
    Ok(text)
}

/// Lists the pairs of successive values between which the fastest mode changes.
fn crossover(all: &[(Vec<Candidate>, Vec<MeasurementRow>)]) -> String {
    let fastest: Vec<&MeasurementRow> = all.iter().filter_map(|(_, rows)| Some(best(rows)?.0)).collect();
    let changes = fastest.windows(2).filter(|pair| named(pair[0]) != named(pair[1]));
    let lines = changes.map(|pair| {
        let [before, after] = [pair[0], pair[1]];
        // Only values in which the two rows differ are listed.
        let values = |row: &MeasurementRow, other: &MeasurementRow| {
            let all = row.prediction.values.iter();
            let varied = all.filter(|(name, value)| other.prediction.values.get(*name) != Some(value));
            varied.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        };
        format!(
            "between {} and {}, the fastest mode changes from {} to {}\n",
            values(before, after),
            values(after, before),
            named(before),
            named(after)
        )
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_share_cores_are_reported() {
        assert_eq!(shared(2, 2), None);
        let line = "4 ranks share 2 cores: measured times include waiting for a core";
        assert_eq!(shared(4, 2).as_deref(), Some(line));
    }
}
