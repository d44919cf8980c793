//! Outputs of handlers. Each names the job, the worker and a number that is unique in this worker, so that the
//! auditor can tell which report counted.

use super::profile::Oddity;
use crate::raw_http::padding;

/// The origin of an output.
pub(super) struct OutputTag<'a> {
    pub(super) job: &'a str,
    pub(super) worker: &'a str,
    /// The run of a handler or the number of a further report; increases within each worker.
    pub(super) run: u64,
}

impl OutputTag<'_> {
    /// An object with at least `bytes` bytes.
    pub(super) fn value(&self, bytes: u64) -> String {
        let Self { job, worker, run } = self;
        format!(r#"{{"job":"{job}","worker":"{worker}","run":{run},"pad":"{}"}}"#, padding(bytes))
    }

    /// The body of a result.
    pub(super) fn result(&self, bytes: u64, oddity: Option<Oddity>) -> String {
        let Self { job, worker, run } = self;
        match oddity {
            None => format!(r#"{{"output":{}"#, self.value(bytes)),
            Some(Oddity::NaN) => format!(r#"{{"output":[NaN,-Infinity,"{job} {worker} {run}"]"#),
            Some(Oddity::Text) => format!(r#"{{"output":"{job} {worker} {run} \u00e4\"{}""#, padding(bytes)),
            Some(Oddity::Nothing) => "{".to_owned(),
            Some(Oddity::Garbage) => format!(r#"{{"output":[[{job} {worker} {run}"#),
        }
    }

    /// The body of a progress report.
    pub(super) fn progress(&self, step: u64) -> String {
        let Self { job, worker, run } = self;
        let value = format!(r#"{{"job":"{job}","worker":"{worker}","run":{run},"step":{step}}}"#);
        format!(r#"{{"status":"IN_PROGRESS","output":{value}}}"#)
    }

    /// The value of a chunk. Some are strings, which may be split.
    pub(super) fn chunk(&self, number: usize, bytes: u64) -> String {
        let Self { job, worker, run } = self;
        if number % 3 == 2 {
            return format!(r#""{job} {worker} {run} {number} {}""#, padding(bytes));
        }
        let pad = padding(bytes);
        format!(r#"{{"job":"{job}","worker":"{worker}","run":{run},"chunk":{number},"pad":"{pad}"}}"#)
    }

    /// The body of a failure, in one of the forms that SDKs send.
    pub(super) fn error(&self, form: u64) -> String {
        let Self { job, worker, run } = self;
        let text = format!("handler failed: {job} {worker} {run}");
        match form % 3 {
            0 => format!(r#"{{"error":"{text}""#),
            1 => format!(r#"{{"error":{{"message":"{text}","code":7}}"#),
            _ => format!(
                r#"{{"error":"{{\"error_type\": \"<class 'ValueError'>\", \"error_message\": \"{text}\"}}","output":{{"half":true}}"#
            ),
        }
    }
}

/// Completes the body of a result or failure.
pub(super) fn closed(mut body: String, asks_for_replacement: bool) -> String {
    if asks_for_replacement {
        body.push_str(if body.len() == 1 { r#""stopPod":true"# } else { r#","stopPod":true"# });
    }
    body.push('}');
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: OutputTag<'static> = OutputTag { job: "j", worker: "w", run: 7 };

    #[test]
    fn bodies_are_json_where_they_should_be() {
        let mut bodies = vec![SIGNATURE.progress(2)];
        for replaced in [false, true] {
            for oddity in [None, Some(Oddity::Text), Some(Oddity::Nothing)] {
                bodies.push(closed(SIGNATURE.result(3, oddity), replaced));
            }
            bodies.extend((0..3).map(|form| closed(SIGNATURE.error(form), replaced)));
        }
        bodies.extend((0..3).map(|number| SIGNATURE.chunk(number, 2)));
        for body in bodies {
            serde_json::from_str::<serde_json::Value>(&body).expect(&body);
        }
        let garbage = closed(SIGNATURE.result(0, Some(Oddity::Garbage)), false);
        serde_json::from_str::<serde_json::Value>(&garbage).unwrap_err();
    }
}
