//! Programs that the compiler itself refuses, in its own words: only that it does is tested, here, by the error's number.
//!
//! One window twice in a superstep: two `&mut` of one thing.
//! ```compile_fail,E0499
//! use fencepost::prelude::*;
//! #[superstep]
//! fn both(u: &mut Window<f64>, v: &mut Window<f64>) -> Result<()> {
//!     u.put(v.section(0..1)).to(0, 0)
//! }
//! fn twice(u: &mut Window<f64>) -> Result<()> {
//!     both(u, u)
//! }
//! ```
//! Values of another type than the window's elements.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[superstep]
//! fn narrow(u: &mut Window<f64>) -> Result<()> {
//!     u.put(&[1.0f32]).to(0, 0)
//! }
//! ```
//! A window of what is not plain old data.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn strings(world: &World) -> Result<Window<String>> {
//!     world.window(3)
//! }
//! ```
//! An element with padding between its fields.
//! ```compile_fail,E0080
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Padded(u8, f64);
//! ```
//! An element with padding at its end.
//! ```compile_fail,E0080
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Padded(f64, u8);
//! ```
//! An element with a field that is none: not every byte is a `bool`.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Flag(bool);
//! ```
//! An element that cannot be copied.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[derive(Element)]
//! #[repr(C)]
//! struct Owned(u64);
//! ```
//! A window in another thread: its slice may go there.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(u: &Window<f64>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| u.put([1.0]).to(0, 0));
//!     });
//! }
//! ```
//! Replaying with arguments, which the plan has in it already: a replay takes the windows alone.
//! ```compile_fail,E0061
//! use fencepost::prelude::*;
//! #[superstep]
//! fn exchange(u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
//!     for n in block.neighbours() {
//!         u.put(block.inner_edge(&n)).to(n.rank, block.halo_of(&n))?;
//!     }
//!     Ok(())
//! }
//! fn again(world: &World, u: &mut Window<f64>, block: &Block<2>) -> Result<()> {
//!     exchange::prepare(world, block)?.replay(u, block)
//! }
//! ```
//! Running what was prepared without an argument of the function: a run takes what the function takes.
//! ```compile_fail,E0061
//! use fencepost::prelude::*;
//! #[superstep]
//! fn shift(u: &mut Window<f64>, by: usize) -> Result<()> {
//!     u.put(0..1).to((u.rank() + by) % u.size(), 0)
//! }
//! fn again(world: &World, u: &mut Window<f64>) -> Result<()> {
//!     shift::prepare(world, 1)?.run(u)
//! }
//! ```
//! An argument of another type than the superstep's, when compiling ahead.
//! ```compile_fail,E0308
//! use fencepost::prelude::*;
//! #[superstep]
//! fn shift(u: &mut Window<f64>, by: usize) -> Result<()> {
//!     u.put(0..1).to((u.rank() + by) % u.size(), 0)
//! }
//! fn ahead() {
//!     let _ = shift::compile(4, |_| Ok("one"));
//! }
//! ```
//! Transports and jobs themselves: their functions believe addresses, and that they are called once.
//! ```compile_fail,E0432
//! use fencepost::transport::Segment;
//! ```
//! ```compile_fail,E0432
//! use fencepost::transport::Transport;
//! ```
//! ```compile_fail,E0432
//! use fencepost::transport::{ShmEnd, shm};
//! ```
//! ```compile_fail,E0432
//! use fencepost::job;
//! ```
//! ```compile_fail,E0432
//! use fencepost::security;
//! ```
//! ```compile_fail,E0432
//! use fencepost::kernel;
//! ```
