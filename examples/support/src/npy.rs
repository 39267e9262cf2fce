//! NumPy's `.npy` files: reads two-dimensional grids of int16, float32 or float64, and writes
//! float64.
//!
//! A file is a magic, a version, a header length, a header (a Python dictionary literal, padded
//! with spaces up to a newline), and the elements. The reader checks every field before it uses it,
//! and allocates no more memory than it has read bytes, whatever shape the header claims.
//!
//! Source: the format's description in NumPy's manual (`numpy.lib.format`), versions 1.0, 2.0 and
//! 3.0.

use crate::grid::Grid;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The largest accepted header; headers of such grids take 128 bytes.
const HEADER_MAX: u32 = 1 << 16;
/// 2 GiB of `f64`.
const CELLS_MAX: u64 = 1 << 28;

/// The reason why a file is not a grid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file does not begin with the magic.
    #[error(
        "not a .npy file: it begins with {0:02x?}, and a .npy file begins with {MAGIC:02x?} (\"\\x93NUMPY\")"
    )]
    Magic([u8; 6]),
    /// A version that this reader does not know.
    #[error(".npy version {0}.{1}; versions 1.0, 2.0 and 3.0 can be read")]
    Version(u8, u8),
    /// The file ends early.
    #[error("truncated: it ends inside its {0}")]
    Truncated(&'static str),
    /// The header is not a valid dictionary.
    #[error("bad header: {0}")]
    Header(String),
    /// Elements of another type.
    #[error("elements are {0}; little-endian int16 ('<i2'), float32 ('<f4') and float64 ('<f8') can be read")]
    Type(String),
    /// The elements are stored by columns.
    #[error("the array is in Fortran order; save it with numpy.ascontiguousarray")]
    FortranOrder,
    /// The shape does not have two dimensions, or it has no cells or too many.
    #[error("shape {0}: a grid has two dimensions, each at least 1, and at most {CELLS_MAX} cells")]
    Shape(String),
    /// Bytes follow the elements.
    #[error("bytes follow the {0} cells of the shape")]
    Trailing(u64),
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads the grid in the file at `path`.
///
/// # Errors
/// The file can't be read, or it is not valid (`InvalidData` with an [`NpyError`]). Both errors
/// name the file.
pub fn load(path: &Path) -> io::Result<Grid> {
    let named = |error: NpyError| {
        let kind = if let NpyError::Io(error) = &error { error.kind() } else { io::ErrorKind::InvalidData };
        io::Error::new(kind, format!("{}: {error}", path.display()))
    };
    let file = File::open(path).map_err(|error| named(error.into()))?;
    read(BufReader::new(file)).map_err(named)
}

/// Writes `grid` to the file at `path`.
///
/// # Errors
/// The file can't be written.
pub fn save(grid: &Grid, path: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    write(grid, &mut out)?;
    out.flush()
}

/// Reads a grid; integers and single precision become `f64` exactly.
///
/// # Errors
/// An [`NpyError`] that names what was found and what can be read.
///
/// # Cost
/// Allocates at most twice as many bytes as it has read.
pub fn read(mut source: impl Read) -> Result<Grid, NpyError> {
    let header = read_header(&mut source)?;
    let mut cells = Vec::new();
    let mut left = header.rows * header.columns;
    let mut bytes = [0; 8192];
    while left > 0 {
        let now = left.min(bytes.len() as u64 / header.element.size());
        let chunk = &mut bytes[..(now * header.element.size()) as usize];
        fill(&mut source, chunk, "elements")?;
        header.element.decode(chunk, &mut cells);
        left -= now;
    }
    if source.read(&mut bytes[..1])? != 0 {
        return Err(NpyError::Trailing(header.rows * header.columns));
    }
    Ok(Grid::new(header.rows as usize, header.columns as usize, cells))
}

/// Writes `grid` as little-endian float64, version 1.0.
///
/// # Errors
/// The errors of `sink`.
pub fn write(grid: &Grid, sink: &mut impl Write) -> io::Result<()> {
    let text =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, {}), }}", grid.rows, grid.columns);
    // Ten bytes precede the header, a newline ends it, and the elements begin at a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    sink.write_all(MAGIC)?;
    sink.write_all(&[1, 0])?;
    sink.write_all(&(length as u16).to_le_bytes())?;
    writeln!(sink, "{text:<width$}", width = length - 1)?;
    grid.cells.iter().try_for_each(|cell| sink.write_all(&cell.to_le_bytes()))
}

