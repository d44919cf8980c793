//! An acknowledged job exists until its time has passed, and ends once.

use super::Script;
use crate::auditor::Transition;
use crate::observation::Observation;

#[test]
fn a_healthy_life_raises_no_alarm() {
    let mut script = Script::default();
    script.submit("a", r#"{"n": 1.0}"#).status("a", r#""status":"IN_QUEUE""#);
    script.take("w", "a", r#"{"n": 1.0}"#).ping("w", "a");
    script.done("w", "a", r#"{"status": "IN_PROGRESS", "output": 50}"#);
    script.status("a", r#""status":"IN_PROGRESS","workerId":"w","output":50"#);
    script.done("w", "a", r#"{"output": {"x": 1.0}}"#);
    script.status("a", r#""status":"COMPLETED","workerId":"w","output":{"x": 1.0}"#);
    script.change("cancel", "a", "COMPLETED").wait(1_800_000).missing("a");
    script.is_fine();
    for transition in
        [Transition::Accepted, Transition::Taken, Transition::Completed, Transition::ForgottenCompleted]
    {
        assert_eq!(script.transition_count(transition), 1, "{transition:?}");
    }
}

#[test]
fn a_job_may_not_be_missing_before_its_time() {
    let mut script = Script::default();
    script.submit("a", "{}").wait(60_000).missing("a");
    script.breaks("an acknowledged job exists until its time has passed");
}

#[test]
fn a_result_may_not_be_missing_before_its_retention_ends() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}").status("a", r#""status":"COMPLETED""#);
    script.wait(1_799_000).missing("a");
    script.breaks("an acknowledged job exists until its time has passed");
}

#[test]
fn a_jump_of_the_clock_explains_a_missing_job() {
    let mut script = Script::default();
    script.submit("a", "{}").jump(86_400_000).missing("a");
    script.is_fine();
}

#[test]
fn a_server_that_begins_with_an_earlier_clock_may_still_show_what_was_gone() {
    let run = |is_restarted: bool| {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}");
        script.status("a", r#""status":"COMPLETED""#).jump(1_800_000).missing("a").jump(-300_000);
        if is_restarted {
            script.observe(&Observation::ServerDown(true));
            script.wait(1_000).observe(&Observation::ServerUp);
        }
        let asked = script.arrive("GET", "/v2/e/status/a", "");
        // The clock goes on while the response is in flight.
        script.wait(400_000).answer(asked, 200, r#"{"id":"a","status":"COMPLETED"}"#);
        script
    };
    run(true).is_fine();
    run(false).breaks("a job past its time is gone, and stays so");
}

#[test]
fn a_server_that_begins_with_an_earlier_clock_may_hand_out_what_was_gone() {
    for wait_ms in [1_000, 400_000] {
        let mut script = Script::default();
        let pinned = r#"{"id":"a","status":"IN_QUEUE"}"#;
        script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
        script.submit("a", "{}").ask("GET", "/v2/e/status/a?ttl=5000", "", 200, pinned);
        script.jump(-300_000).wait(6_000).missing("a").observe(&Observation::ServerDown(false));
        script.wait(wait_ms).observe(&Observation::ServerUp);
        script.take("w", "a", "{}");
        if wait_ms < 300_000 {
            script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
            script
                .status("a", r#""status":"IN_PROGRESS","workerId":"w""#)
                .wait(240_000)
                .ping("w", "a")
                .is_fine();
        } else {
            script.breaks("only a queued job is delivered");
        }
    }
}

#[test]
fn a_job_may_not_end_twice() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}").status("a", r#""status":"COMPLETED""#);
    script.change("cancel", "a", "CANCELLED");
    script.breaks("a job ends once, and its outcome does not change");
}

#[test]
fn an_outcome_needs_a_cause() {
    for record in [
        r#""status":"COMPLETED""#,
        r#""status":"FAILED","error":"e""#,
        r#""status":"CANCELLED""#,
        r#""status":"TIMED_OUT""#,
    ] {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").status("a", record);
        script.breaks("every outcome has an earlier cause");
    }
}

#[test]
fn a_request_without_an_answer_may_have_taken_effect() {
    let mut script = Script::default();
    script.submit("a", "{}");
    let cancel = script.arrive("POST", "/v2/e/cancel/a", "");
    script.lose(cancel).status("a", r#""status":"IN_QUEUE""#).status("a", r#""status":"CANCELLED""#);
    script.is_fine();
    script.status("a", r#""status":"IN_QUEUE""#).breaks("a job ends once, and its outcome does not change");
}
