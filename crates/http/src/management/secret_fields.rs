//! The fields of a secret.

use longshore_model::limits::SECRET_BYTES_MAX;
use longshore_model::{SECRET_NAME_PATTERN, SecretName};

use super::fields::{Field, FieldKind, Resource};

const SHORT_TEXT: FieldKind = FieldKind::Text { chars_max: 191 };
const NAME: FieldKind =
    FieldKind::Form { matches: |text| text.parse::<SecretName>().is_ok(), pattern: SECRET_NAME_PATTERN };

/// What uses a secret now.
const USED_BY: &[Field] = &[
    Field::new("templates", FieldKind::Texts, "the ids of the templates whose `env` names it"),
    Field::new("endpoints", FieldKind::Texts, "the ids of the endpoints with these templates"),
];

/// Every field of a secret: what clients may send and what they can read.
pub(crate) const SECRET_FIELDS: &[Field] = &[
    Field::new("name", NAME, "the unique name, which an `env` has as `{\"secret\": \"NAME\"}`").on_create(),
    Field::new(
        "value",
        FieldKind::Secret { chars_max: SECRET_BYTES_MAX },
        "the value that workers get, at most 65536 bytes of UTF-8; never shown",
    )
    .hidden(),
    Field::new(
        "endpoints",
        FieldKind::Endpoints,
        "the endpoints that the secret is shared with, by id or slug, or `\"*\"`: keys that manage one of them may name it",
    )
    .names(Resource::Endpoint)
    .default("[]"),
    Field::new("sealed", FieldKind::Flag, "whether the value is stored encrypted: the server has a secrets key")
        .read_only(),
    Field::new("usedBy", FieldKind::Object(USED_BY), "what uses it now").read_only(),
    Field::new("createdAt", SHORT_TEXT, "when it was created, RFC 3339").read_only(),
    Field::new("updatedAt", SHORT_TEXT, "when its value was last set, RFC 3339").read_only(),
];
