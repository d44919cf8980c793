//! Jobs with an unconfirmed delivery are delivered alone, because one of them may be unreadable for workers.

use expect_test::expect;

use super::check;

#[test]
fn an_unreadable_job_fails_without_the_jobs_beside_it() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x10
        take w1 x10 idle
        done w1 a
        take w1 x10 idle
        take w1 x10 idle
        take w1 x10 idle
        take w1 x10 idle
        take w1 x10 idle
        take w1 x10 idle
        done w1 c
        status a
        status b
        status c
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x10: a, b, c
            0s take w1 x10 idle: a; c back in line, redelivery 1; b back in line, redelivery 1; a back in line, redelivery 1; ready; ready; ready
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s take w1 x10 idle: b
            0s take w1 x10 idle: b; b back in line, redelivery 2; ready
            0s take w1 x10 idle: b; b back in line, redelivery 3; ready
            0s take w1 x10 idle: b; b back in line, retry 1; ready
            0s take w1 x10 idle: b; b back in line, retry 2; ready
            0s take w1 x10 idle: c; b error "failed after 6 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python"; b FAILED
            0s done w1 c: recorded; c outcome kept; c COMPLETED
            0s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 1800s
            0s status b: FAILED by w1, delay 0s, execution 0s, retries 2, error "failed after 6 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python", until 1800s
            0s status c: COMPLETED by w1, delay 0s, execution 0s, outcome, until 1800s
            0s counters: completed 2, failed 1, cancelled 0, retried 2
        "#]],
    );
}

#[test]
fn pings_of_a_busy_worker_show_which_job_it_dropped() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x10
        take w1 x10 idle
        take w1 x9 busy
        take w1 x9 busy
        ping w1 a,c
        ping w1 a,c
        take w1 x8 busy
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x10: a, b, c
            0s take w1 x10 idle: a; c back in line, redelivery 1; b back in line, redelivery 1; a back in line, redelivery 1; ready; ready; ready
            0s take w1 x9 busy: b
            0s take w1 x9 busy: c
            0s ping w1 a,c: ok
            0s ping w1 a,c: b back in line, redelivery 2
            0s take w1 x8 busy: b
        "#]],
    );
}

#[test]
fn jobs_with_confirmed_deliveries_share_a_reply() {
    check(
        "
        submit a
        submit b
        take w1 x10
        submit c
        submit d
        take w1 x10 idle
        done w1 a
        take w1 x10
        done w1 b
        take w1 x10
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x10: a, b
            0s submit c: accepted
            0s submit d: accepted
            0s take w1 x10 idle: a; b back in line, redelivery 1; a back in line, redelivery 1; ready; ready
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s take w1 x10: b
            0s done w1 b: recorded; b outcome kept; b COMPLETED
            0s take w1 x10: c, d
        "#]],
    );
}

#[test]
fn a_reply_ends_before_a_job_that_is_delivered_alone() {
    check(
        "
        submit a
        take w1
        submit b
        submit c
        take w2
        ping w2 b
        take w1 idle
        lose w1 uncounted
        lose w2 counted
        take w3 x10
        take w3 x10
        take w3 x10
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s submit b: accepted
            0s submit c: accepted
            0s take w2: b
            0s ping w2 b: ok
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s lose w1 uncounted: a back in line
            0s lose w2 counted: b back in line, retry 1
            0s take w3 x10: b
            0s take w3 x10: a
            0s take w3 x10: c
        "#]],
    );
}

#[test]
fn a_restart_keeps_that_a_job_is_delivered_alone() {
    check(
        "
        submit a
        submit b
        take w1 x10
        ping w1 -
        ping w1 -
        restart
        take w2 x10
        take w2 x10
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x10: a, b
            0s ping w1 -: ok
            0s ping w1 -: b back in line, redelivery 1; a back in line, redelivery 1
            0s restart: 2 jobs
            0s take w2 x10: a
            0s take w2 x10: b
        "#]],
    );
}

#[test]
fn unconfirmed_jobs_of_a_crashed_worker_are_delivered_alone() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x10
        ping w1 b
        lose w1 counted
        take w2 x10
        take w2 x10
        take w2 x10
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x10: a, b, c
            0s ping w1 b: ok
            0s lose w1 counted: c back in line, retry 1; b back in line, retry 1; a back in line, retry 1
            0s take w2 x10: a
            0s take w2 x10: b
            0s take w2 x10: c
        "#]],
    );
}

#[test]
fn a_client_retry_resets_redeliveries() {
    check(
        "
        set retries=0
        submit a
        submit b
        take w1 x10
        take w1 idle
        take w1 idle
        take w1 idle
        take w1 idle
        take w1 idle
        status a
        done w1 b
        submit c
        retry a
        take w1 x10
        ",
        expect![[r#"
            0s set retries=0: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x10: a, b
            0s take w1 idle: a; b back in line, redelivery 1; a back in line, redelivery 1; ready; ready
            0s take w1 idle: a; a back in line, redelivery 2; ready
            0s take w1 idle: a; a back in line, redelivery 3; ready
            0s take w1 idle: b; a error "failed after 4 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python"; a FAILED
            0s take w1 idle: b; b back in line, redelivery 2; ready
            0s status a: FAILED by w1, delay 0s, execution 0s, error "failed after 4 deliveries, no retries left: the last delivery was not confirmed; perhaps workers cannot read the job, for example a number of more than 4300 digits, which is too long for Python", until 1800s
            0s done w1 b: recorded; b outcome kept; b COMPLETED
            0s submit c: accepted
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w1 x10: c, a
        "#]],
    );
}
