//! The groups of one endpoint's failures, and their form in files.
//!
//! A file is one JSON object with the member `groups`: a list of objects with the members of [`Group`]. `hours` are pairs of
//! an hour since 1970 and a number of jobs. Unknown members are left out.

use std::cmp::Reverse;
use std::io;

use longshore_model::{JobId, Millis};
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::cut::without_ids;
use super::error_text::parts;
use super::{Failure, FailureGroup, FailureKind};
use crate::{DAY_MS, HOUR_MS};

/// The largest number of groups of one endpoint. Above it, the one that failed longest ago is dropped.
const GROUPS_MAX: usize = 100;
/// How long failures are counted, in ms: 30 days.
const KEPT_MS: u64 = 30 * DAY_MS;
/// The longest message of a group, in characters. Types and places are no longer than this either.
const CHARS_MAX: usize = 300;
/// What a group takes in memory beside its texts and hours, in bytes.
const GROUP_BYTES: usize = 200;

/// What the failures of one group have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Identity {
    kind: FailureKind,
    #[serde(rename = "type")]
    error_type: Option<String>,
    message: Option<String>,
    place: Option<String>,
}

/// The groups of one endpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Groups {
    groups: Vec<Group>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(flatten)]
    identity: Identity,
    first_at: u64,
    last_at: u64,
    since_version: u32,
    /// The id of the last job.
    job: String,
    /// Hours since 1970 with the number of jobs that failed in them, ascending.
    hours: Vec<(u32, u32)>,
}

impl Identity {
    /// What the failure has in common with others of its group.
    pub(super) fn of(failure: &Failure) -> Self {
        let Some(error) = &failure.error else {
            return Self { kind: failure.kind, error_type: None, message: None, place: None };
        };
        let parts = parts(error);
        let worker = failure.worker.as_ref().map(longshore_model::WorkerId::as_str);
        let message = failure.keeps_text.then(|| shortened(&without_ids(&shortened(&parts.message), worker)));
        Self {
            kind: failure.kind,
            error_type: parts.error_type.as_deref().map(shortened),
            message,
            place: parts.place.as_deref().map(shortened),
        }
    }

    /// The same for equal identities, in every version of the server.
    fn number(&self) -> u64 {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let parts = [text(&self.error_type), text(&self.message), text(&self.place)];
        XxHash3_64::oneshot(format!("{}\n{}", self.kind.as_str(), parts.join("\n")).as_bytes())
    }
}

impl Groups {
    /// Reads the groups of a file.
    ///
    /// # Errors
    ///
    /// `InvalidData` for bytes that are no groups.
    pub(super) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut groups: Self = serde_json::from_slice(bytes)?;
        groups.groups.retain(|group| group.job.parse::<JobId>().is_ok());
        groups.groups.truncate(GROUPS_MAX);
        for group in &mut groups.groups {
            group.hours.sort_unstable();
            group.hours.dedup_by_key(|(hour, _)| *hour);
        }
        Ok(groups)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// None in practice: every group is JSON.
    pub(super) fn encode(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Adds failures with this identity. Hours that are too old are dropped, and so are groups without hours.
    pub(super) fn add(&mut self, identity: Identity, failure: &Failure) {
        let at = failure.at.0;
        let oldest = hour_of(at.saturating_sub(KEPT_MS));
        for group in &mut self.groups {
            group.hours.retain(|(hour, _)| *hour >= oldest);
        }
        self.groups.retain(|group| !group.hours.is_empty());
        if let Some(group) = self.groups.iter_mut().find(|group| group.identity == identity) {
            group.add(failure);
            return;
        }
        if self.groups.len() >= GROUPS_MAX {
            self.drop_oldest();
        }
        let mut group = Group {
            identity,
            first_at: at,
            last_at: at,
            since_version: failure.version,
            job: failure.job.to_string(),
            hours: Vec::new(),
        };
        group.add(failure);
        self.groups.push(group);
    }

    /// Forgets the messages of all groups, and joins groups that differ in them alone. Returns whether there was one.
    pub(super) fn forget_messages(&mut self) -> bool {
        if self.groups.iter().all(|group| group.identity.message.is_none()) {
            return false;
        }
        for mut group in std::mem::take(&mut self.groups) {
            group.identity.message = None;
            match self.groups.iter_mut().find(|other| other.identity == group.identity) {
                Some(other) => other.join(group),
                None => self.groups.push(group),
            }
        }
        true
    }

    /// The groups with a failure from `since` to `now`, the largest first.
    pub(super) fn read(&self, since: Millis, now: Millis) -> Vec<FailureGroup> {
        let since = since.0.max(now.0.saturating_sub(KEPT_MS));
        let (first, last) = (hour_of(since), hour_of(now.0));
        let mut views: Vec<_> = self.groups.iter().filter_map(|group| group.view(first, last)).collect();
        views.sort_by_key(|view| Reverse((view.count, view.last_at)));
        views
    }

    /// When the last job of the group failed that failed longest ago, in ms.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.groups.iter().map(|group| group.last_at).min()
    }

