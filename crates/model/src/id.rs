//! Identifiers, one type for each kind. Ids are generated where a request arrives, before it is forwarded, so that a
//! repeated request creates nothing twice.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

use crate::Millis;
use crate::text_form::text_form;

/// A text is not an id of the expected kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIdError(&'static str);

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid {} id", self.0)
    }
}

impl core::error::Error for ParseIdError {}

/// A job's public id: a `UUIDv7` (RFC 9562 §5.7), printed with the prefix `sync-` for `/runsync` jobs.
///
/// Ordered by creation time, to the millisecond.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct JobId {
    raw: [u8; 16],
    sync: bool,
}

impl JobId {
    /// Returns an id of the present time and 74 random bits (the rest of `entropy` is ignored).
    pub fn mint(now: Millis, entropy: u128, sync: bool) -> Self {
        let tick = now.0 << 12 | (entropy >> 64) as u64 & 0xfff;
        Self::mint_at(tick, entropy as u64, sync)
    }

    /// Returns an id of `tick`, a time in ms shifted left by 12 bits that count within the millisecond (RFC 9562 §6.2,
    /// method 1), and 62 random bits. Ids of ascending ticks ascend.
    pub fn mint_at(tick: u64, entropy: u64, sync: bool) -> Self {
        let (time, count) = (u128::from(tick >> 12), u128::from(tick & 0xfff));
        let random = u128::from(entropy & !(3 << 62));
        let (version, variant) = (7_u128 << 76, 2_u128 << 62);
        let raw = (time & 0xffff_ffff_ffff) << 80 | version | count << 64 | variant | random;
        Self { raw: raw.to_be_bytes(), sync }
    }

    /// Rebuilds an id from its stored parts.
    pub fn from_parts(raw: [u8; 16], sync: bool) -> Self {
        Self { raw, sync }
    }

    /// The 16 bytes of the UUID, without the prefix.
    pub fn raw(&self) -> [u8; 16] {
        self.raw
    }

    /// Appends the id as text, in a seventh of the instructions of `write!`.
    pub fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.prefix().as_bytes());
        text.extend_from_slice(&self.uuid());
    }

    /// The length of the id as text, in bytes: 36 or 41.
    pub fn text_len(&self) -> usize {
        self.prefix().len() + 36
    }

    fn prefix(&self) -> &'static str {
        if self.sync { "sync-" } else { "" }
    }

    fn uuid(&self) -> [u8; 36] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        for (byte, at) in self.raw.iter().zip(PAIRS) {
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 15)];
        }
        text
    }

    /// Whether the job was submitted through `/runsync`.
    pub fn is_sync(&self) -> bool {
        self.sync
    }
}

/// Compares the bytes as one number, because indexes of jobs compare ids often.
impl Ord for JobId {
    fn cmp(&self, other: &Self) -> Ordering {
        let number = |id: &Self| u128::from_be_bytes(id.raw);
        number(self).cmp(&number(other)).then(self.sync.cmp(&other.sync))
    }
}

