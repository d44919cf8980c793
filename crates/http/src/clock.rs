//! The time of day, for what the engine's clock does not reach: the end of a key's life.

use std::time::{SystemTime, UNIX_EPOCH};

use longshore_model::Millis;

pub(crate) fn now() -> Millis {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
