//! The fields of the management API's resources as data. One table per resource has the name, type, limits and default
//! of every field. Requests are checked against the table, and the API's document is built from the table.

use longshore_model::{
    ENV_NAME_PATTERN, SECRET_NAME_PATTERN, SLUG_CHARS_MAX, SLUG_CHARS_MIN, SLUG_PATTERN, SecretName,
    is_env_name, is_slug,
};
use serde_json::{Map, Value};

use super::from_fields::MASK;
use super::json_members::keep_texts;
use crate::audit::note_fields;
use crate::wire::api_error::ApiError;
use crate::wire::did_you_mean::nearest;
use crate::wire::rfc3339::parse_rfc3339;

/// Most endpoints in one list.
const ENDPOINTS_MAX: usize = 1_000;

/// One field of a resource.
#[derive(Debug)]
pub(crate) struct Field {
    /// The field's name in JSON.
    pub name: &'static str,
    /// The type and the limits of the value.
    pub kind: FieldKind,
    /// Whether the client or the server sets the field, and when.
    pub access: Access,
    /// The value of a field that a create request leaves out, as JSON text. `None` if the field has no fixed default.
    pub default: Option<&'static str>,
    /// Whether a request may send `null`, which unsets the field.
    pub nullable: bool,
    /// The kind of resource that the value, or each text in it, names. `None` for a field that names no resource.
    pub names: Option<Resource>,
    /// The description of the field in the API's document.
    pub about: &'static str,
}

/// The type and the limits of a field's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldKind {
    /// A string of at most `chars_max` characters, without NUL.
    Text { chars_max: usize },
    /// A string that `matches` accepts. `pattern` is the same rule as a regular expression.
    Form { matches: fn(&str) -> bool, pattern: &'static str },
    /// A list of strings that `matches` accepts.
    Forms { matches: fn(&str) -> bool, pattern: &'static str },
    /// The slug of an endpoint, `SLUG_PATTERN`.
    Slug,
    /// An integer from `min` to `max`.
    Integer { min: u64, max: u64 },
    /// A number from `min` to `max`.
    Number { min: f64, max: f64 },
    /// A boolean: true or false.
    Flag,
    /// One of the listed words.
    Word(&'static [&'static str]),
    /// A list of the listed words.
    Words(&'static [&'static str]),
    /// A list of strings without NUL.
    Texts,
    /// A secret string of at most `chars_max` characters. Errors never contain the value.
    Secret { chars_max: usize },
    /// An environment: an object whose values are strings or name secrets. Errors never contain a value.
    Environment,
    /// Any JSON of at most `bytes_max` bytes as text; an object if `is_object`.
    Json { bytes_max: usize, is_object: bool },
    /// An object with strings, numbers and booleans as values.
    Members,
    /// An object with these fields.
    Object(&'static [Field]),
    /// A list of objects, read-only for clients.
    Objects,
    /// A list of objects with these fields.
    ObjectsOf(&'static [Field]),
    /// A time in RFC 3339.
    Time,
    /// A list of ids or slugs of endpoints, or `"*"` for all endpoints.
    Endpoints,
}

/// The kinds of resources that a field can name. The key of a request needs a permission for the named resource
/// ([`references`](super::references)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// A template, by the id.
    Template,
    /// A network volume, by the id.
    NetworkVolume,
    /// Credentials for a registry, by the id.
    RegistryAuth,
    /// Deployed code, as `code:` and the hash. Other texts name no resource.
    Code,
    /// A secret, by the name, as a value of an environment.
    Secret,
    /// Endpoints that a resource is shared with.
    Endpoint,
}

/// Whether the client or the server sets a field, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The client sets the field, at creation and later.
    Write,
    /// The client sets the field at creation only.
    Create,
    /// The client sets the field at creation only. Responses do not have the field.
    WriteOnly,
    /// The client sets the field, at creation and later. Responses do not have the field.
    Hidden,
    /// The server sets the field.
    Read,
}