impl PartialOrd for JobId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())?;
        f.write_str(core::str::from_utf8(&self.uuid()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The position of each byte in the text of a UUID.
const PAIRS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
/// The value of each byte as a hexadecimal digit; above 15 for other bytes. `to_digit` needs three times as many
/// instructions for an id.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        digits[digit as usize] = value as u8;
        digits[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    digits
};

impl FromStr for JobId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        const BAD: ParseIdError = ParseIdError("job");
        let (sync, uuid) = match text.strip_prefix("sync-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let uuid: &[u8; 36] = uuid.as_bytes().try_into().map_err(|_| BAD)?;
        let (mut raw, mut worst) = ([0_u8; 16], 0);
        for (byte, at) in raw.iter_mut().zip(PAIRS) {
            let (high, low) = (DIGITS[usize::from(uuid[at])], DIGITS[usize::from(uuid[at + 1])]);
            worst |= high | low;
            *byte = high << 4 | low;
        }
        if worst > 15 || [8, 13, 18, 23].iter().any(|at| uuid[*at] != b'-') {
            return Err(BAD);
        }
        Ok(Self { raw, sync })
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The key of a job in the store: its endpoint's number and its number in that endpoint's sequence.
///
/// Keys of an endpoint ascend by time, so that the store's index is appended to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    /// The number of the endpoint, below 2^23.
    pub endpoint: EndpointNo,
    /// Counts up from 1 per endpoint; at most [`JobKey::SEQ_MAX`].
    pub seq: u64,
}

impl JobKey {
    /// The largest sequence number of an endpoint: 40 bits, about 10^12 jobs.
    pub const SEQ_MAX: u64 = (1 << 40) - 1;

    /// One integer for the row key: 23 bits of endpoint, then 40 bits of sequence; never negative.
    pub fn to_row(self) -> i64 {
        (i64::from(self.endpoint.0) << 40) | (self.seq & Self::SEQ_MAX) as i64
    }

    /// The key with this row key: the inverse of [`JobKey::to_row`].
    pub fn from_row(row: i64) -> Self {
        Self { endpoint: EndpointNo((row >> 40) as u32), seq: row as u64 & Self::SEQ_MAX }
    }
}

/// An endpoint's number in the store, from 1; assigned once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EndpointNo(pub u32);

/// One of the 64 units of ownership and commit order; the hash of an endpoint's id selects its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u8);

impl ShardId {
    /// The number of shards. Stored rows depend on it, so it never changes.
    pub const COUNT: u8 = 64;

    /// The shard of an endpoint (FNV-1a of its id, modulo the count).
    pub fn of(endpoint: &EndpointId) -> Self {
        let hash = endpoint.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self((hash % u64::from(Self::COUNT)) as u8)
    }

    /// The shard under which changes of the catalog (templates, keys) are committed.
    pub const CATALOG: Self = Self(0);
}

/// Counts the owners of a shard; a commit with an older epoch is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// Counts the deliveries of a job, from 1: the fencing token of that delivery's reports. 0 means no delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u32);

/// Declares an id of 14 characters `a–z0–9`.
macro_rules! short_id {
    ($name:ident, $kind:literal) => {
        #[doc = concat!("The id of ", $kind, ": 14 characters of a–z and 0–9.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 14]);

        impl $name {
            /// Returns an id made from random bits; about 72 of them are used.
            pub fn mint(mut entropy: u128) -> Self {
                const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
                let mut text = [0; 14];
                for letter in &mut text {
                    *letter = ALPHABET[(entropy % 36) as usize];
                    entropy /= 36;
                }
                Self(text)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                // `mint` and `from_str` admit only ASCII letters and digits.
                core::str::from_utf8(&self.0).unwrap_or_default()
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let bytes: [u8; 14] = text.as_bytes().try_into().map_err(|_| ParseIdError($kind))?;
                let fits = bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                if fits { Ok(Self(bytes)) } else { Err(ParseIdError($kind)) }
            }
        }

        text_form!($name);
    };
}

short_id!(EndpointId, "an endpoint");
short_id!(TemplateId, "a template");
short_id!(RegistryAuthId, "a registry's credentials");
short_id!(VolumeId, "a network volume");

/// A worker's id, as the worker names itself in its URLs. The server generates the ids of managed workers; an external
/// worker brings its own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// The longest worker id that is accepted, in bytes.
    pub const BYTES_MAX: usize = 128;

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerId {
    type Err = ParseIdError;

    /// Accepts 1 to 128 characters of `A-Z a-z 0-9 _ - . :`, not beginning with `.`: the id becomes part of URLs, file
    /// names and logs.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
        let sized = (1..=Self::BYTES_MAX).contains(&text.len());
        // No early return: the compiler then checks sixteen bytes per instruction.
        let all_fit = || text.bytes().fold(true, |all, byte| all & fits(byte));
        if sized && all_fit() && !text.starts_with('.') {
            Ok(Self(text.into()))
        } else {
            Err(ParseIdError("worker"))
        }
    }
}

text_form!(WorkerId);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_job_id_prints_and_parses_as_a_uuid_of_version_7() {
        let id = JobId::mint(Millis(0x0190_1234_5678), u128::MAX, false);
        let text = format!("{id}");
        assert_eq!(text, "01901234-5678-7fff-bfff-ffffffffffff");
        assert_eq!(text.parse(), Ok(id));
        let sync = JobId::mint(Millis(1), 0, true);
        assert_eq!(format!("{sync}"), "sync-00000000-0001-7000-8000-000000000000");
        assert_eq!(format!("{sync}").parse(), Ok(sync));
        let mut written = b"id ".to_vec();
        sync.write(&mut written);
        assert_eq!(written, format!("id {sync}").into_bytes());
        assert_eq!((id.text_len(), sync.text_len()), (format!("{id}").len(), format!("{sync}").len()));
    }

    #[test]
    fn a_text_that_is_no_job_id_is_refused() {
        for text in
            ["", "sync-", "zz", "01901234-5678-7fff-bfff-fffffffffff", "01901234x5678-7fff-bfff-ffffffffffff"]
        {
            assert!(text.parse::<JobId>().is_err(), "{text:?}");
        }
        assert!("01901234-5678-7fff-bfff-fffffffffffg".parse::<JobId>().is_err());
        assert!("01901234-5678-7fff-bfff-ffffffffff-f".parse::<JobId>().is_err());
        assert_eq!(
            "01901234-5678-7FFF-BFFF-FFFFFFFFFFFF".parse(),
            Ok(JobId::mint(Millis(0x0190_1234_5678), u128::MAX, false))
        );
        assert!("é1901234-5678-7fff-bfff-fffffffffff".parse::<JobId>().is_err());
    }

    #[test]
    fn job_ids_sort_by_the_time_they_were_minted() {
        assert!(JobId::mint(Millis(1), u128::MAX, false) < JobId::mint(Millis(2), 0, false));
    }

    #[test]
    fn a_job_key_survives_its_row_form() {
        let key = JobKey { endpoint: EndpointNo(0x7f_ffff), seq: JobKey::SEQ_MAX };
        assert!(key.to_row() > 0);
        assert_eq!(JobKey::from_row(key.to_row()), key);
    }

    #[test]
    fn worker_ids_are_safe_in_paths_and_urls() {
        for text in ["", "a/b", "..", ".x", "a b", "a,b", "$ID", "é"] {
            assert!(text.parse::<WorkerId>().is_err(), "{text:?}");
        }
        assert_eq!("wk-1_a.B:2".parse::<WorkerId>().unwrap().as_str(), "wk-1_a.B:2");
    }

    #[test]
    fn short_ids_round_trip() {
        let id = EndpointId::mint(0x1234_5678_9abc_def0_1234_5678_9abc_def0);
        assert_eq!(id.as_str().parse(), Ok(id));
        assert!("short".parse::<EndpointId>().is_err());
        assert!("ABCDEFGHIJKLMN".parse::<EndpointId>().is_err());
    }
}
