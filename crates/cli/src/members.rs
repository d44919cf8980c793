//! The members of a JSON object in their order, each value as text.

use std::fmt;

use bytes::Bytes;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::exit::{CommandResult, cannot};
use crate::input;

/// The members of a JSON object. Order and number formats are preserved.
#[derive(Default)]
pub(crate) struct Members(Vec<(String, Box<RawValue>)>);

impl Members {
    /// Parses the object of `argument`; empty without an argument.
    pub(crate) fn of_argument(argument: Option<&String>) -> CommandResult<Self> {
        argument.map_or_else(|| Ok(Self::default()), |argument| Self::of(&input::object(argument)?))
    }

    pub(crate) fn of(object: &RawValue) -> CommandResult<Self> {
        serde_json::from_str(object.get()).map_err(|error| cannot("read the JSON object", error))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&RawValue> {
        self.iter().find(|(present, _)| *present == name).map(|(_, value)| value)
    }

    /// Returns a member's value if it is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets a member. `None` leaves the member unchanged.
    pub(crate) fn set(&mut self, name: &str, value: Option<impl Serialize>) -> CommandResult<()> {
        let Some(value) = value else { return Ok(()) };
        let value = to_raw_value(&value).map_err(|error| cannot(format_args!("write `{name}`"), error))?;
        match self.0.iter_mut().find(|(present, _)| present == name) {
            Some((_, present)) => *present = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Returns the object as JSON text.
    pub(crate) fn record(&self) -> CommandResult<Box<RawValue>> {
        to_raw_value(self).map_err(|error| cannot("write the record", error))
    }

    /// Returns the object as a request's body.
    pub(crate) fn body(&self) -> CommandResult<Bytes> {
        serde_json::to_vec(self).map(Bytes::from).map_err(|error| cannot("write the request", error))
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_laid_over_what_the_object_says() {
        let mut members = Members::of_argument(Some(&r#"{"b": 1.0, "a": "x"}"#.to_owned())).unwrap();
        members.set("a", Some(2)).unwrap();
        members.set("c", Some("y")).unwrap();
        members.set("b", None::<u8>).unwrap();
        assert_eq!(&*members.body().unwrap(), br#"{"b":1.0,"a":2,"c":"y"}"#);
        assert_eq!((members.text("c").as_deref(), members.text("a")), (Some("y"), None));
    }
}
