//! Progress of a long run: a bar where a person looks at a terminal, nothing in a file or a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A bar of `steps` on standard error, drawn at most a few times a second; hidden where that is no terminal.
pub fn bar(steps: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {pos}/{len} steps, {eta} left").expect("a template of ours");
    let bar = ProgressBar::new(steps).with_style(style);
    bar.set_draw_target(indicatif::ProgressDrawTarget::stderr_with_hz(10));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}
