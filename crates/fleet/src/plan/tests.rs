//! Dialogues with a fleet that carries out every plan: each event, and the plan below it.

use super::*;
use crate::Scaler;
use alloc::{format, string::String};
use core::fmt::Write;
use expect_test::{Expect, expect};

/// A fleet that carries out each plan immediately, under a clock that the test moves.
struct Fleet {
    now: Millis,
    rules: ScalingRules,
    load: FleetLoad,
    backoff: Backoff,
    unreplaced: u32,
    workers: Vec<PlannedWorker>,
    started: u32,
    log: String,
}

impl Fleet {
    fn new(rules: ScalingRules) -> Self {
        let (load, backoff) = (FleetLoad::default(), Backoff::default());
        let (workers, log) = (Vec::new(), String::new());
        Self { now: Millis(0), rules, load, backoff, unreplaced: 0, workers, started: 0, log }
    }

    fn says(&mut self, what: &str) {
        writeln!(self.log, "{:<6} {what}", self.now.0).unwrap();
    }

    /// Time passes: waiting jobs wait, idle workers idle.
    fn pass(&mut self, ms: u64) {
        self.now = self.now + ms;
        if self.load.queued_normal > 0 {
            self.load.oldest_normal_wait_ms += ms;
        }
        for worker in self.workers.iter_mut().filter(|w| w.running == 0) {
            worker.idle_ms += ms;
        }
    }

    fn queued(&mut self, jobs: u64, wait_ms: u64) -> &mut Self {
        self.load.queued_normal = jobs;
        self.load.oldest_normal_wait_ms = wait_ms;
        self.says(&format!("{jobs} jobs wait, the oldest for {wait_ms}"));
        self
    }

    /// Sets the number of jobs that worker `w<n>` runs.
    fn holds(&mut self, n: u32, jobs: u32) -> &mut Self {
        let id: WorkerId = format!("w{n}").parse().unwrap();
        let worker = self.workers.iter_mut().find(|w| w.id == id).unwrap();
        worker.running = jobs;
        worker.idle_ms = 0;
        if worker.phase != WorkerPhase::Draining {
            worker.phase = if jobs > 0 { WorkerPhase::Running } else { WorkerPhase::Idle };
        }
        self.load.running = self.workers.iter().map(|w| u64::from(w.running)).sum();
        self.says(&format!("w{n} holds {jobs}"));
        self
    }

    fn crash(&mut self, n: u32, ran_ms: u64) -> &mut Self {
        let id: WorkerId = format!("w{n}").parse().unwrap();
        self.workers.retain(|w| w.id != id);
        self.backoff.crashed(self.now, ran_ms);
        self.says(&format!("w{n} crashes"));
        self
    }

    /// Plans and carries out until a plan has no steps.
    fn settle(&mut self) -> &mut Self {
        loop {
            let plan = plan(self.now, &self.rules, &self.load, &self.workers, &self.backoff, self.unreplaced);
            self.unreplaced = plan.unreplaced;
            for step in &plan.steps {
                self.obey(step);
            }
            if plan.steps.is_empty() {
                let look = plan.look_at.map_or("-".into(), |at| format!("{}", at.0));
                let sick = if plan.unhealthy > 0 {
                    format!(", {} unhealthy", plan.unhealthy)
                } else {
                    String::new()
                };
                writeln!(self.log, "       . look at {look}{sick}").unwrap();
                return self;
            }
        }
    }

    fn obey(&mut self, step: &Step) {
        match step {
            Step::Start => {
                self.started += 1;
                self.unreplaced = self.unreplaced.saturating_sub(1);
                let id: WorkerId = format!("w{}", self.started).parse().unwrap();
                writeln!(self.log, "       > start {id}").unwrap();
                self.workers.push(PlannedWorker {
                    id,
                    version: Some(self.rules.version),
                    phase: WorkerPhase::Initializing,
                    running: 0,
                    idle_ms: 0,
                    is_late: false,
                });
            }
            Step::Drain(id, reason) => {
                writeln!(self.log, "       > drain {id}: {reason}").unwrap();
                self.workers.iter_mut().find(|w| w.id == *id).unwrap().phase = WorkerPhase::Draining;
            }
            Step::Stop(id) => {
                writeln!(self.log, "       > stop {id}").unwrap();
                let gone = self.workers.iter().position(|w| w.id == *id).unwrap();
                assert_eq!(self.workers.remove(gone).running, 0, "a running job was interrupted");
            }
        }
    }

    fn check(&self, expected: &Expect) {
        expected.assert_eq(&self.log);
    }
}

const RULES: ScalingRules = ScalingRules {
    workers_min: 0,
    workers_max: 3,
    idle_timeout_ms: 5_000,
    idle_timeout_ms_max: None,
    scaler: Scaler::QueueDelay { ms: 4_000 },
    max_concurrency: 1,
    version: 1,
    is_balanced: false,
};

