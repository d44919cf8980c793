//! Master keys, and the file that they are kept in.
//!
//! A file of keys has one a line, and comments:
//!
//! ```text
//! # longshore secrets key 3f9a1c20
//! lsk_8d5f…64 hex digits…
//! ```
//!
//! The first key seals; the others open what was sealed before.

use std::fmt;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use crate::NoRandom;
use crate::seal::bytes_of;

/// How the text of a key begins.
const PREFIX: &str = "lsk_";
const KEY_BYTES: usize = 32;
/// Of the hash that a key's id is taken from.
const ID_BYTES: usize = 4;

/// A key that secrets are sealed under.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey {
    id: String,
    bytes: [u8; KEY_BYTES],
}

/// What is wrong with keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A line that is no key. What it says is not shown.
    #[error(
        "line {line} is not a key: it must be `lsk_` and 64 digits of 0-9 and a-f; `longshore secrets new-key` makes one"
    )]
    Line {
        /// Counted from 1.
        line: usize,
    },
    /// No key at all.
    #[error("there is no key in it; `longshore secrets new-key` makes one")]
    Empty,
    /// The same key twice.
    #[error("key {id} is there twice; remove one of them")]
    Twice {
        /// Its id.
        id: String,
    },
}

impl MasterKey {
    /// A new key.
    pub fn mint() -> Result<Self, NoRandom> {
        let mut bytes = [0; KEY_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
        Ok(Self::of(bytes))
    }

    fn of(bytes: [u8; KEY_BYTES]) -> Self {
        let hash = digest(&SHA256, &[b"longshore secrets key id: ".as_slice(), &bytes].concat());
        Self { id: const_hex::encode(&hash.as_ref()[..ID_BYTES]), bytes }
    }

    /// The keys of a file, or of a variable: one a line or between commas; from `#` on a line is a comment.
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

    /// What the key is called in sealed texts. Nothing of the key follows from it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key as it is kept in a file. A secret.
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
    fn what_is_no_key_is_named_by_its_line_alone() {
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
    fn ids_are_what_is_on_disk() {
        assert_eq!(MasterKey::of([7; 32]).id(), "16b83863");
    }
}
