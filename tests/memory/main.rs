//! Memory, with an allocator that counts and refuses: the allocations of a rank for an epoch and
//! for a field in a file, and the behaviour of a rank that gets no memory.

mod allocations;
mod fields;
mod one_sided;
mod refused;

use fencepost_tests_support::counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
