//! The fields of a network volume.

use super::fields::{Field, FieldKind, Resource};

const SHORT_TEXT: FieldKind = FieldKind::Text { chars_max: 191 };

/// Every field of a network volume: what clients may send and what they can read.
pub(crate) const VOLUME_FIELDS: &[Field] = &[
    Field::new("name", SHORT_TEXT, "a name for people; not blank"),
    Field::new(
        "size",
        FieldKind::Integer { min: 0, max: 4_000 },
        "in GB; stored for people and tools, but not enforced",
    ),
    Field::new("dataCenterId", SHORT_TEXT, "where it is, for people").on_create().default(r#""local""#),
    Field::new(
        "endpoints",
        FieldKind::Endpoints,
        "the endpoints that the volume is shared with, by id or slug, or `\"*\"`: keys that manage one of them may name it",
    )
    .names(Resource::Endpoint)
    .default("[]"),
    Field::new("id", SHORT_TEXT, "14 characters of a–z and 0–9").read_only(),
    Field::new(
        "diskBytes",
        FieldKind::Integer { min: 0, max: 1 << 53 },
        "how much of the server's disk its files take; null until it is measured, in the background. It is measured again \
         after 5 minutes, when it is asked for",
    )
    .nullable()
    .read_only(),
    Field::new("diskBytesAt", SHORT_TEXT, "when `diskBytes` was measured, RFC 3339").nullable().read_only(),
    Field::new("createdAt", SHORT_TEXT, "when it was created, RFC 3339").read_only(),
];
