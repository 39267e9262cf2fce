//! [`Document`]: the output of the command with `--json`. `documents.schema.json` is its schema.

use crate::difference::{ChangeKind, Comparison, Effect};
use crate::plans::{Finding, FindingKind};
use crate::show::Part;
use fencepost_planner::conflicts::{Conflict, conflicts};
use fencepost_planner::explain::{Costs, Member, Route, cost, cost_at_fence, explain_rank};
use fencepost_planner::ids::{Id, Rank};
use fencepost_planner::ir::pattern::{Local, Operation, Site};
use fencepost_planner::machine::Machine;
use fencepost_runtime::Compiled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The format version. It is increased when a reader of the old format could misread new documents.
/// New keys do not increase it.
pub const FORMAT: u32 = 1;

/// A document: its format version, its kind, and the content of that kind. Times are in
/// nanoseconds, lengths in bytes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Document {
    /// The format version.
    pub format: u32,
    /// The content.
    #[serde(flatten)]
    pub content: Content,
}

/// The content of a document, by kind.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// A plan: its machine and options, and for each operation how it travels and why.
    Plan(PlanDocument),
    /// The differences between two plans.
    Difference(DifferenceDocument),
    /// The findings of a check of a folder of plans.
    Check(CheckDocument),
    /// The files of plans that were written.
    Written(WrittenDocument),
    /// A measured machine.
    Probe(ProbeDocument),
    /// Predicted times.
    Prediction(PredictionDocument),
    /// The plans that were verified, and the files that were refused.
    Verification(VerificationDocument),
    /// Measured times, next to predicted ones.
    Measurement(MeasurementDocument),
    /// A simulation of many steps of a plan.
    Simulation(SimulationDocument),
    /// The snapshots of a folder.
    Snapshots(SnapshotsDocument),
}

impl Content {
    /// Returns the document with this content, as text.
    ///
    /// # Panics
    /// Never: every document can be written.
    #[must_use]
    pub fn to_json(self) -> String {
        let document = Document { format: FORMAT, content: self };
        let text = serde_json::to_string_pretty(&document).expect("a document has only texts and numbers");
        text + "\n"
    }
}

/// Returns the schema of all documents, as text.
///
/// # Panics
/// Never: a schema can be written.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Document);
    serde_json::to_string_pretty(&schema).expect("a schema has only texts and numbers") + "\n"
}

/// A plan.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PlanDocument {
    /// The name of the superstep.
    pub name: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The digest that identifies the plan's schedules.
    pub digest: String,
    /// Which ranks share memory: `together`, `apart`, or the number of ranks on each host.
    pub placement: String,
    /// The name of the recipe; empty if there is none.
    pub recipe: String,
    /// The values of the recipe.
    pub values: BTreeMap<String, String>,
    /// The figures of the machine for which the plan was made.
    pub machine: BTreeMap<String, f64>,
    /// The requested mode.
    pub mode: String,
    /// The limit on the staging memory of a rank, if there was one.
    pub cap: Option<u64>,
    /// Its epochs.
    pub epochs: Vec<EpochDocument>,
}

/// An epoch of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct EpochDocument {
    /// The predicted time of the slowest rank.
    pub predicted: f64,
    /// The slowest rank.
    pub slowest: u32,
    /// A lower bound on the time of any schedule of these messages.
    pub bound: f64,
    /// The predicted time of the same messages at a fence that is not prepared.
    pub at_fence: f64,
    /// The largest staging memory of any rank.
    pub staging: u64,
    /// The classes. All ranks of a class do the same.
    pub classes: Vec<ClassDocument>,
    /// The operations that conflict.
    pub conflicts: Vec<ConflictDocument>,
}

/// A rank, which represents ranks of its class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClassDocument {
    /// The number of the class.
    pub class: u32,
    /// The rank.
    pub rank: u32,
    /// The number of ranks that this rank represents, itself included.
    pub ranks: usize,
    /// Its predicted time, by cause.
    pub terms: TermsDocument,
    /// The number of messages that it sends.
    pub messages: u64,
    /// The bytes in these messages.
    pub bytes: u64,
    /// The number of rounds.
    pub rounds: u64,
    /// Its staging buffers.
    pub staging: Vec<StagingDocument>,
    /// Its operations, in program order.
    pub operations: Vec<OperationDocument>,
}

