//! The command writes, checks, shows, compares and measures plans, and refuses wrong requests.

use crate::launched::{Ended, rank_program, start};
use fencepost::prelude::*;
use fencepost::{Machine, TransportKind};
use std::fs;
use std::path::Path;

const FENCEPOST: &str = env!("CARGO_BIN_EXE_fencepost");

/// Puts elements of each rank into the window of the next rank.
#[superstep]
fn pass_on(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
    u.put(0..count).to(next, count..2 * count)
}

/// Does the same as `pass_on`, but the target begins one element further.
#[superstep]
fn shifted(u: &mut Window<f64>, next: usize, count: usize) -> Result<()> {
    u.put(0..count).to(next, count + 1..2 * count + 1)
}

/// Puts values, which a plan does not contain.
#[superstep]
fn values(u: &mut Window<f64>, next: usize, given: &[f64]) -> Result<()> {
    u.put(given).to(next, 0)
}

fencepost::plan!(
    pass_on = |ask| {
        let (ranks, count) = (ask.ranks(), ask.value("count", 100)?);
        pass_on::compile(ranks, |rank| Ok(((rank + 1) % ranks, count)))
    }
);
fencepost::plan!(
    shifted = |ask| {
        let ranks = ask.ranks();
        shifted::compile(ranks, |rank| Ok(((rank + 1) % ranks, 100)))
    }
);
fencepost::plan!(values = |ask| values::compile(ask.ranks(), |_| Ok((0, vec![1.0]))));
fencepost::plan!(panics = |_ask| panic!("there is no such grid"));

const RECIPES: &str = "
[pass_on-2]
plan = 'pass_on'
ranks = 2

[pass_on-1000]
plan = 'pass_on'
ranks = 1000
placement = 8
values.count = 10
";

