//! `fencepost plan`, `show`, `explain`, `verify` and `diff`: the commands for files of plans.

use crate::cargo::Target;
use crate::progress::Progress;
use crate::run::executable;
use crate::{fail, print, usage};
use clap::{Args, ValueHint};
use fencepost_planner::ErrorClass;
use fencepost_planner::explain::number_of;
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::Recipe;
use fencepost_tool::difference::Comparison;
use fencepost_tool::documents::{
    CheckDocument, Content, DifferenceDocument, PlanDocument, VerificationDocument, VerificationRow,
    WrittenDocument,
};
use fencepost_tool::plans::{Compilation, Finding, Report};
use fencepost_tool::recipes::Recipes;
use fencepost_tool::show::{Part, Shown};
use fencepost_tool::{plans, programs, show};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The exit code if a check fails, or if plans differ.
pub const DIFFERS: u8 = 1;

/// The part of a plan that is shown.
#[derive(Args)]
struct Wanted {
    /// One rank, instead of the first rank of each class of ranks that do the same
    #[arg(long, value_name = "RANK")]
    rank: Option<u32>,
    /// One class
    #[arg(long, value_name = "CLASS")]
    class: Option<u32>,
    /// The operations called on this line; the last part of the path is enough
    #[arg(long, value_name = "FILE:LINE", value_parser = line)]
    line: Option<(String, u32)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Wanted {
    fn part(&self) -> Part {
        Part { rank: self.rank, class: self.class, line: self.line.clone() }
    }
}

fn line(text: &str) -> Result<(String, u32), String> {
    let parsed = text.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    parsed
        .filter(|(file, _)| !file.is_empty())
        .ok_or_else(|| "give a file and a line, such as main.rs:12".into())
}

/// The file of a plan, and the part of the plan that is shown.
#[derive(Args)]
pub struct Show {
    /// The file of the plan
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,
    #[command(flatten)]
    wanted: Wanted,
}

impl Show {
    /// Prints what the plan does.
    pub fn show(&self) -> ExitCode {
        self.print(|compiled, part| Shown { compiled, part, has_lines: true }.to_string())
    }

    /// Prints why each operation has its mode and its rounds, and the costs.
    pub fn explain(&self) -> ExitCode {
        self.print(show::explained)
    }

    fn print(&self, text: impl Fn(&Compiled, &Part) -> String) -> ExitCode {
        let (part, json) = (self.wanted.part(), self.wanted.json);
        let compiled = match open(&self.plan) {
            Ok(compiled) => compiled,
            Err(why) => return usage(&why),
        };
        if let Err(why) = part.within(&compiled) {
            return usage(&why);
        }
        let text = if json {
            Content::Plan(PlanDocument::new(&compiled, &part)).to_json()
        } else {
            text(&compiled, &part)
        };
        print(text.as_bytes())
    }
}

/// Opens the file of a plan.
pub fn open(path: &Path) -> Result<Compiled, String> {
    Compiled::open(path).map_err(|error| error.message().to_owned())
}

/// The subject of a command: the file of a plan, or recipes with the program that compiles them.
#[derive(Args)]
pub struct Subject {
    /// How long the program may take until it enters a world, or off for no limit
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = fencepost_job::duration)]
    limit: Duration,
    /// The file of a plan, which ends in .plan, or a program. Recipes for stencils need neither
    #[arg(value_name = "PLAN or PROGRAM", value_hint = ValueHint::FilePath)]
    subject: Option<OsString>,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

impl Subject {
    /// Returns the path of the plan, if there is one.
    pub fn plan(&self) -> Option<&Path> {
        let path = self.subject.as_ref().map(Path::new);
        path.filter(|path| path.extension().is_some_and(|extension| extension == "plan"))
    }

    /// Returns the path of the program, if one is given.
    ///
    /// # Errors
    /// If a program is given that does not exist. This is an error even if no recipe needs the
    /// program.
    pub fn program(&self) -> Result<Option<PathBuf>, String> {
        let program = self.subject.as_ref().filter(|_| self.plan().is_none());
        program.map(|program| executable(Path::new(program))).transpose()
    }

