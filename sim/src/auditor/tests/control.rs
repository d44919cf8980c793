//! Cancels, retries, purges, keys, and what stops.

use super::Script;
use crate::auditor::Transition;
use crate::observation::Observation;

#[test]
fn a_cancel_ends_the_job() {
    let mut script = Script::default();
    script.submit("a", "{}").change("cancel", "a", "IN_QUEUE").breaks("a cancelled job has ended");
}

#[test]
fn a_cancelled_job_stays_cancelled() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").change("cancel", "a", "CANCELLED");
    script.done("w", "a", r#"{"output":1}"#).status("a", r#""status":"CANCELLED","workerId":"w""#).is_fine();
    script.status("a", r#""status":"COMPLETED","output":1"#);
    script.breaks("a job ends once, and its outcome does not change");
}

#[test]
fn a_cancelled_job_stops_running() {
    let mut script = Script::default();
    script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
    script.submit("a", "{}").take("w", "a", "{}");
    script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
    script.change("cancel", "a", "CANCELLED").wait(300_000).ping("w", "a");
    script.breaks("a job that has ended stops running");
}

#[test]
fn what_a_worker_was_told_to_stop_is_forgotten_with_the_server() {
    let run = |is_heard: bool| {
        let mut script = Script::default();
        script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
        script.submit("a", "{}").take("w", "a", "{}");
        script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
        script.change("cancel", "a", "CANCELLED").observe(&Observation::ServerDown(true));
        script.wait(1_000).observe(&Observation::ServerUp);
        if is_heard {
            script.wait(1_000).ping("w", "a");
        }
        script.wait(300_000).ping("v", "");
        script
    };
    run(false).is_fine();
    run(true).breaks("a job that has ended stops running");
}

#[test]
fn a_worker_whose_job_was_deleted_before_a_restart_is_unknown_afterwards() {
    let run = |policy: &str, retention_ms: u64| {
        let mut script = Script::default();
        let settings = format!(r#"{{"id":"e","resultRetentionMs":{retention_ms}}}"#);
        script.ask("POST", "/v1/endpoints", "{}", 200, &settings);
        script.observe(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
        let body = format!(r#"{{"input":{{}},"policy":{policy}}}"#);
        script.ask("POST", "/v2/e/run", &body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#).take("w", "a", "{}");
        script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
        script.wait(20_000).observe(&Observation::ServerDown(true));
        script.wait(10_000).observe(&Observation::ServerUp);
        script.missing("a").wait(300_000).ping("v", "");
        script
    };
    let still_runs = "a job that has ended stops running";
    run(r#"{"ttl":15000}"#, 60_000).is_fine();
    run(r#"{"ttl":25000}"#, 60_000).breaks(still_runs);
    run(r#"{"executionTimeout":5000}"#, 10_000).is_fine();
    run(r#"{"executionTimeout":5000}"#, 20_000).breaks(still_runs);
}

#[test]
fn a_purge_may_hit_what_a_silent_worker_lost() {
    let run = |answer_takes_ms: u64, retries: u32| {
        let mut script = Script::default();
        script.submit("a", "{}");
        let take = script.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        script.wait(answer_takes_ms);
        script.answer(take, 200, r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#);
        script.wait(10_000).purge(1).status("a", &format!(r#""status":"CANCELLED","retries":{retries}"#));
        script
    };
    run(8_000, 1).is_fine();
    run(1_000, 0).breaks("every outcome has an earlier cause");
}

#[test]
fn a_retry_begins_a_new_life() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"error":"e"}"#);
    script.status("a", r#""status":"FAILED","error":"e""#).change("retry", "a", "IN_QUEUE");
    script
        .take("w", "a", "{}")
        .done("w", "a", r#"{"output":1}"#)
        .status("a", r#""status":"COMPLETED","output":1"#);
    script.is_fine();
    assert_eq!(
        (
            script.transition_count(Transition::FailedByHandler),
            script.transition_count(Transition::RetriedFailed)
        ),
        (1, 1)
    );
    script.change("retry", "a", "IN_QUEUE").breaks("only a failed or timed-out job is retried");
}

#[test]
fn a_retry_without_an_answer_may_begin_a_new_life() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"error":"e"}"#);
    script.status("a", r#""status":"FAILED","error":"e""#);
    let retry = script.arrive("POST", "/v2/e/retry/a", "");
    script.lose(retry).status("a", r#""status":"FAILED","error":"e""#).status("a", r#""status":"IN_QUEUE""#);
    script.is_fine();
}

#[test]
fn the_end_after_a_retry_may_be_told_before_the_retry_is_answered() {
    const DONE: &str = "/v2/e/job-done/w/a?gpu=x&isStream=false";
    const QUEUED: &str = r#"{"id":"a","status":"IN_QUEUE"}"#;
    let posted = |body: &str| {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").arrive("POST", DONE, body);
        script
    };
    let mut script = posted(r#"{"error":"e"}"#);
    let retry = script.arrive("POST", "/v2/e/retry/a", "");
    script.change("cancel", "a", "CANCELLED").answer(retry, 200, QUEUED);
    script.status("a", r#""status":"CANCELLED""#).is_fine();
    // Only the worker knows that it failed.
    let run = |result: &str| {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").done("w", "a", result);
        let retry = script.arrive("POST", "/v2/e/retry/a", "");
        script.change("cancel", "a", "CANCELLED");
        (script, retry)
    };
    let (mut script, retry) = run(r#"{"error":"e"}"#);
    script.answer(retry, 200, QUEUED).status("a", r#""status":"CANCELLED""#).is_fine();
    run(r#"{"output":1}"#).0.breaks("every outcome has an earlier cause");
    // It was cancelled before the retry came.
    let mut script = posted(r#"{"error":"e"}"#);
    script.change("cancel", "a", "CANCELLED");
    let retry = script.arrive("POST", "/v2/e/retry/a", "");
    script.answer(retry, 200, QUEUED).breaks("only a failed or timed-out job is retried");
    // The job was completed before the retry came, and no worker has run it since.
    let mut script = posted(r#"{"output":1}"#);
    let retry = script.arrive("POST", "/v2/e/retry/a", "");
    script.status("a", r#""status":"COMPLETED","output":1"#).answer(retry, 200, QUEUED);
    script.breaks("every outcome has an earlier cause");
}

#[test]
fn a_failed_job_may_be_retried() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"error":"e"}"#);
    script.status("a", r#""status":"FAILED","error":"e""#).ask("POST", "/v2/e/retry/a", "", 400, "");
    script.breaks("only a failed or timed-out job is retried");
}

#[test]
fn a_purge_hits_what_waits() {
    let mut script = Script::default();
    script.submit("a", "{}").purge(1).status("a", r#""status":"CANCELLED""#).is_fine();
    assert_eq!(script.transition_count(Transition::Purged), 1);
    let mut script = Script::default();
    script
        .submit("a", "{}")
        .purge(1)
        .take("w", "a", "{}")
        .breaks("a purge cancels the queued jobs, and no others");
    let mut script = Script::default();
    script.submit("a", "{}").purge(2).breaks("a purge cancels the queued jobs, and no others");
}

#[test]
fn a_purge_without_an_answer_may_have_been_or_not() {
    let run = |is_answered: bool| {
        let mut script = Script::default();
        script.submit("a", "{}");
        let purge = script.arrive("POST", "/v2/e/purge-queue", "");
        if is_answered {
            script.answer(purge, 200, r#"{"removed":1,"status":"completed"}"#);
        }
        script.observe(&Observation::ServerDown(false));
        if !is_answered {
            script.lose(purge);
        }
        script.observe(&Observation::ServerUp);
        script
    };
    run(false).take("w", "a", "{}").is_fine();
    run(false).status("a", r#""status":"CANCELLED""#).is_fine();
    run(true).take("w", "a", "{}").breaks("a purge cancels the queued jobs, and no others");
}

#[test]
fn a_purge_hits_nothing_that_comes_later_or_runs() {
    let mut script = Script::default();
    script.purge(0).submit("a", "{}").status("a", r#""status":"CANCELLED""#);
    script.breaks("every outcome has an earlier cause");
    let mut script = Script::default();
    script
        .submit("a", "{}")
        .take("w", "a", "{}")
        .purge(0)
        .status("a", r#""status":"CANCELLED","workerId":"w""#);
    script.breaks("every outcome has an earlier cause");
}

#[test]
fn a_key_stands_for_one_job() {
    const ONE_JOB: &str = "an idempotency key identifies one job";
    let mut script = Script::default();
    script.submit_with_key("k", "{}", 200, "a").submit_with_key("k", "{}", 200, "a");
    script.submit_with_key("k", r#"{"x":1}"#, 409, "").is_fine();
    script.submit_with_key("k", "{}", 200, "b").breaks(ONE_JOB);
    let mut script = Script::default();
    script.submit_with_key("k", "{}", 200, "a").submit_with_key("k", r#"{"x":1}"#, 200, "a").breaks(ONE_JOB);
    let mut script = Script::default();
    script.submit_with_key("k", "{}", 409, "").breaks(ONE_JOB);
}

#[test]
fn a_key_is_free_when_its_job_is_gone() {
    let mut script = Script::default();
    script.submit_with_key("k", "{}", 200, "a").wait(86_400_000).submit_with_key("k", r#"{"x":1}"#, 200, "b");
    script.is_fine();
}

#[test]
fn a_ttl_of_a_clients_choice_counts() {
    let mut script = Script::default();
    script.submit("a", "{}").ask(
        "GET",
        "/v2/e/status/a?ttl=5000",
        "",
        200,
        r#"{"id":"a","status":"IN_QUEUE"}"#,
    );
    script.wait(5_000).missing("a").is_fine();
    assert_eq!(script.transition_count(Transition::ExpiredQueued), 1);
    let mut script = Script::default();
    script.submit("a", "{}").ask(
        "GET",
        "/v2/e/status/a?ttl=5000",
        "",
        200,
        r#"{"id":"a","status":"IN_QUEUE"}"#,
    );
    script
        .wait(5_100)
        .status("a", r#""status":"IN_QUEUE""#)
        .breaks("a job past its time is gone, and stays so");
}
