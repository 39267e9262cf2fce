//! The interface is small enough to remember: the number of items that `src/surface.txt` lists has
//! a limit.
//!
//! If the limit is reached, a new item either replaces another one, or the issue that adds the item
//! raises the limit.

use super::{read, root};

/// The most items in all, with fields, variants and methods. Items that the documentation hides do
/// not count.
const ITEMS_MAX: usize = 500;
/// The most names in the root: items, modules, and re-exports of other crates.
const ROOT_MAX: usize = 78;

/// Returns the number of all items in a list, and the number of names in its root.
fn counted(list: &str) -> (usize, usize) {
    let all = list.lines().next().and_then(|first| first.split(" items").next()?.parse().ok());
    let is_in_root = |line: &&str| {
        let line = line.strip_prefix("mod ").or(line.strip_prefix("use ")).unwrap_or(line);
        let name = line.strip_prefix("fencepost::").unwrap_or_default();
        let name = name.split_once([':', ' ']).map_or(name, |(name, rest)| match rest.strip_prefix(':') {
            Some(_) => "",
            None => name,
        });
        !name.is_empty()
    };
    (all.expect("the first line has the sum"), list.lines().filter(is_in_root).count())
}

#[test]
fn the_interface_has_at_most_its_number_of_items() {
    let (items, names) = counted(&read(&root().join("src/surface.txt")));
    assert!(names > 20, "{names} names in the root: is the list still read?");
    assert!(items <= ITEMS_MAX, "{items} items, where {ITEMS_MAX} are allowed: remove or hide some");
    assert!(names <= ROOT_MAX, "{names} names in the root, where {ROOT_MAX} are allowed: use a module");
}

#[test]
fn items_in_modules_are_not_in_the_root() {
    let list = "7 items, 1 hidden\n\nfencepost::Access: struct Access\n    fn put(&self)\n\nfencepost::grid::Block: struct Block\n\n\
                fencepost::run: fn run()\n\nmod fencepost::grid\n    use Block\n\nmod fencepost::grid::deep\n\n\
                use fencepost::bytemuck = bytemuck\n\nuse fencepost::prelude::Element = macros\n\nhidden\n    fencepost::__private\n";
    assert_eq!(counted(list), (7, 4));
}
