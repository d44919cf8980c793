//! Numbers and text as bytes, and reading them without believing them: whatever the bytes are, the answer is a value
//! or [`Malformed`], never a panic, and nothing is allocated that is not there.

use std::fmt;

/// Bytes that no version of this program writes, and what they should have been.
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

/// Appends a number near zero, of either sign.
pub(in crate::embedded) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Appends bytes with their number before them.
pub(in crate::embedded) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Begins with the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// So many bytes.
    pub fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        self.rest.split_off(..bytes).ok_or(Malformed(what))
    }

    /// So many bytes, known to the compiler.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        self.take(N, what)?.try_into().map_err(|_| Malformed(what))
    }

    /// One byte.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.rest.split_off_first().copied().ok_or(Malformed(what))
    }

    /// A number in seven-bit groups.
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

    /// A number of a smaller type.
    pub fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, Malformed> {
        T::try_from(self.number(what)?).map_err(|_| Malformed(what))
    }

    /// As [`put_signed`] wrote it.
    pub fn signed(&mut self, what: &'static str) -> Result<i64, Malformed> {
        let number = self.number(what)?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// As [`put_bytes`] wrote them.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let bytes = self.small::<usize>(what)?;
        self.take(bytes, what)
    }

    /// As [`put_bytes`] wrote them, and text.
    pub fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.bytes(what)?).map_err(|_| Malformed(what))
    }

    /// That nothing is left.
    pub fn end(self) -> Result<(), Malformed> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("nothing more")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
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
    fn what_is_cut_or_too_long_is_malformed() {
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
