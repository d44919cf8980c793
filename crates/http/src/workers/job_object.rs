//! The job as a worker sees it.

use longshore_engine::TakenJob;

use crate::wire::json_body::{JsonBody, SHARED_BYTES_MIN};

/// Capacity for the members of a job that the server adds, in bytes.
const AROUND_BYTES_MAX: usize = 128;

/// Writes one job as a JSON object: the server's members, then its submitted members unchanged.
///
/// The submitted members never have the names that the server sets, and always have `input`. A worker rejects a job
/// without `input`.
pub(super) fn one(job: &TakenJob) -> JsonBody {
    // Members that are sent without a copy need no room.
    let mut body = JsonBody::with_capacity(AROUND_BYTES_MAX + job.members.len().min(SHARED_BYTES_MIN));
    write(&mut body, job);
    body.hold(&job.room);
    body
}

/// Jobs as a JSON array.
pub(super) fn many(jobs: &[TakenJob]) -> JsonBody {
    let mut body = JsonBody::new();
    body.text("[");
    for (place, job) in jobs.iter().enumerate() {
        body.text(if place == 0 { "" } else { "," });
        write(&mut body, job);
    }
    body.text("]");
    if let Some(job) = jobs.first() {
        body.hold(&job.room);
    }
    body
}

fn write(body: &mut JsonBody, job: &TakenJob) {
    // A string, because workers fail to report on a job whose id is a number.
    body.text(r#"{"id":""#);
    job.row.id.write(body.buffer());
    body.text(r#"","delayTime":"#).number(job.row.delay_ms());
    body.text(r#","status":"IN_PROGRESS","#).raw(&job.members);
    if let Some(trace) = &job.trace {
        // Behind the submitted members: of two with one name, every parser takes the last.
        body.text(r#","traceparent":""#).text(&trace.to_string()).text("\"");
    }
    body.text("}");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use longshore_engine::BudgetPermit;
    use longshore_model::{Attempt, EndpointNo, JobId, JobKey, JobRow, JobState, Millis, TraceContext};

    use super::*;

    fn job(members: &'static str) -> TakenJob {
        let id = JobId::mint(Millis(0x0190_1234_5678), u128::MAX, false);
        let row = JobRow {
            state: JobState::InProgress,
            never_taken: false,
            attempt: Attempt(1),
            started_at: Millis(1_250),
            ..JobRow::queued(JobKey { endpoint: EndpointNo(1), seq: 1 }, id, Millis(1_000))
        };
        let members = Bytes::from_static(members.as_bytes());
        TakenJob { row, members, trace: None, room: BudgetPermit::default() }
    }

    #[test]
    fn a_job_is_its_members_behind_what_the_server_says() {
        let job = job(r#""input": {"n": 1.0, "big": 12345678901234567890123}, "webhook": "http://h/""#);
        let expected = concat!(
            r#"{"id":"01901234-5678-7fff-bfff-ffffffffffff","delayTime":250,"status":"IN_PROGRESS","#,
            r#""input": {"n": 1.0, "big": 12345678901234567890123}, "webhook": "http://h/"}"#
        );
        assert_eq!(one(&job).into_bytes(), expected);
        assert_eq!(many(&[job.clone(), job]).into_bytes(), format!("[{expected},{expected}]"));
    }

    #[test]
    fn a_traced_job_says_where_its_worker_continues_the_trace() {
        let trace = Some(TraceContext::new([0xab; 16], [0xcd; 8], true));
        let job = TakenJob { trace, ..job(r#""input":{}"#) };
        let expected = concat!(
            r#"{"id":"01901234-5678-7fff-bfff-ffffffffffff","delayTime":250,"status":"IN_PROGRESS","input":{},"#,
            r#""traceparent":"00-abababababababababababababababab-cdcdcdcdcdcdcdcd-01"}"#
        );
        assert_eq!(one(&job).into_bytes(), expected);
    }

    #[test]
    fn no_jobs_are_an_empty_array() {
        assert_eq!(many(&[]).into_bytes(), "[]");
    }
}
