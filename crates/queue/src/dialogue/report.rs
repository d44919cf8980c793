//! Results, errors, progress values and chunks.

use expect_test::expect;

use super::check;

#[test]
fn a_result_completes_the_job() {
    check(
        "
        submit a
        wait 2s
        take w1
        wait 3s
        done w1 a
        status a
        load
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            2s take w1: a
            5s done w1 a: recorded; a outcome kept; a COMPLETED
            5s status a: COMPLETED by w1, delay 2s, execution 3s, outcome, until 1805s
            5s load: queued 0 (0 normal), running 0
            5s counters: completed 1, failed 0, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn an_error_fails_the_job_without_a_retry() {
    check(
        "
        submit a
        take w1
        error w1 a
        status a
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, outcome, until 1800s
            0s counters: completed 0, failed 1, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn an_error_is_retried_if_the_endpoint_retries_errors() {
    check(
        "
        set retry-errors retries=1
        submit a
        take w1
        progress w1 a
        append w1 a
        error w1 a
        status a
        take w2
        error w2 a
        status a
        counters
        ",
        expect![[r#"
            0s set retry-errors retries=1: ok
            0s submit a: accepted
            0s take w1: a
            0s progress w1 a: recorded; a outcome kept
            0s append w1 a: may append in attempt 1
            0s error w1 a: ignored; a outcome cleared; a chunks dropped: 1; a back in line, retry 1
            0s status a: IN_QUEUE after w1, retries 1, chunks 0, until 86400s
            0s take w2: a
            0s error w2 a: recorded; a outcome kept; a FAILED
            0s status a: FAILED by w2, delay 0s, execution 0s, retries 1, chunks 0, outcome, until 1800s
            0s counters: completed 0, failed 1, cancelled 0, retried 1
        "#]],
    );
}

#[test]
fn progress_is_stored_until_the_result() {
    check(
        "
        submit a
        take w1
        progress w1 a
        progress w1 a
        status a
        done w1 a
        progress w1 a
        append w1 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s progress w1 a: recorded; a outcome kept
            0s progress w1 a: recorded; a outcome kept
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, progress after 0s 0s, outcome, until 86400s
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s progress w1 a: ignored
            0s append w1 a: ignored
            0s status a: COMPLETED by w1, delay 0s, execution 0s, progress after 0s 0s, outcome, until 1800s
        "#]],
    );
}

#[test]
fn only_the_holder_may_append() {
    check(
        "
        submit a
        append w1 a
        take w1
        append w2 a
        append w1 a
        append w1 a
        status a
        ",
        expect![[r#"
            0s submit a: accepted
            0s append w1 a: ignored
            0s take w1: a
            0s append w2 a: ignored
            0s append w1 a: may append in attempt 1
            0s append w1 a: may append in attempt 1
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, first chunk 0s, chunks 2, until 86400s
        "#]],
    );
}

#[test]
fn a_second_result_changes_nothing() {
    check(
        "
        submit a
        take w1
        done w1 a
        done w1 a
        error w1 a
        done w2 a
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s done w1 a: ignored
            0s error w1 a: ignored
            0s done w2 a: ignored
            0s counters: completed 1, failed 0, cancelled 0, retried 0
        "#]],
    );
}

#[test]
fn a_result_of_a_job_that_was_never_taken_is_ignored() {
    check(
        "
        submit a
        done w1 a
        error w1 a
        progress w1 a
        status a
        workers
        ",
        expect![[r#"
            0s submit a: accepted
            0s done w1 a: ignored
            0s error w1 a: ignored
            0s progress w1 a: ignored
            0s status a: IN_QUEUE, until 86400s
            0s workers: none
        "#]],
    );
}

#[test]
fn an_error_from_another_worker_is_ignored() {
    check(
        "
        submit a
        take w1
        error w2 a
        progress w2 a
        status a
        done w1 a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s error w2 a: ignored
            0s progress w2 a: ignored
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s done w1 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn an_output_over_the_limit_fails_the_job_with_the_reason() {
    check(
        "
        submit a
        submit b sync
        take w1 x2
        done w1 a 1001
        status a
        done w1 b 2000
        status b
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b sync: accepted
            0s take w1 x2: a, b
            0s done w1 a 1001: recorded; a error "the output has 1001 bytes, the limit is 1000: upload it to storage and return a link"; a FAILED
            0s status a: FAILED by w1, delay 0s, execution 0s, error "the output has 1001 bytes, the limit is 1000: upload it to storage and return a link", until 1800s
            0s done w1 b 2000: recorded; b outcome kept; b COMPLETED
            0s status b: COMPLETED by w1, delay 0s, execution 0s, outcome, until 60s
        "#]],
    );
}

#[test]
fn a_report_about_an_unknown_job_is_ignored() {
    check(
        "
        done w1 a
        error w1 a
        progress w1 a
        append w1 a
        workers
        ",
        expect![[r#"
            0s done w1 a: ignored
            0s error w1 a: ignored
            0s progress w1 a: ignored
            0s append w1 a: ignored
            0s workers: none
        "#]],
    );
}
