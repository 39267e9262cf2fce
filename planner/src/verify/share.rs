//! Shows of one rank's share of a schedule what is shown of that rank in the whole.
//!
//! A rank's verdict depends on its own program, and on what those around it do with this rank; all of that is in its share.

use super::error::VerifyError;
use super::{Verified, blame, shown};
use crate::ids::{ClassId, Id, Rank};
use crate::ir::schedule::Schedule;
use crate::share::Share;
use crate::table::Table;
use std::sync::Arc;

impl Verified<Schedule> {
    /// The share of `rank`: all of this schedule.
    pub fn share(self: Arc<Self>, rank: Rank) -> Verified<Share> {
        Verified(Share::whole(self, rank))
    }
}

/// Certify that a share does what the calls in it ask of its rank's memory, and nothing else to that, as
/// [`verify`](super::verify) does for each rank of a whole schedule. The calls of the rank are those that the share says; the
/// caller compares them.
///
/// # Errors
/// The first damage that was found, by name.
///
/// # Cost
/// Follows the rank's program and what of others is in the share.
pub fn verify_share(share: Share) -> Result<Verified<Share>, VerifyError> {
    let rank = share.rank();
    let mut first: Table<ClassId, Rank> = share.classes.ids().map(|_| rank).collect();
    for (number, class) in share.class_of.iter().enumerate().rev() {
        first[*class] = Rank::new(number);
    }
    shown(&share, &first, Some(rank)).map_err(|error| blame(error, &share))?;
    Ok(Verified(share))
}
