//! [`Report`]: plans as one page of HTML, which needs no network and no other file.

mod picture;

use crate::documents::{MeasurementDocument, MeasurementRow, PredictionRow};
use crate::show::{Part, placed};
use crate::source;
use askama::Template;
use base64::Engine;
use fencepost_planner::explain::{Terms, cost, cost_at_fence, explain_rank, number_of};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::pattern::{Kind, Mode, Site};
use fencepost_planner::ir::schedule::{Instruction, Schedule};
use fencepost_planner::units::Nanos;
use fencepost_runtime::Compiled;
use picture::{Bar, bars, matrix};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The most rows of a table. The rows with the largest values are kept, and the page states how
/// many rows are left out.
const ROWS_MAX: usize = 200;
/// The most rows and columns of the picture of who sends to whom.
const BINS_MAX: usize = 64;

/// A page about plans.
#[derive(Clone, Debug)]
pub struct Report {
    plans: Vec<Section>,
    measured: Option<View>,
}

/// A plan on the page.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    /// Facts about the plan, its machine and its costs: names with their values.
    facts: Vec<(String, String)>,
    views: Vec<View>,
}

/// A picture with its table.
#[derive(Clone, Debug)]
struct View {
    id: String,
    name: String,
    /// A description of the picture, in sentences.
    about: String,
    /// An SVG image, or an empty text.
    picture: String,
    table: Table,
}

/// A table that can be sorted.
#[derive(Clone, Debug, Default)]
struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    /// The number of rows that are left out.
    left_out: usize,
}

/// A cell of a table: its text, and its value if it is a number.
#[derive(Clone, Debug)]
struct Cell {
    text: String,
    value: Option<f64>,
}

impl Cell {
    fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    fn count(count: u64) -> Self {
        Self { text: grouped(count), value: Some(count as f64) }
    }

    /// Makes the cell of a time, in microseconds.
    fn time(time: Nanos) -> Self {
        Self { text: micros(time), value: Some(time.0) }
    }
}

fn micros(time: Nanos) -> String {
    format!("{:.2}", time.0 / 1e3)
}

/// Returns a number with its digits in groups of three.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

impl Table {
    /// Makes a table of the rows with the largest values in column `by`.
    fn of(head: Vec<&'static str>, mut rows: Vec<Vec<Cell>>, by: usize) -> Self {
        let left_out = rows.len().saturating_sub(ROWS_MAX);
        if left_out > 0 {
            let value = |row: &Vec<Cell>| row[by].value.unwrap_or(0.0);
            rows.sort_by(|a, b| value(b).total_cmp(&value(a)));
            rows.truncate(ROWS_MAX);
        }
        Self { head, rows, left_out }
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'r> {
    report: &'r Report,
    style: &'static str,
    script: &'static str,
    style_hash: String,
    script_hash: String,
}

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");

/// Returns the source expression with which a Content-Security-Policy allows exactly this text.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

impl Report {
    /// Describes plans, and measured times if there are any.
    ///
    /// # Errors
    /// Those of compiling a plan in the other modes.
    ///
    /// # Cost
    /// Linear in the number of ranks, and in the number of peers of each rank.
    pub fn new(plans: &[Compiled], measured: &[MeasurementDocument]) -> Result<Self, String> {
        let section = |(number, plan): (usize, &Compiled)| Section::new(number, plan);
        let plans = plans.iter().enumerate().map(section).collect::<Result<_, _>>()?;
        Ok(Self { plans, measured: (!measured.is_empty()).then(|| measurements(measured)) })
    }

    /// Returns the page.
    ///
    /// # Errors
    /// Those of the template. None are expected.
    pub fn to_html(&self) -> Result<String, String> {
        let page = Page {
            report: self,
            style: STYLE,
            script: SCRIPT,
            style_hash: hash(STYLE),
            script_hash: hash(SCRIPT),
        };
        page.render().map_err(|error| error.to_string())
    }

