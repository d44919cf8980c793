//! Searching jobs by a text in their ids, inputs, outputs and errors, by members of their inputs, and by their webhook calls.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobRow};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Jobs;
use super::snapshot::LISTED_BYTES_MAX;
use crate::actor::query::View;
use crate::{DeliveryFilter, DeliveryState, EndpointError, JobFilter, JobPage};

/// Bytes of payloads that one call of [`Jobs::search`] reads, approximately at most.
const SEARCH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long one call of [`Jobs::search`] reads.
const SEARCH_FOR: Duration = Duration::from_secs(1);
/// Rows that are asked of the queue in one query.
const ROWS: usize = 200;

/// What jobs are searched for, beside what their rows have. A job has to have all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSearch {
    /// A text in the id, input, output or error, in any case of ASCII letters.
    pub text: Option<String>,
    /// A text in the error, in any case of ASCII letters.
    pub error: Option<String>,
    /// The state of a webhook call of the job, as far as the log of calls reaches back.
    pub webhook: Option<DeliveryState>,
    /// Members of the input: a path such as `customer.id`, and the value as text. Numbers are compared as they are written.
    pub members: Vec<(String, String)>,
}

/// The part of a job's members that is searched. The others can be secrets.
#[derive(Deserialize)]
struct Searched<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// Whether a job has what is searched for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    /// It could not be read.
    Unread,
}

impl Jobs {
    /// Returns one page of the jobs that match the filter and have what is searched for. Reads payloads, in the order of the
    /// list, until the page is full, 64 MiB were read or 1 s has passed.
    /// The page's cursor then says where to go on. Jobs whose payloads cannot be read are left out and counted.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn search(&self, filter: JobFilter, wanted: &JobSearch) -> Result<JobPage, EndpointError> {
        let (began, mut bytes) = (Instant::now(), 0);
        let mut page = JobPage { jobs: Vec::new(), cursor: filter.before, searched: 0, unread: 0, of: 0 };
        let called = self.called(wanted.webhook).await?;
        loop {
            let rows = self.rows(JobFilter { limit: ROWS, before: page.cursor, ..filter.clone() }).await?;
            page.of = rows.of;
            let (count, next) = (rows.jobs.len(), rows.cursor);
            for (at, row) in rows.jobs.into_iter().enumerate() {
                let is_last = at + 1 == count;
                page.cursor = if is_last { next } else { Some(row.id) };
                let is_called = called.as_ref().is_none_or(|jobs| jobs.contains(&row.id));
                let (found, read) = if is_called { self.look(&row, wanted).await } else { (Found::No, 0) };
                bytes += read;
                page.searched += u64::from(found != Found::Unread);
                page.unread += u64::from(found == Found::Unread);
                if found == Found::Yes {
                    page.jobs.push(self.small_snapshot(row, LISTED_BYTES_MAX).await?);
                }
                let is_over = bytes >= SEARCH_BYTES_MAX || began.elapsed() >= SEARCH_FOR;
                if page.jobs.len() == filter.limit || is_over {
                    return Ok(page);
                }
            }
            // The rows that do not meet the conditions.
            page.searched += rows.examined - count as u64;
            page.cursor = next;
            if next.is_none() || began.elapsed() >= SEARCH_FOR {
                return Ok(page);
            }
        }
    }

    /// The jobs with a webhook call in the state; `None` if any job will do.
    async fn called(&self, state: Option<DeliveryState>) -> Result<Option<HashSet<JobId>>, EndpointError> {
        let Some(state) = state else { return Ok(None) };
        let calls =
            self.deliveries(DeliveryFilter { state: Some(state), ..DeliveryFilter::default() }).await?;
        Ok(Some(calls.into_iter().map(|call| call.job).collect()))
    }

    /// Whether the job has what is searched for, and how many bytes were read to find out.
    async fn look(&self, row: &JobRow, wanted: &JobSearch) -> (Found, usize) {
        let mut bytes = 0;
        let found = self.found(row, wanted, &mut bytes).await;
        let is_found = match found {
            Ok(true) => Found::Yes,
            // A job that was deleted meanwhile is none.
            Ok(false) | Err(EndpointError::Refused(_)) => Found::No,
            Err(_) => Found::Unread,
        };
        (is_found, bytes)
    }

    /// Whether the job has what is searched for. Adds what was read to `bytes`.
    async fn found(
        &self,
        row: &JobRow,
        wanted: &JobSearch,
        bytes: &mut usize,
    ) -> Result<bool, EndpointError> {
        if !wanted.members.is_empty() {
            let input = self.input(row.id).await?;
            *bytes += input.len();
            if !has_members(&input, &wanted.members) {
                return Ok(false);
            }
        }
        if let Some(text) = &wanted.error {
            let error = self.error_of(row).await?;
            *bytes += error.len();
            if !contains(error.as_bytes(), text) {
                return Ok(false);
            }
        }
        match &wanted.text {
            Some(text) => self.has_text(row, text, bytes).await,
            None => Ok(true),
        }
    }

    /// Whether the job has the text. Adds what was read to `bytes`.
    async fn has_text(&self, row: &JobRow, text: &str, bytes: &mut usize) -> Result<bool, EndpointError> {
        if contains(row.id.to_string().as_bytes(), text) {
            return Ok(true);
        }
        // An outcome that cannot be read does not hide what the input has.
        let job = self.snapshot(row.clone()).await;
        if let Ok(job) = &job {
            let output = job.output.as_deref().unwrap_or_default();
            let error = job.error.as_deref().unwrap_or_default();
            *bytes += output.len() + error.len();
            if contains(output, text) || contains(error.as_bytes(), text) {
                return Ok(true);
            }
        }
        let input = self.input(row.id).await?;
        *bytes += input.len();
        if contains(&input, text) { Ok(true) } else { job.map(|_| false) }
    }

    /// Returns the job's input, as JSON text as the client sent it. It covers its memory in this process.
    ///
    /// # Errors
    ///
    /// Those of [`Jobs::members`], also for an expired job.
    pub async fn input(&self, job: JobId) -> Result<Bytes, EndpointError> {
        self.row(job, View::Visible).await?;
        let members = self.members(job).await?;
        let object = [b"{", &members[..], b"}"].concat();
        let damaged = || EndpointError::Damaged("the stored input is no JSON".to_owned());
        let searched: Searched<'_> = serde_json::from_slice(&object).map_err(|_| damaged())?;
        let input = searched.input.ok_or_else(damaged)?.get();
        // The members begin behind the brace.
        let start = input.as_ptr() as usize - object.as_ptr() as usize - 1;
        Ok(members.slice(start..start + input.len()))
    }
}