/// A predicted time, by cause.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct TermsDocument {
    /// Packing, unpacking and copying.
    pub moving: f64,
    /// Frames that are sent and received.
    pub frames: f64,
    /// Bytes on the wire, in the direction with more bytes.
    pub wire: f64,
    /// The latency of the slowest frame that is awaited.
    pub latency: f64,
}

/// A buffer from which a rank sends messages.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct StagingDocument {
    /// The bytes of one copy.
    pub bytes: u64,
    /// The number of copies.
    pub copies: u64,
    /// The receiver's rank minus the sender's.
    pub peer: i64,
}

/// An operation.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct OperationDocument {
    /// The number of the operation among the operations of its rank.
    pub number: usize,
    /// Whether it is a put, a get or an accumulate.
    pub kind: String,
    /// The number of the accessed window among the windows of the superstep.
    pub window: usize,
    /// The elements of the target's window.
    pub remote: String,
    /// The elements of the origin's own window, unless the origin uses a buffer.
    pub local: Option<String>,
    /// The rank that the operation accesses, if there is one.
    pub target: Option<u32>,
    /// The bytes of its elements.
    pub bytes: u64,
    /// The place of the call, if it is known.
    pub call: Option<CallDocument>,
    /// How its elements travel.
    pub travels: TravelsDocument,
}

/// A place in the source.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CallDocument {
    /// The file, as the compiler names it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// How the elements of an operation travel.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum TravelsDocument {
    /// Not at all.
    Nothing {
        /// Why.
        why: String,
    },
    /// Within the memory of the rank.
    Own {
        /// Whether the elements are copied directly, and not through a buffer.
        copied: bool,
        /// Whether the requested mode was replaced, because it is unsafe or impossible here.
        instead: bool,
        /// The terms of the cost.
        costs: CostsDocument,
    },
    /// To or from another rank.
    Sent {
        /// The mode.
        mode: String,
        /// The round.
        round: u32,
        /// Whether the requested mode was replaced, because it is unsafe or impossible here.
        instead: bool,
        /// Whether the two ranks share memory. Only then was there a choice of modes.
        shares_memory: bool,
        /// The number of operations that share the frames, this one included.
        together: usize,
        /// The terms of the cost.
        costs: CostsDocument,
    },
}

/// The costs that are compared to choose a mode. A packed operation costs `pack` + `message` +
/// `unpack`. A directly copied operation costs `copy` + `entry_and_done`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CostsDocument {
    /// Packing.
    pub pack: f64,
    /// A message that carries only this operation.
    pub message: f64,
    /// Unpacking.
    pub unpack: f64,
    /// A direct copy.
    pub copy: f64,
    /// The two frames of a direct copy.
    pub entry_and_done: f64,
}

/// Two operations on the same elements whose order matters, or one operation that writes an element
/// twice.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ConflictDocument {
    /// The rank that owns the elements.
    pub rank: usize,
    /// The number of ranks that own elements with the same conflict. The conflicting ranks have the
    /// same distances from each of these owners.
    pub ranks: usize,
    /// The number of the window.
    pub window: usize,
    /// The first element.
    pub first: i64,
    /// One past the last element.
    pub end: i64,
    /// The conflict in words.
    pub text: String,
}

pub(crate) fn call(site: &Site) -> Option<CallDocument> {
    let Site { file, line, column } = site;
    (*line > 0).then(|| CallDocument { file: file.to_string(), line: *line, column: *column })
}

impl PlanDocument {
    /// Describes a part of a plan.
    #[must_use]
    pub fn new(compiled: &Compiled, part: &Part) -> Self {
        let made_for = compiled.made_for();
        let figures = made_for.machine.to_string();
        let figures = figures.lines().filter_map(|line| {
            let (key, value) = line.split_once(" = ")?;
            Some((key.to_owned(), value.parse().ok()?))
        });
        Self {
            name: compiled.name().into(),
            ranks: compiled.ranks(),
            digest: compiled.digest(),
            placement: compiled.placement().to_string(),
            recipe: made_for.recipe.clone(),
            values: made_for.values.iter().cloned().collect(),
            machine: figures.collect(),
            mode: made_for.options.mode.to_string(),
            cap: made_for.options.cap.map(|cap| cap.0),
            epochs: (0..compiled.schedules().len())
                .map(|epoch| EpochDocument::new(compiled, part, epoch))
                .collect(),
        }
    }
}

