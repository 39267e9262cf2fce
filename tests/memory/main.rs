//! Memory, at an allocator that counts and refuses: what a rank allocates for an epoch, and what it
//! does when it gets no memory.

mod allocations;
mod one_sided;
mod refused;

use fencepost_tests_support::counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
