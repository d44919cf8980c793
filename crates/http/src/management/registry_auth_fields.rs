//! The fields of a registry's credentials.

use super::fields::{Field, FieldKind, Resource};

const SHORT_TEXT: FieldKind = FieldKind::Text { chars_max: 191 };

/// Every field of a registry's credentials: what clients may send and what they can read.
pub(crate) const REGISTRY_AUTH_FIELDS: &[Field] = &[
    Field::new("name", SHORT_TEXT, "a name for people; not blank"),
    Field::new("username", FieldKind::Text { chars_max: 1_000 }, "who logs in").write_only(),
    Field::new("password", FieldKind::Secret { chars_max: 10_000 }, "with what; never shown").write_only(),
    Field::new(
        "endpoints",
        FieldKind::Endpoints,
        "the endpoints that the credentials are shared with, by id or slug, or `\"*\"`: keys that manage one of them may name them",
    )
    .names(Resource::Endpoint)
    .default("[]"),
    Field::new("id", SHORT_TEXT, "14 characters of a–z and 0–9").read_only(),
    Field::new("createdAt", SHORT_TEXT, "when it was created, RFC 3339").read_only(),
];