impl EpochDocument {
    fn new(compiled: &Compiled, part: &Part, epoch: usize) -> Self {
        let (schedule, machine) = (&compiled.schedules()[epoch], &compiled.made_for().machine);
        let all = cost(schedule, machine);
        let classes = part.ranks(schedule).into_iter().map(|(rank, class, ranks)| {
            let operations = schedule.classes[class].pattern.operations.values();
            ClassDocument::new(&explain_rank(schedule, Rank(rank), machine), ranks, operations, part)
        });
        Self {
            predicted: all.predicted.0,
            slowest: all.slowest,
            bound: all.bound.0,
            at_fence: cost_at_fence(schedule, machine).0.0,
            staging: all.peak.0,
            classes: classes.collect(),
            conflicts: conflicts(&compiled.patterns()[epoch]).iter().map(ConflictDocument::new).collect(),
        }
    }
}

impl ConflictDocument {
    fn new(conflict: &Conflict) -> Self {
        let Conflict { rank, ranks, window, elements, .. } = conflict;
        Self {
            rank: *rank,
            ranks: *ranks,
            window: *window,
            first: elements.start,
            end: elements.end,
            text: conflict.to_string(),
        }
    }
}

impl ClassDocument {
    fn new<'o>(
        member: &Member,
        ranks: usize,
        operations: impl Iterator<Item = &'o Operation>,
        part: &Part,
    ) -> Self {
        let Member { class, rank, terms, sent, staging, rows, .. } = member;
        let shown = operations.zip(rows).filter(|(operation, _)| part.has_line(&operation.site));
        Self {
            class: class.0,
            rank: *rank,
            ranks,
            terms: TermsDocument {
                moving: terms.moving.0,
                frames: terms.overhead.0,
                wire: terms.wire.0,
                latency: terms.latency.0,
            },
            messages: sent.messages,
            bytes: sent.bytes.0,
            rounds: sent.rounds,
            staging: staging
                .iter()
                .map(|one| StagingDocument { bytes: one.bytes.0, copies: one.copies, peer: one.peer.0 })
                .collect(),
            operations: shown
                .map(|(operation, row)| OperationDocument {
                    number: row.operation.index(),
                    kind: row.kind.to_string(),
                    window: operation.window.index(),
                    remote: operation.remote.to_string(),
                    local: match &operation.local {
                        Local::Buffer => None,
                        Local::Section { window, datatype } => Some(format!("{window} {datatype}")),
                    },
                    target: row.target,
                    bytes: row.bytes.0,
                    call: call(&row.site),
                    travels: travels(row.route),
                })
                .collect(),
        }
    }
}

fn travels(route: Route) -> TravelsDocument {
    let of = |costs: Costs| CostsDocument {
        pack: costs.pack.0,
        message: costs.message.0,
        unpack: costs.unpack.0,
        copy: costs.copy.0,
        entry_and_done: costs.entry_and_done.0,
    };
    match route {
        Route::Nothing(why) => TravelsDocument::Nothing { why: why.into() },
        Route::Own { copied, instead, costs } => TravelsDocument::Own { copied, instead, costs: of(costs) },
        Route::Sent { mode, round, instead, shared, together, costs } => TravelsDocument::Sent {
            mode: mode.to_string(),
            round,
            instead,
            shares_memory: shared,
            together,
            costs: of(costs),
        },
    }
}

/// The differences between two plans.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DifferenceDocument {
    /// Whether the whole plans were compared. Otherwise only a part was.
    pub is_whole: bool,
    /// The messages and the predicted time of all ranks, before and now.
    pub totals: [EffectDocument; 2],
    /// The differences between the plans as a whole, in words.
    pub whole: Vec<String>,
    /// The classes whose operations differ.
    pub classes: Vec<ClassDifferenceDocument>,
}

/// The messages that are sent, and the predicted time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct EffectDocument {
    /// The number of messages.
    pub messages: u64,
    /// The bytes in these messages.
    pub bytes: u64,
    /// The bytes of staging buffers. For several ranks, the largest number of any rank.
    pub staging: u64,
    /// The predicted time.
    pub predicted: f64,
}

