//! The disk format: the files of the data directory's `log/`, and the file `log-end` beside it.
//!
//! The log is a sequence of files, the **segments**, numbered from 1 without a gap and named `0000000001.log` and so on.
//! Frames are added only at the end of the newest segment. The state follows from the records, read from the oldest
//! segment to the newest: every record has the full state of one row, and the last record of a row wins. All numbers are
//! little-endian; *n* stands for a number in seven-bit groups, the lowest first, the high bit set on all but the last.
//!
//! # Segment
//!
//! A header page of 4096 bytes, then frames without gaps, then bytes of the file's earlier use or preallocated zeros.
//!
//! | at | bytes | in the header |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | [`FORMAT_VERSION`] |
//! | 12 | 4 | zero |
//! | 16 | 8 | the segment's number |
//! | 24 | 8 | its salt: random, so that the old bytes of a reused file are never taken for frames |
//! | 32 | 8 | the offset at which the frames of the previous segment end; 0 if there is none |
//! | 40 | 8 | the salt of the previous segment; 0 if there is none |
//! | 48 | 8 | the number of the first segment of the log when this one was started |
//! | 56 | 8 | hash of the 56 bytes before |
//!
//! A segment gets its name after its header is durable, and the next segment is started only after the name is durable.
//! So a segment is **sealed** by the header of the next one: every frame before the stated end must be whole, and the
//! bytes behind it are ignored. Only the newest segment can end in a frame that a crash tore. No frame is written behind
//! such an end: the next server starts another segment. It replaces a short newest segment by a new one with the same
//! frames and the same name, if only zeros follow its frames or `log-end` has its end.
//!
//! Durable frames cannot be torn, which tells a torn end from damage. Every frame says which bytes were durable when the
//! frame was written, and so does the file `log-end`.
//!
//! # End of the log
//!
//! The file `log-end` notes a place that the log has reached. It has two entries, the second at byte 512; the larger
//! place counts.
//!
//! | at | bytes | in an entry |
//! |---|---|---|
//! | 0 | 8 | [`END_MAGIC`] |
//! | 8 | 4 | [`END_FORMAT_VERSION`] |
//! | 12 | 4 | zero |
//! | 16 | 8 | a segment's number: this segment, or a newer one, is part of the log |
//! | 24 | 8 | its salt; an entry with another salt than the segment's is about a file that was replaced |
//! | 32 | 8 | the offset in this segment before which every byte is durable |
//! | 40 | 8 | hash of the 40 bytes before |
//!
//! The file is replaced, durably, when a segment is started and when the log is closed. The second entry is written in
//! place after every sync of the log and not synced: it survives the end of the process, but a power cut may tear it.
//!
//! # Frame
//!
//! The batches of one group: a header of 24 bytes, the records, the out-of-line payloads.
//!
//! | at | bytes | in the header |
//! |---|---|---|
//! | 0 | 8 | hash of the rest of the header and the records, seeded with the segment's salt and the frame's place |
//! | 8 | 4 | bytes of records; never 0 |
//! | 12 | 4 | bytes of payloads |
//! | 16 | 4 | the offset before which this segment was durable when the frame was written |
//! | 20 | 4 | zero |
//!
//! Out-of-line payloads have hashes of their own, in the records: a sealed segment is opened without reading them.
//!
//! # Record
//!
//! A byte for the kind, *n* bytes of body, the body. A job is *n* endpoint number, *n* sequence number. Times are
//! milliseconds since the Unix epoch, 0 for "not yet". Text is *n* bytes of UTF-8.
//!
//! | kind | meaning | body |
//! |---|---|---|
//! | 1 | a job's row | job, then as in `job_row.rs` |
//! | 2 | a job's input | job, payload |
//! | 3 | a job's output (or latest progress) and error | job, a byte (1: output, 2: error), the payload, the text |
//! | 4 | a chunk of a job's stream | job, *n* offset, payload |
//! | 5 | the offsets of a job's stream | job, *n* next offset, *n* consumed offset, then 8 bytes for each numbered post that is remembered, the newest first |
//! | 6 | a job's pending webhook call | job, *n* attempts, *n* time |
//! | 7 | deletes jobs with all their other rows | the first job, *n* number of jobs with consecutive sequence numbers |
//! | 8 | deletes a job's outcome | job |
//! | 9 | deletes a job's chunks | job |
//! | 10 | deletes a job's stream offsets and chunks | job |
//! | 11 | deletes a job's webhook call | job |
//! | 12 | an endpoint's counters | *n* endpoint number, *n* completed, failed, retried, cancelled, reserved sequence number, time of the last purge |
//! | 13 | a value of the catalog | a byte of class, *n* rank, *n* bytes of id, the id, the value |
//! | 14 | deletes a value; with an endpoint also its counters | a byte of class, the id |
//! | 15 | the largest endpoint number ever assigned | *n* |
//! | 16 | a shard's epoch: counts its owners | a byte of shard, *n* epoch |
//! | 17 | the first segment of the log | *n* number |
//! | 18 | reserved: the state of an owner at an endpoint | |
//! | 19 | an attempt of a job that ended without a result; of each job the 8 with the largest numbers count | job, *n* number of the attempt, then as in `attempt_row.rs` |
//!
//! Further kinds take 20 and up.
//!
//! Values have ranks in the order of their creation. Their classes:
//!
//! | class | id | value |
//! |---|---|---|
//! | 1 | endpoint number, 4 bytes, the highest first | the endpoint, as the JSON of the management API |
//! | 2 | template id | the template, likewise; contains secrets |
//! | 3 | key id | the API key, likewise; contains the hash, not the secret |
//! | 4 | name | a setting of the installation |
//! | 64 + kind | id | a JSON row (kinds have the numbers of the model crate); may contain secrets |
//!
//! A payload is a byte of form, and:
//!
//! | form | then |
//! |---|---|
//! | 1 inline | *n* bytes, the bytes |
//! | 2 out of line | 4 bytes of distance from the record's first byte to the payload's, *n* bytes, 8 bytes of hash |
//! | 3 blob file | *n* bytes of the file, its name as text; the name may end with `.sum-` and a hash of the bytes in 16 hexadecimal digits |
//!
//! Hashes are 64 bits of XXH3.
//!
//! # Changing the format
//!
//! A change that an older program would misread raises [`FORMAT_VERSION`]. A program rejects segments of a newer version
//! and reads those of every older one. Numbers of kinds, classes and forms are never reused. The first 16 bytes of a
//! segment never change.

