//! Every limit of the wire, with the unit in its name. Related limits are checked against each other at compile time.

/// The longest body of `/run`, in bytes (spec, Limits: 10 MB; 1 MB is 1 000 000 bytes).
pub const RUN_BODY_BYTES_MAX: usize = 10_000_000;
/// The longest body of `/runsync`, in bytes.
pub const RUNSYNC_BODY_BYTES_MAX: usize = 20_000_000;
/// The longest body that a worker may post, in bytes. Larger than any stored output, so that a job with a longer output
/// fails with a reason in place of a rejected request.
pub const WORKER_BODY_BYTES_MAX: usize = 64_000_000;
/// The longest body of a management request, in bytes.
pub const MANAGEMENT_BODY_BYTES_MAX: usize = 1_000_000;
/// The longest value of a secret, in bytes: 64 KiB.
pub const SECRET_BYTES_MAX: usize = 65_536;
/// The longest archive of code, in bytes. Handlers are small, and fetch their models themselves.
pub const CODE_BODY_BYTES_MAX: usize = 64_000_000;
/// The longest chunk of a stream as clients see it, `{"output": …}`, in bytes; longer chunks are split.
pub const CHUNK_BYTES_MAX: usize = 1_000_000;
/// The longest error of a job, in bytes; a longer error is truncated.
pub const ERROR_BYTES_MAX: usize = 1_000_000;
/// The number of ended attempts of a job that are stored.
pub const ATTEMPTS_MAX: u32 = 8;
/// The longest stored reason of the end of an attempt, in bytes; a longer reason is cut.
pub const ATTEMPT_REASON_BYTES_MAX: usize = 400;
/// The longest progress value of a job, in bytes; a longer value is dropped.
pub const PROGRESS_BYTES_MAX: usize = 1_000_000;
/// How many progress values of an attempt are stored with their times.
pub const PROGRESS_TIMES_MAX: usize = 32;
/// The longest `Idempotency-Key`, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// The deepest nesting of JSON: recursive parsers of clients and workers overflow their stack on deeper documents.
pub const JSON_LEVELS_MAX: usize = 512;

/// The shortest `wait` of `/runsync` and `/status-sync`, in ms.
pub const WAIT_MS_MIN: u64 = 1_000;
/// The default `wait` of `/runsync` and `/status-sync`, in ms.
pub const WAIT_MS_DEFAULT: u64 = 90_000;
/// The longest `wait` of `/runsync` and `/status-sync`, in ms.
pub const WAIT_MS_MAX: u64 = 300_000;
/// How long a `/stream` poll waits for the next chunk by default, in ms.
pub const STREAM_WAIT_MS_DEFAULT: u64 = 5_000;

/// The shortest `policy.executionTimeout`, in ms.
pub const EXECUTION_TIMEOUT_MS_MIN: u64 = 5_000;
/// The default `policy.executionTimeout`, in ms: 10 minutes.
pub const EXECUTION_TIMEOUT_MS_DEFAULT: u64 = 600_000;
/// The longest `policy.executionTimeout`, in ms: 7 days.
pub const EXECUTION_TIMEOUT_MS_MAX: u64 = 604_800_000;
/// The shortest `policy.ttl`, in ms.
pub const TTL_MS_MIN: u64 = 10_000;
/// The default `policy.ttl`, in ms: 24 hours.
pub const TTL_MS_DEFAULT: u64 = 86_400_000;
/// The longest `policy.ttl`, in ms: 7 days.
pub const TTL_MS_MAX: u64 = 604_800_000;
/// The shortest `/status?ttl=`, in ms; the longest is [`TTL_MS_MAX`].
pub const STATUS_TTL_MS_MIN: u64 = 1_000;

/// The shortest `startPatienceMs` of an endpoint, in ms.
pub const START_PATIENCE_MS_MIN: u64 = 10_000;
/// The longest `startPatienceMs` of an endpoint, in ms: a day.
pub const START_PATIENCE_MS_MAX: u64 = 86_400_000;

/// How long a terminal `/run` job is stored by default, in ms.
pub const RESULT_RETENTION_MS: u64 = 1_800_000;
/// How long a terminal `/runsync` job is stored by default, in ms.
pub const SYNC_RESULT_RETENTION_MS: u64 = 60_000;
/// The longest retention that an endpoint can choose, in ms: 30 days.
pub const RETENTION_MS_MAX: u64 = 30 * 86_400_000;

/// The longest hold of a take, in ms. Below the 30 s after which the oldest worker SDK gives up.
pub const TAKE_HOLD_MS_MAX: u64 = 25_000;
/// The largest number of jobs in the reply to one take.
pub const TAKE_SLOTS_MAX: u32 = 1_000;

/// The default number of jobs per page of `/requests`.
pub const REQUESTS_LIMIT_DEFAULT: usize = 100;
/// The largest number of jobs per page of `/requests`.
pub const REQUESTS_LIMIT_MAX: usize = 1_000;
/// The largest number of entries per page of a list of the management API.
pub const LIST_LIMIT_MAX: usize = 1_000;

const _: () = assert!(WAIT_MS_MIN <= WAIT_MS_DEFAULT && WAIT_MS_DEFAULT <= WAIT_MS_MAX);
const _: () = assert!(RUNSYNC_BODY_BYTES_MAX < WORKER_BODY_BYTES_MAX);
const _: () = assert!(RUN_BODY_BYTES_MAX <= RUNSYNC_BODY_BYTES_MAX);
const _: () = assert!(EXECUTION_TIMEOUT_MS_MIN <= EXECUTION_TIMEOUT_MS_DEFAULT);
const _: () = assert!(EXECUTION_TIMEOUT_MS_DEFAULT <= EXECUTION_TIMEOUT_MS_MAX);
const _: () = assert!(TTL_MS_MIN <= TTL_MS_DEFAULT && TTL_MS_DEFAULT <= TTL_MS_MAX);
const _: () = assert!(STATUS_TTL_MS_MIN <= TTL_MS_MAX);
const _: () =
    assert!(RESULT_RETENTION_MS <= RETENTION_MS_MAX && SYNC_RESULT_RETENTION_MS <= RETENTION_MS_MAX);
const _: () = assert!(REQUESTS_LIMIT_DEFAULT <= REQUESTS_LIMIT_MAX);
// Rows store these spans in 32 bits.
const _: () = assert!(TTL_MS_MAX <= u32::MAX as u64 && EXECUTION_TIMEOUT_MS_MAX <= u32::MAX as u64);
