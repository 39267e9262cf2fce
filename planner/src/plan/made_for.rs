//! [`MadeFor`]: the machine, the options and the recipe that a plan was made for. They are in a
//! section of the plan file that the digest does not cover.

use super::words::{Reader, Writer};
use crate::error::Result;
use crate::ir::pattern::Mode;
use crate::machine::Machine;
use crate::options::Options;
use crate::units::Bytes;

/// The machine, the options and the recipe that a plan was made for. The placement of the ranks is
/// in the schedule. Two plans with one schedule have one digest, whatever they were made for.
#[derive(Clone, PartialEq, Debug)]
pub struct MadeFor {
    /// The machine for which modes, routes and chunks were chosen.
    pub machine: Machine,
    /// The choices of the caller.
    pub options: Options,
    /// The name of the recipe that the plan was made from; empty if there was none.
    pub recipe: String,
    /// The values of the recipe that the program read, by name, in the order in which it read them.
    pub values: Vec<(String, String)>,
}

impl MadeFor {
    /// Creates the record of a plan that was made for this machine with these options, without a
    /// recipe.
    pub fn new(machine: &Machine, options: &Options) -> Self {
        Self { machine: *machine, options: *options, recipe: String::new(), values: Vec::new() }
    }

    pub(super) fn write(&self, to: &mut Writer) {
        let Self { machine, options: Options { mode, coalesce, chunk, cap }, recipe, values } = self;
        to.string(&machine.to_string());
        to.string(&mode.to_string());
        to.byte(u8::from(*coalesce));
        for bytes in [chunk, cap] {
            to.byte(u8::from(bytes.is_some()));
            bytes.iter().for_each(|bytes| to.number(bytes.0));
        }
        to.string(recipe);
        to.number(values.len());
        for (name, value) in values {
            to.string(name);
            to.string(value);
        }
    }

    /// Reads a section.
    ///
    /// # Errors
    /// FILE if the section is not one that [`write`](Self::write) writes.
    pub(super) fn read(mut from: Reader<'_>) -> Result<Self> {
        let text = from.string()?;
        let machine: Machine = text.parse().map_err(|error: crate::Error| from.bad(error.message()))?;
        if machine.to_string() != text {
            return Err(from.bad("a machine that is not written as `Machine` writes it"));
        }
        let mode: Mode = from.string()?.parse().map_err(|error: crate::Error| from.bad(error.message()))?;
        let coalesce = from.flag()?;
        let mut bytes = || -> Result<_> { Ok(if from.flag()? { Some(Bytes(from.number()?)) } else { None }) };
        let (chunk, cap) = (bytes()?, bytes()?);
        let recipe = from.string()?.to_owned();
        let values = from.all(|from| Ok((from.string()?.to_owned(), from.string()?.to_owned())))?;
        from.end()?;
        Ok(Self { machine, options: Options { mode, coalesce, chunk, cap }, recipe, values })
    }
}
