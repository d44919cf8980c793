//! Streams, waits, deadlines and workers: what the server must do, and must not do, by itself.

use super::Script;
use crate::auditor::Rules;
use crate::observation::Observation;

const FROM_HOLDER: &str = "progress and chunks come from the job's worker";
const TIMED_OUT: &str = "no job runs past its execution timeout";
const LEASE_ENDS: &str = "a job of a lost worker is requeued";
const RETRIES: &str = "retries count lost workers, and nothing else";

/// An endpoint is created, with these members.
fn create(script: &mut Script, members: &str) {
    script.ask("POST", "/v1/endpoints", "{}", 200, &format!(r#"{{"id":"e",{members}}}"#));
}

fn started(script: &mut Script, worker: &str) {
    script.observe(&Observation::WorkerStarted(worker.to_owned(), "e".to_owned()));
}

#[test]
fn the_chunks_of_a_run_go_with_it() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
    script.stream("a", "offset=0", r#"[{"output":1}]"#).wait(16_000);
    script.status("a", r#""status":"IN_QUEUE","retries":1"#).stream("a", "offset=0", "[]").is_fine();
    script.stream("a", "offset=0", r#"[{"output":1}]"#).breaks(FROM_HOLDER);
}

#[test]
fn the_chunks_of_a_worker_that_has_nothing_in_progress_go_with_its_run() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1");
    script.ask("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "", 204, "");
    script.stream("a", "offset=0", "[]").is_fine();
}

#[test]
fn a_result_of_a_job_that_waits_again_is_in_time() {
    for is_lost in [true, false] {
        let mut script = Script::default();
        let body = r#"{"input":{},"policy":{"executionTimeout":5000}}"#;
        script.ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
        script.take("v", "a", "{}").wait(16_000).take("w", "a", "{}").ping("w", "a");
        for _ in 0..4 {
            script.wait(10_000);
            if !is_lost {
                script.ping("w", "a");
            }
        }
        script.done("v", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
        if is_lost {
            script.is_fine();
        } else {
            script.breaks(TIMED_OUT);
        }
    }
}

#[test]
fn chunks_of_a_job_that_was_requeued_before_its_delivery_are_not_kept() {
    for pings in [2, 1] {
        let mut script = Script::default();
        script.submit("a", "{}");
        let take = script.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        (0..pings).for_each(|_| _ = script.ping("w", ""));
        script.answer(take, 200, r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#);
        script.ping("w", "a").chunk("w", "a", "1").done("w", "a", r#"{"output":[]}"#);
        script.stream("a", "offset=0", "[]");
        if pings == 2 {
            script.is_fine();
        } else {
            script.breaks(FROM_HOLDER);
        }
    }
}

#[test]
fn a_retry_begins_with_nothing() {
    let mut script = Script::default();
    script.submit("a", "{}").take("v", "a", "{}").ping("v", "a").chunk("v", "a", "1");
    script.done("v", "a", r#"{"error":"e"}"#).status("a", r#""status":"FAILED","error":"e""#);
    script
        .change("retry", "a", "IN_QUEUE")
        .stream("a", "offset=0", "[]")
        .status("a", r#""status":"IN_QUEUE""#);
    script.is_fine();
    script.stream("a", "offset=0", r#"[{"output":1}]"#).breaks(FROM_HOLDER);
}

#[test]
fn what_waits_shows_no_error() {
    let mut script = Script::default();
    script.submit("a", "{}").status("a", r#""status":"IN_QUEUE","error":"e""#);
    script.breaks("every outcome has an earlier cause");
}

#[test]
fn a_chunk_is_drained_once() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").wait(61_000);
    script.stream("a", "", r#"[{"output":1}]"#).ping("w", "a").chunk("w", "a", "1").wait(61_000);
    script.stream("a", "", r#"[{"output":1}]"#).stream("a", "", "[]").is_fine();
    script.stream("a", "", r#"[{"output":1}]"#).breaks("a consumed chunk is not returned again");
}

#[test]
fn concurrent_readers_may_get_the_same_chunk() {
    for at_once in [true, false] {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1").wait(61_000);
        let first = script.arrive("GET", "/v2/e/stream/a", "");
        if !at_once {
            script.answer(first, 200, r#"[{"output":1}]"#);
        }
        let second = script.arrive("GET", "/v2/e/stream/a", "");
        if at_once {
            script.answer(first, 200, r#"[{"output":1}]"#);
        }
        script.answer(second, 200, r#"[{"output":1}]"#).ping("w", "a").chunk("w", "a", "1").wait(61_000);
        script.stream("a", "", r#"[{"output":1}]"#);
        if at_once {
            script.is_fine();
        } else {
            script.breaks("a consumed chunk is not returned again");
        }
    }
}

#[test]
fn a_run_is_ended_at_its_timeout() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    let mut script = Script::with(rules);
    script.submit("a", "{}").wait(100_000).take("w", "a", "{}").ping("w", "a").wait(12_000).ping("w", "a");
    script.status("a", r#""status":"IN_PROGRESS""#).wait(12_000).ping("w", "a").is_fine();
    script.wait(12_000).ping("w", "a").wait(12_000).ping("w", "a");
    script.status("a", r#""status":"IN_PROGRESS""#).breaks(TIMED_OUT);
}

#[test]
fn a_result_after_the_timeout_is_none() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    let mut script = Script::with(rules);
    script.submit("a", "{}").wait(100_000).take("w", "a", "{}");
    for _ in 0..5 {
        script.wait(12_000).ping("w", "a");
    }
    script.done("w", "a", r#"{"output":1}"#).status("a", r#""status":"COMPLETED","output":1"#);
    script.breaks(TIMED_OUT);
}

#[test]
fn a_run_may_time_out_before_the_answer_that_gave_it_is_here() {
    let rules = Rules { execution_timeout_ms: 10_000, ..Rules::default() };
    for run_ms in [4_000, 12_000] {
        let mut script = Script::with(rules.clone());
        script.submit("a", "{}").take("v", "a", "{}").wait(12_000).status("a", r#""status":"TIMED_OUT""#);
        script.change("retry", "a", "IN_QUEUE");
        let take = script.arrive("GET", "/v2/e/job-take/w?gpu=x&job_in_progress=0", "");
        script.wait(run_ms).status("a", r#""status":"TIMED_OUT""#);
        script.answer(take, 200, r#"{"id":"a","delayTime":1,"status":"IN_PROGRESS","input":{}}"#);
        script.wait(1_000).status("a", r#""status":"TIMED_OUT""#);
        if run_ms < 10_000 {
            script.breaks("every outcome has an earlier cause");
        } else {
            script.is_fine();
        }
    }
}

#[test]
fn a_job_leaves_a_worker_that_is_silent() {
    let mut script = Script::default();
    script.wait(100_000).submit("a", "{}").take("w", "a", "{}").ping("w", "a").wait(5_000).ping("w", "a");
    script.wait(20_000).status("a", r#""status":"IN_PROGRESS""#).is_fine();
    script.wait(80_000).status("a", r#""status":"IN_PROGRESS""#).breaks(LEASE_ENDS);
}

#[test]
fn a_worker_that_came_back_from_a_silence_has_to_ping_anew() {
    for pings_again in [false, true] {
        let mut script = Script::default();
        script.wait(100_000).ping("w", "").wait(1_000).ping("w", "").wait(20_000);
        script.submit("a", "{}").take("w", "a", "{}");
        if pings_again {
            script.ping("w", "a").wait(1_000).ping("w", "a");
        }
        script.wait(100_000).status("a", r#""status":"IN_PROGRESS""#);
        if pings_again {
            script.breaks(LEASE_ENDS);
        } else {
            script.is_fine();
        }
    }
}

#[test]
fn a_worker_from_which_nothing_came_may_not_ping() {
    let mut script = Script::default();
    script.wait(100_000).submit("a", "{}").take("w", "a", "{}").wait(100_000);
    script.status("a", r#""status":"IN_PROGRESS""#).is_fine();
}

#[test]
fn a_job_leaves_a_worker_that_never_calls_the_next_server() {
    for speaks in [false, true] {
        let mut script = Script::default();
        script
            .wait(100_000)
            .submit("a", "{}")
            .take("w", "a", "{}")
            .wait(1_000)
            .observe(&Observation::ServerDown(true));
        script.wait(1_000).observe(&Observation::ServerUp);
        script.wait(20_000).status("a", r#""status":"IN_PROGRESS""#).is_fine();
        if speaks {
            script.ask("GET", "/v2/e/job-stop/w?gpu=x", "", 204, "");
        }
        script.wait(80_000).status("a", r#""status":"IN_PROGRESS""#);
        if speaks {
            script.is_fine();
        } else {
            script.breaks(LEASE_ENDS);
        }
    }
}

#[test]
fn a_wait_ends_with_the_job() {
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}");
    let waits = [(); 2].map(|()| script.arrive("GET", "/v2/e/status-sync/a?wait=300000", ""));
    script.done("w", "a", r#"{"output":1}"#);
    let record = r#"{"id":"a","status":"COMPLETED","output":1}"#;
    script.answer(waits[0], 200, record).is_fine();
    script.wait(61_000).answer(waits[1], 200, record);
    script.breaks("a request that waits for a job's end is answered soon");
}

#[test]
fn retries_end() {
    let mut script = Script::default();
    create(&mut script, r#""maxRetries":1"#);
    script.submit("a", "{}").take("u", "a", "{}").wait(16_000).take("v", "a", "{}").wait(16_000);
    script.take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","retries":1"#).is_fine();
    script.status("a", r#""status":"IN_PROGRESS","retries":2"#).breaks(RETRIES);
}

#[test]
fn what_never_arrived_was_not_lost() {
    let mut script = Script::default();
    script.submit("a", "{}");
    let lost = script.arrive("GET", "/v2/e/job-take/v?gpu=x&job_in_progress=0", "");
    script.lose(lost).take("w", "a", "{}").status("a", r#""status":"IN_PROGRESS","workerId":"w""#).is_fine();
    script.status("a", r#""status":"IN_PROGRESS","workerId":"w","retries":1"#).breaks(RETRIES);
}

#[test]
fn a_worker_is_not_ended_in_the_middle_of_a_job() {
    let run = |clings: bool| {
        let mut script = Script::default();
        started(&mut script, "w");
        if clings {
            script.submit("a", r#"{"n":1}"#).take("w", "a", r#"{"n":1}"#);
            script.observe(&Observation::HandlerBegan("w".to_owned(), "a".to_owned()));
            script.change("cancel", "a", "CANCELLED").wait(5_000).ping("w", "a");
        }
        script.submit("b", r#"{"n":2}"#).take("w", "b", r#"{"n":2}"#);
        script.observe(&Observation::HandlerBegan("w".to_owned(), "b".to_owned()));
        script.ping("w", "b");
        script.observe(&Observation::WorkerEnded("w".to_owned(), true));
        script
    };
    run(true).is_fine();
    run(false).breaks("the server stops no worker that runs a job");
}

#[test]
fn a_worker_of_an_old_version_gets_nothing_more() {
    let mut script = Script::default();
    create(&mut script, r#""templateId":"one""#);
    started(&mut script, "v");
    let change = script.arrive("PATCH", "/v1/endpoints/e", r#"{"templateId":"two"}"#);
    script.answer(change, 200, r#"{"id":"e","templateId":"two"}"#);
    started(&mut script, "w");
    script.wait(30_000).submit("a", r#"{"n":1}"#).take("w", "a", r#"{"n":1}"#).is_fine();
    script.submit("b", r#"{"n":2}"#).take("v", "b", r#"{"n":2}"#);
    script.breaks("a worker of an old template gets no new jobs");
}

#[test]
fn a_fleet_has_a_limit() {
    let mut script = Script::default();
    create(&mut script, r#""workersMax":1"#);
    script.wait(100_000);
    started(&mut script, "u");
    script.observe(&Observation::WorkerEnded("u".to_owned(), true));
    started(&mut script, "v");
    script.is_fine();
    started(&mut script, "w");
    script.breaks("there are no more workers than allowed");
}

#[test]
fn a_silent_worker_is_ended() {
    let mut script = Script::default();
    create(&mut script, r#""workersMin":1,"workersMax":1"#);
    started(&mut script, "w");
    script.wait(100_000).ping("w", "").wait(5_000).ping("w", "").wait(200_000).observe(&Observation::End);
    script.breaks("at rest no silent worker is kept");
}

#[test]
fn a_worker_that_was_taken_over_is_not_waited_for_for_ever() {
    let run = |waited_ms: u64| {
        let mut script = Script::default();
        create(&mut script, r#""workersMin":1,"workersMax":1"#);
        started(&mut script, "w");
        script.wait(1_000).ping("w", "").wait(1_000).observe(&Observation::ServerDown(true));
        script.wait(1_000).observe(&Observation::ServerUp);
        script.observe(&Observation::QuietPhaseBegan);
        script.wait(waited_ms).observe(&Observation::End);
        script
    };
    run(10 * 60_000).is_fine();
    run(12 * 60_000).breaks("at rest no silent worker is kept");
}

#[test]
fn an_accepted_hook_is_settled_for_good() {
    let body = r#"{"input":{},"webhook":"http://h/"}"#;
    let done = r#"{"id":"a","status":"COMPLETED","output":1,"input":{},"webhook":"http://h/"}"#;
    let run = |crash_after_ms: u64| {
        let mut script = Script::default();
        script.wait(100_000).ask("POST", "/v2/e/run", body, 200, r#"{"id":"a","status":"IN_QUEUE"}"#);
        script.take("w", "a", "{}").done("w", "a", r#"{"output":1}"#).call(1, done, 200);
        script.wait(crash_after_ms).observe(&Observation::ServerDown(true));
        script.wait(1_000).observe(&Observation::ServerUp);
        script.wait(1_000).call(2, done, 200);
        script
    };
    run(10).is_fine();
    run(100_000).breaks("a webhook is not called too soon, too often, or after it was accepted");
}

#[test]
fn the_chunks_of_a_run_whose_result_was_refused_may_go_with_its_worker() {
    for status in [503, 200] {
        let mut script = Script::default();
        script.submit("a", "{}").take("w", "a", "{}").ping("w", "a").chunk("w", "a", "1");
        let result = r#"{"output":[]}"#;
        script.ask("POST", "/v2/e/job-done/w/a?gpu=x&isStream=true", result, status, "");
        script.stream("a", "offset=0", "[]");
        if status == 503 {
            script.is_fine();
        } else {
            script.breaks(FROM_HOLDER);
        }
    }
}