/// A folder of recipes.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(recipes: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("plans.toml"), recipes).expect("a file");
        Self(folder)
    }

    /// A folder with the plans of [`RECIPES`].
    fn with_plans() -> Self {
        let folder = Self::new(RECIPES);
        folder.plan(&[]).expect(0);
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Runs `fencepost plan` on this program.
    fn plan(&self, options: &[&str]) -> Ended {
        self.plan_of(options, &["settings"])
    }

    fn plan_of(&self, options: &[&str], rank: &[&str]) -> Ended {
        let (folder, program) = (self.0.path().display().to_string(), rank_program());
        let mut words = vec!["plan", "--folder", &folder];
        words.extend(options);
        words.extend([program.as_str(), "rank"]);
        words.extend(rank);
        start(FENCEPOST, &words, &[]).end()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn fencepost(words: &[&str]) -> Ended {
    start(FENCEPOST, words, &[]).end()
}

/// Enters a world in the way `way`, or enters no world.
pub fn enters(way: &str) -> Result<()> {
    println!("this is what the program prints");
    match way {
        "run" => fencepost::run(World::barrier),
        "collect" => fencepost::collect(World::barrier).map(drop),
        "ranks" => fencepost::ranks(1).transport(TransportKind::Local).run(World::barrier),
        "launch" => fencepost::launch(1, &TransportKind::Local),
        "process" => fencepost::process().map(drop),
        "never" => loop {
            std::thread::park();
        },
        _ => Ok(()),
    }
}

pub fn written_and_checked() {
    let folder = Folder::with_plans();
    assert!(folder.plan(&[]).expect(0).out.contains("2 plans, all up to date"));
    assert!(folder.plan(&["--check"]).expect(0).out.contains("2 plans, all up to date"));
    for way in ["run", "collect", "ranks", "launch", "process"] {
        let ended = folder.plan_of(&["--check", "--json"], &["enters", way]);
        let document: serde_json::Value = serde_json::from_str(&ended.expect(0).out).expect("JSON");
        assert_eq!(document["kind"], "check", "{way}");
        assert_eq!(document["up_to_date"], true, "{way}");
        assert!(ended.err.contains("this is what the program prints"), "{way}: {ended:#?}");
    }
    let json = |ended: Ended| -> serde_json::Value { serde_json::from_str(&ended.out).expect("JSON") };
    let document = json(folder.plan(&["--json"]));
    assert_eq!((&document["kind"], document["wrote"].as_array().map(Vec::len)), (&"written".into(), Some(0)));
    fs::remove_file(folder.path("pass_on-2.txt")).expect("a file");
    assert!(json(folder.plan(&["--json"]))["wrote"][0].as_str().is_some_and(|name| name.ends_with("-2.txt")));
    let before = fs::read(folder.path("pass_on-2.plan")).expect("a plan");
    fs::write(
        folder.path("plans.toml"),
        RECIPES.replace("plan = 'pass_on'", "plan = 'shifted'").replace("values.count = 10", ""),
    )
    .expect("a file");
    let ended = folder.plan(&["--check"]);
    let text = &ended.expect(1).out;
    assert!(text.contains("2 plans are not up to date: pass_on-1000, pass_on-2"), "{text}");
    assert_eq!(fs::read(folder.path("pass_on-2.plan")).expect("a plan"), before, "a check writes nothing");
    folder.plan(&[]).expect(0);
    folder.plan(&["--check"]).expect(0);
    let (plan, stray) = (folder.path("pass_on-2.plan"), folder.path("old.plan"));
    fs::rename(&plan, &stray).expect("a file");
    let ended = folder.plan(&[]);
    let text = &ended.expect(0).out;
    assert_eq!(*text, format!("wrote {plan}\nremoved {stray}\n"));
}

pub fn of_stencils() {
    let stencil = "[sea-64]\nranks = 64\nstencil = { cells = [512, 512], periodic = [true, false] }\n";
    let folder = Folder::new(stencil);
    let path = folder.0.path().display().to_string();
    // No program is given, and cargo, which would build a program, does not exist.
    let plan = |options: &[&str]| {
        let mut words = vec!["plan", "--folder", &path];
        words.extend(options);
        start(FENCEPOST, &words, &[("CARGO", "/no/such/cargo")]).end()
    };
    assert_eq!(plan(&[]).expect(0).out.lines().count(), 2);
    assert!(plan(&["--check"]).expect(0).out.contains("1 plan, up to date"));
    let words = ["fencepost", "plan", "--check", "--folder", &path];
    start(env!("CARGO_BIN_EXE_cargo-fencepost"), &words, &[("CARGO", "/no/such/cargo")]).end().expect(0);
    fencepost(&["verify", &folder.path("sea-64.plan")]).expect(0);
    let predicted = fencepost(&["predict", "--folder", &path, "-n", "4,16"]);
    assert_eq!(predicted.expect(0).out.lines().count(), 3);
    let words = ["compare", "--folder", &path, "--sweep", "cells=[8, 8];16,16", "--time", "10ms"];
    fencepost(&words).expect(2).says("--recipe");
    fencepost(&[&words[..], &["--recipe", "sea-64"]].concat()).expect(0);
    // A program that is given must exist, even if it is not needed.
    for (program, expected) in
        [("/no/such/program", "cannot be found: No such file"), (&*path, "is a folder")]
    {
        plan(&[program]).expect(2).says(expected);
        fencepost(&["predict", "--folder", &path, program]).expect(2).says(expected);
    }
    let recipes = folder.path("plans.toml");
    fencepost(&["compare", "--folder", &path, "--recipe", "sea-64", &recipes])
        .expect(2)
        .says("is not a program");
    let ended = fencepost(&["predict", "--folder", &path, "--set", "cels=4"]);
    let expected = "the stencil of the recipe `sea-64` does not read a value `cels`: did you mean `cells`?";
    assert_eq!(ended.expect(2).says(expected).out, "");
    let words = ["predict", "--folder", &path, "--plan", "sea", "-n", "4"];
    fencepost(&words)
        .expect(2)
        .says("sea is compiled by a program: add its path; or did you mean --recipe sea-64?");
    // With recipes that are not for stencils, a program is needed. It compiles only those recipes.
    fs::write(folder.path("plans.toml"), format!("{RECIPES}{stencil}")).expect("a file");
    plan(&[]).expect(2).says("cargo");
    fencepost(&["predict", "--folder", &path]).expect(2).says("is compiled by a program: add its path");
    fencepost(&["predict", "--folder", &path, "--recipe", "sea-64"]).expect(0);
    assert_eq!(folder.plan(&[]).expect(0).out.lines().count(), 4);
    assert!(folder.plan(&["--check"]).expect(0).out.contains("3 plans, all up to date"));
    fs::write(folder.path("plans.toml"), stencil.replace("periodic", "periods")).expect("a file");
    plan(&["--check"]).expect(2).says(":3:33: unknown key `periods` in a stencil: did you mean `periodic`?");
}

pub fn refused() {
    let program = rank_program();
    let cases: &[(&str, &[&str], i32, &str)] = &[
        (
            "[a]\nplan = 'pass_on'\nrank = 2",
            &["settings"],
            2,
            ":3:1: unknown key `rank` in a recipe: did you mean `ranks`?",
        ),
        ("[a]\nplan = 'pass_on'\nranks = 0", &["settings"], 2, "0 ranks: a plan has 1 to"),
        ("[a]\nplan = 'nothing'\nranks = 2", &["settings"], 2, "plans.toml:1:1: a: the plan `nothing`"),
        ("[a]\nplan = 'nothing'\nranks = 2", &["settings"], 2, "registers no plan `nothing`"),
        ("[a]\nplan = 'pass_on'\nranks = 2\nvalues.cuont = 1", &["settings"], 2, "did you mean `count`?"),
        ("[a]\nplan = 'panics'\nranks = 2", &["settings"], 2, "panicked: there is no such grid"),
        ("[a-3]\nplan = 'pass_on'\nranks = 2", &["settings"], 2, ":3:9: the recipe `a-3` is for 2 ranks"),
        (RECIPES, &["enters", "nowhere"], 2, "ended without entering a world"),
    ];
    for (recipes, rank, code, expected) in cases {
        let folder = Folder::new(recipes);
        folder.plan_of(&[], rank).expect(*code).says(expected);
        assert!(!Path::new(&folder.path("a.plan")).exists());
    }
    // If a check finds a recipe that was not compiled, the check does not advise to write the
    // plans.
    let folder = Folder::new("[a]\nplan = 'nothing'\nranks = 2");
    let ended = folder.plan(&["--check"]);
    let text = &ended.expect(2).out;
    assert!(text.contains("1 plan was not compiled: a") && !text.contains("--check"), "{text}");
    let ended = fencepost(&["predict", "--plan", "pass_onn", "-n", "2,4", &program, "rank", "settings"]);
    assert_eq!(ended.expect(2).says("did you mean `pass_on`?").out, "");
    // If a program neither enters a world nor ends, the command ends it.
    let folder = Folder::new(RECIPES);
    let ended = folder.plan_of(&["--limit", "10ms"], &["enters", "never"]);
    ended.expect(2).says("has not entered a world within 10ms, so it was ended");
    let path = folder.path(".");
    for words in [&["predict"][..], &["compare", "--recipe", "pass_on-2"]] {
        let mut words = words.to_vec();
        words.extend(["--folder", &path, "--limit", "10ms", &program, "rank", "enters", "never"]);
        fencepost(&words).expect(2).says("has not entered a world within 10ms");
    }
    let folder = Folder::with_plans();
    let (plan, other) = (folder.path("pass_on-2.plan"), folder.path("other.plan"));
    let mut bytes = fs::read(&plan).expect("a plan");
    bytes.truncate(bytes.len() / 2);
    fs::write(&other, &bytes).expect("a file");
    let (file, text) = (folder.path("times.json"), folder.path("plans.toml"));
    fs::write(&file, "{\"format\": 1, \"kind\": \"plan\"}").expect("a file");
    let nowhere = folder.path("no/such/folder/report.html");
    let in_folder = folder.0.path().display().to_string();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["plan", "--folder", "/no/such", &program], 2, "plans.toml"),
        (&["show", "/no/such.plan"], 2, "/no/such.plan"),
        (&["show", &other], 2, "other.plan"),
        (&["show", &text], 2, "plan"),
        (&["show", &plan, "--rank", "2"], 2, "has the ranks 0 to 1"),
        (&["show", &plan, "--class", "7"], 2, "has the classes 0 to"),
        (&["explain", &plan, "--line", "none.rs:1"], 2, "there are calls in"),
        (&["explain", &plan, "--line", "none"], 2, "give a file and a line"),
        (&["verify", &plan, &other], 1, "other.plan"),
        (&["verify", "/no/such.plan"], 2, "/no/such.plan"),
        (&["predict", "--plan", "pass_on", "-n", "4294967295", &program], 2, "numbers from 1 to 16777216"),
        (
            &["predict", "--plan", "pass_on", "-n", "2", "--set", "a b=1", &program],
            2,
            "give a name and a value",
        ),
        (&["diff", &plan, &other], 2, "other.plan"),
        (&["predict", &plan, "-n", "4"], 2, "the ranks and values of a plan are fixed"),
        (&["predict", "--plan", "pass_on", &program, "rank", "settings"], 2, "add --ranks"),
        (&["predict", "--plan", "pass_on", "-n", "0", &program], 2, "numbers from 1 to 16777216"),
        (&["predict", &plan, "--machine", &text], 2, "plans.toml: line 2 of the machine model"),
        (&["predict", &plan, "--placement", "near"], 2, "is not a placement"),
        (&["compare", &plan, "--sweep", "count=1..4", "--recipe", "x"], 2, "give its program instead"),
        (&["compare", "--folder", &folder.path("."), &program, "rank", "settings"], 2, "give one recipe"),
        (&["compare", "--transport", "pigeon", &plan], 2, "local, shm, tcp"),
        (&["simulate", &plan, "--work", "often"], 2, "at most an hour"),
        (&["simulate", &plan, "--uneven=-1"], 2, "--uneven"),
        (&["simulate", &plan, "--steps", "9999999999", "--goal", &file], 2, "at most 16777216 are written"),
        (&["simulate", &plan, "--goal", &nowhere], 2, "report.html"),
        (&["report", &file], 2, "a document of the kind plan"),
        (&["report", "-o", &nowhere, &plan], 2, "report.html"),
        (&["run", "--machine", &text, "true"], 2, "line 2 of the machine model"),
        (&["probe", "-n", "0"], 2, "give a whole number, 1 or more"),
        (&["run", "-n", "0", "true"], 2, "give a whole number, 1 or more"),
        (&["snapshots", "--keep", "0", "out"], 2, "give a whole number, 1 or more"),
        (&["snapshots", &in_folder], 2, "this is not a folder of snapshots"),
        (&["snapshots", "--keep", "1", &in_folder], 2, "this is not a folder of snapshots"),
        (&["verify", &in_folder], 2, "is a folder: give the plans in it"),
        (&["predict", &plan, "--mode", "fast"], 2, "'--mode <MODES>': `fast` is not a mode"),
        (
            &["plan", "--check", &in_folder],
            2,
            "is a folder, not a program: if it has plans.toml, use --folder",
        ),
        (
            &["run", "--show", "-n", "200000", "true"],
            0,
            "200000 ranks are 200000 processes, and this machine",
        ),
    ];
    for (words, code, expected) in cases {
        fencepost(words).expect(*code).says(expected);
    }
    // A closed pipe is no error.
    let mut child = std::process::Command::new(FENCEPOST)
        .args(["show", &plan])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a command");
    drop(child.stdout.take());
    assert!(child.wait().expect("a command").success());
    fencepost(&["verify", "/dev/zero"]).expect(1).says("not a regular file");
    if Path::new("/dev/full").exists() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let child = std::process::Command::new(FENCEPOST).args(["show", &plan]).stdout(full).output();
        assert_eq!(child.expect("a command").status.code(), Some(2));
    }
}

