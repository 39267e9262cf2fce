//! `fencepost predict`: predicts the times of plans without running them.

use crate::plans::{DIFFERS, Subject, open};
use crate::progress::Progress;
use crate::{fail, print, usage};
use clap::{Args, ValueEnum, ValueHint};
use comfy_table::{CellAlignment, Table, presets};
use fencepost_planner::ir::pattern::Mode;
use fencepost_planner::ir::schedule::Placement;
use fencepost_planner::machine::Machine;
use fencepost_planner::plan::RANKS_MAX;
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::Recipe;
use fencepost_tool::documents::{Content, PredictionDocument};
use fencepost_tool::files::machine;
use fencepost_tool::plans::Compilation;
use fencepost_tool::predict::{Named, Question, table};
use fencepost_tool::recipes::{Recipes, is_plain, superstep};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// The options of `fencepost predict`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Predict {
    /// Predict the plan that is registered under this name, instead of the recipes in --folder
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Only this recipe
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    recipe: Option<String>,
    /// The folder with plans.toml
    #[arg(long, value_name = "FOLDER", default_value = "plans", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Numbers of ranks: a list such as 4,64, or FROM..TO for FROM, twice FROM, and so on up to TO
    #[arg(short = 'n', long, value_name = "RANKS")]
    ranks: Option<String>,
    /// Values that the plan reads: NAME=VALUE;VALUE, or NAME=FROM..TO, doubling from FROM to TO
    #[arg(long, visible_alias = "sweep", value_name = "NAME=VALUES")]
    set: Vec<String>,
    /// The placements, comma-separated: together, apart, or a number of ranks on each host
    #[arg(long, value_name = "PLACEMENTS", value_delimiter = ',', value_parser = parsed::<Placement>)]
    placement: Vec<Placement>,
    /// Files of machine models, comma-separated; the word default names the built-in model
    #[arg(long, value_name = "FILES", value_delimiter = ',', value_hint = ValueHint::FilePath)]
    machine: Vec<PathBuf>,
    /// The modes, comma-separated: auto, aggressive, aggregated, pipelined or direct
    #[arg(long, value_name = "MODES", value_delimiter = ',', value_parser = parsed::<Mode>)]
    mode: Vec<Mode>,
    /// The format of the output
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,
    /// Print JSON; short for --format json
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    subject: Subject,
}

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people
    Text,
    /// Comma-separated values
    Csv,
    /// JSON
    Json,
}

const AFTER: &str = "\
The times are those of one run of the superstep, of the slowest rank: prepared, and at a fence that is not prepared, \
where the ranks first find out who has something for whom. No schedule of the same messages takes less than `at least`.

Exit codes:
  0    everything was predicted
  1    a part was predicted
  2    nothing was predicted: the command line, plans.toml, a name or the program is not valid

Examples:
  fencepost predict exchange-64.plan --mode auto,aggregated,direct --placement together,16,apart
  fencepost predict --plan exchange -n 4..4096 --set cells=1024 ./heat
  fencepost predict --machine here.txt,cluster.txt --format csv ./heat >times.csv";

/// Parses a setting. An error is returned as its message, without its class.
fn parsed<T: FromStr<Err = fencepost_planner::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: fencepost_planner::Error| error.message().to_owned())
}

/// The maximum number of values of a range FROM..TO, not counting TO.
const NUMBERS_MAX: usize = 64;

impl Predict {
    /// Prints the table.
    pub fn run(&self) -> ExitCode {
        let (document, failed) = match self.predicted() {
            Ok(both) => both,
            Err(why) => return usage(&why),
        };
        if document.rows.is_empty() {
            return failed.iter().fold(ExitCode::from(fencepost_job::USAGE), |_, why| usage(why));
        }
        let format = if self.json { Format::Json } else { self.format };
        let text = match format {
            Format::Json => Ok(Content::Prediction(document).to_json()),
            Format::Csv => csv(&document),
            Format::Text => Ok(text(&document)),
        };
        let printed = match text {
            Ok(text) => print(text.as_bytes()),
            Err(why) => usage(&why),
        };
        failed.iter().fold(printed, |_, why| fail(DIFFERS, why))
    }

    /// Returns the table, and a message for each plan that could not be predicted.
    fn predicted(&self) -> Result<(PredictionDocument, Vec<String>), String> {
        let question = self.question()?;
        let _progress = Progress::of("predicting");
        let plans: Vec<Result<Compiled, String>> = if let Some(plan) = self.subject.plan() {
            if !question.ranks.is_empty() || !question.values.is_empty() || self.plan.is_some() {
                return Err(format!(
                    "{}: the ranks and values of a plan are fixed: give its program instead, or omit --ranks, --set and --plan",
                    plan.display()
                ));
            }
            vec![Ok(open(plan)?)]
        } else {
            let has_program = self.subject.program()?.is_some();
            let recipes = question.recipes(&self.recipes(&question, has_program)?);
            let all = self.subject.compile(&recipes)?;
            let named = |(recipe, made): (&Recipe, Compilation)| match made {
                Ok(made) => Ok(made.plan),
                Err(why) => Err(format!("{}: {why}", described(recipe))),
            };
            recipes.iter().zip(all).map(named).collect()
        };
        let (mut rows, mut failed) = (Vec::new(), Vec::new());
        for plan in plans {
            match plan.and_then(|plan| question.rows(&plan)) {
                Ok(more) => rows.extend(more),
                Err(why) => failed.push(why),
            }
        }
        Ok((PredictionDocument { rows }, failed))
    }