    /// Drops the group that failed longest ago.
    pub(super) fn drop_oldest(&mut self) {
        let oldest = self.groups.iter().enumerate().min_by_key(|(_, group)| group.last_at);
        if let Some((at, _)) = oldest {
            self.groups.swap_remove(at);
        }
    }

    /// The memory of the groups, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.groups.iter().map(Group::bytes).sum()
    }
}

impl Group {
    fn add(&mut self, failure: &Failure) {
        let hour = hour_of(failure.at.0);
        if failure.at.0 >= self.last_at {
            self.last_at = failure.at.0;
            self.job = failure.job.to_string();
        }
        self.count(hour, failure.count);
    }

    fn count(&mut self, hour: u32, count: u32) {
        match self.hours.binary_search_by_key(&hour, |(hour, _)| *hour) {
            Ok(at) => self.hours[at].1 = self.hours[at].1.saturating_add(count),
            Err(at) => self.hours.insert(at, (hour, count)),
        }
    }

    /// Adds another group's failures.
    fn join(&mut self, other: Self) {
        if other.first_at < self.first_at {
            (self.first_at, self.since_version) = (other.first_at, other.since_version);
        }
        if other.last_at > self.last_at {
            (self.last_at, self.job) = (other.last_at, other.job);
        }
        other.hours.into_iter().for_each(|(hour, count)| self.count(hour, count));
    }

    /// The group in these hours; `None` if nothing failed in them.
    fn view(&self, first: u32, last: u32) -> Option<FailureGroup> {
        let mut per_hour = vec![0; last.checked_sub(first)? as usize + 1];
        for (hour, count) in &self.hours {
            if let Some(place) = hour.checked_sub(first).and_then(|at| per_hour.get_mut(at as usize)) {
                *place = u64::from(*count);
            }
        }
        let count = per_hour.iter().sum();
        (count > 0).then_some(())?;
        Some(FailureGroup {
            group: format!("{:016x}", self.identity.number()),
            kind: self.identity.kind,
            error_type: self.identity.error_type.clone(),
            message: self.identity.message.clone(),
            place: self.identity.place.clone(),
            count,
            first_at: self.first_at,
            last_at: self.last_at,
            since_version: self.since_version,
            job: self.job.parse().ok()?,
            per_hour,
        })
    }

    fn bytes(&self) -> usize {
        let Identity { error_type, message, place, .. } = &self.identity;
        let texts = [error_type, message, place].into_iter().flatten().map(String::len).sum::<usize>();
        GROUP_BYTES + texts + self.hours.capacity() * size_of::<(u32, u32)>()
    }
}

/// The hour since 1970 that a time in ms is in.
fn hour_of(ms: u64) -> u32 {
    u32::try_from(ms / HOUR_MS).unwrap_or(u32::MAX)
}

/// The first [`CHARS_MAX`] characters of a text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
