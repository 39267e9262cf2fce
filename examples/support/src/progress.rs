//! The progress of a long run: a bar on a terminal, and nothing in a file or a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Creates a progress bar for `steps` steps on standard error. The bar is drawn several times a
/// second, and hidden if standard error is not a terminal.
pub fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left")
        .expect("the template is valid");
    let bar = ProgressBar::new(steps).with_style(style);
    bar.set_draw_target(indicatif::ProgressDrawTarget::stderr_with_hz(10));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
