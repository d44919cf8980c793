//! Searching jobs by a text in their ids, inputs, outputs and errors.

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobRow};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Jobs;
use crate::actor::query::View;
use crate::{EndpointError, JobFilter, JobPage};

/// Bytes of payloads that one call of [`Jobs::search`] reads, approximately at most.
const SEARCH_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long one call of [`Jobs::search`] reads.
const SEARCH_FOR: Duration = Duration::from_secs(1);
/// Rows that are asked of the queue in one query.
const ROWS: usize = 200;

/// The part of a job's members that is searched. The others can be secrets.
#[derive(Deserialize)]
struct Searched<'a> {
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl Jobs {
    /// Returns one page of the jobs that match the filter and have `text` in their id, input, output or error, in any case
    /// of ASCII letters. Reads payloads, the newest job first, until the page is full, 64 MiB were read or 1 s has passed.
    /// The page's cursor then says where to go on. Payloads that cannot be read are left out.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Jobs`].
    pub async fn search(&self, filter: JobFilter, text: &str) -> Result<JobPage, EndpointError> {
        let (began, mut bytes) = (Instant::now(), 0);
        let mut page = JobPage { jobs: Vec::new(), cursor: filter.before, searched: 0, of: 0 };
        loop {
            let rows = self.rows(JobFilter { limit: ROWS, before: page.cursor, ..filter.clone() }).await?;
            page.of = rows.of;
            let (count, next) = (rows.jobs.len(), rows.cursor);
            for (at, row) in rows.jobs.into_iter().enumerate() {
                let is_last = at + 1 == count;
                page.cursor = if is_last { next } else { Some(row.id) };
                page.searched += 1;
                let (has_text, read) = self.has_text(&row, text).await;
                bytes += read;
                if has_text {
                    page.jobs.push(self.small_snapshot(row).await?);
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

    /// Whether the job has the text, and how many bytes were read to find out.
    async fn has_text(&self, row: &JobRow, text: &str) -> (bool, usize) {
        if contains(row.id.to_string().as_bytes(), text) {
            return (true, 0);
        }
        let mut bytes = 0;
        if let Ok(job) = self.snapshot(row.clone()).await {
            let output = job.output.as_deref().unwrap_or_default();
            let error = job.error.as_deref().unwrap_or_default();
            bytes += output.len() + error.len();
            if contains(output, text) || contains(error.as_bytes(), text) {
                return (true, bytes);
            }
        }
        let Ok(input) = self.input(row.id).await else { return (false, bytes) };
        (contains(&input, text), bytes + input.len())
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
    use super::contains;

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