impl Field {
    /// A field that clients may set at any time, without a fixed default.
    pub const fn new(name: &'static str, kind: FieldKind, about: &'static str) -> Self {
        Self { name, kind, access: Access::Write, default: None, nullable: false, names: None, about }
    }

    /// The same field with a default, as JSON text.
    pub const fn default(self, json: &'static str) -> Self {
        Self { default: Some(json), ..self }
    }

    /// The same field, which is unset at first and which `null` unsets.
    pub const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The same field, whose value is the name of such a resource or a list of such names.
    pub const fn names(self, resource: Resource) -> Self {
        Self { names: Some(resource), ..self }
    }

    /// The same field, which clients may set at creation only.
    pub const fn on_create(self) -> Self {
        Self { access: Access::Create, ..self }
    }

    /// The same field, which clients may set at creation only and never read.
    pub const fn write_only(self) -> Self {
        Self { access: Access::WriteOnly, ..self }
    }

    /// The same field, which clients may set at any time and never read.
    pub const fn hidden(self) -> Self {
        Self { access: Access::Hidden, ..self }
    }

    /// The same field, which clients only read.
    pub const fn read_only(self) -> Self {
        Self { access: Access::Read, ..self }
    }
}

/// Whether a request creates or changes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// The request creates a resource.
    Create,
    /// The request changes a resource.
    Update,
}

/// Reads the members of a request's body and checks each against `fields`. Members that are any JSON are read as their text.
///
/// # Errors
///
/// 400 with the path of the first wrong member and the values that are allowed.
pub(crate) fn read_members(
    fields: &[Field],
    body: &[u8],
    verb: Verb,
) -> Result<Map<String, Value>, ApiError> {
    let not_json = |error: serde_json::Error| {
        ApiError::bad_request("bad_json", format!("the body is not JSON: {error}"))
    };
    let value: Value = serde_json::from_slice(body).map_err(not_json)?;
    let Value::Object(mut members) = value else {
        return Err(ApiError::bad_request("bad_json", "the body must be a JSON object"));
    };
    note_fields(members.keys());
    keep_texts(fields, &mut members, body).map_err(not_json)?;
    check_members(fields, &members, verb, "")?;
    Ok(members)
}

/// The fixed defaults of `fields`, by name.
pub(crate) fn defaults(fields: &[Field]) -> Map<String, Value> {
    let known = fields.iter().filter_map(|field| {
        let value = serde_json::from_str(field.default?).ok()?;
        Some((field.name.to_owned(), value))
    });
    known.collect()
}

fn check_members(
    fields: &[Field],
    members: &Map<String, Value>,
    verb: Verb,
    parent: &str,
) -> Result<(), ApiError> {
    members.iter().try_for_each(|(name, value)| {
        let path = if parent.is_empty() { name.clone() } else { format!("{parent}.{name}") };
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            return Err(unknown(fields, name, &path));
        };
        match (field.access, verb) {
            (Access::Read, _) => Err(refused(format!("`{path}` is set by the server; leave it out"))),
            (Access::Create | Access::WriteOnly, Verb::Update) => {
                Err(refused(format!("`{path}` can only be set when the resource is created; leave it out")))
            }
            _ => check_value(field, value, verb, &path),
        }
    })
}

