//! Reading the model's types from JSON.

use std::str::FromStr;

use longshore_model::JobState;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A job state by its wire name.
pub(crate) fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JobState, D::Error> {
    let text = String::deserialize(deserializer)?;
    JobState::parse(&text).ok_or_else(|| D::Error::custom(format_args!("`{text}` is not a job state")))
}

/// Anything that parses from a JSON string.
pub(crate) fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: std::fmt::Display>>(
    deserializer: D,
) -> Result<T, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
