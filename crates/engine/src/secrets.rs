//! Seals secrets before they are stored, and opens them after they are loaded.
//!
//! Secrets are the texts of templates' environments, JSON rows of secret kinds (secrets that templates name, registry
//! credentials, webhook secrets, versions of endpoints), the key of worker tokens, and the `s3Config` of jobs. All but the
//! last are open in memory, since workers need them.

mod reseal;
mod s3_config;

use bytes::Bytes;
use longshore_model::{EnvValue, JsonRowKind, Template, TemplateId};
use longshore_store::{Catalog, JsonRow, StoreError, Write};
use longshore_vault::{Keyring, NoRandom, OpenError};

pub use reseal::{Resealed, reseal};
pub(crate) use s3_config::{opened, sealed};

/// The name under which the key of worker tokens is stored.
pub(crate) const TOKEN_KEY: &str = "worker_token_key";

/// Returns the template as it is stored: with sealed texts in its environment. The names of secrets are not sealed.
///
/// # Errors
///
/// [`StoreError::Io`] if the operating system gives no random bytes.
pub(crate) fn sealed_template(keyring: &Keyring, template: &Template) -> Result<Template, StoreError> {
    let mut sealed = template.clone();
    for (name, value) in &mut sealed.env {
        let EnvValue::Text(text) = value else { continue };
        let context = env_context(&template.id, name);
        *text = keyring.seal(&context, text).map_err(no_random)?.into_owned();
    }
    Ok(sealed)
}

/// Returns the JSON of a row as it is stored: sealed as a whole if its kind is secret.
///
/// # Errors
///
/// As [`sealed_template`].
pub(crate) fn sealed_record(
    keyring: &Keyring,
    kind: JsonRowKind,
    id: &str,
    json: &Bytes,
) -> Result<Bytes, StoreError> {
    let Some(text) = secret_text(kind, json) else { return Ok(json.clone()) };
    let sealed = keyring.seal(&row_context(kind, id), text).map_err(no_random)?;
    Ok(Bytes::from(sealed.into_owned()))
}

/// Returns the key of worker tokens as it is stored: its bytes, or their hex digits sealed.
///
/// # Errors
///
/// As [`sealed_template`].
pub(crate) fn sealed_token_key(keyring: &Keyring, key: &Bytes) -> Result<Bytes, StoreError> {
    if !keyring.is_sealing() {
        return Ok(key.clone());
    }
    let digits = const_hex::encode(key);
    let sealed = keyring.seal(TOKEN_KEY, &digits).map_err(no_random)?;
    Ok(Bytes::from(sealed.into_owned()))
}

/// Opens all secrets of a stored catalog in place. Returns the writes that seal them under the present key: one per
/// template, row or setting that is not sealed under it.
///
/// # Errors
///
/// [`StoreError::Unusable`] if a secret opens under no key, [`StoreError::Corrupt`] if the key of worker tokens is no
/// hex, [`StoreError::Io`] if the operating system gives no random bytes.
pub(crate) fn open_catalog(keyring: &Keyring, stored: &mut Catalog) -> Result<Vec<Write>, StoreError> {
    let mut writes = Vec::new();
    for template in &mut stored.templates {
        writes.extend(open_template(keyring, template)?);
    }
    for row in &mut stored.json_rows {
        writes.extend(open_json_row(keyring, row)?);
    }
    if let Some(key) = stored.settings.get_mut(TOKEN_KEY) {
        writes.extend(open_token_key(keyring, key)?);
    }
    Ok(writes)
}

/// Checks that the keyring has the keys of all stored secrets. A server with other keys would not start. The `s3Config` of jobs is
/// not checked.
///
/// # Errors
///
/// [`StoreError::Unusable`] that names the first secret that opens under no key.
pub fn check_keys(keyring: &Keyring, stored: &Catalog) -> Result<(), StoreError> {
    open_catalog(keyring, &mut stored.clone()).map(drop)
}

fn open_template(keyring: &Keyring, template: &mut Template) -> Result<Option<Write>, StoreError> {
    let is_stale =
        template.env.values().any(|value| matches!(value, EnvValue::Text(text) if keyring.is_stale(text)));
    let place = format!("the environment of template {}", template.id);
    for (name, value) in &mut template.env {
        let EnvValue::Text(text) = value else { continue };
        let context = env_context(&template.id, name);
        *text = keyring.open(&context, text).map_err(|error| closed(&place, &error))?.into_owned();
    }
    if !is_stale {
        return Ok(None);
    }
    Ok(Some(Write::PutTemplate(Box::new(sealed_template(keyring, template)?))))
}

fn open_json_row(keyring: &Keyring, row: &mut JsonRow) -> Result<Option<Write>, StoreError> {
    let Some(text) = secret_text(row.kind, &row.json) else { return Ok(None) };
    let is_stale = keyring.is_stale(text);
    let place = match row.kind {
        JsonRowKind::Secret => format!("secret {}", row.id),
        JsonRowKind::WebhookSecrets => format!("the webhook secrets of endpoint {}", row.id),
        JsonRowKind::EndpointVersion => format!("version {} of an endpoint", row.id),
        _ => format!("registry credentials {}", row.id),
    };
    let opened = keyring.open(&row_context(row.kind, &row.id), text);
    row.json = Bytes::from(opened.map_err(|error| closed(&place, &error))?.into_owned());
    if !is_stale {
        return Ok(None);
    }
    let sealed = sealed_record(keyring, row.kind, &row.id, &row.json)?;
    Ok(Some(Write::PutJsonRow(row.kind, row.id.clone(), sealed)))
}

pub(crate) fn open_token_key(keyring: &Keyring, key: &mut Bytes) -> Result<Option<Write>, StoreError> {
    let text = std::str::from_utf8(key).ok().filter(|text| longshore_vault::is_sealed(text));
    let is_stale = text.map_or(keyring.is_sealing(), |text| keyring.is_stale(text));
    if let Some(text) = text {
        let digits =
            keyring.open(TOKEN_KEY, text).map_err(|error| closed("the key of worker tokens", &error))?;
        *key = const_hex::decode(&*digits)
            .map(Bytes::from)
            .map_err(|_| StoreError::Corrupt(format!("`{TOKEN_KEY}` is no hex")))?;
    }
    if !is_stale {
        return Ok(None);
    }
    Ok(Some(Write::PutSetting(TOKEN_KEY.to_owned(), sealed_token_key(keyring, key)?)))
}

/// Returns the part of a row's JSON that is sealed: all of it for a secret kind, else `None`.
fn secret_text(kind: JsonRowKind, json: &Bytes) -> Option<&str> {
    std::str::from_utf8(json).ok().filter(|_| kind.is_secret())
}

/// Returns the context under which a template's variable is sealed.
fn env_context(template: &TemplateId, name: &str) -> String {
    format!("template/{template}/env/{name}")
}

/// Returns the context under which a row is sealed. Its text is part of every sealed row and never changes.
fn row_context(kind: JsonRowKind, id: &str) -> String {
    format!("record/{}/{id}", kind.number())
}

fn no_random(error: NoRandom) -> StoreError {
    StoreError::Io(error.to_string())
}

/// Returns the error of a secret that does not open: names the secret, the cause, and where keys are configured.
fn closed(place: &str, error: &OpenError) -> StoreError {
    StoreError::Unusable(format!(
        "{place} cannot be read: {error} (LONGSHORE_SECRETS_KEY, or the file that `secrets_key_file` names)"
    ))
}
