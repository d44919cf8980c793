//! The parameters of operations beside those in the path.

use longshore_model::limits::LIST_LIMIT_MAX;
use serde_json::{Value, json};

/// One parameter beside those in the path.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    name: &'static str,
    place: &'static str,
    kind: ParameterKind,
    about: &'static str,
    required: bool,
}

/// What a parameter can be.
#[derive(Clone, Copy)]
pub(crate) enum ParameterKind {
    /// True or false, and false where it is not sent.
    Flag,
    /// A whole number.
    Integer { min: u64, max: u64, default: Option<u64> },
    /// One of some words.
    Word { words: &'static [&'static str], default: Option<&'static str> },
    /// Any text.
    Text,
    /// Texts, each in a parameter of its own.
    Texts,
    /// A moment, RFC 3339.
    Time,
    /// A text of this form.
    Form(&'static str),
    /// A text of printable ASCII.
    Printable { chars_max: usize },
    /// As this makes it.
    Made(fn() -> Value),
}

/// Every list.
pub(super) const PAGE: &[Parameter] = &[
    query(
        "limit",
        ParameterKind::Integer { min: 1, max: LIST_LIMIT_MAX as u64, default: None },
        "how many at most; all, where it is not sent",
    ),
    query(
        "cursor",
        ParameterKind::Form("^[0-9]{1,19}\\..{1,200}$"),
        "where the page before ended; the `Link` header has it",
    ),
];

/// A change of a resource.
pub(super) const IF_MATCH: Parameter = header(
    "If-Match",
    ParameterKind::Text,
    "carries the change out only if the resource still has this `ETag`",
);

/// A look at a resource.
pub(super) const IF_NONE_MATCH: Parameter =
    header("If-None-Match", ParameterKind::Text, "answers 304 if the resource still has this `ETag`");

/// A parameter in the query.
pub(crate) const fn query(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, about, required: false }
}

/// A parameter that is a header.
pub(crate) const fn header(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, place: "header", kind, about, required: false }
}

impl Parameter {
    /// As the document shows it.
    pub(super) fn describe(&self) -> Value {
        let mut described = json!({ "name": self.name, "in": self.place, "schema": self.schema(), "description": self.about });
        if self.required {
            described["required"] = json!(true);
        }
        described
    }

    /// It must be there.
    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Whether it says where a page begins.
    pub(super) fn is_cursor(&self) -> bool {
        self.name == "cursor"
    }

    fn schema(&self) -> Value {
        match self.kind {
            ParameterKind::Flag => json!({ "type": "boolean", "default": false }),
            ParameterKind::Integer { min, max, default: None } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            ParameterKind::Integer { min, max, default } => {
                json!({ "type": "integer", "minimum": min, "maximum": max, "default": default })
            }
            ParameterKind::Word { words, default: None } => json!({ "type": "string", "enum": words }),
            ParameterKind::Word { words, default } => {
                json!({ "type": "string", "enum": words, "default": default })
            }
            ParameterKind::Text => json!({ "type": "string" }),
            ParameterKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            ParameterKind::Time => json!({ "type": "string", "format": "date-time" }),
            ParameterKind::Form(pattern) => json!({ "type": "string", "pattern": pattern }),
            ParameterKind::Printable { chars_max } => {
                json!({ "type": "string", "minLength": 1, "maxLength": chars_max, "pattern": "^[!-~]([ -~]*[!-~])?$" })
            }
            ParameterKind::Made(make) => make(),
        }
    }
}
