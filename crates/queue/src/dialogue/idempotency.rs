//! Repeated submits: by `Idempotency-Key` and by id.

use expect_test::expect;

use super::check;

#[test]
fn the_same_key_and_body_is_the_same_job() {
    check(
        "
        submit a key=k body=x
        submit b key=k body=x
        take w1
        submit c key=k body=x
        done w1 a
        submit d key=k body=x
        load
        ",
        expect![[r#"
            0s submit a key=k body=x: accepted
            0s submit b key=k body=x: known as a IN_QUEUE
            0s take w1: a
            0s submit c key=k body=x: known as a IN_PROGRESS
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s submit d key=k body=x: known as a COMPLETED
            0s load: queued 0 (0 normal), running 0
        "#]],
    );
}

#[test]
fn the_same_key_with_another_body_is_refused() {
    check(
        "
        submit a key=k body=x
        submit b key=k body=y
        status b
        ",
        expect![[r#"
            0s submit a key=k body=x: accepted
            0s submit b key=k body=y: refused, IdempotencyKeyReused
            0s status b: no such job
        "#]],
    );
}

#[test]
fn the_key_of_a_deleted_job_can_be_used_again() {
    check(
        "
        submit a key=k body=x
        cancel a
        wait 30m
        submit b key=k body=y
        status b
        ",
        expect![[r#"
            0s submit a key=k body=x: accepted
            0s cancel a: CANCELLED; a CANCELLED
            1800s tick: a deleted
            1800s submit b key=k body=y: accepted
            1800s status b: IN_QUEUE, until 88200s
        "#]],
    );
}

#[test]
fn the_key_of_an_expired_job_with_a_pending_webhook_can_be_used_again() {
    check(
        "
        set retention=5s
        submit a key=k body=x hook
        cancel a
        wait 5s
        submit b key=k body=y
        restart
        submit c key=k body=y
        settled a
        wait 1s
        submit d key=k body=y
        ",
        expect![[r#"
            0s set retention=5s: ok
            0s submit a key=k body=x hook: accepted
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            5s tick: a gone
            5s submit b key=k body=y: accepted
            5s restart: 2 jobs
            5s submit c key=k body=y: known as b IN_QUEUE
            5s settled a: a webhook settled
            5s tick: a deleted
            6s submit d key=k body=y: known as b IN_QUEUE
        "#]],
    );
}

#[test]
fn keys_survive_a_restart() {
    check(
        "
        submit a key=k body=x
        restart
        submit b key=k body=x
        submit c key=k body=y
        ",
        expect![[r#"
            0s submit a key=k body=x: accepted
            0s restart: 1 jobs
            0s submit b key=k body=x: known as a IN_QUEUE
            0s submit c key=k body=y: refused, IdempotencyKeyReused
        "#]],
    );
}

#[test]
fn the_same_id_returns_the_same_job() {
    check(
        "
        submit a
        submit a
        take w1
        submit a
        done w1 a
        submit a
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit a: known as a IN_QUEUE
            0s take w1: a
            0s submit a: known as a IN_PROGRESS
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s submit a: known as a COMPLETED
            0s counters: completed 1, failed 0, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn the_id_of_an_expired_job_returns_that_job() {
    check(
        "
        set retention=5s
        submit a hook
        cancel a
        wait 5s
        status a
        submit a
        ",
        expect![[r#"
            0s set retention=5s: ok
            0s submit a hook: accepted
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            5s tick: a gone
            5s status a: no such job
            5s submit a: known as a CANCELLED
        "#]],
    );
}

#[test]
fn a_full_queue_returns_the_job_of_an_earlier_submit() {
    check(
        "
        set jobs=1
        submit a key=k
        submit b key=k
        submit c
        ",
        expect![[r#"
            0s set jobs=1: ok
            0s submit a key=k: accepted
            0s submit b key=k: known as a IN_QUEUE
            0s submit c: refused, QueueFull
        "#]],
    );
}

#[test]
fn the_same_key_of_another_api_key_is_another_job() {
    check(
        "
        submit a key=k body=x by=1
        submit b key=k body=x by=2
        submit c key=k body=y by=3
        submit d key=k body=x by=1
        submit e key=k body=y by=2
        restart
        submit f key=k body=x by=1
        submit g key=k body=x by=2
        submit h key=k body=x by=3
        cancel a
        wait 30m
        submit i key=k body=x by=1
        submit j key=k body=x by=2
        ",
        expect![[r#"
            0s submit a key=k body=x by=1: accepted
            0s submit b key=k body=x by=2: accepted
            0s submit c key=k body=y by=3: accepted
            0s submit d key=k body=x by=1: known as a IN_QUEUE
            0s submit e key=k body=y by=2: refused, IdempotencyKeyReused
            0s restart: 3 jobs
            0s submit f key=k body=x by=1: known as a IN_QUEUE
            0s submit g key=k body=x by=2: known as b IN_QUEUE
            0s submit h key=k body=x by=3: refused, IdempotencyKeyReused
            0s cancel a: CANCELLED; a CANCELLED
            1800s tick: a deleted
            1800s submit i key=k body=x by=1: accepted
            1800s submit j key=k body=x by=2: known as b IN_QUEUE
        "#]],
    );
}

#[test]
fn a_row_without_an_api_key_matches_the_same_body_only() {
    check(
        "
        submit a key=k body=x
        submit b key=k body=x by=1
        submit c key=k body=y by=1
        submit d key=k body=x by=1
        submit e key=k body=x by=2
        ",
        expect![[r#"
            0s submit a key=k body=x: accepted
            0s submit b key=k body=x by=1: known as a IN_QUEUE
            0s submit c key=k body=y by=1: accepted
            0s submit d key=k body=x by=1: refused, IdempotencyKeyReused
            0s submit e key=k body=x by=2: known as a IN_QUEUE
        "#]],
    );
}