#[test]
fn from_nothing_to_three_and_back() {
    let mut fleet = Fleet::new(RULES);
    fleet.settle().queued(10, 0).settle();
    fleet.pass(3_000);
    fleet.holds(1, 1).queued(9, 3_000).settle();
    fleet.pass(1_000);
    fleet.settle();
    fleet.pass(4_000);
    fleet.settle();
    fleet.holds(2, 1).holds(3, 1).queued(7, 9_000).settle();
    fleet.queued(0, 0).holds(1, 0).settle();
    fleet.pass(2_000);
    fleet.holds(2, 0).holds(3, 0).settle();
    fleet.pass(3_000);
    fleet.settle();
    fleet.pass(2_000);
    fleet.settle();
    fleet.check(&expect![[r#"
               . look at -
        0      10 jobs wait, the oldest for 0
               > start w1
               . look at 4000
        3000   w1 holds 1
        3000   9 jobs wait, the oldest for 3000
               . look at 4000
               > start w2
               . look at 8000
               > start w3
               . look at -
        8000   w2 holds 1
        8000   w3 holds 1
        8000   7 jobs wait, the oldest for 9000
               . look at -
        8000   0 jobs wait, the oldest for 0
        8000   w1 holds 0
               . look at 13000
        10000  w2 holds 0
        10000  w3 holds 0
               . look at 13000
               > drain w1: idle for longer than idleTimeout
               > stop w1
               . look at 15000
               > drain w2: idle for longer than idleTimeout
               > drain w3: idle for longer than idleTimeout
               > stop w2
               > stop w3
               . look at -
    "#]]);
}

#[test]
fn the_minimum_is_kept() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 2, ..RULES });
    fleet.settle().holds(1, 0).holds(2, 0);
    fleet.pass(60_000);
    fleet.settle();
    fleet.check(&expect![[r#"
               > start w1
               > start w2
               . look at -
        0      w1 holds 0
        0      w2 holds 0
               . look at -
    "#]]);
}

#[test]
fn low_priority_jobs_keep_a_worker_but_start_none() {
    let mut fleet = Fleet::new(ScalingRules { scaler: Scaler::RequestCount { jobs: 1 }, ..RULES });
    fleet.queued(1, 0).settle();
    fleet.queued(0, 0).holds(1, 4).settle();
    fleet.pass(60_000);
    fleet.settle();
    fleet.check(&expect![[r#"
        0      1 jobs wait, the oldest for 0
               > start w1
               . look at -
        0      0 jobs wait, the oldest for 0
        0      w1 holds 4
               . look at -
               . look at -
    "#]]);
}

#[test]
fn lowering_the_maximum_drains_the_busiest_last() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 3, ..RULES });
    fleet.settle().holds(1, 5).holds(2, 1).holds(3, 0).settle();
    fleet.rules.workers_max = 1;
    fleet.settle().holds(2, 0).settle();
    fleet.check(&expect![[r#"
               > start w1
               > start w2
               > start w3
               . look at -
        0      w1 holds 5
        0      w2 holds 1
        0      w3 holds 0
               . look at -
               > drain w3: more workers than workersMax
               > drain w2: more workers than workersMax
               > stop w3
               . look at -
        0      w2 holds 0
               > stop w2
               . look at -
    "#]]);
}

#[test]
fn a_pause_stops_the_idle_and_lets_the_busy_finish() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 2, ..RULES });
    fleet.settle().holds(1, 0).holds(2, 1);
    fleet.rules.workers_max = 0;
    fleet.queued(4, 60_000).settle().holds(2, 0).settle();
    fleet.check(&expect![[r#"
               > start w1
               > start w2
               . look at -
        0      w1 holds 0
        0      w2 holds 1
        0      4 jobs wait, the oldest for 60000
               > drain w1: more workers than workersMax
               > drain w2: more workers than workersMax
               > stop w1
               . look at -
        0      w2 holds 0
               > stop w2
               . look at -
    "#]]);
}

#[test]
fn workers_of_an_older_version_are_replaced_within_the_maximum() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 2, workers_max: 2, ..RULES });
    fleet.settle().holds(1, 0).holds(2, 1);
    fleet.rules.version = 2;
    fleet.settle().holds(2, 0).settle();
    fleet.check(&expect![[r#"
               > start w1
               > start w2
               . look at -
        0      w1 holds 0
        0      w2 holds 1
               > drain w1: replaced by the endpoint's new version
               > drain w2: replaced by the endpoint's new version
               > stop w1
               > start w3
               . look at -
        0      w2 holds 0
               > stop w2
               > start w4
               . look at -
    "#]]);
}

#[test]
fn a_command_that_crashes_is_tried_less_and_less_often() {
    let mut fleet = Fleet::new(ScalingRules { scaler: Scaler::RequestCount { jobs: 1 }, ..RULES });
    fleet.queued(3, 0).settle();
    fleet.crash(1, 100).crash(2, 100).crash(3, 100).settle();
    fleet.pass(1_000);
    fleet.settle().crash(4, 100).settle();
    fleet.pass(2_000);
    fleet.settle().holds(5, 1);
    fleet.backoff.lived(crate::STABLE_UPTIME_MS);
    fleet.settle();
    fleet.check(&expect![[r#"
        0      3 jobs wait, the oldest for 0
               > start w1
               > start w2
               > start w3
               . look at -
        0      w1 crashes
        0      w2 crashes
        0      w3 crashes
               . look at 1000, 3 unhealthy
               > start w4
               . look at -, 2 unhealthy
        1000   w4 crashes
               . look at 3000, 3 unhealthy
               > start w5
               . look at -, 2 unhealthy
        3000   w5 holds 1
               > start w6
               > start w7
               . look at -
    "#]]);
}

#[test]
fn external_workers_count_but_are_not_stopped() {
    let mut fleet = Fleet::new(RULES);
    fleet.workers.push(PlannedWorker {
        id: "laptop".parse().unwrap(),
        version: None,
        phase: WorkerPhase::Idle,
        running: 0,
        idle_ms: 0,
        is_late: false,
    });
    fleet.queued(1, 0).settle();
    fleet.queued(0, 0).pass(60_000);
    fleet.settle();
    fleet.check(&expect![[r#"
        0      1 jobs wait, the oldest for 0
               . look at 4000
        0      0 jobs wait, the oldest for 0
               . look at -
    "#]]);
}

#[test]
fn a_busy_fleet_stays_as_large_as_it_was_while_it_is_replaced() {
    let mut fleet =
        Fleet::new(ScalingRules { workers_max: 4, scaler: Scaler::QueueDelay { ms: 60_000 }, ..RULES });
    fleet.rules.workers_min = 3;
    fleet.settle().holds(1, 1).holds(2, 1).holds(3, 1);
    fleet.rules.workers_min = 0;
    fleet.queued(9, 1_000).rules.version = 2;
    fleet.settle().holds(4, 1).settle();
    fleet.holds(1, 0).settle().holds(5, 1).holds(2, 0).settle();
    fleet.holds(3, 0).settle();
    fleet.check(&expect![[r#"
               > start w1
               > start w2
               > start w3
               . look at -
        0      w1 holds 1
        0      w2 holds 1
        0      w3 holds 1
        0      9 jobs wait, the oldest for 1000
               > drain w1: replaced by the endpoint's new version
               > drain w2: replaced by the endpoint's new version
               > drain w3: replaced by the endpoint's new version
               > start w4
               . look at 59000
        0      w4 holds 1
               . look at 59000
        0      w1 holds 0
               > stop w1
               > start w5
               . look at 59000
        0      w5 holds 1
        0      w2 holds 0
               > stop w2
               > start w6
               . look at 59000
        0      w3 holds 0
               > stop w3
               . look at 59000
    "#]]);
}

#[test]
fn workers_that_are_not_needed_are_not_replaced() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 2, workers_max: 4, ..RULES });
    fleet.settle().holds(1, 0).holds(2, 0);
    fleet.rules.workers_min = 0;
    fleet.rules.version = 2;
    fleet.settle().queued(1, 0).settle();
    assert_eq!(fleet.workers.len(), 1);
}

#[test]
fn a_late_worker_keeps_no_job_waiting() {
    let mut fleet = Fleet::new(ScalingRules { workers_min: 1, workers_max: 3, ..RULES });
    fleet.settle();
    fleet.workers[0].is_late = true;
    fleet.settle();
    assert_eq!(fleet.workers.len(), 1, "no job waits");
    fleet.queued(1, 0).settle().settle();
    assert_eq!(fleet.workers.len(), 2, "one worker beside the late one");
    fleet.workers[1].is_late = true;
    fleet.backoff.crashed(fleet.now, 0);
    fleet.pass(60_000);
    fleet.settle();
    assert_eq!(fleet.workers.len(), 3, "also after a crash");
    fleet.workers[2].is_late = true;
    fleet.settle();
    assert_eq!(fleet.workers.len(), 3, "late workers count against the maximum");
}

#[test]
fn a_balanced_worker_serves_until_its_replacement_is_up() {
    let scaler = Scaler::RequestCount { jobs: 100 };
    let rules = ScalingRules { workers_max: 2, scaler, is_balanced: true, ..RULES };
    let mut fleet = Fleet::new(rules);
    fleet.queued(1, 0).settle().queued(0, 0).holds(1, 3).settle();
    fleet.rules.version = 2;
    fleet.settle().holds(2, 0).settle().holds(1, 0).settle();
    fleet.rules.workers_max = 1;
    fleet.holds(2, 1).settle();
    fleet.rules.version = 3;
    fleet.settle().holds(2, 0).settle();
    fleet.check(&expect![[r#"
        0      1 jobs wait, the oldest for 0
               > start w1
               . look at -
        0      0 jobs wait, the oldest for 0
        0      w1 holds 3
               . look at -
               > start w2
               . look at -
        0      w2 holds 0
               > drain w1: replaced by the endpoint's new version
               . look at -
        0      w1 holds 0
               > stop w1
               . look at 5000
        0      w2 holds 1
               . look at -
               > drain w2: replaced by the endpoint's new version
               . look at -
        0      w2 holds 0
               > stop w2
               . look at -
    "#]]);
}
