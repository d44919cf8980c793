//! Lost workers: exits, ended leases and late results.

use expect_test::expect;

use super::check;

#[test]
fn the_jobs_of_a_lost_worker_are_requeued_at_the_front_in_order() {
    check(
        "
        submit a
        submit b
        submit c
        submit d
        take w1 x3
        lose w1 counted 'exit code 1'
        status a
        take w2 x4
        take w2 x4
        take w2 x4
        take w2 x4
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s submit d: accepted
            0s take w1 x3: a, b, c
            0s lose w1 counted 'exit code 1': c back in line, retry 1; b back in line, retry 1; a back in line, retry 1
            0s status a: IN_QUEUE after w1, retries 1, until 86400s
            0s take w2 x4: a
            0s take w2 x4: b
            0s take w2 x4: c
            0s take w2 x4: d
        "#]],
    );
}

#[test]
fn with_no_retries_left_the_job_fails_with_the_reason() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        take w2
        lose w2 counted
        take w3
        lose w3 counted 'signal 9, last words: out of memory'
        status a
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s take w2: a
            0s lose w2 counted: a back in line, retry 2
            0s take w3: a
            0s lose w3 counted 'signal 9, last words: out of memory': a error "failed after 3 runs, no retries left: signal 9, last words: out of memory"; a FAILED
            0s status a: FAILED by w3, delay 0s, execution 0s, retries 2, error "failed after 3 runs, no retries left: signal 9, last words: out of memory", until 1800s
            0s counters: completed 0, failed 1, cancelled 0, retried 2
        "#]],
    );
}

