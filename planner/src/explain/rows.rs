//! [`ExplainedPlan`]: how each operation of a schedule travels, and why. `Display` writes it as
//! text.

use super::{Cost, Terms, cost, cost_at_fence, firsts, number_of};
use crate::census::Census;
use crate::element::ElementType;
use crate::ids::{ClassId, Delta, OperationId, Rank};
use crate::ir::pattern::{Kind, Local, Mode, Operation, Site, Sync};
use crate::ir::schedule::{Instruction, Program, Routing, Schedule};
use crate::ir::transfers::Side;
use crate::machine::Machine;
use crate::units::{Bytes, Nanos};
use std::fmt;

/// How the operations of one epoch travel, and why: mode, message, round, costs, and the line of
/// the call. A superstep that could not be compiled has no schedule to explain: its error was
/// returned earlier.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplainedPlan {
    /// The name of the superstep.
    pub name: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The number of ranks that need not run the superstep. `None` unless the superstep
    /// synchronises by posts and starts.
    pub idle: Option<usize>,
    /// The predicted time of the schedule, and the lower bound of that time.
    pub cost: Cost,
    /// The predicted time of the same messages in an epoch that is not prepared.
    pub at_fence: Nanos,
    /// The census of that epoch.
    pub census: Census,
    /// The first rank of each class.
    pub members: Vec<Member>,
}

/// A rank, as a member of its class: what it sends, and where each of its operations goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// The class.
    pub class: ClassId,
    /// The rank.
    pub rank: u32,
    /// The number of ranks that this rank represents, itself included.
    pub ranks: usize,
    /// Its predicted time, by cause.
    pub terms: Terms,
    /// What it sends.
    pub sent: Sent,
    /// Its buffers.
    pub staging: Vec<Staging>,
    /// Its operations, in program order.
    pub rows: Vec<Row>,
}

/// What a rank sends in one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sent {
    /// The number of messages.
    pub messages: u64,
    /// The bytes in them.
    pub bytes: Bytes,
    /// The number of rounds in which they are sent.
    pub rounds: u64,
}

/// A buffer from which a rank sends messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Staging {
    /// The bytes of one copy.
    pub bytes: Bytes,
    /// The number of copies.
    pub copies: u64,
    /// The receiver, relative to the rank.
    pub peer: Delta,
}

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The number of the operation on its rank.
    pub operation: OperationId,
    /// Whether the operation is a put, a get or an accumulate.
    pub kind: Kind,
    /// The bytes of its elements.
    pub bytes: Bytes,
    /// The rank that the operation accesses, if it has a target.
    pub target: Option<u32>,
    /// The line of the call; line 0 if it is not known.
    pub site: Site,
    /// How its elements travel.
    pub route: Route,
}

/// How the elements of an operation travel.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Route {
    /// Not at all, for the reason that the text gives.
    Nothing(&'static str),
    /// Within the memory of their rank.
    Own {
        /// Whether the elements are copied directly. Otherwise they go through a buffer, since the
        /// operation reads elements that are also written.
        copied: bool,
        /// Whether another mode was requested but is not safe or not possible here.
        instead: bool,
        /// The terms of the cost.
        costs: Costs,
    },
    /// To or from another rank.
    Sent {
        /// The mode.
        mode: Mode,
        /// The round.
        round: u32,
        /// Whether another mode was requested but is not safe or not possible here.
        instead: bool,
        /// Whether the two ranks share memory, so that a direct copy could be chosen.
        shared: bool,
        /// The number of operations that share the frames, this one included.
        together: usize,
        /// The terms of the cost if the elements are packed, and if they are copied directly.
        costs: Costs,
    },
}

/// The terms by which the mode of an operation is chosen. A packed operation costs the sum of
/// `pack`, `message` and `unpack`. A direct copy costs the sum of `copy` and `entry_and_done`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// Packing.
    pub pack: Nanos,
    /// The message, if no other operation shares it.
    pub message: Nanos,
    /// Unpacking.
    pub unpack: Nanos,
    /// A direct copy.
    pub copy: Nanos,
    /// The two frames of a direct copy.
    pub entry_and_done: Nanos,
}

/// Explains how each operation of each class travels, and why. Also returns the predicted cost with
/// its lower bound.
///
/// # Cost
/// Linear in ranks, and in the operations of the classes.
pub fn explain(schedule: &Schedule, machine: &Machine) -> ExplainedPlan {
    let is_idle = |class: &&ClassId| schedule.classes[**class].instructions.is_empty();
    let idle = || schedule.class_of.iter().filter(is_idle).count();
    let (at_fence, census) = cost_at_fence(schedule, machine);
    let count = schedule.ranks_of_classes();
    let members = firsts(schedule).map(|(rank, _)| {
        let ranks = count[schedule.class_of[rank as usize]] as usize;
        Member::of(schedule, Rank(rank), ranks, machine)
    });
    ExplainedPlan {
        name: schedule.name.clone(),
        ranks: schedule.class_of.len(),
        idle: (schedule.sync == Sync::Pscw).then(idle),
        cost: cost(schedule, machine),
        at_fence,
        census,
        members: members.collect(),
    }
}

