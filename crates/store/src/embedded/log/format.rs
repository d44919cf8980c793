//! The disk format: everything that is in the data folder's `log/`, and the file `log-end` beside it.
//!
//! The log is a row of files, the **segments**, numbered from 1 without a gap and named `0000000001.log` and so on.
//! Only the newest is written to, only at its end. The state is what the records in them say, read from the oldest
//! segment to the newest: every record is a full state of something, and the last one wins. All numbers are
//! little-endian; *n* stands for a number in seven-bit groups, the lowest first, the high bit set on all but the last.
//!
//! # Segment
//!
//! A header page of 4096 bytes, then frames one behind the other, then what is left of the file's earlier use or of
//! room that was made ahead.
//!
//! | at | bytes | in the header |
//! |---|---|---|
//! | 0 | 8 | [`MAGIC`] |
//! | 8 | 4 | [`FORMAT_VERSION`] |
//! | 12 | 4 | zero |
//! | 16 | 8 | the segment's number |
//! | 24 | 8 | its salt: random, so that old bytes of a file that is used again are never taken for frames |
//! | 32 | 8 | where the frames of the segment before it end; 0 if there is none |
//! | 40 | 8 | the salt of the segment before it; 0 if there is none |
//! | 48 | 8 | the number of the oldest segment that belonged to the log when this one was begun |
//! | 56 | 8 | hash of the 56 bytes before |
//!
//! A segment gets its name after its header is durable, and the next is begun only when the name is. So a segment
//! is **sealed** by the header of the one behind it: every frame before the stated end must be whole, whatever
//! follows is nothing. Only the newest segment can end in a frame that a crash tore. It is never written past such an
//! end: the next server goes on in another segment, or makes a short one anew, with the same frames, under its name. It is
//! made anew only if nothing but zeros follows its frames, or the log is known to end there.
//!
//! A torn end is told from damage by what was durable: it cannot be torn. Every later frame says what was when it was
//! written, and so does the file `log-end`.
//!
//! # End of the log
//!
//! The file `log-end` says how far the log goes at least. It has two entries, the second at byte 512; the one
//! that says more counts.
//!
//! | at | bytes | in an entry |
//! |---|---|---|
//! | 0 | 8 | [`END_MAGIC`] |
//! | 8 | 4 | [`END_FORMAT_VERSION`] |
//! | 12 | 4 | zero |
//! | 16 | 8 | a segment's number: this one belongs to the log, or a newer one |
//! | 24 | 8 | its salt; that of another salt is about a file that was replaced |
//! | 32 | 8 | everything in this segment before this place is durable |
//! | 40 | 8 | hash of the 40 bytes before |
//!
//! The file is made anew, and synced, when a segment is begun and when the log is closed. The second entry is written in place
//! after every sync of the log and not synced: it survives the end of the process, and a power cut may tear it.
//!
//! # Frame
//!
//! What was committed together: a header of 24 bytes, the records, the payloads that are kept beside them.
//!
//! | at | bytes | in the header |
//! |---|---|---|
//! | 0 | 8 | hash of the rest of the header and the records, seeded with the segment's salt and the frame's place |
//! | 8 | 4 | bytes of records; never 0 |
//! | 12 | 4 | bytes of payloads |
//! | 16 | 4 | everything in this segment before this place was durable when the frame was written |
//! | 20 | 4 | zero |
//!
//! Payloads have hashes of their own, in the records: a sealed segment is opened without reading them.
//!
//! # Record
//!
//! A byte for the kind, *n* bytes of body, the body. A job is *n* endpoint number, *n* sequence number. Times are
//! milliseconds since the Unix epoch, 0 for "not yet". Text is *n* bytes of UTF-8.
//!
//! | kind | says | body |
//! |---|---|---|
//! | 1 | a job's row | job, then as in `job_row.rs` |
//! | 2 | its input | job, payload |
//! | 3 | its output (or latest progress) and error | job, a byte (1: output, 2: error), the payload, the text |
//! | 4 | a chunk of its stream | job, *n* offset, payload |
//! | 5 | where its stream stands | job, *n* next offset, *n* drained |
//! | 6 | a webhook call that it is owed | job, *n* attempts, *n* time |
//! | 7 | jobs are gone with all that belongs to them | the first job, *n* how many in a row |
//! | 8 | the outcome is gone | job |
//! | 9 | the chunks are gone | job |
//! | 10 | the stream is gone with its chunks | job |
//! | 11 | nothing is owed any more | job |
//! | 12 | an endpoint's counters | *n* endpoint number, *n* completed, failed, retried, cancelled, reserved sequence number, time of the last purge |
//! | 13 | a value of the catalog | a byte of class, *n* rank, *n* bytes of id, the id, the value |
//! | 14 | a value is gone; with an endpoint's its counters | a byte of class, the id |
//! | 15 | the largest endpoint number ever given out | *n* |
//! | 16 | a shard's epoch: how often it changed hands | a byte of shard, *n* epoch |
//! | 17 | segments before this one belong to the log no more | *n* number |
//! | 18 | reserved: how an owner stands with an endpoint | |
//!
//! Further kinds take 19 and up.
//!
//! Values have ranks in the order of their creation. Their classes:
//!
//! | class | id | value |
//! |---|---|---|
//! | 1 | endpoint number, 4 bytes, the highest first | the endpoint, as the JSON of the management API |
//! | 2 | template id | the template, likewise; contains secrets |
//! | 3 | key id | the key, likewise; holds the hash, not the secret |
//! | 4 | name | a setting of the installation |
//! | 64 + kind | id | a small record, JSON (kinds have the numbers of the model crate); may contain secrets |
//!
//! A payload is a byte that says how it is kept, and:
//!
//! | how | then |
//! |---|---|
//! | 1 here | *n* bytes, the bytes |
//! | 2 beside the records | 4 bytes of distance from the record's first byte to the payload's, *n* bytes, 8 bytes of hash |
//! | 3 in a file of the blob folder | *n* bytes of the file, its name as text; the name may end with `.sum-` and a hash of the bytes in 16 hexadecimal digits |
//!
//! Hashes are 64 bits of XXH3.
//!
//! # Changing the format
//!
//! A change that an older program would misread raises [`FORMAT_VERSION`]; a program refuses segments of a newer
//! version and reads those of every older one. Numbers of kinds, classes and forms are never used for anything else.
//! The first 16 bytes of a segment stay as they are.

