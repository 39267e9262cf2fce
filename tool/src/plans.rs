//! [`check`] checks whether the plans of a folder are those that the program compiles now. It is
//! built on [`compare()`] and [`write()`].

use crate::difference::first_difference;
use crate::files;
use crate::recipes::Recipes;
use crate::same::{is_same, pairs};
use crate::show::{Part, Shown};
use crate::source;
use crate::stencil;
use fencepost_planner::explain::{Sent, cost, number_of};
use fencepost_planner::ir::pattern::Pattern;
use fencepost_planner::ir::schedule::Schedule;
use fencepost_planner::plan::{self, Plan};
use fencepost_runtime::Compiled;
use fencepost_runtime::recipe::Recipe;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Checks, in a test, that the plans of `folder` are those that this program compiles. With
/// `FENCEPOST_BLESS=1` in the environment it writes the plans instead.
///
/// ```no_run
/// #[test]
/// fn the_committed_plans_are_those_of_the_program() {
///     fencepost_tool::plans::check("plans");
/// }
/// ```
///
/// The folder has a file `plans.toml` with a [recipe](Recipes) for each plan. The program registers
/// the plans with `plan!`; a stencil needs no program. If a library registers them, the test must
/// use an item of that library: otherwise the library is not linked, and the test finds no plans.
///
/// A plan whose calls have only moved to other lines is up to date.
///
/// # Panics
/// If `plans.toml` cannot be read, a plan does not compile, or a file of the folder is missing,
/// stale, or not made by any recipe. The message has every [finding](Finding), with the call and
/// its source.
#[track_caller]
pub fn check(folder: impl AsRef<Path>) {
    // A panic in a closure would be reported at a line of this file.
    let recipes = match Recipes::read(folder) {
        Ok(recipes) => recipes,
        Err(why) => panic!("{why}"),
    };
    let compiled: Vec<Compilation> = recipes.all.iter().map(here).collect();
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        if let Err(why) = write(&recipes, &compiled) {
            panic!("{why}");
        }
        return;
    }
    let findings = compare(&recipes, &compiled);
    let advice = if compiled.iter().all(Result::is_ok) {
        "\nif this is intended, FENCEPOST_BLESS=1 cargo test writes the plans; read the difference, and commit it"
    } else {
        ""
    };
    assert!(findings.iter().all(Finding::is_harmless), "{}{advice}", Report(&findings));
}

/// The result of compiling a recipe: the plan, or the reason why there is no plan.
pub type Compilation = Result<Made, String>;

/// A compiled plan, and its file as written by the program that compiled the plan.
#[derive(Clone, Debug)]
pub struct Made {
    /// The plan.
    pub plan: Compiled,
    /// The bytes of its file.
    pub file: Vec<u8>,
}

/// Compiles a recipe in this program. The program must register the plan, unless the recipe is a
/// stencil.
pub fn here(recipe: &Recipe) -> Compilation {
    let plan = if recipe.is_stencil { stencil::compile(recipe) } else { recipe.compile() };
    let made = plan.and_then(|plan| Ok(Made { file: plan.to_bytes()?, plan }));
    made.map_err(|error| error.to_string())
}

/// One result of the comparison of a folder with its program.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The name of the recipe, or of a file that no recipe makes.
    pub name: String,
    /// The kind of the finding.
    pub kind: FindingKind,
    /// The text to print: one line, or several lines with the source.
    pub text: String,
}

/// The kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindingKind {
    /// The plan was not compiled.
    NotCompiled,
    /// There is no file of the plan.
    Missing,
    /// The file of the plan cannot be read.
    Unreadable,
    /// The calls, the superstep, the ranks, the epochs or the windows differ.
    Pattern,
    /// The calls are the same, but the schedule differs.
    Schedule,
    /// Calls and schedule are the same, but the plan was made for another machine or with other
    /// options.
    MadeFor,
    /// The text file of the plan is missing, or has another text.
    Text,
    /// No recipe makes this file.
    Stray,
    /// Only the lines of calls have moved. The plan is up to date.
    Moved,
}

impl Finding {
    /// Returns whether the plan is up to date despite this finding.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        self.kind == FindingKind::Moved
    }
}