/// The differences between two classes.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClassDifferenceDocument {
    /// The epoch.
    pub epoch: usize,
    /// The first rank that belongs to both classes.
    pub rank: u32,
    /// The number of ranks that belong to both classes.
    pub ranks: usize,
    /// The messages and the predicted time of each of these ranks, before and now.
    pub effects: [EffectDocument; 2],
    /// The operations that differ.
    pub changes: Vec<ChangeDocument>,
}

/// An operation that differs.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ChangeDocument {
    /// `added`, `removed`, or `travels` if the mode or the round of the operation differs.
    pub change: String,
    /// The operation in words.
    pub operation: String,
    /// The place of the call, if it is known.
    pub call: Option<CallDocument>,
    /// The mode and round of the operation before, if it moved any elements.
    pub before: Option<ModeDocument>,
    /// The mode and round of the operation now, if it moves any elements.
    pub now: Option<ModeDocument>,
}

/// How an operation travels.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ModeDocument {
    /// The mode.
    pub mode: String,
    /// The round.
    pub round: u32,
}

impl EffectDocument {
    fn new(effect: Effect) -> Self {
        let Effect { messages, bytes, staging, predicted } = effect;
        Self { messages, bytes, staging, predicted: predicted.0 }
    }
}

impl DifferenceDocument {
    /// Describes a comparison.
    #[must_use]
    pub fn new(comparison: &Comparison) -> Self {
        let mode = |(mode, round): (fencepost_planner::ir::pattern::Mode, u32)| ModeDocument {
            mode: mode.to_string(),
            round,
        };
        let classes = comparison.classes.iter().map(|class| ClassDifferenceDocument {
            epoch: class.epoch,
            rank: class.rank,
            ranks: class.ranks,
            effects: class.effects.map(EffectDocument::new),
            changes: class
                .changes
                .iter()
                .map(|change| {
                    let (name, before, now) = match change.kind {
                        ChangeKind::Added => ("added", None, None),
                        ChangeKind::Removed => ("removed", None, None),
                        ChangeKind::Travels { before, now } => ("travels", before, now),
                    };
                    ChangeDocument {
                        change: name.into(),
                        operation: change.operation.clone(),
                        call: call(&change.site),
                        before: before.map(mode),
                        now: now.map(mode),
                    }
                })
                .collect(),
        });
        let totals =
            [&comparison.totals[0], &comparison.totals[1]].map(|total| EffectDocument::new(total.effect));
        let Comparison { is_whole, whole, .. } = comparison;
        Self { is_whole: *is_whole, totals, whole: whole.clone(), classes: classes.collect() }
    }
}

/// The files of plans that were written or removed. If there are none, all were up to date.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct WrittenDocument {
    /// The files that were written.
    pub wrote: Vec<String>,
    /// The files that were removed, because no recipe makes them.
    pub removed: Vec<String>,
}

impl WrittenDocument {
    /// Describes files that have changed.
    #[must_use]
    pub fn new(changed: &[PathBuf]) -> Self {
        let (wrote, removed): (Vec<_>, Vec<_>) = changed.iter().partition(|path| path.exists());
        let names = |paths: Vec<&PathBuf>| paths.iter().map(|path| path.display().to_string()).collect();
        Self { wrote: names(wrote), removed: names(removed) }
    }
}

/// A measured machine. Times are in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ProbeDocument {
    /// The place and the time of the measurement.
    pub place: String,
    /// The model: each figure by its key.
    pub machine: BTreeMap<String, f64>,
    /// The model as the text of a file.
    pub text: String,
    /// The exchanges that were timed.
    pub exchanges: Vec<ExchangeDocument>,
}

/// An exchange that was timed.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ExchangeDocument {
    /// The name of the exchange.
    pub name: String,
    /// The measured time.
    pub measured: f64,
    /// The time that the model predicts.
    pub predicted: f64,
}

impl ProbeDocument {
    /// Describes a measured machine.
    #[must_use]
    pub fn new(place: &str, machine: &Machine, exchanges: Vec<ExchangeDocument>) -> Self {
        let text = machine.to_string();
        let figure = |line: &str| {
            let (key, value) = line.split('#').next()?.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().parse().ok()?))
        };
        Self { place: place.into(), machine: text.lines().filter_map(figure).collect(), text, exchanges }
    }
}