/// The first bytes of every segment.
pub(in crate::embedded) const MAGIC: [u8; 8] = *b"LSHRLOG\n";

/// The version of the format that this program writes.
pub(in crate::embedded) const FORMAT_VERSION: u32 = 1;

/// Where the first frame of a segment is. Written at once, and never again.
pub(in crate::embedded) const SEGMENT_HEADER_BYTES: u32 = 4096;

/// The first bytes of the file beside the log, see the module.
pub(in crate::embedded) const END_MAGIC: [u8; 8] = *b"LSHREND\n";

/// The version of that file's format.
pub(in crate::embedded) const END_FORMAT_VERSION: u32 = 1;

/// Where its second entry is.
pub(in crate::embedded) const END_NOTE_AT: usize = 512;

/// What a frame begins with.
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
    // 18 is reserved for an owner's standing; further kinds take 19 and up.
}

/// The classes of values.
pub(in crate::embedded) mod class {
    pub const ENDPOINT: u8 = 1;
    pub const TEMPLATE: u8 = 2;
    pub const KEY: u8 = 3;
    pub const SETTING: u8 = 4;
    /// Plus the number of the record's kind.
    pub const JSON_ROW: u8 = 64;
}

/// How payloads are kept.
pub(in crate::embedded) mod form {
    pub const INLINE: u8 = 1;
    pub const OUT_OF_LINE: u8 = 2;
    pub const BLOB: u8 = 3;
}
