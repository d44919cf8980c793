//! The queue of one endpoint: a pure, deterministic state machine that holds every job of the endpoint.
//!
//! # States of a job
//!
//! Each arrow is one transition, with the files that decide it. `transitions.rs` applies all of them, so that the indexes
//! always match the rows.
//!
//! ```text
//!            submit.rs             take.rs                 report.rs
//!  (none) ───────────► IN_QUEUE ───────────► IN_PROGRESS ───────────► COMPLETED or FAILED
//!                       │ ▲  ▲    requeue       │  │ tick.rs
//!                       │ │  └──────────────────┘  ├──────────────────► TIMED_OUT
//!  cancel.rs, purge.rs  │ │ retry.rs               │ cancel.rs
//!                       ▼ └─ FAILED, TIMED_OUT     └──────────────────► CANCELLED
//!                   CANCELLED                any state ── tick.rs ────► (deleted)
//! ```
//!
//! A requeue has one of these causes:
//!
//! - two pings do not list the job (`ping.rs`), or the worker sends a take with no job in progress (`take.rs`);
//! - the worker exited or its lease ended (`worker_loss.rs`);
//! - its handler reported an error, and the endpoint retries those (`report.rs`);
//! - the job's input could not be read (`undelivered.rs`).
//!
//! A requeue that counts as a retry when no retry is left ends the job as `FAILED` instead. The result of an earlier
//! attempt completes a job that is queued again (`report.rs`). An expired job is also deleted by the take or the report
//! that meets it, and `delete_all.rs` deletes the jobs of a deleted endpoint.
//!
//! # Verbs
//!
//! | Called for | Verbs |
//! |---|---|
//! | clients | [`submit`](Queue::submit), [`cancel`](Queue::cancel), [`set_ttl`](Queue::set_ttl), [`retry`](Queue::retry), [`purge`](Queue::purge), [`redeliver_webhook`](Queue::redeliver_webhook) |
//! | workers | [`take`](Queue::take), [`report`](Queue::report), [`progress`](Queue::progress), [`append`](Queue::append), [`ping`](Queue::ping), [`touch_worker`](Queue::touch_worker) |
//! | the fleet | [`register_worker`](Queue::register_worker), [`drain_worker`](Queue::drain_worker), [`lose_worker`](Queue::lose_worker) |
//! | the engine | [`tick`](Queue::tick), [`undelivered`](Queue::undelivered), [`settle_webhook`](Queue::settle_webhook), [`renew_leases`](Queue::renew_leases), [`configure`](Queue::configure), [`delete_slice`](Queue::delete_slice) |
//!
//! A verb gets the time as an argument, returns its result, and adds what it caused to [`Effects`]: changes (rows to
//! write) and signals (wake-ups). The same verbs at the same times return the same results and effects. `query.rs` has the
//! functions that only read.
//!
//! # Who calls it
//!
//! The actor of the endpoint (crate `longshore-engine`) owns the only queue of the endpoint and calls one verb at a time:
//!
//! 1. Call verbs; collect their results and effects.
//! 2. [`Queue::take_counters`]: one more row to write, if it changed.
//! 3. Commit all changes in one batch.
//! 4. Release the results and signals.
//! 5. At [`Queue::next_deadline`], call [`Queue::tick`].
//!
//! After a failed commit or a panic of a verb the actor drops the queue, and loads another one from the stored rows:
//! [`Queue::new`], [`Queue::restore`] for every row, [`Queue::adopt_workers`].
//!
//! # What is not here
//!
//! - I/O, a clock, random numbers, async code and serialization. The crate is `no_std`.
//! - Payload bytes. The queue knows sizes, and a change names the row that the caller's bytes belong to.
//! - Waiters and parked takes: the actor holds them.
//! - Chunks of streams, webhook calls and their attempts: `longshore-engine`.
//! - The number of workers: `longshore-fleet` plans it, from the load that the queue returns ([`QueueLoad`],
//!   [`WorkerLoad`]).
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod attempts;
mod cancel;
mod deferred;
mod delete_all;
mod effects;
mod ended;
mod idempotency;
mod index;
mod invariants;
mod jobs;
mod packed;
mod ping;
mod purge;
mod query;
mod queue;
mod ready_queue;
mod register;
mod report;
mod restore;
mod retry;
mod settings;
mod submit;
mod submitters;
mod take;
mod tick;
mod transitions;
mod undelivered;
mod webhook;
mod worker_loss;
mod workers;

#[cfg(test)]
mod dialogue;

pub use effects::{Change, Effects, Refusal, Requeued, Signal};
pub use query::{JobConditions, Page, QueueLoad, StateCounts, WorkerLoad};
pub use queue::Queue;
pub use report::Report;
pub use settings::QueueSettings;
pub use submit::{Submit, Submitted};
pub use take::Take;
pub use transitions::NOT_CONFIRMED;
