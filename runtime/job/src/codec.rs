//! Encoding and decoding of little-endian numbers, texts and addresses: the fields of the job's
//! messages.
//!
//! The [`Reader`] trusts no input: it compares every length with the number of bytes present before
//! it allocates memory, and bytes left over at the end are an error.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// Why bytes are not a valid message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "malformed message: {}", self.0)
    }
}

/// Appends encoded values to a buffer.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn duration(&mut self, value: Duration) {
        self.u64(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.u32(value.len() as u32);
        self.0.extend(value);
    }

    pub(crate) fn os(&mut self, value: &OsStr) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn address(&mut self, value: SocketAddr) {
        self.ip(value.ip());
        self.0.extend(value.port().to_le_bytes());
    }

    pub(crate) fn ip(&mut self, value: IpAddr) {
        match value {
            IpAddr::V4(ip) => {
                self.u8(4);
                self.0.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                self.u8(6);
                self.0.extend(ip.octets());
            }
        }
    }

    pub(crate) fn list<T>(&mut self, values: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.u32(values.len() as u32);
        values.iter().for_each(|value| each(self, value));
    }
}

/// Decodes values from the start of a slice.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed("it is truncated"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed("it is truncated"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Malformed> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed("a truth value is neither 0 nor 1")),
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn duration(&mut self) -> Result<Duration, Malformed> {
        self.u64().map(Duration::from_nanos)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let count = self.u32()? as usize;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.bytes()?;
        str::from_utf8(bytes).map(str::to_owned).map_err(|_| Malformed("a text is not UTF-8"))
    }

    pub(crate) fn os(&mut self) -> Result<OsString, Malformed> {
        self.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    pub(crate) fn ip(&mut self) -> Result<IpAddr, Malformed> {
        match self.u8()? {
            4 => Ok(Ipv4Addr::from(self.array::<4>()?).into()),
            6 => Ok(Ipv6Addr::from(self.array::<16>()?).into()),
            _ => Err(Malformed("unknown kind of address")),
        }
    }

    pub(crate) fn address(&mut self) -> Result<SocketAddr, Malformed> {
        let ip = self.ip()?;
        Ok(SocketAddr::new(ip, u16::from_le_bytes(self.array()?)))
    }

    /// Decodes a list of values that take at least `least` bytes each. Allocates no more than the
    /// remaining bytes can fill.
    pub(crate) fn list<T>(
        &mut self,
        least: usize,
        mut each: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        if count > self.0.len() / least.max(1) {
            return Err(Malformed("a list is longer than its message"));
        }
        (0..count).map(|_| each(self)).collect()
    }

    pub(crate) fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed("bytes follow its end")) }
    }
}