/// A printable list of findings, followed by the number of findings that are not harmless.
#[derive(Clone, Copy, Debug)]
pub struct Report<'f>(pub &'f [Finding]);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut failed, mut stale) = (Vec::new(), Vec::new());
        for finding in self.0 {
            writeln!(f, "{}", finding.text.trim_end())?;
            if finding.kind == FindingKind::NotCompiled {
                failed.push(finding.name.as_str());
            } else if !finding.is_harmless() {
                stale.push(finding.name.as_str());
            }
        }
        let mut lines = Vec::new();
        for (names, one, several) in [
            (&mut failed, "plan was not compiled", "plans were not compiled"),
            (&mut stale, "plan is not up to date", "plans are not up to date"),
        ] {
            names.dedup();
            if !names.is_empty() {
                let what = if names.len() == 1 { one } else { several };
                lines.push(format!("{} {what}: {}", names.len(), names.join(", ")));
            }
        }
        f.write_str(&lines.join("\n"))
    }
}

/// Writes the plans and their texts, and removes plans and texts that no recipe makes. Returns the
/// paths of the files that are new, changed or removed.
///
/// # Errors
/// If a plan does not compile: the error names the first such plan, and nothing is written. If a
/// file cannot be written or removed: the error names the file, and files that were written before
/// stay.
pub fn write(recipes: &Recipes, compiled: &[Compilation]) -> Result<Vec<PathBuf>, String> {
    let all: Vec<&Made> = recipes
        .all
        .iter()
        .zip(compiled)
        .map(|(recipe, one)| one.as_ref().map_err(|why| not_compiled(recipes, recipe, why)))
        .collect::<Result<_, _>>()?;
    let mut changed = Vec::new();
    for (recipe, Made { plan, file }) in recipes.all.iter().zip(all) {
        let text = text_of(plan);
        for (path, bytes) in [(recipes.plan(recipe), &file[..]), (recipes.text(recipe), text.as_bytes())] {
            if std::fs::read(&path).ok().as_deref() != Some(bytes) {
                files::write(&path, bytes)?;
                changed.push(path);
            }
        }
    }
    for path in strays(recipes) {
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        changed.push(path);
    }
    Ok(changed)
}

/// Compares the plans of a folder with the compiled plans, in the order of the recipes.
#[must_use]
pub fn compare(recipes: &Recipes, compiled: &[Compilation]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (recipe, compiled) in recipes.all.iter().zip(compiled) {
        let found = |(kind, text)| Finding { name: recipe.name.clone(), kind, text };
        match compiled {
            Err(why) => findings.push(found((FindingKind::NotCompiled, not_compiled(recipes, recipe, why)))),
            Ok(now) => findings.extend(compare_one(recipes, recipe, &now.plan).map(found)),
        }
    }
    findings.extend(strays(recipes).into_iter().map(|path| Finding {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        kind: FindingKind::Stray,
        text: format!("{}: no recipe makes this file; remove it, or add its recipe", path.display()),
    }));
    findings
}

fn not_compiled(recipes: &Recipes, recipe: &Recipe, why: &str) -> String {
    let what = if recipe.is_stencil { "stencil".into() } else { format!("plan `{}`", recipe.plan) };
    format!("{}: {}: the {what} was not compiled: {why}", recipes.place(recipe), recipe.name)
}

/// Returns a source file that contains calls of these plans and is newer than `program`, if there
/// is one. The plans may then belong to an earlier version of this file.
#[must_use]
pub fn newer_source(program: &Path, compiled: &[Compilation]) -> Option<PathBuf> {
    let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    let built = modified(program)?;
    let plans = compiled.iter().flatten().flat_map(|made| made.plan.schedules());
    let programs = plans.flat_map(|schedule| schedule.classes.values());
    let calls = programs.flat_map(|program| program.pattern.operations.values());
    let files: BTreeSet<&str> = calls.map(|call| &*call.site.file).collect();
    let mut sources = files.into_iter().filter_map(|file| source::find(Path::new(file)));
    sources.find(|source| modified(source) > Some(built))
}

