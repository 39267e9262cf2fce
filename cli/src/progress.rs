//! [`Progress`]: shows the current work of a command on a terminal, if the work takes over a
//! second.

use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A line on standard error. It appears a second after this value is made, and disappears when the
/// value is dropped. If standard error is not a terminal, no line appears.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Shows a line with `what` after a second.
    pub fn of(what: impl Into<String>) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let what = what.into();
        let (over, is_over) = channel();
        let shown = move || {
            if is_over.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let line = ProgressBar::new_spinner().with_message(what);
                line.enable_steady_tick(Duration::from_millis(100));
                // An error means that the command has dropped its end.
                let _: Result<(), _> = is_over.recv();
                line.finish_and_clear();
            }
        };
        // If no thread can be started, no line is shown.
        Self(std::thread::Builder::new().spawn(shown).ok().map(|thread| (over, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((over, thread)) = self.0.take() {
            drop(over);
            // A panic of the thread leaves a line on the terminal, and nothing else.
            let _: std::thread::Result<()> = thread.join();
        }
    }
}