pub fn read() {
    let folder = Folder::with_plans();
    let (few, many) = (folder.path("pass_on-2.plan"), folder.path("pass_on-1000.plan"));
    let shown = fencepost(&["show", &few]);
    for part in ["pass_on: 2 ranks, in shared memory", "recipe: pass_on-2", "count: 100", "jobs/plans.rs:"] {
        assert!(shown.expect(0).out.contains(part), "{part}: {shown:#?}");
    }
    let text = fs::read_to_string(folder.path("pass_on-2.txt")).expect("a text");
    assert!(!text.contains("plans.rs") && shown.out.contains(text.lines().next().expect("a line")));
    let explained = fencepost(&["explain", &many, "--rank", "999", "--line", "jobs/plans.rs:14"]);
    assert!(
        explained.expect(0).out.contains("with rank 0") && explained.out.contains("ns"),
        "{explained:#?}"
    );
    let document: serde_json::Value =
        serde_json::from_str(&fencepost(&["show", &few, "--json"]).expect(0).out).expect("JSON");
    assert_eq!((&document["kind"], &document["ranks"]), (&"plan".into(), &2.into()));
    assert_eq!(document["epochs"][0]["classes"][0]["operations"][0]["bytes"], 800);
    assert!(fencepost(&["verify", &few, &many]).expect(0).out.contains("on 1000 ranks, digest"));
    fencepost(&["diff", &few, &few]).expect(0);
    let different = fencepost(&["diff", &few, &many]);
    assert!(different.expect(1).out.contains("all ranks: messages "), "{different:#?}");
    let part = fencepost(&["diff", &few, &many, "--rank", "1"]);
    assert!(part.expect(1).out.contains("\nrank 1: ") && !part.out.contains("\nrank 0: "), "{part:#?}");
    let same = fencepost(&["diff", &few, &few, "--class", "0", "--line", "jobs/plans.rs:14"]);
    assert!(same.expect(0).out.contains("this part of the plans does the same"), "{same:#?}");
    fencepost(&["diff", &few, &many, "--rank", "7"]).expect(2).says("rank 7: the plan of pass_on has");
    fencepost(&["diff", &few, &many, "--line", "main.rs:1"]).expect(2).says("is called in main.rs:1");
    fencepost(&["predict", &few, "--mode", "auto,direct", "--placement", "together,apart"]).expect(0);
    let folder_of = folder.path(".");
    let program = rank_program();
    let swept = fencepost(&[
        "predict",
        "--folder",
        &folder_of,
        "--recipe",
        "pass_on-2",
        "-n",
        "2,4",
        "--sweep",
        "count=10..40",
        "--json",
        &program,
        "rank",
        "settings",
    ]);
    let document: serde_json::Value = serde_json::from_str(&swept.expect(0).out).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 6, "{document}");
    assert_eq!((&rows[5]["ranks"], &rows[5]["values"]["count"]), (&4.into(), &"40".into()));
    let simulated = fencepost(&["simulate", "--steps", "5000", "--work", "10us", "--uneven", "10", &many]);
    assert!(
        simulated.expect(0).out.contains("5000 steps: ") && simulated.out.contains("jobs/plans.rs:14"),
        "{simulated:#?}"
    );
    let text = &fencepost(&["simulate", "--noise", "5%", "--json", &few]).expect(0).out.clone();
    let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!((&document["kind"], &document["steps"]), (&"simulation".into(), &100.into()));
    let goal = folder.path("steps.goal");
    fencepost(&["simulate", "--steps", "3", "--work", "10us", "--goal", &goal, &few]).expect(0);
    let text = fs::read_to_string(&goal).expect("a file");
    assert!(
        text.starts_with("// pass_on on 2 ranks: 3 steps\n// txt2bin ") && text.ends_with("}\n"),
        "{text}"
    );
    assert_eq!(text.matches(": send ").count(), 2 * 3, "{text}");
    let page = folder.path("page.html");
    fencepost(&["report", "-o", &page, &few, &many]).expect(0);
    assert!(fs::read_to_string(page).expect("a page").contains("Who sends to whom"));
}

