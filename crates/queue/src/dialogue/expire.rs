//! Ttl, retention and execution timeout.

use expect_test::expect;

use super::check;

#[test]
fn ttl_deletes_a_queued_job() {
    check(
        "
        submit a ttl=10s
        wait 9s
        status a
        wait 1s
        status a
        load
        counters
        ",
        expect![[r#"
            0s submit a ttl=10s: accepted
            9s status a: IN_QUEUE, until 10s
            10s tick: a deleted
            10s status a: no such job
            10s load: queued 0 (0 normal), running 0
            10s counters: completed 0, failed 0, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn ttl_deletes_a_running_job_and_stops_it() {
    check(
        "
        submit a ttl=10s
        take w1
        wait 10s
        status a
        done w1 a
        load
        ",
        expect![[r#"
            0s submit a ttl=10s: accepted
            0s take w1: a
            10s tick: a stop at w1; a deleted
            10s status a: no such job
            10s done w1 a: ignored; w1 let go of its only job since 0s
            10s load: queued 0 (0 normal), running 0
        "#]],
    );
}

#[test]
fn ttl_deletes_a_terminal_job_before_its_retention() {
    check(
        "
        submit a ttl=10s
        take w1
        done w1 a
        wait 10s
        status a
        ",
        expect![[r#"
            0s submit a ttl=10s: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            10s tick: a deleted
            10s status a: no such job
        "#]],
    );
}

#[test]
fn an_expired_job_is_not_delivered() {
    check(
        "
        submit a ttl=10s
        submit b
        skip 10s
        status a
        take w2
        ",
        expect![[r#"
            0s submit a ttl=10s: accepted
            0s submit b: accepted
            0s skip 10s: it is 10s
            10s status a: no such job
            10s take w2: b; a deleted
        "#]],
    );
}

#[test]
fn retention_deletes_an_async_job_after_30_minutes() {
    check(
        "
        submit a
        take w1
        done w1 a
        wait 1799s
        status a
        wait 1s
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            1799s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 1800s
            1800s tick: a deleted
            1800s status a: no such job
        "#]],
    );
}

#[test]
fn retention_deletes_a_sync_job_after_a_minute() {
    check(
        "
        submit a sync
        take w1
        error w1 a
        status a
        wait 60s
        status a
        ",
        expect![[r#"
            0s submit a sync: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, outcome, until 60s
            60s tick: a deleted
            60s status a: no such job
        "#]],
    );
}

#[test]
fn retention_is_a_setting_of_the_endpoint() {
    check(
        "
        set retention=5s
        submit a
        cancel a
        wait 5s
        status a
        ",
        expect![[r#"
            0s set retention=5s: ok
            0s submit a: accepted
            0s cancel a: CANCELLED; a CANCELLED
            5s tick: a deleted
            5s status a: no such job
        "#]],
    );
}

#[test]
fn a_job_that_runs_too_long_is_timed_out_and_stopped() {
    check(
        "
        submit a timeout=5s
        take w1
        progress w1 a
        wait 5s
        status a
        done w1 a
        status a
        counters
        ",
        expect![[r#"
            0s submit a timeout=5s: accepted
            0s take w1: a
            0s progress w1 a: recorded; a outcome kept
            5s tick: a error "the job ran longer than its execution timeout of 5000 ms"; a TIMED_OUT; a stop at w1
            5s status a: TIMED_OUT by w1, delay 0s, execution 5s, progress after 0s, error "the job ran longer than its execution timeout of 5000 ms", until 1805s
            5s done w1 a: ignored; w1 let go of its only job since 0s
            5s status a: TIMED_OUT by w1, delay 0s, execution 5s, progress after 0s, error "the job ran longer than its execution timeout of 5000 ms", until 1805s
            5s counters: completed 0, failed 1, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn the_execution_timeout_counts_from_the_present_attempt() {
    check(
        "
        submit a timeout=5s
        wait 20s
        take w1
        wait 4s
        lose w1 counted
        take w2
        wait 4s
        status a
        done w2 a
        ",
        expect![[r#"
            0s submit a timeout=5s: accepted
            20s take w1: a
            24s lose w1 counted: a back in line, retry 1
            24s take w2: a
            28s status a: IN_PROGRESS by w2, delay 0s, execution 4s, retries 1, until 86400s
            28s done w2 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn without_a_policy_the_execution_timeout_is_the_endpoints() {
    check(
        "
        submit a
        take w1
        wait 599s
        status a
        wait 1s
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            599s status a: IN_PROGRESS by w1, delay 0s, execution 599s, until 86400s
            600s tick: a error "the job ran longer than its execution timeout of 600000 ms"; a TIMED_OUT; a stop at w1
            600s status a: TIMED_OUT by w1, delay 0s, execution 600s, error "the job ran longer than its execution timeout of 600000 ms", until 2400s
        "#]],
    );
}

#[test]
fn a_ttl_before_the_execution_timeout_deletes_the_job() {
    check(
        "
        submit a ttl=10s timeout=20s
        take w1
        wait 20s
        status a
        ",
        expect![[r#"
            0s submit a ttl=10s timeout=20s: accepted
            0s take w1: a
            10s tick: a stop at w1; a deleted
            20s status a: no such job
        "#]],
    );
}

#[test]
fn a_result_of_an_expired_job_deletes_it_without_a_stop_signal() {
    check(
        "
        introduce w1
        submit a ttl=10s
        take w1
        ping w1 a
        skip 10s
        done w1 a
        wait 15s
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a ttl=10s: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s skip 10s: it is 10s
            10s done w1 a: ignored; a deleted
            25s workers: w1 managed Idle idle since 10s
        "#]],
    );
}
