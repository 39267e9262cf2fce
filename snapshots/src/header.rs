//! The header of NumPy's `.npy` files: the type, the order and the shape of the array.
//!
//! A file consists of a magic, a version, the length of the header, the header and the elements.
//! The header is a Python dictionary, padded with spaces and ended by a newline. The crate `npyz`
//! reads and writes the dictionary. The crate parses recursively without a limit, and multiplies
//! extents without an overflow check. So this module first checks that the text is one that NumPy
//! can write.
//!
//! Source: the format's description in NumPy's manual (`numpy.lib.format`), versions 1.0, 2.0 and
//! 3.0.

use fencepost_runtime::Element;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr, WriteOptions, WriterBuilder};
use std::any::TypeId;
use std::io::{self, Read};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The longest dictionary that is read, in bytes. The dictionary of an array of numbers has about a
/// hundred bytes.
const TEXT_MAX: u32 = 1 << 16;
/// The deepest nesting of brackets that is parsed. The brackets of the dictionary are the first
/// level. Headers of arrays of numbers have 2 levels, and headers of structured types have more. If
/// a header is parsed, the error can name its structured type. The limit is low because the
/// parser's time doubles with each level.
const DEPTH_MAX: usize = 5;

/// The contents of a file's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// NumPy's type string, such as `<f8`, `>i4` or `|u1` for numbers, or `|V24` for voids.
    pub(crate) descr: String,
    /// Whether the first dimension varies fastest.
    pub(crate) fortran: bool,
    /// The number of elements along each dimension. The size of the array in bytes fits into 63
    /// bits.
    pub(crate) shape: Vec<usize>,
    /// The offset of the first element in the file.
    pub(crate) data: u64,
    /// The size of an element in bytes.
    pub(crate) size: usize,
}

/// Returns NumPy's type string of an element in the memory of a little-endian machine. For an
/// element that is not a number, returns the string of a NumPy void of the same size, such as
/// `|V24`.
pub(crate) fn descr<T: Element>() -> String {
    let id = TypeId::of::<T>();
    macro_rules! among {
        ($($type:ty: $descr:literal,)*) => {
            $(if id == TypeId::of::<$type>() { return $descr.into(); })*
        };
    }
    among! {
        f64: "<f8", f32: "<f4",
        i64: "<i8", i32: "<i4", i16: "<i2", i8: "|i1",
        u64: "<u8", u32: "<u4", u16: "<u2", u8: "|u1",
    }
    if size_of::<usize>() == 8 {
        among! { isize: "<i8", usize: "<u8", }
    }
    format!("|V{}", size_of::<T>())
}

/// Returns the size of an element with this type string, or `None` if [`descr`] never returns this
/// string.
pub(crate) fn size_of_element(descr: &str) -> Option<usize> {
    let dtype = DType::new_scalar(descr.parse().ok()?);
    element(&dtype).ok().filter(|(known, _)| known == descr && !known.starts_with('>')).map(|(_, size)| size)
}

/// Returns the header of a file in C order whose elements have the type string `descr`. The length
/// of the header is a multiple of 64.
///
/// # Panics
/// If `descr` is not a type string.
pub(crate) fn bytes(descr: &str, shape: &[usize]) -> Vec<u8> {
    let element: TypeStr = descr.parse().expect("`descr` is NumPy's string of a type");
    let shape: Vec<u64> = shape.iter().map(|&cells| cells as u64).collect();
    let options = WriteOptions::new_header_only().dtype(DType::new_scalar(element)).shape(&shape);
    options.writer(Vec::new()).write_header_only().expect("a vector takes all bytes")
}

