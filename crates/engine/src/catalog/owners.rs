//! The owners of keys in memory: names by number and numbers by name.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_model::{Owner, OwnerNo};

/// Every owner that a key ever named. The server's own has no record.
#[derive(Default)]
pub(crate) struct Owners {
    names: HashMap<OwnerNo, Arc<str>>,
    numbers: HashMap<Arc<str>, OwnerNo>,
    last: u32,
}

impl Owners {
    /// Takes in a record. Of two records with one number, as only a damaged store has them, the first names it.
    pub(crate) fn put(&mut self, owner: &Owner) {
        let name: Arc<str> = owner.name.as_str().into();
        self.reserve(owner.no);
        self.names.entry(owner.no).or_insert_with(|| Arc::clone(&name));
        self.numbers.insert(name, owner.no);
    }

    /// A number that is in use, whatever its record says: it is not given out again.
    pub(crate) fn reserve(&mut self, no: OwnerNo) {
        self.last = self.last.max(no.0);
    }

    /// The name of an owner; `None` if its record is damaged.
    pub(crate) fn name(&self, no: OwnerNo) -> Option<Arc<str>> {
        if no.is_server() { Some(Owner::SERVER.into()) } else { self.names.get(&no).cloned() }
    }

    /// The number of the owner with this name, if a key ever named it.
    pub(crate) fn number(&self, name: &str) -> Option<OwnerNo> {
        if name == Owner::SERVER { Some(OwnerNo::SERVER) } else { self.numbers.get(name).copied() }
    }

    /// A number that was never given out; `None` when there is none left.
    pub(crate) fn next(&self) -> Option<OwnerNo> {
        self.last.checked_add(1).map(OwnerNo)
    }

    /// The number of records.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}