/// The first bytes of every segment.
pub(in crate::embedded) const MAGIC: [u8; 8] = *b"LSHRLOG\n";

/// The version of the format that this program writes.
pub(in crate::embedded) const FORMAT_VERSION: u32 = 1;

/// Bytes of a segment's header: the offset of the first frame. The header is written once.
pub(in crate::embedded) const SEGMENT_HEADER_BYTES: u32 = 4096;

/// The first bytes of each entry of `log-end`.
pub(in crate::embedded) const END_MAGIC: [u8; 8] = *b"LSHREND\n";

/// The version of the format of `log-end`.
pub(in crate::embedded) const END_FORMAT_VERSION: u32 = 1;

/// The offset of the second entry of `log-end`.
pub(in crate::embedded) const END_NOTE_AT: usize = 512;

/// Bytes of a frame's header.
pub(in crate::embedded) const FRAME_HEADER_BYTES: u32 = 24;

/// The kinds of records.
pub(in crate::embedded) mod kind {
    pub const JOB: u8 = 1;
    pub const INPUT: u8 = 2;
    pub const OUTCOME: u8 = 3;
    pub const CHUNK: u8 = 4;
    pub const STREAM: u8 = 5;
    pub const WEBHOOK: u8 = 6;
    pub const JOBS_DELETED: u8 = 7;
    pub const OUTCOME_DELETED: u8 = 8;
    pub const CHUNKS_DELETED: u8 = 9;
    pub const STREAM_DELETED: u8 = 10;
    pub const WEBHOOK_DELETED: u8 = 11;
    pub const COUNTERS: u8 = 12;
    pub const VALUE: u8 = 13;
    pub const VALUE_DELETED: u8 = 14;
    pub const LAST_ENDPOINT: u8 = 15;
    pub const EPOCH: u8 = 16;
    pub const LOG_START: u8 = 17;
    // 18 is reserved for the state of an owner.
    pub const ATTEMPT: u8 = 19;
    // Further kinds take 20 and up.
}

/// The classes of values.
pub(in crate::embedded) mod class {
    pub const ENDPOINT: u8 = 1;
    pub const TEMPLATE: u8 = 2;
    pub const KEY: u8 = 3;
    pub const SETTING: u8 = 4;
    /// Plus the number of the JSON row's kind.
    pub const JSON_ROW: u8 = 64;
}

/// The forms of payloads.
pub(in crate::embedded) mod form {
    pub const INLINE: u8 = 1;
    pub const OUT_OF_LINE: u8 = 2;
    pub const BLOB: u8 = 3;
}
