//! JSON whose order of members and digits of numbers are kept.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON text. Members and numbers are sent as they were written.
#[derive(Clone, Debug)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The JSON that `text` is.
    ///
    /// # Errors
    ///
    /// Why `text` is no JSON.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text).map(Self)
    }

    /// The JSON as it was written.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Reads any format, for example TOML, as the JSON with the same values.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsText)
    }
}

struct AsText;

impl AsText {
    fn text<E: Error>(value: impl Serialize) -> Result<JsonText, E> {
        to_raw_value(&value).map(JsonText).map_err(E::custom)
    }

    fn joined<E: Error>(items: &[String], brackets: [&str; 2]) -> Result<JsonText, E> {
        let [open, close] = brackets;
        RawValue::from_string(format!("{open}{}{close}", items.join(","))).map(JsonText).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for AsText {
    type Value = JsonText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value that JSON has")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<JsonText, E> {
        Self::text(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<JsonText, E> {
        Self::text(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<JsonText, E> {
        Self::text(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<JsonText, E> {
        Self::text(value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<JsonText, E> {
        Self::text(value)
    }

    fn visit_unit<E: Error>(self) -> Result<JsonText, E> {
        Self::text(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<JsonText, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element::<JsonText>()? {
            items.push(item.get().to_owned());
        }
        Self::joined(&items, ["[", "]"])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonText, A::Error> {
        let mut members = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, JsonText>()? {
            let name = Self::text::<A::Error>(name)?;
            members.push(format!("{}:{}", name.get(), value.get()));
        }
        Self::joined(&members, ["{", "}"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_numbers_their_digits() {
        let text = r#"{"b":0.50,"a":[9007199254740993123,null]}"#;
        assert_eq!(serde_json::to_string(&JsonText::parse(text).unwrap()).unwrap(), text);
        JsonText::parse("{").unwrap_err();
        let read: JsonText = serde_json::from_str(r#" {"b": [1, -2, 0.5, null, true], "a\n": {}} "#).unwrap();
        assert_eq!(read.get(), r#"{"b":[1,-2,0.5,null,true],"a\n":{}}"#);
    }
}