/// Reads the header of a file, up to the first element. The error is the reason why the file does
/// not begin with the header of an array of numbers or voids.
///
/// # Cost
/// Reads and allocates at most 64 KiB, even if the header states a greater length.
pub(crate) fn read(mut source: impl Read) -> Result<Header, String> {
    let mut start = [0; 12];
    fill(&mut source, &mut start[..6], "magic")?;
    if start[..6] != *MAGIC {
        return Err(format!(
            "not a .npy file: it begins with {:02x?}, and a .npy file begins with {MAGIC:02x?} (\"\\x93NUMPY\")",
            &start[..6]
        ));
    }
    fill(&mut source, &mut start[6..8], "version")?;
    let before = match start[6..8] {
        [1, 0] => 10,
        [2 | 3, 0] => 12,
        _ => {
            let [major, minor] = [start[6], start[7]];
            return Err(format!(".npy version {major}.{minor}; versions 1.0, 2.0 and 3.0 can be read"));
        }
    };
    fill(&mut source, &mut start[8..before], "header length")?;
    let length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if length > TEXT_MAX {
        return Err(malformed(format!("it has {length} bytes, and at most {TEXT_MAX} are allowed")));
    }
    let mut all = start[..before].to_vec();
    all.resize(before + length as usize, 0);
    fill(&mut source, &mut all[before..], "header")?;
    let text = str::from_utf8(&all[before..]).map_err(|_| malformed("it is not text"))?;
    admit(text)?;
    let header = NpyHeader::from_reader(&all[..]).map_err(|error| unread(text, &error))?;
    let (descr, size) = element(&header.dtype())?;
    let shape: Option<Vec<usize>> = header.shape().iter().map(|&cells| cells.try_into().ok()).collect();
    let count = header.shape().iter().try_fold(size as u64, |bytes, &cells| bytes.checked_mul(cells));
    // Offsets in files are signed numbers, so the size of the array is limited.
    let shape = shape.filter(|_| count.is_some_and(|count| count <= (i64::MAX as u64) >> 1));
    let shape = shape.ok_or_else(|| too_large(header.shape()))?;
    Ok(Header { descr, fortran: header.order() == Order::Fortran, shape, data: all.len() as u64, size })
}

/// Reads exactly as many bytes as `bytes` has. If the file is too short, the error names `part`.
fn fill(source: &mut impl Read, bytes: &mut [u8], part: &str) -> Result<(), String> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("truncated: it ends inside its {part}"),
        _ => format!("it cannot be read: {error}"),
    })
}

fn malformed(reason: impl AsRef<str>) -> String {
    format!("its header is malformed: {}", reason.as_ref())
}

