//! Splits a world: decides which ranks are in which new world, and which ranks lay out the memory
//! of each new world.

use crate::posts::state::ports;
use crate::protocol::state::stalls::Stalls;
use crate::state::call::{Call, codes};
use crate::state::registry::new_world;
use crate::state::world::{World, WorldCore};
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::Reader;
use fencepost_transport::{Channels, CreateJoin, Created, Endpoint, Number, Topology};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

impl World {
    /// Splits the world. Ranks with the same colour form a new world, in which they are ordered by
    /// key, then by rank in this world.
    ///
    /// A rank with the colour `None` joins no new world and gets `None`.
    ///
    /// # Errors
    /// `RMA_SYNC` if another rank is in another call; `NO_MEM` as [`window`](Self::window).
    ///
    /// # Source
    /// MPI 4.1, section 7.4.2 (MPI_COMM_SPLIT).
    #[doc(alias = "MPI_Comm_split")]
    #[track_caller]
    pub fn split(&self, colour: Option<u32>, key: i64) -> Result<Option<World>> {
        let hash = codes::SPLIT ^ u64::from(self.core().calls.made.get()) << 8;
        let call = Call::named(hash, "World::split");
        self.core().calls.begin();
        self.core().handler.report(self.split_in(colour, key, &call))
    }

    fn split_in(&self, colour: Option<u32>, key: i64, call: &Call) -> Result<Option<World>> {
        let core = self.core();
        let (number, attempt) = (core.next_made(call)?, core.calls.position());
        let members = members_of(core, call, colour, key)?;
        core.calls.made.set(number + 1);
        ports::close(number, None, &mut core.endpoint.borrow_mut()); // a split has a number, and uses no ports
        let founded = core.meet(call, &found(core, attempt, &members))?;
        let Some(index) = members.iter().position(|&rank| rank == core.rank) else { return Ok(None) };
        let (id, endpoint) = join(core, call, attempt, (&members, index), &founded)?;
        let (registry, kind) = (core.registry.clone(), core.reach.kind.clone());
        let modes = (core.choices.mode.get(), core.census.chosen);
        let world = World::new(id, endpoint, registry, kind, core.machine, modes);
        world.on_error(core.handler.get());
        inherit(world.core(), core, &members);
        Ok(Some(world))
    }
}

/// Exchanges colours and keys, and returns the ranks that have this rank's colour, in the order of
/// the new world.
fn members_of(core: &WorldCore, call: &Call, colour: Option<u32>, key: i64) -> Result<Vec<usize>> {
    let all = core.meet(call, bytemuck::bytes_of(&[colour.map_or(-1, i64::from), key]))?;
    let mut members: Vec<(i64, usize)> = Vec::new();
    for (rank, bytes) in all.iter().enumerate() {
        let Some([theirs, key]) = Reader(bytes).take::<[i64; 2]>() else { continue };
        if colour.is_some_and(|colour| theirs == i64::from(colour)) {
            members.push((key, rank));
        }
    }
    members.sort_unstable();
    Ok(members.into_iter().map(|(_, rank)| rank).collect())
}

/// Returns the first member on this rank's host. That member lays out the host's part of the new
/// world.
fn leader(core: &WorldCore, members: &[usize]) -> Option<usize> {
    let endpoint = core.endpoint.borrow();
    let host = endpoint.host(core.rank);
    members.iter().copied().find(|&member| endpoint.host(member) == host)
}

/// Lays out the new world if this rank is its first member, or the host's part of the new world if
/// this rank is the [leader] on its host. Returns the numbers that the transport assigned, which
/// the other members need to join. If the transport made endpoints instead of a number, the
/// registry keeps the endpoints.
fn found(core: &WorldCore, attempt: u64, members: &[usize]) -> Vec<u8> {
    let leads = members.first() == Some(&core.rank);
    let leads_host = members.contains(&core.rank) && leader(core, members) == Some(core.rank);
    if !leads && !leads_host {
        return vec![FOUNDED_HERE];
    }
    match core.endpoint.borrow_mut().create(members) {
        Ok(Created::Number(number)) => [&[FOUNDED], bytemuck::bytes_of(&number)].concat(),
        Ok(Created::Ends(ends)) => {
            if leads {
                core.registry.give_ends((core.id, attempt), members.iter().copied().zip(ends));
            }
            vec![FOUNDED_HERE]
        }
        Err(error) => [&[NOT_FOUNDED], error.to_string().as_bytes()].concat(),
    }
}

