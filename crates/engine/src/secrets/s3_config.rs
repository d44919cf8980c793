//! Seals a job's `s3Config` when the job is submitted, and opens it when a worker takes the job.
//!
//! The sealed member is the first of the job's members, and a string where clients may only send an object. So it is
//! found by its first bytes, and no member of a client is mistaken for it.

use bytes::{BufMut as _, Bytes, BytesMut};
use longshore_model::JobId;
use longshore_vault::{Keyring, NoRandom};

/// The first bytes of members with a sealed `s3Config`.
const BEGIN: &[u8] = b"\"s3Config\":\"longshore-sealed:";
/// The bytes before the sealed text.
const NAME: &str = "\"s3Config\":\"";

/// Returns the member of a job with its `s3Config` sealed; `None` if the keyring has no key.
///
/// # Errors
///
/// [`NoRandom`] if the operating system gives no random bytes.
pub(crate) fn sealed(keyring: &Keyring, job: JobId, config: &str) -> Result<Option<String>, NoRandom> {
    if !keyring.is_sealing() {
        return Ok(None);
    }
    Ok(Some(format!("{NAME}{}\"", keyring.seal(&context(job), config)?)))
}

/// Returns a job's members with the `s3Config` open, as the worker gets them. A config that opens under no key is left
/// out and logged; the worker reports what it misses.
pub(crate) fn opened(keyring: &Keyring, job: JobId, members: Bytes) -> Bytes {
    let Some((sealed, rest)) = split(&members) else { return members };
    let opened = match keyring.open(&context(job), sealed) {
        Ok(config) => config,
        Err(error) => {
            tracing::error!(%job, %error, "`s3Config` not readable, worker gets none");
            let rest = rest.strip_prefix(b",").unwrap_or(rest);
            return members.slice_ref(rest);
        }
    };
    let mut whole = BytesMut::with_capacity(NAME.len() + opened.len() + rest.len());
    whole.put_slice(b"\"s3Config\":");
    whole.put_slice(opened.as_bytes());
    whole.put_slice(rest);
    whole.freeze()
}

/// Returns a job's members with the `s3Config` sealed under the present key; `None` if it is already, or opens under no
/// key.
///
/// # Errors
///
/// As [`sealed`].
pub(super) fn resealed(keyring: &Keyring, job: JobId, members: &Bytes) -> Result<Option<Bytes>, NoRandom> {
    let Some((old, rest)) = split(members).filter(|(old, _)| keyring.is_stale(old)) else { return Ok(None) };
    let Ok(config) = keyring.open(&context(job), old) else { return Ok(None) };
    let Some(member) = sealed(keyring, job, &config)? else { return Ok(None) };
    Ok(Some(Bytes::from([member.as_bytes(), rest].concat())))
}

/// Returns whether a job's `s3Config` is sealed under another key than the present one.
pub(super) fn is_stale(keyring: &Keyring, members: &Bytes) -> bool {
    split(members).is_some_and(|(sealed, _)| keyring.is_stale(sealed))
}

/// Returns the sealed text and the bytes after the member; `None` without a sealed `s3Config`.
fn split(members: &Bytes) -> Option<(&str, &[u8])> {
    if !members.starts_with(BEGIN) {
        return None;
    }
    let text = &members[NAME.len()..];
    let end = text.iter().position(|byte| *byte == b'"')?;
    Some((std::str::from_utf8(&text[..end]).ok()?, &text[end + 1..]))
}

/// Returns the context under which a job's `s3Config` is sealed.
fn context(job: JobId) -> String {
    format!("job/{job}/s3Config")
}

#[cfg(test)]
mod tests {
    use longshore_model::Millis;
    use longshore_vault::MasterKey;

    use super::*;

    const CONFIG: &str = r#"{"accessId": "a", "accessSecret": "hu\"sh"}"#;

    fn job(number: u128) -> JobId {
        JobId::mint(Millis(5), number, false)
    }

    fn members(keyring: &Keyring) -> Bytes {
        let member = sealed(keyring, job(1), CONFIG).unwrap().unwrap();
        Bytes::from(format!(r#"{member},"input":{{"a":1}}"#))
    }

    #[test]
    fn a_sealed_config_opens_for_its_job_alone() {
        let keyring = Keyring::new(vec![MasterKey::mint().unwrap()]);
        let stored = members(&keyring);
        assert!(!String::from_utf8(stored.to_vec()).unwrap().contains("hu"));
        let whole = format!(r#""s3Config":{CONFIG},"input":{{"a":1}}"#);
        assert_eq!(opened(&keyring, job(1), stored.clone()), whole);
        for (keyring, job) in [(&keyring, job(2)), (&Keyring::default(), job(1))] {
            assert_eq!(opened(keyring, job, stored.clone()), r#""input":{"a":1}"#);
        }
    }

    #[test]
    fn members_without_a_sealed_config_are_unchanged() {
        let keyring = Keyring::new(vec![MasterKey::mint().unwrap()]);
        for text in [r#""input":{}"#, r#""s3Config":{},"input":{}"#, r#""s3Config":"longshore-sealed:"#, ""] {
            let members = Bytes::from_static(text.as_bytes());
            assert_eq!(opened(&keyring, job(1), members.clone()), members);
            assert_eq!(resealed(&keyring, job(1), &members), Ok(None));
        }
        assert_eq!(sealed(&Keyring::default(), job(1), CONFIG), Ok(None));
    }

    #[test]
    fn a_config_moves_to_the_present_key() {
        let (old, new) = (MasterKey::mint().unwrap(), MasterKey::mint().unwrap());
        let stored = members(&Keyring::new(vec![old.clone()]));
        let both = Keyring::new(vec![new.clone(), old]);
        let moved = resealed(&both, job(1), &stored).unwrap().unwrap();
        assert_eq!(resealed(&both, job(1), &moved), Ok(None));
        let alone = Keyring::new(vec![new]);
        assert_eq!(opened(&alone, job(1), moved), opened(&both, job(1), stored));
    }
}
