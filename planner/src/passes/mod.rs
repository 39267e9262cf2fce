//! The passes, one a file, in the order in which they run: each is a function from one stage to the next.

pub(crate) mod classes;
mod coalesce;
mod count;
mod cover;
mod lower;
pub(crate) mod neighbours;
mod normalise;
pub mod order;
mod pipeline;
mod place;
mod route;

pub use coalesce::coalesce;
pub use count::count;
pub use lower::lower;
pub use normalise::normalise;
pub use order::order;
pub use pipeline::pipeline;
pub use place::place;
pub use route::route;
