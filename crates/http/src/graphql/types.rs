//! The types of the schema, and the selection of fields from a value.

use serde_json::{Map, Value, json};

use super::FieldError;
use super::query_text::{OperationKind, SelectedField};
use crate::wire::did_you_mean::nearest;

/// A type with its fields.
pub(super) struct Type {
    name: &'static str,
    fields: &'static [(&'static str, FieldType)],
}

/// The type of a field, or of each item if the field is a list.
#[derive(Clone, Copy)]
pub(super) enum FieldType {
    /// A value without fields, returned unchanged.
    Leaf,
    /// A value with fields, of which a query selects some.
    Of(&'static Type),
}

use FieldType::{Leaf, Of};

const PAIR: Type =
    Type { name: "EnvironmentVariable", fields: &[("key", Leaf), ("value", Leaf), ("secret", Leaf)] };

const VOLUME: Type = Type {
    name: "NetworkVolume",
    fields: &[("id", Leaf), ("name", Leaf), ("size", Leaf), ("dataCenterId", Leaf)],
};

const TEMPLATE: Type = Type {
    name: "PodTemplate",
    fields: &[
        ("id", Leaf),
        ("name", Leaf),
        ("imageName", Leaf),
        ("dockerArgs", Leaf),
        ("containerDiskInGb", Leaf),
        ("volumeInGb", Leaf),
        ("volumeMountPath", Leaf),
        ("ports", Leaf),
        ("env", Of(&PAIR)),
        ("isServerless", Leaf),
        ("isPublic", Leaf),
        ("readme", Leaf),
        ("category", Leaf),
        ("containerRegistryAuthId", Leaf),
        ("startSsh", Leaf),
    ],
};

const ENDPOINT: Type = Type {
    name: "Endpoint",
    fields: &[
        ("aiKey", Leaf),
        ("allowedCudaVersions", Leaf),
        ("createdAt", Leaf),
        ("env", Of(&PAIR)),
        ("executionTimeoutMs", Leaf),
        ("flashBootType", Leaf),
        ("gpuCount", Leaf),
        ("gpuIds", Leaf),
        ("id", Leaf),
        ("idleTimeout", Leaf),
        ("locations", Leaf),
        ("memoryBytes", Leaf),
        ("name", Leaf),
        ("networkVolume", Of(&VOLUME)),
        ("networkVolumeId", Leaf),
        ("pods", Of(&POD)),
        ("scalerType", Leaf),
        ("scalerValue", Leaf),
        ("template", Of(&TEMPLATE)),
        ("templateId", Leaf),
        ("type", Leaf),
        ("userId", Leaf),
        ("vcpus", Leaf),
        ("version", Leaf),
        ("workersMax", Leaf),
        ("workersMin", Leaf),
        ("workersStandby", Leaf),
    ],
};

const PORT: Type = Type {
    name: "PodPort",
    fields: &[
        ("ip", Leaf),
        ("isIpPublic", Leaf),
        ("privatePort", Leaf),
        ("publicPort", Leaf),
        ("type", Leaf),
    ],
};
const RUNTIME: Type = Type { name: "PodRuntime", fields: &[("ports", Of(&PORT)), ("uptimeInSeconds", Leaf)] };
const MACHINE: Type = Type { name: "PodMachine", fields: &[("gpuDisplayName", Leaf), ("podHostId", Leaf)] };

const POD: Type = Type {
    name: "Pod",
    fields: &[
        ("containerDiskInGb", Leaf),
        ("costPerHr", Leaf),
        ("desiredStatus", Leaf),
        ("dockerArgs", Leaf),
        ("dockerId", Leaf),
        ("endpointId", Leaf),
        ("env", Leaf),
        ("gpuCount", Leaf),
        ("id", Leaf),
        ("imageName", Leaf),
        ("lastStatusChange", Leaf),
        ("machine", Of(&MACHINE)),
        ("machineId", Leaf),
        ("memoryInGb", Leaf),
        ("name", Leaf),
        ("podType", Leaf),
        ("port", Leaf),
        ("ports", Leaf),
        ("runtime", Of(&RUNTIME)),
        ("status", Leaf),
        ("templateId", Leaf),
        ("unenforcedLimits", Leaf),
        ("uptimeSeconds", Leaf),
        ("vcpuCount", Leaf),
        ("version", Leaf),
        ("volumeInGb", Leaf),
        ("volumeMountPath", Leaf),
    ],
};

const REGISTRY_AUTH: Type = Type { name: "ContainerRegistryAuth", fields: &[("id", Leaf), ("name", Leaf)] };

const PRICE: Type = Type {
    name: "LowestPrice",
    fields: &[("minimumBidPrice", Leaf), ("uninterruptablePrice", Leaf), ("stockStatus", Leaf)],
};

const GPU_TYPE: Type = Type {
    name: "GpuType",
    fields: &[
        ("communityCloud", Leaf),
        ("communityPrice", Leaf),
        ("communitySpotPrice", Leaf),
        ("cudaCores", Leaf),
        ("displayName", Leaf),
        ("id", Leaf),
        ("lowestPrice", Of(&PRICE)),
        ("manufacturer", Leaf),
        ("maxGpuCount", Leaf),
        ("memoryInGb", Leaf),
        ("oneMonthPrice", Leaf),
        ("oneWeekPrice", Leaf),
        ("secureCloud", Leaf),
        ("securePrice", Leaf),
        ("secureSpotPrice", Leaf),
        ("threeMonthPrice", Leaf),
    ],
};

const USER: Type = Type {
    name: "User",
    fields: &[
        ("containerRegistryCreds", Of(&REGISTRY_AUTH)),
        ("email", Leaf),
        ("endpoints", Of(&ENDPOINT)),
        ("id", Leaf),
        ("networkVolumes", Of(&VOLUME)),
        ("podTemplates", Of(&TEMPLATE)),
        ("pods", Of(&POD)),
        ("pubKey", Leaf),
    ],
};

const QUERIES: &[(&str, FieldType)] =
    &[("endpoints", Of(&ENDPOINT)), ("gpuTypes", Of(&GPU_TYPE)), ("myself", Of(&USER)), ("pod", Of(&POD))];

const MUTATIONS: &[(&str, FieldType)] = &[
    ("deleteEndpoint", Leaf),
    ("deleteRegistryAuth", Leaf),
    ("deleteTemplate", Leaf),
    ("deployCpuPod", Of(&POD)),
    ("podFindAndDeployOnDemand", Of(&POD)),
    ("podResume", Of(&POD)),
    ("podStop", Of(&POD)),
    ("podTerminate", Leaf),
    ("saveEndpoint", Of(&ENDPOINT)),
    ("saveRegistryAuth", Of(&REGISTRY_AUTH)),
    ("saveTemplate", Of(&TEMPLATE)),
    ("updateEndpointTemplate", Of(&ENDPOINT)),
    ("updateRegistryAuth", Of(&REGISTRY_AUTH)),
    ("updateUserSettings", Of(&USER)),
];

/// The names of the mutations.
#[cfg(test)]
pub(crate) fn mutations() -> impl Iterator<Item = &'static str> {
    MUTATIONS.iter().map(|(name, _)| *name)
}

