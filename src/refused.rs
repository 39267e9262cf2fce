//! Programs that rustc rejects. Each test checks the number of the error only, not the wording.
//!
//! Passes one window to a superstep twice, as two `&mut` borrows.
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
//! Uses a window after `post` has taken it and before `wait` returns it.
//! ```compile_fail,E0382
//! use fencepost::prelude::*;
//! fn store(mut u: Window<f64>, sources: &fencepost::Group) -> Result<()> {
//!     let exposed = u.post(sources)?;
//!     u[0] = 1.0;
//!     exposed.wait()?;
//!     Ok(())
//! }
//! ```
//! Reads elements of a window that is posted as a whole.
//! ```compile_fail,E0599
//! use fencepost::prelude::*;
//! fn keep(exposed: fencepost::Exposed<f64>) {
//!     let _ = exposed.kept(0..1);
//! }
//! ```
//! Reads kept elements of a posted part after `wait`.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn keep(exposed: fencepost::Exposed<f64, fencepost::lends::Part>) -> Result<f64> {
//!     let kept = exposed.kept(0..1)?;
//!     exposed.wait()?;
//!     Ok(kept[0])
//! }
//! ```
//! Stores into a window that other ranks read.
//! ```compile_fail,E0594
//! use fencepost::prelude::*;
//! fn store(mut exposed: fencepost::Exposed<f64, fencepost::lends::ReadOnly>) {
//!     exposed[0] = 1.0;
//! }
//! ```
//! Puts a section through an access. An access does not hold the part of this rank.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn put(access: &fencepost::Access<f64>) -> Result<()> {
//!     access.put(0..2).to(0, 0)
//! }
//! ```
//! Calls an operation of an access after the end of the access.
//! ```compile_fail,E0382
//! use fencepost::prelude::*;
//! fn put(access: fencepost::Access<f64>) -> Result<()> {
//!     access.complete()?;
//!     access.put([1.0]).to(0, 0)
//! }
//! ```
//! Moves an access to another thread.
//! ```compile_fail,E0277
//! fn hand(access: fencepost::Access<f64>) {
//!     std::thread::spawn(move || drop(access));
//! }
//! ```
//! Uses a buffer that an epoch between some ranks borrows, before the epoch is over.
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
//! Stores into a window that other ranks access under locks.
//! ```compile_fail,E0608
//! use fencepost::prelude::*;
//! fn store(mut u: LockWindow<f64>) {
//!     u[0] = 1.0;
//! }
//! ```
//! Stores into a buffer that a get borrows.
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
//! Stores into a buffer that a get borrows, in another thread.
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
//! Calls an operation of a window in another thread of its rank.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(u: &Window<f64>) {
//!     std::thread::scope(|threads| {
//!         threads.spawn(|| u.put([1.0]).to(1, 0));
//!     });
//! }
//! ```
//! Puts values whose type is not that of the window's elements.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[superstep]
//! fn narrow(u: &mut Window<f64>) -> Result<()> {
//!     u.put(&[1.0f32]).to(0, 0)
//! }
//! ```
//! Creates a window of elements that are not plain old data.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn strings(world: &World) -> Result<Window<String>> {
//!     world.window(3)
//! }
//! ```
//! Derives `Element` for a struct with padding between its fields.
//! ```compile_fail,E0080
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Padded(u8, f64);
//! ```
//! Derives `Element` for a struct with padding at its end.
//! ```compile_fail,E0080
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Padded(f64, u8);
//! ```
//! Derives `Element` for a struct with a `bool`, which is no element, since not every byte is a
//! valid `bool`.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[derive(Clone, Copy, Element)]
//! #[repr(C)]
//! struct Flag(bool);
//! ```
//! Derives `Element` for a struct that is not `Copy`.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! #[derive(Element)]
//! #[repr(C)]
//! struct Owned(u64);
//! ```
//! Uses a window in another thread. Only its slice may be used there.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(u: &Window<f64>) {
//!     std::thread::scope(|scope| {
//!         scope.spawn(|| u.put([1.0]).to(0, 0));
//!     });
//! }
//! ```
//! Passes arguments to a replay, which takes only the windows. The plan contains the arguments.
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
//! Runs a prepared superstep without an argument of its function. `run` takes all arguments that
//! the function takes.
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
//! Compiles ahead with an argument whose type is not that of the superstep's argument.
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
//! Imports transports and jobs. They are private, because their functions rely on the caller to
//! pass valid addresses and to call them once.
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
//! Reads the part of a window for locks as a slice. Other ranks may access the part at any time.
//! ```compile_fail,E0608
//! use fencepost::prelude::*;
//! fn first(u: &LockWindow<f64>) -> f64 {
//!     u[0]
//! }
//! ```
//! Calls the fence of a window for locks.
//! ```compile_fail,E0599
//! use fencepost::prelude::*;
//! fn fence(mut u: LockWindow<f64>) -> Result<()> {
//!     u.fence()
//! }
//! ```
//! Converts a window for locks back into a window while this rank holds a lock.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn back(u: LockWindow<f64>) -> Result<()> {
//!     let lock = u.lock(0, LockType::Shared)?;
//!     let u = u.into_window()?;
//!     lock.unlock()
//! }
//! ```
//! Calls an operation of a lock of all parts after the lock was released.
//! ```compile_fail,E0505
//! use fencepost::prelude::*;
//! fn late(u: &LockWindow<f64>) -> Result<()> {
//!     let all = u.lock_all()?;
//!     let on = all.on(0)?;
//!     all.unlock()?;
//!     on.put([1.0], 0)
//! }
//! ```
//! Returns the part of this rank from its exclusive epoch.
//! ```compile_fail
//! use fencepost::prelude::*;
//! fn kept<'u>(u: &'u LockWindow<f64>) -> Result<&'u mut [f64]> {
//!     u.local_mut(|part| Ok(part))
//! }
//! ```
//! Moves a lock to another thread.
//! ```compile_fail,E0277
//! use fencepost::prelude::*;
//! fn elsewhere(lock: fencepost::Lock<'static, f64>) {
//!     std::thread::spawn(move || lock.unlock());
//! }
//! ```
