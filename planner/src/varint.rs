//! Numbers in base 128, with the least significant group first, in the shortest form. Signed
//! numbers are written as `2n` or `-2n - 1`.

pub(crate) fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn write_signed(out: &mut Vec<u8>, value: i64) {
    write(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Reads a number from the front of `bytes`, and advances `bytes` past it.
///
/// # Errors
/// The text describes what is wrong. `bytes` is advanced past the last byte that was read.
pub(crate) fn read(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("it ends too early")?;
        *bytes = rest;
        let group = u64::from(byte & 0x7f);
        if (group << shift) >> shift != group || (byte == 0 && shift > 0) {
            break;
        }
        value |= group << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err("a number is not written the shortest way in 64 bits")
}

pub(crate) fn read_signed(bytes: &mut &[u8]) -> Result<i64, &'static str> {
    let value = read(bytes)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}
