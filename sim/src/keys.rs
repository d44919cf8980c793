//! The API keys of a world.

use longshore_engine::Engine;
use longshore_http::admin_key;
use longshore_model::{ApiKey, KeyScope, OwnerNo};
use longshore_store::StoreError;

/// Text of the operator's key.
pub const OPERATOR_KEY: &str = "the-operator's-simulated-key";
/// Number of clients' keys.
const CLIENTS: u32 = 4;

/// Returns the clients' keys; each has its own owner.
pub fn client_keys() -> Vec<String> {
    (0..CLIENTS).map(|number| format!("the-simulated-key-of-client-{number}")).collect()
}

/// Stores all keys in the server.
///
/// # Errors
///
/// If the store fails.
pub async fn admit(engine: &Engine) -> Result<(), StoreError> {
    let now = engine.now();
    let clients = client_keys().into_iter().enumerate().map(|(number, text)| ApiKey {
        id: format!("{:016x}", number + 2),
        owner: OwnerNo(number as u32 + 1),
        scopes: vec![KeyScope::Jobs { endpoint_ids: Vec::new() }],
        ..admin_key(&text, now)
    });
    for key in std::iter::once(admin_key(OPERATOR_KEY, now)).chain(clients) {
        if engine.keys().by_hash(&key.hash).is_none() {
            engine.keys().put(key).await.map_err(|error| StoreError::Io(error.to_string()))?;
        }
    }
    Ok(())
}
