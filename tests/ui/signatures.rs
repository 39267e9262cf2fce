use fencepost::prelude::*;

#[superstep]
struct NotAFunction;

struct Solver;

impl Solver {
    #[superstep]
    fn method(&mut self, u: &mut Window<f64>) -> Result<()> {
        u.put([1.0]).to(0, 0)
    }
}

#[superstep]
async fn asynchronous(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep]
const fn constant(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep]
unsafe fn not_safe(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep]
fn no_result(u: &mut Window<f64>) {
    u.put([1.0]).to(0, 0)?;
}

#[superstep]
fn no_window(n: usize) -> Result<()> {
    Ok(())
}

#[superstep]
fn by_value(u: Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

#[superstep]
fn several(all: &mut [Window<f64>]) -> Result<()> {
    all[0].put([1.0]).to(0, 0)
}

#[superstep(fast)]
fn unknown_option(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

fn main() {}
