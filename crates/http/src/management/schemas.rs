//! Schemas of the API's document, made from the tables that requests are checked against, and those of the job
//! interface beside them.

use longshore_model::JobState;
use longshore_model::limits::{
    EXECUTION_TIMEOUT_MS_DEFAULT, EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_MIN, TTL_MS_DEFAULT,
    TTL_MS_MAX, TTL_MS_MIN,
};
use serde_json::{Map, Value, json};

use super::endpoint_fields::ENDPOINT_FIELDS;
use super::fields::{Access, Field, Kind, Verb};
use super::template_fields::TEMPLATE_FIELDS;

/// The form of texts that can be arguments and environment of a process.
const WITHOUT_NUL: &str = r"^[^\x00]*$";

/// Every schema, by name.
pub(super) fn all() -> Value {
    let text = json!({ "type": "string" });
    let count = json!({ "type": "integer" });
    json!({
        "Template": read(TEMPLATE_FIELDS),
        "TemplateCreateInput": sent(TEMPLATE_FIELDS, Verb::Create, &["name"]),
        "TemplateUpdateInput": sent(TEMPLATE_FIELDS, Verb::Update, &[]),
        "Endpoint": read(ENDPOINT_FIELDS),
        "EndpointCreateInput": sent(ENDPOINT_FIELDS, Verb::Create, &[]),
        "EndpointUpdateInput": sent(ENDPOINT_FIELDS, Verb::Update, &[]),
        "WorkerToken": object(&[("token", text.clone()), ("env", texts_by_name())], &["token", "env"]),
        "Error": object(&[("error", text.clone()), ("code", text.clone())], &["error", "code"]),
        "JobRequest": job_request(&text),
        "Job": object(&job(), &["id", "status"]),
        "ListedJob": object(&[job(), job_times()].concat(), &["id", "status", "createdAt"]),
        "RequestPage": object(
            &[
                ("requests", json!({ "type": "array", "items": { "$ref": "#/components/schemas/ListedJob" } })),
                ("cursor", json!({ "type": "string", "nullable": true })),
            ],
            &["requests", "cursor"],
        ),
        "StreamChunk": object(&[("output", json!({}))], &["output"]),
        "PurgeResult": object(&[("removed", count.clone()), ("status", json!({ "type": "string" }))], &["removed", "status"]),
        "Health": object(
            &[
                ("jobs", counts(&["completed", "failed", "inProgress", "inQueue", "retried"])),
                ("workers", counts(&["idle", "initializing", "ready", "running", "throttled", "unhealthy"])),
            ],
            &["jobs", "workers"],
        ),
    })
}

/// What clients read.
fn read(fields: &[Field]) -> Value {
    let properties = fields.iter().map(|field| (field.name.to_owned(), schema(field, None)));
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>() })
}

/// What clients send.
fn sent(fields: &[Field], verb: Verb, required: &[&str]) -> Value {
    let settable = fields.iter().filter(|field| match field.access {
        Access::Write => true,
        Access::Create => verb == Verb::Create,
        Access::Read => false,
    });
    let properties: Map<_, _> =
        settable.map(|field| (field.name.to_owned(), schema(field, Some(verb)))).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A field as it is sent with `verb`, or as it is read.
fn schema(field: &Field, verb: Option<Verb>) -> Value {
    let mut schema = match field.kind {
        Kind::Text { chars_max } => {
            json!({ "type": "string", "maxLength": chars_max, "pattern": WITHOUT_NUL })
        }
        Kind::Form { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Words(words) => json!({ "type": "array", "items": { "type": "string", "enum": words } }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string", "pattern": WITHOUT_NUL } }),
        Kind::SecretTexts => texts_by_name(),
        Kind::Objects => json!({ "type": "array", "items": { "type": "object" } }),
        // Beside a reference nothing else may stand.
        Kind::Object(_) if verb.is_none() => return json!({ "$ref": "#/components/schemas/Template" }),
        Kind::Object(fields) => sent(fields, Verb::Create, &[]),
    };
    schema["description"] = json!(field.about);
    if verb.is_some() && field.nullable {
        schema["nullable"] = json!(true);
    }
    // On an update a field that is not sent stays as it is.
    if verb == Some(Verb::Create)
        && let Some(default) = field.default.and_then(|json| serde_json::from_str::<Value>(json).ok())
    {
        schema["default"] = default;
    }
    schema
}

fn job_request(text: &Value) -> Value {
    let span = |min: u64, max: u64, default: u64| json!({ "type": "integer", "minimum": min, "maximum": max, "default": default });
    let execution = span(EXECUTION_TIMEOUT_MS_MIN, EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_DEFAULT);
    let policy = [
        ("executionTimeout", execution),
        ("lowPriority", json!({ "type": "boolean", "default": false })),
        ("ttl", span(TTL_MS_MIN, TTL_MS_MAX, TTL_MS_DEFAULT)),
    ];
    let storage = ["accessId", "accessSecret", "bucketName", "endpointUrl"].map(|name| (name, text.clone()));
    object(
        &[
            ("input", json!({ "type": "object" })),
            ("webhook", json!({ "type": "string", "format": "uri" })),
            ("policy", object(&policy, &[])),
            ("s3Config", object(&storage, &[])),
        ],
        &["input"],
    )
}

fn job() -> Vec<(&'static str, Value)> {
    let (text, count) = (json!({ "type": "string" }), json!({ "type": "integer" }));
    vec![
        ("id", job_id()),
        ("status", states()),
        ("output", json!({})),
        ("error", text.clone()),
        ("delayTime", count.clone()),
        ("executionTime", count.clone()),
        ("workerId", text),
        ("retries", count),
    ]
}

fn job_times() -> Vec<(&'static str, Value)> {
    let time = |nullable| json!({ "type": "string", "format": "date-time", "nullable": nullable });
    vec![("createdAt", time(false)), ("startedAt", time(true)), ("completedAt", time(true))]
}

/// A job's id.
pub(super) fn job_id() -> Value {
    let pattern = "^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    json!({ "type": "string", "pattern": pattern })
}

/// The states of a job.
pub(super) fn states() -> Value {
    let mut names: Vec<_> = JobState::ALL.iter().map(|state| state.as_str()).collect();
    names.sort_unstable();
    json!({ "type": "string", "enum": names })
}

fn counts(names: &[&str]) -> Value {
    let numbers: Vec<_> = names.iter().map(|name| (*name, json!({ "type": "integer" }))).collect();
    object(&numbers, names)
}

fn texts_by_name() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<_, _> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}
