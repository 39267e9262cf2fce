//! How long does an epoch between some of the ranks take, compared with a fence of all ranks?

use fencepost::{Group, Result, Window, World};
use fencepost_benches::{Contest, ours};
use std::time::Duration;

/// Each of two ranks puts an element to the other rank, and fences.
fn fence(iterations: u64) -> Duration {
    let epoch = |_: &World, u: &mut Window<u64>, k: usize| {
        u.put([k as u64]).to(1 - u.rank(), k % 8)?;
        u.fence()
    };
    ours::team(2, iterations, |world| world.window::<u64>(8), epoch)
}

/// Does the same as [`fence`], by post, start, complete and wait.
fn post(iterations: u64) -> Duration {
    let make = |world: &World| Ok((Some(world.window::<u64>(8)?), world.group([1 - world.rank()])?));
    let epoch = |_: &World, (held, other): &mut (Option<Window<u64>>, Group), k: usize| {
        let u = held.take().expect("it is given back");
        let to = 1 - u.rank();
        let exposed = u.post(other)?;
        let access = exposed.start(other)?;
        access.put([k as u64]).to(to, k % 8)?;
        access.complete()?;
        *held = Some(exposed.wait()?);
        Ok(())
    };
    ours::team(2, iterations, make, epoch)
}

/// One rank puts an element to the other rank, which waits for the element. Rank 1 sends nothing
/// but posts.
fn one_way(iterations: u64) -> Duration {
    let make = |world: &World| Ok((Some(world.window::<u64>(8)?), world.group([1 - world.rank()])?));
    let epoch = |world: &World, (held, other): &mut (Option<Window<u64>>, Group), k: usize| -> Result<()> {
        let u = held.take().expect("it is given back");
        *held = Some(if world.rank() == 0 {
            u.post(other)?.wait()?
        } else {
            let access = u.start(other)?;
            access.put([k as u64]).to(0, k % 8)?;
            access.complete()?;
            u
        });
        Ok(())
    };
    ours::team(2, iterations, make, epoch)
}

fn main() {
    fencepost_benches::main(vec![
        Contest::new("one 8-byte put each way, local", 1)
            .side("put and fence", fence)
            .held("post, start, put, complete, wait", 1.3, post)
            .side("one way", one_way),
        Contest::new("one 8-byte put each way, shm", 1)
            .side("put and fence", ours::shm(fence))
            .held("post, start, put, complete, wait", 1.3, ours::shm(post))
            .side("one way", ours::shm(one_way)),
    ]);
}
