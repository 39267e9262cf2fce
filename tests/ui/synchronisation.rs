//! How a superstep may synchronise. A dynamic superstep cannot be prepared by posts and starts.

use fencepost::prelude::*;

#[superstep(sync = barrier)]
fn another_word(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep(sync = fence)]
fn spelt_out(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep(sync = pscw)]
fn follows_data(u: &mut Window<f64>) -> Result<()> {
    let to = u[0] as usize;
    u.put([1.0]).to(to, 0)
}

fn main() {
    fencepost::run(|world| {
        spelt_out::prepare(world)?;
        follows_data::prepare(world)?;
        Ok(())
    })
    .unwrap();
    follows_data::compile(2, |_| Ok(())).unwrap();
}