pub fn measured() {
    let folder = Folder::with_plans();
    let (plan, best, times) =
        (folder.path("pass_on-2.plan"), folder.path("best.plan"), folder.path("times.json"));
    for transport in ["local", "shm", "tcp"] {
        let ended = fencepost(&[
            "compare",
            "--transport",
            transport,
            "--time",
            "20ms",
            "--keep-best",
            &best,
            "--json",
            &plan,
        ]);
        let text = &ended.expect(0).out;
        let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let rows = document["rows"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["mode"] == "auto"), "{document}");
        assert!(rows.iter().all(|row| row["measured"].as_f64() > Some(0.0) && row["transport"] == transport));
        fencepost(&["verify", &best]).expect(0);
        fs::write(&times, text).expect("a file");
        let page = fencepost(&["report", &plan, &times]);
        assert!(page.expect(0).out.contains("Measured times"));
    }
    let (folder_of, program) = (folder.path("."), rank_program());
    let swept = fencepost(&[
        "compare",
        "--folder",
        &folder_of,
        "--recipe",
        "pass_on-2",
        "--sweep",
        "count=10..40",
        "--time",
        "20ms",
        &program,
        "rank",
        "settings",
    ]);
    assert_eq!(swept.expect(0).out.matches("fastest: ").count(), 3, "{swept:#?}");
    assert_eq!(swept.out.contains("2 ranks share 1 core"), cores() < 2, "{swept:#?}");
    let of_values = Folder::new("[values-2]\nplan = 'values'\nranks = 2");
    of_values.plan(&[]).expect(0);
    let ended = fencepost(&["compare", "--time", "20ms", &of_values.path("values-2.plan")]);
    assert!(ended.expect(0).out.contains("auto"), "{ended:#?}");
}

pub fn probed() {
    for (transport, ranks) in [("shm", "2"), ("tcp", "2"), ("shm", "1")] {
        let ended = fencepost(&["probe", "-n", ranks, "--transport", transport, "--time", "50ms"]);
        let text = &ended.expect(0).out;
        text.parse::<Machine>().expect("a machine");
        assert!(text.contains(if ranks == "1" { "only the caches" } else { "measured" }), "{text}");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("machine.txt").display().to_string();
        fs::write(&file, text).expect("a file");
        let program = rank_program();
        let words = ["run", "-n", "2", "--machine", &file, &program, "rank", "settings"];
        fencepost(&words).expect(0);
    }
    let ended = fencepost(&["probe", "--time", "20ms", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&ended.expect(0).out).expect("JSON");
    assert_eq!(document["kind"], "probe");
    assert!(document["machine"]["shared.latency"].as_f64() > Some(0.0), "{document}");
    assert!(document["text"].as_str().expect("a text").parse::<Machine>().is_ok());
    assert!(document["exchanges"].as_array().is_some_and(|all| all.len() > 2), "{document}");
}
