//! [`Classes`]: rows of numbers, interned by content. Also groups ranks by such rows.

use crate::ids::ClassId;
use crate::ir::peers::{Peer, Peers, RankClass};
use crate::table::Table;
use indexmap::IndexSet;

/// A numbering of distinct rows from 0, in the order in which they are first seen. A row that
/// equals the previous row is not hashed.
#[derive(Default)]
pub(crate) struct Classes {
    rows: IndexSet<Box<[u32]>>,
    last: usize,
}

impl Classes {
    /// Returns the row with this number.
    pub(crate) fn row(&self, number: u32) -> &[u32] {
        &self.rows[number as usize]
    }

    /// Returns the number of `row`, and whether the row is new.
    pub(crate) fn intern(&mut self, row: &[u32]) -> (u32, bool) {
        let mut new = false;
        if self.rows.get_index(self.last).is_none_or(|last| **last != *row) {
            (self.last, new) = match self.rows.get_index_of(row) {
                Some(known) => (known, false),
                None => self.rows.insert_full(row.into()),
            };
        }
        (u32::try_from(self.last).expect("there are no more classes than ranks, which fit 32 bits"), new)
    }
}

/// Groups the ranks by the class that `decide` returns for them.
///
/// `decide` receives the class of a rank and, if `neighbours_matter`, the classes of its peers. It
/// is called once for each distinct combination of these. Ranks that were in one class and have the
/// same links afterwards form one class.
pub(super) fn regrouped(
    peers: &Peers,
    neighbours_matter: bool,
    mut decide: impl FnMut(ClassId, &[u32]) -> RankClass,
) -> Peers {
    let (mut seen, mut kept) = (Classes::default(), Classes::default());
    let (mut found, mut classes): (Vec<ClassId>, Table<ClassId, RankClass>) = (Vec::new(), Table::new());
    let mut row = Vec::new();
    let class_of = peers
        .class_of
        .iter()
        .enumerate()
        .map(|(rank, &class)| {
            row.clear();
            row.push(class.0);
            if neighbours_matter {
                let others = peers.classes[class].peers.iter();
                row.extend(others.map(|peer| peers.class_of[(rank as i64 + peer.delta.0) as usize].0));
            }
            let (neighbourhood, new) = seen.intern(&row);
            if new {
                let decided = decide(class, &row[1..]);
                let (id, new) = kept.intern(&links_of(class, &decided.peers));
                if new {
                    classes.push(decided);
                }
                found.push(ClassId(id));
            }
            found[neighbourhood as usize]
        })
        .collect();
    Peers { classes, class_of }
}

/// Returns the row of a rank whose class was `class` so far. Ranks with equal rows form one class.
fn links_of(class: ClassId, peers: &[Peer]) -> Vec<u32> {
    let links = peers.iter().flat_map(|peer| [peer.sends, peer.receives]);
    [class.0].into_iter().chain(links.map(|link| link.map_or(u32::MAX, |link| link.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::Classes;

    #[test]
    fn equal_rows_have_equal_numbers_and_unequal_rows_do_not() {
        let mut classes = Classes::default();
        let row = |n: u32| vec![n % 7, n / 7, n % 3];
        let numbers: Vec<u32> = (0..500).map(|n| classes.intern(&row(n)).0).collect();
        for (a, &number) in numbers.iter().enumerate() {
            assert_eq!(classes.row(number), row(a as u32));
            assert_eq!(classes.intern(&row(a as u32)), (number, false));
            for (b, &other) in numbers.iter().enumerate() {
                assert_eq!(row(a as u32) == row(b as u32), number == other);
            }
        }
        assert_eq!(classes.intern(&[]), (numbers.len() as u32, true), "no prefix stands for a row");
    }
}
