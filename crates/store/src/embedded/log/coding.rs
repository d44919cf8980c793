//! Encodes and decodes numbers and text. Decoding any bytes returns a value or [`Malformed`]: it never panics, and it
//! allocates nothing.

use std::fmt;

/// Bytes that no version of this program writes, with what was expected in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

/// Appends a number in seven-bit groups.
pub(in crate::embedded) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number, short if it is near zero.
pub(in crate::embedded) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends the number of bytes, then the bytes.
pub(in crate::embedded) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads values from the front of bytes. `what` names the expected value for [`Malformed`].
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads the next `bytes` bytes as a slice.
    pub fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        self.rest.split_off(..bytes).ok_or(Malformed(what))
    }

    /// Reads the next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        self.take(N, what)?.try_into().map_err(|_| Malformed(what))
    }

    /// Reads the next byte as a number.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.rest.split_off_first().copied().ok_or(Malformed(what))
    }

    /// Reads a number in seven-bit groups.
    pub fn number(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let bits = u64::from(byte & 0x7f);
            // The tenth group has room for one bit.
            if bits << shift >> shift != bits {
                return Err(Malformed(what));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed(what))
    }

    /// Reads a number that must fit a smaller type.
    pub fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, Malformed> {
        T::try_from(self.number(what)?).map_err(|_| Malformed(what))
    }

    /// Reads a number that [`put_signed`] wrote.
    pub fn signed(&mut self, what: &'static str) -> Result<i64, Malformed> {
        let number = self.number(what)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads bytes that [`put_bytes`] wrote.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let bytes = self.small::<usize>(what)?;
        self.take(bytes, what)
    }

    /// Reads UTF-8 text that [`put_bytes`] wrote.
    pub fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(what)?).map_err(|_| Malformed(what))
    }

    /// Fails if bytes are left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("nothing more")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_round_trip() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            put_signed(&mut bytes, number as i64);
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decoder.number("a number"), Ok(number));
            assert_eq!(decoder.signed("a number"), Ok(number as i64));
            assert_eq!(decoder.end(), Ok(()));
        }
    }

    #[test]
    fn truncated_or_overlong_values_are_malformed() {
        for bytes in [
            &[][..],
            &[0x80],
            &[0xff; 9],
            &[0xff; 10],
            &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
        ] {
            assert_eq!(Decoder::new(bytes).number("a number"), Err(Malformed("a number")), "{bytes:?}");
        }
        assert_eq!(Decoder::new(&[3, 1, 2]).bytes("bytes"), Err(Malformed("bytes")));
        assert_eq!(Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).bytes("bytes"), Err(Malformed("bytes")));
        assert_eq!(Decoder::new(&[1, 0xff]).text("text"), Err(Malformed("text")));
    }
}
