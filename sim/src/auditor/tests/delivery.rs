//! Jobs go to one worker at a time, in order, and its results count.

use super::Story;
use crate::auditor::{Rules, Transition};
use crate::observation::Observation;

const HELD_ONCE: &str = "a job is not handed out while its worker may still have it";
const CAUSED: &str = "an outcome has a cause that came first";
const IN_ORDER: &str = "jobs are handed out in order";

fn started(story: &mut Story, workers: &[&str]) {
    for worker in workers {
        story.see(&Observation::WorkerStarted((*worker).to_owned(), "e".to_owned()));
    }
}

#[test]
fn a_worker_gets_the_very_input() {
    let mut story = Story::default();
    story.submit("a", r#"{"n": 1.0}"#).take("w", "a", r#"{"n": 1}"#);
    story.breaks("a worker gets the input byte for byte");
}

#[test]
fn a_worker_may_get_a_job_before_its_submitter_knows() {
    let mut story = Story::default();
    let submit = story.arrive("POST", "/v2/e/run", r#"{"input":{"x":1}}"#);
    story.take("w", "a", r#"{"x":1}"#);
    story.answer(submit, 200, r#"{"id":"a","status":"IN_PROGRESS"}"#).is_fine();
    story.take("w", "b", r#"{"x":2}"#).breaks("only a waiting job is handed out");
}

#[test]
fn a_job_is_not_handed_out_after_its_end() {
    let mut story = Story::default();
    story.submit("a", "{}").change("cancel", "a", "CANCELLED").take("w", "a", "{}");
    story.breaks("only a waiting job is handed out");
}

#[test]
fn a_job_has_one_holder() {
    let mut story = Story::default();
    started(&mut story, &["v", "w"]);
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").take("w", "a", "{}").breaks(HELD_ONCE);
}

#[test]
fn a_ping_under_way_lists_nothing_of_what_is_handed_out_meanwhile() {
    let given = r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#;
    for is_under_way in [true, false] {
        let mut story = Story::default();
        started(&mut story, &["v", "w"]);
        story.submit("a", "{}");
        let ping = story.arrive("GET", "/v2/e/ping/v?gpu=x", "");
        if !is_under_way {
            story.answer(ping, 200, "");
        }
        let take = story.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
        if is_under_way {
            story.answer(ping, 200, "");
        }
        story.answer(take, 200, given).ping("v", "").take("w", "a", "{}");
        if is_under_way {
            story.is_fine();
        } else {
            story.breaks(HELD_ONCE);
        }
    }
}

#[test]
fn a_dead_worker_is_followed_by_another_and_counts() {
    let mut story = Story::default();
    started(&mut story, &["v", "w"]);
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    story.see(&Observation::WorkerEnded("v".to_owned(), false));
    story.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#);
    story.is_fine();
    assert_eq!(story.edge(Transition::WorkerLostRequeued), 1);
    story.status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
    story.breaks("retries count lost workers, and nothing else");
}

#[test]
fn a_drained_worker_does_not_count() {
    let mut story = Story::default();
    started(&mut story, &["v", "w"]);
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a");
    story.see(&Observation::WorkerEnded("v".to_owned(), true));
    story.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w""#);
    story.is_fine();
    assert_eq!(story.edge(Transition::DrainedRequeued), 1);
    story.status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#);
    story.breaks("retries count lost workers, and nothing else");
}

#[test]
fn a_silent_worker_may_be_late_and_still_win() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}");
    story.done("v", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
    story.is_fine();
    assert_eq!(story.edge(Transition::CompletedLate), 1);
}

#[test]
fn a_result_is_one_that_was_posted() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":1}"#);
    story.status("a", r#""status":"COMPLETED","output":1.0"#).breaks(CAUSED);
}

#[test]
fn a_result_of_a_job_that_nobody_had_is_none() {
    let mut story = Story::default();
    story.submit("a", "{}").done("w", "a", r#"{"output":1}"#);
    story.status("a", r#""status":"COMPLETED","output":1"#).breaks(CAUSED);
}

#[test]
fn an_error_of_a_worker_that_lost_the_job_is_none() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
    story.done("v", "a", r#"{"error":"late"}"#).status("a", r#""status":"FAILED","error":"late""#);
    story.breaks(CAUSED);
}

#[test]
fn the_first_result_wins() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}");
    story.done("w", "a", r#"{"output":2}"#).done("v", "a", r#"{"output":1}"#);
    story.status("a", r#""status":"COMPLETED","output":1"#).breaks(CAUSED);
}

#[test]
fn a_result_that_is_too_long_is_none_of_a_worker_that_lost_the_job() {
    for output_bytes_max in [1, 1_000] {
        let mut story = Story::with(Rules { output_bytes_max, ..Rules::default() });
        story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").wait(100_000);
        story.take("w", "a", "{}").done("v", "a", r#"{"output":12}"#).wait(100_000).take("x", "a", "{}");
        if output_bytes_max == 1 {
            story.is_fine();
        } else {
            story.breaks("only a waiting job is handed out");
        }
    }
}

#[test]
fn an_accepted_result_is_not_forgotten() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":2}"#);
    story.status("a", r#""status":"IN_PROGRESS""#);
    story.breaks("a job ends once, and its outcome does not change");
}

#[test]
fn numbers_that_json_does_not_know_become_null() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").done("w", "a", r#"{"output":["NaN",NaN,-Infinity]}"#);
    story.status("a", r#""status":"COMPLETED","output":["NaN",null,null]"#).is_fine();
}

#[test]
fn progress_and_chunks_come_from_the_holder() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
    story.chunk("w", "a", "1").stream("a", "offset=0", r#"[{"output":1}]"#).is_fine();
    story.chunk("v", "a", "2").stream("a", "offset=0", r#"[{"output":1},{"output":2}]"#);
    story.breaks("progress and chunks come from who holds the job");
}

#[test]
fn no_chunk_is_lost() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").chunk("w", "a", "2");
    story.stream("a", "offset=0", r#"[{"output":2}]"#);
    story.breaks("progress and chunks come from who holds the job");
}

#[test]
fn the_first_in_is_the_first_out() {
    let mut story = Story::default();
    story.submit("a", r#"{"n":1}"#).submit("b", r#"{"n":2}"#).take("w", "b", r#"{"n":2}"#);
    story.take("v", "a", r#"{"n":1}"#).breaks("jobs are handed out in order");
}

#[test]
fn what_a_worker_lost_comes_before_what_came_later() {
    let mut story = Story::default();
    story.submit("a", r#"{"n":1}"#).take("v", "a", r#"{"n":1}"#).submit("b", r#"{"n":2}"#).wait(16_000);
    story.status("a", r#""status":"IN_QUEUE","retries":1"#).take("w", "b", r#"{"n":2}"#);
    story.take("x", "a", r#"{"n":1}"#).breaks("jobs are handed out in order");
}

#[test]
fn a_time_out_takes_its_time() {
    let mut story = Story::default();
    story
        .submit("a", "{}")
        .take("w", "a", "{}")
        .wait(599_000)
        .status("a", r#""status":"TIMED_OUT","error":"e""#);
    story.breaks(CAUSED);
    let mut story = Story::default();
    story
        .submit("a", "{}")
        .take("w", "a", "{}")
        .wait(600_000)
        .status("a", r#""status":"TIMED_OUT","error":"e""#);
    story.is_fine();
}

#[test]
fn a_job_fails_after_too_many_losses_and_not_before() {
    let mut story = Story::default();
    story.submit("a", "{}");
    for worker in ["u", "v", "w"] {
        story.take(worker, "a", "{}").wait(16_000);
    }
    story.status("a", r#""status":"FAILED","error":"given up","retries":2"#).is_fine();
    assert_eq!(story.edge(Transition::WorkerLostFailed), 1);
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").wait(16_000).take("w", "a", "{}").wait(16_000);
    story.status("a", r#""status":"FAILED","error":"given up","retries":1"#).breaks(CAUSED);
}

#[test]
fn a_take_that_a_power_cut_made_void_may_have_handed_out_what_then_waits_for_a_lease() {
    let run = |status: u16| {
        let mut story = Story::default();
        story.ask("POST", "/v1/endpoints", "{}", 200, r#"{"id":"e","durability":"buffered"}"#);
        story.submit("a", "{}");
        let take = story.arrive("GET", "/v2/e/job-take-batch/v?gpu=x&batch_size=2&job_in_progress=0", "");
        story.submit("b", "{}").wait(1_000).see(&Observation::ServerDown(true));
        story.answer(take, status, "").wait(1_000).see(&Observation::ServerUp);
        story.take("w", "b", "{}").wait(16_000).take("w", "a", "{}");
        story
    };
    run(429).is_fine();
    run(204).breaks(IN_ORDER);
}

/// A worker asks for several jobs, and gets these.
fn take_together(story: &mut Story, worker: &str, jobs: &[(&str, &str)]) {
    let job = |(id, input): &(&str, &str)| {
        format!(r#"{{"id":"{id}","delayTime":1,"status":"IN_PROGRESS","input":{input}}}"#)
    };
    let answer = format!("[{}]", jobs.iter().map(job).collect::<Vec<_>>().join(","));
    let path = format!("/v2/e/job-take-batch/{worker}?gpu=x&batch_size=9&job_in_progress=0");
    story.ask("GET", &path, "", 200, &answer);
}

#[test]
fn a_job_that_cannot_be_read_fails_alone() {
    let unreadable = r#"{"unreadable":true}"#;
    let given_up = r#"{"id":"a","status":"FAILED","delayTime":1,"executionTime":1,"workerId":"w","retries":2,"error":"given up"}"#;
    for is_alone_in_the_end in [false, true] {
        let mut story = Story::default();
        started(&mut story, &["w"]);
        story.submit("a", "{}").submit("b", unreadable);
        for time in 0..6 {
            let together: &[_] = &[("a", "{}"), ("b", unreadable)];
            take_together(
                &mut story,
                "w",
                if is_alone_in_the_end && time > 0 { &together[..1] } else { together },
            );
        }
        story.ask("GET", "/v2/e/status/a", "", 200, given_up);
        if is_alone_in_the_end {
            story.is_fine();
        } else {
            story.breaks("a job that no worker can read fails alone");
        }
    }
}
