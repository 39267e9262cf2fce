//! Prints patterns as text, and parses them.

use super::{element, parse_ranks, ranks};
use crate::element::Op;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{Delta, Id, WindowId};
use crate::ir::pattern::{Kind, Local, Operation, Order, Pattern, Patterns, Site, Sync};
use std::fmt;
use std::str::FromStr;

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Put => f.write_str("put"),
            Kind::Get => f.write_str("get"),
            Kind::Accumulate(op) => write!(f, "accumulate {op}"),
        }
    }
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Local::Buffer => f.write_str("buffer"),
            Local::Section { window, datatype } => write!(f, "{window} {datatype}"),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { kind, window, remote, local, .. } = self;
        let target = self.target.map_or("none".to_string(), |target| target.to_string());
        match kind {
            Kind::Get => write!(f, "{kind} {target} {window} {remote} -> {local}")?,
            _ => write!(f, "{kind} {local} -> {target} {window} {remote}")?,
        }
        if self.mode != crate::ir::pattern::Mode::Auto {
            write!(f, " mode {}", super::mode(self.mode))?;
        }
        if self.site.line > 0 {
            write!(f, " at {}", self.site)?;
        }
        Ok(())
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "superstep {}", self.name)?;
        for (id, element) in self.windows.iter() {
            writeln!(f, "window {id} {element}")?;
        }
        write!(f, "shape")?;
        self.shape.iter().try_for_each(|n| write!(f, " {n}"))?;
        writeln!(f)?;
        if self.order == Order::Relaxed {
            writeln!(f, "order relaxed")?;
        }
        if self.sync == Sync::Pscw {
            writeln!(f, "sync pscw")?;
        }
        for (id, pattern) in self.classes.iter() {
            writeln!(f, "class {id}")?;
            pattern.operations.values().try_for_each(|operation| writeln!(f, "  {operation}"))?;
        }
        ranks(f, &self.class_of)
    }
}

impl FromStr for Patterns {
    type Err = Error;

    /// Parses what `Display` writes. Skips empty lines and lines that begin with `#`.
    ///
    /// # Errors
    /// Class `Arg`, with the line that is not valid.
    fn from_str(text: &str) -> Result<Self> {
        let mut patterns = Patterns {
            name: String::new(),
            windows: crate::table::Table::new(),
            shape: Vec::new(),
            classes: crate::table::Table::new(),
            class_of: Vec::new(),
            order: Order::Canonical,
            sync: Sync::Fence,
        };
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            read_line(line, &mut patterns).ok_or_else(|| {
                Error::new(
                    ErrorClass::Arg,
                    format!("line {} is {line:?}, which is not a line of patterns", number + 1),
                )
            })?;
        }
        if patterns.class_of.iter().any(|class| class.index() >= patterns.classes.len()) {
            return Err(Error::new(ErrorClass::Arg, "a rank is of a class that is not described"));
        }
        Ok(patterns)
    }
}

fn read_line(line: &str, patterns: &mut Patterns) -> Option<()> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "superstep" => patterns.name = rest.into(),
        "window" => {
            let (id, kind) = rest.split_once(' ')?;
            let added = patterns.windows.push(element(kind)?);
            (window(id)? == added).then_some(())?;
        }
        "shape" => patterns.shape = rest.split_whitespace().map(|n| n.parse().ok()).collect::<Option<_>>()?,
        "sync" => patterns.sync = (rest == "pscw").then_some(Sync::Pscw)?,
        "order" => patterns.order = (rest == "relaxed").then_some(Order::Relaxed)?,
        "class" => {
            let added = patterns.classes.push(Pattern::default());
            (rest == added.to_string()).then_some(())?;
        }
        "ranks" => patterns.class_of = parse_ranks(rest)?,
        _ => {
            let operation = operation(line)?;
            patterns.classes.values_mut().next_back()?.operations.push(operation);
        }
    }
    Some(())
}

fn window(text: &str) -> Option<WindowId> {
    text.strip_prefix('w')?.parse().ok().map(WindowId)
}

fn operation(line: &str) -> Option<Operation> {
    let (left, right) = line.split_once(" -> ")?;
    let (right, site) = match right.split_once(" at ") {
        Some((right, site)) => {
            let (file, line) = site.rsplit_once(':')?;
            (right, Site { file: file.into(), line: line.parse().ok()?, column: 0 })
        }
        None => (right, Site::default()),
    };
    let (right, mode) = match right.split_once(" mode ") {
        Some((right, mode)) => (right, mode.parse().ok()?),
        None => (right, Default::default()),
    };
    let (word, left) = left.split_once(' ')?;
    let (kind, left) = match word {
        "put" => (Kind::Put, left),
        "get" => (Kind::Get, left),
        "accumulate" => {
            let (op, left) = left.split_once(' ')?;
            (Kind::Accumulate(Op::ALL.into_iter().find(|known| known.to_string() == op)?), left)
        }
        _ => return None,
    };
    let (local, remote) = if kind == Kind::Get { (right, left) } else { (left, right) };
    let local = match local {
        "buffer" => Local::Buffer,
        section => {
            let (id, datatype) = section.split_once(' ')?;
            Local::Section { window: window(id)?, datatype: datatype.parse().ok()? }
        }
    };
    let (target, remote) = remote.split_once(' ')?;
    let target = match target {
        "none" => None,
        "self" => Some(Delta::SELF),
        delta => Some(Delta(delta.parse().ok()?)),
    };
    let (id, remote) = remote.split_once(' ')?;
    Some(Operation { kind, window: window(id)?, target, remote: remote.parse().ok()?, local, mode, site })
}
