use fencepost::prelude::*;

type Field = Window<f64>;

#[superstep]
fn shared(u: &mut Window<f64>, old: &Window<f64>) -> Result<()> {
    old.put(0..4).to(0, 0)?;
    u.put(0..4).to(0, 4)
}

#[superstep]
fn under_an_alias(u: &mut Window<f64>, v: &mut Field) -> Result<()> {
    v.put(0..4).to(0, 0)?;
    u.put(0..4).to(0, 4)
}

#[superstep]
fn unfinished_put(u: &mut Window<f64>) -> Result<()> {
    u.put(0..4);
    Ok(())
}

#[superstep]
fn unfinished_get(u: &mut Window<f64>) -> Result<()> {
    u.get(0..4);
    Ok(())
}

#[superstep]
fn another_epoch(u: &mut Window<f64>) -> Result<()> {
    u.epoch(|epoch| epoch.put([1.0]).to(0, 0))
}

#[superstep]
fn same_elements(u: &mut Window<f64>, to: usize) -> Result<()> {
    u.put([1.0, 2.0]).to(to, 3)?;
    u.accumulate([1.0], Op::Sum).to(to, 4)
}

#[superstep]
fn uniform_window(#[uniform] u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

fn main() {}
