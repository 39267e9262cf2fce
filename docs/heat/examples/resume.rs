//! Runs `heat` with snapshots. It continues from the last snapshot, if there is one.

use fencepost::Result;
use std::path::Path;
use std::time::Duration;

fn main() -> Result<()> {
    let saved = (Path::new("out/snapshots"), Duration::from_secs(600));
    fencepost::run(|world| heat::resume(world, [512, 512], 100_000, saved).map(drop))
}
