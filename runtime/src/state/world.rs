//! [`World`]: a set of ranks that run one program, and the data that a rank keeps about this set.

use crate::census::state::CensusState;
use crate::census::state::roles::Roles;
use crate::check::state::checks::Checks;
use crate::collect::operation::WindowKey;
use crate::fence::state::FenceState;
use crate::locks::state::LocksState;
use crate::messages::state::MessagesState;
use crate::posts::state::lendings::Lendings;
use crate::protocol::state::Reports;
use crate::protocol::state::stalls::Stalls;
use crate::protocol::state::traffic::{EpochKind, Traffic};
use crate::state::attendants::Attendants;
use crate::state::calls::Calls;
use crate::state::handler::Handler;
use crate::state::life::Life;
use crate::state::reach::Reach;
use crate::state::registry::Registry;
use crate::state::transport_kind::TransportKind;
use crate::state::window_core::WindowTable;
use crate::supersteps::state::Supersteps;
use fencepost_planner::census::Census;
use fencepost_planner::grid;
use fencepost_planner::ir::pattern::{Mode, Order};
use fencepost_planner::machine::Machine;
use fencepost_transport::{Channels, Endpoint, Leave, Liveness, Port, Topology};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A set of ranks that run one program. Every rank has its own `World`, which is neither `Send` nor
/// `Sync`.
pub struct World {
    pub(crate) core: Rc<WorldCore>,
    /// The values that collectives keep from one call to the next.
    pub(crate) collectives: OnceCell<Box<dyn Any>>,
}

pub(crate) struct WorldCore {
    pub(crate) id: u64,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) reach: Reach,
    pub(crate) endpoint: RefCell<Endpoint>,
    pub(crate) registry: Arc<Registry>,
    /// The model of communication costs that this world uses for its decisions. It is the same on
    /// all ranks, since the [`Key`](crate::state::key::Key) depends on it.
    pub(crate) machine: Machine,
    pub(crate) life: Life,
    /// The program's settings for the epochs of all windows.
    pub(crate) choices: Choices,
    /// The handler of errors.
    pub(crate) handler: Handler,
    pub(crate) windows: WindowTable,
    pub(crate) calls: Calls,
    /// The settings for waits that last, and the table of waits.
    pub(crate) stalls: RefCell<Stalls>,
    pub(crate) reports: Reports,
    /// The attendants that serve the requests of other ranks.
    pub(crate) attendants: Attendants,
    pub(crate) census: CensusState,
    pub(crate) fence: FenceState,
    /// The windows that are posted to ranks that do not reach this rank's memory.
    pub(crate) lendings: Arc<Lendings>,
    pub(crate) locks: LocksState,
    pub(crate) messages: MessagesState,
    pub(crate) supersteps: Supersteps,
    /// The search for conflicts.
    pub(crate) checks: Checks,
}

/// A program's settings for the epochs of a world.
pub(crate) struct Choices {
    /// The preferred mode of operations that have no mode of their own.
    pub(crate) mode: Cell<Mode>,
    /// The order of operations in epochs from here on: canonical or relaxed.
    pub(crate) order: Cell<Order>,
    /// Whether epochs are planned. If not, every operation is a separate message.
    pub(crate) plans: Cell<bool>,
}

