//! A webhook call is pending from the end of the job until it is settled.

use expect_test::expect;

use super::check;

#[test]
fn the_call_is_pending_when_the_job_ends() {
    check(
        "
        submit a hook
        take w1
        done w1 a
        settled a
        settled a
        wait 30m
        status a
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED; a webhook due
            0s settled a: a webhook settled
            0s settled a: ok
            1800s tick: a deleted
            1800s status a: no such job
        "#]],
    );
}

#[test]
fn every_end_makes_a_call_pending_and_deletion_does_not() {
    check(
        "
        submit a hook
        cancel a
        submit b hook
        take w1
        error w1 b
        submit c hook timeout=5s
        take w1
        wait 5s
        submit d hook
        purge
        wait 1s
        submit e hook ttl=10s
        wait 10s
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            0s submit b hook: accepted
            0s take w1: b
            0s error w1 b: recorded; b outcome kept; b FAILED; b webhook due
            0s submit c hook timeout=5s: accepted
            0s take w1: c
            5s tick: c error "the job ran longer than its execution timeout of 5000 ms"; c TIMED_OUT; c stop at w1; c webhook due
            5s submit d hook: accepted
            5s purge: 1 purged
            5s tick: d CANCELLED; d webhook due
            6s submit e hook ttl=10s: accepted
            16s tick: e deleted
        "#]],
    );
}

#[test]
fn a_pending_call_keeps_the_row_of_an_expired_job_invisible() {
    check(
        "
        set retention=5s
        submit a hook
        cancel a
        wait 5s
        status a
        list
        clock back 4s
        restart
        status a
        cancel a
        keep a 5s
        wait 24h
        settled a
        wait 1s
        status a
        ",
        expect![[r#"
            0s set retention=5s: ok
            0s submit a hook: accepted
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            5s tick: a gone
            5s status a: no such job
            5s list: ; the end
            5s clock back 4s: it is 1s
            1s restart: 1 jobs
            1s status a: no such job
            1s cancel a: refused, NoSuchJob
            1s keep a 5s: refused, NoSuchJob
            86401s settled a: a webhook settled
            86401s tick: a deleted
            86402s status a: no such job
        "#]],
    );
}

#[test]
fn a_retry_drops_the_call_and_the_next_end_has_a_new_one() {
    check(
        "
        submit a hook
        take w1
        error w1 a
        retry a
        settled a
        take w1
        done w1 a
        settled a first
        settled a
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED; a webhook due
            0s retry a: IN_QUEUE; a outcome cleared
            0s settled a: ok
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED; a webhook due
            0s settled a first: ok
            0s settled a: a webhook settled
        "#]],
    );
}

#[test]
fn settling_an_earlier_end_changes_nothing() {
    check(
        "
        submit a hook
        take w1
        error w1 a
        retry a
        take w1
        error w1 a
        settled a first
        retry a
        cancel a
        settled a first
        restart
        settled a
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED; a webhook due
            0s retry a: IN_QUEUE; a outcome cleared
            0s take w1: a
            0s error w1 a: recorded; a outcome kept; a FAILED; a webhook due
            0s settled a first: ok
            0s retry a: IN_QUEUE; a outcome cleared
            0s cancel a: CANCELLED; a CANCELLED; a webhook due
            0s settled a first: ok
            0s restart: 1 jobs
            0s settled a: a webhook settled
        "#]],
    );
}

#[test]
fn settling_the_webhook_of_an_unknown_job_changes_nothing() {
    check(
        "
        settled a
        ",
        expect![[r#"
            0s settled a: ok
        "#]],
    );
}

#[test]
fn a_settled_call_can_be_redelivered() {
    check(
        "
        submit a hook
        take w1
        done w1 a
        repeat a
        settled a
        repeat a
        repeat a
        restart
        wait 30m
        repeat a
        settled a
        wait 1s
        repeat a
        ",
        expect![[r#"
            0s submit a hook: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED; a webhook due
            0s repeat a: COMPLETED
            0s settled a: a webhook settled
            0s repeat a: COMPLETED; a webhook due
            0s repeat a: COMPLETED
            0s restart: 1 jobs
            1800s tick: a gone
            1800s repeat a: refused, NoSuchJob
            1800s settled a: a webhook settled
            1800s tick: a deleted
            1801s repeat a: refused, NoSuchJob
        "#]],
    );
}

#[test]
fn only_the_present_end_of_a_job_with_a_webhook_is_redelivered() {
    check(
        "
        submit a
        cancel a
        repeat a
        submit b hook
        repeat b
        take w1
        error w1 b
        retry b
        repeat b
        repeat c
        ",
        expect![[r#"
            0s submit a: accepted
            0s cancel a: CANCELLED; a CANCELLED
            0s repeat a: refused, WebhookNotRedeliverable
            0s submit b hook: accepted
            0s repeat b: refused, WebhookNotRedeliverable
            0s take w1: b
            0s error w1 b: recorded; b outcome kept; b FAILED; b webhook due
            0s retry b: IN_QUEUE; b outcome cleared
            0s repeat b: refused, WebhookNotRedeliverable
            0s repeat c: refused, NoSuchJob
        "#]],
    );
}