    fn title(&self) -> String {
        let names: Vec<&str> = self.plans.iter().map(|plan| plan.name.as_str()).collect();
        match names[..] {
            [] => "Measured times".into(),
            [one] => one.into(),
            [first, ..] => format!("{first} and {}", number_of(names.len() as u64 - 1, "other plan")),
        }
    }
}

impl Section {
    fn new(number: usize, plan: &Compiled) -> Result<Self, String> {
        let name = format!("{} on {}", plan.name(), number_of(plan.ranks() as u64, "rank"));
        let mut views = Vec::new();
        let several = plan.schedules().len() > 1;
        for (epoch, schedule) in plan.schedules().iter().enumerate() {
            let (id, of) = match several {
                true => (format!("p{number}e{epoch}"), format!(", epoch {epoch}")),
                false => (format!("p{number}"), String::new()),
            };
            views.push(who(schedule, &id, &of));
            views.push(rounds(schedule, &id, &of));
            views.push(classes(plan, schedule, &id, &of));
        }
        views.push(modes(plan, &format!("p{number}"))?);
        views.push(lines(plan, &format!("p{number}")));
        Ok(Self { name, facts: facts(plan), views })
    }
}

fn facts(plan: &Compiled) -> Vec<(String, String)> {
    let made_for = plan.made_for();
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.into(), value));
    fact("Superstep", plan.name().into());
    fact("Ranks", format!("{}, {}", grouped(plan.ranks() as u64), placed(plan.placement())));
    if !made_for.recipe.is_empty() {
        fact("Recipe", made_for.recipe.clone());
    }
    for (name, value) in &made_for.values {
        fact(&format!("Value {name}"), value.clone());
    }
    fact("Mode asked for", made_for.options.mode.to_string());
    let is_default = made_for.machine == fencepost_planner::Machine::default();
    fact("Machine", if is_default { "the default model" } else { "the plan's own model" }.into());
    fact("Predicted, prepared", format!("{} us", micros(plan.predicted())));
    fact("Predicted, at a fence", format!("{} us", micros(plan.predicted_at_fence())));
    fact("No schedule takes less than", format!("{} us", micros(plan.bound())));
    fact("Digest", plan.digest());
    facts
}

/// Shows the bytes of operations, by sender and receiver.
fn who(schedule: &Schedule, id: &str, of: &str) -> View {
    let ranks = schedule.class_of.len();
    let bins = ranks.min(BINS_MAX);
    let bin = |rank: usize| rank * bins / ranks;
    let range = |bin: usize| {
        let (first, end) = ((bin * ranks).div_ceil(bins), ((bin + 1) * ranks).div_ceil(bins));
        if end - first == 1 { first.to_string() } else { format!("{first} to {}", end - 1) }
    };
    // By class, the bytes of operations on each peer. A get moves its bytes from the peer to the
    // rank, other operations move them to the peer.
    let sends = schedule.classes.values().map(|program| {
        let mut bytes: BTreeMap<(i64, bool), u64> = BTreeMap::new();
        for (operation, route) in program.pattern.operations.values().zip(program.routes.values()) {
            if let (Some(_), Some(target)) = (route, operation.target) {
                let element = u64::from(schedule.windows[operation.window].size);
                *bytes.entry((target.0, operation.kind == Kind::Get)).or_default() +=
                    operation.remote.size() as u64 * element;
            }
        }
        bytes.into_iter().collect::<Vec<_>>()
    });
    let sends: Vec<_> = sends.collect();
    let mut cells = vec![0_u64; bins * bins];
    for (rank, class) in schedule.class_of.iter().enumerate() {
        for &((delta, is_get), bytes) in &sends[class.index()] {
            let other = (rank as i64 + delta).rem_euclid(ranks as i64) as usize;
            let (from, to) = if is_get { (other, rank) } else { (rank, other) };
            cells[bin(from) * bins + bin(to)] += bytes;
        }
    }
    let rows = cells.iter().enumerate().filter(|(_, bytes)| **bytes > 0).map(|(at, bytes)| {
        vec![Cell::text(range(at / bins)), Cell::text(range(at % bins)), Cell::count(*bytes)]
    });
    let about = if bins < ranks {
        format!(
            "Ranks are in {bins} groups of consecutive ranks. The stronger the colour of a cell, the more bytes go from the ranks of its row to those of its column."
        )
    } else {
        "The stronger the colour of a cell, the more bytes go from the rank of its row to that of its column."
            .into()
    };
    let name = format!("Who sends to whom{of}");
    View {
        id: format!("{id}who"),
        picture: matrix(&cells, bins, &name),
        name,
        about,
        table: Table::of(vec!["from ranks", "to ranks", "bytes"], rows.collect(), 2),
    }
}

