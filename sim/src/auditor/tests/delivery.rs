//! Jobs go to one worker at a time, in order, and its results count.

use super::Script;
use crate::auditor::{Rules, Transition};
use crate::observation::Observation;

const HELD_ONCE: &str = "a job is not delivered while another worker may have it";
const CAUSED: &str = "every outcome has an earlier cause";
const IN_ORDER: &str = "jobs are delivered in order";

fn started(script: &mut Script, workers: &[&str]) {
    for worker in workers {
        script.observe(&Observation::WorkerStarted((*worker).to_owned(), "e".to_owned()));
    }
}

#[test]
fn a_worker_gets_the_very_input() {
    let mut script = Script::default();
    script.submit("a", r#"{"n": 1.0}"#).take("w", "a", r#"{"n": 1}"#);
    script.breaks("a worker gets the input byte for byte");
}

#[test]
fn a_worker_may_get_a_job_before_its_submitter_knows() {
    let mut script = Script::default();
    let submit = script.arrive("POST", "/v2/e/run", r#"{"input":{"x":1}}"#);
    script.take("w", "a", r#"{"x":1}"#);
    script.answer(submit, 200, r#"{"id":"a","status":"IN_PROGRESS"}"#).is_fine();
    script.take("w", "b", r#"{"x":2}"#).breaks("only a queued job is delivered");
}

#[test]
fn a_job_is_not_handed_out_after_its_end() {
    let mut script = Script::default();
    script.submit("a", "{}").change("cancel", "a", "CANCELLED").take("w", "a", "{}");
    script.breaks("only a queued job is delivered");
}

#[test]
fn a_job_has_one_holder() {
    let mut script = Script::default();
    started(&mut script, &["v", "w"]);
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").take("w", "a", "{}").breaks(HELD_ONCE);
}

#[test]
fn a_ping_in_flight_lists_no_job_that_is_delivered_meanwhile() {
    let given = r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#;
    for is_under_way in [true, false] {
        let mut script = Script::default();
        started(&mut script, &["v", "w"]);
        script.submit("a", "{}");
        let ping = script.arrive("GET", "/v2/e/ping/v?gpu=x", "");
        if !is_under_way {
            script.answer(ping, 200, "");
        }
        let take = script.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
        if is_under_way {
            script.answer(ping, 200, "");
        }
        script.answer(take, 200, given).ping("v", "").take("w", "a", "{}");
        if is_under_way {
            script.is_fine();
        } else {
            script.breaks(HELD_ONCE);
        }
    }
}

#[test]
fn a_dead_worker_is_followed_by_another_and_counts() {
    let mut script = Script::default();
    started(&mut script, &["v", "w"]);
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    script.observe(&Observation::WorkerEnded("v".to_owned(), false));
    script.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#);
    script.is_fine();
    assert_eq!(script.transition_count(Transition::WorkerLostRequeued), 1);
    script.status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
    script.breaks("retries count lost workers, and nothing else");
}

#[test]
fn a_drained_worker_does_not_count() {
    let mut script = Script::default();
    started(&mut script, &["v", "w"]);
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    script.observe(&Observation::WorkerEnded("v".to_owned(), true));
    script.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
    script.is_fine();
    assert_eq!(script.transition_count(Transition::DrainedRequeued), 1);
    script.status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#);
    script.breaks("retries count lost workers, and nothing else");
}

#[test]
fn a_silent_worker_may_be_late_and_still_win() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}");
    script.done("v", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
    script.is_fine();
    assert_eq!(script.transition_count(Transition::CompletedLate), 1);
}

#[test]
fn a_result_is_one_that_was_posted() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":1}"#);
    script.status("a", r#""status":"COMPLETED","output":1.0"#).breaks(CAUSED);
}

#[test]
fn a_result_of_a_job_that_was_never_taken_is_no_cause() {
    let mut script = Script::default();
    script.submit("a", "{}").done("w", "a", r#"{"output":1}"#);
    script.status("a", r#""status":"COMPLETED","output":1"#).breaks(CAUSED);
}

#[test]
fn an_error_of_a_worker_that_lost_the_job_is_none() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
    script.done("v", "a", r#"{"error":"late"}"#).status("a", r#""status":"FAILED","error":"late""#);
    script.breaks(CAUSED);
}

#[test]
fn the_first_result_wins() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}");
    script.done("w", "a", r#"{"output":2}"#).done("v", "a", r#"{"output":1}"#);
    script.status("a", r#""status":"COMPLETED","output":1"#).breaks(CAUSED);
}

#[test]
fn a_result_that_is_too_long_is_none_of_a_worker_that_lost_the_job() {
    for output_bytes_max in [1, 1_000] {
        let mut script = Script::with(Rules { output_bytes_max, ..Rules::default() });
        script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(100_000);
        script.take("w", "a", "{}").done("v", "a", r#"{"output":12}"#).wait(100_000).take("x", "a", "{}");
        if output_bytes_max == 1 {
            script.is_fine();
        } else {
            script.breaks("only a queued job is delivered");
        }
    }
}

#[test]
fn an_accepted_result_is_not_forgotten() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":2}"#);
    script.status("a", r#""status":"IN_PROGRESS""#);
    script.breaks("a job ends once, and its outcome does not change");
}

#[test]
fn numbers_that_json_does_not_know_become_null() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":["NaN",NaN,-Infinity]}"#);
    script.status("a", r#""status":"COMPLETED","output":["NaN",null,null]"#).is_fine();
}

#[test]
fn progress_and_chunks_come_from_the_holder() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
    script.chunk("w", "a", "1").stream("a", "offset=0", r#"[{"output":1}]"#).is_fine();
    script.chunk("v", "a", "2").stream("a", "offset=0", r#"[{"output":1},{"output":2}]"#);
    script.breaks("progress and chunks come from the job's worker");
}

#[test]
fn no_chunk_is_lost() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").chunk("w", "a", "2");
    script.stream("a", "offset=0", r#"[{"output":2}]"#);
    script.breaks("progress and chunks come from the job's worker");
}

#[test]
fn the_first_in_is_the_first_out() {
    let mut script = Script::default();
    script.submit("a", r#"{"n":1}"#).submit("b", r#"{"n":2}"#).take("w", "b", r#"{"n":2}"#);
    script.take("v", "a", r#"{"n":1}"#).breaks("jobs are delivered in order");
}

#[test]
fn what_a_worker_lost_comes_before_what_came_later() {
    let mut script = Script::default();
    script.submit("a", r#"{"n":1}"#).take("v", "a", r#"{"n":1}"#).submit("b", r#"{"n":2}"#).wait(16_000);
    script.status("a", r#""status":"IN_QUEUE","retries":1"#).take("w", "b", r#"{"n":2}"#);
    script.take("x", "a", r#"{"n":1}"#).breaks("jobs are delivered in order");
}

#[test]
fn a_time_out_takes_its_time() {
    let mut script = Script::default();
    script
        .submit("a", "{}")
        .take("w", "a", "{}")
        .wait(599_000)
        .status("a", r#""status":"TIMED_OUT","error":"e""#);
    script.breaks(CAUSED);
    let mut script = Script::default();
    script
        .submit("a", "{}")
        .take("w", "a", "{}")
        .wait(600_000)
        .status("a", r#""status":"TIMED_OUT","error":"e""#);
    script.is_fine();
}

#[test]
fn a_job_fails_after_too_many_losses_and_not_before() {
    let mut script = Script::default();
    script.submit("a", "{}");
    for worker in ["u", "v", "w"] {
        script.take(worker, "a", "{}").wait(16_000);
    }
    script.status("a", r#""status":"FAILED","error":"given up","retries":2"#).is_fine();
    assert_eq!(script.transition_count(Transition::WorkerLostFailed), 1);
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").wait(16_000);
    script.status("a", r#""status":"FAILED","error":"given up","retries":1"#).breaks(CAUSED);
}

#[test]
fn a_take_that_a_power_cut_made_void_may_have_handed_out_what_then_waits_for_a_lease() {
    let run = |status: u16| {
        let mut script = Script::default();
        script.ask("POST", "/v1/endpoints", "{}", 200, r#"{"id":"e","durability":"buffered"}"#);
        script.submit("a", "{}");
        let take = script.arrive("GET", "/v2/e/job-take-batch/v?gpu=x&batch_size=2&job_in_progress=0", "");
        script.submit("b", "{}").wait(1_000).observe(&Observation::ServerDown(true));
        script.answer(take, status, "").wait(1_000).observe(&Observation::ServerUp);
        script.take("w", "b", "{}").wait(16_000).take("w", "a", "{}");
        script
    };
    run(429).is_fine();
    run(204).breaks(IN_ORDER);
}

/// A worker asks for several jobs, and gets these.
fn take_together(script: &mut Script, worker: &str, jobs: &[(&str, &str)]) {
    let job = |(id, input): &(&str, &str)| {
        format!(r#"{{"id":"{id}","delayTime":1,"status":"IN_PROGRESS","input":{input}}}"#)
    };
    let answer = format!("[{}]", jobs.iter().map(job).collect::<Vec<_>>().join(","));
    let path = format!("/v2/e/job-take-batch/{worker}?gpu=x&batch_size=9&job_in_progress=0");
    script.ask("GET", &path, "", 200, &answer);
}

#[test]
fn a_job_that_cannot_be_read_fails_alone() {
    let unreadable = r#"{"unreadable":true}"#;
    let given_up = r#"{"id":"a","status":"FAILED","delayTime":1,"executionTime":1,"workerId":"w","retries":2,"error":"given up"}"#;
    for is_alone_in_the_end in [false, true] {
        let mut script = Script::default();
        started(&mut script, &["w"]);
        script.submit("a", "{}").submit("b", unreadable);
        for time in 0..6 {
            let together: &[_] = &[("a", "{}"), ("b", unreadable)];
            take_together(
                &mut script,
                "w",
                if is_alone_in_the_end && time > 0 { &together[..1] } else { together },
            );
        }
        script.ask("GET", "/v2/e/status/a", "", 200, given_up);
        if is_alone_in_the_end {
            script.is_fine();
        } else {
            script.breaks("a job that no worker can read fails alone");
        }
    }
}