/// Returns the text of a plan for reviewers.
fn text_of(compiled: &Compiled) -> String {
    Shown { compiled, part: &Part::default(), has_lines: false }.to_string()
}

/// Returns the plans that recipes made earlier and no recipe makes now, with their texts. Leaves
/// out plans that a program has saved in the folder, and files that are not plans.
fn strays(recipes: &Recipes) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(&recipes.folder) else { return Vec::new() };
    let is_made = |path: &PathBuf| recipes.all.iter().any(|recipe| *path == recipes.plan(recipe));
    let is_of_recipe = |path: &PathBuf| {
        let plans = plan::load_all(path).unwrap_or_default();
        plans.first().and_then(|plan| plan.made_for.as_ref()).is_some_and(|made| !made.recipe.is_empty())
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let plans = paths.filter(|path| path.extension().is_some_and(|extension| extension == "plan"));
    let mut strays = Vec::new();
    for path in plans.filter(|path| !is_made(path) && is_of_recipe(path)) {
        let text = path.with_extension("txt");
        if text.is_file() {
            strays.push(text);
        }
        strays.push(path);
    }
    strays.sort();
    strays
}

fn compare_one(recipes: &Recipes, recipe: &Recipe, now: &Compiled) -> Option<(FindingKind, String)> {
    let path = recipes.plan(recipe);
    if !path.exists() {
        return Some((
            FindingKind::Missing,
            format!("{}: the plan has not been written yet", path.display()),
        ));
    }
    let before = match plan::load_all(&path) {
        Ok(plans) => plans,
        Err(error) => return Some((FindingKind::Unreadable, error.message().to_owned())),
    };
    let shown = path.display().to_string();
    let differs = |what: String| Some((FindingKind::Pattern, format!("{shown}: {what}")));
    let (name, ranks) = (&before[0].schedule.name, before[0].schedule.class_of.len());
    if (name.as_str(), ranks) != (now.name(), now.ranks()) {
        let what = format!(
            "the file has a plan of {name} on {}, but the recipe now makes one of {} on {}",
            number_of(ranks as u64, "rank"),
            now.name(),
            number_of(now.ranks() as u64, "rank")
        );
        return differs(what);
    }
    if before.len() != now.schedules().len() {
        let what = format!(
            "it has {}, and the superstep now has {}",
            number_of(before.len() as u64, "epoch"),
            number_of(now.schedules().len() as u64, "epoch")
        );
        return differs(what);
    }
    let epochs = || before.iter().map(|plan| &plan.schedule).zip(now.schedules().iter().map(|one| one.get()));
    for (epoch, (old, new)) in epochs().enumerate() {
        if let Some(text) = patterns_differ(&shown, (old, new), epoch, before.len() > 1) {
            return Some((FindingKind::Pattern, text));
        }
    }
    if !epochs().all(|(old, new)| is_same(old, new)) {
        return Some((FindingKind::Schedule, schedules_differ(&shown, &before, now)));
    }
    if before.iter().any(|plan| plan.made_for.as_ref() != Some(now.made_for())) {
        let text = format!(
            "{shown}: calls and schedule are the same, but the plan was made for something else: {}",
            made_for_differs(&before[0], now)
        );
        return Some((FindingKind::MadeFor, text));
    }
    let file = recipes.text(recipe);
    if !file.exists() {
        return Some((FindingKind::Text, format!("{}: this text of its plan is missing", file.display())));
    }
    if std::fs::read_to_string(&file).ok().as_deref() != Some(&text_of(now)) {
        return Some((FindingKind::Text, format!("{}: this text does not match its plan", file.display())));
    }
    (!epochs().all(|(old, new)| old == new)).then(|| (FindingKind::Moved, moved(&shown, epochs())))
}

/// Returns the old and the new pattern of each rank. Each pair is returned once, with its first
/// rank.
fn patterns<'s>(old: &'s Schedule, new: &'s Schedule) -> Vec<(usize, &'s Pattern, &'s Pattern)> {
    let of = |(rank, (before, now))| (rank, &old.classes[before].pattern, &new.classes[now].pattern);
    pairs(old, new).into_iter().map(of).collect()
}

