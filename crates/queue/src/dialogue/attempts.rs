//! The attempts that ended without the job's result.

use expect_test::expect;

use super::check;

#[test]
fn each_attempt_that_ends_without_a_result_is_stored_with_its_reason() {
    check(
        "
        set retry-errors
        submit a
        take w1
        wait 2s
        lose w1 counted 'signal 9'
        wait 1s
        take w2
        lose w2 free 'stopped: the endpoint needs fewer workers'
        take w3
        error w3 a
        take w4
        unread a
        attempts a
        wait 1s
        take w5
        attempts a
        done w5 a
        attempts a
        ",
        expect![[r#"
            0s set retry-errors: ok
            0s submit a: accepted
            0s take w1: a
            2s lose w1 counted 'signal 9': a back in line, retry 1
            3s take w2: a
            3s lose w2 free 'stopped: the endpoint needs fewer workers': a back in line
            3s take w3: a
            3s error w3 a: ignored; a back in line, retry 2
            3s take w4: a
            3s unread a: recorded; a back in line
            3s attempts a: 1 by w1 from 0s to 2s workerLost: signal 9; 2 by w2 from 3s to 3s drained: stopped: the endpoint needs fewer workers; 3 by w3 from 3s to 3s failed: the handler reported an error; 4 by w4 from 3s to 3s undelivered: its input could not be read from the disk, or its worker had disconnected
            4s take w5: a
            4s attempts a: 1 by w1 from 0s to 2s workerLost: signal 9; 2 by w2 from 3s to 3s drained: stopped: the endpoint needs fewer workers; 3 by w3 from 3s to 3s failed: the handler reported an error; 4 by w4 from 3s to 3s undelivered: its input could not be read from the disk, or its worker had disconnected
            4s done w5 a: recorded; a outcome kept; a COMPLETED
            4s attempts a: 1 by w1 from 0s to 2s workerLost: signal 9; 2 by w2 from 3s to 3s drained: stopped: the endpoint needs fewer workers; 3 by w3 from 3s to 3s failed: the handler reported an error; 4 by w4 from 3s to 3s undelivered: its input could not be read from the disk, or its worker had disconnected
        "#]],
    );
}

#[test]
fn a_plain_job_has_no_stored_attempt() {
    check(
        "
        submit a
        take w1
        attempts a
        done w1 a
        submit b
        take w1
        cancel b
        attempts a
        attempts b
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s attempts a: none
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s submit b: accepted
            0s take w1: b
            0s cancel b: CANCELLED; b CANCELLED; b stop at w1
            0s attempts a: none
            0s attempts b: none
        "#]],
    );
}

#[test]
fn the_attempt_of_an_unconfirmed_delivery_was_not_delivered() {
    check(
        "
        submit a
        take w1
        take w1 idle
        attempts a
        ping w1 a
        take w1 idle
        attempts a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s take w1 idle: a; a back in line, redelivery 1; ready
            0s attempts a: 1 by w1 from 0s to 0s undelivered: its worker did not confirm the delivery
            0s ping w1 a: ok
            0s take w1 idle: a; a back in line, retry 1; ready
            0s attempts a: 1 by w1 from 0s to 0s undelivered: its worker did not confirm the delivery; 2 by w1 from 0s to 0s workerLost: the worker dropped the job without a report
        "#]],
    );
}

#[test]
fn the_attempts_before_a_client_retry_stay() {
    check(
        "
        set retries=0
        submit a timeout=5s
        take w1
        lose w1 counted 'exit code 137'
        retry a
        take w2
        error w2 a
        retry a
        take w3
        wait 5s
        retry a
        take w4
        done w4 a 5000
        attempts a
        restart
        wait 1800s
        status a
        ",
        expect![[r#"
            0s set retries=0: ok
            0s submit a timeout=5s: accepted
            0s take w1: a
            0s lose w1 counted 'exit code 137': a error "failed after 1 run, no retries left: exit code 137"; a FAILED
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w2: a
            0s error w2 a: recorded; a outcome kept; a FAILED
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w3: a
            5s tick: a error "the job ran longer than its execution timeout of 5000 ms"; a TIMED_OUT; a stop at w3
            5s retry a: IN_QUEUE; a outcome cleared
            5s take w4: a
            5s done w4 a 5000: recorded; a error "the output has 5000 bytes, the limit is 1000: upload it to storage and return a link"; a FAILED
            5s attempts a: 1 by w1 from 0s to 0s workerLost: exit code 137; 2 by w2 from 0s to 0s failed: the handler reported an error; 3 by w3 from 0s to 5s timedOut: the job ran longer than its execution timeout of 5000 ms; 4 by w4 from 5s to 5s failed: the output has 5000 bytes, the limit is 1000: upload it to storage and return a link
            5s restart: 1 jobs
            1805s tick: a deleted
            1805s status a: no such job
        "#]],
    );
}

#[test]
fn the_first_chunk_of_each_attempt_has_its_time() {
    check(
        "
        submit a
        take w1
        wait 1s
        append w1 a
        wait 1s
        append w1 a
        status a
        restart
        status a
        lose w1 counted
        status a
        take w2
        wait 1s
        append w2 a
        done w2 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            1s append w1 a: may append in attempt 1
            2s append w1 a: may append in attempt 1
            2s status a: IN_PROGRESS by w1, delay 0s, execution 2s, first chunk 1s, chunks 2, until 86400s
            2s restart: 1 jobs
            2s status a: IN_PROGRESS by w1, delay 0s, execution 2s, first chunk 1s, chunks 2, until 86400s
            2s lose w1 counted: a chunks dropped: 2; a back in line, retry 1
            2s status a: IN_QUEUE after w1, retries 1, chunks 0, until 86400s
            2s take w2: a
            3s append w2 a: may append in attempt 2
            3s done w2 a: recorded; a outcome kept; a COMPLETED
            3s status a: COMPLETED by w2, delay 0s, execution 1s, first chunk 3s, retries 1, chunks 1, outcome, until 1803s
        "#]],
    );
}

#[test]
fn an_attempt_keeps_its_gpu_when_the_worker_is_gone() {
    check(
        "
        submit a
        take w1 gpu=H100
        lose w1 counted 'signal 9'
        status a
        take w2
        status a
        lose w2 counted 'signal 9'
        take w3 gpu=L4
        done w3 a
        lose w3 free
        restart
        status a
        attempts a
        submit b
        take w4 gpu=L4
        error w4 b
        retry b
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1 gpu=H100: a
            0s lose w1 counted 'signal 9': a back in line, retry 1
            0s status a: IN_QUEUE after w1, on H100, retries 1, until 86400s
            0s take w2: a
            0s status a: IN_PROGRESS by w2, delay 0s, execution 0s, retries 1, until 86400s
            0s lose w2 counted 'signal 9': a back in line, retry 2
            0s take w3 gpu=L4: a
            0s done w3 a: recorded; a outcome kept; a COMPLETED
            0s lose w3 free: ok
            0s restart: 1 jobs
            0s status a: COMPLETED by w3, delay 0s, execution 0s, on L4, retries 2, outcome, until 1800s
            0s attempts a: 1 by w1 on H100 from 0s to 0s workerLost: signal 9; 2 by w2 from 0s to 0s workerLost: signal 9
            0s submit b: accepted
            0s take w4 gpu=L4: b
            0s error w4 b: recorded; b outcome kept; b FAILED
            0s retry b: IN_QUEUE; b outcome cleared
            0s status b: IN_QUEUE, until 86400s
        "#]],
    );
}

#[test]
fn the_times_of_progress_values_are_those_of_the_last_attempt_and_stay_with_its_end() {
    check(
        "
        submit a
        take w1
        wait 1s
        progress w1 a
        lose w1 free
        take w2
        wait 2s
        progress w2 a
        wait 3s
        progress w2 a
        status a
        done w2 a
        restart
        status a
        submit b
        take w2
        progress w2 b
        restart
        status b
        error w2 b
        status b
        retry b
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            1s progress w1 a: recorded; a outcome kept
            1s lose w1 free: a outcome cleared; a back in line
            1s take w2: a
            3s progress w2 a: recorded; a outcome kept
            6s progress w2 a: recorded; a outcome kept
            6s status a: IN_PROGRESS by w2, delay 0s, execution 5s, progress after 2s 5s, outcome, until 86400s
            6s done w2 a: recorded; a outcome kept; a COMPLETED
            6s restart: 1 jobs
            6s status a: COMPLETED by w2, delay 0s, execution 5s, progress after 2s 5s, outcome, until 1806s
            6s submit b: accepted
            6s take w2: b
            6s progress w2 b: recorded; b outcome kept
            6s restart: 2 jobs
            6s status b: IN_PROGRESS by w2, delay 0s, execution 0s, outcome, until 86406s
            6s error w2 b: recorded; b outcome kept; b FAILED
            6s status b: FAILED by w2, delay 0s, execution 0s, outcome, until 1806s
            6s retry b: IN_QUEUE; b outcome cleared
            6s status b: IN_QUEUE, until 86406s
        "#]],
    );
}