#[derive(Clone, Copy)]
enum Element {
    Int16,
    Float32,
    Float64,
}

impl Element {
    fn size(self) -> u64 {
        match self {
            Element::Int16 => 2,
            Element::Float32 => 4,
            Element::Float64 => 8,
        }
    }

    fn decode(self, bytes: &[u8], cells: &mut Vec<f64>) {
        match self {
            Element::Int16 => {
                cells.extend(bytes.as_chunks().0.iter().map(|&b| f64::from(i16::from_le_bytes(b))));
            }
            Element::Float32 => {
                cells.extend(bytes.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))));
            }
            Element::Float64 => cells.extend(bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b))),
        }
    }
}

struct Header {
    element: Element,
    rows: u64,
    columns: u64,
}

/// Does what `read_exact` does. For a short file, the error names the missing part.
fn fill(source: &mut impl Read, bytes: &mut [u8], part: &'static str) -> Result<(), NpyError> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => NpyError::Truncated(part),
        _ => error.into(),
    })
}

fn read_header(source: &mut impl Read) -> Result<Header, NpyError> {
    let mut magic = [0; 6];
    fill(source, &mut magic, "magic")?;
    if &magic != MAGIC {
        return Err(NpyError::Magic(magic));
    }
    let mut version = [0; 2];
    fill(source, &mut version, "version")?;
    let mut length = [0; 4];
    match version {
        [1, 0] => fill(source, &mut length[..2], "header length")?,
        [2 | 3, 0] => fill(source, &mut length, "header length")?,
        [major, minor] => return Err(NpyError::Version(major, minor)),
    }
    let length = u32::from_le_bytes(length);
    if length > HEADER_MAX {
        return Err(NpyError::Header(format!("{length} bytes long; the limit is {HEADER_MAX}")));
    }
    let mut text = vec![0; length as usize];
    fill(source, &mut text, "header")?;
    let text = str::from_utf8(&text).map_err(|_| NpyError::Header("it is not text".into()))?;
    Dictionary::parse(text)?.check()
}

/// The fields of the header, unchecked.
#[derive(Default)]
struct Dictionary<'a> {
    descr: Option<&'a str>,
    fortran_order: Option<bool>,
    shape: Option<Vec<&'a str>>,
}

impl<'a> Dictionary<'a> {
    fn parse(text: &'a str) -> Result<Self, NpyError> {
        let mut found = Dictionary::default();
        let mut scan = Scan { rest: text };
        scan.take("{")?;
        while !scan.at("}") {
            let key = scan.string()?;
            scan.take(":")?;
            let doubled = match key {
                // A list describes a structured type; its contents do not matter.
                "descr" if scan.at("[") => return Err(NpyError::Type("structures".into())),
                "descr" => found.descr.replace(scan.string()?).is_some(),
                "fortran_order" => found.fortran_order.replace(scan.boolean()?).is_some(),
                "shape" => found.shape.replace(scan.tuple()?).is_some(),
                _ => return Err(NpyError::Header(format!("unknown key '{}'", key.escape_debug()))),
            };
            if doubled {
                return Err(NpyError::Header(format!("'{key}' twice")));
            }
            if !scan.at("}") {
                scan.take(",")?;
            }
        }
        scan.take("}")?;
        scan.end()?;
        Ok(found)
    }

