//! The order of deliveries, paused endpoints, full queues and draining workers.

use expect_test::expect;

use super::check;

#[test]
fn jobs_are_taken_first_in_first_out() {
    check(
        "
        submit a
        submit b
        load
        take w1
        take w1 busy
        take w1 busy
        load
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s load: queued 2 (2 normal), running 0, oldest normal since 0s
            0s take w1: a
            0s take w1 busy: b
            0s take w1 busy: nothing
            0s load: queued 0 (0 normal), running 2
        "#]],
    );
}

#[test]
fn one_take_can_get_several_jobs() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x2
        take w1 x2
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x2: a, b
            0s take w1 x2: c
        "#]],
    );
}

#[test]
fn low_priority_keeps_the_position_and_causes_no_load() {
    check(
        "
        submit a low
        wait 1s
        submit b
        submit c low
        load
        take w1 x2
        load
        ",
        expect![[r#"
            0s submit a low: accepted
            1s submit b: accepted
            1s submit c low: accepted
            1s load: queued 3 (1 normal), running 0, oldest normal since 1s
            1s take w1 x2: a, b
            1s load: queued 1 (0 normal), running 2
        "#]],
    );
}

#[test]
fn a_job_that_is_put_back_to_the_front_hides_no_longer_wait() {
    check(
        "
        submit a
        take w1
        wait 1s
        submit b
        wait 9s
        lose w1 drained
        load
        take w2
        wait 1s
        lose w2 drained
        load
        cancel b
        load
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            1s submit b: accepted
            10s lose w1 drained: a back in line
            10s load: queued 2 (2 normal), running 0, oldest normal since 1s
            10s take w2: a
            11s lose w2 drained: a back in line
            11s load: queued 2 (2 normal), running 0, oldest normal since 1s
            11s cancel b: CANCELLED; b CANCELLED
            11s load: queued 1 (1 normal), running 0, oldest normal since 11s
        "#]],
    );
}

#[test]
fn positions_count_jobs_of_both_priorities() {
    check(
        "
        position a
        submit a
        submit b low
        submit c
        position c
        take w1
        position a
        position c
        lose w1 drained
        position a
        position b
        position c
        cancel b
        position b
        position c
        purge
        position c
        ",
        expect![[r#"
            0s position a: not in line
            0s submit a: accepted
            0s submit b low: accepted
            0s submit c: accepted
            0s position c: 3
            0s take w1: a
            0s position a: not in line
            0s position c: 2
            0s lose w1 drained: a back in line
            0s position a: 1
            0s position b: 2
            0s position c: 3
            0s cancel b: CANCELLED; b CANCELLED
            0s position b: not in line
            0s position c: 2
            0s purge: 2 purged
            0s position c: not in line
        "#]],
    );
}

#[test]
fn two_workers_never_get_the_same_job() {
    check(
        "
        submit a
        submit b
        take w1
        take w2
        take w3
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s take w2: b
            0s take w3: nothing
        "#]],
    );
}

#[test]
fn a_paused_endpoint_accepts_jobs_and_delivers_none() {
    check(
        "
        set paused
        submit a
        take w1
        set running
        take w1
        set paused
        done w1 a
        ",
        expect![[r#"
            0s set paused: ok
            0s submit a: accepted
            0s take w1: nothing
            0s set running: ready
            0s take w1: a
            0s set paused: ok
            0s done w1 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn a_full_queue_refuses_a_submit_until_a_job_is_taken() {
    check(
        "
        set jobs=2
        submit a
        submit b
        submit c
        status c
        take w1
        submit c
        ",
        expect![[r#"
            0s set jobs=2: ok
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: refused, QueueFull
            0s status c: no such job
            0s take w1: a
            0s submit c: accepted
        "#]],
    );
}

#[test]
fn another_take_ends_the_drain_of_an_external_worker() {
    check(
        "
        take w1
        drain w1
        submit a
        workers
        take w1
        workers
        ",
        expect![[r#"
            0s take w1: nothing
            0s drain w1: ok
            0s submit a: accepted
            0s workers: w1 external Draining idle since 0s
            0s take w1: a
            0s workers: w1 external Running holds 1
        "#]],
    );
}

#[test]
fn a_draining_worker_gets_no_job_and_can_report() {
    check(
        "
        introduce w1
        submit a
        submit b
        take w1
        drain w1
        take w1 x2 busy
        workers
        done w1 a
        take w1 idle
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s drain w1: ok
            0s take w1 x2 busy: nothing
            0s workers: w1 managed Draining holds 1
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s take w1 idle: nothing
        "#]],
    );
}
