//! Owners of keys, and submitters of jobs.

use alloc::string::String;
use core::fmt;
use core::num::NonZeroU64;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Millis;

/// An owner's number: assigned once and never reused. The rows of the owner's jobs contain the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerNo(pub u32);

impl OwnerNo {
    /// The owner of every key that names no other owner. This owner has no record.
    pub const SERVER: Self = Self(0);

    /// Whether this is [`OwnerNo::SERVER`].
    pub fn is_server(&self) -> bool {
        *self == Self::SERVER
    }
}

/// An owner's record: the name of an owner's number. Records are never removed, because job rows contain the number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The number; never [`OwnerNo::SERVER`].
    pub no: OwnerNo,
    /// The name, unique among owners.
    pub name: String,
    /// When a key first named the owner.
    pub created_at: Millis,
}

impl Owner {
    /// The name of [`OwnerNo::SERVER`].
    pub const SERVER: &str = "server";

    /// The longest name, in bytes.
    pub const NAME_BYTES_MAX: usize = 63;

    /// Whether a text can name an owner: `^[a-z0-9][a-z0-9_-]{0,62}$`.
    pub fn is_name(text: &str) -> bool {
        let first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let other = |byte: u8| first(&byte) || matches!(byte, b'_' | b'-');
        text.len() <= Self::NAME_BYTES_MAX
            && text.as_bytes().first().is_some_and(first)
            && text.bytes().all(other)
    }
}

/// A key's id as a number: the 16 hexadecimal digits of a minted key, or 1 for the operator's key, whose id is a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(NonZeroU64);

impl KeyId {
    /// The id of the operator's key, whose text the operator chose.
    pub const OPERATOR: &str = "admin";

    const OPERATOR_NUMBER: NonZeroU64 = NonZeroU64::MIN;

    /// The key with this number on disk; `None` for 0.
    pub fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// The number, never 0.
    pub fn number(self) -> u64 {
        self.0.get()
    }

    /// The number of the key with this id; `None` for an id that no server gives out.
    pub fn parse(id: &str) -> Option<Self> {
        if id == Self::OPERATOR {
            return Some(Self(Self::OPERATOR_NUMBER));
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        let number =
            (id.len() == 16 && id.bytes().all(is_digit)).then(|| u64::from_str_radix(id, 16).ok())??;
        NonZeroU64::new(number).filter(|number| *number != Self::OPERATOR_NUMBER).map(Self)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Self::OPERATOR_NUMBER {
            return f.write_str(Self::OPERATOR);
        }
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not the id of a key"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The submitter of a job: the key, and the key's owner at that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Submitter {
    /// The key's owner when the job was submitted. A later change of the key's owner changes no job.
    pub owner: OwnerNo,
    /// The key. `None` for jobs of versions that did not store keys, and for a key whose id is no [`KeyId`].
    pub key: Option<KeyId>,
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn an_owners_name_is_short_and_safe() {
        let longest = "a".repeat(63);
        for name in ["a", "0", "acme", "a-b_c", "server", &longest] {
            assert!(Owner::is_name(name), "{name}");
        }
        for text in ["", "-a", "_a", "A", "a.b", "a b", "ä", "a/", &"a".repeat(64)] {
            assert!(!Owner::is_name(text), "{text}");
        }
    }

    #[test]
    fn a_key_id_is_its_text() {
        for text in ["admin", "0123456789abcdef", "ffffffffffffffff", "0000000000000002"] {
            let id = KeyId::parse(text).unwrap();
            assert_eq!((id.to_string(), KeyId::from_number(id.number())), (text.to_string(), Some(id)));
            assert_eq!(format!("{id:?}"), text);
        }
        // Two texts never stand for one key.
        for text in [
            "",
            "k",
            "0000000000000000",
            "0000000000000001",
            "0123456789ABCDEF",
            "123456789abcdef",
            "+123456789abcdef",
        ] {
            assert_eq!(KeyId::parse(text), None, "{text}");
        }
        assert_eq!(KeyId::from_number(0), None);
    }

    #[test]
    fn a_submitter_takes_16_bytes() {
        assert_eq!(size_of::<Submitter>(), 16);
    }
}
