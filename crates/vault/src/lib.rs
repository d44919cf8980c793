//! Secrets at rest: texts sealed under keys that are kept elsewhere.
//!
//! A sealed text stands where the secret stood:
//!
//! ```text
//! longshore-sealed:1:<key id>:<hex of salt (16 bytes) ∥ ciphertext ∥ tag (16 bytes)>
//! ```
//!
//! Each text has a key of its own, HKDF-SHA-256 of the master key and the salt, and AES-256-GCM under it. What the
//! text is about (its context) is authenticated and not kept: a sealed text opens only in its own place, so nobody
//! who can write to the disk moves a secret to where he can read it. The reasons are in `docs/adr`.

mod key;
mod seal;

use std::borrow::Cow;
use std::fmt;

pub use key::{KeyError, MasterKey};

/// How every sealed text begins.
const SEALED: &str = "longshore-sealed:";
/// The version of the format.
const VERSION: &str = "1:";
/// Before a text that was never sealed and begins like one of ours.
const PLAIN: &str = "longshore-plain:";

/// The keys: the first one seals, all of them open. Without any, texts stay as they are.
#[derive(Clone, Default)]
pub struct Keyring {
    keys: Vec<MasterKey>,
}

/// Why a sealed text could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its key is not here.
    #[error("it is sealed under key {key}, which is not among the keys given ({}); give that key, too", list(.given))]
    UnknownKey {
        /// The id of the key.
        key: String,
        /// The ids of those that are.
        given: Vec<String>,
    },
    /// Its bytes are not what was sealed, or not in this place.
    #[error("it does not open under key {key}: it was damaged, or put here from elsewhere")]
    Damaged {
        /// The id of the key.
        key: String,
    },
    /// It begins like a sealed text, and goes on otherwise.
    #[error("it is no sealed text of a version that this program knows")]
    Unknown,
}

/// The system has no random numbers to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers to give")]
pub struct NoRandom;

fn list(ids: &[String]) -> String {
    if ids.is_empty() { "there is none".to_owned() } else { ids.join(", ") }
}

impl Keyring {
    /// With these keys, of which the first seals.
    pub fn new(keys: Vec<MasterKey>) -> Self {
        Self { keys }
    }

    /// Whether there is a key to seal with.
    pub fn is_sealing(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The ids of the keys, the one that seals first.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys.iter().map(|key| key.id().to_owned()).collect()
    }

    /// The text as it is to be kept at `context`.
    pub fn seal<'a>(&self, context: &str, text: &'a str) -> Result<Cow<'a, str>, NoRandom> {
        match self.keys.first() {
            Some(key) => {
                let sealed = seal::seal(key, context, text.as_bytes())?;
                Ok(Cow::Owned(format!("{SEALED}{VERSION}{}:{sealed}", key.id())))
            }
            None if is_ours(text) => Ok(Cow::Owned(format!("{PLAIN}{text}"))),
            None => Ok(Cow::Borrowed(text)),
        }
    }

    /// The text that is kept at `context` as `kept`.
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

    /// Whether `kept` should be sealed anew: there is a key, and it is not under the first one.
    pub fn is_stale(&self, kept: &str) -> bool {
        self.keys.first().is_some_and(|key| {
            let id = kept.strip_prefix(SEALED).and_then(|rest| rest.strip_prefix(VERSION)?.split(':').next());
            id != Some(key.id())
        })
    }
}

/// Whether a text is sealed, or begins as if it were.
pub fn is_sealed(kept: &str) -> bool {
    kept.starts_with(SEALED)
}

fn is_ours(text: &str) -> bool {
    text.starts_with(SEALED) || text.starts_with(PLAIN)
}

/// An id as an error shows it, whatever the disk says.
fn excerpt(id: &str) -> String {
    id.chars().take(16).collect()
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("key_ids", &self.key_ids()).finish_non_exhaustive()
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
        assert!(moved.to_string().contains("put here from elsewhere"), "{moved}");
    }

    #[test]
    fn the_same_text_is_never_sealed_the_same() {
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
    fn what_is_on_disk_can_be_opened_for_ever() {
        // Made by another implementation of the format.
        let kept = "longshore-sealed:1:16b83863:\
                    000102030405060708090a0b0c0d0e0f7ab7d6732425cf73138b52db4e511c540ba43c55";
        let key = MasterKey::read_all(&format!("lsk_{}", "07".repeat(32))).unwrap();
        assert_eq!(Keyring::new(key).open("template/a/env/TOKEN", kept).unwrap(), "hush");
    }

    #[test]
    fn nothing_shows_a_key_or_a_secret() {
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
