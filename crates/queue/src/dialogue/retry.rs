//! A client retries failed and timed-out jobs.

use expect_test::expect;

use super::check;

#[test]
fn a_failed_job_is_queued_without_outcome_and_stream() {
    check(
        "
        submit a ttl=1h
        take w1
        append w1 a
        lose w1 counted
        take w2
        append w2 a
        error w2 a
        wait 100s
        retry a
        status a
        take w3
        done w3 a
        status a
        counters
        ",
        expect![[r#"
            0s submit a ttl=1h: accepted
            0s take w1: a
            0s append w1 a: may append in attempt 1
            0s lose w1 counted: a chunks dropped: 1; a back in line, retry 1
            0s take w2: a
            0s append w2 a: may append in attempt 2
            0s error w2 a: recorded; a outcome kept; a FAILED
            100s retry a: IN_QUEUE; a outcome cleared; a stream reset
            100s status a: IN_QUEUE, until 3700s
            100s take w3: a
            100s done w3 a: recorded; a outcome kept; a COMPLETED
            100s status a: COMPLETED by w3, delay 0s, execution 0s, outcome, until 1900s
            100s counters: completed 1, failed 1, cancelled 0, retried 2
        "#]],
    );
}

#[test]
fn a_timed_out_job_can_be_retried() {
    check(
        "
        submit a timeout=5s
        take w1
        wait 5s
        retry a
        status a
        ",
        expect![[r#"
            0s submit a timeout=5s: accepted
            0s take w1: a
            5s tick: a error "the job ran longer than its execution timeout of 5000 ms"; a TIMED_OUT; a stop at w1
            5s retry a: IN_QUEUE; a outcome cleared
            5s status a: IN_QUEUE, until 86405s
        "#]],
    );
}

#[test]
fn no_other_job_can_be_retried() {
    check(
        "
        submit a
        retry a
        take w1
        retry a
        done w1 a
        retry a
        submit b
        cancel b
        retry b
        ",
        expect![[r#"
            0s submit a: accepted
            0s retry a: refused, NotRetryable
            0s take w1: a
            0s retry a: refused, NotRetryable
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s retry a: refused, NotRetryable
            0s submit b: accepted
            0s cancel b: CANCELLED; b CANCELLED
            0s retry b: refused, NotRetryable
        "#]],
    );
}

#[test]
fn a_retried_job_is_queued_at_the_back() {
    check(
        "
        submit a
        take w1
        error w1 a
        submit b
        retry a
        take w2 x2
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s submit b: accepted
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w2 x2: b, a
        "#]],
    );
}

#[test]
fn a_retried_job_has_all_retries_again() {
    check(
        "
        set retries=1
        submit a
        take w1
        lose w1 counted
        take w1
        lose w1 counted
        retry a
        take w1
        lose w1 counted
        status a
        ",
        expect![[r#"
            0s set retries=1: ok
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s take w1: a
            0s lose w1 counted: a error "failed after 2 runs, no retries left: exit code 1"; a FAILED
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s status a: IN_QUEUE after w1, retries 1, until 86400s
        "#]],
    );
}

#[test]
fn a_retry_resets_a_ttl_that_was_set() {
    check(
        "
        submit a ttl=1h
        take w1
        error w1 a
        keep a 10s
        retry a
        wait 10s
        status a
        take w1
        done w1 a
        status a
        ",
        expect![[r#"
            0s submit a ttl=1h: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s keep a 10s: FAILED
            0s retry a: IN_QUEUE; a outcome cleared
            10s status a: IN_QUEUE, until 3600s
            10s take w1: a
            10s done w1 a: recorded; a outcome kept; a COMPLETED
            10s status a: COMPLETED by w1, delay 10s, execution 0s, outcome, until 1810s
        "#]],
    );
}

#[test]
fn a_result_from_before_the_retry_does_not_count_while_queued() {
    check(
        "
        submit a timeout=5s
        take w1
        wait 5s
        retry a
        done w1 a
        status a
        ",
        expect![[r#"
            0s submit a timeout=5s: accepted
            0s take w1: a
            5s tick: a error "the job ran longer than its execution timeout of 5000 ms"; a TIMED_OUT; a stop at w1
            5s retry a: IN_QUEUE; a outcome cleared
            5s done w1 a: ignored; w1 let go of its only job since 0s
            5s status a: IN_QUEUE, until 86405s
        "#]],
    );
}

#[test]
fn an_expired_job_cannot_be_retried() {
    check(
        "
        submit a
        take w1
        error w1 a
        wait 30m
        retry a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            1800s tick: a deleted
            1800s retry a: refused, NoSuchJob
        "#]],
    );
}

#[test]
fn a_retried_job_has_all_redeliveries_again() {
    check(
        "
        submit a
        take w1
        take w1 idle
        take w1 idle
        take w1 idle
        error w1 a
        retry a
        take w1
        take w1 idle
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s take w1 idle: a; a back in line, redelivery 2; ready
            0s take w1 idle: a; a back in line, redelivery 3; ready
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
        "#]],
    );
}
