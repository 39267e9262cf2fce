use fencepost::prelude::*;

#[superstep]
fn under_a_condition(u: &mut Window<f64>, n: usize) -> Result<()> {
    u.put([1.0]).to(0, 0)?;
    if n > 3 {
        u.fence()?;
    }
    u.fence()
}

#[superstep]
fn under_a_bound(u: &mut Window<f64>, rounds: usize) -> Result<()> {
    for round in 0..rounds {
        u.put([1.0]).to(0, round)?;
        u.fence()?;
    }
    Ok(())
}

#[superstep]
fn jumped_over(u: &mut Window<f64>, #[uniform] rounds: usize, n: usize) -> Result<()> {
    for round in 0..rounds {
        if round == n {
            continue;
        }
        u.fence()?;
    }
    Ok(())
}

#[superstep]
fn in_a_closure(u: &mut Window<f64>) -> Result<()> {
    let mut end = || u.fence();
    end()
}

#[superstep]
fn returned_before(u: &mut Window<f64>, n: usize) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    u.put([1.0]).to(0, 0)?;
    u.fence()
}

#[superstep]
fn left_open(u: &mut Window<f64>) -> Result<()> {
    u.fence()?;
    u.put([1.0]).to(0, 0)?;
    Ok(())
}

#[superstep]
fn not_together(u: &mut Window<f64>, v: &mut Window<f64>) -> Result<()> {
    u.put(v.section(0..4)).to(0, 0)?;
    u.fence()?;
    v.fence()
}

fn main() {}
