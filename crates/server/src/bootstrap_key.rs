//! The first key with all permissions: the operator's, or one created at the first start.

use longshore_engine::Engine;
use longshore_model::Millis;

use crate::confidential;
use crate::startup_error::StartupError;

/// Environment variable with the operator's key.
const VARIABLE: &str = "LONGSHORE_ADMIN_KEY";
const CHARS_MIN: usize = 16;

/// Makes sure that there is a key with all permissions. Returns the text of a newly created key; only its hash is
/// stored.
pub(crate) async fn ensure(engine: &Engine) -> Result<Option<String>, StartupError> {
    if let Some(text) = confidential::variable(VARIABLE) {
        let text = text.trim();
        if text.chars().count() < CHARS_MIN {
            return Err(StartupError::WeakKey);
        }
        put(engine, text).await?;
        return Ok(None);
    }
    if !engine.keys().list().is_empty() {
        return Ok(None);
    }
    let text = make()?;
    put(engine, &text).await?;
    Ok(Some(text))
}

/// Makes `text` the operator's key. Only the hash is stored.
pub(crate) async fn put(engine: &Engine, text: &str) -> Result<(), StartupError> {
    let key = longshore_http::admin_key(text, engine.now());
    if engine.keys().by_hash(&key.hash).is_some() {
        return Ok(());
    }
    engine.keys().put(key).await.map(drop).map_err(|error| StartupError::Key(error.to_string()))
}

/// Returns the text of a new random key.
pub(crate) fn make() -> Result<String, StartupError> {
    let key = longshore_http::mint_key("admin", Vec::new(), Millis(0)).ok_or(StartupError::NoRandom)?;
    Ok(key.text)
}
