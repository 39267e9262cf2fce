use fencepost::prelude::*;

fn a_window_in_another_thread(u: &mut Window<f64>) {
    std::thread::scope(|scope| {
        scope.spawn(|| u[0] = 1.0);
    });
}

fn its_slice_in_another_thread(u: &mut Window<f64>) {
    let cells = &mut u[..];
    std::thread::scope(|scope| {
        scope.spawn(|| cells[0] = 1.0);
    });
}

fn main() {}
