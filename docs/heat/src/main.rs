//! Runs `heat` with the ranks that the environment asks for.

use fencepost::Result;

fn main() -> Result<()> {
    fencepost::run(|world| heat::run(world, [512, 512], 100).map(drop))
}
