//! [`Reach`]: which ranks of a world reach each other's memory, and on which hosts the ranks are.

use crate::state::transport_kind::TransportKind;
use fencepost_planner::ir::schedule::Placement;
use std::cell::RefCell;
use std::sync::Arc;

/// Which ranks of a world reach each other's memory, and on which hosts the ranks are.
pub(crate) struct Reach {
    pub(crate) kind: TransportKind,
    /// Whether this rank reaches the memory of all ranks.
    pub(crate) is_all: bool,
    /// Whether some ranks reach each other's memory.
    pub(crate) is_some: bool,
    /// Whether all ranks are threads of this process and read one another's values.
    pub(crate) shares_all: bool,
    /// Which ranks reach whose memory, for the planner.
    pub(crate) placement: Placement,
    /// The name of each rank's host, for error messages. Empty if all ranks are on one host.
    pub(crate) hosts: RefCell<Vec<Arc<str>>>,
}

impl Reach {
    /// Returns the name of a rank's host, if there are several.
    pub(crate) fn host_of(&self, rank: usize) -> Option<Arc<str>> {
        self.hosts.borrow().get(rank).cloned()
    }
}

/// Returns the placement of ranks on these hosts, by rank. The placement never states that two
/// ranks share memory if they do not. If the hosts have different numbers of consecutive ranks, the
/// placement leaves out some pairs that do share memory.
pub(crate) fn of_hosts<H: PartialEq>(hosts: impl IntoIterator<Item = H>) -> Placement {
    let mut hosts = (0usize..).zip(hosts);
    let Some((_, mut host)) = hosts.next() else { return Placement::Together };
    // A block of ranks must end where one host ends and another begins.
    let mut each = 0;
    for (rank, next) in hosts {
        if next != host {
            each = divisor(each, rank);
        }
        host = next;
    }
    match each {
        0 => Placement::Together,
        1 => Placement::Apart,
        ranks_each => Placement::Hosts { ranks_each },
    }
}

/// Returns the greatest common divisor.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_hosts_are_what_they_are() {
        assert_eq!(of_hosts([0; 4]), Placement::Together);
        assert_eq!(of_hosts([0, 0, 1, 1]), Placement::Hosts { ranks_each: 2 });
        assert_eq!(of_hosts([0, 0, 0, 1, 1]), Placement::Hosts { ranks_each: 3 });
        assert_eq!(of_hosts([0, 0, 1, 1, 1, 1]), Placement::Hosts { ranks_each: 2 });
        assert_eq!(of_hosts([0, 1, 2]), Placement::Apart);
        assert_eq!(of_hosts([0, 0, 0, 1, 1, 2]), Placement::Apart);
        assert_eq!(of_hosts([0, 1, 0, 1]), Placement::Apart);
    }

    proptest! {
        #[test]
        fn ranks_that_share_memory_are_on_one_host(hosts in prop::collection::vec(0..3, 1..20)) {
            let placement = of_hosts(&hosts);
            for (a, host) in hosts.iter().enumerate() {
                for (b, other) in hosts.iter().enumerate() {
                    prop_assert!(!placement.share(a as u32, b as u32) || host == other);
                }
            }
        }
    }
}
