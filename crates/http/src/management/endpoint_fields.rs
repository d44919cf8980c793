//! The fields of an endpoint.

use longshore_envelope::is_webhook;
use longshore_model::limits::{
    EXECUTION_TIMEOUT_MS_MAX, EXECUTION_TIMEOUT_MS_MIN, RETENTION_MS_MAX, START_PATIENCE_MS_MAX,
    START_PATIENCE_MS_MIN,
};

use super::fields::{Field, FieldKind, Resource};
use super::lb_fields::LB_FIELDS;
use super::template_fields::TEMPLATE_FIELDS;

/// The most workers of one endpoint.
const WORKERS_MAX: u64 = 10_000;
const WORKERS: FieldKind = FieldKind::Integer { min: 0, max: WORKERS_MAX };
const RETENTION_MS: FieldKind = FieldKind::Integer { min: 1_000, max: RETENTION_MS_MAX };
const EXECUTION_MS: FieldKind =
    FieldKind::Integer { min: EXECUTION_TIMEOUT_MS_MIN, max: EXECUTION_TIMEOUT_MS_MAX };
/// Milliseconds, up to one hour.
const STOP_GRACE_MS: FieldKind = FieldKind::Integer { min: 0, max: 3_600_000 };
const START_PATIENCE_MS: FieldKind =
    FieldKind::Integer { min: START_PATIENCE_MS_MIN, max: START_PATIENCE_MS_MAX };
/// 16 MiB, in bytes: a Python interpreter does not start with less.
const MEMORY_BYTES_MIN: u64 = 16_777_216;
/// 2^53 - 1 bytes: the largest integer that every JSON parser reads exactly.
const MEMORY_BYTES_MAX: u64 = (1 << 53) - 1;
const VCPUS_MIN: f64 = 0.1;
const VCPUS_MAX: f64 = 4_096.0;
const SHORT_TEXT: FieldKind = FieldKind::Text { chars_max: 191 };
const CUDA_PATTERN: &str = "^[0-9]{1,3}\\.[0-9]{1,3}$";

const WEBHOOK: FieldKind = FieldKind::Form { matches: is_webhook, pattern: "^[Hh][Tt][Tt][Pp][Ss]?://.+$" };
const EVENTS: &[&str] = &["completed", "failed", "cancelled", "timed_out", "progress"];

/// The largest example of a request and schema of its input, as JSON text, in bytes.
const JSON_BYTES_MAX: usize = 65_536;
/// Below 1: an objective without a budget for failures is missed by the first one.
const TARGET: FieldKind = FieldKind::Number { min: 0.5, max: 0.999_99 };

/// The fields of the objectives.
const OBJECTIVES: &[Field] = &[
    Field::new(
        "delayMs",
        FieldKind::Integer { min: 1, max: 86_400_000 },
        "the longest time in the queue that counts as good, in ms; without it, the delay has no objective",
    )
    .nullable(),
    Field::new("delayTarget", TARGET, "the share of jobs that are to start within `delayMs`").default("0.95"),
    Field::new(
        "successTarget",
        TARGET,
        "the share of ended jobs that are to complete; cancelled ones do not count",
    )
    .default("0.99"),
    Field::new("windowDays", FieldKind::Integer { min: 1, max: 30 }, "the days that the shares are of")
        .default("30"),
];

const PAUSED_FROM: &[Field] = &[
    Field::new("workersMin", WORKERS, "workers kept even when there was nothing to do"),
    Field::new("workersMax", WORKERS, "the most workers"),
];