/// Returns the beginning of a text from the file, for an error.
fn excerpt(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn too_large(shape: &[u64]) -> String {
    format!("its shape {shape:?} is more than a file holds")
}

/// Returns the error for a text that `npyz` refuses. Leaves out the position in the text, which
/// `npyz` draws in several lines.
fn unread(text: &str, error: &io::Error) -> String {
    let reason = error.to_string();
    if reason.contains("type string") || reason.contains("type-string") {
        return unknown_element(&quoted_after(text, "descr").unwrap_or_default());
    }
    let reason = reason.lines().next().unwrap_or_default();
    if reason.contains("could not parse") {
        return malformed(format!(
            "\"{}\" is not a Python dictionary of 'descr', 'fortran_order' and 'shape'",
            excerpt(text.trim())
        ));
    }
    malformed(reason)
}

/// Returns the quoted string that follows a key.
fn quoted_after(text: &str, key: &str) -> Option<String> {
    let (_, rest) = text.split_once(key)?;
    rest.split(['\'', '"']).nth(2).map(str::to_owned)
}

fn unknown_element(given: &str) -> String {
    format!(
        "its elements are '{}'; numbers of 1 to 8 bytes ('<f8', '<f4', '<i4', '|u1', ..) and voids of a fixed size \
         ('|V24') can be read: convert the array with NumPy's `astype`",
        excerpt(given)
    )
}

/// Returns the type string of `dtype`, as [`descr`] writes it, and the size of an element in bytes.
fn element(dtype: &DType) -> Result<(String, usize), String> {
    let refused = || unknown_element(dtype.descr().trim_matches('\''));
    let DType::Plain(plain) = dtype else { return Err(refused()) };
    let size = dtype.num_bytes().filter(|&size| size > 0).ok_or_else(refused)?;
    let known = match plain.type_char() {
        TypeChar::Int | TypeChar::Uint => matches!(size, 1 | 2 | 4 | 8),
        TypeChar::Float => matches!(size, 4 | 8),
        TypeChar::RawData => size <= u32::MAX as usize,
        _ => false,
    };
    if !known {
        return Err(refused());
    }
    let has_order = size > 1 && plain.type_char() != TypeChar::RawData;
    let order = if has_order { plain.endianness() } else { Endianness::Irrelevant };
    Ok((format!("{order}{}{size}", plain.type_char()), size))
}

/// Returns an error unless the text is one dictionary with the keys `descr`, `fortran_order` and
/// `shape`, whose values consist of strings, `True` or `False`, whole numbers, tuples and lists.
/// Also checks that the parser needs little stack and time, and that the product of the extents
/// does not overflow.
fn admit(text: &str) -> Result<(), String> {
    let (mut depth, mut count, mut keys) = (0_usize, 1_u64, Vec::new());
    let (mut last, mut rest) = ("", text.trim_end_matches(['\n', ' ']));
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (token, after) = rest.split_at(word.max(first.len_utf8()));
        rest = after;
        match token {
            " " | "," => {}
            "{" if keys.is_empty() && depth == 0 => depth += 1,
            "(" | "[" if depth > 0 => depth += 1,
            ")" | "]" | "}" if depth > 0 => depth -= 1,
            "'" | "\"" => {
                let (string, after) = rest
                    .split_once(token)
                    .filter(|(string, _)| !string.contains(['\\', '\n', '\r']))
                    .ok_or_else(|| {
                        malformed(format!("a string does not end before \"{}\"", excerpt(rest)))
                    })?;
                (last, rest) = (string, after);
            }
            ":" => keys.push(last),
            "True" | "False" => {}
            number if number.bytes().all(|digit| digit.is_ascii_digit()) => {
                // An extent of 0 counts as 1, since strides are products of the other extents.
                let cells = number.parse::<u64>().ok();
                let product = cells.and_then(|cells| count.checked_mul(cells.max(1)));
                count = product.ok_or_else(|| {
                    malformed(format!("its shape is more than a file holds, from {} on", excerpt(number)))
                })?;
            }
            other => {
                return Err(malformed(format!(
                    "\"{}\" is not part of one",
                    excerpt(&format!("{other}{rest}"))
                )));
            }
        }
        if depth > DEPTH_MAX {
            return Err(malformed(format!("its brackets are nested more than {DEPTH_MAX} deep")));
        }
    }
    keys.sort_unstable();
    if keys != ["descr", "fortran_order", "shape"] {
        return Err(malformed(format!(
            "it has the keys {keys:.60?}, and an array has 'descr', 'fortran_order' and 'shape' once each"
        )));
    }
    Ok(())
}

