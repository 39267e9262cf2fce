//! Committed plans: they are written and checked, and changes of the program are reported.

use fencepost::Compiled;
use fencepost::prelude::*;
use fencepost_planner::ir::schedule::Schedule;
use fencepost_tool::plans::{Compilation, Finding, FindingKind, Report, compare, here, newer_source, write};
use fencepost_tool::recipes::Recipes;
use std::fs;
use std::path::Path;

/// Sends the next rank elements of a window.
#[superstep]
fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
    u.put(0..count).to(next, count..2 * count)
}

/// The same calls, in other lines.
mod moved {
    use super::*;

    #[superstep]
    pub fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
        u.put(0..count).to(next, count..2 * count)
    }
}

/// Other calls.
mod changed {
    use super::*;

    #[superstep]
    pub fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
        u.put(0..count).to(next, count + 1..2 * count + 1)
    }
}

/// The same call, and one more.
mod longer {
    use super::*;

    #[superstep]
    pub fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
        u.put(0..count).to(next, count..2 * count)?;
        u.put(0..1).to(next, 2 * count)
    }
}

/// The same calls, in two lines.
mod reworded {
    use super::*;

    #[superstep]
    pub fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
        let is_even = next.is_multiple_of(2);
        if is_even {
            u.put(0..count).to(next, count..2 * count)?;
        }
        if !is_even {
            u.put(0..count).to(next, count..2 * count)?;
        }
        Ok(())
    }
}

/// The superstep of the README.
#[superstep]
fn exchange<const D: usize>(u: &mut Window<f64>, block: &Block<D>) -> Result<()> {
    for n in block.neighbours() {
        u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
    }
    Ok(())
}

macro_rules! ring {
    ($plan:ident = $($path:tt)*) => {
        fencepost::plan!($plan = |ask| {
            let (ranks, count) = (ask.ranks(), ask.value("count", 4)?);
            $($path)*::compile(ranks, |rank| Ok(((rank + 1) % ranks, count)))
        });
    };
}
ring!(pass_on = pass_on);
ring!(pass_on_moved = moved::pass_on);
ring!(pass_on_reworded = reworded::pass_on);
ring!(pass_on_changed = changed::pass_on);
ring!(pass_on_longer = longer::pass_on);
fencepost::plan!(twice = |ask| pass_on::compile(ask.ranks(), |_| Ok((0, 1))));
fencepost::plan!(twice = |ask| pass_on::compile(ask.ranks(), |_| Ok((0, 2))));
fencepost::plan!(of_three = |_ask| pass_on::compile(3, |_| Ok((0, 1))));
fencepost::plan!(failing = |_ask| Err(Error::new(ErrorClass::Other, "there is no grid")));

/// The recipes that tests begin with.
const RECIPES: &str = "
[pass_on-4]
plan = 'pass_on'
ranks = 4

[pass_on-100172]
plan = 'pass_on'
ranks = 100172
placement = 16
values.count = 1000
";

fn folder(recipes: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plans.toml"), recipes).unwrap();
    folder
}

fn compiled(folder: &Path) -> (Recipes, Vec<Compilation>) {
    let recipes = Recipes::read(folder).unwrap();
    let all = recipes.all.iter().map(here).collect();
    (recipes, all)
}

fn findings(folder: &Path) -> Vec<Finding> {
    let (recipes, all) = compiled(folder);
    compare(&recipes, &all)
}

