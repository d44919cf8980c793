//! The groups of one endpoint's failures, and their form in files.
//!
//! A file is one JSON object with the member `groups`: a list of objects with the members of [`Group`]. `hours` are pairs of
//! an hour since 1970 and a number of jobs. Unknown members are left out. Files of earlier versions of the server have no
//! `newestVersion` and `newestHours`: how many of their jobs failed in the newest version is not known until the next one.

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
    hours: Hours,
    /// The newest version of the endpoint in which a job failed; 0 if it is not known.
    #[serde(default)]
    newest_version: u32,
    /// The jobs that failed in the newest version; `None` if others of them may have been counted in `hours` alone.
    #[serde(default)]
    newest_hours: Option<Hours>,
}

/// Hours since 1970 with the number of jobs that failed in them, ascending.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Hours(Vec<(u32, u32)>);

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
            group.hours.order();
            group.newest_hours.iter_mut().for_each(Hours::order);
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
            group.hours.drop_before(oldest);
            group.newest_hours.iter_mut().for_each(|hours| hours.drop_before(oldest));
        }
        self.groups.retain(|group| !group.hours.0.is_empty());
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
            hours: Hours::default(),
            newest_version: failure.version,
            newest_hours: Some(Hours::default()),
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

    /// The groups with a failure from `since` to `now`, the largest first. `version` is the present one of the endpoint.
    pub(super) fn read(&self, since: Millis, now: Millis, version: u32) -> Vec<FailureGroup> {
        let since = since.0.max(now.0.saturating_sub(KEPT_MS));
        let (first, last) = (hour_of(since), hour_of(now.0));
        let views = self.groups.iter().filter_map(|group| group.view(first, last, version));
        let mut views: Vec<_> = views.collect();
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
        self.hours.count(hour, failure.count);
        if failure.version > self.newest_version {
            // Of failures whose version is not known, some can be of this one.
            self.newest_hours = (self.newest_version > 0).then(Hours::default);
            self.newest_version = failure.version;
        }
        if let Some(hours) = self.newest_hours.as_mut().filter(|_| failure.version == self.newest_version) {
            hours.count(hour, failure.count);
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
        self.hours.join(other.hours);
        let is_known = self.newest_version > 0 && other.newest_version > 0;
        if other.newest_version > self.newest_version {
            (self.newest_version, self.newest_hours) = (other.newest_version, other.newest_hours);
        } else if other.newest_version == self.newest_version {
            let both = self.newest_hours.take().zip(other.newest_hours);
            self.newest_hours = both.map(|(mut hours, others)| {
                hours.join(others);
                hours
            });
        }
        self.newest_hours = self.newest_hours.take().filter(|_| is_known);
    }

    /// The group in these hours; `None` if nothing failed in them. `version` is the present one of the endpoint.
    fn view(&self, first: u32, last: u32, version: u32) -> Option<FailureGroup> {
        let per_hour = self.hours.between(first, last)?;
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
            present_version: version,
            present_version_count: self.count_in(version, first, last, count),
            job: self.job.parse().ok()?,
            per_hour,
        })
    }

    /// How many of the `all` failures in these hours are of the present version; `None` if that is not known.
    fn count_in(&self, version: u32, first: u32, last: u32, all: u64) -> Option<u64> {
        if self.since_version >= version {
            return Some(all);
        }
        match self.newest_version {
            0 => None,
            newest if newest < version => Some(0),
            newest if newest == version => {
                Some(self.newest_hours.as_ref()?.between(first, last)?.iter().sum())
            }
            // The endpoint has had another change since `version` was read.
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        let Identity { error_type, message, place, .. } = &self.identity;
        let texts = [error_type, message, place].into_iter().flatten().map(String::len).sum::<usize>();
        let hours =
            self.hours.0.capacity() + self.newest_hours.as_ref().map_or(0, |hours| hours.0.capacity());
        GROUP_BYTES + texts + hours * size_of::<(u32, u32)>()
    }
}

impl Hours {
    /// Orders the hours of a file.
    fn order(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by_key(|(hour, _)| *hour);
    }

    fn drop_before(&mut self, oldest: u32) {
        self.0.retain(|(hour, _)| *hour >= oldest);
    }

    fn count(&mut self, hour: u32, count: u32) {
        match self.0.binary_search_by_key(&hour, |(hour, _)| *hour) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => self.0.insert(at, (hour, count)),
        }
    }

    fn join(&mut self, other: Self) {
        other.0.into_iter().for_each(|(hour, count)| self.count(hour, count));
    }

    /// The number of each hour from the first to the last; `None` if there is no such hour.
    fn between(&self, first: u32, last: u32) -> Option<Vec<u64>> {
        let mut per_hour = vec![0; last.checked_sub(first)? as usize + 1];
        for (hour, count) in &self.0 {
            if let Some(place) = hour.checked_sub(first).and_then(|at| per_hour.get_mut(at as usize)) {
                *place = u64::from(*count);
            }
        }
        Some(per_hour)
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
