//! Webhooks.

use super::Script;
use crate::auditor::Rules;
use crate::observation::Observation;

const PACED: &str = "a webhook is not called too soon, too often, or after it was accepted";
const MADE: &str = "a webhook is called until it is accepted or out of attempts";
const TRUTHFUL: &str = "a webhook reports how the job ended";
const BODY: &str = r#"{"id":"a","status":"COMPLETED","output":1,"input":{},"webhook":"http://h/"}"#;

fn completed() -> Script {
    let mut script = Script::default();
    let body = r#"{"input":{},"webhook":"http://h/"}"#;
    script.ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
    script
        .take("w", "a", "{}")
        .done("w", "a", r#"{"output":1}"#)
        .status("a", r#""status":"COMPLETED","output":1"#);
    script
}

#[test]
fn a_webhook_is_called_until_it_is_accepted() {
    let mut script = completed();
    script.call(1, BODY, 500).wait(10_000).call(2, BODY, 200).wait(60_000);
    script.observe(&Observation::QuietPhaseBegan);
    script.observe(&Observation::End);
    script.is_fine();
    script.wait(10_000).call(3, BODY, 200).breaks(PACED);
}

#[test]
fn a_webhook_may_not_be_forgotten() {
    let mut script = completed();
    script.call(1, BODY, 500).wait(10_000).call(2, BODY, 500).wait(60_000);
    script.observe(&Observation::End);
    script.breaks(MADE);
}

#[test]
fn attempts_keep_their_distance_and_end() {
    let mut script = completed();
    script.call(1, BODY, 500).wait(9_000).call(2, BODY, 500).breaks(PACED);
    let mut script = completed();
    for call in 1..=3 {
        script.call(call, BODY, 500).wait(10_000);
    }
    script.is_fine();
    script.call(4, BODY, 500).breaks(PACED);
}

#[test]
fn a_server_that_another_one_has_replaced_cannot_store_how_its_call_ended() {
    let run = |is_replaced: bool| {
        let mut script = completed();
        script.observe(&Observation::Called(1, "http://h/".to_owned(), BODY.into()));
        script.wait(10_000);
        if is_replaced {
            script.observe(&Observation::ServerDown(true));
            script.observe(&Observation::ServerUp);
        }
        script.wait(3).observe(&Observation::CallBroken(1));
        script.wait(300).call(2, BODY, 200);
        script
    };
    run(true).is_fine();
    run(false).breaks(PACED);
}

#[test]
fn a_call_after_an_acceptance_that_may_be_forgotten_is_no_certain_first_one() {
    let run = |is_killed: bool| {
        let mut script = completed();
        script.ask("POST", "/v2/e/webhooks/redeliver", "", 200, "{}");
        script.call(1, BODY, 500).wait(10_000).call(2, BODY, 500).wait(10_000).call(3, BODY, 200);
        if is_killed {
            script.observe(&Observation::ServerDown(true));
            script.wait(1_000).observe(&Observation::ServerUp);
        }
        script.wait(10_000).call(4, BODY, 500).wait(60_000).observe(&Observation::End);
        script
    };
    run(true).is_fine();
    run(false).breaks(MADE);
}

#[test]
fn a_call_leaves_out_what_is_too_large_and_nothing_else() {
    let run = |most: usize, told: &str| {
        let mut script = Script::with(Rules { webhook_body_bytes_max: most, ..Rules::default() });
        let body = r#"{"input":{},"webhook":"http://h/"}"#;
        script.ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
        let output = format!(r#""output":"{}""#, "x".repeat(3_000));
        script.take("w", "a", "{}").done("w", "a", &format!("{{{output}}}"));
        let told = told.replace("OUTPUT", &output);
        let call = format!(r#"{{"id":"a","status":"COMPLETED",{told},"input":{{}},"webhook":"http://h/"}}"#);
        script.call(1, &call, 200);
        script
    };
    let omitted = r#""outputOmitted":true,"outputBytes":3002,"statusUrl":"/v2/e/status/a""#;
    run(2_000, omitted).is_fine();
    run(5_000, "OUTPUT").is_fine();
    run(5_000, omitted).breaks(TRUTHFUL);
    run(2_000, "OUTPUT").breaks(TRUTHFUL);
    run(2_000, r#""outputOmitted":true,"outputBytes":3002"#).breaks(TRUTHFUL);
}

const FAILED: &str = r#"{"id":"a","status":"FAILED","error":"no","input":{},"webhook":"http://h/"}"#;

/// A job failed, was retried, and completed.
fn completed_after_a_retry() -> Script {
    let mut script = Script::default();
    let body = r#"{"input":{},"webhook":"http://h/"}"#;
    script.ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
    script
        .take("w", "a", "{}")
        .done("w", "a", r#"{"error":"no"}"#)
        .status("a", r#""status":"FAILED","error":"no""#);
    script.ask("POST", "/v2/e/retry/a", "", 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
    script
        .take("w", "a", "{}")
        .done("w", "a", r#"{"output":1}"#)
        .status("a", r#""status":"COMPLETED","output":1"#);
    script
}

#[test]
fn a_call_that_was_in_flight_when_its_job_was_retried_may_still_come() {
    let mut script = completed_after_a_retry();
    script.call(1, FAILED, 200).call(2, BODY, 500).wait(10_000).call(3, BODY, 200).is_fine();
    let mut script = completed_after_a_retry();
    script.call(1, FAILED, 500).wait(10_000).call(2, FAILED, 500).breaks(PACED);
    let mut script = completed_after_a_retry();
    script.wait(100_000).call(1, FAILED, 500).breaks("a job ends once, and its outcome does not change");
}

#[test]
fn each_end_has_its_own_call() {
    let mut script = completed_after_a_retry();
    script.call(1, FAILED, 200).wait(60_000).observe(&Observation::End);
    script.breaks(MADE);
    let mut script = completed_after_a_retry();
    script.call(1, BODY, 200).call(2, BODY, 200).breaks(PACED);
}

#[test]
fn a_webhook_tells_the_truth() {
    const TRUTHFUL: &str = "a webhook reports how the job ended";
    let mut script = completed();
    script.call(1, &BODY.replace("COMPLETED", "IN_PROGRESS"), 200);
    assert!(script.auditor.violations().iter().any(|violation| violation.promise == TRUTHFUL));
    let mut script = completed();
    script.call(1, &BODY.replace(r#""input":{}"#, r#""input":{"x":1}"#), 200).breaks(TRUTHFUL);
    let mut script = completed();
    script.call(1, &BODY.replace(r#""output":1"#, r#""output":2"#), 200);
    script.breaks("a job ends once, and its outcome does not change");
}
