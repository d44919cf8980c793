//! Master keys and their file.
//!
//! A key file has one key per line, and comments:
//!
//! ```text
//! # longshore secrets key 3f9a1c20
//! lsk_8d5f…64 hex digits…
//! ```
//!
//! The first key seals. All keys open.

use std::fmt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::NoRandom;
use crate::seal::bytes_of;

/// The start of the text of a key.
const PREFIX: &str = "lsk_";
const KEY_BYTES: usize = 32;
/// Bytes of the hash that are the key's id.
const ID_BYTES: usize = 4;

/// A key of 256 bits that seals secrets. Its id is derived from a hash of the key.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    id: String,
    bytes: [u8; KEY_BYTES],
}

/// Why the text of a key file was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A word is not a key. The error does not show the word, which may be a damaged key.
    #[error(
        "line {line} is not a key: it must be `lsk_` and 64 digits of 0-9 and a-f; `longshore secret new-key` makes one"
    )]
    Line {
        /// The number of the line, counted from 1.
        line: usize,
    },
    /// The text contains no key.
    #[error("there is no key in it; `longshore secret new-key` makes one")]
    Empty,
    /// The text contains a key twice.
    #[error("key {id} is there twice; remove one of them")]
    Twice {
        /// The id of the duplicate key.
        id: String,
    },
}

impl MasterKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// [`NoRandom`] if the kernel provides no random numbers.
    pub fn mint() -> Result<Self, NoRandom> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
        Ok(Self::of(bytes))
    }

    fn of(bytes: [u8; KEY_BYTES]) -> Self {
        let hash = digest(&SHA256, &[b"longshore secrets key id: ".as_slice(), &bytes].concat());
        Self { id: const_hex::encode(&hash.as_ref()[..ID_BYTES]), bytes }
    }

    /// Parses the keys of a file or an environment variable, in their order: one per line, or separated by commas or
    /// blanks. From `#` on a line is a comment.
    ///
    /// # Errors
    /// [`KeyError`] if a word is not a key, a key is there twice, or there is none.
    pub fn read_all(text: &str) -> Result<Vec<Self>, KeyError> {
        let mut keys: Vec<Self> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty()) {
                let key = Self::read(word).ok_or(KeyError::Line { line: at + 1 })?;
                if keys.contains(&key) {
                    return Err(KeyError::Twice { id: key.id });
                }
                keys.push(key);
            }
        }
        if keys.is_empty() { Err(KeyError::Empty) } else { Ok(keys) }
    }

    fn read(text: &str) -> Option<Self> {
        let bytes = bytes_of(text.strip_prefix(PREFIX)?)?;
        Some(Self::of(bytes.try_into().ok()?))
    }

    /// Returns the key's id, 8 hexadecimal digits, which sealed texts contain. The key cannot be derived from it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the key as text for a key file. The text is a secret.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", const_hex::encode(self.bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MasterKey").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_keys_is_read_in_its_order() {
        let (new, old) = (MasterKey::mint().unwrap(), MasterKey::mint().unwrap());
        let file =
            format!("# the new one\n{}   # from March\n\n# the old one\r\n{}\r\n", new.text(), old.text());
        assert_eq!(MasterKey::read_all(&file), Ok(vec![new.clone(), old.clone()]));
        let variable = format!("{},{}", new.text(), old.text());
        assert_eq!(MasterKey::read_all(&variable), Ok(vec![new, old]));
    }

    #[test]
    fn an_invalid_key_is_named_by_its_line_alone() {
        let key = MasterKey::mint().unwrap().text();
        for (text, expected) in [
            (format!("{key}\n{}", &key[..67]), KeyError::Line { line: 2 }),
            (format!("{key}0"), KeyError::Line { line: 1 }),
            (key.replace("lsk_", ""), KeyError::Line { line: 1 }),
            (key.to_uppercase(), KeyError::Line { line: 1 }),
            (String::new(), KeyError::Empty),
            ("# nothing\n".to_owned(), KeyError::Empty),
        ] {
            let error = MasterKey::read_all(&text).unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains(&key[10..]), "{error}");
        }
        let twice = MasterKey::read_all(&format!("{key}\n{key}")).unwrap_err();
        assert!(matches!(twice, KeyError::Twice { .. }));
    }

    #[test]
    fn the_id_of_a_key_never_changes() {
        assert_eq!(MasterKey::of([7; 32]).id(), "16b83863");
    }
}
