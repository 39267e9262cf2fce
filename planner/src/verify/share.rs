//! Verifies one rank's share of a schedule. The result is the same as for that rank in the whole
//! schedule.
//!
//! A rank's verdict depends on its own program, and on what the ranks around it do with this rank.
//! All of that is in its share.

use super::error::VerifyError;
use super::{Verified, blame, shown};
use crate::ids::{ClassId, Id, Rank};
use crate::ir::schedule::Schedule;
use crate::share::Share;
use crate::table::Table;
use std::sync::Arc;

impl Verified<Schedule> {
    /// Returns a share of `rank` that consists of the whole schedule.
    pub fn share(self: Arc<Self>, rank: Rank) -> Verified<Share> {
        Verified(Share::whole(self, rank))
    }
}

/// Certifies that a share does to its rank's memory what the calls in the share ask for, and
/// nothing else.
///
/// [`verify`](super::verify) shows the same for each rank of a whole schedule. The calls of the
/// rank are taken from the share; the caller must compare them with the real ones.
///
/// # Errors
/// The first damage found; the variant names its kind.
///
/// # Cost
/// Proportional to the rank's program and to the parts of other programs in the share.
pub fn verify_share(share: Share) -> Result<Verified<Share>, VerifyError> {
    let rank = share.rank();
    let mut first: Table<ClassId, Rank> = share.classes.ids().map(|_| rank).collect();
    for (number, class) in share.class_of.iter().enumerate().rev() {
        first[*class] = Rank::new(number);
    }
    shown(&share, &first, Some(rank)).map_err(|error| blame(error, &share))?;
    Ok(Verified(share))
}
