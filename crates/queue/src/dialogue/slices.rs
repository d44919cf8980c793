//! Purges, expiries and deletions of many jobs are divided into slices, so that no commit is large.

use expect_test::expect;

use super::check;

#[test]
fn a_purge_is_written_in_slices() {
    check(
        "
        submit 600
        submit x
        purge
        load
        wait 1ms
        counters
        submit y
        take w1
        ",
        expect![[r#"
            0s submit 600: 600 accepted
            0s submit x: accepted
            0s purge: 601 purged
            0s load: queued 0 (0 normal), running 0
            0s tick: 256 × CANCELLED
            0s tick: 256 × CANCELLED
            0s tick: 89 × CANCELLED
            0.001s counters: completed 0, failed 0, cancelled 601, retried 0
            0.001s submit y: accepted
            0.001s take w1: y
        "#]],
    );
}

#[test]
fn a_purge_continues_after_a_restart() {
    check(
        "
        submit 600
        purge
        tick
        restart
        submit y
        restart
        counters
        wait 1ms
        counters
        load
        take w1 x9
        ",
        expect![[r#"
            0s submit 600: 600 accepted
            0s purge: 600 purged
            0s tick: 256 × CANCELLED
            0s restart: 600 jobs
            0s submit y: accepted
            0s restart: 601 jobs
            0s counters: completed 0, failed 0, cancelled 256, retried 0
            0s tick: 256 × CANCELLED
            0s tick: 88 × CANCELLED
            0.001s counters: completed 0, failed 0, cancelled 600, retried 0
            0.001s load: queued 1 (1 normal), running 0, oldest normal since 0.001s
            0.001s take w1 x9: y
        "#]],
    );
}

#[test]
fn expired_jobs_are_deleted_in_slices() {
    check(
        "
        set retention=1s
        submit 600
        purge
        wait 1ms
        wait 1s
        list
        ",
        expect![[r#"
            0s set retention=1s: ok
            0s submit 600: 600 accepted
            0s purge: 600 purged
            0s tick: 256 × CANCELLED
            0s tick: 256 × CANCELLED
            0s tick: 88 × CANCELLED
            1s tick: 256 × deleted
            1s tick: 256 × deleted
            1s tick: 88 × deleted
            1.001s list: ; the end
        "#]],
    );
}

#[test]
fn a_take_behind_many_expired_jobs_is_tried_again() {
    check(
        "
        submit 300
        submit a ttl=48h
        skip 24h
        submit b
        take w1
        take w1 x1
        load
        ",
        expect![[r#"
            0s submit 300: 300 accepted
            0s submit a ttl=48h: accepted
            0s skip 24h: it is 86400s
            86400s submit b: accepted
            86400s take w1: nothing; 256 × deleted; 1 × ready
            86400s take w1 x1: a; 44 × deleted
            86400s load: queued 1 (1 normal), running 1, oldest normal since 86400s
        "#]],
    );
}

#[test]
fn a_deleted_endpoint_is_emptied_in_slices() {
    check(
        "
        submit 300
        introduce w1
        take w1
        take w2
        demolish
        demolish
        demolish
        workers
        wait 9s
        workers
        wait 1s
        ",
        expect![[r#"
            0s submit 300: 300 accepted
            0s introduce w1: ok
            0s take w1: j0
            0s take w2: j1
            0s demolish: 44 left; 256 × deleted; 1 × stop at w1; 1 × stop at w2
            0s demolish: 0 left; 44 × deleted
            0s demolish: 0 left
            0s workers: w1 managed Idle idle since 0s; w2 external Idle idle since 0s
            9s workers: w1 managed Idle idle since 0s; w2 external Idle idle since 0s
            10s tick: replace w1: job j0 was not stopped within the stop grace
        "#]],
    );
}
