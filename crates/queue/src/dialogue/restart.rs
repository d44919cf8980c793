//! A restart restores the queue from its rows.

use std::string::String;
use std::vec::Vec;

use expect_test::expect;

use longshore_model::{JobKey, JobRow};

use super::check;
use super::script::play;
use super::world::World;

#[test]
fn a_restart_keeps_jobs_in_every_state() {
    check(
        "
        submit a
        submit b hook
        submit c low
        submit d
        take w1 x2
        done w1 b
        cancel d
        restart
        load
        status a
        status b
        list
        counters
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b hook: accepted
            0s submit c low: accepted
            0s submit d: accepted
            0s take w1 x2: a, b
            0s done w1 b: recorded; b outcome kept; b COMPLETED; b webhook due
            0s cancel d: CANCELLED; d CANCELLED
            0s restart: 4 jobs
            0s load: queued 1 (0 normal), running 1
            0s status a: IN_PROGRESS by w1, delay 0s, execution 0s, until 86400s
            0s status b: COMPLETED by w1, delay 0s, execution 0s, outcome, until 1800s
            0s list: d CANCELLED, c IN_QUEUE, b COMPLETED, a IN_PROGRESS; the end
            0s counters: completed 1, failed 0, cancelled 1, retried 0
        "#]],
    );
}

#[test]
fn running_jobs_get_a_new_lease() {
    check(
        "
        submit a
        take w1
        wait 25s
        restart
        wait 29s
        status a
        ping w1 a
        wait 29s
        status a
        done w1 a
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            25s restart: 1 jobs
            54s status a: IN_PROGRESS by w1, delay 0s, execution 54s, until 86400s
            54s ping w1 a: ok
            83s status a: IN_PROGRESS by w1, delay 0s, execution 83s, until 86400s
            83s done w1 a: recorded; a outcome kept; a COMPLETED
        "#]],
    );
}

#[test]
fn a_worker_without_contact_after_a_restart_is_lost() {
    check(
        "
        submit a
        submit b
        submit c
        take w1
        take w1
        restart
        wait 30s
        take w2 x3
        take w2 x3
        take w2 x3
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1: a
            0s take w1: b
            0s restart: 3 jobs
            30s tick: b back in line, retry 1; a back in line, retry 1
            30s take w2 x3: a
            30s take w2 x3: b
            30s take w2 x3: c
        "#]],
    );
}

