//! Secrets at rest: texts sealed under keys that are stored elsewhere.
//!
//! A sealed text takes the place of the secret:
//!
//! ```text
//! longshore-sealed:1:<key id>:<hex of salt (16 bytes) ∥ ciphertext ∥ tag (16 bytes)>
//! ```
//!
//! Each text is sealed with AES-256-GCM under a key of its own: HKDF-SHA-256 of the master key and the salt. The place of
//! the text (its context) is authenticated and not stored. A sealed text opens only in its own place, so an attacker with
//! write access to the disk cannot move a secret to a readable place. The reasons are in ADR 0012.

mod key;
mod seal;

use std::borrow::Cow;
use std::fmt;

pub use key::{KeyError, MasterKey};

/// The start of every sealed text.
const SEALED: &str = "longshore-sealed:";
/// The version of the format.
const VERSION: &str = "1:";
/// The prefix of an unsealed text that itself begins with [`SEALED`] or this prefix.
const PLAIN: &str = "longshore-plain:";

/// The master keys of a server: the first one seals, all of them open. Without keys texts are stored unsealed.
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Vec<MasterKey>,
}

/// Why a sealed text could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The key of the text is not in the keyring. Add the key.
    #[error("the secret is sealed under key {key}, which is not among the keys given ({}); give that key, too", list(.given))]
    UnknownKey {
        /// The id of the text's key.
        key: String,
        /// The ids of the keys in the keyring.
        given: Vec<String>,
    },
    /// The text was changed, or moved to another context.
    #[error("the secret does not open under key {key}: damaged, or moved from another place")]
    Damaged {
        /// The id of the text's key.
        key: String,
    },
    /// The text begins like a sealed one, but has no known version or no key id.
    #[error("not a sealed secret, or sealed in an unknown format version")]
    Unknown,
}

/// The kernel provides no random numbers, so no key or sealed text can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers to give")]
pub struct NoRandom;

fn list(ids: &[String]) -> String {
    if ids.is_empty() { "there is none".to_owned() } else { ids.join(", ") }
}

impl Keyring {
    /// Creates a keyring. The first key seals, all of them open.
    pub fn new(keys: Vec<MasterKey>) -> Self {
        Self { keys }
    }

    /// Whether there is a key to seal with.
    pub fn is_sealing(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns the ids of the keys, the sealing key's first.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.id().to_owned()).collect()
    }

    /// Returns the text to store at `context`: sealed under the first key, or plain without keys.
    ///
    /// # Errors
    /// [`NoRandom`] if the kernel provides no random numbers.
    pub fn seal<'a>(&self, context: &str, text: &'a str) -> Result<Cow<'a, str>, NoRandom> {
        match self.keys.first() {
            Some(key) => {
                let sealed = seal::seal(key, context, text.as_bytes())?;
                Ok(Cow::Owned(format!("{SEALED}{VERSION}{}:{sealed}", key.id())))
            }
            None if has_prefix(text) => Ok(Cow::Owned(format!("{PLAIN}{text}"))),
            None => Ok(Cow::Borrowed(text)),
        }
    }

    /// Opens `kept`, the text stored at `context`. A text that was never sealed is returned unchanged.
    ///
    /// # Errors
    /// [`OpenError`] if the key is unknown, the text is damaged, or its version is unknown.
    pub fn open<'a>(&self, context: &str, kept: &'a str) -> Result<Cow<'a, str>, OpenError> {
        if let Some(text) = kept.strip_prefix(PLAIN) {
            return Ok(Cow::Borrowed(text));
        }
        let Some(rest) = kept.strip_prefix(SEALED) else { return Ok(Cow::Borrowed(kept)) };
        let (id, sealed) =
            rest.strip_prefix(VERSION).and_then(|rest| rest.split_once(':')).ok_or(OpenError::Unknown)?;
        let key = self.keys.iter().find(|key| key.id() == id);
        let key = key.ok_or_else(|| OpenError::UnknownKey { key: excerpt(id), given: self.key_ids() })?;
        let opened = seal::open(key, context, sealed).and_then(|bytes| String::from_utf8(bytes).ok());
        opened.map(Cow::Owned).ok_or_else(|| OpenError::Damaged { key: id.to_owned() })
    }

    /// Whether `kept` should be sealed again: there is a key, and `kept` is not sealed under the first one.
    pub fn is_stale(&self, kept: &str) -> bool {
        self.keys.first().is_some_and(|key| {
            let id = kept.strip_prefix(SEALED).and_then(|rest| rest.strip_prefix(VERSION)?.split(':').next());
            id != Some(key.id())
        })
    }
}

/// Whether a stored text has the prefix of sealed texts.
pub fn is_sealed(kept: &str) -> bool {
    kept.starts_with(SEALED)
}

