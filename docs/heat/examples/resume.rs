//! Runs `heat` with snapshots, from the last one if there is one.

use fencepost::Result;
use std::path::Path;
use std::time::Duration;

fn main() -> Result<()> {
    let saved = (Path::new("out/snapshots"), Duration::from_secs(600));
    fencepost::run(|world| heat::resume(world, [512, 512], 100_000, saved).map(drop))
}
