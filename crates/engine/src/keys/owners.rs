//! Owners of keys: a name that no key named before gets a number and a row.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_model::{JsonRowKind, Millis, Owner, OwnerNo};
use longshore_store::Write;

use crate::CatalogError;

/// The limit of the number of owners. Their rows are never removed, so that the owners of old jobs keep their names.
const OWNERS_MAX: usize = 100_000;

/// The number of an owner, and its record if the owner is new.
pub(super) struct NamedOwner {
    pub(super) no: OwnerNo,
    new: Option<Owner>,
}

impl NamedOwner {
    /// The write that creates a new owner, to be committed with the key that names it. `None` for a known owner.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Unavailable`] if the row cannot be serialized.
    pub(super) fn write(&self) -> Result<Option<Write>, CatalogError> {
        let Some(owner) = &self.new else { return Ok(None) };
        let json = serde_json::to_vec(owner).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        Ok(Some(Write::PutJsonRow(JsonRowKind::Owner, owner.name.clone(), json.into())))
    }
}

/// Every owner that a key ever named, by number and by name. The server's own number has no row.
#[derive(Default)]
pub(super) struct Owners {
    names: HashMap<OwnerNo, Arc<str>>,
    numbers: HashMap<Arc<str>, OwnerNo>,
    /// The largest number in use.
    last: u32,
}

impl Owners {
    /// Adds a stored owner. If two rows have one number, as only a damaged store has them, the first row names it.
    pub(super) fn put(&mut self, owner: &Owner) {
        let name: Arc<str> = owner.name.as_str().into();
        self.reserve(owner.no);
        self.names.entry(owner.no).or_insert_with(|| Arc::clone(&name));
        self.numbers.insert(name, owner.no);
    }

    /// Adds an owner whose write is durable. A known owner is left as it is.
    pub(super) fn add(&mut self, named: NamedOwner) {
        if let Some(owner) = named.new {
            self.put(&owner);
        }
    }

    /// Marks a number as used even if its row is corrupt, so that no other owner gets it.
    pub(super) fn reserve(&mut self, no: OwnerNo) {
        self.last = self.last.max(no.0);
    }

    /// The name of an owner; `None` if its row is missing or corrupt.
    pub(super) fn name(&self, no: OwnerNo) -> Option<Arc<str>> {
        if no.is_server() { Some(Owner::SERVER.into()) } else { self.names.get(&no).cloned() }
    }

    /// The owner with this name. A new owner gets the next number and is not added here yet.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Conflict`] if the owner is new and there are [`OWNERS_MAX`] owners.
    pub(super) fn named(&self, name: &str, now: Millis) -> Result<NamedOwner, CatalogError> {
        if let Some(no) = self.number(name) {
            return Ok(NamedOwner { no, new: None });
        }
        let next = self.last.checked_add(1).filter(|_| self.numbers.len() < OWNERS_MAX);
        let no = next.map(OwnerNo).ok_or_else(|| {
            let text =
                format!("there are {OWNERS_MAX} owners, and no more are kept: use the name of one of them");
            CatalogError::Conflict(text)
        })?;
        Ok(NamedOwner { no, new: Some(Owner { no, name: name.to_owned(), created_at: now }) })
    }

    /// The number of the owner with this name, if a key ever named it.
    fn number(&self, name: &str) -> Option<OwnerNo> {
        if name == Owner::SERVER { Some(OwnerNo::SERVER) } else { self.numbers.get(name).copied() }
    }
}
