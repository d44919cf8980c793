//! The fields of API keys and of their scopes.

use longshore_model::Owner;

use super::fields::{Field, FieldKind, Resource};

const NAME: FieldKind = FieldKind::Text { chars_max: 191 };
/// The name of an owner: 1 to 63 characters.
const OWNER: FieldKind = FieldKind::Form { matches: Owner::is_name, pattern: "^[a-z0-9][a-z0-9_-]{0,62}$" };
/// An IP address, which has at most 45 characters.
const ADDRESS: FieldKind = FieldKind::Text { chars_max: 45 };
/// Requests in 10 seconds. The upper limit only keeps the number in its type.
const RATE: FieldKind = FieldKind::Integer { min: 1, max: 1_000_000_000 };

/// The fields of one scope of a key.
pub(crate) const SCOPE_FIELDS: &[Field] = &[
    Field::new(
        "scope",
        FieldKind::Word(&["manage", "read", "jobs"]),
        "`manage`: change everything under `/v1`; `read`: every GET; `jobs`: all job operations",
    ),
    Field::new(
        "endpointIds",
        FieldKind::Texts,
        "the endpoints that the scope is for, by id or slug; `[\"*\"]`, or no `endpointIds`, means all endpoints",
    )
    .names(Resource::Endpoint)
    .default(r#"["*"]"#),
];

/// Every field of a key: what clients may send and what they can read.
pub(crate) const API_KEY_FIELDS: &[Field] = &[
    Field::new("name", NAME, "a name for people, not blank"),
    Field::new("scopes", FieldKind::ObjectsOf(SCOPE_FIELDS), "what the key permits; at least one scope").on_create(),
    Field::new("owner", OWNER, "the owner of the key: rates are counted per owner, and jobs and bills name the owner").default("\"server\""),
    Field::new("expiresAt", FieldKind::Time, "when the key expires; null means never").nullable(),
    Field::new("disabled", FieldKind::Flag, "refused while true").default("false"),
    Field::new(
        "rateLimit",
        RATE,
        "requests that the key may make in any 10 seconds, beside the limits of each endpoint; null means no limit",
    )
    .nullable(),
    Field::new("id", NAME, "the public part of the key, which logs name").read_only(),
    Field::new("prefix", NAME, "how the text of the key begins; absent for the operator's own text")
        .nullable()
        .read_only(),
    Field::new("createdAt", FieldKind::Time, "when it was created").read_only(),
    Field::new("lastUsedAt", FieldKind::Time, "when the key was last used, to the minute; absent if never")
        .nullable()
        .read_only(),
    Field::new("lastUsedFrom", ADDRESS, "the address of the last use; absent if it is unknown, or never used")
        .nullable()
        .read_only(),
];
