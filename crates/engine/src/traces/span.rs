//! A finished span.

use longshore_model::Millis;

/// The relation of a span to its parent, by its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
    Consumer = 5,
}

/// A point in time, in ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Nanos(pub(super) u64);

impl From<Millis> for Nanos {
    fn from(at: Millis) -> Self {
        Self(at.0.saturating_mul(1_000_000))
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    Number(u64),
    Truth(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

/// Names and values, in the order in which they are shown.
pub(super) type Attributes = Vec<(&'static str, Value)>;

/// Something that happened during a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Nanos,
    pub(super) name: &'static str,
    pub(super) attributes: Attributes,
}

/// A span that has ended, as it is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) trace: [u8; 16],
    pub(super) id: [u8; 8],
    pub(super) parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: SpanKind,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) attributes: Attributes,
    pub(super) events: Vec<Event>,
    /// The trace and the id of spans that this one waited for.
    pub(super) links: Vec<([u8; 16], [u8; 8])>,
    pub(super) is_error: bool,
}