fn has_prefix(text: &str) -> bool {
    text.starts_with(SEALED) || text.starts_with(PLAIN)
}

/// Truncates an id for an error: the stored text may be damaged and long.
fn excerpt(id: &str) -> String {
    id.chars().take(16).collect()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("key_ids", &self.key_ids()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> MasterKey {
        MasterKey::mint().unwrap()
    }

    #[test]
    fn a_sealed_text_opens_in_its_place_and_nowhere_else() {
        let vault = Keyring::new(vec![key()]);
        let kept = vault.seal("template/a/env/TOKEN", "hush").unwrap();
        assert!(
            kept.starts_with(&format!("longshore-sealed:1:{}:", vault.key_ids()[0]))
                && !kept.contains("hush")
        );
        assert_eq!(vault.open("template/a/env/TOKEN", &kept).unwrap(), "hush");
        let moved = vault.open("template/b/env/TOKEN", &kept).unwrap_err();
        assert!(moved.to_string().contains("moved from another place"), "{moved}");
    }

    #[test]
    fn two_seals_of_one_text_differ() {
        let vault = Keyring::new(vec![key()]);
        assert_ne!(vault.seal("c", "hush").unwrap(), vault.seal("c", "hush").unwrap());
    }

    #[test]
    fn a_new_key_seals_and_the_old_one_still_opens() {
        let (old, new) = (key(), key());
        let kept = Keyring::new(vec![old.clone()]).seal("c", "hush").unwrap().into_owned();
        let both = Keyring::new(vec![new.clone(), old]);
        assert_eq!(both.open("c", &kept).unwrap(), "hush");
        assert!(both.is_stale(&kept) && both.is_stale("hush"));
        let again = both.seal("c", "hush").unwrap();
        assert!(!both.is_stale(&again));
        let alone = Keyring::new(vec![new]);
        assert_eq!(alone.open("c", &again).unwrap(), "hush");
        let missing = alone.open("c", &kept).unwrap_err().to_string();
        assert!(
            missing.contains(&both.key_ids()[1]) && missing.contains("not among the keys given"),
            "{missing}"
        );
        let without = Keyring::default().open("c", &kept).unwrap_err().to_string();
        assert!(without.contains("there is none"), "{without}");
    }

    #[test]
    fn without_a_key_texts_stay_as_they_are() {
        let none = Keyring::default();
        assert_eq!(none.seal("c", "hush").unwrap(), "hush");
        assert!(!none.is_stale("hush") && !none.is_sealing());
        for text in ["longshore-sealed:1:x", "longshore-plain:x", "longshore-plain:longshore-sealed:"] {
            let kept = none.seal("c", text).unwrap();
            assert_eq!(none.open("c", &kept).unwrap(), text);
            assert_eq!(Keyring::new(vec![key()]).open("c", &kept).unwrap(), text);
        }
    }

    #[test]
    fn a_stored_text_of_format_1_opens() {
        // Made by another implementation of the format.
        let kept = "longshore-sealed:1:16b83863:\
                    000102030405060708090a0b0c0d0e0f7ab7d6732425cf73138b52db4e511c540ba43c55";
        let key = MasterKey::read_all(&format!("lsk_{}", "07".repeat(32))).unwrap();
        assert_eq!(Keyring::new(key).open("template/a/env/TOKEN", kept).unwrap(), "hush");
    }

    #[test]
    fn debug_output_shows_no_key() {
        let one = key();
        let vault = Keyring::new(vec![one.clone()]);
        let shown = format!("{vault:?} {one:?}");
        assert!(shown.contains(one.id()) && !shown.contains(&one.text()[4..]), "{shown}");
    }

    proptest! {
        #[test]
        fn any_text_survives_being_sealed(text: String, context: String) {
            let vault = Keyring::new(vec![key()]);
            let kept = vault.seal(&context, &text).unwrap();
            prop_assert_eq!(vault.open(&context, &kept).unwrap(), text.as_str());
        }

        #[test]
        fn any_bytes_on_disk_end_in_an_error(rest in "[0-9a-f:ä]{0,120}", at: usize, other: char) {
            let vault = Keyring::new(vec![key()]);
            for kept in [format!("longshore-sealed:{rest}"), format!("longshore-sealed:1:{}:{rest}", vault.key_ids()[0])] {
                prop_assert!(vault.open("c", &kept).is_err());
            }
            let kept = vault.seal("c", "hush").unwrap();
            let mut chars: Vec<char> = kept.chars().collect();
            let at = SEALED.len() + at % (chars.len() - SEALED.len());
            prop_assume!(chars[at] != other);
            chars[at] = other;
            let spoiled: String = chars.into_iter().collect();
            prop_assert!(vault.open("c", &spoiled).is_err(), "{}", spoiled);
        }
    }
}