/// The findings of a check of a folder of plans.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CheckDocument {
    /// Whether every plan is up to date.
    pub up_to_date: bool,
    /// The findings.
    pub findings: Vec<FindingDocument>,
}

/// A finding of a check.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct FindingDocument {
    /// The name of the recipe, or of a file that no recipe makes.
    pub name: String,
    /// `not_compiled`, `missing`, `unreadable`, `pattern`, `schedule`, `made_for`, `text`, `stray`
    /// or `moved`. If it is `moved`, the plan is up to date.
    pub finding: String,
    /// The finding in words.
    pub text: String,
}

impl CheckDocument {
    /// Describes findings.
    #[must_use]
    pub fn new(findings: &[Finding]) -> Self {
        let document = |finding: &Finding| FindingDocument {
            name: finding.name.clone(),
            finding: match finding.kind {
                FindingKind::NotCompiled => "not_compiled",
                FindingKind::Missing => "missing",
                FindingKind::Unreadable => "unreadable",
                FindingKind::Pattern => "pattern",
                FindingKind::Schedule => "schedule",
                FindingKind::MadeFor => "made_for",
                FindingKind::Text => "text",
                FindingKind::Stray => "stray",
                FindingKind::Moved => "moved",
            }
            .into(),
            text: finding.text.clone(),
        };
        Self {
            up_to_date: findings.iter().all(Finding::is_harmless),
            findings: findings.iter().map(document).collect(),
        }
    }
}

/// Predicted times.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PredictionDocument {
    /// One row for each plan.
    pub rows: Vec<PredictionRow>,
}

/// The predicted times of one plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PredictionRow {
    /// The name of the superstep.
    pub name: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The values of the recipe.
    pub values: BTreeMap<String, String>,
    /// Which ranks share memory: `together`, `apart`, or the number of ranks on each host.
    pub placement: String,
    /// The machine model: the path of its file, `default`, `the plan's`, or `the model` that
    /// `fencepost compare` used.
    pub machine: String,
    /// The mode.
    pub mode: String,
    /// The predicted time of the prepared superstep.
    pub prepared: f64,
    /// The predicted time of the same messages at a fence that is not prepared.
    pub at_fence: f64,
    /// A lower bound on the time of any schedule of these messages.
    pub bound: f64,
    /// The messages that all ranks send.
    pub messages: u64,
    /// The bytes in these messages.
    pub bytes: u64,
}

/// Measured times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementDocument {
    /// One row for each plan and mode.
    pub rows: Vec<MeasurementRow>,
}

/// The measured time of one plan in one mode.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementRow {
    /// The plan, the mode, and the predicted times.
    #[serde(flatten)]
    pub prediction: PredictionRow,
    /// The chunk size of pipelined messages, unless it is the machine model's.
    pub chunk: Option<u64>,
    /// How the ranks communicated: `local`, `shm` or `tcp`.
    pub transport: String,
    /// The median time of a run, on the slowest rank.
    pub measured: f64,
    /// The difference between the medians of the odd and the even turns, as a fraction of
    /// `measured`.
    pub noise: f64,
}

impl MeasurementDocument {
    /// Reads a document of measured times.
    ///
    /// # Errors
    /// If the text is not such a document. The error states why.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let whole: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_format = whole.get("format").and_then(serde_json::Value::as_u64) == Some(FORMAT.into());
        let kind = whole.get("kind").and_then(serde_json::Value::as_str);
        match kind {
            Some("measurement") if is_format => {
                serde_json::from_value(whole).map_err(|error| error.to_string())
            }
            Some("measurement") => Err(format!("this document is not of format {FORMAT}")),
            Some(kind) => Err(format!(
                "this is a document of the kind {kind}: give one that `fencepost compare --json` printed"
            )),
            None => Err("this is no document that `fencepost compare --json` printed".into()),
        }
    }
}

/// A simulation of many steps of a plan. Times are whole nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SimulationDocument {
    /// The name of the superstep.
    pub name: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of steps.
    pub steps: u64,
    /// The number of steps that were followed. Each later step takes as long as the last of them.
    pub followed: u64,
    /// The time at which the last rank ends.
    pub end: u64,
    /// The rank that ends last.
    pub last: u32,
    /// The work and the frames that determine the end.
    pub path: PathDocument,
    /// The ranks that wait longest.
    pub waits: Vec<WaitDocument>,
    /// The largest latency at which the run stays within the tolerance. It is the latency between
    /// hosts, or that of shared memory if all ranks share memory. Absent if the run stays within
    /// the tolerance at every latency up to a second.
    pub latency_tolerated: Option<f64>,
}