/// Explains one rank alone: what it sends, in how many rounds, and where each operation goes.
pub fn explain_rank(schedule: &Schedule, rank: Rank, machine: &Machine) -> Member {
    Member::of(schedule, rank, 1, machine)
}

impl Member {
    fn of(schedule: &Schedule, rank: Rank, ranks: usize, machine: &Machine) -> Self {
        let class = schedule.class_of[rank.0 as usize];
        let program = &schedule.classes[class];
        let buffers = program.buffers.values().map(|buffer| Staging {
            bytes: Bytes(buffer.bytes),
            copies: u64::from(buffer.copies),
            peer: buffer.peer,
        });
        let rows = program.pattern.operations.iter();
        Self {
            class,
            rank: rank.0,
            ranks,
            terms: Terms::of(schedule, program, rank.0, machine),
            sent: Sent::of(program),
            staging: buffers.collect(),
            rows: rows
                .map(|(id, operation)| row(schedule, (program, rank), (id, operation), machine))
                .collect(),
        }
    }

    /// Returns a line of text with the predicted time by cause.
    fn headline(&self) -> String {
        let Self { class, rank, ranks, terms, .. } = self;
        let others = if *ranks > 1 { format!(" and {} like it", ranks - 1) } else { String::new() };
        let us = |nanos: Nanos| format!("{:.2}", nanos.0 / 1e3);
        format!(
            "class {class}: rank {rank}{others}: {} us = moving {} + frames {} + wire {} + latency {}",
            us(terms.predicted()),
            us(terms.moving),
            us(terms.overhead),
            us(terms.wire),
            us(terms.latency),
        )
    }

    /// Returns a line of text with the buffers.
    fn buffers(&self) -> String {
        let total: u64 = self.staging.iter().map(|buffer| buffer.bytes.0 * buffer.copies).sum();
        let each = self
            .staging
            .iter()
            .map(|Staging { bytes, copies, peer }| format!("{} B x{copies} to {peer}", bytes.0));
        let each: Vec<String> = each.collect();
        if each.is_empty() { "no staging".into() } else { format!("staging {total} B: {}", each.join(", ")) }
    }
}

impl Sent {
    /// Returns the sum of what all ranks send, with the largest number of rounds of any rank.
    pub fn by_all(schedule: &Schedule) -> Self {
        let mut all = Self::default();
        for (program, ranks) in schedule.classes.values().zip(schedule.ranks_of_classes().values()) {
            let Self { messages, bytes, rounds } = Self::of(program);
            all.messages += messages * ranks;
            all.bytes.0 += bytes.0 * ranks;
            all.rounds = all.rounds.max(rounds);
        }
        all
    }

    fn of(program: &Program) -> Self {
        let mut sent = Self::default();
        for instruction in &program.instructions {
            if let Instruction::Send { bytes, round, .. } = instruction {
                sent.messages += 1;
                sent.bytes.0 += bytes;
                sent.rounds = sent.rounds.max(u64::from(round.0) + 1);
            }
        }
        sent
    }
}

fn row(
    schedule: &Schedule,
    (program, rank): (&Program, Rank),
    (id, operation): (OperationId, &Operation),
    machine: &Machine,
) -> Row {
    let target = operation.target.and_then(|delta| delta.from(rank, schedule.class_of.len() as u32));
    let element = schedule.windows[operation.window];
    let bytes = operation.remote.size() as u64 * u64::from(element.size);
    let route = match program.routes.get(id).copied().flatten() {
        None => Route::Nothing(nothing(operation)),
        Some(route) => {
            let shared = target.is_some_and(|target| schedule.placement.share(rank.0, target.0));
            let costs = Costs::of(operation, element, (shared, bytes), machine);
            let (mode, instead) = (route.mode, route.instead);
            if target.is_none() || operation.target == Some(Delta::SELF) {
                Route::Own { copied: mode == Mode::Direct, instead, costs }
            } else {
                let together = together(program, operation, route);
                Route::Sent { mode, round: route.round.0, instead, shared, together, costs }
            }
        }
    };
    let target = target.map(|target| target.0);
    Row {
        operation: id,
        kind: operation.kind,
        bytes: Bytes(bytes),
        target,
        site: operation.site.clone(),
        route,
    }
}

