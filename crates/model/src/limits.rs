//! Every limit of the wire, its unit last in its name, checked against its neighbours.

/// The longest body of `/run`, in bytes (spec, Limits: 10 MB; 1 MB is 1 000 000 bytes).
pub const RUN_BODY_BYTES_MAX: usize = 10_000_000;
/// The longest body of `/runsync`, in bytes.
pub const RUNSYNC_BODY_BYTES_MAX: usize = 20_000_000;
/// The longest body that a worker may post, in bytes. Larger than any output that is kept, so that an output
/// over the limit is answered with a clear failure of the job instead of being lost at the door.
pub const WORKER_BODY_BYTES_MAX: usize = 64_000_000;
/// The longest body of a management request, in bytes.
pub const MANAGEMENT_BODY_BYTES_MAX: usize = 1_000_000;
/// The longest archive of code, in bytes: handlers are small, models are fetched by them.
pub const CODE_BODY_BYTES_MAX: usize = 64_000_000;
/// The longest chunk of a stream as it is shown, `{"output": …}`; longer ones are split.
pub const CHUNK_BYTES_MAX: usize = 1_000_000;
/// The longest error of a job; a longer one is cut there.
pub const ERROR_BYTES_MAX: usize = 1_000_000;
/// The longest progress value of a job; a longer one is dropped.
pub const PROGRESS_BYTES_MAX: usize = 1_000_000;
/// The longest `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// How deep JSON may be nested: parsers of clients and workers go as deep as a document does, and end there.
pub const JSON_LEVELS_MAX: usize = 512;

/// `wait` of `/runsync` and `/status-sync`: least, default and most.
pub const WAIT_MS_MIN: u64 = 1_000;
/// See [`WAIT_MS_MIN`].
pub const WAIT_MS_DEFAULT: u64 = 90_000;
/// See [`WAIT_MS_MIN`].
pub const WAIT_MS_MAX: u64 = 300_000;
/// How long a `/stream` poll waits for the next chunk by default.
pub const STREAM_WAIT_MS_DEFAULT: u64 = 5_000;

/// `policy.executionTimeout`: least, default and most.
pub const EXECUTION_TIMEOUT_MS_MIN: u64 = 5_000;
/// See [`EXECUTION_TIMEOUT_MS_MIN`].
pub const EXECUTION_TIMEOUT_MS_DEFAULT: u64 = 600_000;
/// See [`EXECUTION_TIMEOUT_MS_MIN`].
pub const EXECUTION_TIMEOUT_MS_MAX: u64 = 604_800_000;
/// `policy.ttl`: least, default and most.
pub const TTL_MS_MIN: u64 = 10_000;
/// See [`TTL_MS_MIN`].
pub const TTL_MS_DEFAULT: u64 = 86_400_000;
/// See [`TTL_MS_MIN`].
pub const TTL_MS_MAX: u64 = 604_800_000;
/// `/status?ttl=`: least; the most is [`TTL_MS_MAX`].
pub const STATUS_TTL_MS_MIN: u64 = 1_000;

/// How long a finished `/run` job is kept by default.
pub const RESULT_RETENTION_MS: u64 = 1_800_000;
/// How long a finished `/runsync` job is kept by default.
pub const SYNC_RESULT_RETENTION_MS: u64 = 60_000;
/// The longest retention that an endpoint can choose: 30 days.
pub const RETENTION_MS_MAX: u64 = 30 * 86_400_000;

/// How long a worker's poll is held: the oldest SDK with a limit gives up at 30 s.
pub const TAKE_HOLD_MS_MAX: u64 = 25_000;
/// The most jobs that one take answers.
pub const TAKE_SLOTS_MAX: u32 = 1_000;

/// Jobs per page of `/requests`: default and most.
pub const REQUESTS_LIMIT_DEFAULT: usize = 100;
/// See [`REQUESTS_LIMIT_DEFAULT`].
pub const REQUESTS_LIMIT_MAX: usize = 1_000;
/// The most things in one page of a list of the management API.
pub const LIST_LIMIT_MAX: usize = 1_000;

const _: () = assert!(WAIT_MS_MIN <= WAIT_MS_DEFAULT && WAIT_MS_DEFAULT <= WAIT_MS_MAX);
const _: () = assert!(RUNSYNC_BODY_BYTES_MAX < WORKER_BODY_BYTES_MAX);
// Rows keep the spans in 32 bits.
const _: () = assert!(TTL_MS_MAX <= u32::MAX as u64 && EXECUTION_TIMEOUT_MS_MAX <= u32::MAX as u64);
