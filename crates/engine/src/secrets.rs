//! What is secret, sealed on its way to the store and opened on its way back.
//!
//! Secret are the values of templates' environments, records of secret kinds (credentials of registries), the key of
//! worker tokens, and the `s3Config` of jobs. In memory they are open: workers need them.

mod reseal;
mod s3_config;

use bytes::Bytes;
use longshore_model::{JsonRowKind, Template};
use longshore_store::{Catalog, StoreError, Write};
use longshore_vault::{Keyring, NoRandom, OpenError};

pub use reseal::{Resealed, reseal};
pub(crate) use s3_config::{opened, sealed};

/// The name under which the key of worker tokens is stored.
pub(crate) const TOKEN_KEY: &str = "worker_token_key";

/// A template as it is stored.
pub(crate) fn sealed_template(vault: &Keyring, template: &Template) -> Result<Template, StoreError> {
    let mut sealed = template.clone();
    for (name, value) in &mut sealed.env {
        let context = env_context(template, name);
        *value = vault.seal(&context, value).map_err(no_random)?.into_owned();
    }
    Ok(sealed)
}

/// The JSON of a small record as it is stored.
pub(crate) fn sealed_record(
    vault: &Keyring,
    kind: JsonRowKind,
    id: &str,
    json: &Bytes,
) -> Result<Bytes, StoreError> {
    let Some(text) = secret_text(kind, json) else { return Ok(json.clone()) };
    let sealed = vault.seal(&record_context(kind, id), text).map_err(no_random)?;
    Ok(Bytes::from(sealed.into_owned()))
}

/// The key of worker tokens as it is stored.
pub(crate) fn sealed_token_key(vault: &Keyring, key: &Bytes) -> Result<Bytes, StoreError> {
    if !vault.is_sealing() {
        return Ok(key.clone());
    }
    let digits = const_hex::encode(key);
    let sealed = vault.seal(TOKEN_KEY, &digits).map_err(no_random)?;
    Ok(Bytes::from(sealed.into_owned()))
}

/// Opens everything secret of a catalog as it was stored, and answers what should be written anew: secrets that are
/// not under the present key.
pub(crate) fn open_catalog(vault: &Keyring, stored: &mut Catalog) -> Result<Vec<Write>, StoreError> {
    let mut writes = Vec::new();
    for template in &mut stored.templates {
        let stale = template.env.values().any(|value| vault.is_stale(value));
        let place = format!("the environment of template {}", template.id);
        for (name, value) in &mut template.env {
            let context = format!("template/{}/env/{name}", template.id);
            *value = vault.open(&context, value).map_err(|error| closed(&place, &error))?.into_owned();
        }
        if stale {
            writes.push(Write::PutTemplate(Box::new(sealed_template(vault, template)?)));
        }
    }
    for row in &mut stored.json_rows {
        let Some(text) = secret_text(row.kind, &row.json) else { continue };
        let stale = vault.is_stale(text);
        let place = format!("record {} of the credentials for registries", row.id);
        let opened = vault.open(&record_context(row.kind, &row.id), text);
        row.json = Bytes::from(opened.map_err(|error| closed(&place, &error))?.into_owned());
        if stale {
            let sealed = sealed_record(vault, row.kind, &row.id, &row.json)?;
            writes.push(Write::PutJsonRow(row.kind, row.id.clone(), sealed));
        }
    }
    if let Some(key) = stored.settings.get_mut(TOKEN_KEY) {
        let text = std::str::from_utf8(key).ok().filter(|text| longshore_vault::is_sealed(text));
        let stale = text.map_or(vault.is_sealing(), |text| vault.is_stale(text));
        if let Some(text) = text {
            let digits =
                vault.open(TOKEN_KEY, text).map_err(|error| closed("the key of worker tokens", &error))?;
            *key = const_hex::decode(&*digits)
                .map(Bytes::from)
                .map_err(|_| StoreError::Corrupt(format!("`{TOKEN_KEY}` is no hex")))?;
        }
        if stale {
            writes.push(Write::PutSetting(TOKEN_KEY.to_owned(), sealed_token_key(vault, key)?));
        }
    }
    Ok(writes)
}

/// What of a record is sealed: all of it, if its kind is a secret one.
fn secret_text(kind: JsonRowKind, json: &Bytes) -> Option<&str> {
    std::str::from_utf8(json).ok().filter(|_| kind.is_secret())
}

fn env_context(template: &Template, name: &str) -> String {
    format!("template/{}/env/{name}", template.id)
}

fn record_context(kind: JsonRowKind, id: &str) -> String {
    format!("record/{}/{id}", kind.number())
}

fn no_random(error: NoRandom) -> StoreError {
    StoreError::Io(error.to_string())
}

fn closed(place: &str, error: &OpenError) -> StoreError {
    StoreError::Unusable(format!(
        "{place} cannot be read: {error} (LONGSHORE_SECRETS_KEY, or the file that `secrets_key_file` names)"
    ))
}
