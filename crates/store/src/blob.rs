//! References to files beside the store.

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

/// What a name ends with that says what is in its file: this and 16 hexadecimal digits.
const SUM: &str = ".sum-";

/// Names a file of the blob folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Its name; never reused for other bytes. Older ones do not end with the checksum.
    pub name: Box<str>,
    /// Its length.
    pub bytes: u64,
}

impl BlobRef {
    /// For a file of these bytes: the name is to begin like this, and ends with their checksum.
    pub fn new(stem: &str, bytes: &[u8]) -> Self {
        let sum = XxHash3_64::oneshot(bytes);
        Self { name: format!("{stem}{SUM}{sum:016x}").into(), bytes: bytes.len() as u64 }
    }

    /// Why these bytes are not those that were kept.
    pub fn damage(&self, bytes: &[u8]) -> Option<String> {
        let mut check = BlobCheck::new(&self.name, self.bytes);
        check.add(bytes);
        check.end().err()
    }
}

/// Compares what is read of a file, piece by piece, with what was kept in it.
pub struct BlobCheck {
    /// The bytes that are to come.
    bytes: u64,
    /// Those that came.
    read: u64,
    /// The checksum, if it is known.
    sum: Option<u64>,
    hasher: XxHash3_64,
}

impl BlobCheck {
    /// Of a file with such a name, of so many bytes.
    pub fn new(name: &str, bytes: u64) -> Self {
        Self { bytes, read: 0, sum: sum_in(name), hasher: XxHash3_64::new() }
    }

    /// The next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.read += bytes.len() as u64;
        if self.sum.is_some() {
            self.hasher.write(bytes);
        }
    }

    /// That there is no more. What is wrong, in words that follow the file's name.
    pub fn end(self) -> Result<(), String> {
        if self.read != self.bytes {
            return Err(format!("has {} bytes instead of {}", self.read, self.bytes));
        }
        match self.sum {
            Some(sum) if sum != self.hasher.finish() => Err("is damaged: its checksum is another one".into()),
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
    fn any_other_bytes_are_noticed() {
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
    fn a_name_of_an_older_program_says_nothing_of_the_bytes() {
        for name in ["7/x.input", "7/x.output.0123456789abcdef", "7/x.sum-12", "7/x.sum-0123456789abcdeg", ""]
        {
            assert_eq!(BlobRef { name: name.into(), bytes: 3 }.damage(b"abc"), None, "{name}");
        }
    }
}
