//! Rate limits, health, and the form of answers.

use super::Script;
use crate::auditor::Rules;

const FORM: &str = "every response has its documented form";

#[test]
fn no_more_pass_than_the_limit() {
    let mut script = Script::default();
    for _ in 0..2 {
        script.purge(0);
    }
    script.is_fine();
    script.purge(0).breaks("no more requests pass than the limit");
}

#[test]
fn no_request_is_refused_below_the_limit() {
    let mut script = Script::default();
    script.purge(0).purge(0).ask("POST", "/v2/e/purge-queue", "", 429, "").is_fine();
    script
        .wait(10_000)
        .ask("POST", "/v2/e/purge-queue", "", 429, "")
        .breaks("no request is refused below the limit");
}

#[test]
fn errors_have_one_shape() {
    let mut script = Script::default();
    script.ask("GET", "/v2/e/status/x", "", 404, r#"{"error":"no","code":"no","id":"x"}"#).breaks(FORM);
    let mut script = Script::default();
    script.ask("GET", "/v2/e/status/x", "", 500, "").breaks("no response is an internal error");
}

#[test]
fn counters_never_go_back() {
    let health = |completed: u64| {
        format!(
            r#"{{"jobs":{{"completed":{completed},"failed":0,"inProgress":0,"inQueue":0,"retried":0}},"workers":{{"idle":0,"initializing":0,"ready":0,"running":0,"throttled":0,"unhealthy":0}}}}"#
        )
    };
    let mut script = Script::default();
    script.ask("GET", "/v2/e/health", "", 200, &health(2)).ask("GET", "/v2/e/health", "", 200, &health(1));
    script.breaks("counters never decrease");
    let mut script = Script::default();
    script.submit("a", "{}").take("w", "a", "{}").done("w", "a", "{}").status("a", r#""status":"COMPLETED""#);
    script.ask("GET", "/v2/e/health", "", 200, &health(0)).breaks("health agrees with the observations");
}

#[test]
fn a_request_that_waited_for_an_owner_counts_between_its_arrival_and_its_response() {
    let purges = |waits: bool, gap_ms: u64| {
        let mut script = Script::with(Rules { requests_wait_for_owner: waits, ..Rules::default() });
        script.purge(0).purge(0).wait(gap_ms);
        // It arrives within 10 s after the others, and its response does not.
        let id = script.arrive("POST", "/v2/e/purge-queue", "");
        script.wait(5_000).answer(id, 200, r#"{"removed":0,"status":"completed"}"#);
        script
    };
    purges(true, 9_000).is_fine();
    purges(false, 9_000).breaks("no more requests pass than the limit");
    purges(true, 4_000).breaks("no more requests pass than the limit");
}

#[test]
fn a_request_that_waited_is_a_reason_to_refuse_later_ones() {
    let refused = |waits: bool| {
        let mut script = Script::with(Rules { requests_wait_for_owner: waits, ..Rules::default() });
        let ids = [(); 2].map(|()| script.arrive("POST", "/v2/e/purge-queue", ""));
        script.wait(9_000);
        for id in ids {
            script.answer(id, 200, r#"{"removed":0,"status":"completed"}"#);
        }
        script.wait(5_000).ask("POST", "/v2/e/purge-queue", "", 429, "");
        script
    };
    refused(true).is_fine();
    refused(false).breaks("no request is refused below the limit");
}