    fn check(self) -> Result<Header, NpyError> {
        let missing = |key| NpyError::Header(format!("'{key}' is missing"));
        let element = match self.descr.ok_or_else(|| missing("descr"))? {
            "<i2" => Element::Int16,
            "<f4" => Element::Float32,
            "<f8" => Element::Float64,
            other => return Err(NpyError::Type(format!("'{}'", other.escape_debug()))),
        };
        if self.fortran_order.ok_or_else(|| missing("fortran_order"))? {
            return Err(NpyError::FortranOrder);
        }
        let shape = self.shape.ok_or_else(|| missing("shape"))?;
        let bad = || NpyError::Shape(format!("({})", shape.join(", ")));
        let sides: Vec<u64> =
            shape.iter().map(|side| side.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
        match sides[..] {
            [rows, columns] if (1..=CELLS_MAX).contains(&rows.saturating_mul(columns)) => {
                Ok(Header { element, rows, columns })
            }
            _ => Err(bad()),
        }
    }
}

/// A scanner for the few tokens of a Python literal that a header consists of.
struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    fn wrong(&self, wanted: &str) -> NpyError {
        let found: String = self.rest.trim_start().chars().take(20).flat_map(char::escape_debug).collect();
        NpyError::Header(format!("{wanted} expected before \"{found}\""))
    }

    fn at(&self, token: &str) -> bool {
        self.rest.trim_start().starts_with(token)
    }

    fn take(&mut self, token: &str) -> Result<(), NpyError> {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => self.rest = rest,
            None => return Err(self.wrong(token)),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        let text = self.rest.trim_start();
        let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
        let parts = quote.and_then(|quote| text[1..].split_once(quote));
        let (string, rest) = parts.ok_or_else(|| self.wrong("a string"))?;
        self.rest = rest;
        Ok(string)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.take("True").is_ok() {
            Ok(true)
        } else if self.take("False").is_ok() {
            Ok(false)
        } else {
            Err(self.wrong("True or False"))
        }
    }

    /// Reads whole numbers between parentheses. Returns them as texts, since a number may be too
    /// large for any integer type.
    fn tuple(&mut self) -> Result<Vec<&'a str>, NpyError> {
        let mut items = Vec::new();
        self.take("(")?;
        while !self.at(")") {
            let text = self.rest.trim_start();
            let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            if digits == 0 {
                return Err(self.wrong("a whole number"));
            }
            items.push(&text[..digits]);
            self.rest = &text[digits..];
            if !self.at(")") {
                self.take(",")?;
            }
        }
        self.take(")")?;
        Ok(items)
    }

    fn end(&self) -> Result<(), NpyError> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.wrong("the end")) }
    }
}

