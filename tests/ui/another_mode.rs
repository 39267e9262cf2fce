use fencepost::prelude::*;

#[superstep]
fn locks(u: &mut Window<f64>) -> Result<()> {
    u.lock(0)?;
    u.put([1.0]).to(0, 0)?;
    u.unlock(0)
}

fn main() {}
