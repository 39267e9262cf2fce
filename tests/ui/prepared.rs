//! `run` of a prepared superstep takes the function's parameters, and `replay` only the windows.
//! `begin` takes the windows by value, and the other parameters if the body has to run.

use fencepost::prelude::*;

#[superstep]
fn sections(u: &mut Window<f64>, to: usize) -> Result<()> {
    u.put(0..1).to(to, 0)
}

#[superstep]
fn values(u: &mut Window<f64>, values: &[f64], to: usize) -> Result<()> {
    u.put(values).to(to, 0)
}

#[superstep]
fn borrowed(u: &mut Window<f64>, values: &[f64], to: usize) -> Result<()> {
    u.put(&values[..]).to(to, 0)
}

fn main() -> Result<()> {
    fencepost::run(|world| {
        let mut u = world.window::<f64>(1)?;
        let mut prepared = sections::prepare(world, 0)?;
        prepared.run(&mut u, 0)?;
        prepared.replay(&mut u)?;
        let mut prepared = values::prepare(world, &[0.0], 0)?;
        prepared.run(&mut u, &[1.0], 0)?;
        prepared.replay(&mut u)?;
        let mut prepared = borrowed::prepare(world, &[0.0], 0)?;
        prepared.run(&mut u, &[1.0], 0)?;
        prepared.replay(&mut u)?;
        let u = sections::prepare(world, 0)?.begin(u)?.finish()?;
        let u = values::prepare(world, &[0.0], 0)?.begin(u, &[1.0], 0)?.finish()?;
        sections::prepare(world, 0)?.begin(u)?.finish().map(drop)
    })
}