    /// Returns the recipes of the question, before ranks and values are varied.
    fn recipes(&self, question: &Question, has_program: bool) -> Result<Vec<Recipe>, String> {
        if let Some(plan) = &self.plan {
            if question.ranks.is_empty() {
                return Err("--plan needs the numbers of ranks: add --ranks, such as -n 64".into());
            }
            if !has_program && let Some(recipe) = self.stencil_named(plan) {
                return Err(format!(
                    "{plan} is compiled by a program: add its path; or did you mean --recipe {recipe}?"
                ));
            }
            return Ok(vec![Recipe { name: plan.clone(), plan: plan.clone(), ..Recipe::default() }]);
        }
        let mut recipes = Recipes::read(&self.folder)
            .map_err(|why| format!("{why}; or name a plan that the program registers, with --plan"))?
            .all;
        if let Some(name) = &self.recipe {
            let names: Vec<String> = recipes.iter().map(|recipe| recipe.name.clone()).collect();
            recipes.retain(|recipe| recipe.name == *name);
            if recipes.is_empty() {
                return Err(format!("there is no recipe {name}: give one of {}", names.join(", ")));
            }
        }
        Ok(recipes)
    }

    /// Looks in the folder for a stencil's recipe with the name or the superstep `plan`. Returns
    /// the name of the recipe.
    fn stencil_named(&self, plan: &str) -> Option<String> {
        let all = Recipes::read(&self.folder).ok()?.all;
        let mut names = all.into_iter().filter(|recipe| recipe.is_stencil).map(|recipe| recipe.name);
        names.find(|name| name == plan || superstep(name) == plan)
    }

    fn question(&self) -> Result<Question, String> {
        let ranks = match &self.ranks {
            None => Vec::new(),
            Some(text) => numbers(text)?
                .iter()
                .map(|number| {
                    number.parse().ok().map(NonZeroUsize::get).filter(|ranks| *ranks <= RANKS_MAX as usize)
                })
                .collect::<Option<_>>()
                .ok_or_else(|| {
                    format!("--ranks {text}: give numbers from 1 to {RANKS_MAX}, such as 4,64 or 4..4096")
                })?,
        };
        let named = |path: &PathBuf| {
            let name = path.display().to_string();
            if name == "default" {
                return Ok(Named { name, machine: Machine::default() });
            }
            let machine = machine(path)?;
            Ok(Named { name, machine })
        };
        Ok(Question {
            ranks,
            values: self.set.iter().map(|text| value(text)).collect::<Result<_, _>>()?,
            placements: self.placement.clone(),
            machines: self.machine.iter().map(named).collect::<Result<_, String>>()?,
            modes: self.mode.clone(),
        })
    }
}

/// Returns the name of a recipe with its number of ranks and its values.
fn described(recipe: &Recipe) -> String {
    let values = recipe.values.iter().map(|(name, value)| format!(", {name} {value}"));
    format!("{} on {} ranks{}", recipe.name, recipe.ranks, values.collect::<String>())
}

/// Parses a name and its values.
pub fn value(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, values) = text
        .split_once('=')
        .filter(|(name, values)| is_plain(name) && !values.chars().any(char::is_control))
        .ok_or_else(|| format!("--set {text}: give a name and a value, such as cells=512"))?;
    let all = match values.split_once("..") {
        Some(_) => numbers(values)?,
        None => values.split(';').map(|value| without_brackets(value.trim()).to_owned()).collect(),
    };
    Ok((name.into(), all))
}

/// Returns a value without the brackets that a list has in plans.toml.
fn without_brackets(value: &str) -> &str {
    value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value)
}

/// Returns the numbers of a list, or of a range `first..last`. In a range, each number is twice the
/// previous one, and the final number is `last`.
fn numbers(text: &str) -> Result<Vec<String>, String> {
    let Some((first, last)) = text.split_once("..") else {
        return Ok(text.split(',').map(|number| number.trim().to_owned()).collect());
    };
    let wrong = || format!("{text}: give a range of numbers from 1 up, such as 16..4096");
    let (first, last): (u64, u64) =
        (first.trim().parse().map_err(|_| wrong())?, last.trim().parse().map_err(|_| wrong())?);
    if first == 0 || last < first {
        return Err(wrong());
    }
    let doubled = std::iter::successors(Some(first), |number| number.checked_mul(2));
    let mut all: Vec<u64> = doubled.take_while(|&number| number < last).take(NUMBERS_MAX).collect();
    all.push(last);
    Ok(all.iter().map(u64::to_string).collect())
}

fn text(document: &PredictionDocument) -> String {
    let (head, rows) = table(document);
    aligned(&head, rows, &["plan", "placement", "machine", "mode"])
}

/// Returns a table in which all columns are aligned to the right, except these.
pub fn aligned(head: &[String], rows: Vec<Vec<String>>, left: &[&str]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head).add_rows(rows);
    for (column, name) in table.column_iter_mut().zip(head) {
        if !left.contains(&name.as_str()) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn csv(document: &PredictionDocument) -> Result<String, String> {
    let (head, rows) = table(document);
    let mut to = csv::Writer::from_writer(Vec::new());
    let wrong = |error: csv::Error| error.to_string();
    to.write_record(&head).map_err(wrong)?;
    for row in &rows {
        to.write_record(row).map_err(wrong)?;
    }
    let bytes = to.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_or_ranges_that_double() {
        let of = |text| value(text).map(|(name, values)| (name, values.join("|")));
        let cases = [
            ("cells=512", "512"),
            ("cells=512, 256", "512, 256"),
            ("cells=16; 32", "16|32"),
            ("cells=16..100", "16|32|64|100"),
            ("cells=4..4", "4"),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), Ok(("cells".to_owned(), expected.to_owned())), "{text}");
        }
        for text in ["cells", "=4", "cells=0..4", "cells=8..4", "cells=a..b"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
