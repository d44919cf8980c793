//! Stop signals, and workers that are stuck in a stopped job.

use expect_test::expect;

use super::check;

#[test]
fn a_stuck_worker_is_replaced_when_its_stop_grace_ends() {
    check(
        "
        introduce w1
        ping w1 -
        submit a
        take w1
        ping w1 a
        cancel a
        wait 9s
        ping w1 a
        wait 1s
        workers
        take w1
        lose w1 free
        ",
        expect![[r#"
            0s introduce w1: ok
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            9s ping w1 a: a stop at w1
            10s tick: replace w1: job a was not stopped within the stop grace
            10s workers: w1 managed Draining idle since 0s
            10s take w1: nothing
            10s lose w1 free: ok
        "#]],
    );
}

#[test]
fn the_stop_grace_is_a_setting_and_can_be_0() {
    check(
        "
        introduce w1
        submit a
        submit b
        set grace=1s
        take w1
        cancel a
        wait 900ms
        wait 100ms
        lose w1 free
        introduce w2
        set grace=0s
        take w2
        cancel b
        wait 1ms
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s set grace=1s: ready
            0s take w1: a
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            1s tick: replace w1: job a was not stopped within the stop grace
            1s lose w1 free: ok
            1s introduce w2: ok
            1s set grace=0s: ready
            1s take w2: b
            1s cancel b: CANCELLED; b CANCELLED; b stop at w2
            1s tick: replace w2: job b was not stopped within the stop grace
        "#]],
    );
}

#[test]
fn a_take_with_no_job_in_progress_confirms_the_stop() {
    check(
        "
        introduce w1
        submit a
        take w1
        cancel a
        take w1 idle
        wait 20s
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s take w1: a
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            0s take w1 idle: nothing; w1 let go of its only job since 0s
            20s workers: w1 managed Idle idle since 0s
        "#]],
    );
}

#[test]
fn a_result_confirms_the_stop() {
    check(
        "
        introduce w1
        submit a
        take w1
        cancel a
        wait 5s
        done w1 a
        status a
        wait 20s
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s take w1: a
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            5s done w1 a: ignored; w1 let go of its only job since 0s
            5s status a: CANCELLED by w1, delay 0s, execution 0s, until 1800s
            25s workers: w1 managed Idle idle since 0s
        "#]],
    );
}

#[test]
fn a_ping_without_the_job_confirms_the_stop() {
    check(
        "
        introduce w1
        ping w1 -
        submit a
        take w1
        ping w1 a
        cancel a
        wait 5s
        ping w1 -
        wait 20s
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s ping w1 -: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            5s ping w1 -: w1 let go of its only job since 0s
            25s workers: w1 managed Idle idle since 0s
        "#]],
    );
}

#[test]
fn with_other_jobs_the_next_ping_can_confirm_the_stop() {
    check(
        "
        introduce w1
        submit a
        submit b
        take w1 x2
        ping w1 a,b
        wait 1s
        cancel a
        wait 10s
        workers
        ping w1 b
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x2: a, b
            0s ping w1 a,b: ok
            1s cancel a: CANCELLED; a CANCELLED; a stop at w1
            11s workers: w1 managed Running holds 1
            11s ping w1 b: ok
            11s workers: w1 managed Running holds 1
        "#]],
    );
}

#[test]
fn with_other_jobs_the_next_ping_can_show_that_the_worker_is_stuck() {
    check(
        "
        introduce w1
        submit a
        submit b
        take w1 x2
        ping w1 a,b
        wait 1s
        cancel a
        wait 10s
        ping w1 a,b
        lose w1 free
        status b
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1 x2: a, b
            0s ping w1 a,b: ok
            1s cancel a: CANCELLED; a CANCELLED; a stop at w1
            11s ping w1 a,b: replace w1: job a was not stopped within the stop grace; a stop at w1
            11s lose w1 free: b back in line
            11s status b: IN_QUEUE after w1, until 86400s
        "#]],
    );
}

#[test]
fn an_external_worker_cannot_be_replaced() {
    check(
        "
        submit a
        take w1
        ping w1 a
        cancel a
        wait 10s
        ping w1 a
        wait 20s
        ping w1 a
        workers
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            10s ping w1 a: a stop at w1
            30s ping w1 a: a stop at w1
            30s workers: w1 external Idle idle since 0s
        "#]],
    );
}

#[test]
fn a_stop_lost_in_a_restart_is_pending_again_after_a_ping() {
    check(
        "
        introduce w1
        submit a
        take w1
        ping w1 a
        cancel a
        restart
        introduce w1
        take w1 busy
        ping w1 a
        wait 15s
        ping w1 a
        wait 15s
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            0s restart: 1 jobs
            0s introduce w1: ok
            0s take w1 busy: nothing
            0s ping w1 a: a stop at w1
            15s ping w1 a: a stop at w1
            30s tick: replace w1: job a was not stopped within the stop grace
        "#]],
    );
}

#[test]
fn the_stop_of_an_earlier_attempt_does_not_apply_to_the_next() {
    check(
        "
        introduce w1
        submit a timeout=20s
        take w1
        ping w1 a
        wait 20s
        retry a
        take w1 busy
        ping w1 a
        wait 11s
        ping w1 a
        workers
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a timeout=20s: accepted
            0s take w1: a
            0s ping w1 a: ok
            20s tick: a error "the job ran longer than its execution timeout of 20000 ms"; a TIMED_OUT; a stop at w1
            20s retry a: IN_QUEUE; a outcome cleared
            20s take w1 busy: a
            20s ping w1 a: ok
            31s ping w1 a: ok
            31s workers: w1 managed Running holds 1
        "#]],
    );
}

#[test]
fn the_holder_of_a_job_that_a_late_result_ended_must_stop_too() {
    check(
        "
        introduce w2
        submit a
        take w1
        lose w1 counted
        take w2
        done w1 a
        wait 10s
        workers
        ",
        expect![[r#"
            0s introduce w2: ok
            0s submit a: accepted
            0s take w1: a
            0s lose w1 counted: a back in line, retry 1
            0s take w2: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED; a stop at w2
            10s tick: replace w2: job a was not stopped within the stop grace
            10s workers: w2 managed Draining idle since 0s
        "#]],
    );
}

#[test]
fn let_go_is_signalled_only_for_the_only_job_of_a_worker() {
    check(
        "
        introduce w1
        submit a
        submit b
        submit c
        submit d
        take w1
        wait 2s
        cancel a
        take w1 idle
        take w1
        cancel b
        ping w1 c
        cancel c
        take w1 idle
        cancel d
        ping w1 -
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s submit d: accepted
            0s take w1: a
            2s cancel a: CANCELLED; a CANCELLED; a stop at w1
            2s take w1 idle: b; w1 let go of its only job since 0s
            2s take w1: c
            2s cancel b: CANCELLED; b CANCELLED; b stop at w1
            2s ping w1 c: ok
            2s cancel c: CANCELLED; c CANCELLED; c stop at w1
            2s take w1 idle: d
            2s cancel d: CANCELLED; d CANCELLED; d stop at w1
            2s ping w1 -: w1 let go of its only job since 2s
        "#]],
    );
}

#[test]
fn let_go_is_not_signalled_for_a_job_from_before_a_restart() {
    check(
        "
        introduce w1
        submit a
        take w1
        restart
        cancel a
        take w1 idle
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s take w1: a
            0s restart: 1 jobs
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            0s take w1 idle: nothing
        "#]],
    );
}