    /// Compiles these recipes. If one of the recipes is not for a stencil, the program is started
    /// once.
    pub fn compile(&self, recipes: &[Recipe]) -> Result<Vec<Compilation>, String> {
        let given = self.program()?;
        let program = || {
            given.ok_or_else(|| {
                let of_program = recipes.iter().find(|recipe| !recipe.is_stencil);
                let name = of_program.map_or("", |recipe| &recipe.name);
                format!(
                    "{name} is compiled by a program: add its path, or choose a recipe for a stencil with --recipe"
                )
            })
        };
        programs::compile(program, &self.arguments, self.limit, recipes)
    }
}

/// Files of plans to verify.
#[derive(Args)]
pub struct Verify {
    /// The files
    #[arg(value_name = "PLAN", required = true, value_hint = ValueHint::FilePath)]
    plans: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Verifies each plan, and prints a line for it.
    pub fn run(&self) -> ExitCode {
        let progress = Progress::of("verifying");
        let mut document = VerificationDocument { plans: Vec::new() };
        let mut failures = Vec::new();
        for path in &self.plans {
            let file = path.display().to_string();
            let row = match Compiled::open(path) {
                Ok(plan) => VerificationRow::of(file, &plan),
                Err(error) => {
                    // If the path is a folder or does not exist, the command line is wrong.
                    let is_wrong = error.class() == ErrorClass::Io || path.is_dir();
                    let code = if is_wrong { fencepost_job::USAGE } else { DIFFERS };
                    let why = if path.is_dir() {
                        format!("{file} is a folder: give the plans in it, such as {file}/*.plan")
                    } else {
                        error.message().to_owned()
                    };
                    failures.push((code, why.clone()));
                    VerificationRow::refused(file, &why)
                }
            };
            document.plans.push(row);
        }
        drop(progress);
        let lines = document.plans.iter().filter_map(VerificationRow::line);
        let text = lines.map(|line| line + "\n").collect();
        let text = if self.json { Content::Verification(document).to_json() } else { text };
        let printed = print(text.as_bytes());
        failures.sort();
        failures.iter().fold(printed, |_, (code, why)| fail(*code, why))
    }
}

/// Two files of plans.
#[derive(Args)]
pub struct Diff {
    /// The file of the first plan
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The file of the second plan
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    #[command(flatten)]
    wanted: Wanted,
}

impl Diff {
    /// Prints the differences between the plans.
    pub fn run(&self) -> ExitCode {
        let both = open(&self.old).and_then(|old| Ok((old, open(&self.new)?)));
        let (old, new) = match both {
            Ok(both) => both,
            Err(why) => return usage(&why),
        };
        let (part, json) = (self.wanted.part(), self.wanted.json);
        // The rank must be in both plans, the class in the second plan, and the line in one of
        // them.
        let rank = Part { rank: part.rank, ..Part::default() };
        let class = Part { class: part.class, ..rank.clone() };
        let line = Part { line: part.line.clone(), ..Part::default() };
        let is_there = rank.within(&old).and(class.within(&new));
        if let Err(why) = is_there.and(line.within(&new).or(line.within(&old))) {
            return usage(&why);
        }
        let comparison = Comparison::of_part(&old, &new, &part);
        let printed = if json {
            print(Content::Difference(DifferenceDocument::new(&comparison)).to_json().as_bytes())
        } else {
            print(comparison.to_string().as_bytes())
        };
        if comparison.is_empty() { printed } else { ExitCode::from(DIFFERS) }
    }
}

/// The options of `fencepost plan`.
#[derive(Args)]
#[command(after_help = AFTER)]
pub struct Plan {
    /// Check the plans, and write nothing: exit code 1 if a plan differs from the one that the
    /// program compiles now. A program that is given by its path is not built again
    #[arg(long)]
    check: bool,
    /// The folder of plans.toml and of the plans
    #[arg(long, value_name = "FOLDER", default_value = "plans", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// How long the program may take until it enters a world, or off for no limit
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = fencepost_job::duration)]
    limit: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
    /// The program [default: that of the package in the current folder, built by cargo]. With --bin
    /// or --example, this is the program's first argument. Stencils need no program
    #[arg(value_name = "PROGRAM", value_hint = ValueHint::CommandName)]
    program: Option<OsString>,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

const AFTER: &str = "\
The program registers each plan with `fencepost::plan!`. In plans.toml, each table is a recipe for one plan. The program \
is started once; instead of entering its first world, it compiles the plans and ends. A recipe for a stencil needs no program.

