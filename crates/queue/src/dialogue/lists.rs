//! Pages of jobs, and the load of workers.

use expect_test::expect;

use super::check;

#[test]
fn a_list_is_newest_first_and_continues_at_its_cursor() {
    check(
        "
        submit a
        submit b
        submit c
        wait 1s
        submit d
        submit e
        list
        list 2
        list 2 before=d
        list 2 before=b
        list 5
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            1s submit d: accepted
            1s submit e: accepted
            1s list: e IN_QUEUE, d IN_QUEUE, c IN_QUEUE, b IN_QUEUE, a IN_QUEUE; the end
            1s list 2: e IN_QUEUE, d IN_QUEUE; more before d
            1s list 2 before=d: c IN_QUEUE, b IN_QUEUE; more before b
            1s list 2 before=b: a IN_QUEUE; the end
            1s list 5: e IN_QUEUE, d IN_QUEUE, c IN_QUEUE, b IN_QUEUE, a IN_QUEUE; the end
        "#]],
    );
}

#[test]
fn a_list_can_begin_with_the_oldest_job() {
    check(
        "
        submit a
        submit b
        wait 1s
        submit c
        submit d
        take w1
        error w1 a
        take w1
        error w1 b
        list oldest 3
        list oldest 3 before=c
        list oldest FAILED 1
        list oldest FAILED 1 before=a
        list FAILED 1
        retry a
        list FAILED
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            1s submit c: accepted
            1s submit d: accepted
            1s take w1: a
            1s error w1 a: recorded; a outcome kept; a FAILED
            1s take w1: b
            1s error w1 b: recorded; b outcome kept; b FAILED
            1s list oldest 3: a FAILED, b FAILED, c IN_QUEUE; more after c
            1s list oldest 3 before=c: d IN_QUEUE; the end
            1s list oldest FAILED 1: a FAILED; more after a
            1s list oldest FAILED 1 before=a: b FAILED; the end
            1s list FAILED 1: b FAILED; more before b
            1s retry a: IN_QUEUE; a outcome cleared
            1s list FAILED: b FAILED; the end
        "#]],
    );
}

#[test]
fn a_list_can_be_filtered_by_state() {
    check(
        "
        submit a
        submit b
        submit c
        take w1
        error w1 a
        list FAILED
        list IN_QUEUE
        purge
        list CANCELLED
        list COMPLETED
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s list FAILED: a FAILED; the end
            0s list IN_QUEUE: c IN_QUEUE, b IN_QUEUE; the end
            0s purge: 2 purged
            0s list CANCELLED: c CANCELLED, b CANCELLED; the end
            0s list COMPLETED: ; the end
        "#]],
    );
}

#[test]
fn queued_and_running_jobs_are_listed_by_their_ids() {
    check(
        "
        submit a
        submit b low
        submit c
        submit d
        take w1
        lose w1 drained
        take w2 x2
        list IN_PROGRESS
        list IN_PROGRESS 1
        list IN_PROGRESS before=b
        list IN_QUEUE
        list oldest IN_QUEUE
        list oldest IN_QUEUE before=c
        lose w2 drained
        list IN_QUEUE
        purge
        list IN_QUEUE
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b low: accepted
            0s submit c: accepted
            0s submit d: accepted
            0s take w1: a
            0s lose w1 drained: a back in line
            0s take w2 x2: a, b
            0s list IN_PROGRESS: b IN_PROGRESS, a IN_PROGRESS; the end
            0s list IN_PROGRESS 1: b IN_PROGRESS; more before b
            0s list IN_PROGRESS before=b: a IN_PROGRESS; the end
            0s list IN_QUEUE: d IN_QUEUE, c IN_QUEUE; the end
            0s list oldest IN_QUEUE: c IN_QUEUE, d IN_QUEUE; the end
            0s list oldest IN_QUEUE before=c: d IN_QUEUE; the end
            0s lose w2 drained: b back in line; a back in line
            0s list IN_QUEUE: d IN_QUEUE, c IN_QUEUE, b IN_QUEUE, a IN_QUEUE; the end
            0s purge: 4 purged
            0s list IN_QUEUE: ; the end
        "#]],
    );
}

#[test]
fn expired_jobs_are_not_listed() {
    check(
        "
        submit a ttl=10s hook
        cancel a
        submit b
        wait 30m
        list
        ",
        expect![[r#"
            0s submit a ttl=10s hook: accepted
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            0s submit b: accepted
            10s tick: a gone
            1800s list: b IN_QUEUE; the end
        "#]],
    );
}

#[test]
fn workers_have_a_phase_and_a_number_of_jobs() {
    check(
        "
        workers
        introduce w1
        workers
        wait 1s
        take w1
        workers
        submit a
        take w1
        take w2
        workers
        wait 3s
        done w1 a
        drain w1
        workers
        ",
        expect![[r#"
            0s workers: none
            0s introduce w1: ok
            0s workers: w1 managed Initializing idle since 0s
            1s take w1: nothing
            1s workers: w1 managed Idle idle since 1s
            1s submit a: accepted
            1s take w1: a
            1s take w2: nothing
            1s workers: w1 managed Running holds 1; w2 external Idle idle since 1s
            4s done w1 a: recorded; a outcome kept; a COMPLETED
            4s drain w1: ok
            4s workers: w1 managed Draining idle since 4s; w2 external Idle idle since 1s
        "#]],
    );
}

#[test]
fn an_external_worker_without_contact_is_removed() {
    check(
        "
        take w1
        wait 50s
        take w1
        wait 50s
        workers
        wait 10s
        workers
        ",
        expect![[r#"
            0s take w1: nothing
            50s take w1: nothing
            100s workers: w1 external Idle idle since 0s
            110s workers: none
        "#]],
    );
}

#[test]
fn a_shorter_lease_applies_to_known_workers() {
    check(
        "
        ping w1 -
        take w1
        set lease=5s
        wait 5s
        workers
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s take w1: nothing
            0s set lease=5s: ok
            5s workers: w1 external Draining idle since 0s
        "#]],
    );
}