/// For fuzzers: reads bytes that may be a file. Returns whether they were a grid, after checking
/// that the grid is written and read back unchanged.
#[cfg(any(test, fuzzing))]
pub fn fuzz(data: &[u8]) -> bool {
    let Ok(grid) = read(data) else { return false };
    assert!(grid.cells.len() <= data.len() && grid.cells.len() == grid.rows * grid.columns);
    let mut written = Vec::new();
    let again = write(&grid, &mut written).map_err(NpyError::from).and_then(|()| read(&written[..]));
    let bits = |grid: &Grid| grid.cells.iter().map(|cell| cell.to_bits()).collect::<Vec<_>>();
    assert!(again.is_ok_and(|again| (again.rows, bits(&again)) == (grid.rows, bits(&grid))));
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_tests_support::random::Random;
    use proptest::prelude::*;

    fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        let length = (header.len() as u32).to_le_bytes();
        bytes.extend(if version == 1 { &length[..2] } else { &length[..] });
        bytes.extend(header.as_bytes());
        bytes.extend(elements);
        bytes
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    fn refusal(bytes: &[u8]) -> String {
        read(bytes).expect_err("bad file").to_string()
    }

    #[test]
    fn each_element_type_and_version_is_read_exactly() {
        let int16: Vec<u8> = [-32768_i16, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
        let float32: Vec<u8> = [0.1_f32, -0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let float64: Vec<u8> = [0.1_f64, 1e300].iter().flat_map(|v| v.to_le_bytes()).collect();
        for version in 1..=3 {
            let cells = |descr: &str, bytes: &[u8]| {
                let grid =
                    read(&file(version, &header(descr, "False", "(1, 2)"), bytes)[..]).expect("good file");
                assert_eq!((grid.rows, grid.columns), (1, 2));
                grid.cells.iter().map(|cell| cell.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!(cells("'<i2'", &int16), [(-32768.0_f64).to_bits(), 7.0_f64.to_bits()]);
            assert_eq!(cells("\"<f4\"", &float32), [f64::from(0.1_f32).to_bits(), (-0.0_f64).to_bits()]);
            assert_eq!(cells("'<f8'", &float64), [0.1_f64.to_bits(), 1e300_f64.to_bits()]);
        }
    }

    #[test]
    fn keys_may_come_in_any_order() {
        let text = "{'shape':(1,1),'descr':'<i2','fortran_order':False}";
        assert_eq!(read(&file(1, text, &[5, 0])[..]).expect("good file").cells, [5.0]);
    }

    #[test]
    fn each_refusal_says_what_was_found_and_what_can_be_read() {
        let good = header("'<i2'", "False", "(1, 2)");
        for (bytes, says) in [
            (b"PK\x03\x04rest of a zip".to_vec(), "not a .npy file"),
            (b"\x93NUM".to_vec(), "inside its magic"),
            (b"\x93NUMPY\x01".to_vec(), "inside its version"),
            (b"\x93NUMPY\x04\x00".to_vec(), "version 4.0"),
            (b"\x93NUMPY\x01\x00\x10".to_vec(), "inside its header length"),
            (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "inside its header"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "4294967295 bytes long"),
            (file(1, &good, &[1, 2, 3]), "inside its elements"),
            (file(1, &good, &[1, 2, 3, 4, 5]), "bytes follow the 2 cells"),
            (file(1, &header("'>i2'", "False", "(1, 2)"), &[0; 4]), "'>i2'"),
            (file(1, &header("'<c16'", "False", "(1, 2)"), &[0; 32]), "'<c16'"),
            (file(1, &header("[('x', '<f8')]", "False", "(1, 2)"), &[0; 16]), "structures"),
            (file(1, &header("'<i2'", "True", "(1, 2)"), &[0; 4]), "Fortran order"),
            (file(1, &header("'<i2'", "Maybe", "(1, 2)"), &[0; 4]), "True or False expected"),
            (file(1, &header("'<i2'", "False", "(2,)"), &[0; 4]), "shape (2)"),
            (file(1, &header("'<i2'", "False", "()"), &[0; 2]), "shape ()"),
            (file(1, &header("'<i2'", "False", "(1, 1, 2)"), &[0; 4]), "shape (1, 1, 2)"),
            (file(1, &header("'<i2'", "False", "(0, 2)"), &[]), "shape (0, 2)"),
            (file(1, &header("'<i2'", "False", "(-1, 2)"), &[0; 4]), "a whole number expected"),
            (file(1, &header("'<f8'", "False", "(4294967296, 4294967296)"), &[]), "at most 268435456 cells"),
            (file(1, &header("'<f8'", "False", "(99999999999999999999, 1)"), &[]), "99999999999999999999"),
            (file(1, "{'descr': '<i2', 'fortran_order': False}", &[]), "'shape' is missing"),
            (file(1, "{'descr': '<i2', 'descr': '<i2'}", &[]), "'descr' twice"),
            (file(1, "{'colour': 'red'}", &[]), "unknown key 'colour'"),
            (file(1, "{} {}", &[]), "the end expected"),
            (file(1, "", &[]), "{ expected"),
        ] {
            let message = refusal(&bytes);
            assert!(message.contains(says), "{message:?} does not say {says:?}");
        }
    }

    #[test]
    fn a_false_shape_allocates_no_more_than_was_read() {
        // The shape claims 2 GiB, and the file has 2 bytes.
        let message = refusal(&file(1, &header("'<f8'", "False", "(16384, 16384)"), &[0; 2]));
        assert!(message.contains("inside its elements"), "{message}");
    }

    #[test]
    fn changed_files_are_refused_or_are_grids() {
        let (mut random, mut grids) = (Random::new(1), 0);
        let mut below = |bound: usize| random.below(bound);
        let good = |version, (descr, size): (&str, usize)| {
            file(version, &header(descr, "False", "(2, 3)"), &vec![7; 6 * size])
        };
        for kind in [("'<i2'", 2), ("'<f4'", 4), ("'<f8'", 8)] {
            for version in 1..=3 {
                let good = good(version, kind);
                assert!(fuzz(&good));
                for bit in 0..good.len() * 8 {
                    let mut changed = good.clone();
                    changed[bit / 8] ^= 1 << (bit % 8);
                    grids += usize::from(fuzz(&changed));
                }
                assert!((0..good.len()).all(|len| !fuzz(&good[..len])));
                for _ in 0..2000 {
                    let mut changed = good.clone();
                    for _ in 0..1 + below(4) {
                        let at = below(changed.len());
                        match below(4) {
                            0 => changed[at] = below(256) as u8,
                            1 => changed[at] = b"0123456789(),:'{} "[below(18)],
                            2 => drop(changed.splice(at..at, [b'9', b'9'])),
                            _ => drop(changed.remove(at)),
                        }
                    }
                    fuzz(&changed);
                }
            }
        }
        assert!(grids > 100, "{grids}");
    }

    #[test]
    fn load_names_the_file() {
        let error = load(Path::new("no/such/place.npy")).expect_err("no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("no/such/place.npy"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_bit_for_bit(rows in 1_usize..9, columns in 1_usize..9, seed: u64) {
            let bits = |i: usize| (i as u64 + 1).wrapping_mul(seed | 1).rotate_left(i as u32);
            let grid = Grid::new(rows, columns, (0..rows * columns).map(|i| f64::from_bits(bits(i))).collect());
            let mut bytes = Vec::new();
            write(&grid, &mut bytes).expect("a vector takes all");
            prop_assert_eq!((bytes.len() - 8 * grid.cells.len()) % 64, 0);
            let back = read(&bytes[..]).expect("a valid file");
            prop_assert_eq!((back.rows, back.columns), (rows, columns));
            prop_assert!(back.cells.iter().zip(&grid.cells).all(|(a, b)| a.to_bits() == b.to_bits()));
        }

        /// Any bytes give a grid with the cells of its shape, or an error, and never a panic.
        #[test]
        fn damaged_files_are_read_or_refused(
            version in 1_u8..4,
            damage in prop::collection::vec((0_usize..200, any::<u8>()), 0..6),
            cut in prop::option::of(0_usize..200),
        ) {
            let mut bytes = file(version, &header("'<i2'", "False", "(3, 4)"), &[9; 24]);
            for (at, byte) in damage {
                let at = at % bytes.len();
                bytes[at] = byte;
            }
            bytes.truncate(cut.unwrap_or(usize::MAX));
            if let Ok(grid) = read(&bytes[..]) {
                prop_assert_eq!(grid.cells.len(), grid.rows * grid.columns);
            }
        }

        #[test]
        fn noise_after_the_magic_is_refused_or_read(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([1, 0, 40, 0]);
            bytes.extend(noise);
            let _: Result<Grid, NpyError> = read(&bytes[..]);
        }

        #[test]
        fn every_header_text_is_refused_or_read(text in "[{}()\\[\\]'\":,a-z<0-9 é]{0,60}") {
            let _: Result<Grid, NpyError> = read(&file(2, &text, &[0; 16])[..]);
        }
    }
}
