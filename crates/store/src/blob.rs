//! References to payloads in files beside the log, and the checksums in the names of these files.

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

/// A name that carries a checksum ends with this text and the XXH3 64 of the file as 16 hexadecimal digits.
const SUM: &str = ".sum-";

/// The name and length of a file in the directory of large payloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// The name, never reused for other bytes. Names that 0.1.0 gave have no checksum.
    pub name: Box<str>,
    /// The file's length in bytes.
    pub bytes: u64,
}

impl BlobRef {
    /// Returns the reference for a file of `bytes`. The name begins with `stem` and ends with the checksum of `bytes`.
    pub fn new(stem: &str, bytes: &[u8]) -> Self {
        let sum = XxHash3_64::oneshot(bytes);
        Self { name: format!("{stem}{SUM}{sum:016x}").into(), bytes: bytes.len() as u64 }
    }

    /// Compares `bytes` with the length and the checksum. Returns what is wrong, or `None` if nothing is.
    pub fn damage(&self, bytes: &[u8]) -> Option<String> {
        let mut check = BlobCheck::new(&self.name, self.bytes);
        check.add(bytes);
        check.end().err()
    }
}

/// Compares a file, read in parts, with the length and the checksum of its reference.
pub struct BlobCheck {
    bytes_expected: u64,
    bytes_read: u64,
    /// `None` for a name without a checksum: then only the length is compared.
    sum: Option<u64>,
    hasher: XxHash3_64,
}

impl BlobCheck {
    /// Starts the check of the file `name`, which must have `bytes` bytes.
    pub fn new(name: &str, bytes: u64) -> Self {
        Self { bytes_expected: bytes, bytes_read: 0, sum: sum_in(name), hasher: XxHash3_64::new() }
    }

    /// Adds the next bytes of the file.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes_read += bytes.len() as u64;
        if self.sum.is_some() {
            self.hasher.write(bytes);
        }
    }

    /// Ends the check after the last byte of the file.
    ///
    /// # Errors
    /// What is wrong, as a text to be put behind the file's name.
    pub fn end(self) -> Result<(), String> {
        if self.bytes_read != self.bytes_expected {
            return Err(format!("has {} bytes instead of {}", self.bytes_read, self.bytes_expected));
        }
        match self.sum {
            Some(sum) if sum != self.hasher.finish() => {
                Err("is damaged: its checksum differs from the one in its name".into())
            }
            _ => Ok(()),
        }
    }
}

fn sum_in(name: &str) -> Option<u64> {
    let (_, digits) = name.rsplit_once(SUM)?;
    u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_or_length_is_noticed() {
        let bytes: Vec<u8> = (0..3_000_u32).map(|number| (number * 7) as u8).collect();
        let blob = BlobRef::new("7/x.input", &bytes);
        assert!(blob.name.starts_with("7/x.input.sum-") && blob.bytes == 3_000, "{blob:?}");
        assert_eq!(blob.damage(&bytes), None);
        for at in (0..bytes.len()).step_by(41) {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            assert!(blob.damage(&other).unwrap().contains("checksum"), "{at}");
        }
        assert_eq!(blob.damage(&bytes[1..]).unwrap(), "has 2999 bytes instead of 3000");
        let mut check = BlobCheck::new(&blob.name, blob.bytes);
        bytes.chunks(700).for_each(|piece| check.add(piece));
        assert_eq!(check.end(), Ok(()));
    }

    #[test]
    fn a_name_without_a_checksum_checks_only_the_length() {
        for name in ["7/x.input", "7/x.output.0123456789abcdef", "7/x.sum-12", "7/x.sum-0123456789abcdeg", ""]
        {
            assert_eq!(BlobRef { name: name.into(), bytes: 3 }.damage(b"abc"), None, "{name}");
        }
    }
}
