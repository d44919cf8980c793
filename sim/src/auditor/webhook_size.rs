//! Webhook calls that omit fields to stay within the size limit.

use bytes::Bytes;

use super::Auditor;
use super::job::{JobNo, Terminal};
use super::job_view::history;
use super::promise::Promise;
use super::wire::{JobRecord, part};

/// Bytes that a call's body may need beside input, output and error.
const REST_BYTES_MAX: usize = 1_024;

impl Auditor {
    /// Checks that a call is within the size limit and omits nothing that would have fitted.
    pub(super) fn check_size(&mut self, no: JobNo, url: &str, body: &Bytes, record: &JobRecord<'_>) {
        let Some(job) = self.model.get(no) else { return };
        let Some(submission) = &job.submission else { return };
        let most = self.rules.webhook_body_bytes_max;
        let error_bytes = record.error.map_or(0, |error| error.get().len());
        let needed = submission.input.len() + error_bytes + REST_BYTES_MAX;
        let is_small = body.len() <= most.max(error_bytes + REST_BYTES_MAX);
        let output_is_right = match record.output_bytes.filter(|_| record.output_omitted) {
            Some(bytes) => {
                let is_linked = record.status_url.is_some_and(|url| url.ends_with(record.id));
                needed + bytes > most && record.output.is_none() && is_linked
            }
            None => !record.output_omitted,
        };
        let input_is_right = !record.input_omitted || needed > most && record.input.is_none();
        let text = || {
            let bytes = body.len();
            format!(
                "{url}: a call for {} of {bytes} bytes, where {most} are allowed; {}",
                job.id,
                history(job)
            )
        };
        self.ledger.check(Promise::WebhookTruthful, is_small && output_is_right && input_is_right, text);
    }
}

/// Whether a call may report this end, by the fields that it has.
pub(super) fn may_report(end: &Terminal, body: &Bytes, record: &JobRecord<'_>) -> bool {
    end.shown.as_ref().is_none_or(|(output, error)| {
        let same_output = if record.output_omitted {
            output.as_ref().map(Bytes::len) == record.output_bytes
        } else {
            *output == record.output.map(|raw| part(body, raw))
        };
        same_output && *error == record.error.map(|raw| part(body, raw))
    })
}
