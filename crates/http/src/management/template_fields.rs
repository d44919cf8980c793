//! The fields of a template.

use super::fields::{Field, FieldKind, Resource};

const SHORT_TEXT: FieldKind = FieldKind::Text { chars_max: 191 };
const PATH: FieldKind = FieldKind::Text { chars_max: 4_096 };
const GIGABYTES: FieldKind = FieldKind::Integer { min: 0, max: 1_000_000 };

/// Every field of a template: what clients may send and what they can read.
pub(crate) const TEMPLATE_FIELDS: &[Field] = &[
    Field::new("name", SHORT_TEXT, "a name for people; unique, and not blank"),
    Field::new("imageName", FieldKind::Text { chars_max: 1_000 }, "the container image; a label for `process` workers")
        .default(r#""""#),
    Field::new("dockerEntrypoint", FieldKind::Texts, "the beginning of the command line").default("[]"),
    Field::new("dockerStartCmd", FieldKind::Texts, "the end of the command line").default("[]"),
    Field::new("workdir", PATH, "the folder in which a `process` worker runs, or `code:<hash>` of deployed code")
        .names(Resource::Code)
        .nullable(),
    Field::new(
        "env",
        FieldKind::Environment,
        "environment of the workers: texts, and `{\"secret\": \"NAME\"}` for the value of a secret; every text reads `***`, and `***` sent for a known name keeps its value",
    )
    .names(Resource::Secret)
    .default("{}"),
    Field::new("category", FieldKind::Word(&["NVIDIA", "AMD", "CPU"]), "the hardware").default(r#""NVIDIA""#),
    Field::new("containerDiskInGb", GIGABYTES, "container disk").default("50"),
    Field::new("containerRegistryAuthId", SHORT_TEXT, "credentials for the image's registry")
        .names(Resource::RegistryAuth)
        .nullable(),
    Field::new(
        "endpoints",
        FieldKind::Endpoints,
        "the endpoints that the template is shared with, by id or slug, or `\"*\"`: keys that manage one of them may name it",
    )
    .names(Resource::Endpoint)
    .default("[]"),
    Field::new("isPublic", FieldKind::Flag, "accepted for compatibility").default("false"),
    Field::new("isServerless", FieldKind::Flag, "whether the template is for endpoints").default("false"),
    Field::new("ports", FieldKind::Texts, "ports of the container").default(r#"["8888/http","22/tcp"]"#),
    Field::new("readme", FieldKind::Text { chars_max: 100_000 }, "text for people").default(r#""""#),
    Field::new("volumeInGb", GIGABYTES, "volume size").default("20"),
    Field::new("volumeMountPath", PATH, "where the volume is mounted").default(r#""/workspace""#),
    Field::new("id", SHORT_TEXT, "14 characters of a–z and 0–9").read_only(),
    Field::new("createdAt", SHORT_TEXT, "when it was created, RFC 3339").read_only(),
    Field::new("isRunpod", FieldKind::Flag, "always false").read_only(),
    Field::new("earned", FieldKind::Integer { min: 0, max: 0 }, "always 0").read_only(),
    Field::new("runtimeInMin", FieldKind::Integer { min: 0, max: 0 }, "always 0").read_only(),
];