/// The work and the frames that determine the end of a run. If a key has two values, the first is
/// for links in shared memory, and the second for links between hosts.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PathDocument {
    /// The number of steps that the path goes back from the end.
    pub steps: u64,
    /// Work.
    pub work: u64,
    /// Packing, unpacking and copying.
    pub moving: u64,
    /// Overheads of frames.
    pub overhead: [u64; 2],
    /// Bytes on the wire.
    pub wire: [u64; 2],
    /// Latencies.
    pub latency: [u64; 2],
    /// The number of latencies on the path. If each latency grows by 1 ns, the end is delayed by
    /// this many ns.
    pub latencies: [u64; 2],
    /// The number of overheads on the path.
    pub overheads: [u64; 2],
    /// The number of bytes on the path.
    pub bytes: [u64; 2],
}

/// The waits of a rank.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct WaitDocument {
    /// The rank.
    pub rank: u32,
    /// The time that the rank waits in all steps that were followed.
    pub total: u64,
    /// The longest wait.
    pub longest: u64,
    /// The rank that is awaited in the longest wait.
    pub awaited: u32,
    /// The step of the longest wait.
    pub step: u64,
    /// Where an operation between the two ranks is called, if that is known.
    pub call: Option<CallDocument>,
}

/// The plans that were verified, and the files that were refused.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct VerificationDocument {
    /// One row for each file.
    pub plans: Vec<VerificationRow>,
}

/// A file that was verified, or refused.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct VerificationRow {
    /// The path.
    pub file: String,
    /// The name of the superstep, if the plan is verified.
    pub name: Option<String>,
    /// The number of ranks.
    pub ranks: Option<usize>,
    /// The number of epochs.
    pub epochs: Option<usize>,
    /// The digest that identifies the schedules.
    pub digest: Option<String>,
    /// Why the file was refused, if it was.
    pub error: Option<String>,
}

impl VerificationRow {
    /// Describes a plan that was verified.
    #[must_use]
    pub fn of(file: String, plan: &Compiled) -> Self {
        Self {
            file,
            name: Some(plan.name().into()),
            ranks: Some(plan.ranks()),
            epochs: Some(plan.schedules().len()),
            digest: Some(plan.digest()),
            error: None,
        }
    }

    /// Describes a file that was refused.
    #[must_use]
    pub fn refused(file: String, why: &str) -> Self {
        Self { file, name: None, ranks: None, epochs: None, digest: None, error: Some(why.into()) }
    }

    /// Returns the line to print for a plan that was verified, or `None` for a file that was
    /// refused.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let Self { file, name, ranks, epochs, digest, .. } = self;
        let (name, digest) = (name.as_ref()?, digest.as_ref()?);
        let epochs = epochs.filter(|epochs| *epochs > 1);
        let epochs = epochs.map_or(String::new(), |epochs| format!(", {epochs} epochs"));
        Some(format!("{file}: verified: {name} on {} ranks{epochs}, digest {digest}", (*ranks)?))
    }
}

/// The snapshots of a folder, the latest first.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SnapshotsDocument {
    /// One row for each snapshot.
    pub snapshots: Vec<SnapshotRow>,
}

/// A snapshot.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct SnapshotRow {
    /// The step after which it was taken.
    pub step: u64,
    /// The program, if the manifest can be read.
    pub program: Option<String>,
    /// The time at which the snapshot was complete, in seconds since 1970 (UTC).
    pub taken: Option<u64>,
    /// The number of ranks that took the snapshot.
    pub ranks: Option<usize>,
    /// The number of ranks whose files are here, if this is the folder of one of several hosts.
    /// Files of other ranks may be in the folders of other hosts.
    pub ranks_here: Option<usize>,
    /// The number of bytes of all items.
    pub bytes: Option<u64>,
    /// The items by name, each with a description.
    pub items: BTreeMap<String, String>,
    /// The errors that were found, each with its file. The contents are compared only with
    /// `--verify`.
    pub errors: Vec<String>,
}
