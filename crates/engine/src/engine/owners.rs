//! Owners of keys: a name that no key named before gets a number and a record.

use std::sync::Arc;

use longshore_model::{JsonRowKind, Owner, OwnerNo};
use longshore_store::Write;

use super::Engine;
use crate::CatalogError;
use crate::owner_use::Use;

/// The most owners. Their records are never removed, so that the names of old jobs' owners stay known.
const OWNERS_MAX: usize = 100_000;

/// The number of an owner, and its record if there was none yet.
pub(super) struct NamedOwner {
    pub(super) no: OwnerNo,
    new: Option<Owner>,
}

impl Engine {
    /// The name of an owner. One whose record is damaged is named by its number.
    pub fn owner_name(&self, no: OwnerNo) -> Arc<str> {
        let name = self.catalog().owners.name(no);
        name.unwrap_or_else(|| format!("owner-{}", no.0).into())
    }

    /// The number of the owner with this name, if a key ever named it.
    pub fn owner_no(&self, name: &str) -> Option<OwnerNo> {
        self.catalog().owners.number(name)
    }

    /// What the keys of owners used since the server started: the [`crate::BUSIEST_OWNERS`] by number, then all others
    /// together (`None`).
    pub fn owner_use(&self) -> Vec<(Option<OwnerNo>, Use)> {
        self.inner.services.owner_use.snapshot()
    }

    /// The owner with this name, for a change of a key while the caller holds the door.
    pub(super) fn owner_named(&self, name: &str) -> Result<NamedOwner, CatalogError> {
        let catalog = self.catalog();
        if let Some(no) = catalog.owners.number(name) {
            return Ok(NamedOwner { no, new: None });
        }
        let next = catalog.owners.next().filter(|_| catalog.owners.len() < OWNERS_MAX);
        let no = next.ok_or_else(|| {
            let text =
                format!("there are {OWNERS_MAX} owners, and no more are kept: use the name of one of them");
            CatalogError::Conflict(text)
        })?;
        let new = Owner { no, name: name.to_owned(), created_at: self.now() };
        Ok(NamedOwner { no, new: Some(new) })
    }

    /// The write that makes a new owner, to be committed with the key that names it.
    pub(super) fn owner_write(named: &NamedOwner) -> Result<Option<Write>, CatalogError> {
        let Some(owner) = &named.new else { return Ok(None) };
        let json = serde_json::to_vec(owner).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        Ok(Some(Write::PutJsonRow(JsonRowKind::Owner, owner.name.clone(), json.into())))
    }

    /// The write is durable: the owner is known from now on.
    pub(super) fn know_owner(&self, named: &NamedOwner) {
        if let Some(owner) = &named.new {
            self.catalog_mut().owners.put(owner);
        }
    }

    /// Takes in what the store has of owners, after the keys.
    pub(super) fn open_owners(&self) {
        let owners: Vec<Owner> = self.typed_records(JsonRowKind::Owner);
        let mut catalog = self.catalog_mut();
        let of_keys: Vec<OwnerNo> = catalog.keys().iter().map(|key| key.owner).collect();
        for no in of_keys {
            catalog.owners.reserve(no);
        }
        for owner in &owners {
            catalog.owners.put(owner);
        }
    }
}
