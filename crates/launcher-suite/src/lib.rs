//! For tests: the contract of a launcher, as cases that every launcher passes.
//!
//! A launcher under test is described by a [`Rig`]. [`check`] runs every case that the rig's workers can show, one after the
//! other, and returns the names of the others.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adoption;
mod away;
mod ends;
mod output;
mod server;
mod starts;
mod stops;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use longshore_launch::{Launcher, Limits, WorkerSpec};
use longshore_model::{ComputeType, EndpointId, Gpu, Millis, Placement, WorkerId};

pub use server::Server;

/// The future of a rig's method.
pub type RigFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A launcher under test, on a computer of its own or beside others.
pub trait Rig: Sync {
    /// What the workers of the launcher can show.
    fn abilities(&self) -> Abilities;

    /// A launcher as the next server makes it, for the workers of the earlier one, which has been dropped.
    fn next_launcher(&self) -> Arc<dyn Launcher>;

    /// A launcher of another installation on the same computer; `None` if there cannot be two.
    fn other_launcher(&self) -> Option<Arc<dyn Launcher>> {
        None
    }

    /// The spec of a worker that runs a shell script. A rig without scripts gives a worker that runs until it is stopped.
    fn spec(&self, worker: &str, script: &str) -> WorkerSpec;

    /// Kills a worker as another program would, with the signal 9.
    fn kill<'a>(&'a self, worker: &'a WorkerId) -> RigFuture<'a, ()>;

    /// The machine of the workers goes away, or comes back. Only called with the ability [`Abilities::away`].
    fn set_away(&self, _is_away: bool) {}

    /// Everything of workers that exists outside of the logs of ended workers, by name.
    fn remains(&self) -> RigFuture<'_, Vec<String>>;

    /// Everything that other programs can read about workers without being their owner, as text.
    fn traces(&self) -> RigFuture<'_, String> {
        Box::pin(async { String::new() })
    }

    /// Specs that cannot be started, each with words of the error.
    fn impossible(&self) -> Vec<(WorkerSpec, &'static str)> {
        Vec::new()
    }
}

/// What the workers of a launcher can show.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is there or not, independent of the others")]
pub struct Abilities {
    /// Workers run shell scripts, and what they print is in a log.
    pub scripts: bool,
    /// Limits of memory are enforced.
    pub memory: bool,
    /// The workers are on a machine that the test can cut off.
    pub away: bool,
    /// A start can be interrupted at each of its stages, as a killed server does.
    pub stages: bool,
}

/// One case: its name, what it needs, and what it does.
struct Case {
    name: &'static str,
    can_run: fn(Abilities) -> bool,
    run: for<'a> fn(&'a dyn Rig) -> RigFuture<'a, ()>,
}

/// Lists cases by their functions.
macro_rules! cases {
    ($($needs:expr => $($module:ident::$name:ident),+;)+) => {
        &[$($(Case {
            name: stringify!($name),
            can_run: $needs,
            run: |rig| Box::pin($module::$name(rig)),
        }),+),+]
    };
}

const CASES: &[Case] = cases! {
    |_| true =>
        starts::a_worker_runs_until_it_is_stopped,
        starts::events_are_given_once,
        starts::what_cannot_start_says_why_and_leaves_nothing,
        starts::twenty_workers_start_and_stop_concurrently,
        starts::no_secret_is_in_a_spec_as_text,
        stops::a_stop_of_no_worker_returns,
        stops::after_a_stop_during_a_start_nothing_runs,
        adoption::the_next_server_finds_what_runs,
        adoption::the_workers_of_another_installation_are_left_alone;
    |can| can.scripts =>
        ends::an_exit_code_and_the_last_lines_are_reported,
        ends::a_worker_that_another_process_kills_is_reported_with_the_signal,
        stops::a_worker_that_handles_sigterm_ends_by_itself,
        stops::a_worker_that_ignores_sigterm_is_killed_after_its_grace,
        adoption::an_exit_without_a_server_is_reported_by_the_next,
        adoption::a_stop_that_a_server_began_is_finished_by_the_next,
        output::the_log_has_each_line_once_across_servers,
        output::values_of_variables_reach_the_worker_and_no_other,
        output::a_volume_keeps_what_a_worker_wrote;
    |can| can.away => away::nothing_ends_while_a_machine_is_away_and_what_ended_is_told_afterwards;
    |can| can.memory => ends::a_worker_without_memory_is_ended_with_the_limit_as_the_cause;
    |can| can.stages => adoption::a_start_that_is_interrupted_at_any_stage_leaves_one_worker_or_none;
};

/// Runs the cases one after the other. `begin` is called with the name of each. Returns the names of the cases that the rig
/// cannot show.
///
/// # Panics
///
/// A case fails.
pub async fn check(rig: &dyn Rig, begin: impl Fn(&str)) -> Vec<&'static str> {
    let can = rig.abilities();
    let mut left_out = Vec::new();
    for case in CASES {
        if !(case.can_run)(can) {
            left_out.push(case.name);
            continue;
        }
        begin(case.name);
        (case.run)(rig).await;
        // The server of the case may have died between a report and what follows it; the next one sees to the rest.
        let server = Server::fresh(rig).await;
        server::eventually(async || Some(rig.remains().await).filter(Vec::is_empty)).await;
        drop(server);
    }
    left_out
}

/// The endpoint of all workers.
pub fn endpoint() -> EndpointId {
    EndpointId::mint(7)
}

/// A spec whose fields that no rig changes are set. It has a placement with a GPU, and no command.
pub fn plain_spec(worker: &str) -> WorkerSpec {
    let gpu = Gpu { device: "GPU-1234".into(), type_id: "NVIDIA L4".into(), memory_mib: 23_034 };
    WorkerSpec {
        worker: worker.parse().unwrap(),
        endpoint: endpoint(),
        version: 3,
        image: String::new(),
        registry_login: None,
        entrypoint: vec![],
        cmd: vec![],
        code: None,
        workdir: None,
        volumes: vec![],
        server_url: "http://127.0.0.1:8080".to_owned(),
        env: BTreeMap::new(),
        private_home: false,
        compute_type: ComputeType::Cpu,
        placement: Placement {
            started_at: Millis(1_700_000_000_000),
            gpus: vec![gpu],
            ..Placement::default()
        },
        limits: Limits::default(),
        flashboot: false,
        secret_variables: BTreeSet::new(),
        disk_bytes: None,
    }
}