/// Returns the number of operations that share the frames of this one.
fn together(program: &Program, operation: &Operation, route: Routing) -> usize {
    let shares_frames = |(id, other): (OperationId, &Operation)| {
        let same_way = program.routes[id].is_some_and(|other| {
            other.mode == route.mode && (other.round == route.round || route.mode == Mode::Direct)
        });
        same_way
            && other.target == operation.target
            && (other.kind == Kind::Get) == (operation.kind == Kind::Get)
    };
    program.pattern.operations.iter().filter(|&row| shares_frames(row)).count()
}

fn nothing(operation: &Operation) -> &'static str {
    match (operation.target, operation.remote.size()) {
        (None, _) => "it has no target",
        (_, 0) => "it has no elements",
        _ => "later puts of this rank or another replace all of it",
    }
}

impl Costs {
    fn of(
        operation: &Operation,
        element: ElementType,
        (shared, bytes): (bool, u64),
        machine: &Machine,
    ) -> Self {
        let remote = Side::Window { window: operation.window, datatype: operation.remote.clone() };
        let local = match &operation.local {
            Local::Section { window, datatype } => {
                Side::Window { window: *window, datatype: datatype.clone() }
            }
            Local::Buffer => {
                Side::Operation { operation: OperationId(0), first: 0, count: operation.remote.size() }
            }
        };
        let (from, to) = if operation.kind == Kind::Get { (&remote, &local) } else { (&local, &remote) };
        // Assumes that the two ranks send each other equally many bytes.
        let machine = &machine.while_moving(2.0 * bytes as f64);
        Self {
            pack: machine.pack(from, element.size),
            message: machine.message(shared, bytes),
            unpack: machine.unpack(to, element.size),
            copy: machine.copy(&remote, &local, element.size),
            entry_and_done: machine.entry_and_done(),
        }
    }
}

impl fmt::Display for ExplainedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, ranks, idle, cost, at_fence, census, members } = self;
        writeln!(f, "{name}: {ranks} ranks in {} classes", members.len())?;
        if let Some(idle) = idle {
            writeln!(f, "posts and starts between partners; {idle} ranks need not run it")?;
        }
        writeln!(f, "{cost}")?;
        writeln!(f, "not prepared: {:.2} us, with a {census} census", at_fence.0 / 1e3)?;
        for member in members {
            writeln!(f, "\n{}\n  {}", member.headline(), member.buffers())?;
            member.rows.iter().try_for_each(|row| writeln!(f, "  {row}"))?;
        }
        Ok(())
    }
}

/// Writes the explanation of a rank, with each line indented.
impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sent { messages, bytes, rounds } = self.sent;
        let (messages, rounds) = (number_of(messages, "message"), number_of(rounds, "round"));
        writeln!(f, "  sends {messages}, {} bytes, in {rounds}\n  {}", bytes.0, self.headline())?;
        self.rows.iter().try_for_each(|row| writeln!(f, "  {row}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, kind, bytes, target, site, route } = self;
        write!(f, "{operation} {kind} of {} B with ", bytes.0)?;
        match target {
            Some(target) => write!(f, "rank {target}")?,
            None => f.write_str("no rank")?,
        }
        if site.line > 0 {
            write!(f, ", {site}")?;
        }
        write!(f, ": {route}")
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = |instead: bool| match instead {
            true => " (another mode was asked for, which is not safe or not possible here)",
            false => "",
        };
        match *self {
            Route::Nothing(why) => write!(f, "moves nothing, {why}"),
            Route::Own { copied, instead, costs: Costs { pack, unpack, .. } } => {
                let how = if copied { "copied" } else { "through a buffer, since it reads what is written" };
                write!(f, "{how}{}; pack {:.0} + unpack {:.0} ns", asked(instead), pack.0, unpack.0)
            }
            Route::Sent { mode, round, instead, shared, together, costs } => {
                write!(f, "{}, round {round}{}; ", crate::text::mode(mode), asked(instead))?;
                let share = if together > 1 { format!(" (of {together} operations)") } else { String::new() };
                let is_direct = mode == Mode::Direct;
                let (packed, direct) = if is_direct { ("", &share[..]) } else { (&share[..], "") };
                let Costs { pack, message, unpack, copy, entry_and_done } = costs;
                let packed = format!(
                    "pack {:.0} + message {:.0}{packed} + unpack {:.0} ns",
                    pack.0, message.0, unpack.0
                );
                let direct =
                    format!("copy {:.0} + entry and done {:.0}{direct} ns", copy.0, entry_and_done.0);
                match (is_direct, shared) {
                    (true, _) => write!(f, "{direct}, against {packed}"),
                    (false, true) => write!(f, "{packed}, against {direct}"),
                    (false, false) => f.write_str(&packed),
                }
            }
        }
    }
}
