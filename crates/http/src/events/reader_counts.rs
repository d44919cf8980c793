//! The numbers of clients that read a long response, by key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::wire::api_error::ApiError;

/// Most readers of a server.
const READERS_MAX: u32 = 1_000;
/// Most readers with one key: one key cannot take the places of all others.
const READERS_PER_KEY_MAX: u32 = 250;

/// The number of readers, by the id of their key.
#[derive(Debug, Default)]
pub(super) struct ReaderCounts(HashMap<String, u32>);

impl ReaderCounts {
    /// Counts one more reader with this key.
    ///
    /// # Errors
    ///
    /// `too_many_readers` if there is no place. Nothing is counted.
    pub(super) fn add(&mut self, key: &str) -> Result<(), ApiError> {
        let own = self.0.get(key).copied().unwrap_or_default();
        if own >= READERS_PER_KEY_MAX || self.total() >= READERS_MAX {
            let text = "as many clients read events as this server serves; close some, or try again later";
            return Err(ApiError::unavailable("too_many_readers", text).retry_after(10));
        }
        self.0.insert(key.to_owned(), own + 1);
        Ok(())
    }

    /// Counts one reader less.
    pub(super) fn remove(&mut self, key: &str) {
        if let Some(readers) = self.0.get_mut(key) {
            *readers -= 1;
            if *readers == 0 {
                self.0.remove(key);
            }
        }
    }

    /// The number of all readers.
    pub(super) fn total(&self) -> u32 {
        self.0.values().sum()
    }
}

/// The places of readers of one kind of response.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReaderPlaces(Arc<Mutex<ReaderCounts>>);

/// The place of one reader, which is given back when it is dropped.
#[derive(Debug)]
pub(crate) struct ReaderPlace {
    places: ReaderPlaces,
    key: String,
}

impl ReaderPlaces {
    /// Takes a place for a reader with this key.
    ///
    /// # Errors
    ///
    /// `too_many_readers` if there is no place.
    pub(crate) fn take(&self, key: &str) -> Result<ReaderPlace, ApiError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(key)?;
        Ok(ReaderPlace { places: self.clone(), key: key.to_owned() })
    }
}

impl Drop for ReaderPlace {
    fn drop(&mut self) {
        self.places.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_key_and_of_all_are_bounded_and_given_back() {
        let places = ReaderPlaces::default();
        let take =
            |key: &str, count: u32| (0..count).map(|_| places.take(key)).collect::<Result<Vec<_>, _>>();
        let own = take("a", READERS_PER_KEY_MAX).unwrap();
        assert!(places.take("a").is_err());
        let others: Vec<_> =
            ["b", "c", "d"].iter().map(|key| take(key, READERS_PER_KEY_MAX).unwrap()).collect();
        assert!(places.take("e").is_err());
        drop(own);
        assert!(places.take("a").is_ok() && places.take("e").is_ok());
        drop(others);
    }
}