/// Writes the plans of `RECIPES`, and then checks them against the recipes with another plan.
fn against(plan: &str) -> Vec<Finding> {
    let folder = folder(RECIPES);
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    let other = RECIPES.replace("plan = 'pass_on'", &format!("plan = '{plan}'"));
    fs::write(folder.path().join("plans.toml"), other).unwrap();
    findings(folder.path())
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn plans_that_were_written_are_up_to_date() {
    let folder = folder(RECIPES);
    assert_eq!(kinds(&findings(folder.path())), [FindingKind::Missing; 2]);
    let (recipes, all) = compiled(folder.path());
    assert_eq!(write(&recipes, &all).unwrap().len(), 4);
    assert_eq!(findings(folder.path()), []);
    assert_eq!(write(&recipes, &all).unwrap().len(), 0);
    fencepost_tool::plans::check(folder.path());
    let text = fs::read_to_string(folder.path().join("pass_on-100172.txt")).unwrap();
    assert!(
        text.starts_with("pass_on: 100172 ranks, 16 ranks to a host\nrecipe: pass_on-100172\ncount: 1000\n"),
        "{text}"
    );
    assert!(!text.contains("plans.rs"), "{text}");
}

#[test]
fn a_plan_whose_lines_have_moved_is_up_to_date() {
    let findings = against("pass_on_moved");
    assert_eq!(kinds(&findings), [FindingKind::Moved; 2]);
    assert!(findings.iter().all(Finding::is_harmless));
    assert!(findings[0].text.contains("plans.rs:14 is now line 23"), "{}", findings[0].text);
}

#[test]
fn a_plan_whose_ranks_call_in_other_lines_than_each_other_is_up_to_date() {
    let findings = against("pass_on_reworded");
    assert_eq!(kinds(&findings), [FindingKind::Moved; 2], "{findings:?}");
}

#[test]
fn another_call_is_found_and_named_with_its_source() {
    for (plan, expected) in
        [("pass_on_changed", "its target datatype is"), ("pass_on_longer", "this call is not in the plan")]
    {
        let findings = against(plan);
        assert_eq!(kinds(&findings), [FindingKind::Pattern; 2]);
        let text = &findings[0].text;
        assert!(text.contains("u.put(0..") && text.contains(expected), "{text}");
        assert!(text.contains("tests/plans.rs:"), "{text}");
    }
}

#[test]
fn another_schedule_of_the_same_calls_is_found_with_what_it_costs() {
    let folder = folder(RECIPES);
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    let other = RECIPES.replace("ranks = 4", "ranks = 4\nmode = 'direct'");
    fs::write(folder.path().join("plans.toml"), other).unwrap();
    let findings = findings(folder.path());
    assert_eq!(kinds(&findings), [FindingKind::Schedule]);
    let text = &findings[0].text;
    assert!(text.contains("the mode was auto, and is direct") && text.contains("predicted"), "{text}");
}

#[test]
fn another_placement_is_found_even_where_the_instructions_are_the_same() {
    let alone = "[pass_on-1]\nplan = 'pass_on'\nranks = 1\nplacement = ";
    let folder = folder(&format!("{alone}'together'"));
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    fs::write(folder.path().join("plans.toml"), format!("{alone}'apart'")).unwrap();
    let found = findings(folder.path());
    assert_eq!(kinds(&found), [FindingKind::Schedule]);
    assert!(found[0].text.contains("the placement was together, and is apart"), "{}", found[0].text);
}

#[test]
fn a_recipe_that_asks_for_something_else_is_found() {
    let folder = folder(RECIPES);
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    let other = RECIPES.replace("ranks = 4", "ranks = 4\ncap = 1000000");
    fs::write(folder.path().join("plans.toml"), other).unwrap();
    let found = findings(folder.path());
    assert_eq!(kinds(&found), [FindingKind::MadeFor]);
    assert!(found[0].text.contains("the cap was none, and is"), "{}", found[0].text);
}

#[test]
fn damaged_plans_texts_and_strays_are_found() {
    let folder = folder(RECIPES);
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::remove_file(path("pass_on-100172.txt")).unwrap();
    let found = findings(folder.path());
    assert_eq!(kinds(&found), [FindingKind::Text]);
    assert!(found[0].text.ends_with("pass_on-100172.txt: this text of its plan is missing"), "{found:?}");
    fs::write(path("pass_on-4.plan"), "no plan").unwrap();
    fs::write(path("pass_on-100172.txt"), "something").unwrap();
    fs::copy(path("pass_on-100172.plan"), path("old-2.plan")).unwrap();
    fs::write(path("old-2.txt"), "of it").unwrap();
    fs::write(path("notes.txt"), "mine").unwrap();
    // A program has saved this plan.
    pass_on::compile(3, |_| Ok((0, 1))).unwrap().save(path("pass_on-3.plan")).unwrap();
    let found = findings(folder.path());
    // Recipes are in the order of their names.
    let expected = [FindingKind::Text, FindingKind::Unreadable, FindingKind::Stray, FindingKind::Stray];
    assert_eq!(kinds(&found), expected);
    write(&recipes, &all).unwrap();
    assert_eq!(findings(folder.path()), []);
    assert!(path("notes.txt").exists() && path("pass_on-3.plan").exists());
    assert!(!path("old-2.txt").exists() && !path("old-2.plan").exists());
    // A plan is not written to a file that a recipe reads.
    fs::write(path("here.txt"), fencepost::Machine::default().to_string()).unwrap();
    fs::write(path("plans.toml"), "[here]\nplan = 'pass_on'\nranks = 2\nmachine = 'here.txt'").unwrap();
    assert!(Recipes::read(folder.path()).unwrap_err().contains("would overwrite the machine model"));
}

#[test]
fn a_plan_that_is_not_compiled_is_found_and_nothing_is_written() {
    let cases = [
        ("pass_onn", "", "did you mean `pass_on`?"),
        ("xyz", "", "it registers failing, of_three, pass_on"),
        ("twice", "", "two plans are registered as `twice`"),
        ("of_three", "", "was compiled for 3 ranks instead of 4"),
        ("failing", "", "there is no grid"),
        ("pass_on", "values.cuont = 3", "does not read a value `cuont`: did you mean `count`?"),
        ("pass_on", "values.count = [1, 2]", "the recipe sets `count` to `1, 2`, but tool/tests/plans.rs:"),
    ];
    for (plan, more, expected) in cases {
        let folder = folder(&format!("[a-4]\nplan = '{plan}'\nranks = 4\n{more}"));
        let found = findings(folder.path());
        assert_eq!(kinds(&found), [FindingKind::NotCompiled], "{plan}");
        assert!(found[0].text.contains(expected), "{}", found[0].text);
        assert!(found[0].text.contains("plans.toml:1:1: a-4: "), "{}", found[0].text);
        assert!(!Report(&found).to_string().contains("up to date"), "{}", Report(&found));
        let (recipes, all) = compiled(folder.path());
        assert!(write(&recipes, &all).unwrap_err().contains(expected));
        assert!(!folder.path().join("a-4.plan").exists());
    }
}

/// Returns the schedules of a plan without the lines of its calls, and their time.
fn without_lines(plan: &Compiled) -> (Vec<Schedule>, fencepost::Nanos) {
    let mut all: Vec<Schedule> = plan.schedules().iter().map(|schedule| schedule.get().clone()).collect();
    let programs = all.iter_mut().flat_map(|schedule| schedule.classes.values_mut());
    programs
        .flat_map(|program| program.pattern.operations.values_mut())
        .for_each(|call| call.site = Default::default());
    (all, plan.predicted())
}

#[test]
fn a_stencil_has_the_plan_of_the_superstep_of_its_block() {
    fn same<const D: usize>(
        ranks: usize,
        stencil: &str,
        of: impl Fn(Block<D>) -> Result<Block<D>>,
        cells: [usize; D],
    ) {
        let folder = folder(&format!("[exchange-{ranks}]\nranks = {ranks}\nstencil = {{ {stencil} }}"));
        let (recipes, all) = compiled(folder.path());
        let own = exchange::compile(ranks, |rank| of(Block::at(rank, ranks, cells)?)).unwrap();
        let plan = &all[0].as_ref().unwrap().plan;
        assert_eq!(plan.name(), "exchange");
        assert!(without_lines(plan) == without_lines(&own), "{stencil}");
        write(&recipes, &all).unwrap();
        assert_eq!(findings(folder.path()), []);
    }
    same(4, "cells = [64, 48]", |block| block.halo(1), [64, 48]);
    same(7, "cells = 64, halo = 2, periodic = true", |block| Ok(block.halo(2)?.periodic([true])), [64]);
    same(12, "cells = [9, 33, 20], halo = 1, star = true", |block| block.star(1), [9, 33, 20]);
    let channel = |block: Block<2>| Ok(block.grid([3, 2])?.halos([1, 2])?.periodic([true, false]));
    same(6, "cells = [100, 40], grid = [3, 2], halo = [1, 2], periodic = [true, false]", channel, [100, 40]);
    // Without a halo, the block would have a grid that this halo does not fit.
    same(4, "cells = [4, 100], halo = 3", |block| block.halo(3), [4, 100]);
    same(1, "cells = [5, 5], periodic = true", |block| Ok(block.halo(1)?.periodic([true; 2])), [5, 5]);
}

#[test]
fn a_stencil_of_many_ranks_has_its_options_and_elements() {
    let folder = folder(
        "[sea-100172]\nranks = 100172\nplacement = 16\nmode = 'direct'\n\
         stencil = { cells = [20224, 20288], element = 'f32' }",
    );
    let (recipes, all) = compiled(folder.path());
    let plan = &all[0].as_ref().unwrap().plan;
    assert_eq!((plan.name(), plan.ranks()), ("sea", 100_172));
    assert_eq!(plan.patterns()[0].windows.values().next().unwrap().size, 4);
    write(&recipes, &all).unwrap();
    let text = fs::read_to_string(folder.path().join("sea-100172.txt")).unwrap();
    let head = "sea: 100172 ranks, 16 ranks to a host\nrecipe: sea-100172\ncells: 20224, 20288\n";
    assert!(text.starts_with(head), "{text}");
    let cells = "cells = [20224, 20288]";
    let other =
        fs::read_to_string(folder.path().join("plans.toml")).unwrap().replace(cells, "cells = [400, 400]");
    fs::write(folder.path().join("plans.toml"), other).unwrap();
    let found = findings(folder.path());
    assert_eq!(kinds(&found), [FindingKind::Pattern], "{found:?}");
    assert!(found[0].text.contains("the calls of rank 0 are not those of the plan"), "{}", found[0].text);
}

#[test]
fn a_program_loads_the_plan_of_its_stencil() {
    let folder = folder("[exchange-4]\nranks = 4\nstencil = { cells = [10, 12], periodic = true }");
    let (recipes, all) = compiled(folder.path());
    write(&recipes, &all).unwrap();
    fencepost::ranks(4)
        .transport(fencepost::TransportKind::Local)
        .run(|world| {
            let block = Block::new(world, [10, 12])?.halo(1)?.periodic([true; 2]);
            let mut windows = [world.window::<f64>(block.len())?, world.window::<f64>(block.len())?];
            for window in &mut windows {
                block.fill(window, |[i, j]| (100 * i + j) as f64);
            }
            let [u, v] = &mut windows;
            let mut loaded = exchange::load(world, folder.path(), &block)?;
            assert!(loaded.explain().to_string().contains("loaded from"), "{}", loaded.explain());
            loaded.replay(u)?;
            exchange(v, &block)?;
            assert_eq!(u[..], v[..]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_path_where_there_is_nothing_is_named_with_the_folder_in_which_the_program_runs() {
    let here = std::env::current_dir().unwrap().display().to_string();
    for (path, expected) in [
        ("no/plans", format!("there is no folder of plans no/plans in {here}, where the program runs")),
        ("no/such.plan", format!("there is no file of a plan no/such.plan in {here}")),
        ("/no/plans", "there is no folder of plans /no/plans: write the plans".into()),
    ] {
        let loaded = fencepost::ranks(1).transport(fencepost::TransportKind::Local).run(|world| {
            let block = Block::new(world, [4, 4])?.halo(1)?.periodic([true; 2]);
            exchange::load(world, path, &block).map(drop)
        });
        let error = loaded.unwrap_err();
        assert!(error.message().contains(&expected), "{error}");
        assert_eq!(error.class(), ErrorClass::Io);
    }
}

#[test]
fn a_program_that_is_older_than_a_source_of_its_calls_is_found() {
    let folder = folder(RECIPES);
    let (_, all) = compiled(folder.path());
    let program = folder.path().join("program");
    let file = fs::File::create(&program).unwrap();
    assert_eq!(newer_source(&program, &all), None);
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert!(newer_source(&program, &all).is_some_and(|source| source.ends_with("tool/tests/plans.rs")));
}

#[test]
fn a_check_in_a_test_panics_in_its_line_with_what_it_has_found() {
    let folder = folder(RECIPES);
    let (in_line, panicked_in) = std::sync::mpsc::channel();
    let thread = std::thread::current().id();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == thread {
            let file = info.location().map(|place| place.file().to_owned());
            let _ = in_line.send(file);
        } else {
            usual(info);
        }
    }));
    let nowhere = std::panic::catch_unwind(|| fencepost_tool::plans::check("no/such"));
    assert!(nowhere.is_err());
    let checked = std::panic::catch_unwind(|| fencepost_tool::plans::check(folder.path()));
    let files: Vec<_> = panicked_in.try_iter().flatten().collect();
    assert!(!files.is_empty() && files.iter().all(|file| file.ends_with("tests/plans.rs")), "{files:?}");
    if std::env::var_os("FENCEPOST_BLESS").is_some() {
        return assert_eq!(findings(folder.path()), []);
    }
    let why = checked.unwrap_err();
    let why = why.downcast_ref::<String>().unwrap();
    assert!(why.contains("2 plans are not up to date: pass_on-100172, pass_on-4"), "{why}");
}
