//! Writes a job as JSON, as `/status`, `/runsync`, `/requests` and webhooks show it.
//!
//! The JSON is written by hand, because the output is copied byte for byte: a number that no Rust type can hold reaches
//! the client as the worker sent it.

use std::io::Write as _;

use longshore_model::JobState;

use crate::JobSnapshot;

/// Appends the job to `out` as a JSON object.
pub fn write_record(job: &JobSnapshot, out: &mut Vec<u8>) {
    out.push(b'{');
    write_record_members(job, out);
    out.push(b'}');
}

/// Appends the members of the job to `out` without the outer braces, so that further members can follow. There is at
/// least one member, and no comma at the end.
pub fn write_record_members(job: &JobSnapshot, out: &mut Vec<u8>) {
    let row = &job.row;
    // Ids, states and worker ids hold no character that JSON escapes.
    write(out, format_args!(r#""id":"{}","status":"{}""#, row.id, row.state));
    if row.state != JobState::InQueue && !row.never_taken {
        let (delay, execution) = (row.delay_ms(), row.execution_ms(job.now));
        write(out, format_args!(r#","delayTime":{delay},"executionTime":{execution}"#));
        if let Some(worker) = &row.worker {
            write(out, format_args!(r#","workerId":"{worker}""#));
        }
    }
    if let Some(output) = &job.output {
        out.extend_from_slice(br#","output":"#);
        out.extend_from_slice(output);
    }
    if let Some(error) = &job.error {
        out.extend_from_slice(br#","error":"#);
        write_json_string(error, out);
    }
    if row.retries > 0 {
        write(out, format_args!(r#","retries":{}"#, row.retries));
    }
}

/// Appends text to `out` as a JSON string, with quotes.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends formatted text to `out`.
fn write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use longshore_model::{Attempt, EndpointNo, JobId, JobKey, JobRow, Millis};

    use super::*;

    fn job(state: JobState) -> JobSnapshot {
        let key = JobKey { endpoint: EndpointNo(1), seq: 1 };
        let row = JobRow {
            state,
            never_taken: state == JobState::InQueue,
            attempt: Attempt(1),
            started_at: Millis(1250),
            finished_at: Millis(2000),
            worker: "w-1".parse().ok(),
            ..JobRow::queued(key, JobId::mint(Millis(1), 0, false), Millis(1000))
        };
        JobSnapshot {
            row,
            now: Millis(1300),
            output: None,
            output_bytes: None,
            error: None,
            room: crate::BudgetPermit::default(),
        }
    }

    fn text(job: &JobSnapshot) -> String {
        let mut out = Vec::new();
        write_record(job, &mut out);
        serde_json::from_slice::<&serde_json::value::RawValue>(&out).expect("valid JSON");
        String::from_utf8(out).expect("UTF-8").replace("00000000-0001-7000-8000-000000000000", "j")
    }

    #[test]
    fn a_queued_job_shows_its_id_and_state_alone() {
        assert_eq!(text(&job(JobState::InQueue)), r#"{"id":"j","status":"IN_QUEUE"}"#);
    }

    #[test]
    fn a_job_cancelled_before_its_first_attempt_shows_no_times() {
        let mut job = job(JobState::Cancelled);
        job.row.never_taken = true;
        assert_eq!(text(&job), r#"{"id":"j","status":"CANCELLED"}"#);
    }

    #[test]
    fn a_running_job_shows_its_times_up_to_now_and_its_progress() {
        let mut job = job(JobState::InProgress);
        job.output = Some(Bytes::from_static(b"\"half\""));
        assert_eq!(
            text(&job),
            r#"{"id":"j","status":"IN_PROGRESS","delayTime":250,"executionTime":50,"workerId":"w-1","output":"half"}"#
        );
    }

    #[test]
    fn an_output_keeps_every_digit() {
        let mut job = job(JobState::Completed);
        job.output = Some(Bytes::from_static(b"[1.0,1e400,18446744073709551617]"));
        assert_eq!(
            text(&job),
            r#"{"id":"j","status":"COMPLETED","delayTime":250,"executionTime":750,"workerId":"w-1","output":[1.0,1e400,18446744073709551617]}"#
        );
    }

    #[test]
    fn an_error_is_escaped_and_retries_are_shown() {
        let mut job = job(JobState::Failed);
        job.error = Some("a \"quote\"\n".to_owned());
        job.row.retries = 2;
        assert_eq!(
            text(&job),
            r#"{"id":"j","status":"FAILED","delayTime":250,"executionTime":750,"workerId":"w-1","error":"a \"quote\"\n","retries":2}"#
        );
    }
}
