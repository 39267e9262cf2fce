//! Every stage as text, with one line for each item. Tests, `explain` and error messages use the
//! same words.
//!
//! Patterns can be parsed as well as printed: see [`Patterns`](crate::ir::pattern::Patterns). The
//! words:
//!
//! ```text
//! put w0 0..4 -> +1 w0 8..12 mode direct at heat.rs:7  the origin's elements, then the target's
//! get +1 w0 0..4 -> buffer                             where they come from, then where they go
//! accumulate SUM buffer -> none w1 0+[9 by 8]x1        `none` is MPI's PROC_NULL
//! ```

mod pattern;
mod schedule;
mod stages;

use crate::element::{ElementKind, ElementType, Scalar};
use crate::ids::{ClassId, Id};
use crate::ir::pattern::Mode;
use std::fmt;

fn scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::I8 => "i8",
        Scalar::I16 => "i16",
        Scalar::I32 => "i32",
        Scalar::I64 => "i64",
        Scalar::U8 => "u8",
        Scalar::U16 => "u16",
        Scalar::U32 => "u32",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ElementKind::Scalar(kind) => f.write_str(scalar(kind)),
            ElementKind::ValueAt(value, index) => write!(f, "{} at {}", scalar(value), scalar(index)),
            ElementKind::Opaque => write!(f, "{} bytes", self.size),
        }
    }
}

fn element(text: &str) -> Option<ElementType> {
    let of = |name: &str| Scalar::ALL.into_iter().find(|&kind| scalar(kind) == name);
    if let Some(kind) = of(text) {
        return Some(ElementType::scalar(kind));
    }
    if let Some((value, index)) = text.split_once(" at ") {
        let (value, index) = (of(value)?, of(index)?);
        return Some(ElementType {
            size: value.size() + index.size(),
            kind: ElementKind::ValueAt(value, index),
        });
    }
    let size = text.strip_suffix(" bytes")?.parse().ok()?;
    (size > 0).then(|| ElementType::opaque(size))
}

/// Returns the name of a mode, which can be parsed again.
pub(crate) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Auto => "auto",
        Mode::Aggressive => "aggressive",
        Mode::Aggregated => "aggregated",
        Mode::Pipelined => "pipelined",
        Mode::Direct => "direct",
    }
}

/// Writes the class of each rank, with equal neighbours combined: `ranks c0 c1 x3 c2`.
fn ranks(f: &mut fmt::Formatter<'_>, class_of: &[ClassId]) -> fmt::Result {
    f.write_str("ranks")?;
    for run in class_of.chunk_by(|a, b| a == b) {
        write!(f, " {}", run[0])?;
        if run.len() > 1 {
            write!(f, " x{}", run.len())?;
        }
    }
    writeln!(f)
}

fn parse_ranks(text: &str) -> Option<Vec<ClassId>> {
    let mut class_of: Vec<ClassId> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(times) = word.strip_prefix('x') {
            let (&last, times) = (class_of.last()?, times.parse::<u32>().ok().filter(|&times| times > 0)?);
            class_of.extend(std::iter::repeat_n(last, times as usize - 1));
        } else {
            class_of.push(ClassId::new(word.strip_prefix('c')?.parse::<u32>().ok()? as usize));
        }
    }
    Some(class_of)
}
