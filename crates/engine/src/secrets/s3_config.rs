//! A job's `s3Config`: sealed when the job comes in, opened when a worker takes it.
//!
//! The sealed one is the first of the job's members, and a text where clients may only send an object: so it is found
//! at a glance, and nothing else is ever taken for it.

use bytes::{BufMut as _, Bytes, BytesMut};
use longshore_model::JobId;
use longshore_vault::{Keyring, NoRandom};

/// How the members begin where `s3Config` is sealed.
const BEGIN: &[u8] = b"\"s3Config\":\"longshore-sealed:";
/// What is before the sealed text.
const NAME: &str = "\"s3Config\":\"";

/// The member that stands for the `s3Config` of a job, sealed. None if nothing seals.
pub(crate) fn sealed(vault: &Keyring, job: JobId, config: &str) -> Result<Option<String>, NoRandom> {
    if !vault.is_sealing() {
        return Ok(None);
    }
    Ok(Some(format!("{NAME}{}\"", vault.seal(&context(job), config)?)))
}

/// A job's members as its worker sees them. A config that does not open is left out: the log says why, and a worker
/// without it can at least say what it misses.
pub(crate) fn opened(vault: &Keyring, job: JobId, members: Bytes) -> Bytes {
    let Some((kept, rest)) = split(&members) else { return members };
    let opened = match vault.open(&context(job), kept) {
        Ok(config) => config,
        Err(error) => {
            tracing::error!(%job, %error, "a job's `s3Config` cannot be read, its worker gets none");
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

/// The members sealed under the present key, if they are sealed under another one. Those that do not open stay.
pub(super) fn resealed(vault: &Keyring, job: JobId, members: &Bytes) -> Result<Option<Bytes>, NoRandom> {
    let Some((kept, rest)) = split(members).filter(|(kept, _)| vault.is_stale(kept)) else { return Ok(None) };
    let Ok(config) = vault.open(&context(job), kept) else { return Ok(None) };
    let Some(member) = sealed(vault, job, &config)? else { return Ok(None) };
    Ok(Some(Bytes::from([member.as_bytes(), rest].concat())))
}

/// Whether a job's `s3Config` is sealed under another key than the present one.
pub(super) fn is_stale(vault: &Keyring, members: &Bytes) -> bool {
    split(members).is_some_and(|(kept, _)| vault.is_stale(kept))
}

/// The sealed text, and what follows the member.
fn split(members: &Bytes) -> Option<(&str, &[u8])> {
    if !members.starts_with(BEGIN) {
        return None;
    }
    let text = &members[NAME.len()..];
    let end = text.iter().position(|byte| *byte == b'"')?;
    Some((std::str::from_utf8(&text[..end]).ok()?, &text[end + 1..]))
}

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

    fn members(vault: &Keyring) -> Bytes {
        let member = sealed(vault, job(1), CONFIG).unwrap().unwrap();
        Bytes::from(format!(r#"{member},"input":{{"a":1}}"#))
    }

    #[test]
    fn a_sealed_config_is_opened_for_its_job_alone() {
        let vault = Keyring::new(vec![MasterKey::mint().unwrap()]);
        let kept = members(&vault);
        assert!(!String::from_utf8(kept.to_vec()).unwrap().contains("hu"));
        let whole = format!(r#""s3Config":{CONFIG},"input":{{"a":1}}"#);
        assert_eq!(opened(&vault, job(1), kept.clone()), whole);
        for (vault, job) in [(&vault, job(2)), (&Keyring::default(), job(1))] {
            assert_eq!(opened(vault, job, kept.clone()), r#""input":{"a":1}"#);
        }
    }

    #[test]
    fn other_members_are_left_alone() {
        let vault = Keyring::new(vec![MasterKey::mint().unwrap()]);
        for text in [r#""input":{}"#, r#""s3Config":{},"input":{}"#, r#""s3Config":"longshore-sealed:"#, ""] {
            let members = Bytes::from_static(text.as_bytes());
            assert_eq!(opened(&vault, job(1), members.clone()), members);
            assert_eq!(resealed(&vault, job(1), &members), Ok(None));
        }
        assert_eq!(sealed(&Keyring::default(), job(1), CONFIG), Ok(None));
    }

    #[test]
    fn a_config_moves_to_the_present_key() {
        let (old, new) = (MasterKey::mint().unwrap(), MasterKey::mint().unwrap());
        let kept = members(&Keyring::new(vec![old.clone()]));
        let both = Keyring::new(vec![new.clone(), old]);
        let moved = resealed(&both, job(1), &kept).unwrap().unwrap();
        assert_eq!(resealed(&both, job(1), &moved), Ok(None));
        let alone = Keyring::new(vec![new]);
        assert_eq!(opened(&alone, job(1), moved), opened(&both, job(1), kept));
    }
}
