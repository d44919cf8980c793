//! The members of a JSON object, as they were written.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Most members of an object that is parsed.
pub(crate) const MEMBERS_MAX: usize = 256;
/// Room for members; most objects have no more.
const MEMBERS_USUAL: usize = 8;
/// Names that the server sets itself, or that break the worker's bookkeeping; dropped from a request.
pub(crate) const RESERVED: [&str; 4] = ["id", "status", "delayTime", "self"];

/// An object's members in order, values as text.
pub(crate) struct EnvelopeMembers<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl EnvelopeMembers<'_> {
    /// The last value with this name: of a repeated name, every parser takes the last value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The value with this name, unless it is `null`.
    pub(crate) fn present(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| *value != "null")
    }

    /// Whether the members can be used unchanged.
    pub(crate) fn are_plain(&self) -> bool {
        (0..self.0.len()).all(|at| self.is_kept(at))
    }

    /// Whether the member is passed on: it is not one of the server's, and no later one has its name.
    fn is_kept(&self, at: usize) -> bool {
        let name = &self.0[at].0;
        !RESERVED.contains(&name.as_ref()) && self.0[at + 1..].iter().all(|(later, _)| later != name)
    }

    /// Appends the kept members to `text` as JSON, values unchanged, except the member named `without`.
    pub(crate) fn rewritten(&self, mut text: Vec<u8>, without: Option<&str>) -> Vec<u8> {
        for (at, (name, value)) in self.0.iter().enumerate() {
            if !self.is_kept(at) || without == Some(name.as_ref()) {
                continue;
            }
            if !text.is_empty() {
                text.push(b',');
            }
            // Serializing a string into memory cannot fail.
            let _infallible = serde_json::to_writer(&mut text, name);
            text.push(b':');
            text.extend_from_slice(value.as_bytes());
        }
        text
    }
}

impl<'de> Deserialize<'de> for EnvelopeMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = EnvelopeMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvelopeMembers<'de>, A::Error> {
                let mut members = Vec::with_capacity(MEMBERS_USUAL);
                while let Some(Name(name)) = map.next_key()? {
                    if members.len() == MEMBERS_MAX {
                        return Err(A::Error::custom("too many members"));
                    }
                    members.push((name, map.next_value::<&RawValue>()?.get()));
                }
                Ok(EnvelopeMembers(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A member's name, borrowed unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}