fn check_value(field: &Field, value: &Value, verb: Verb, path: &str) -> Result<(), ApiError> {
    let fits = match (field.kind, value) {
        (_, Value::Null) => field.nullable,
        (FieldKind::Text { chars_max } | FieldKind::Secret { chars_max }, Value::String(text)) => {
            text.chars().count() <= chars_max && !text.contains('\0')
        }
        (FieldKind::Form { matches, .. }, Value::String(text)) => matches(text),
        (FieldKind::Forms { matches, .. }, Value::Array(items)) => {
            items.iter().all(|item| item.as_str().is_some_and(matches))
        }
        (FieldKind::Slug, Value::String(text)) => is_slug(text),
        (FieldKind::Integer { min, max }, Value::Number(number)) => {
            number.as_u64().is_some_and(|number| (min..=max).contains(&number))
        }
        (FieldKind::Number { min, max }, Value::Number(number)) => {
            number.as_f64().is_some_and(|number| (min..=max).contains(&number))
        }
        (FieldKind::Flag, Value::Bool(_)) => true,
        (FieldKind::Word(words), Value::String(word)) => words.contains(&word.as_str()),
        (FieldKind::Words(words), Value::Array(items)) => {
            items.iter().all(|item| item.as_str().is_some_and(|item| words.contains(&item)))
        }
        (FieldKind::Texts, Value::Array(items)) => {
            items.iter().all(|item| item.as_str().is_some_and(|item| !item.contains('\0')))
        }
        (FieldKind::Json { bytes_max, is_object }, Value::String(json)) => {
            (json.starts_with('{') || !is_object) && json.len() <= bytes_max
        }
        (FieldKind::Members, Value::Object(members)) => {
            members.values().all(|value| !matches!(value, Value::Object(_) | Value::Array(_)))
        }
        (FieldKind::Environment, Value::Object(entries)) => return check_environment(entries, path),
        (FieldKind::Object(fields), Value::Object(members)) => {
            return check_members(fields, members, verb, path);
        }
        (FieldKind::ObjectsOf(fields), Value::Array(items)) => {
            return check_objects(fields, items, verb, path);
        }
        (FieldKind::Time, Value::String(text)) => parse_rfc3339(text).is_some(),
        (FieldKind::Endpoints, Value::String(text)) => text == "*",
        (FieldKind::Endpoints, Value::Array(items)) => {
            items.len() <= ENDPOINTS_MAX && items.iter().all(Value::is_string)
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let or_null = if field.nullable { " or null" } else { "" };
    let allowed = allowed(field.kind);
    Err(refused(match field.kind {
        // A value of the wrong type may contain a secret, so errors do not show it.
        FieldKind::Secret { .. }
        | FieldKind::Environment
        | FieldKind::Json { .. }
        | FieldKind::Object(_)
        | FieldKind::ObjectsOf(_) => {
            format!("`{path}` must be {allowed}{or_null}")
        }
        _ => format!("`{path}` is {}; it must be {allowed}{or_null}", excerpt(value)),
    }))
}

fn check_objects(fields: &[Field], items: &[Value], verb: Verb, path: &str) -> Result<(), ApiError> {
    items.iter().enumerate().try_for_each(|(place, item)| match item {
        Value::Object(members) => check_members(fields, members, verb, &format!("{path}[{place}]")),
        _ => Err(refused(format!("`{path}[{place}]` must be an object"))),
    })
}

/// Refuses names that a variable cannot have. [`MASK`] keeps a stored variable, whose name may be of an earlier version,
/// which took more names.
fn check_environment(entries: &Map<String, Value>, path: &str) -> Result<(), ApiError> {
    entries.iter().try_for_each(|(name, value)| match value {
        _ if !is_env_name(name) && value != MASK => Err(refused(format!(
            "`{path}` has the name {:?}; the name of a variable must be of the form {ENV_NAME_PATTERN}",
            shortened(name)
        ))),
        Value::String(text) if !text.contains('\0') => Ok(()),
        Value::Object(members) => check_secret_name(members, &format!("{path}.{name}")),
        _ => Err(refused(format!(
            "`{path}.{name}` must be a string without NUL, or name a secret: {{\"secret\": \"NAME\"}}"
        ))),
    })
}

/// Refuses an object in an environment that does not name a secret.
fn check_secret_name(members: &Map<String, Value>, path: &str) -> Result<(), ApiError> {
    let name = members.get("secret").filter(|_| members.len() == 1);
    if name.and_then(Value::as_str).is_some_and(|name| name.parse::<SecretName>().is_ok()) {
        return Ok(());
    }
    Err(refused(format!(
        "`{path}` must name a secret: {{\"secret\": \"NAME\"}}, with a name of the form {SECRET_NAME_PATTERN}"
    )))
}

fn allowed(kind: FieldKind) -> String {
    let listed =
        |words: &[&str]| words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    match kind {
        FieldKind::Text { chars_max } | FieldKind::Secret { chars_max } => {
            format!("a string of at most {chars_max} characters, without NUL")
        }
        FieldKind::Form { pattern, .. } => format!("a string of the form {pattern}"),
        FieldKind::Forms { pattern, .. } => format!("a list of strings of the form {pattern}"),
        FieldKind::Slug => {
            format!("a string of {SLUG_CHARS_MIN} to {SLUG_CHARS_MAX} characters of the form {SLUG_PATTERN}")
        }
        FieldKind::Integer { min, max } => format!("an integer from {min} to {max}"),
        FieldKind::Number { min, max } => format!("a number from {min} to {max}"),
        FieldKind::Flag => "true or false".to_owned(),
        FieldKind::Word(words) => format!("one of {}", listed(words)),
        FieldKind::Words(words) => format!("a list of {}", listed(words)),
        FieldKind::Texts => "a list of strings without NUL".to_owned(),
        FieldKind::Environment => "an object with strings as values".to_owned(),
        FieldKind::Json { bytes_max, is_object } => {
            let what = if is_object { "an object" } else { "JSON" };
            format!("{what} of at most {bytes_max} bytes")
        }
        FieldKind::Members => "an object with strings, numbers and booleans as values".to_owned(),
        FieldKind::Object(_) => "an object".to_owned(),
        FieldKind::Objects | FieldKind::ObjectsOf(_) => "a list of objects".to_owned(),
        FieldKind::Time => "a moment such as \"2030-01-31T12:00:00Z\"".to_owned(),
        FieldKind::Endpoints => {
            format!("a list of at most {ENDPOINTS_MAX} ids or slugs of endpoints, or \"*\"")
        }
    }
}

fn unknown(fields: &[Field], name: &str, path: &str) -> ApiError {
    let settable = fields.iter().filter(|field| field.access != Access::Read);
    let hint = nearest(name, settable.map(|field| field.name))
        .map_or_else(String::new, |nearest| format!("; the nearest known field is `{nearest}`"));
    ApiError::bad_request("unknown_field", format!("`{}` is not a field{hint}", shortened(path)))
}

fn refused(text: String) -> ApiError {
    ApiError::bad_request("bad_field", text)
}

/// A value as errors show it: long values are cut.
fn excerpt(value: &Value) -> String {
    shortened(&value.to_string())
}

fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const INNER: &[Field] = &[Field::new("deep", FieldKind::Flag, "")];
    const FIELDS: &[Field] = &[
        Field::new("name", FieldKind::Text { chars_max: 5 }, "").default("\"x\""),
        Field::new("count", FieldKind::Integer { min: 1, max: 9 }, "").default("4"),
        Field::new("slug", FieldKind::Form { matches: |text| text == "s", pattern: "s" }, "").nullable(),
        Field::new("mode", FieldKind::Word(&["A", "B"]), ""),
        Field::new("modes", FieldKind::Words(&["A", "B"]), ""),
        Field::new("list", FieldKind::Texts, ""),
        Field::new("env", FieldKind::Environment, ""),
        Field::new("inner", FieldKind::Object(INNER), "").on_create(),
        Field::new("items", FieldKind::ObjectsOf(INNER), ""),
        Field::new("at", FieldKind::Time, ""),
        Field::new("id", FieldKind::Text { chars_max: 9 }, "").read_only(),
    ];

    fn refusal(body: &str, verb: Verb) -> String {
        let failure = read_members(FIELDS, body.as_bytes(), verb).unwrap_err();
        format!("{failure:?}")
    }

    #[test]
    fn fit_members_are_read_as_they_are() {
        let body = r#"{"name": "äöüßé", "count": 9, "slug": null, "mode": "A", "modes": ["B", "A"],
                       "list": [], "env": {"A": "", "B": {"secret": "TOKEN"}}, "inner": {"deep": true}}"#;
        assert_eq!(read_members(FIELDS, body.as_bytes(), Verb::Create).unwrap().len(), 8);
    }

    #[test]
    fn every_refusal_names_the_field_and_what_is_allowed() {
        for (body, part) in [
            (
                r#"{"name": "toolong"}"#,
                r#"`name` is \"toolong\"; it must be a string of at most 5 characters"#,
            ),
            (r#"{"name": 5}"#, "`name` is 5; it must be a string"),
            (r#"{"count": 10}"#, "`count` is 10; it must be an integer from 1 to 9"),
            (r#"{"count": -1}"#, "`count` is -1"),
            (r#"{"count": 2.5}"#, "`count` is 2.5"),
            (r#"{"count": "2"}"#, r#"`count` is \"2\""#),
            (r#"{"count": null}"#, "`count` is null; it must be an integer from 1 to 9\""),
            (r#"{"slug": "t"}"#, "it must be a string of the form s or null"),
            (r#"{"mode": "C"}"#, r#"one of \"A\", \"B\""#),
            (r#"{"modes": ["C"]}"#, r#"a list of \"A\", \"B\""#),
            (r#"{"list": [1]}"#, "a list of strings"),
            (r#"{"env": {"A": 1}}"#, "`env.A` must be a string"),
            (r#"{"env": {"A": {}}}"#, "`env.A` must name a secret"),
            (r#"{"env": {"A": {"secret": "no name"}}}"#, "with a name of the form ^"),
            (r#"{"env": {"A": {"secret": "T", "more": 1}}}"#, "`env.A` must name a secret"),
            (r#"{"env": {"A=B": "x"}}"#, r#"`env` has the name \"A=B\"; the name of a variable must be"#),
            (r#"{"env": {"1A": {"secret": "T"}}}"#, "must be of the form ^[A-Za-z_][A-Za-z0-9_]*$"),
            (r#"{"inner": {"dep": true}}"#, "`inner.dep` is not a field; the nearest known field is `deep`"),
            (r#"{"inner": {"deep": 1}}"#, "`inner.deep` is 1; it must be true or false"),
            (r#"{"cuont": 1}"#, "`cuont` is not a field; the nearest known field is `count`"),
            (
                r#"{"items": [{}, {"dep": true}]}"#,
                "`items[1].dep` is not a field; the nearest known field is `deep`",
            ),
            (r#"{"items": [1]}"#, "`items[0]` must be an object"),
            (r#"{"items": {}}"#, "`items` must be a list of objects"),
            (r#"{"at": "tomorrow"}"#, r#"`at` is \"tomorrow\"; it must be a moment such as"#),
            (r#"{"id": "x"}"#, "`id` is set by the server"),
            ("[]", "must be a JSON object"),
            ("", "not JSON"),
        ] {
            assert!(refusal(body, Verb::Create).contains(part), "{}", refusal(body, Verb::Create));
        }
        assert!(refusal(r#"{"inner": {}}"#, Verb::Update).contains("only be set when"));
    }

    #[test]
    fn no_refusal_shows_an_environment_value() {
        for body in [
            r#"{"env": {"A": ["hush"]}}"#,
            r#"{"env": {"A": {"value": "hush"}}}"#,
            r#"{"env": {"A": {"secret": "hush hush"}}}"#,
            r#"{"env": ["hush"]}"#,
            r#"{"env": {"A": "hush", "": ""}}"#,
            r#"{"inner": [{"env": "hush"}]}"#,
        ] {
            assert!(!refusal(body, Verb::Create).contains("hush"));
        }
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        assert_eq!(Value::Object(defaults(FIELDS)), serde_json::json!({"name": "x", "count": 4}));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(body: Vec<u8>) {
            let _ = read_members(FIELDS, &body, Verb::Create);
        }
    }
}
