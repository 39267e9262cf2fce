//! Splits a world: decides which ranks are in which part, and where the memory of each part is laid
//! out.

use crate::state::call::{Call, codes};
use crate::state::ports;
use crate::state::registry::new_world;
use crate::state::stalls::Stalls;
use crate::state::world::World;
use fencepost_planner::{ErrorClass, Result};
use fencepost_transport::bytes::Reader;
use fencepost_transport::{CreateJoin, Created, Number, Topology};
use std::rc::Rc;

impl World {
    /// Splits the world: ranks with the same colour make a new world, ordered by key, then by rank
    /// in this world.
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
        let hash = codes::SPLIT ^ u64::from(self.core().made.get()) << 8;
        let call = Call::named(hash, "World::split");
        self.core().calls.begin();
        self.core().handler.report(self.split_in(colour, key, &call))
    }

    fn split_in(&self, colour: Option<u32>, key: i64, call: &Call) -> Result<Option<World>> {
        let core = self.core();
        let (number, attempt) = (core.next_made(call)?, core.calls.position());
        let all = core.meet(call, bytemuck::bytes_of(&[colour.map_or(-1, i64::from), key]))?;
        core.made.set(number + 1);
        ports::close(number, None, &mut core.endpoint.borrow_mut()); // a split has a number, and uses no ports
        let mut members: Vec<(i64, usize)> = Vec::new();
        for (rank, bytes) in all.iter().enumerate() {
            let Some([theirs, key]) = Reader(bytes).take::<[i64; 2]>() else { continue };
            if colour.is_some_and(|colour| theirs == i64::from(colour)) {
                members.push((key, rank));
            }
        }
        members.sort_unstable();
        let members: Vec<usize> = members.into_iter().map(|(_, rank)| rank).collect();
        // The first member lays out the new world, and the first on each host lays out its part of
        // it. They publish where: as numbers that the transport gave, or else in the registry.
        let mut founded = vec![FOUNDED_HERE];
        let first = |host: usize| {
            let endpoint = core.endpoint.borrow();
            members.iter().copied().find(|&member| endpoint.host(member) == host)
        };
        let host = core.endpoint.borrow().host(core.rank);
        let leads = members.first() == Some(&core.rank);
        if leads || members.contains(&core.rank) && first(host) == Some(core.rank) {
            match core.endpoint.borrow_mut().create(&members) {
                Ok(Created::Number(number)) => {
                    founded = [&[FOUNDED], bytemuck::bytes_of(&number)].concat();
                }
                Ok(Created::Ends(_)) if !leads => {}
                Ok(Created::Ends(ends)) => {
                    core.registry.give_ends((core.id, attempt), members.iter().copied().zip(ends));
                }
                Err(error) => founded = [&[NOT_FOUNDED], error.to_string().as_bytes()].concat(),
            }
        }
        let all = core.meet(call, &founded)?;
        let Some(index) = members.iter().position(|&rank| rank == core.rank) else { return Ok(None) };
        let refused = |&&member: &&usize| matches!(all[member].first(), Some(&NOT_FOUNDED) | None);
        if let Some(&founder) = members.iter().find(refused) {
            let why = String::from_utf8_lossy(all[founder].get(1..).unwrap_or_default()).into_owned();
            let message = format!("rank {founder} could not lay out a new world: {why}");
            return Err(call.error(core, ErrorClass::Size, message));
        }
        let number = |founder: usize| match all[founder].split_first() {
            Some((&FOUNDED, numbers)) => {
                let bug = |_| {
                    call.error(
                        core,
                        ErrorClass::Intern,
                        "internal error: a rank sent an invalid number of a new world",
                    )
                };
                bytemuck::try_pod_read_unaligned::<Number>(numbers).map(Some).map_err(bug)
            }
            _ => Ok(None),
        };
        let leader = first(host).unwrap_or(members[0]);
        let (id, endpoint) = match (number(members[0])?, number(leader)?) {
            (Some(Number { world, .. }), Some(Number { part, .. })) => {
                let number = Number { world, part };
                ((new_world(), 1), core.endpoint.borrow_mut().join(number, &members, index)?)
            }
            _ => {
                let end = core.registry.take_end((core.id, attempt), core.rank);
                let none = "internal error: no end was laid out for this rank of a new world";
                let (id, end) = end.ok_or_else(|| call.error(core, ErrorClass::Intern, none))?;
                ((id, members.len()), end)
            }
        };
        let world = World::new(
            id,
            endpoint,
            core.registry.clone(),
            core.kind.clone(),
            core.machine,
            (core.mode.get(), core.chosen_census),
        );
        world.core().supersteps.check(core.supersteps.checks());
        world.core().checks.set(core.checks.checking.borrow().clone());
        world.core().checks.clock.split_off(&core.checks.clock, core.size, &members);
        world.core().plans.set(core.plans.get());
        world.core().explains.set(core.explains.get());
        world.core().limits.set(core.limits.get());
        world.on_error(core.handler.get());
        world.core().order.set(core.order.get());
        let Stalls { settings, waits } = &*core.stalls.borrow();
        *world.core().stalls.borrow_mut() = Stalls { settings: settings.clone(), waits: waits.of(&members) };
        let hosts = members.iter().filter_map(|&member| core.host_of(member));
        *world.core().hosts.borrow_mut() = hosts.collect();
        let above = core.above.borrow().iter().cloned().chain([Rc::downgrade(core)]).collect();
        *world.core().above.borrow_mut() = above;
        let parts = core.parts.borrow().clone();
        parts.borrow_mut().retain(|part| part.strong_count() > 0);
        parts.borrow_mut().push(Rc::downgrade(world.core()));
        *world.core().parts.borrow_mut() = parts;
        world.core().explained.borrow_mut().calls = core.explained.borrow().calls.clone();
        *world.core().unfenced.borrow_mut() = core.unfenced.borrow().clone();
        Ok(Some(world))
    }
}

/// The first byte of what the first member of a new world sends the others, if the world has the
/// number that follows.
const FOUNDED: u8 = 1;
/// The same byte if the world was laid out in this process.
const FOUNDED_HERE: u8 = 2;
/// The same byte if the world was not laid out, for the reason that follows.
const NOT_FOUNDED: u8 = 0;
