//! The words of a section: numbers (as in [`varint`]), strings and references. Each value has one
//! encoding, and the reader checks every bound.

use crate::datatype::Datatype;
use crate::error::{Error, ErrorClass, Result};
use crate::ids::{BufferId, DatatypeId, Id, OperationId};
use crate::intern::Interner;
use crate::varint;
use indexmap::IndexSet;
use std::sync::Arc;

/// A section that is being written, with the tables that all sections refer to.
#[derive(Default)]
pub(super) struct Writer {
    pub bytes: Vec<u8>,
    pub datatypes: Interner<DatatypeId, Datatype>,
    pub files: IndexSet<Arc<str>>,
}

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub fn number(&mut self, value: impl TryInto<u64>) {
        // No number in a schedule has more than 64 bits.
        varint::write(&mut self.bytes, value.try_into().unwrap_or(u64::MAX));
    }

    pub fn signed(&mut self, value: i64) {
        varint::write_signed(&mut self.bytes, value);
    }

    pub fn string(&mut self, text: &str) {
        self.number(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub fn file(&mut self, file: &Arc<str>) {
        let (id, _) = self.files.insert_full(file.clone());
        self.number(id);
    }

    pub fn datatype(&mut self, datatype: &Datatype) {
        let id = self.datatypes.intern_ref(datatype);
        self.number(id.index());
    }

    /// Returns the section so far and clears it; the tables stay.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

/// The tables that the words of a section may refer to.
#[derive(Default)]
pub(super) struct Known {
    pub ranks: u32,
    pub windows: usize,
    pub files: Vec<Arc<str>>,
    pub datatypes: Vec<Datatype>,
}

/// A section that is being read.
pub(super) struct Reader<'a> {
    section: &'static str,
    whole: usize,
    bytes: &'a [u8],
    pub known: &'a Known,
    /// The smallest numbers of operations and buffers with which the current instruction is valid.
    pub uses: Uses,
}

/// The smallest numbers of operations and buffers of a program with which its instructions are
/// valid.
#[derive(Clone, Copy, Default)]
pub(super) struct Uses {
    pub operations: usize,
    pub buffers: usize,
}

impl<'a> Reader<'a> {
    pub fn new(section: &'static str, bytes: &'a [u8], known: &'a Known) -> Self {
        Self { section, whole: bytes.len(), bytes, known, uses: Uses::default() }
    }

    /// Creates the error for a file that is damaged at the current position.
    pub fn bad(&self, what: impl std::fmt::Display) -> Error {
        let (section, at) = (self.section, self.whole - self.bytes.len());
        Error::new(
            ErrorClass::File,
            format!(
                "the plan file is damaged: section `{section}`, before byte {at}: {what}; compile the plan again"
            ),
        )
    }

    /// Checks that every byte has been read.
    pub fn end(self) -> Result<()> {
        match self.bytes.len() {
            0 => Ok(()),
            more => Err(self.bad(format_args!("{more} bytes more than expected"))),
        }
    }

    pub fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.bytes.split_first().ok_or_else(|| self.bad("it ends too early"))?;
        self.bytes = rest;
        Ok(byte)
    }

    pub fn flag(&mut self) -> Result<bool> {
        self.one_of("a yes or no", &[false, true])
    }

    /// Reads a code, and returns the value that it represents.
    pub fn one_of<T: Copy>(&mut self, what: &str, values: &[T]) -> Result<T> {
        let code = self.byte()?;
        values.get(usize::from(code)).copied().ok_or_else(|| self.unknown(what, code, values.len()))
    }

    /// Creates the error for a `code` that represents no value.
    pub fn unknown(&self, what: &str, code: u8, count: usize) -> Error {
        self.bad(format_args!("code {code} where {what} is expected, below {count}"))
    }

    pub fn number(&mut self) -> Result<u64> {
        varint::read(&mut self.bytes).map_err(|what| self.bad(what))
    }

    pub fn signed(&mut self) -> Result<i64> {
        varint::read_signed(&mut self.bytes).map_err(|what| self.bad(what))
    }

    pub fn u32(&mut self) -> Result<u32> {
        let value = self.number()?;
        u32::try_from(value)
            .map_err(|_| self.bad(format_args!("{value} where at most {} is expected", u32::MAX)))
    }

    pub fn usize(&mut self) -> Result<usize> {
        let value = self.number()?;
        match usize::try_from(value) {
            Ok(value) if value <= isize::MAX as usize => Ok(value),
            _ => Err(self.bad(format_args!("{value} where at most {} is expected", isize::MAX))),
        }
    }

    /// Reads a number that refers to a row of a table with `limit` rows.
    pub fn index(&mut self, what: &str, limit: usize) -> Result<usize> {
        let value = self.number()?;
        match usize::try_from(value) {
            Ok(value) if value < limit => Ok(value),
            _ => Err(self.bad(format_args!("{what} {value}, where there are {limit}"))),
        }
    }

    pub fn id<I: Id>(&mut self, what: &str, limit: usize) -> Result<I> {
        Ok(I::new(self.index(what, limit)?))
    }

    /// Reads a reference to an operation. The program comes later in the section, so `uses` records
    /// that it must have this operation.
    pub fn operation(&mut self) -> Result<OperationId> {
        let operation = OperationId(self.u32()?);
        self.uses.operations = self.uses.operations.max(operation.index().saturating_add(1));
        Ok(operation)
    }

    /// Reads a reference to a buffer. The program comes later in the section, so `uses` records
    /// that it must have this buffer.
    pub fn buffer(&mut self) -> Result<BufferId> {
        let buffer = BufferId(self.u32()?);
        self.uses.buffers = self.uses.buffers.max(buffer.index().saturating_add(1));
        Ok(buffer)
    }

    /// Reads the number of items that follow. Each item takes at least one byte, so the length of
    /// the file limits the memory that is allocated for the items.
    pub fn count(&mut self) -> Result<usize> {
        let value = self.number()?;
        match usize::try_from(value) {
            Ok(count) if count <= self.bytes.len() => Ok(count),
            _ => Err(self.bad(format_args!("{value} items in the {} bytes left", self.bytes.len()))),
        }
    }

    /// Reads a count, and then that number of items.
    pub fn all<T, C: FromIterator<T>>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T>) -> Result<C> {
        let count = self.count()?;
        (0..count).map(|_| read(self)).collect()
    }

    pub fn string(&mut self) -> Result<&'a str> {
        let length = self.count()?;
        let (text, rest) = self.bytes.split_at(length);
        let text = std::str::from_utf8(text).map_err(|_| self.bad("a name that is not UTF-8"))?;
        self.bytes = rest;
        Ok(text)
    }

    pub fn file(&mut self) -> Result<Arc<str>> {
        let file = self.index("file", self.known.files.len())?;
        Ok(self.known.files[file].clone())
    }

    pub fn datatype(&mut self) -> Result<Datatype> {
        let datatype = self.index("datatype", self.known.datatypes.len())?;
        Ok(self.known.datatypes[datatype].clone())
    }

    /// Reads a datatype that is in the section itself, not a reference to one.
    pub fn datatype_itself(&mut self) -> Result<Datatype> {
        Datatype::decode(&mut self.bytes).map_err(|error| self.bad(error.message()))
    }
}
