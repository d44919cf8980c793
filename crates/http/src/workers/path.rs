//! The worker's id, the job and the query in the URL of a worker's request.
//!
//! Workers append `&name=value` to their address, whether or not it has a `?`. Without a `?` the last path segment is
//! `worker&job_in_progress=0`: everything from the first `&` on is query.

use std::borrow::Cow;

use longshore_model::JobId;
use longshore_model::limits::TAKE_SLOTS_MAX;

/// A path segment without an appended query.
pub(super) fn segment(raw: &str) -> &str {
    raw.split_once('&').map_or(raw, |(segment, _)| segment)
}

/// The query of a worker's request. Every parameter is optional and unknown ones are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkerQuery<'a> {
    appended: &'a str,
    query: &'a str,
}

impl<'a> WorkerQuery<'a> {
    /// Keeps the URL's query and the query that was appended to its last path segment. No text is an error.
    pub fn parse(last_segment: &'a str, query: Option<&'a str>) -> Self {
        let appended = last_segment.split_once('&').map_or("", |(_, appended)| appended);
        Self { appended, query: query.unwrap_or_default() }
    }

    fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        // The URL that the worker was configured with may have an older value; the value that the worker appended comes last.
        last_value(self.query, name).or_else(|| last_value(self.appended, name))
    }

    /// How many jobs the worker has room for: `batch_size`, at least one.
    pub fn batch_size(&self) -> u32 {
        let text = self.get("batch_size").unwrap_or("1".into());
        let text = text.trim();
        let all_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(size) => size.clamp(1, TAKE_SLOTS_MAX),
            Err(_) if all_digits => TAKE_SLOTS_MAX,
            Err(_) => 1,
        }
    }

    /// Whether the worker says that it holds jobs: `job_in_progress`. `None`: very old workers do not send it.
    pub fn says_busy(&self) -> Option<bool> {
        match &*self.get("job_in_progress")? {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }

    /// The jobs that a ping lists: `job_id`, separated by commas, absent without jobs. Ids of a foreign form are
    /// skipped: older workers repeat what other workers wrote to a shared file.
    pub fn job_ids(&self) -> Vec<JobId> {
        let listed = self.get("job_id").unwrap_or_default();
        listed.split(',').filter_map(|id| id.trim().parse().ok()).collect()
    }

    /// Why the worker's self-check failed; `None` if the ping does not report a failure.
    pub fn unfit_reason(&self) -> Option<String> {
        if self.get("status")? != "unhealthy" {
            return None;
        }
        let check = self.get("check").unwrap_or("unnamed".into());
        let reason = self.get("reason").unwrap_or("no reason given".into());
        Some(format!("self-check `{check}` failed: {reason}"))
    }
}

/// The last value of a parameter.
fn last_value<'a>(query: &'a str, name: &str) -> Option<Cow<'a, str>> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.filter(|(known, _)| known == name).last().map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(text: &str) -> WorkerQuery<'_> {
        WorkerQuery::parse("wk-1", Some(text))
    }

    #[test]
    fn a_template_without_a_question_mark_is_cut_at_the_ampersand() {
        assert_eq!(segment("wk-1&job_in_progress=1"), "wk-1");
        assert_eq!(segment("wk-1"), "wk-1");
        assert_eq!(segment("&"), "");
        let appended = WorkerQuery::parse("wk-1&batch_size=3&job_in_progress=1", None);
        assert_eq!((appended.batch_size(), appended.says_busy()), (3, Some(true)));
    }

    #[test]
    fn an_empty_query_says_nothing() {
        let nothing = query("");
        assert_eq!((nothing.batch_size(), nothing.says_busy()), (1, None));
        assert_eq!((nothing.job_ids(), nothing.unfit_reason()), (vec![], None));
    }

    #[test]
    fn odd_batch_sizes_are_clamped() {
        for (text, size) in [
            ("batch_size=7", 7),
            ("batch_size=0", 1),
            ("batch_size=-3", 1),
            ("batch_size=x", 1),
            ("batch_size=", 1),
            ("batch_size=2.5", 1),
            ("batch_size=1000000", TAKE_SLOTS_MAX),
            ("batch_size=99999999999999999999", TAKE_SLOTS_MAX),
            ("gpu=A&batch_size=2&batch_strategy=LMove", 2),
            ("batch_size=2&batch_size=5", 5),
        ] {
            assert_eq!(query(text).batch_size(), size, "{text}");
        }
    }

    #[test]
    fn a_ping_lists_jobs_behind_an_encoded_comma() {
        let ids = ["01901234-5678-7fff-bfff-ffffffffffff", "sync-01901234-5678-7fff-bfff-fffffffffff0"];
        let listed: Vec<JobId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        assert_eq!(query(&format!("job_id={}%2C{}&runpod_version=1.12.0", ids[0], ids[1])).job_ids(), listed);
        assert_eq!(query(&format!("job_id={},{}", ids[0], ids[1])).job_ids(), listed);
        assert_eq!(query(&format!("job_id=%2C,foreign-1,{},", ids[0])).job_ids(), listed[..1]);
    }

    #[test]
    fn a_failed_self_check_is_reported_in_its_words() {
        let ping = "status=unhealthy&check=_network_check&reason=RuntimeError%3A+no+route";
        assert_eq!(
            query(ping).unfit_reason().as_deref(),
            Some("self-check `_network_check` failed: RuntimeError: no route")
        );
        assert_eq!(query("status=healthy&check=x").unfit_reason(), None);
        assert!(query("status=unhealthy").unfit_reason().unwrap().contains("no reason given"));
    }

    /// The last value of `a`, according to a decoder of whole queries.
    fn last_a(text: &str) -> Option<String> {
        let pairs = form_urlencoded::parse(text.as_bytes());
        pairs.filter(|(name, _)| name == "a").last().map(|(_, value)| value.into_owned())
    }

    proptest! {
        #[test]
        fn a_parameter_is_what_the_whole_query_says(text in "[ab&=%+146é]{0,24}") {
            prop_assert_eq!(query(&text).get("a").map(Cow::into_owned), last_a(&text));
            let appended = format!("wk-1&{text}");
            prop_assert_eq!(WorkerQuery::parse(&appended, None).get("a").map(Cow::into_owned), last_a(&text));
        }

        #[test]
        fn any_text_is_survived(last: String, text: String) {
            let query = WorkerQuery::parse(&last, Some(&text));
            prop_assert!((1..=TAKE_SLOTS_MAX).contains(&query.batch_size()));
            let _ = (query.says_busy(), query.job_ids(), query.unfit_reason(), segment(&last));
        }
    }
}