/// Whether the JSON has all these members. A step of a path is the name of a member, or the place of an item from 0 on.
fn has_members(json: &[u8], members: &[(String, String)]) -> bool {
    let Ok(root) = serde_json::from_slice::<&RawValue>(json) else { return false };
    members.iter().all(|(path, wanted)| {
        let found = path.split('.').try_fold(root.get(), |value, step| member_of(value, step));
        found.is_some_and(|value| is_value(value, wanted))
    })
}

/// The member or the item of a JSON text.
fn member_of<'a>(json: &'a str, step: &str) -> Option<&'a str> {
    if json.starts_with('{') {
        let members: BTreeMap<Cow<'a, str>, &'a RawValue> = serde_json::from_str(json).ok()?;
        return members.get(step).map(|value| value.get());
    }
    let items: Vec<&'a RawValue> = serde_json::from_str(json).ok()?;
    items.get(step.parse::<usize>().ok()?).map(|value| value.get())
}

/// Whether a JSON text is this value: a text without its quotes, or anything else as it is written.
fn is_value(json: &str, wanted: &str) -> bool {
    json == wanted || serde_json::from_str::<Cow<'_, str>>(json).is_ok_and(|text| text == wanted)
}

/// Whether the bytes have this text, in any case of ASCII letters.
fn contains(bytes: &[u8], text: &str) -> bool {
    let wanted = text.as_bytes();
    let Some(first) = wanted.first() else { return true };
    bytes.len() >= wanted.len()
        && bytes
            .windows(wanted.len())
            .any(|window| window[0].eq_ignore_ascii_case(first) && window.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::{contains, has_members};

    #[test]
    fn members_are_found_by_their_path() {
        let json = br#"{"customer": {"id": 17, "name": "A\u00e4", "tags": ["x", {"deep": null}]}, "n": 1.0}"#;
        for (path, value, expected) in [
            ("customer.id", "17", true),
            ("customer.id", "1", false),
            ("customer.name", "A\u{e4}", true),
            ("customer.tags.0", "x", true),
            ("customer.tags.1.deep", "null", true),
            ("customer.tags.7", "x", false),
            ("n", "1.0", true),
            ("n.deep", "1.0", false),
            ("", "1", false),
        ] {
            assert_eq!(has_members(json, &[(path.to_owned(), value.to_owned())]), expected, "{path}={value}");
        }
        assert!(!has_members(b"no JSON", &[("a".to_owned(), "1".to_owned())]));
    }

    #[test]
    fn a_text_is_found_in_any_case() {
        for (bytes, text, expected) in [
            (&b"Out Of Memory"[..], "of mem", true),
            (b"memory", "MEMORY", true),
            (b"mem", "memory", false),
            (b"", "", true),
            ("sch\u{f6}n".as_bytes(), "SCH\u{f6}", true),
        ] {
            assert_eq!(contains(bytes, text), expected, "{text}");
        }
    }
}