/// Every field of an endpoint: what clients may send and what they can read.
pub(crate) const ENDPOINT_FIELDS: &[Field] = &[
    Field::new("name", SHORT_TEXT, "a name for people, not blank; the endpoint's id if none is given"),
    Field::new(
        "slug",
        FieldKind::Slug,
        "a second address of the endpoint under `/v2`, a `/` in it escaped; unique regardless of case",
    )
    .nullable(),
    Field::new(
        "models",
        FieldKind::Texts,
        "the models that its workers serve, by the names that `openai` clients send",
    )
    .default("[]"),
    Field::new(
        "type",
        FieldKind::Word(&["QUEUE", "LB"]),
        "`QUEUE`: workers take jobs from a queue, the default; `LB`: requests are forwarded to workers that serve HTTP",
    )
    .on_create(),
    Field::new("lb", FieldKind::Object(LB_FIELDS), "how requests are forwarded; for the type `LB` alone")
        .nullable(),
    Field::new("templateId", SHORT_TEXT, "the template that its workers run").names(Resource::Template),
    Field::new(
        "template",
        FieldKind::Object(TEMPLATE_FIELDS),
        "a template to create with it, instead of `templateId`",
    )
    .on_create(),
    Field::new("workersMin", WORKERS, "workers kept even when there is nothing to do").default("0"),
    Field::new("workersMax", WORKERS, "the most workers; 0 pauses the endpoint").default("3"),
    Field::new("idleTimeout", FieldKind::Integer { min: 1, max: 3_600 }, "seconds a worker may idle")
        .default("5"),
    Field::new(
        "idleTimeoutMax",
        FieldKind::Integer { min: 1, max: 86_400 },
        "seconds for which the scaler `IDLE_GAPS` keeps an idle worker at most",
    )
    .default("3600"),
    Field::new(
        "startPatienceMs",
        START_PATIENCE_MS,
        "milliseconds from a worker's start to its first request for a job, after which it is replaced",
    )
    .default("600000"),
    Field::new(
        "scalerType",
        FieldKind::Word(&["QUEUE_DELAY", "REQUEST_COUNT", "IDLE_GAPS"]),
        "what makes the fleet grow, and keeps idle workers",
    )
    .default(r#""QUEUE_DELAY""#),
    Field::new(
        "scalerValue",
        FieldKind::Integer { min: 1, max: 1_000_000 },
        "seconds of waiting, or jobs per worker",
    )
    .default("4"),
    Field::new("executionTimeoutMs", EXECUTION_MS, "the longest a job may run").default("600000"),
    Field::new("maxRetries", FieldKind::Integer { min: 0, max: 100 }, "automatic retries of one job")
        .default("2"),
    Field::new("retryOn", FieldKind::Words(&["workerLost", "handlerError"]), "what causes a re-dispatch")
        .default(r#"["workerLost"]"#),
    Field::new("resultRetentionMs", RETENTION_MS, "how long a finished `/run` job is kept")
        .default("1800000"),
    Field::new("syncResultRetentionMs", RETENTION_MS, "how long a finished `/runsync` job is kept")
        .default("60000"),
    Field::new(
        "maxQueueLength",
        FieldKind::Integer { min: 1, max: 1_000_000_000 },
        "the number of queued jobs from which on `/run` answers 429",
    )
    .nullable(),
    Field::new(
        "stopGraceMs",
        STOP_GRACE_MS,
        "milliseconds from a job's stop signal to SIGTERM for its worker; null: the server's setting",
    )
    .nullable(),
    Field::new(
        "streamShape",
        FieldKind::Word(&["array", "object"]),
        "what `/v2/…/stream` answers: the chunks alone, or with the job's status; null: the server's setting",
    )
    .nullable(),
    Field::new(
        "provider",
        FieldKind::Word(&["process", "docker", "kubernetes", "external"]),
        "who runs its workers; a server that cannot start workers of a provider refuses it",
    ),
    Field::new(
        "maxConcurrency",
        FieldKind::Integer { min: 1, max: 10_000 },
        "jobs that one worker runs concurrently",
    )
    .default("1"),
    Field::new("webhook", WEBHOOK, "called for jobs that name no webhook themselves").nullable(),
    Field::new("webhookEvents", FieldKind::Words(EVENTS), "the events that webhooks are called for")
        .default(r#"["completed","failed","cancelled","timed_out"]"#),
    Field::new(
        "keepFailureTexts",
        FieldKind::Flag,
        "whether messages of errors are stored in the groups of failures; types and places are always",
    )
    .default("true"),
    Field::new(
        "example",
        FieldKind::Json { bytes_max: JSON_BYTES_MAX, is_object: false },
        "an example of a request's body, for people who try the endpoint",
    )
    .nullable(),
    Field::new(
        "inputSchema",
        FieldKind::Json { bytes_max: JSON_BYTES_MAX, is_object: true },
        "the JSON Schema of a request's `input`, for forms; requests are not checked against it",
    )
    .nullable(),
    Field::new("slo", FieldKind::Object(OBJECTIVES), "how fast jobs are to start, and how many are to complete")
        .nullable(),
    Field::new("durability", FieldKind::Word(&["synced", "buffered"]), "when a change counts as stored")
        .default(r#""synced""#),
    Field::new("flashboot", FieldKind::Flag, "whether workers start as forks of a process that has imported their packages").default("true"),
    Field::new("computeType", FieldKind::Word(&["GPU", "CPU"]), "the hardware class").default(r#""GPU""#),
    Field::new("gpuCount", FieldKind::Integer { min: 1, max: 1_024 }, "GPUs per worker").default("1"),
    Field::new("gpuTypeIds", FieldKind::Texts, "GPU types in order of preference").default("[]"),
    Field::new(
        "allowedCudaVersions",
        FieldKind::Forms { matches: is_cuda_version, pattern: CUDA_PATTERN },
        "accepted for compatibility",
    )
    .default("[]"),
    Field::new(
        "minCudaVersion",
        FieldKind::Form { matches: is_cuda_version, pattern: CUDA_PATTERN },
        "accepted for compatibility",
    )
    .nullable(),
    Field::new("cpuFlavorIds", FieldKind::Texts, "accepted for compatibility").default("[]"),
    Field::new("dataCenterIds", FieldKind::Texts, "accepted for compatibility").default("[]"),
    Field::new("networkVolumeId", SHORT_TEXT, "the volume that its workers can use")
        .names(Resource::NetworkVolume)
        .nullable(),
    Field::new("networkVolumeIds", FieldKind::Texts, "more volumes that its workers can use")
        .names(Resource::NetworkVolume)
        .default("[]"),
    Field::new("vcpuCount", FieldKind::Integer { min: 1, max: 4_096 }, "for comparison; limits nothing")
        .default("2"),
    Field::new(
        "memoryBytes",
        FieldKind::Integer { min: MEMORY_BYTES_MIN, max: MEMORY_BYTES_MAX },
        "the memory limit of one worker with its child processes; a worker over the limit is killed",
    )
    .nullable(),
    Field::new(
        "vcpus",
        FieldKind::Number { min: VCPUS_MIN, max: VCPUS_MAX },
        "the number of processors that one worker may use, with its child processes",
    )
    .nullable(),
    Field::new("id", SHORT_TEXT, "14 characters of a–z and 0–9").read_only(),
    Field::new(
        "version",
        FieldKind::Integer { min: 1, max: u32::MAX as u64 },
        "grows when its workers are replaced",
    )
    .read_only(),
    Field::new(
        "pausedFrom",
        FieldKind::Object(PAUSED_FROM),
        "while `workersMax` is 0: the numbers of workers before",
    )
    .read_only(),
    Field::new(
        "deployedEnv",
        FieldKind::Texts,
        "the variables of `env` that the last deploy set; the next deploy removes those that it does not name",
    )
    .on_create(),
    Field::new("createdAt", SHORT_TEXT, "when it was created, RFC 3339").read_only(),
    Field::new("userId", SHORT_TEXT, "the key that created it").read_only(),
    Field::new("env", FieldKind::Environment, "its template's environment; every text reads `***`")
        .read_only(),
    Field::new("instanceIds", FieldKind::Texts, "always empty").read_only(),
    Field::new("workers", FieldKind::Objects, "its workers, with `?includeWorkers=true`").read_only(),
    Field::new("health", FieldKind::Members, "its counts as `/v2/{id}/health` has them, with `?includeHealth=true`").read_only(),
];

/// Whether a text has the form of a CUDA version. Existing versions are not listed, since they change every few months.
fn is_cuda_version(text: &str) -> bool {
    let is_number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cuda_version_is_two_numbers() {
        for version in ["12.8", "11.0", "99.123"] {
            assert!(is_cuda_version(version), "{version}");
        }
        for text in ["", "12", "12.", ".8", "12.8.1", "v12.8", "12.x", "1234.5", "12,8"] {
            assert!(!is_cuda_version(text), "{text}");
        }
    }
}
