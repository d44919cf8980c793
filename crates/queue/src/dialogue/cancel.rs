//! Cancel in every state, and the ttl that a client sets.

use expect_test::expect;

use super::check;

#[test]
fn a_queued_job_is_cancelled() {
    check(
        "
        submit a
        submit b
        cancel a
        status a
        take w1
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s cancel a: CANCELLED; a CANCELLED
            0s status a: CANCELLED, until 1800s
            0s take w1: b
            0s counters: completed 0, failed 0, cancelled 1, retried 0
        "#]],
    );
}

#[test]
fn a_running_job_is_cancelled_and_its_worker_gets_a_stop_signal() {
    check(
        "
        submit a
        take w1
        progress w1 a
        wait 2s
        cancel a
        status a
        load
        done w1 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s progress w1 a: recorded; a outcome kept
            2s cancel a: CANCELLED; a outcome cleared; a CANCELLED; a stop at w1
            2s status a: CANCELLED by w1, delay 0s, execution 2s, progress after 0s, until 1802s
            2s load: queued 0 (0 normal), running 0
            2s done w1 a: ignored; w1 let go of its only job since 0s
            2s status a: CANCELLED by w1, delay 0s, execution 2s, progress after 0s, until 1802s
        "#]],
    );
}

#[test]
fn a_terminal_job_is_not_changed() {
    check(
        "
        submit a
        take w1
        done w1 a
        cancel a
        submit b
        take w1
        error w1 b
        cancel b
        cancel b
        submit c
        cancel c
        cancel c
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s cancel a: COMPLETED
            0s submit b: accepted
            0s take w1: b
            0s error w1 b: recorded; b outcome kept; b FAILED
            0s cancel b: FAILED
            0s cancel b: FAILED
            0s submit c: accepted
            0s cancel c: CANCELLED; c CANCELLED
            0s cancel c: CANCELLED
            0s counters: completed 1, failed 1, cancelled 1, retried 0
        "#]],
    );
}

#[test]
fn an_unknown_job_cannot_be_cancelled() {
    check(
        "
        cancel a
        keep a 5s
        retry a
        ",
        expect![[r#"
            0s cancel a: refused, NoSuchJob
            0s keep a 5s: refused, NoSuchJob
            0s retry a: refused, NoSuchJob
        "#]],
    );
}

#[test]
fn set_ttl_moves_the_deletion_of_a_queued_job() {
    check(
        "
        submit a
        keep a 5s
        wait 5s
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s keep a 5s: IN_QUEUE
            5s tick: a deleted
            5s status a: no such job
        "#]],
    );
}

#[test]
fn set_ttl_moves_the_deletion_of_a_running_job() {
    check(
        "
        submit a
        take w1
        keep a 5s
        wait 4s
        status a
        wait 1s
        status a
        done w1 a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s keep a 5s: IN_PROGRESS
            4s status a: IN_PROGRESS by w1, delay 0s, execution 4s, until 5s
            5s tick: a stop at w1; a deleted
            5s status a: no such job
            5s done w1 a: ignored; w1 let go of its only job since 0s
        "#]],
    );
}

#[test]
fn set_ttl_replaces_the_retention_of_a_terminal_job() {
    check(
        "
        submit a
        take w1
        done w1 a
        keep a 24h
        status a
        wait 1h
        status a
        wait 23h
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s keep a 24h: COMPLETED
            0s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 86400s
            3600s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 86400s
            86400s tick: a deleted
            86400s status a: no such job
        "#]],
    );
}

#[test]
fn a_ttl_set_before_the_end_holds_after_it() {
    check(
        "
        submit a
        keep a 2h
        take w1
        done w1 a
        status a
        wait 1h
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s keep a 2h: IN_QUEUE
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 7200s
            3600s status a: COMPLETED by w1, delay 0s, execution 0s, outcome, until 7200s
        "#]],
    );
}
