//! One superstep for each dynamic form. It runs, but compiling it ahead is an error with the line.

use fencepost::prelude::*;

fn helper(u: &mut Window<f64>) -> Result<()> {
    u.put([1.0]).to(0, 0)
}

fn bump(n: &mut usize) {
    *n += 1;
}

macro_rules! send {
    ($window:expr) => {
        $window.put([1.0]).to(0, 0)?
    };
}

#[superstep]
fn helper_function(u: &mut Window<f64>) -> Result<()> {
    helper(u)?;
    Ok(())
}

#[superstep]
fn macro_tokens(u: &mut Window<f64>) -> Result<()> {
    send!(u);
    Ok(())
}

#[superstep]
fn stored_builder(u: &mut Window<f64>) -> Result<()> {
    let put = u.put([1.0]);
    put.to(0, 0)
}

#[superstep]
fn path_call(u: &mut Window<f64>) -> Result<()> {
    Window::put(u, [1.0]).to(0, 0)
}

#[superstep]
fn alias_by_mut(u: &mut Window<f64>) -> Result<()> {
    let w = &mut *u;
    w.put([1.0]).to(0, 0)
}

#[superstep]
fn unknown_mutation(u: &mut Window<f64>, n: usize) -> Result<()> {
    let mut to = n;
    bump(&mut to);
    u.put([1.0]).to(to, 0)
}

#[superstep]
fn window_data(u: &mut Window<f64>) -> Result<()> {
    let to = u[0] as usize;
    u.put([1.0]).to(to, 0)
}

#[superstep]
fn closure(u: &mut Window<f64>, list: &[usize]) -> Result<()> {
    list.iter().try_for_each(|&to| u.put([1.0]).to(to, 0))
}

fn main() -> Result<()> {
    helper_function::compile(4, |_| Ok(()))?;
    macro_tokens::compile(4, |_| Ok(()))?;
    stored_builder::compile(4, |_| Ok(()))?;
    path_call::compile(4, |_| Ok(()))?;
    alias_by_mut::compile(4, |_| Ok(()))?;
    unknown_mutation::compile(4, |rank| Ok(rank))?;
    window_data::compile(4, |_| Ok(()))?;
    closure::compile(4, |rank| Ok(vec![rank]))?;
    fencepost::run(|world| {
        let mut u = world.window::<f64>(1)?;
        unknown_mutation::prepare(world, 1)?.run(&mut u, 1)?;
        unknown_mutation::load(world, "plan", 1)?.run(&mut u, 1)
    })
}
