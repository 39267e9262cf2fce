//! The passes, one per file, in the order in which they run. Each pass is a function from one stage
//! to the next.

pub(crate) mod classes;
pub mod coalesce;
pub mod combine;
pub mod count;
pub(crate) mod cover;
pub mod lower;
pub(crate) mod neighbours;
pub mod normalise;
pub mod order;
pub mod pipeline;
pub mod place;
pub mod route;
mod writers;

pub use coalesce::coalesce;
pub use combine::combine;
pub use count::count;
pub use lower::lower;
pub use normalise::normalise;
pub use order::order;
pub use pipeline::pipeline;
pub use place::place;
pub use route::route;
