//! A client purges all queued jobs.

use expect_test::expect;

use super::check;

#[test]
fn queued_jobs_are_cancelled_and_running_jobs_continue() {
    check(
        "
        submit a
        submit b
        submit c low
        take w1
        purge
        status b
        load
        wait 1s
        status b
        done w1 a
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c low: accepted
            0s take w1: a
            0s purge: 2 purged
            0s status b: CANCELLED, until 86400s
            0s load: queued 0 (0 normal), running 1
            0s tick: b CANCELLED; c CANCELLED
            1s status b: CANCELLED, until 1800s
            1s done w1 a: recorded; a outcome kept; a COMPLETED
            1s counters: completed 1, failed 0, cancelled 2, retried 0
        "#]],
    );
}

#[test]
fn purging_an_empty_queue_changes_nothing() {
    check(
        "
        purge
        submit a
        take w1
        purge
        wait 1s
        status a
        ",
        expect![[r#"
            0s purge: 0 purged
            0s submit a: accepted
            0s take w1: a
            0s purge: 0 purged
            1s status a: IN_PROGRESS by w1, delay 0s, execution 1s, until 86400s
        "#]],
    );
}

#[test]
fn a_job_submitted_in_the_millisecond_of_the_purge_stays() {
    check(
        "
        submit a
        purge
        submit b
        status a
        status b
        restart
        status a
        status b
        purge
        status b
        submit c
        restart
        wait 1s
        status a
        status b
        status c
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s purge: 1 purged
            0s submit b: accepted
            0s status a: CANCELLED, until 86400s
            0s status b: IN_QUEUE, until 86400s
            0s restart: 2 jobs
            0s status a: CANCELLED, until 86400s
            0s status b: IN_QUEUE, until 86400s
            0s purge: 1 purged
            0s status b: CANCELLED, until 86400s
            0s submit c: accepted
            0s restart: 3 jobs
            0s tick: a CANCELLED; b CANCELLED
            1s status a: CANCELLED, until 1800s
            1s status b: CANCELLED, until 1800s
            1s status c: IN_QUEUE, until 86400s
            1s counters: completed 0, failed 0, cancelled 2, retried 0
        "#]],
    );
}

#[test]
fn a_purged_job_is_cancelled_before_its_row_is_written() {
    check(
        "
        submit a hook
        purge
        cancel a
        retry a
        keep a 10s
        done w1 a
        take w1
        wait 1s
        status a
        settled a
        wait 10s
        status a
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s purge: 1 purged
            0s cancel a: CANCELLED
            0s retry a: refused, NotRetryable
            0s keep a 10s: CANCELLED
            0s done w1 a: ignored
            0s take w1: nothing
            0s tick: a CANCELLED; a webhook due
            1s status a: CANCELLED, until 10s
            1s settled a: a webhook settled
            10s tick: a deleted
            11s status a: no such job
        "#]],
    );
}

#[test]
fn a_late_result_does_not_complete_a_purged_job() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        purge
        done w1 a
        wait 1s
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s purge: 1 purged
            0s done w1 a: ignored
            0s tick: a CANCELLED
            1s status a: CANCELLED after w1, retries 1, until 1800s
        "#]],
    );
}

#[test]
fn another_purge_covers_a_job_requeued_after_the_first() {
    check(
        "
        submit a
        take w1
        purge
        lose w1 free
        submit b
        purge
        lose w1 free
        wait 1s
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s purge: 0 purged
            0s lose w1 free: a back in line
            0s submit b: accepted
            0s purge: 2 purged
            0s lose w1 free: ok
            0s tick: a CANCELLED; b CANCELLED
            1s status a: CANCELLED after w1, until 1800s
        "#]],
    );
}

#[test]
fn a_purge_does_not_cover_a_job_requeued_later() {
    check(
        "
        submit a
        submit b
        take w1
        purge
        lose w1 free
        restart
        wait 1s
        status a
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s purge: 1 purged
            0s lose w1 free: a back in line
            0s restart: 2 jobs
            0s tick: b CANCELLED
            1s status a: IN_QUEUE after w1, until 86400s
            1s status b: CANCELLED, until 1800s
        "#]],
    );
}

#[test]
fn a_purge_after_the_clock_was_set_back_covers_all_queued_jobs() {
    check(
        "
        submit a
        clock back 10s
        restart
        purge
        restart
        status a
        submit b
        wait 1s
        status a
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s clock back 10s: it is 0s
            0s restart: 1 jobs
            0s purge: 1 purged
            0s restart: 1 jobs
            0s status a: CANCELLED, until 86400s
            0s submit b: accepted
            0s tick: a CANCELLED
            0s status a: CANCELLED, until 1790s
            0s status b: IN_QUEUE, until 86390s
        "#]],
    );
}