/// Shows the messages of each round.
fn rounds(schedule: &Schedule, id: &str, of: &str) -> View {
    let count = schedule.ranks_of_classes();
    let mut rounds: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let (mut copies, mut copying) = (0, 0);
    for (program, ranks) in schedule.classes.values().zip(count.values()) {
        for instruction in &program.instructions {
            if let Instruction::Send { bytes, round, .. } = instruction {
                let (messages, all) = rounds.entry(round.0).or_default();
                *messages += ranks;
                *all += ranks * bytes;
            }
        }
        let direct = program.routes.values().flatten().filter(|route| route.mode == Mode::Direct).count();
        copies += direct as u64 * ranks;
        copying += if direct > 0 { *ranks } else { 0 };
    }
    let bar = |(round, (_, bytes)): (&u32, &(u64, u64))| Bar {
        name: format!("round {round}"),
        parts: vec![*bytes as f64],
        label: format!("{} bytes", grouped(*bytes)),
    };
    let name = format!("Rounds{of}");
    let row = |(round, (messages, bytes)): (&u32, &(u64, u64))| {
        vec![
            Cell { text: round.to_string(), value: Some(f64::from(*round)) },
            Cell::count(*messages),
            Cell::count(*bytes),
        ]
    };
    let mut about = "Each bar has the bytes of the messages that all ranks send in one round.".to_owned();
    if copies > 0 {
        about += &format!(
            " In addition, {} of {} are copied directly.",
            number_of(copies, "operation"),
            number_of(copying, "rank")
        );
    }
    View {
        id: format!("{id}rounds"),
        picture: bars(&rounds.iter().take(ROWS_MAX).map(bar).collect::<Vec<_>>(), &["bytes"], &name),
        name,
        about,
        table: Table::of(vec!["round", "messages", "bytes"], rounds.iter().map(row).collect(), 2),
    }
}

/// Shows the predicted time of each class, by cause, next to the bound.
fn classes(plan: &Compiled, schedule: &Schedule, id: &str, of: &str) -> View {
    let machine = &plan.made_for().machine;
    let (mut pictured, mut rows) = (Vec::new(), Vec::new());
    for (rank, class, ranks) in Part::default().ranks(schedule) {
        let member = explain_rank(schedule, Rank(rank), machine);
        let Terms { moving, overhead, wire, latency, .. } = member.terms;
        let parts = [moving, overhead, wire, latency];
        let predicted = member.terms.predicted();
        pictured.push((
            predicted.0,
            Bar {
                name: format!("{class}, rank {rank}"),
                parts: parts.iter().map(|time| time.0).collect(),
                label: format!("{} us", micros(predicted)),
            },
        ));
        let mut row = vec![
            Cell::text(class.to_string()),
            Cell { text: grouped(u64::from(rank)), value: Some(f64::from(rank)) },
            Cell::count(ranks as u64),
            Cell::count(member.sent.messages),
            Cell::count(member.sent.bytes.0),
        ];
        row.extend(parts.map(Cell::time));
        row.push(Cell::time(predicted));
        rows.push(row);
    }
    pictured.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (cost, (at_fence, _)) = (cost(schedule, machine), cost_at_fence(schedule, machine));
    let more = pictured.len().saturating_sub(BARS_MAX);
    let left =
        if more > 0 { format!(" The {more} fastest classes are in the table only.") } else { String::new() };
    let mut bars_of: Vec<Bar> = pictured.into_iter().take(BARS_MAX).map(|(_, bar)| bar).collect();
    bars_of.push(Bar {
        name: "at least".into(),
        parts: vec![0.0, 0.0, 0.0, 0.0, cost.bound.0],
        label: format!("{} us", micros(cost.bound)),
    });
    let name = format!("Predicted time of each class{of}");
    let head = vec![
        "class",
        "first rank",
        "ranks",
        "messages",
        "bytes",
        "moving us",
        "frames us",
        "wire us",
        "latency us",
        "predicted us",
    ];
    View {
        id: format!("{id}classes"),
        picture: bars(&bars_of, &["moving", "frames", "wire", "latency", "at least"], &name),
        name,
        about: format!(
            "Ranks of a class do the same. The slowest rank is {}. Not prepared, the epoch is predicted to take {} us.{left}",
            cost.slowest,
            micros(at_fence)
        ),
        table: Table::of(head, rows, 9),
    }
}

/// The most bars of a picture.
const BARS_MAX: usize = 40;

/// Shows the predicted time in each mode.
fn modes(plan: &Compiled, id: &str) -> Result<View, String> {
    let (mut pictured, mut rows) = (Vec::new(), Vec::new());
    for mode in Mode::ALL {
        let compiled = plan.in_mode(mode).map_err(|error| error.to_string())?;
        let (predicted, staging) =
            (compiled.predicted(), compiled.schedules().iter().map(|one| one.peak().0).max());
        pictured.push(Bar {
            name: mode.to_string(),
            parts: vec![predicted.0],
            label: format!("{} us", micros(predicted)),
        });
        rows.push(vec![
            Cell::text(mode.to_string()),
            Cell::time(predicted),
            Cell::time(compiled.predicted_at_fence()),
            Cell::count(staging.unwrap_or(0)),
        ]);
    }
    let name = "Modes".to_owned();
    Ok(View {
        id: format!("{id}modes"),
        picture: bars(&pictured, &["predicted us"], &name),
        name,
        about: "The same calls, all in one mode where it is available. auto chooses for each operation."
            .into(),
        table: Table::of(vec!["mode", "prepared us", "at a fence us", "staging of a rank"], rows, 1),
    })
}