A recipe:
  [exchange-64]
  plan = \"exchange\"           the name that the program registers
  ranks = 64
  placement = \"together\"      or \"apart\", or a number of ranks on each host
  machine = \"cluster.txt\"     a machine model, relative to the folder
  mode = \"auto\"               the mode of all operations
  cap = 65536                 the largest staging memory of a rank, in bytes
  values.cells = [512, 512]   values that the plan reads with `ask.value`

Only plan and ranks are required. The recipe makes exchange-64.plan, and exchange-64.txt for reviews.

A recipe for the halo exchange of a stencil:
  [exchange-64]
  ranks = 64
  stencil = { cells = [512, 512], halo = 1, star = false, periodic = [true, false], grid = [8, 8], element = \"f64\" }

Only cells are required. The plan is that of a superstep `exchange` in which each block puts its inner edges into the \
halos of its neighbours; a program with this superstep can load it. A star has no corners.

Examples:
  cargo fencepost plan --check            the plans of the package in this folder
  fencepost plan target/release/heat2d    those of a program as it was built, even if its source has changed since
  cargo fencepost plan --example heat2d -- --size 512    those of an example, with an argument

Exit codes:
  0    the plans are written, or up to date
  1    a plan is not up to date
  2    the command line, plans.toml or the program is not valid, or a plan is not compiled";

impl Plan {
    /// Writes the plans, or checks them.
    pub fn run(&self) -> ExitCode {
        let (recipes, compiled) = match self.compiled() {
            Ok(both) => both,
            Err(why) => return usage(&why),
        };
        if !self.check {
            return match plans::write(&recipes, &compiled) {
                Err(why) => usage(&why),
                Ok(changed) if self.json => {
                    print(Content::Written(WrittenDocument::new(&changed)).to_json().as_bytes())
                }
                Ok(changed) => {
                    let lines = changed.iter().map(|path| {
                        let what = if path.exists() { "wrote" } else { "removed" };
                        format!("{what} {}\n", path.display())
                    });
                    let text: String = lines.collect();
                    print(if text.is_empty() { up_to_date(&recipes) } else { text }.as_bytes())
                }
            };
        }
        let findings = plans::compare(&recipes, &compiled);
        let is_up_to_date = findings.iter().all(Finding::is_harmless);
        let is_compiled = compiled.iter().all(Result::is_ok);
        let text = match (self.json, is_up_to_date) {
            (true, _) => Content::Check(CheckDocument::new(&findings)).to_json(),
            (false, true) => format!("{}{}", Report(&findings), up_to_date(&recipes)),
            (false, false) if !is_compiled => format!("{}\n", Report(&findings)),
            (false, false) => format!(
                "{}\nif this is intended, the same command without --check writes them; read the difference, and commit it\n",
                Report(&findings)
            ),
        };
        let printed = print(text.as_bytes());
        match (is_up_to_date, is_compiled) {
            (true, _) => printed,
            (false, true) => ExitCode::from(DIFFERS),
            (false, false) => ExitCode::from(fencepost_job::USAGE),
        }
    }

    /// Returns the recipes, and the result of compiling each of them.
    fn compiled(&self) -> Result<(Recipes, Vec<Compilation>), String> {
        let (path, first) = match &self.program {
            Some(program) if !self.target.is_named() => (Some(Path::new(program)), None),
            first => (None, first.clone()),
        };
        let given = path.map(executable).transpose()?;
        let recipes = Recipes::read(&self.folder)?;
        let arguments: Vec<OsString> = first.into_iter().chain(self.arguments.clone()).collect();
        let mut progress = None;
        let program = || {
            let program = given.clone().map_or_else(|| self.target.build(), Ok)?;
            progress = Some(Progress::of(format!("{} compiles plans", program.display())));
            Ok(program)
        };
        let compiled = programs::compile(program, &arguments, self.limit, &recipes.all)?;
        drop(progress);
        if let Some(program) = &given
            && let Some(source) = plans::newer_source(program, &compiled)
        {
            let (source, shown) = (source.display(), program.display());
            let warning = format!(
                "{source} is newer than {shown}, so the plans may be those of an older source: build the program \
                 again, or give no path, and cargo builds it"
            );
            fail(0, &warning);
        }
        Ok((recipes, compiled))
    }
}

/// Returns the line for a folder whose plans are all up to date.
fn up_to_date(recipes: &Recipes) -> String {
    let count = recipes.all.len();
    let all = if count == 1 { "" } else { "all " };
    format!("{}, {all}up to date\n", number_of(count as u64, "plan"))
}
