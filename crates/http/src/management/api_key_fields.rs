//! The fields of a key.

use longshore_model::Owner;

use super::fields::{Field, FieldKind, Resource};

const NAME: FieldKind = FieldKind::Text { chars_max: 191 };
/// An owner's name.
const OWNER: FieldKind = FieldKind::Form { matches: Owner::is_name, pattern: "^[a-z0-9][a-z0-9_-]{0,62}$" };
/// As many requests in ten seconds as nobody makes.
const RATE: FieldKind = FieldKind::Integer { min: 1, max: 1_000_000_000 };

/// The fields of a scope.
pub(crate) const SCOPE_FIELDS: &[Field] = &[
    Field::new(
        "scope",
        FieldKind::Word(&["manage", "read", "jobs"]),
        "`manage`: change everything under `/v1`; `read`: every GET; `jobs`: all job operations",
    ),
    Field::new(
        "endpointIds",
        FieldKind::Texts,
        "the endpoints that it is for, by id or slug; `[\"*\"]`, or none at all, means every one",
    )
    .names(Resource::Endpoint)
    .default(r#"["*"]"#),
];

/// Every field of a key: what clients may send and what they can read.
pub(crate) const API_KEY_FIELDS: &[Field] = &[
    Field::new("name", NAME, "a name for people, not blank"),
    Field::new("scopes", FieldKind::ObjectsOf(SCOPE_FIELDS), "what it permits; at least one").on_create(),
    Field::new("owner", OWNER, "whose it is: rates are counted per owner, and jobs and bills carry it").default("\"server\""),
    Field::new("expiresAt", FieldKind::Time, "from then on it is refused; null means never").nullable(),
    Field::new("disabled", FieldKind::Flag, "refused while true").default("false"),
    Field::new(
        "rateLimit",
        RATE,
        "requests that it may make in any 10 seconds, beside the limits of each endpoint; null means any number",
    )
    .nullable(),
    Field::new("id", NAME, "the public part: what logs name the key by").read_only(),
    Field::new("prefix", NAME, "how its text begins; none for a text of the operator's")
        .nullable()
        .read_only(),
    Field::new("createdAt", FieldKind::Time, "when it was created").read_only(),
    Field::new("lastUsedAt", FieldKind::Time, "when it was last used, to the minute; none if never")
        .nullable()
        .read_only(),
];
