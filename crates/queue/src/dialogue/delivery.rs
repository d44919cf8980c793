//! Confirmed and unconfirmed deliveries.

use expect_test::expect;

use super::check;

#[test]
fn two_pings_without_the_job_requeue_it_without_a_retry() {
    check(
        "
        ping w1 -
        submit a
        take w1
        ping w1 -
        ping w1 -
        status a
        take w1
        ping w1 a
        done w1 a
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 -: ok
            0s ping w1 -: a back in line, redelivery 1
            0s status a: IN_QUEUE after w1, until 86400s
            0s take w1: a
            0s ping w1 a: ok
            0s done w1 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn a_ping_that_lists_the_job_resets_the_count() {
    check(
        "
        submit a
        take w1
        ping w1 -
        ping w1 a
        ping w1 -
        status a
        ping w1 -
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1 -: ok
            0s ping w1 a: ok
            0s ping w1 -: ok
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s ping w1 -: a back in line, retry 1
            0s status a: IN_QUEUE after w1, retries 1, until 86400s
        "#]],
    );
}

#[test]
fn a_chunk_confirms_the_delivery() {
    check(
        "
        submit a
        take w1
        ping w1 -
        append w1 a
        ping w1 -
        status a
        ping w1 -
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1 -: ok
            0s append w1 a: may append in attempt 1
            0s ping w1 -: ok
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, first chunk 0s, chunks 1, until 86400s
            0s ping w1 -: a chunks dropped: 1; a back in line, retry 1
            0s status a: IN_QUEUE after w1, retries 1, chunks 0, until 86400s
        "#]],
    );
}

#[test]
fn a_request_without_a_job_list_does_not_count() {
    check(
        "
        submit a
        take w1
        ping w1
        ping w1
        ping w1
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1: ok
            0s ping w1: ok
            0s ping w1: ok
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
        "#]],
    );
}

#[test]
fn a_take_with_no_job_in_progress_requeues_lost_deliveries() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x2
        take w1 idle
        status a
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x2: a, b
            0s take w1 idle: a; b back in line, redelivery 1; a back in line, redelivery 1; ready; ready
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s status b: IN_QUEUE after w1, until 86400s
        "#]],
    );
}

#[test]
fn a_worker_with_several_open_takes_loses_no_delivery() {
    check(
        "
        submit a
        submit b
        take w1
        take w1 idle overlapping
        take w1 idle
        load
        done w1 a
        done w1 b
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s take w1 idle overlapping: b
            0s take w1 idle: nothing
            0s load: queued 0 (0 normal), running 2
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s done w1 b: recorded; b outcome kept; b COMPLETED
        "#]],
    );
}

#[test]
fn a_job_whose_deliveries_are_never_confirmed_fails() {
    check(
        "
        submit a
        take w1
        take w1 idle
        take w1 idle
        take w1 idle
        take w1 idle
        take w1 idle
        take w1 idle
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s take w1 idle: a; a back in line, redelivery 2; ready
            0s take w1 idle: a; a back in line, redelivery 3; ready
            0s take w1 idle: a; a back in line, retry 1; ready
            0s take w1 idle: a; a back in line, retry 2; ready
            0s take w1 idle: nothing; a error "failed after 6 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python"; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, retries 2, error "failed after 6 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python", until 1800s
        "#]],
    );
}

#[test]
fn dropping_a_confirmed_job_counts_as_a_retry() {
    check(
        "
        submit a
        take w1
        ping w1 a
        take w1 idle
        ping w1 a
        take w1 idle
        ping w1 a
        take w1 idle
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s take w1 idle: a; a back in line, retry 1; ready
            0s ping w1 a: ok
            0s take w1 idle: a; a back in line, retry 2; ready
            0s ping w1 a: ok
            0s take w1 idle: nothing; a error "failed after 3 runs, no retries left: the worker dropped the job without a report"; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, retries 2, error "failed after 3 runs, no retries left: the worker dropped the job without a report", until 1800s
        "#]],
    );
}

#[test]
fn foreign_and_unknown_jobs_in_a_ping_change_nothing() {
    check(
        "
        submit a
        submit b
        take w1
        take w2
        ping w1 a,b,x
        status b
        ping w2 -
        ping w2 -
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s take w2: b
            0s ping w1 a,b,x: x stop at w1
            0s status b: IN_PROGRESS by w2, delay 0s, execution 0s, until 86400s
            0s ping w2 -: ok
            0s ping w2 -: b back in line, redelivery 1
            0s status b: IN_QUEUE after w2, until 86400s
        "#]],
    );
}

#[test]
fn a_result_that_crosses_a_redelivery_counts() {
    check(
        "
        submit a
        submit b
        take w1
        take w1 idle
        done w1 a
        status a
        take w1 idle
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 1800s
            0s take w1 idle: b
        "#]],
    );
}