#[test]
fn a_worker_can_report_right_after_a_restart() {
    check(
        "
        submit a
        take w1
        restart
        done w1 a
        workers
        ",
        expect![[r#"
            0s submit a: accepted
            0s take w1: a
            0s restart: 1 jobs
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s workers: w1 external Idle idle since 0s
        "#]],
    );
}

#[test]
fn sequence_numbers_of_deleted_jobs_are_not_reused() {
    check(
        "
        submit a ttl=10s
        wait 10s
        restart
        submit b
        restart
        submit c
        list
        ",
        expect![[r#"
            0s submit a ttl=10s: accepted
            10s tick: a deleted
            10s restart: 0 jobs
            10s submit b: accepted
            10s restart: 1 jobs
            10s submit c: accepted
            10s list: c IN_QUEUE, b IN_QUEUE; the end
        "#]],
    );
}

#[test]
fn a_timeout_that_passed_during_a_restart_is_due_immediately() {
    check(
        "
        submit a timeout=5s
        take w1
        skip 6s
        restart
        wait 0s
        status a
        ",
        expect![[r#"
            0s submit a timeout=5s: accepted
            0s take w1: a
            0s skip 6s: it is 6s
            6s restart: 1 jobs
            6s tick: a error "the job ran longer than its execution timeout of 5000 ms"; a TIMED_OUT; a stop at w1
            6s status a: TIMED_OUT by w1, delay 0s, execution 6s, error "the job ran longer than its execution timeout of 5000 ms", until 1806s
        "#]],
    );
}

#[test]
fn a_restart_keeps_the_order_of_queued_jobs() {
    check(
        "
        submit a
        submit b
        submit c
        take w1 x2
        lose w1 free
        restart
        submit d
        take w1 x3
        restart
        wait 30s
        take w2 x4
        take w2 x4
        take w2 x4
        take w2 x4
        ",
        expect![[r#"
            0s submit a: accepted
            0s submit b: accepted
            0s submit c: accepted
            0s take w1 x2: a, b
            0s lose w1 free: b back in line; a back in line
            0s restart: 3 jobs
            0s submit d: accepted
            0s take w1 x3: a, b, c
            0s restart: 4 jobs
            30s tick: c back in line, retry 1; b back in line, retry 1; a back in line, retry 1
            30s take w2 x4: a
            30s take w2 x4: b
            30s take w2 x4: c
            30s take w2 x4: d
        "#]],
    );
}

#[test]
fn after_the_last_sequence_number_submits_are_refused() {
    let mut world = World::new();
    world.rows.counters.reserved_seq = JobKey::SEQ_MAX - 1;
    world.restart(false);
    let mut dialogue = std::string::String::new();
    for line in ["submit a", "submit b", "restart", "submit c"] {
        play(&mut world, line, &mut dialogue);
    }
    expect![[r#"
        0s submit a: accepted
        0s submit b: refused, QueueFull
        0s restart: 1 jobs
        0s submit c: refused, QueueFull
    "#]]
    .assert_eq(&dialogue);
}

#[test]
fn a_registered_worker_that_had_jobs_before_a_restart_has_a_lease() {
    check(
        "
        introduce w1
        introduce w2
        submit a
        take w1
        done w1 a
        restart
        introduce w1
        introduce w2
        workers
        wait 1h
        ",
        expect![[r#"
            0s introduce w1: ok
            0s introduce w2: ok
            0s submit a: accepted
            0s take w1: a
            0s done w1 a: recorded; a outcome kept; a COMPLETED
            0s restart: 1 jobs
            0s introduce w1: ok
            0s introduce w2: ok
            0s workers: w1 managed Idle idle since 0s; w2 managed Initializing idle since 0s
            30s tick: replace w1: lease of worker w1 expired, last contact 30 s ago
            1800s tick: a deleted
        "#]],
    );
}

#[test]
fn a_reload_keeps_the_workers() {
    check(
        "
        introduce w1
        submit a
        submit b
        take w1
        ping w1 a
        cancel a
        take w2
        lose w2 drained
        introduce w3
        take w3
        done w3 b
        reload
        workers
        wait 1h
        ",
        expect![[r#"
            0s introduce w1: ok
            0s submit a: accepted
            0s submit b: accepted
            0s take w1: a
            0s ping w1 a: ok
            0s cancel a: CANCELLED; a CANCELLED; a stop at w1
            0s take w2: b
            0s lose w2 drained: b back in line
            0s introduce w3: ok
            0s take w3: b
            0s done w3 b: recorded; b outcome kept; b COMPLETED
            0s reload: 2 jobs
            0s workers: w1 managed Idle idle since 0s; w3 managed Idle idle since 0s
            10s tick: replace w1: job a was not stopped within the stop grace
            30s tick: replace w1: lease of worker w1 expired, last contact 30 s ago
            1800s tick: a deleted; b deleted
        "#]],
    );
}

#[test]
fn submitters_traces_and_carried_fields_stay_with_their_jobs() {
    let mut world = World::new();
    play(&mut world, "submit a by=3 trace=3", &mut String::new());
    play(&mut world, "submit b by=4 trace=4", &mut String::new());
    for row in world.rows.jobs.values_mut() {
        let number = row.submitter.owner.0 as u8;
        row.carried = Some([64, 1, number].into());
    }
    world.queue = world.restored(false);
    let carried = |world: &World| {
        let rows = world.rows.jobs.values();
        let numbers = |row: &JobRow| {
            (row.submitter.owner.0, row.trace.as_ref().unwrap().trace[0], row.carried.clone().unwrap()[2])
        };
        rows.map(numbers).collect::<Vec<_>>()
    };
    for line in
        ["restart", "take w1 x2", "done w1 a", "reload", "error w1 b", "retry b", "take w1", "done w1 b"]
    {
        play(&mut world, line, &mut String::new());
        assert_eq!(carried(&world), [(3, 3, 3), (4, 4, 4)], "{line}");
    }
}