/// For fuzzers: reads bytes that may be a header. If they are a header, checks that it is written
/// and read back unchanged. Returns whether the bytes are a header.
#[cfg(any(test, fuzzing))]
pub fn fuzz(data: &[u8]) -> bool {
    let Ok(header) = read(data) else { return false };
    assert!(header.data <= data.len() as u64);
    let elements: u64 = header.shape.iter().map(|&cells| cells as u64).product();
    assert!((elements * header.size as u64).checked_add(header.data).is_some_and(|end| end < 1 << 63));
    let written = bytes(&header.descr, &header.shape);
    assert_eq!(written.len() % 64, 0);
    let again = read(&written[..]).expect("what was written is read");
    assert_eq!(again, Header { fortran: false, data: written.len() as u64, ..header });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a file of this version and header.
    fn file(version: u8, text: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        let length = (text.len() as u32).to_le_bytes();
        bytes.extend(if version == 1 { &length[..2] } else { &length[..] });
        bytes.extend(text.as_bytes());
        bytes
    }

    fn text(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}   \n")
    }

    #[test]
    fn an_element_has_the_type_string_of_numpy() {
        let numbers = [descr::<f64>(), descr::<f32>(), descr::<i64>(), descr::<u16>(), descr::<i8>()];
        assert_eq!(numbers, ["<f8", "<f4", "<i8", "<u2", "|i1"]);
        assert_eq!([descr::<[f64; 3]>(), descr::<(/* no bytes */)>()], ["|V24", "|V0"]);
        #[cfg(target_pointer_width = "64")]
        assert_eq!([descr::<usize>(), descr::<isize>()], ["<u8", "<i8"]);
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for descr in ["<f8", ">i4", "|u1", "|V24"] {
            for shape in [&[][..], &[0], &[7], &[3, 0, 5], &[1, 2, 3, 4], &[usize::MAX >> 10]] {
                let bytes = bytes(descr, shape);
                assert_eq!(bytes.len() % 64, 0);
                let header = read(&bytes[..]).expect("it was written");
                assert_eq!((header.descr.as_str(), &header.shape[..]), (descr, shape));
                assert_eq!((header.fortran, header.data), (false, bytes.len() as u64));
                assert!(fuzz(&bytes));
            }
        }
    }

    #[test]
    fn headers_as_numpy_writes_them_are_read_in_all_versions() {
        for version in 1..=3 {
            let one = read(&file(version, &text("'<f8'", "False", "(3,)"))[..]).expect("one dimension");
            assert_eq!((one.fortran, &one.shape[..], one.size), (false, &[3][..], 8));
            let three =
                read(&file(version, &text("'>i2'", "True", "(2, 3, 4)"))[..]).expect("three dimensions");
            assert_eq!(
                (three.descr.as_str(), three.fortran, &three.shape[..]),
                (">i2", true, &[2, 3, 4][..])
            );
            let data = if version == 1 { 10 } else { 12 } + text("'>i2'", "True", "(2, 3, 4)").len();
            assert_eq!(three.data, data as u64);
            assert!(read(&file(version, &text("'|V24'", "False", "()"))[..]).is_ok());
        }
        let packed = "{'shape':(1,1),'descr':\"<i1\",'fortran_order':False}";
        assert_eq!(read(&file(1, packed)[..]).expect("any order of keys").descr, "|i1");
    }

    #[test]
    fn each_refusal_names_what_was_found() {
        let deep = format!("{}1)", "(".repeat(60000));
        for (bytes, expected) in [
            (b"PK\x03\x04rest of a zip".to_vec(), "not a .npy file"),
            (b"\x93NUM".to_vec(), "truncated: it ends inside its magic"),
            (b"\x93NUMPY\x01".to_vec(), "inside its version"),
            (b"\x93NUMPY\x04\x00".to_vec(), "version 4.0"),
            (b"\x93NUMPY\x01\x00\x10".to_vec(), "inside its header length"),
            (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "inside its header"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec(), "4294967295 bytes"),
            (file(1, &text("'<c16'", "False", "(1, 2)")), "'<c16'"),
            (file(1, &text("'<f2'", "False", "(1, 2)")), "'<f2'"),
            (file(1, &text("'|b1'", "False", "(1, 2)")), "'|b1'"),
            (file(1, &text("'|O'", "False", "(1, 2)")), "'|O'"),
            (file(1, &text("'<U7'", "False", "(1, 2)")), "'<U7'"),
            (file(1, &text("'|S7'", "False", "(1, 2)")), "'|S7'"),
            (file(1, &text("'<M8[ns]'", "False", "(1, 2)")), "'<M8[ns]'"),
            (file(1, &text("'<M8[25s]'", "False", "(1, 2)")), "'<M8[25s]'"),
            (file(1, "{'shape': 'descré', 'descr': '?', 'fortran_order': True}"), "shape must be"),
            (file(1, &text("'|V0'", "False", "(1, 2)")), "'|V0'"),
            (file(1, &text("[('x', '<f8'), ('', '|V4')]", "False", "(1, 2)")), "('x', '<f8')"),
            (file(1, &text("[('x', '<f8', (2, 2))]", "False", "(1, 2)")), "elements are"),
            (file(1, &text("'<i2'", "Maybe", "(1, 2)")), "\"Maybe"),
            (file(1, &text("'<i2'", "1", "(1, 2)")), "'fortran_order' value is not a bool"),
            (file(1, &text("'<i2'", "False", "(-1, 2)")), "\"-1, 2)"),
            (file(1, &text("'<i2'", "False", "(0x11, 2)")), "\"0x11, 2)"),
            (file(1, &text("'<i2'", "False", "7")), "shape must be"),
            (file(1, &text("'<f8'", "False", "(4294967296, 4294967296)")), "more than a file holds"),
            (file(1, &text("'<f8'", "False", "(1152921504606846976,)")), "more than a file holds"),
            (file(1, &text("'<f8'", "False", "(0, 4294967296, 4294967296)")), "more than a file holds"),
            (file(1, &text("'<f8'", "False", "(99999999999999999999, 1)")), "99999999999999999999"),
            (file(1, "{'descr': '<i2', 'fortran_order': False}"), "[\"descr\", \"fortran_order\"]"),
            (file(1, "{'descr': '<i2', 'descr': '<i2'}"), "[\"descr\", \"descr\"]"),
            (file(1, "{'colour': 'red'}"), "\"colour\""),
            (file(1, &(text("'<f8'", "False", "(1,)").trim().to_owned() + " {}")), "\"{}\""),
            (file(1, &(text("'<f8'", "False", "(1,)").trim().to_owned() + " ()")), "\"()\""),
            (file(1, &text("'<f8'", "False", "(1, 2]")), "is not a Python dictionary"),
            (file(1, &text("'<f8", "False", "(1, 2)")), "malformed"),
            (file(1, ""), "it has the keys []"),
            (file(2, &text("'<f8'", "False", &deep)), "nested more than 5 deep"),
            (file(2, &text(&"[".repeat(60000), "False", "(1,)")), "nested more than 5 deep"),
        ] {
            let message = read(&bytes[..]).expect_err(expected);
            assert!(
                message.contains(expected) && message.len() < 400,
                "{message:?} does not have {expected:?}"
            );
        }
    }

    /// Checks the worst case: at each level of nesting, the parser reads the last item of a list
    /// twice.
    #[test]
    fn the_deepest_and_longest_text_is_read_in_little_time() {
        let list = format!("{}{}", "['a',".repeat(DEPTH_MAX - 1), "'b',".repeat(15000));
        let whole = format!("{list}{}", "]".repeat(DEPTH_MAX - 1));
        assert!(!fuzz(&file(2, &text(&whole, "False", "(1,)"))));
        let numbers = text("'<f8'", "False", &format!("({})", "1, ".repeat(21000)));
        assert!(fuzz(&file(2, &numbers)));
    }

    #[test]
    fn changed_headers_are_refused_or_read() {
        let mut headers = 0;
        for descr in ["<f8", "|u1", ">i2", "|V24"] {
            let good = bytes(descr, &[2, 31]);
            for bit in 0..good.len() * 8 {
                let mut changed = good.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                headers += usize::from(fuzz(&changed));
            }
            for at in 0..good.len() {
                assert!(!fuzz(&good[..at]), "cut to {at} bytes");
                for byte in b"0(,:'} [\\" {
                    let mut changed = good.clone();
                    changed[at] = *byte;
                    headers += usize::from(fuzz(&changed));
                    changed.insert(at, *byte);
                    fuzz(&changed);
                }
            }
        }
        assert!(headers > 100, "{headers}");
    }

    proptest! {
        #[test]
        fn every_text_is_refused_or_read(text in "[{}()\\[\\]'\":,a-z<0-9 é]{0,60}") {
            fuzz(&file(2, &text));
        }

        #[test]
        fn every_value_is_refused_or_read(value in "[{}()\\[\\]'\":,0-9 |<fV]{0,40}") {
            fuzz(&file(1, &text(&value, "False", "(1, 2)")));
            fuzz(&file(3, &text("'<f8'", "True", &value)));
        }

        #[test]
        fn noise_after_the_magic_is_refused_or_read(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([1, 0, 40, 0]);
            bytes.extend(noise);
            fuzz(&bytes);
        }
    }
}
