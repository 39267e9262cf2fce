//! Calls MPI through the symbols of its library, which is looked for when a program runs. So one
//! binary works with every MPI, and building the binary requires no MPI.
//!
//! Three binary interfaces are in use. Their functions have the same names and arguments; handles
//! and constants differ.
//!
//! | interface | libraries | handles |
//! |---|---|---|
//! | Open MPI | Open MPI 3 to 5, HPC-X, Spectrum MPI | pointers; constants point to exported data |
//! | MPICH | MPICH 3.1 and newer, Intel MPI, Cray MPICH, MVAPICH | `int`; a constant is a number |
//! | standard | `libmpi_abi.so` of MPICH 5, Intel MPI 2021.17 | pointers; constants are small |
//!
//! | file | idea |
//! |---|---|
//! | `table` | the functions, and a call of each |
//! | `families` | the interfaces, and the constants of each |
//! | `search` | where a library is looked for, and why one is passed over |
//! | `messages` | the calls by which two ranks exchange messages |
//! | `carrier` | a fabric over such messages |
//! | `session` | the ranks between `MPI_Init_thread` and `MPI_Finalize` |
//!
//! **Source** MPI 3.1; the headers of Open MPI 4.1 and MPICH 4.0; for the standard interface MPI
//! 5.0, chapter 20.

mod carrier;
mod families;
mod messages;
mod search;
mod session;
mod stand_in;
mod table;

pub use carrier::{MpiEnd, MpiFabric, MpiReports, OverMpi};
pub use families::Family;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use families::numbers;
pub use search::{Look, Search, Source, search};
pub use session::{Serialized, Session};
#[doc(hidden)]
pub use stand_in::{hybrid_stand_in, mpi_stand_in};
pub use table::{Group, Mpi};
