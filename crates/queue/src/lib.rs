//! One endpoint's queue as a pure, deterministic state machine.
//!
//! Each verb ([`Queue::submit`], [`Queue::take`], [`Queue::report`] …) takes the time, returns its result, and says in
//! [`Effects`] which rows to write, with hints for the shell around it. There is no I/O here, no clock, no randomness, no
//! async: the same verbs at the same times give the same effects, which is what lets a simulator replay any history.
//!
//! A job's life, and the file in which each arrow is decided:
//!
//! ```text
//!            submit.rs             take.rs                 report.rs
//!  (none) ───────────► IN_QUEUE ───────────► IN_PROGRESS ───────────► COMPLETED, FAILED
//!                       │ ▲  ▲ worker_loss.rs,   │ │   (also undelivered.rs)
//!                       │ │  └─────── ping.rs ───┘ ├─ tick.rs ──────► TIMED_OUT
//!       cancel.rs, purge.rs  retry.rs              └─ cancel.rs ────► CANCELLED
//!                       ▼ └───── FAILED, TIMED_OUT
//!                    CANCELLED                  any ── tick.rs ─────► (deleted)
//! ```
//!
//! Payload bytes never enter: the queue knows their sizes, and the changes say where they belong.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod aside;
mod cancel;
mod delete_all;
mod effects;
mod idempotent;
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

pub use effects::{Change, Effects, Refusal, Signal};
pub use query::{Page, QueueLoad, WorkerLoad};
pub use queue::Queue;
pub use report::Report;
pub use settings::QueueSettings;
pub use submit::{Submit, Submitted};
pub use take::Take;
