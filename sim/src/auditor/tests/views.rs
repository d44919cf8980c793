//! Streams, waits, deadlines and workers: what the server must do, and must not do, by itself.

use super::Story;
use crate::auditor::Rules;
use crate::observation::Observation;

const FROM_HOLDER: &str = "progress and chunks come from who holds the job";
const TIMED_OUT: &str = "no job runs past its execution timeout";
const LEASE_ENDS: &str = "a job does not stay with a worker that is gone";
const RETRIES: &str = "retries count lost workers, and nothing else";

/// An endpoint is created, with these members.
fn create(story: &mut Story, members: &str) {
    story.ask("POST", "/v1/endpoints", "{}", 200, &format!(r#"{{"id":"e",{members}}}"#));
}

fn started(story: &mut Story, worker: &str) {
    story.see(&Observation::WorkerStarted(worker.to_owned(), "e".to_owned()));
}

#[test]
fn the_chunks_of_a_run_go_with_it() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
    story.stream("a", "offset=0", r#"[{"output":1}]"#).wait(16_000);
    story.status("a", r#""status":"IN_QUEUE","retries":1"#).stream("a", "offset=0", "[]").is_fine();
    story.stream("a", "offset=0", r#"[{"output":1}]"#).breaks(FROM_HOLDER);
}

#[test]
fn the_chunks_of_a_worker_that_has_nothing_in_progress_go_with_its_run() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1");
    story.ask("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "", 204, "");
    story.stream("a", "offset=0", "[]").is_fine();
}

#[test]
fn a_result_of_a_job_that_waits_again_is_in_time() {
    for is_lost in [true, false] {
        let mut story = Story::default();
        let body = r#"{"input":{},"policy":{"executionTimeout":5000}}"#;
        story.ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
        story.take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
        for _ in 0..4 {
            story.wait(10_000);
            if !is_lost {
                story.ping("w", "a");
            }
        }
        story.done("v", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
        if is_lost {
            story.is_fine();
        } else {
            story.breaks(TIMED_OUT);
        }
    }
}

#[test]
fn chunks_of_a_job_that_was_taken_back_on_its_way_to_the_worker_are_not_kept() {
    for pings in [2, 1] {
        let mut story = Story::default();
        story.submit("a", "{}");
        let take = story.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        (0..pings).for_each(|_| _ = story.ping("w", ""));
        story.answer(take, 200, r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#);
        story.ping("w", "a").chunk("w", "a", "1").done("w", "a", r#"{"output":[]}"#);
        story.stream("a", "offset=0", "[]");
        if pings == 2 {
            story.is_fine();
        } else {
            story.breaks(FROM_HOLDER);
        }
    }
}

#[test]
fn a_retry_begins_with_nothing() {
    let mut story = Story::default();
    story.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
    story.done("v", "a", r#"{"error":"e"}"#).status("a", r#""status":"FAILED","error":"e""#);
    story
        .change("retry", "a", "IN_QUEUE")
        .stream("a", "offset=0", "[]")
        .status("a", r#""status":"IN_QUEUE""#);
    story.is_fine();
    story.stream("a", "offset=0", r#"[{"output":1}]"#).breaks(FROM_HOLDER);
}

#[test]
fn what_waits_shows_no_error() {
    let mut story = Story::default();
    story.submit("a", "{}").status("a", r#""status":"IN_QUEUE","error":"e""#);
    story.breaks("an outcome has a cause that came first");
}

#[test]
fn a_chunk_is_drained_once() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").wait(61_000);
    story.stream("a", "", r#"[{"output":1}]"#).ping("w", "a").chunk("w", "a", "1").wait(61_000);
    story.stream("a", "", r#"[{"output":1}]"#).stream("a", "", "[]").is_fine();
    story.stream("a", "", r#"[{"output":1}]"#).breaks("a drained chunk does not come again");
}

#[test]
fn readers_who_ask_at_once_may_get_the_same_chunk() {
    for at_once in [true, false] {
        let mut story = Story::default();
        story.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").wait(61_000);
        let first = story.arrive("GET", "/v2/e/stream/a", "");
        if !at_once {
            story.answer(first, 200, r#"[{"output":1}]"#);
        }
        let second = story.arrive("GET", "/v2/e/stream/a", "");
        if at_once {
            story.answer(first, 200, r#"[{"output":1}]"#);
        }
        story.answer(second, 200, r#"[{"output":1}]"#).ping("w", "a").chunk("w", "a", "1").wait(61_000);
        story.stream("a", "", r#"[{"output":1}]"#);
        if at_once {
            story.is_fine();
        } else {
            story.breaks("a drained chunk does not come again");
        }
    }
}

#[test]
fn a_run_is_ended_at_its_timeout() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    let mut story = Story::with(rules);
    story.submit("a", "{}").wait(100_000).take("w", "a", "{}").ping("w", "a").wait(12_000).ping("w", "a");
    story.status("a", r#""status":"IN_PROGRESS""#).wait(12_000).ping("w", "a").is_fine();
    story.wait(12_000).ping("w", "a").wait(12_000).ping("w", "a");
    story.status("a", r#""status":"IN_PROGRESS""#).breaks(TIMED_OUT);
}

#[test]
fn a_result_after_the_timeout_is_none() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    let mut story = Story::with(rules);
    story.submit("a", "{}").wait(100_000).take("w", "a", "{}");
    for _ in 0..5 {
        story.wait(12_000).ping("w", "a");
    }
    story.done("w", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
    story.breaks(TIMED_OUT);
}

#[test]
fn a_run_may_time_out_before_the_answer_that_gave_it_is_here() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    for run_ms in [4_000, 12_000] {
        let mut story = Story::with(rules.clone());
        story.submit("a", "{}").take("v", "a", "{}").wait(12_000).status("a", r#""status":"TIMED_OUT""#);
        story.change("retry", "a", "IN_QUEUE");
        let take = story.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        story.wait(run_ms).status("a", r#""status":"TIMED_OUT""#);
        story.answer(take, 200, r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#);
        story.wait(1_000).status("a", r#""status":"TIMED_OUT""#);
        if run_ms < 10_000 {
            story.breaks("an outcome has a cause that came first");
        } else {
            story.is_fine();
        }
    }
}

#[test]
fn a_job_leaves_a_worker_that_is_silent() {
    let mut story = Story::default();
    story.wait(100_000).submit("a", "{}").take("w", "a", "{}").ping("w", "a").wait(5_000).ping("w", "a");
    story.wait(20_000).status("a", r#""status":"IN_PROGRESS""#).is_fine();
    story.wait(80_000).status("a", r#""status":"IN_PROGRESS""#).breaks(LEASE_ENDS);
}

#[test]
fn a_worker_that_came_back_from_a_silence_has_to_ping_anew() {
    for pings_again in [false, true] {
        let mut story = Story::default();
        story.wait(100_000).ping("w", "").wait(1_000).ping("w", "").wait(20_000);
        story.submit("a", "{}").take("w", "a", "{}");
        if pings_again {
            story.ping("w", "a").wait(1_000).ping("w", "a");
        }
        story.wait(100_000).status("a", r#""status":"IN_PROGRESS""#);
        if pings_again {
            story.breaks(LEASE_ENDS);
        } else {
            story.is_fine();
        }
    }
}

#[test]
fn a_worker_from_which_nothing_came_may_not_ping() {
    let mut story = Story::default();
    story.wait(100_000).submit("a", "{}").take("w", "a", "{}").wait(100_000);
    story.status("a", r#""status":"IN_PROGRESS""#).is_fine();
}

#[test]
fn a_job_leaves_a_worker_that_the_next_server_never_hears_of() {
    for speaks in [false, true] {
        let mut story = Story::default();
        story
            .wait(100_000)
            .submit("a", "{}")
            .take("w", "a", "{}")
            .wait(1_000)
            .see(&Observation::ServerDown(true));
        story.wait(1_000).see(&Observation::ServerUp);
        story.wait(20_000).status("a", r#""status":"IN_PROGRESS""#).is_fine();
        if speaks {
            story.ask("GET", "/v2/e/job-stop/w?gpu=x", "", 204, "");
        }
        story.wait(80_000).status("a", r#""status":"IN_PROGRESS""#);
        if speaks {
            story.is_fine();
        } else {
            story.breaks(LEASE_ENDS);
        }
    }
}

#[test]
fn a_wait_ends_with_the_job() {
    let mut story = Story::default();
    story.submit("a", "{}").take("w", "a", "{}");
    let waits = [(); 2].map(|()| story.arrive("GET", "/v2/e/status-sync/a?wait=300000", ""));
    story.done("w", "a", r#"{"output":1}"#);
    let record = r#"{"id":"a","status":"COMPLETED","output":1}"#;
    story.answer(waits[0], 200, record).is_fine();
    story.wait(61_000).answer(waits[1], 200, record);
    story.breaks("who waits for a job's end is told soon");
}

#[test]
fn retries_end() {
    let mut story = Story::default();
    create(&mut story, r#""maxRetries":1"#);
    story.submit("a", "{}").take("u", "a", "{}").wait(16_000).take("v", "a", "{}").wait(16_000);
    story.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","retries":1"#).is_fine();
    story.status("a", r#""status":"IN_PROGRESS","retries":2"#).breaks(RETRIES);
}

#[test]
fn what_never_arrived_was_not_lost() {
    let mut story = Story::default();
    story.submit("a", "{}");
    let lost = story.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
    story.lose(lost).take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w""#).is_fine();
    story.status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#).breaks(RETRIES);
}

#[test]
fn a_worker_is_not_ended_in_the_middle_of_a_job() {
    let run = |clings: bool| {
        let mut story = Story::default();
        started(&mut story, "w");
        if clings {
            story.submit("a", r#"{"n":1}"#).take("w", "a", r#"{"n":1}"#);
            story.see(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
            story.change("cancel", "a", "CANCELLED").wait(5_000).ping("w", "a");
        }
        story.submit("b", r#"{"n":2}"#).take("w", "b", r#"{"n":2}"#);
        story.see(&Observation::HandlerBegan("w".to_owned(), "b".to_owned()));
        story.ping("w", "b");
        story.see(&Observation::WorkerEnded("w".to_owned(), true));
        story
    };
    run(true).is_fine();
    run(false).breaks("the server ends no worker that does its work");
}

#[test]
fn a_worker_of_an_old_version_gets_nothing_more() {
    let mut story = Story::default();
    create(&mut story, r#""templateId":"one""#);
    started(&mut story, "v");
    let change = story.arrive("PATCH", "/v1/endpoints/e", r#"{"templateId":"two"}"#);
    story.answer(change, 200, r#"{"id":"e","templateId":"two"}"#);
    started(&mut story, "w");
    story.wait(30_000).submit("a", r#"{"n":1}"#).take("w", "a", r#"{"n":1}"#).is_fine();
    story.submit("b", r#"{"n":2}"#).take("v", "b", r#"{"n":2}"#);
    story.breaks("a worker of an old version gets no more jobs");
}

#[test]
fn a_fleet_has_a_limit() {
    let mut story = Story::default();
    create(&mut story, r#""workersMax":1"#);
    story.wait(100_000);
    started(&mut story, "u");
    story.see(&Observation::WorkerEnded("u".to_owned(), true));
    started(&mut story, "v");
    story.is_fine();
    started(&mut story, "w");
    story.breaks("there are no more workers than allowed");
}

#[test]
fn a_silent_worker_is_ended() {
    let mut story = Story::default();
    create(&mut story, r#""workersMin":1,"workersMax":1"#);
    started(&mut story, "w");
    story.wait(100_000).ping("w", "").wait(5_000).ping("w", "").wait(200_000).see(&Observation::End);
    story.breaks("at rest no silent worker is kept");
}

#[test]
fn a_worker_that_was_taken_over_is_not_waited_for_for_ever() {
    let run = |waited_ms: u64| {
        let mut story = Story::default();
        create(&mut story, r#""workersMin":1,"workersMax":1"#);
        started(&mut story, "w");
        story.wait(1_000).ping("w", "").wait(1_000).see(&Observation::ServerDown(true));
        story.wait(1_000).see(&Observation::ServerUp);
        story.see(&Observation::Calm);
        story.wait(waited_ms).see(&Observation::End);
        story
    };
    run(30 * 60_000).is_fine();
    run(32 * 60_000).breaks("at rest no silent worker is kept");
}

#[test]
fn an_accepted_hook_is_settled_for_good() {
    let body = r#"{"input":{},"webhook":"http://h/"}"#;
    let done = r#"{"id":"a","status":"COMPLETED","output":1,"input":{},"webhook":"http://h/"}"#;
    let run = |crash_after_ms: u64| {
        let mut story = Story::default();
        story.wait(100_000).ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
        story.take("w", "a", "{}").done("w", "a", r#"{"output":1}"#).call(1, done, 200);
        story.wait(crash_after_ms).see(&Observation::ServerDown(true));
        story.wait(1_000).see(&Observation::ServerUp);
        story.wait(1_000).call(2, done, 200);
        story
    };
    run(10).is_fine();
    run(100_000).breaks("a webhook is not called too soon, too often, or after it was accepted");
}

#[test]
fn the_chunks_of_a_run_whose_result_was_refused_may_go_with_its_worker() {
    for status in [503, 200] {
        let mut story = Story::default();
        story.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1");
        let result = r#"{"output":[]}"#;
        story.ask("POST", "/v2/e/job-done/w/a?gpu=x&isStream=true", result, status, "");
        story.stream("a", "offset=0", "[]");
        if status == 503 {
            story.is_fine();
        } else {
            story.breaks(FROM_HOLDER);
        }
    }
}
