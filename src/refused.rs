//! Programs that rustc rejects. Each test checks the number of the error only, not the wording.
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
//! A window after it was posted: nobody has it before `wait` gives it back.
//! ```compile_fail,E0382
//! use fencepost::prelude::*;
//! fn store(mut u: Window<f64>, sources: &fencepost::Group) -> Result<()> {
//!     let exposed = u.post(sources)?;
//!     u[0] = 1.0;
//!     exposed.wait()?;
//!     Ok(())
//! }
//! ```
//! Elements of a window that is posted as a whole.
//! ```compile_fail,E0599
//! use fencepost::prelude::*;
//! fn keep(exposed: fencepost::Exposed<f64>) {
//!     let _ = exposed.kept(0..1);
//! }
//! ```
//! Elements of a part that are kept, beyond the wait.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn keep(exposed: fencepost::Exposed<f64, fencepost::lends::Part>) -> Result<f64> {
//!     let kept = exposed.kept(0..1)?;
//!     exposed.wait()?;
//!     Ok(kept[0])
//! }
//! ```
//! A store into a window that others read.
//! ```compile_fail,E0594
//! use fencepost::prelude::*;
//! fn store(mut exposed: fencepost::Exposed<f64, fencepost::lends::ReadOnly>) {
//!     exposed[0] = 1.0;
//! }
//! ```
//! A section as the source of an access, which holds nothing of its window.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn put(access: &fencepost::Access<f64>) -> Result<()> {
//!     access.put(0..2).to(0, 0)
//! }
//! ```
//! An operation after the end of its access.
//! ```compile_fail,E0382
//! use fencepost::prelude::*;
//! fn put(access: fencepost::Access<f64>) -> Result<()> {
//!     access.complete()?;
//!     access.put([1.0]).to(0, 0)
//! }
//! ```
//! An access in another thread.
//! ```compile_fail,E0277
//! fn hand(access: fencepost::Access<f64>) {
//!     std::thread::spawn(move || drop(access));
//! }
//! ```
//! A buffer that an epoch between some ranks borrows, read before the epoch is over.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn early(u: &mut Window<f64>, group: &fencepost::Group) -> Result<()> {
//!     let mut values = [0.0];
//!     u.epoch_between(group, group, |epoch| {
//!         epoch.fetch_into(0, 0, &mut values)?;
//!         drop(values);
//!         Ok(())
//!     })
//! }
//! ```
//! A store into a window that others access under locks.
//! ```compile_fail,E0608
//! use fencepost::prelude::*;
//! fn store(mut u: LockWindow<f64>) {
//!     u[0] = 1.0;
//! }
//! ```
//! A store into what a get borrows.
//! ```compile_fail,E0506
//! use fencepost::prelude::*;
//! fn store(u: &mut Window<f64>) -> Result<()> {
//!     let mut values = [0.0];
//!     u.epoch(|epoch| {
//!         epoch.fetch_into(0, 0, &mut values)?;
//!         values[0] = 1.0;
//!         Ok(())
//!     })
//! }
//! ```
//! A store by another thread into what a get borrows.
//! ```compile_fail,E0499
//! use fencepost::prelude::*;
//! fn store(u: &mut Window<f64>) -> Result<()> {
//!     let mut values = [0.0];
//!     u.epoch(|epoch| {
//!         epoch.fetch_into(0, 0, &mut values)?;
//!         std::thread::scope(|threads| {
//!             threads.spawn(|| values[0] = 1.0);
//!         });
//!         Ok(())
//!     })
//! }
//! ```
//! A window in another thread of its rank.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(u: &Window<f64>) {
//!     std::thread::scope(|threads| {
//!         threads.spawn(|| u.put([1.0]).to(1, 0));
//!     });
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
//! An element with a field that is not an element: not every byte is a `bool`.
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
//! Running what was prepared without an argument of the function: a run takes what the function
//! takes.
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
//! Transports and jobs themselves: their functions trust addresses, and that they are called once.
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
//! The part of a window for locks as a slice: others may access it at any time.
//! ```compile_fail,E0608
//! use fencepost::prelude::*;
//! fn first(u: &LockWindow<f64>) -> f64 {
//!     u[0]
//! }
//! ```
//! A fence of a window for locks.
//! ```compile_fail,E0599
//! use fencepost::prelude::*;
//! fn fence(mut u: LockWindow<f64>) -> Result<()> {
//!     u.fence()
//! }
//! ```
//! A window that is changed back while this rank has a lock.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn back(u: LockWindow<f64>) -> Result<()> {
//!     let lock = u.lock(0, LockType::Shared)?;
//!     let u = u.into_window()?;
//!     lock.unlock()
//! }
//! ```
//! Operations of a lock of all parts after it was unlocked.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn late(u: &LockWindow<f64>) -> Result<()> {
//!     let all = u.lock_all()?;
//!     let on = all.on(0)?;
//!     all.unlock()?;
//!     on.put([1.0], 0)
//! }
//! ```
//! The part of this rank after its exclusive epoch.
//! ```compile_fail
//! use fencepost::prelude::*;
//! fn kept<'u>(u: &'u LockWindow<f64>) -> Result<&'u mut [f64]> {
//!     u.local_mut(|part| Ok(part))
//! }
//! ```
//! A lock in another thread.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(lock: fencepost::Lock<'static, f64>) {
//!     std::thread::spawn(move || lock.unlock());
//! }
//! ```
