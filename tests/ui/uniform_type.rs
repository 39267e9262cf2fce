use fencepost::prelude::*;

struct Settings {
    rounds: usize,
}

#[superstep]
fn rounds(u: &mut Window<f64>, #[uniform] settings: &Settings) -> Result<()> {
    for round in 0..settings.rounds {
        u.put([1.0]).to(0, round)?;
        u.fence()?;
    }
    Ok(())
}

fn main() {}