/// Shows the lines of the source, with the bytes that their operations move.
fn lines(plan: &Compiled, id: &str) -> View {
    let mut sites: BTreeMap<&Site, (u64, u64, BTreeMap<String, u64>)> = BTreeMap::new();
    for schedule in plan.schedules() {
        let count = schedule.ranks_of_classes();
        for (program, ranks) in schedule.classes.values().zip(count.values()) {
            for (operation, route) in program.pattern.operations.values().zip(program.routes.values()) {
                let (operations, bytes, modes) = sites.entry(&operation.site).or_default();
                *operations += ranks;
                let element = u64::from(schedule.windows[operation.window].size);
                let mode = match route {
                    Some(route) => {
                        *bytes += ranks * operation.remote.size() as u64 * element;
                        route.mode.to_string()
                    }
                    None => "moves nothing".into(),
                };
                *modes.entry(mode).or_default() += ranks;
            }
        }
    }
    let mut pictured = Vec::new();
    let mut rows = Vec::new();
    for (site, (operations, bytes, modes)) in &sites {
        let place = if site.line > 0 { site.to_string() } else { "not known".into() };
        pictured.push(Bar {
            name: place.clone(),
            parts: vec![*bytes as f64],
            label: format!("{} bytes", grouped(*bytes)),
        });
        let modes: Vec<String> =
            modes.iter().map(|(mode, count)| format!("{mode} {}", grouped(*count))).collect();
        rows.push(vec![
            Cell::text(place),
            Cell::text(source::line(site).unwrap_or_default()),
            Cell::count(*operations),
            Cell::count(*bytes),
            Cell::text(modes.join(", ")),
        ]);
    }
    pictured.sort_by(|a, b| b.parts[0].total_cmp(&a.parts[0]));
    pictured.truncate(BARS_MAX);
    let name = "Lines of the source".to_owned();
    View {
        id: format!("{id}lines"),
        picture: bars(&pictured, &["bytes"], &name),
        name,
        about: "The bytes that all ranks move through the operations called on each line.".into(),
        table: Table::of(vec!["line", "source", "operations", "bytes", "modes"], rows, 3),
    }
}

/// Shows measured times next to predicted times.
fn measurements(documents: &[MeasurementDocument]) -> View {
    let rows = || documents.iter().flat_map(|document| &document.rows);
    let mode = |row: &MeasurementRow| match row.chunk {
        Some(chunk) => format!("{}, chunks of {} KiB", row.prediction.mode, chunk / 1024),
        None => row.prediction.mode.clone(),
    };
    let bar = |row: &MeasurementRow| {
        let (measured, predicted) = (Nanos(row.measured), Nanos(row.prediction.prepared));
        Bar {
            name: format!("{}, {}", mode(row), row.transport),
            parts: vec![measured.0],
            label: format!("{} us, predicted {} us", micros(measured), micros(predicted)),
        }
    };
    let cells = |row: &MeasurementRow| {
        let PredictionRow { name, ranks, values, placement, prepared, .. } = &row.prediction;
        let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let ratio = row.measured / prepared;
        vec![
            Cell::text(name.clone()),
            Cell::count(*ranks as u64),
            Cell::text(values.join("; ")),
            Cell::text(placement.clone()),
            Cell::text(row.transport.clone()),
            Cell::text(mode(row)),
            Cell::time(Nanos(*prepared)),
            Cell::time(Nanos(row.measured)),
            Cell { text: format!("{ratio:.2}"), value: Some(ratio).filter(|ratio| ratio.is_finite()) },
            Cell { text: format!("{:.0} %", 100.0 * row.noise), value: Some(row.noise) },
        ]
    };
    let head = vec![
        "plan",
        "ranks",
        "values",
        "placement",
        "transport",
        "mode",
        "predicted us",
        "measured us",
        "ratio",
        "noise",
    ];
    let name = "Measured times".to_owned();
    View {
        id: "measured".into(),
        picture: bars(&rows().take(BARS_MAX).map(bar).collect::<Vec<_>>(), &["measured us"], &name),
        name,
        about: "The time of one run, of the slowest rank. Noise is the difference between the medians of \
                the odd and the even turns, relative to the measured time."
            .into(),
        table: Table::of(head, rows().map(cells).collect(), 7),
    }
}
