//! [`ClosedPorts`]: which ports a rank has closed.

use std::collections::BTreeMap;

use crate::Port;

/// The ports that a rank has closed, as runs of consecutive ports. Ports are numbered in the order
/// of the windows that they belong to. So there are no more runs than windows in use, however many
/// windows there were.
#[derive(Default)]
pub(crate) struct ClosedPorts {
    /// The last port of each run, by the first port of the run.
    runs: BTreeMap<u32, u32>,
}

impl ClosedPorts {
    /// Adds a port.
    pub(crate) fn insert(&mut self, Port(port): Port) {
        if self.contains(Port(port)) {
            return;
        }
        let before = port.checked_sub(1).and_then(|last| self.run_of(last));
        let after = port.checked_add(1).and_then(|first| self.runs.remove(&first));
        self.runs.insert(before.unwrap_or(port), after.unwrap_or(port));
    }

    /// Returns whether a port was added.
    #[inline]
    pub(crate) fn contains(&self, Port(port): Port) -> bool {
        !self.runs.is_empty() && self.run_of(port).is_some()
    }

    /// Returns the first port of the run that a port is in.
    fn run_of(&self, port: u32) -> Option<u32> {
        let (first, last) = self.runs.range(..=port).next_back()?;
        (port <= *last).then_some(*first)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_ports_that_were_added_are_closed_and_neighbours_are_one_run(
            ports in proptest::collection::vec(prop_oneof![0u32..20, u32::MAX - 5..=u32::MAX], 0..40),
        ) {
            let mut closed = ClosedPorts::default();
            for (n, &port) in ports.iter().enumerate() {
                closed.insert(Port(port));
                for other in (0..21).chain(u32::MAX - 6..=u32::MAX) {
                    prop_assert_eq!(closed.contains(Port(other)), ports[..=n].contains(&other));
                }
            }
            let starts = |port: &u32| port.checked_sub(1).is_none_or(|before| !ports.contains(&before));
            let mut firsts: Vec<u32> = ports.iter().copied().filter(starts).collect();
            firsts.sort_unstable();
            firsts.dedup();
            prop_assert_eq!(closed.runs.into_keys().collect::<Vec<_>>(), firsts);
        }
    }
}
