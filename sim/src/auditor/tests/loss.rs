//! When a job may be handed out although a worker was given it before.

use super::Story;
use crate::auditor::Rules;
use crate::observation::Observation;

const HELD_ONCE: &str = "a job is not handed out while its worker may still have it";
const GIVEN: &str = r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#;

/// On an endpoint that tries again where a handler reported an error.
fn with_retries(rules: Rules) -> Story {
    let mut story = Story::with(rules);
    let record = r#"{"id":"e","retryOn":["handlerError"]}"#;
    story.ask("POST", "/v1/endpoints", "{}", 200, record);
    for worker in ["v", "w"] {
        story.see(&Observation::WorkerStarted(worker.to_owned(), "e".to_owned()));
    }
    story
}

#[test]
fn a_question_for_what_to_stop_is_a_sign_of_life_unless_it_is_refused() {
    for status in [204, 503] {
        let mut story = Story::default();
        story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
        story.ask("GET", "/v2/e/job-stop/v?gpu=x", "", status, "").wait(2_000).take("w", "a", "{}");
        if status == 204 {
            story.breaks(HELD_ONCE);
        } else {
            story.is_fine();
        }
    }
}

#[test]
fn a_request_that_broke_off_may_have_been_heard_by_nobody() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(14_000);
    let ping = story.arrive("GET", "/v2/e/ping/v?gpu=x&job_id=a", "");
    story.lose(ping).wait(2_000).take("w", "a", "{}").is_fine();
}

#[test]
fn an_answer_that_may_have_crossed_others_tells_of_no_loss_before_it() {
    for may_have_lost_it in [true, false] {
        let mut story = with_retries(Rules::default());
        story.submit("a", "{}");
        let take = story.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        if may_have_lost_it {
            story.ping("w", "").ping("w", "");
        }
        story.take("v", "a", "{}").ping("v", "a").see(&Observation::WorkerEnded("v".to_owned(), false));
        story.answer(take, 200, GIVEN).status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
        if may_have_lost_it {
            story.is_fine();
        } else {
            story.breaks("retries count lost workers, and nothing else");
        }
    }
}

#[test]
fn an_old_answer_tells_nothing_of_the_life_after_a_retry() {
    for is_old in [true, false] {
        let mut story = Story::default();
        story.submit("a", "{}");
        let take = |story: &mut Story| story.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
        let first = take(&mut story);
        if !is_old {
            story.answer(first, 200, GIVEN);
        }
        story.wait(600_000).status("a", r#""status":"TIMED_OUT","error":"e""#);
        story.change("retry", "a", "IN_QUEUE");
        let given = if is_old { first } else { take(&mut story) };
        story.answer(given, 200, GIVEN).ping("v", "a").take("w", "a", "{}");
        if is_old {
            story.is_fine();
        } else {
            story.breaks(HELD_ONCE);
        }
    }
}

#[test]
fn an_error_of_an_earlier_run_ends_the_one_that_is_on_its_way_to_the_same_worker() {
    let mut story = with_retries(Rules::default());
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000);
    let take = story.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
    story.done("v", "a", r#"{"error":"first run"}"#).answer(take, 200, GIVEN).take("v", "a", "{}").is_fine();
    story.take("w", "a", "{}").breaks(HELD_ONCE);
}

#[test]
fn a_chunk_that_is_too_large_fails_no_run() {
    for chunk in [r#"{"text":"ten"}"#, r#""tententen""#] {
        let mut story = with_retries(Rules { chunk_bytes_max: 10, ..Rules::default() });
        story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", chunk);
        story.take("w", "a", "{}").breaks(HELD_ONCE);
    }
}
