//! An acknowledged job is there until its time has passed, and ends once.

use super::Story;
use crate::auditor::Transition;
use crate::observation::Observation;

#[test]
fn a_healthy_life_raises_no_alarm() {
    let mut story = Story::default();
    story.submit("a", r#"{"n": 1.0}"#).status("a", r#""status":"IN_QUEUE""#);
    story.take("w", "a", r#"{"n": 1.0}"#).ping("w", "a");
    story.done("w", "a", r#"{"status": "IN_PROGRESS", "output": 50}"#);
    story.status("a", r#""status":"IN_PROGRESS","workerId":"w","output":50"#);
    story.done("w", "a", r#"{"output": {"x": 1.0}}"#);
    story.status("a", r#""status":"COMPLETED","workerId":"w","output":{"x": 1.0}"#);
    story.change("cancel", "a", "COMPLETED").wait(1_800_000).missing("a");
    story.is_fine();
    for edge in
        [Transition::Accepted, Transition::Taken, Transition::Completed, Transition::ForgottenCompleted]
    {
        assert_eq!(story.edge(edge), 1, "{edge:?}");
    }
}

#[test]
fn a_job_may_not_be_missing_before_its_time() {
    let mut story = Story::default();
    story.submit("a", "{}").wait(60_000).missing("a");
    story.breaks("an acknowledged job is there until its time has passed");
}

#[test]
fn a_result_may_not_be_missing_before_its_retention_ends() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}").status("a", r#""status":"COMPLETED""#);
    story.wait(1_799_000).missing("a");
    story.breaks("an acknowledged job is there until its time has passed");
}

#[test]
fn a_jump_of_the_clock_explains_a_missing_job() {
    let mut story = Story::default();
    story.submit("a", "{}").jump(86_400_000).missing("a");
    story.is_fine();
}

#[test]
fn a_server_that_begins_with_an_earlier_clock_may_still_show_what_was_gone() {
    let run = |is_restarted: bool| {
        let mut story = Story::default();
        story.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}");
        story.status("a", r#""status":"COMPLETED""#).jump(1_800_000).missing("a").jump(-300_000);
        if is_restarted {
            story.see(&Observation::ServerDown(true));
            story.wait(1_000).see(&Observation::ServerUp);
        }
        let asked = story.arrive("GET", "/v2/e/status/a", "");
        // The clock goes on while the response is in flight.
        story.wait(400_000).answer(asked, 200, r#"{"id":"a","status":"COMPLETED"}"#);
        story
    };
    run(true).is_fine();
    run(false).breaks("a job past its time is gone, and stays so");
}

#[test]
fn a_server_that_begins_with_an_earlier_clock_may_hand_out_what_was_gone() {
    for wait_ms in [1_000, 400_000] {
        let mut story = Story::default();
        let pinned = r#"{"id":"a","status":"IN_QUEUE"}"#;
        story.see(&Observation::WorkerStarted("w".to_owned(), "e".to_owned()));
        story.submit("a", "{}").ask("GET", "/v2/e/status/a?ttl=5000", "", 200, pinned);
        story.jump(-300_000).wait(6_000).missing("a").see(&Observation::ServerDown(false));
        story.wait(wait_ms).see(&Observation::ServerUp);
        story.take("w", "a", "{}");
        if wait_ms < 300_000 {
            story.see(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
            story
                .status("a", r#""status":"IN_PROGRESS","workerId":"w""#)
                .wait(240_000)
                .ping("w", "a")
                .is_fine();
        } else {
            story.breaks("only a waiting job is handed out");
        }
    }
}

#[test]
fn a_job_may_not_end_twice() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}").status("a", r#""status":"COMPLETED""#);
    story.change("cancel", "a", "CANCELLED");
    story.breaks("a job ends once, and its outcome does not change");
}

#[test]
fn an_outcome_needs_a_cause() {
    for record in [
        r#""status":"COMPLETED""#,
        r#""status":"FAILED","error":"e""#,
        r#""status":"CANCELLED""#,
        r#""status":"TIMED_OUT""#,
    ] {
        let mut story = Story::default();
        story.submit("a", "{}").take("w", "a", "{}").status("a", record);
        story.breaks("an outcome has a cause that came first");
    }
}

#[test]
fn a_request_without_an_answer_may_have_taken_effect() {
    let mut story = Story::default();
    story.submit("a", "{}");
    let cancel = story.arrive("POST", "/v2/e/cancel/a", "");
    story.lose(cancel).status("a", r#""status":"IN_QUEUE""#).status("a", r#""status":"CANCELLED""#);
    story.is_fine();
    story.status("a", r#""status":"IN_QUEUE""#).breaks("a job ends once, and its outcome does not change");
}
