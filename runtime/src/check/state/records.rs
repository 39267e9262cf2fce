//! The operations that are kept only as records, if conflicts are checked. A record contains
//! everything about its operation except the source line. It contains only some bits of the address
//! of the source line.

use crate::collect::outbox::{DATATYPE, ELEMENT, Head, PUT, RUN, Run, op_of};
use fencepost_planner::ir::pattern::Kind;
use fencepost_transport::Record;

/// The number of bits of a record's head below the bits of the source line.
const LINE: u32 = 46;

/// Returns the kind of an operation whose record has this code.
#[inline]
pub(crate) fn kind_of(code: u64) -> Option<Kind> {
    if code == PUT { Some(Kind::Put) } else { op_of(code).map(Kind::Accumulate) }
}

/// Returns the bits of the line's address that a record with this head contains.
pub(crate) fn line_of(head: Head) -> u64 {
    head.0 >> LINE
}

/// Returns the heads and the places of the records whose operations are kept only as records. The
/// elements have `size` bytes.
pub(crate) fn plain(records: &[Record], size: usize) -> impl Iterator<Item = (usize, Head)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        loop {
            let (place, record) = (next, records.get(next)?);
            let head = Head(record.head);
            next += 1;
            match head.code() {
                DATATYPE => {}
                code if code & !ELEMENT == RUN => {
                    next = next.saturating_add(Run(record.value).records(size));
                }
                code if code & ELEMENT != 0 => {}
                _ => return Some((place, head)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::state::lists::{Checked, List, Sent};
    use crate::check::state::touched::Touched;
    use crate::collect::outbox::Outbox;
    use fencepost_planner::datatype::Datatype;
    use fencepost_planner::element::Op;
    use fencepost_transport::Memory;
    use fencepost_transport::bytes::Reader;
    use std::panic::Location;

    #[test]
    fn what_is_kept_elsewhere_is_not_among_the_records_that_are() {
        let (site, mut outbox) = (Location::caller(), Outbox::new(&Memory::heap()));
        outbox.push(Head::new(5, PUT, site), 1);
        outbox.push_run(Head::new(0, RUN, site), PUT, (5, 8), Ok(&[255; 40]));
        outbox.push(Head::new(6, 2, site), 1);
        outbox.push(Head::new(7, PUT | ELEMENT, site), 1);
        outbox.push_run(Head::new(0, RUN | ELEMENT, site), PUT, (3, 8), Err(2));
        outbox.push(Head::new(0, DATATYPE, site), 1);
        outbox.push(Head::new(8, PUT, site), 1);
        let found: Vec<_> = plain(&outbox.records, 8).map(|(_, head)| (head.at(), head.code())).collect();
        assert_eq!(found, [(5, PUT), (6, 2), (8, PUT)]);
    }

    #[test]
    fn records_are_entries_once_they_are_spelt_out() {
        let here = [Location::caller(), Location::caller(), Location::caller()];
        let (checked, mut outbox) = (Checked::default(), Outbox::new(&Memory::heap()));
        checked.begin(2);
        let push = |at, code, site, outbox: &mut Outbox| {
            checked.add_line(Head::new(at, code, site), site);
            outbox.push(Head::new(at, code, site), 0);
        };
        push(7, PUT, here[0], &mut outbox);
        push(8, PUT, here[1], &mut outbox);
        let so_far = outbox.records.len();
        checked.add((Kind::Get, 1, Touched::Run(3, 2)), None, (0, 0), |_| Some(so_far), here[2]);
        push(9, 1 + Op::Max as u64, here[1], &mut outbox);
        let sent = |list: &List| {
            let mut out = Vec::new();
            list.encode(&mut out);
            let sent = Sent::decode(&mut Reader(&out)).expect("it is a list");
            let entries = sent.entries().flatten();
            entries.map(|entry| (entry.kind, entry.site, entry.elements())).collect::<Vec<_>>()
        };
        let (mut records, mut spelt) = (Vec::new(), Vec::new());
        checked.with_lists(
            2,
            |target| (target == 1).then_some(outbox.records.len()),
            |target, list, lines| {
                assert_eq!(target, 1);
                records = sent(list);
                list.spell(&outbox.records, 8, lines);
                spelt = sent(list).iter().map(|(kind, site, _)| (*kind, list.sites()[*site])).collect();
            },
        );
        let of_records = |(.., elements): &(Kind, usize, Option<Datatype>)| elements.is_none();
        assert_eq!(records.iter().map(of_records).collect::<Vec<_>>(), [true, false, true]);
        let max = Kind::Accumulate(Op::Max);
        assert_eq!(spelt, [(Kind::Put, here[0]), (Kind::Put, here[1]), (Kind::Get, here[2]), (max, here[1])]);
    }
}