#[test]
fn with_max_retries_0_the_first_loss_fails_the_job() {
    check(
        "
        set retries=0
        submit a
        take w1
        lose w1 counted 'exit code 137'
        status a
        ",
        expect![[r#"
            0s set retries=0: ok
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted 'exit code 137': a error "failed after 1 run, no retries left: exit code 137"; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, error "failed after 1 run, no retries left: exit code 137", until 1800s
        "#]],
    );
}

#[test]
fn an_expected_exit_counts_no_retry() {
    check(
        "
        set retries=0
        submit a
        take w1
        drain w1
        lose w1 free
        status a
        take w2
        done w2 a
        status a
        ",
        expect![[r#"
            0s set retries=0: ok
            0s submit a: accepted
            0s take w1: a
            0s drain w1: ok
            0s lose w1 free: a back in line
            0s status a: IN_QUEUE after w1, until 86400s
            0s take w2: a
            0s done w2 a: recorded; a outcome kept; a COMPLETED
            0s status a: COMPLETED by w2, delay 0s, execution 0s, outcome, until 1800s
        "#]],
    );
}

#[test]
fn the_chunks_of_a_lost_attempt_are_dropped() {
    check(
        "
        submit a
        take w1
        append w1 a
        append w1 a
        progress w1 a
        lose w1 counted
        take w2
        append w2 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s append w1 a: may append in attempt 1
            0s append w1 a: may append in attempt 1
            0s progress w1 a: recorded; a outcome kept
            0s lose w1 counted: a outcome cleared; a chunks dropped: 2; a back in line, retry 1
            0s take w2: a
            0s append w2 a: may append in attempt 2
            0s status a: IN_PROGRESS by w2, delay 0s, execution 0s, first chunk 0s, retries 1, chunks 1, until 86400s
        "#]],
    );
}

#[test]
fn a_worker_whose_pings_stop_is_lost_after_its_lease() {
    check(
        "
        ping w1 -
        submit a
        take w1
        ping w1 a
        wait 29s
        load
        wait 1s
        status a
        workers
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            29s load: queued 0 (0 normal), running 1
            30s tick: a back in line, retry 1
            30s status a: IN_QUEUE after w1, retries 1, until 86400s
            30s workers: w1 external Draining idle since 30s
        "#]],
    );
}

#[test]
fn polling_for_stop_signals_renews_the_lease() {
    check(
        "
        ping w1 -
        submit a
        take w1
        ping w1 a
        wait 29s
        alive w1
        wait 29s
        load
        wait 1s
        alive w1
        workers
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            29s alive w1: ok
            58s load: queued 0 (0 normal), running 1
            59s tick: a back in line, retry 1
            59s alive w1: ok
            59s workers: w1 external Draining idle since 59s
        "#]],
    );
}

#[test]
fn leases_and_stop_graces_are_renewed_after_a_suspension() {
    check(
        "
        introduce w1
        submit a
        submit b
        take w1 x2
        ping w1 a,b
        cancel b
        skip 5m
        forgive
        tick
        wait 9s
        ping w1 a
        wait 31s
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x2: a, b
            0s ping w1 a,b: ok
            0s cancel b: CANCELLED; b CANCELLED; b stop at w1
            0s skip 5m: it is 300s
            300s forgive: ok
            300s tick: ok
            309s ping w1 a: ok
            339s tick: a back in line, retry 1; replace w1: lease of worker w1 expired, last contact 30 s ago
        "#]],
    );
}

#[test]
fn an_external_worker_that_gets_a_job_after_its_lease_has_a_lease_again() {
    check(
        "
        set lease=6s
        submit a
        take w1
        ping w1 a
        done w1 a
        take w1
        wait 10s
        workers
        submit b
        take w1
        workers
        wait 10s
        status b
        workers
        wait 60s
        workers
        ",
        expect![[r#"
            0s set lease=6s: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s take w1: nothing
            10s workers: w1 external Draining idle since 0s
            10s submit b: accepted
            10s take w1: b
            10s workers: w1 external Running holds 1
            16s tick: b back in line, retry 1
            20s status b: IN_QUEUE after w1, retries 1, until 86410s
            20s workers: w1 external Draining idle since 16s
            80s workers: none
        "#]],
    );
}

#[test]
fn another_take_ends_the_draining_of_an_external_worker() {
    check(
        "
        ping w1 -
        take w1
        wait 40s
        workers
        ping w1 -
        workers
        wait 59s
        workers
        take w1
        workers
        wait 30s
        workers
        wait 30s
        workers
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s take w1: nothing
            40s workers: w1 external Draining idle since 0s
            40s ping w1 -: ok
            40s workers: w1 external Draining idle since 0s
            99s workers: w1 external Draining idle since 0s
            99s take w1: nothing
            99s workers: w1 external Idle idle since 99s
            129s workers: w1 external Draining idle since 99s
            159s workers: none
        "#]],
    );
}

#[test]
fn registering_a_drained_external_worker_ends_the_draining() {
    check(
        "
        submit a
        take w1
        ping w1 a
        wait 30s
        workers
        introduce w1
        ping w1 -
        take w1
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            30s tick: a back in line, retry 1
            30s workers: w1 external Draining idle since 30s
            30s introduce w1: ok
            30s ping w1 -: ok
            30s take w1: a
        "#]],
    );
}

#[test]
fn a_managed_worker_is_replaced_after_its_lease() {
    check(
        "
        introduce w1
        ping w1 -
        submit a
        take w1
        ping w1 a
        wait 31s
        workers
        take w1
        lose w1 free
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            30s tick: a back in line, retry 1; replace w1: lease of worker w1 expired, last contact 30 s ago
            31s workers: w1 managed Draining idle since 30s
            31s take w1: nothing
            31s lose w1 free: ok
            31s workers: none
        "#]],
    );
}

#[test]
fn pings_keep_a_worker_and_its_job_for_hours() {
    check(
        "
        ping w1 -
        submit a timeout=2h
        take w1
        ping w1 a
        wait 20s
        ping w1 a
        wait 20s
        ping w1 a
        wait 20s
        ping w1
        wait 29s
        workers
        status a
        ",
        expect![[r#"
            0s ping w1 -: ok
            0s submit a timeout=2h: accepted
            0s take w1: a
            0s ping w1 a: ok
            20s ping w1 a: ok
            40s ping w1 a: ok
            60s ping w1: ok
            89s workers: w1 external Running holds 1
            89s status a: IN_PROGRESS by w1, delay 0s, execution 89s, until 86400s
        "#]],
    );
}

#[test]
fn a_worker_that_never_pinged_keeps_its_job() {
    check(
        "
        submit a timeout=1h
        take w1
        wait 50m
        status a
        done w1 a
        wait 61s
        workers
        ",
        expect![[r#"
            0s submit a timeout=1h: accepted
            0s take w1: a
            3000s status a: IN_PROGRESS by w1, delay 0s, execution 3000s, until 86400s
            3000s done w1 a: recorded; a outcome kept; a COMPLETED
            3061s workers: none
        "#]],
    );
}

#[test]
fn a_worker_without_a_take_has_no_lease() {
    check(
        "
        introduce w1
        ping w1 -
        wait 10m
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s ping w1 -: ok
            600s workers: w1 managed Initializing idle since 0s
        "#]],
    );
}

#[test]
fn a_late_result_completes_a_requeued_job() {
    check(
        "
        submit a
        take w1
        wait 1s
        lose w1 counted
        wait 1s
        done w1 a
        status a
        load
        take w2
        workers
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            1s lose w1 counted: a back in line, retry 1
            2s done w1 a: recorded; a outcome kept; a COMPLETED
            2s status a: COMPLETED by w1, delay 0s, execution 1s, retries 1, outcome, until 1802s
            2s load: queued 0 (0 normal), running 0
            2s take w2: nothing
            2s workers: w2 external Idle idle since 2s
        "#]],
    );
}

#[test]
fn a_late_result_completes_the_job_and_stops_its_next_worker() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        take w2
        wait 5s
        done w1 a
        status a
        done w2 a
        workers
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s take w2: a
            5s done w1 a: recorded; a outcome kept; a COMPLETED; a stop at w2
            5s status a: COMPLETED by w1, delay 0s, execution 5s, retries 1, outcome, until 1805s
            5s done w2 a: ignored; w2 let go of its only job since 0s
            5s workers: w2 external Idle idle since 5s
            5s counters: completed 1, failed 0, cancelled 0, retried 1
        "#]],
    );
}

#[test]
fn a_late_error_is_ignored() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        error w1 a
        take w2
        error w1 a
        status a
        done w2 a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s error w1 a: ignored
            0s take w2: a
            0s error w1 a: ignored
            0s status a: IN_PROGRESS by w2, delay 0s, execution 0s, retries 1, until 86400s
            0s done w2 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn a_late_result_that_is_too_large_is_ignored() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        done w1 a 1001
        take w2
        done w1 a 1001
        done w2 a 1000
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s done w1 a 1001: ignored
            0s take w2: a
            0s done w1 a 1001: ignored
            0s done w2 a 1000: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn a_late_result_of_a_finished_job_is_ignored() {
    check(
        "
        submit a
        take w1
        lose w1 counted
        take w2
        error w2 a
        done w1 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s take w2: a
            0s error w2 a: recorded; a outcome kept; a FAILED
            0s done w1 a: ignored
            0s status a: FAILED by w2, delay 0s, execution 0s, retries 1, outcome, until 1800s
        "#]],
    );
}

#[test]
fn losing_an_unknown_worker_changes_nothing() {
    check(
        "
        lose w1 counted
        drain w1
        ",
        expect![[r#"
            0s lose w1 counted: ok
            0s drain w1: ok
        "#]],
    );
}
