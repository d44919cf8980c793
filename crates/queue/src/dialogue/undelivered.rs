//! Jobs whose input could not be read when they were delivered.

use expect_test::expect;

use super::check;

#[test]
fn an_unreadable_input_counts_no_retry_and_keeps_the_position() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x2
        unread a
        status a
        position a
        position c
        load
        take w1
        wait 999ms
        take w1
        wait 1ms
        take w1
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x2: a, b
            0s unread a: recorded; a back in line
            0s status a: IN_QUEUE after w1, until 86400s
            0s position a: 1
            0s position c: 2
            0s load: queued 2 (2 normal), running 1, oldest normal since 0s
            0s take w1: c
            0.999s take w1: nothing
            1s take w1: a
            1s status a: IN_PROGRESS by w1, delay 1s, execution 0s, until 86400s
        "#]],
    );
}

#[test]
fn unreadable_jobs_of_several_takes_keep_their_order() {
    check(
        "
        submit a
        submit b
        submit c
        take w1
        unread a
        take w1
        unread b
        reload
        wait 1s
        take w1 x3
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1: a
            0s unread a: recorded; a back in line
            0s take w1: b
            0s unread b: recorded; b back in line
            0s reload: 3 jobs
            1s take w1 x3: a, b, c
        "#]],
    );
}

#[test]
fn the_delay_doubles_up_to_its_limit_and_the_job_never_fails() {
    check(
        "
        submit a ttl=24h
        take w1
        unread a
        wait 1s
        take w1
        unread a
        wait 1999ms
        take w1
        wait 1ms
        take w1
        unread a
        wait 4s
        take w1
        unread a
        wait 8s
        take w1
        unread a
        wait 16s
        take w1
        unread a
        wait 29s
        take w1
        wait 1s
        take w1
        ping w1 a
        done w1 a
        status a
        ",
        expect![[r#"
            0s submit a ttl=24h: accepted
            0s take w1: a
            0s unread a: recorded; a back in line
            1s take w1: a
            1s unread a: recorded; a back in line
            2.999s take w1: nothing
            3s take w1: a
            3s unread a: recorded; a back in line
            7s take w1: a
            7s unread a: recorded; a back in line
            15s take w1: a
            15s unread a: recorded; a back in line
            31s take w1: a
            31s unread a: recorded; a back in line
            60s take w1: nothing
            61s take w1: a
            61s ping w1 a: ok
            61s done w1 a: recorded; a outcome kept; a COMPLETED
            61s status a: COMPLETED by w1, delay 30s, execution 0s, outcome, until 1861s
        "#]],
    );
}

#[test]
fn a_damaged_input_fails_only_its_job() {
    check(
        "
        submit a hook
        submit b
        take w1 x2
        damaged a
        status a
        status b
        retry a
        take w2
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s submit b: accepted
            0s take w1 x2: a, b
            0s damaged a: recorded; a error "its input is damaged"; a FAILED; a webhook due
            0s status a: FAILED by w1, delay 0s, execution 0s, error "its input is damaged", until 1800s
            0s status b: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w2: a
        "#]],
    );
}

#[test]
fn an_unreadable_input_of_an_earlier_attempt_changes_nothing() {
    check(
        "
        submit a
        take w1
        take w1 idle
        unread a 1
        status a
        cancel a
        unread a
        damaged a
        unread x
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s unread a 1: ignored
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            0s unread a: ignored
            0s damaged a: ignored
            0s unread x: ignored
        "#]],
    );
}

#[test]
fn a_deferred_job_can_be_cancelled_purged_and_expire() {
    check(
        "
        submit a
        submit b
        submit c ttl=10s
        take w1 x3
        unread c
        unread b
        unread a
        cancel a
        load
        purge
        wait 20s
        take w1
        submit d
        submit e ttl=10s
        take w1 x2
        unread e
        wait 500ms
        unread d
        reload
        take w1 x2
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c ttl=10s: accepted
            0s take w1 x3: a, b, c
            0s unread c: recorded; c back in line
            0s unread b: recorded; b back in line
            0s unread a: recorded; a back in line
            0s cancel a: CANCELLED; a CANCELLED
            0s load: queued 2 (2 normal), running 0, oldest normal since 0s
            0s purge: 2 purged
            0s tick: b CANCELLED; c CANCELLED
            10s tick: c deleted
            20s take w1: nothing
            20s submit d: accepted
            20s submit e ttl=10s: accepted
            20s take w1 x2: d, e
            20s unread e: recorded; e back in line
            20.5s unread d: recorded; d back in line
            20.5s reload: 4 jobs
            20.5s take w1 x2: d, e
        "#]],
    );
}

#[test]
fn a_job_that_keeps_its_place_does_not_hide_one_that_waits_longer() {
    check(
        "
        submit a
        wait 1s
        submit b
        take w1
        wait 10s
        unread a
        load
        wait 1s
        load
        take w1 x2
        load
        ",
        expect![[r#"
            0s submit a: accepted
            1s submit b: accepted
            1s take w1: a
            11s unread a: recorded; a back in line
            11s load: queued 2 (2 normal), running 0, oldest normal since 1s
            12s load: queued 2 (2 normal), running 0, oldest normal since 1s
            12s take w1 x2: a, b
            12s load: queued 0 (0 normal), running 2
        "#]],
    );
}
