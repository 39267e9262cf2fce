//! [`Classes`]: rows of numbers, interned by content; and the grouping of ranks by them.

use crate::ids::ClassId;
use crate::ir::peers::{Peer, Peers, RankClass};
use crate::table::Table;

/// Assigns equal rows equal numbers, from 0 on, in the order in which they are first seen.
///
/// A hash only finds candidates: rows are compared in full. A row equal to the one before costs no hash.
#[derive(Default)]
pub(crate) struct Classes {
    /// All distinct rows, one after another.
    words: Vec<u32>,
    /// Where each begins, and where the last ends.
    starts: Vec<usize>,
    /// Open addressing: one more than the number of a row, or 0.
    slots: Vec<u32>,
    last: Option<u32>,
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self { words: Vec::new(), starts: vec![0], slots: vec![0; 64], last: None }
    }

    /// How many distinct rows there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The row of a number.
    pub(crate) fn row(&self, number: u32) -> &[u32] {
        &self.words[self.starts[number as usize]..self.starts[number as usize + 1]]
    }

    /// The number of `row`, and whether it is new.
    pub(crate) fn intern(&mut self, row: &[u32]) -> (u32, bool) {
        if let Some(last) = self.last
            && self.row(last) == row
        {
            return (last, false);
        }
        let (number, new) = self.find(row);
        self.last = Some(number);
        (number, new)
    }

    fn find(&mut self, row: &[u32]) -> (u32, bool) {
        let mask = self.slots.len() - 1;
        let mut slot = hash(row) as usize & mask;
        while self.slots[slot] != 0 {
            let number = self.slots[slot] - 1;
            if self.row(number) == row {
                return (number, false);
            }
            slot = (slot + 1) & mask;
        }
        let number =
            u32::try_from(self.len()).expect("there are no more classes than ranks, which fit 32 bits");
        self.words.extend_from_slice(row);
        self.starts.push(self.words.len());
        self.slots[slot] = number + 1;
        if self.len() * 2 > self.slots.len() {
            self.grow();
        }
        (number, true)
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        let mut slots = vec![0; mask + 1];
        for number in 0..self.len() as u32 {
            let mut slot = hash(self.row(number)) as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number + 1;
        }
        self.slots = slots;
    }
}

/// Groups the ranks by the class that `decide` returns for their class and, where `neighbours_matter`, the classes of
/// their peers; `decide` is called once for each such neighbourhood. Ranks that had one class and have the same links
/// afterwards are one class.
pub(super) fn regrouped(
    peers: &Peers,
    neighbours_matter: bool,
    mut decide: impl FnMut(ClassId, &[u32]) -> RankClass,
) -> Peers {
    let (mut seen, mut kept) = (Classes::new(), Classes::new());
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

/// The row of a class that was `class` before: ranks with equal rows are one class.
fn links_of(class: ClassId, peers: &[Peer]) -> Vec<u32> {
    let links = peers.iter().flat_map(|peer| [peer.sends, peer.receives]);
    [class.0].into_iter().chain(links.map(|link| link.map_or(u32::MAX, |link| link.0))).collect()
}

/// Multiply and rotate; always the same, so that nothing depends on the process.
fn hash(row: &[u32]) -> u64 {
    let mixed = row.iter().fold(row.len() as u64, |hash, &word| {
        (hash ^ u64::from(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    });
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests {
    use super::Classes;

    #[test]
    fn equal_rows_have_equal_numbers_and_unequal_rows_do_not() {
        let mut classes = Classes::new();
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
