//! [`Unfenced`]: operations that were collected and never fenced. A program that forgets a fence
//! gets a report when it ends.

use fencepost_planner::explain::number_of;
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;

/// The windows, in all worlds of a run, that were dropped while operations waited for their fence.
#[derive(Default)]
pub(crate) struct Unfenced(RefCell<(Vec<Forgotten>, usize)>);

/// The number of windows that are reported one by one.
const MOST: usize = 8;

/// A window with operations that no fence has carried out.
pub(crate) struct Forgotten {
    /// The number of the window.
    pub(crate) window: u32,
    pub(crate) operations: usize,
    /// Whether there may be more than this number of operations, because some were sent early.
    pub(crate) at_least: bool,
    /// The line of the first of these operations, if it is kept.
    pub(crate) first: Option<&'static Location<'static>>,
    /// The line that made the window, or fenced it last.
    pub(crate) since: &'static Location<'static>,
}

impl Unfenced {
    pub(crate) fn add(&self, forgotten: Forgotten) {
        let (told, more) = &mut *self.0.borrow_mut();
        if told.len() < MOST { told.push(forgotten) } else { *more += 1 }
    }

    /// Takes all windows. If there are any, returns a text about them and the line to look at
    /// first.
    pub(crate) fn take(&self) -> Option<(String, &'static Location<'static>)> {
        let (told, more) = self.0.take();
        let first = told.first()?;
        let site = first.first.unwrap_or(first.since);
        let mut what: Vec<String> = told.iter().map(ToString::to_string).collect();
        if more > 0 {
            what.push(format!("and {more} more"));
        }
        let what = what.join("; ");
        Some((
            format!("{what}: fence the window before it is dropped, or give them up by `Window::discard`"),
            site,
        ))
    }
}

impl fmt::Display for Forgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, operations, at_least, first, since } = self;
        let alone = *operations == 1 && !at_least;
        let at_least = if *at_least { "at least " } else { "" };
        let operations = number_of(*operations as u64, "operation");
        write!(f, "window {window} has collected {at_least}{operations}")?;
        match first {
            Some(site) if alone => write!(f, " at {}:{}", site.file(), site.line()),
            Some(site) => write!(f, ", the first at {}:{},", site.file(), site.line()),
            None => write!(f, " since {}:{}, where it was made or fenced last,", since.file(), since.line()),
        }?;
        f.write_str(" that no fence has carried out")
    }
}