impl World {
    /// Makes a world with the number `id`. `takers` ranks of this process are in this world.
    pub(crate) fn new(
        (id, takers): (u64, usize),
        endpoint: Endpoint,
        registry: Arc<Registry>,
        kind: TransportKind,
        machine: Machine,
        (mode, chosen_census): (Mode, Option<Census>),
    ) -> Self {
        let (rank, size) = (endpoint.rank(), endpoint.size());
        let is_all = (0..size).all(|peer| endpoint.reaches(peer));
        let waits = endpoint.waits().unwrap_or_else(|| registry.waits(size));
        let hosts: Vec<usize> = (0..size).map(|peer| endpoint.host(peer)).collect();
        let machines: Vec<usize> = (0..size).map(|peer| endpoint.machine(peer)).collect();
        let placement = crate::state::reach::of_hosts(hosts.iter().copied());
        let roles = Roles::new(rank, hosts, &machines);
        let reach = Reach {
            kind,
            is_all,
            is_some: is_all || roles.places().memory,
            shares_all: (0..size).all(|peer| endpoint.shares(peer)),
            placement,
            hosts: RefCell::default(),
        };
        let core = WorldCore {
            id,
            rank,
            size,
            reach,
            life: Life::new(endpoint.alarms()),
            endpoint: RefCell::new(endpoint),
            choices: Choices { mode: Cell::new(mode), order: Cell::default(), plans: Cell::new(true) },
            handler: Handler::default(),
            windows: WindowTable::default(),
            calls: Calls::new(registry.key, registry.call_sites(id, rank, size, takers)),
            registry,
            machine,
            stalls: RefCell::new(Stalls { settings: Arc::default(), waits }),
            reports: Reports::default(),
            attendants: Attendants::default(),
            census: CensusState::new(roles, chosen_census, &machine),
            fence: FenceState::new(size),
            lendings: Arc::default(),
            locks: LocksState::default(),
            messages: MessagesState::default(),
            supersteps: Supersteps::default(),
            checks: Checks::default(),
        };
        Self { core: Rc::new(core), collectives: OnceCell::new() }
    }

    pub(crate) fn core(&self) -> &Rc<WorldCore> {
        &self.core
    }

    /// Returns this rank, from 0.
    #[doc(alias = "MPI_Comm_rank")]
    #[inline]
    pub fn rank(&self) -> usize {
        self.core.rank
    }

    /// Returns the number of ranks.
    #[doc(alias = "MPI_Comm_size")]
    #[inline]
    pub fn size(&self) -> usize {
        self.core.size
    }

    /// Returns the traffic of this rank so far.
    #[doc(hidden)]
    pub fn traffic(&self) -> Traffic {
        self.core.reports.traffic.get()
    }

    /// Returns the kind of the last successful epoch that was not prepared. The result is the same
    /// on all ranks, and is `Dynamic` before the first such epoch.
    #[doc(hidden)]
    pub fn last_epoch(&self) -> EpochKind {
        if self.core.fence.changed.get() { EpochKind::Dynamic } else { EpochKind::Replayed }
    }

    /// Returns the counts of everything that this rank has handed to the transport so far.
    pub fn meter(&self) -> fencepost_transport::Meter {
        self.core.endpoint.borrow().meter().clone()
    }

    /// Leaves this world and all worlds that were split from it, because the rank's program has
    /// ended. The program may have forgotten the split worlds.
    pub(crate) fn leave(&self, how: Leave) {
        let parts = self.core.life.parts.borrow().take();
        for part in parts.iter().filter_map(Weak::upgrade) {
            part.leave(how.clone());
        }
        self.core.leave(how);
    }
}

impl grid::RankPosition for World {
    fn rank(&self) -> usize {
        self.core.rank
    }
    fn size(&self) -> usize {
        self.core.size
    }
}

impl WorldCore {
    /// Returns whether this rank reaches the memory of all ranks and notifies each rank itself. If
    /// so, a fence for which only records wait may take the short path.
    #[inline]
    pub(crate) fn is_straight(&self) -> bool {
        self.reach.is_all && self.census.usual == Census::Direct
    }

    /// Forgets a window that is dropped.
    pub(crate) fn forget_window(&self, key: WindowKey) {
        self.windows.forget(key);
        self.fence.staged.borrow_mut().forget(key.window);
    }
}

impl Drop for WorldCore {
    fn drop(&mut self) {
        self.leave_dropped();
        let endpoint = self.endpoint.get_mut();
        if let Some(recorder) = self.reports.recorder.get() {
            recorder.add_part(endpoint.meter().total());
        }
        for (to, frame, payload) in self.fence.kept.get_mut().drain(..) {
            if endpoint.released(to, Port::FENCE) <= frame {
                self.registry.keep(payload);
            }
        }
    }
}
