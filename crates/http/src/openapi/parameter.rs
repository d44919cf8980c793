//! The parameters of operations in the query and in headers.

use longshore_model::limits::LIST_LIMIT_MAX;
use serde_json::{Value, json};

/// One parameter in the query or a header.
#[derive(Clone, Copy)]
pub(crate) struct Parameter {
    name: &'static str,
    place: &'static str,
    kind: ParameterKind,
    about: &'static str,
    required: bool,
}

/// The type and the limits of a parameter.
#[derive(Clone, Copy)]
pub(crate) enum ParameterKind {
    /// A boolean, false by default.
    Flag,
    /// An integer from `min` to `max`.
    Integer { min: u64, max: u64, default: Option<u64> },
    /// One of the listed words.
    Word { words: &'static [&'static str], default: Option<&'static str> },
    /// Text of any form.
    Text,
    /// A list of texts: the parameter may be repeated.
    Texts,
    /// A time in RFC 3339.
    Time,
    /// Text that matches this regular expression.
    Form(&'static str),
    /// At most `chars_max` characters of printable ASCII.
    Printable { chars_max: usize },
    /// A parameter with the schema that the function returns.
    Made(fn() -> Value),
}

/// The parameters of every list.
pub(super) const PAGE: &[Parameter] = &[
    query(
        "limit",
        ParameterKind::Integer { min: 1, max: LIST_LIMIT_MAX as u64, default: None },
        "the most items in the response; all without this parameter",
    ),
    query(
        "cursor",
        ParameterKind::Form("^[0-9]{1,19}\\..{1,200}$"),
        "where the previous page ended, from its `Link` header",
    ),
];

/// The header of requests that change a resource.
pub(super) const IF_MATCH: Parameter =
    header("If-Match", ParameterKind::Text, "changes the resource only if it still has this `ETag`");

/// The header of requests that read a resource.
pub(super) const IF_NONE_MATCH: Parameter =
    header("If-None-Match", ParameterKind::Text, "answers 304 if the resource still has this `ETag`");

/// An optional parameter in the query.
pub(crate) const fn query(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, place: "query", kind, about, required: false }
}

/// An optional parameter in a header.
pub(crate) const fn header(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, place: "header", kind, about, required: false }
}

impl Parameter {
    /// The parameter as the document has it.
    pub(super) fn describe(&self) -> Value {
        let mut described = json!({ "name": self.name, "in": self.place, "schema": self.schema(), "description": self.about });
        if self.required {
            described["required"] = json!(true);
        }
        described
    }

    /// The same parameter, which requests must have.
    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Whether the parameter is the cursor of a list.
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