/// The type of a root field.
///
/// # Errors
///
/// A [`FieldError`] for an unknown name, with the nearest known one.
pub(super) fn root(kind: OperationKind, name: &str) -> Result<FieldType, FieldError> {
    let fields = match kind {
        OperationKind::Query => QUERIES,
        OperationKind::Mutation => MUTATIONS,
    };
    find(fields, name, kind.type_name())
}

fn find(fields: &[(&'static str, FieldType)], name: &str, of: &str) -> Result<FieldType, FieldError> {
    let found = fields.iter().find(|(field, _)| *field == name).map(|(_, field_type)| *field_type);
    found.ok_or_else(|| {
        let hint = nearest(name, fields.iter().map(|(field, _)| *field))
            .map_or_else(String::new, |nearest| format!("; the nearest known field is `{nearest}`"));
        // The parser only accepts letters, digits and underscores in names.
        let shown: String = name.chars().take(60).collect();
        FieldError::new(format!("`{shown}` is not a field of `{of}` here{hint}"))
    })
}

impl FieldType {
    /// Checks that the type has every selected field.
    pub(super) fn check(self, selected: &SelectedField) -> Result<(), FieldError> {
        match self {
            Leaf if selected.fields.is_empty() => Ok(()),
            Leaf => Err(FieldError::new(format!("`{}` has no fields", selected.name))),
            Of(_) if selected.fields.is_empty() => {
                Err(FieldError::new(format!("say which fields of `{}` to show", selected.name)))
            }
            Of(of) => {
                selected.fields.iter().filter(|field| field.name != "__typename").try_for_each(|field| {
                    find(of.fields, &field.name, of.name).and_then(|field_type| field_type.check(field))
                })
            }
        }
    }

    /// The selected fields of a value. Missing fields are null.
    pub(super) fn show(self, selected: &SelectedField, value: &Value) -> Value {
        match (self, value) {
            (Of(_), Value::Array(items)) => items.iter().map(|item| self.show(selected, item)).collect(),
            (Of(of), Value::Object(members)) => {
                let show = |field: &SelectedField| {
                    let field_type = of
                        .fields
                        .iter()
                        .find(|(name, _)| *name == field.name)
                        .map(|(_, field_type)| field_type);
                    let shown = match field_type {
                        Some(field_type) => {
                            field_type.show(field, members.get(&field.name).unwrap_or(&Value::Null))
                        }
                        None => json!(of.name),
                    };
                    (field.key.clone(), shown)
                };
                Value::Object(selected.fields.iter().map(show).collect::<Map<_, _>>())
            }
            (Of(_), _) => Value::Null,
            (Leaf, value) => value.clone(),
        }
    }
}
