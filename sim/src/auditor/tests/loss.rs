//! When a job may be delivered although it was delivered to another worker before.

use super::Script;
use crate::auditor::Rules;
use crate::observation::Observation;

const HELD_ONCE: &str = "a job is not delivered while another worker may have it";
const GIVEN: &str = r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#;

/// On an endpoint that tries again where a handler reported an error.
fn with_retries(rules: Rules) -> Script {
    let mut script = Script::with(rules);
    let record = r#"{"id":"e","retryOn":["handlerError"]}"#;
    script.ask("POST", "/v1/endpoints", "{}", 200, record);
    for worker in ["v", "w"] {
        script.observe(&Observation::WorkerStarted(worker.to_owned(), "e".to_owned()));
    }
    script
}

#[test]
fn a_question_for_what_to_stop_is_a_sign_of_life_unless_it_is_refused() {
    for status in [204, 503] {
        let mut script = Script::default();
        script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
        script.ask("GET", "/v2/e/job-stop/v?gpu=x", "", status, "").wait(2_000).take("w", "a", "{}");
        if status == 204 {
            script.breaks(HELD_ONCE);
        } else {
            script.is_fine();
        }
    }
}

#[test]
fn a_request_that_broke_off_may_not_have_arrived() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
    let ping = script.arrive("GET", "/v2/e/ping/v?gpu=x&job_id=a", "");
    script.lose(ping).wait(2_000).take("w", "a", "{}").is_fine();
}

#[test]
fn a_response_that_may_have_crossed_others_proves_no_loss_before_it() {
    for may_have_lost_it in [true, false] {
        let mut script = with_retries(Rules::default());
        script.submit("a", "{}");
        let take = script.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        if may_have_lost_it {
            script.ping("w", "").ping("w", "");
        }
        script.take("v", "a", "{}").ping("v", "a").observe(&Observation::WorkerEnded("v".to_owned(), false));
        script.answer(take, 200, GIVEN).status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
        if may_have_lost_it {
            script.is_fine();
        } else {
            script.breaks("retries count lost workers, and nothing else");
        }
    }
}

#[test]
fn an_old_answer_tells_nothing_of_the_life_after_a_retry() {
    for is_old in [true, false] {
        let mut script = Script::default();
        script.submit("a", "{}");
        let take = |script: &mut Script| script.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
        let first = take(&mut script);
        if !is_old {
            script.answer(first, 200, GIVEN);
        }
        script.wait(600_000).status("a", r#""status":"TIMED_OUT","error":"e""#);
        script.change("retry", "a", "IN_QUEUE");
        let given = if is_old { first } else { take(&mut script) };
        script.answer(given, 200, GIVEN).ping("v", "a").take("w", "a", "{}");
        if is_old {
            script.is_fine();
        } else {
            script.breaks(HELD_ONCE);
        }
    }
}

#[test]
fn an_error_of_an_earlier_attempt_ends_the_one_in_flight_to_the_same_worker() {
    let mut script = with_retries(Rules::default());
    script.submit("a", "{}").take("v", "a", "{}").wait(16_000);
    let take = script.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
    script.done("v", "a", r#"{"error":"first run"}"#).answer(take, 200, GIVEN).take("v", "a", "{}").is_fine();
    script.take("w", "a", "{}").breaks(HELD_ONCE);
}

#[test]
fn a_chunk_that_is_too_large_fails_no_run() {
    for chunk in [r#"{"text":"ten"}"#, r#""tententen""#] {
        let mut script = with_retries(Rules { chunk_bytes_max: 10, ..Rules::default() });
        script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", chunk);
        script.take("w", "a", "{}").breaks(HELD_ONCE);
    }
}
