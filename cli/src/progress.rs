//! [`Progress`]: what a command is doing, on a terminal, once it has taken a second.

use indicatif::ProgressBar;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A line on standard error, from a second after it was made until it is dropped. Without a
/// terminal there is none.
pub struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts the second, after which a line with `what` is shown.
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
        // Without a thread there is no line.
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