/// Joins the new world. `founded` has the result of [`found`] for each rank, and this rank is
/// member `index`. Returns the world's number, the number of ranks of this process that use that
/// number, and the endpoint of this rank.
///
/// # Errors
/// `SIZE` if a member could not lay out the new world.
fn join(
    core: &WorldCore,
    call: &Call,
    attempt: u64,
    (members, index): (&[usize], usize),
    founded: &[Vec<u8>],
) -> Result<((u64, usize), Endpoint)> {
    let refused = |&&member: &&usize| matches!(founded[member].first(), Some(&NOT_FOUNDED) | None);
    if let Some(&founder) = members.iter().find(refused) {
        let why = String::from_utf8_lossy(founded[founder].get(1..).unwrap_or_default()).into_owned();
        let message = format!("rank {founder} could not lay out a new world: {why}");
        return Err(call.error(core, ErrorClass::Size, message));
    }
    let bug = |what: &str| call.error(core, ErrorClass::Intern, format!("internal error: {what}"));
    let number = |founder: usize| {
        let Some((&FOUNDED, numbers)) = founded[founder].split_first() else { return Ok(None) };
        let number = bytemuck::try_pod_read_unaligned::<Number>(numbers);
        number.map(Some).map_err(|_| bug("a rank sent an invalid number of a new world"))
    };
    let leader = leader(core, members).unwrap_or(members[0]);
    if let (Some(Number { world, .. }), Some(Number { part, .. })) = (number(members[0])?, number(leader)?) {
        let end = core.endpoint.borrow_mut().join(Number { world, part }, members, index)?;
        return Ok(((new_world(), 1), end));
    }
    let end = core.registry.take_end((core.id, attempt), core.rank);
    let (id, end) = end.ok_or_else(|| bug("no end was laid out for this rank of a new world"))?;
    Ok(((id, members.len()), end))
}

/// Gives `part` the settings of `core`, and adds it to the parts of `core`. The ranks of `part` are
/// the `members` of `core`.
fn inherit(part: &Rc<WorldCore>, core: &Rc<WorldCore>, members: &[usize]) {
    part.supersteps.check(core.supersteps.checks());
    part.checks.set(core.checks.checking.borrow().clone());
    part.checks.clock.split_off(&core.checks.clock, core.size, members);
    part.choices.plans.set(core.choices.plans.get());
    part.reports.explains.set(core.reports.explains.get());
    part.messages.limits.set(core.messages.limits.get());
    part.choices.order.set(core.choices.order.get());
    let Stalls { settings, waits } = &*core.stalls.borrow();
    *part.stalls.borrow_mut() = Stalls { settings: settings.clone(), waits: waits.of(members) };
    let hosts = members.iter().filter_map(|&member| core.reach.host_of(member));
    *part.reach.hosts.borrow_mut() = hosts.collect();
    let above = core.life.above.borrow().iter().cloned().chain([Rc::downgrade(core)]).collect();
    *part.life.above.borrow_mut() = above;
    let parts = core.life.parts.borrow().clone();
    parts.borrow_mut().retain(|other| other.strong_count() > 0);
    parts.borrow_mut().push(Rc::downgrade(part));
    *part.life.parts.borrow_mut() = parts;
    if let Some(recorder) = core.reports.recorder.get() {
        let ranks = (0..members.len()).map(|rank| part.stalls.borrow().waits.rank(rank) as u32);
        let ranks: Vec<u32> = ranks.collect();
        // All members compute the same number, and hardly any other world has this number.
        let mut hash = DefaultHasher::new();
        (&ranks, core.calls.made.get(), core.reports.traced_as.get()).hash(&mut hash);
        part.reports.traced_as.set((hash.finish() as u32 & 0xff_ffff) | 1);
        if let Some(log) = recorder.frames(part.reports.traced_as.get(), ranks) {
            part.endpoint.borrow_mut().record(log);
        }
        drop(part.reports.recorder.set(recorder.clone()));
    }
    part.reports.explained.borrow_mut().calls = core.reports.explained.borrow().calls.clone();
    *part.windows.unfenced.borrow_mut() = core.windows.unfenced.borrow().clone();
}

/// The first byte that a rank sends about a new world if the number of the world follows.
const FOUNDED: u8 = 1;
/// The first byte if no number follows: the registry has the endpoints, or this rank lays out
/// nothing.
const FOUNDED_HERE: u8 = 2;
/// The first byte if the world was not laid out. The reason follows.
const NOT_FOUNDED: u8 = 0;