fn patterns_differ(
    path: &str,
    (old, new): (&Schedule, &Schedule),
    epoch: usize,
    has_several: bool,
) -> Option<String> {
    let in_epoch = if has_several { format!(" in epoch {epoch}") } else { String::new() };
    for (rank, before, now) in patterns(old, new) {
        if let Some(difference) = plan::difference(now, before) {
            let title = format!("{path}: the calls of rank {rank}{in_epoch} are not those of the plan");
            return Some(first_difference(&title, &difference));
        }
    }
    let head = |schedule: &Schedule| (schedule.windows.clone(), schedule.order, schedule.sync);
    (head(old) != head(new)).then(|| {
        format!(
            "{path}: the element types of the windows, the order of the operations, or the synchronisation differ{in_epoch}"
        )
    })
}

/// Describes two schedules of the same calls.
fn schedules_differ(path: &str, before: &[Plan], now: &Compiled) -> String {
    let machine = &now.made_for().machine;
    let describe = |schedules: &mut dyn Iterator<Item = &Schedule>| {
        let (mut sent, mut time) = (Sent::default(), 0.0);
        for schedule in schedules {
            let more = Sent::by_all(schedule);
            sent.messages += more.messages;
            sent.bytes.0 += more.bytes.0;
            time += cost(schedule, machine).predicted.0;
        }
        format!(
            "{}, {} bytes, predicted {:.2} us",
            number_of(sent.messages, "message"),
            sent.bytes.0,
            time / 1e3
        )
    };
    let old = describe(&mut before.iter().map(|plan| &plan.schedule));
    let new = describe(&mut now.schedules().iter().map(|schedule| schedule.get()));
    let (made_by, made_for) = (&before[0].made_by, made_for_differs(&before[0], now));
    format!(
        "{path}: the calls are the same, but the schedule differs\n  in the file, by {made_by}: {old}\n  now: {new}\n  {made_for}"
    )
}

/// Describes how the machine and the options of the file differ from those of the new plan.
fn made_for_differs(before: &Plan, now: &Compiled) -> String {
    let Some(old) = &before.made_for else { return "the file does not record what it was made for".into() };
    let new = now.made_for();
    // The parts below do not show all options.
    let same = if old == new {
        "both were made for the same machine and options"
    } else {
        "an option that this message does not show has changed"
    };
    let mut parts = Vec::new();
    let mut part = |what: &str, old: String, new: String| {
        if old != new {
            parts.push(format!("{what} was {old}, and is {new}"));
        }
    };
    let cap = |cap: Option<fencepost_planner::units::Bytes>| cap.map_or("none".into(), |cap| cap.to_string());
    let values = |values: &[(String, String)]| {
        let all: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if all.is_empty() { "none".into() } else { all.join("; ") }
    };
    part("the placement", before.schedule.placement.to_string(), now.placement().to_string());
    part("the mode", old.options.mode.to_string(), new.options.mode.to_string());
    part("the cap", cap(old.options.cap), cap(new.options.cap));
    let recipe = |name: &str| if name.is_empty() { "none".into() } else { name.to_owned() };
    part("the recipe", recipe(&old.recipe), recipe(&new.recipe));
    part("the values", values(&old.values), values(&new.values));
    let (old, new) = (old.machine.to_string(), new.machine.to_string());
    for (old, new) in old.lines().zip(new.lines()) {
        part("the machine", old.into(), new.into());
    }
    if parts.is_empty() { same.into() } else { parts.join("; ") }
}

/// Lists the calls that have moved, with their lines.
fn moved<'s>(path: &str, epochs: impl Iterator<Item = (&'s Schedule, &'s Schedule)>) -> String {
    let mut all = Vec::new();
    for (old, new) in epochs {
        for (_, before, now) in patterns(old, new) {
            for (before, now) in before.operations.values().zip(now.operations.values()) {
                if before.site != now.site {
                    all.push(format!("{} is now {}", before.site, source::short(&now.site, &before.site)));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    let rest = all.split_off(all.len().min(4));
    let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
    format!("{path}: up to date; lines have moved: {}{more}", all.join(", "))
}
