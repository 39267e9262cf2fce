//! The encoding of the data that ranks send each other: [`Writer`] appends fields to a buffer, and
//! [`Reader`] takes them off again.
//!
//! A field is a number, an array or a `repr(C)` struct without padding, such as the head of a
//! frame. A field has the same bytes in a frame as in memory. Elements travel in the same way, and
//! ranks refuse each other if their byte orders differ. A reader trusts nothing: it compares every
//! length with the bytes that are left.

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit};

/// A buffer to which fields are appended.
pub trait Writer {
    /// Appends a field.
    fn put<T: NoUninit>(&mut self, field: T);

    /// Appends fields of one type, without their number.
    fn put_all<T: NoUninit>(&mut self, fields: &[T]);

    /// Appends the length of `bytes` as a field of 8 bytes, and then the bytes.
    fn put_counted(&mut self, bytes: &[u8]);
}

impl Writer for Vec<u8> {
    #[inline]
    fn put<T: NoUninit>(&mut self, field: T) {
        self.extend_from_slice(bytemuck::bytes_of(&field));
    }

    #[inline]
    fn put_all<T: NoUninit>(&mut self, fields: &[T]) {
        self.extend_from_slice(bytemuck::cast_slice(fields));
    }

    #[inline]
    fn put_counted(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// The bytes that have not been read yet. Each method returns `None` if there are too few bytes, or
/// if they are not a value of the field's type. The remaining bytes are then unspecified.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'b>(pub &'b [u8]);

impl<'b> Reader<'b> {
    /// Takes a field off the front.
    #[inline]
    pub fn take<T: CheckedBitPattern>(&mut self) -> Option<T> {
        bytemuck::checked::try_pod_read_unaligned(self.bytes(size_of::<T>())?).ok()
    }

    /// Takes a field off the end.
    #[inline]
    pub fn take_last<T: CheckedBitPattern>(&mut self) -> Option<T> {
        bytemuck::checked::try_pod_read_unaligned(self.last_bytes(size_of::<T>())?).ok()
    }

    /// Takes this number of fields off the front.
    #[inline]
    pub fn all<T: AnyBitPattern>(
        &mut self,
        count: usize,
    ) -> Option<impl ExactSizeIterator<Item = T> + use<'b, T>> {
        let bytes = self.bytes(count.checked_mul(size_of::<T>())?)?;
        Some(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned))
    }

    /// Takes this number of bytes off the front.
    #[inline]
    pub fn bytes(&mut self, len: impl TryInto<usize>) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len.try_into().ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes this number of bytes off the end.
    #[inline]
    pub fn last_bytes(&mut self, len: impl TryInto<usize>) -> Option<&'b [u8]> {
        let rest = self.0.len().checked_sub(len.try_into().ok()?)?;
        let (rest, taken) = self.0.split_at(rest);
        self.0 = rest;
        Some(taken)
    }

    /// Takes bytes and the length before them, which [`Writer::put_counted`] has written.
    #[inline]
    pub fn counted(&mut self) -> Option<&'b [u8]> {
        let len: u64 = self.take()?;
        self.bytes(len)
    }

    /// Returns whether everything was read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, PartialEq, Debug, NoUninit, CheckedBitPattern)]
    struct Head {
        len: u16,
        is_last: bool,
        code: u8,
    }

    #[test]
    fn fields_are_read_as_they_were_written_and_never_past_the_end() {
        let head = Head { len: 3, is_last: true, code: 9 };
        let mut bytes = Vec::new();
        bytes.put(head);
        bytes.put_all(&[7_u32, 8]);
        bytes.put_counted(b"abc");
        bytes.put([1_u8, 2]);
        fn read(bytes: &[u8]) -> Option<(Head, Vec<u32>, Vec<u8>)> {
            let mut bytes = Reader(bytes);
            assert_eq!(bytes.take_last::<[u8; 2]>()?, [1, 2]);
            let (head, numbers) = (bytes.take()?, bytes.all(2)?.collect());
            let counted = bytes.counted()?.to_vec();
            bytes.is_empty().then_some((head, numbers, counted))
        }
        assert_eq!(read(&bytes), Some((head, vec![7, 8], b"abc".to_vec())));
        let end = bytes.len() - 2;
        for len in 0..end {
            let cut = [&bytes[..len], &bytes[end..]].concat();
            assert_eq!(read(&cut), None, "{len} bytes");
        }
        assert_eq!(read(&[]), None);
        bytes[2] = 2;
        assert_eq!(read(&bytes), None, "2 is no truth value");
    }

    #[test]
    fn lengths_that_overflow_are_more_than_there_is() {
        let all = || Reader(&[0xff; 16]);
        assert!(all().counted().is_none());
        assert!(all().bytes(u64::MAX).is_none());
        assert!(all().last_bytes(usize::MAX).is_none());
        assert!(all().all::<u64>(usize::MAX / 4).is_none());
        assert_eq!(all().all::<u64>(2).map(|words| words.len()), Some(2));
    }
}
