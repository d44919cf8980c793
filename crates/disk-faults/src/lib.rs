//! Disk faults for tests: records the disk operations of a program, simulates power cuts, and injects errors.
//!
//! ```text
//! program ──► disk.c, preloaded ──► the real folder
//!                  │ record                         a folder that a power cut may have left
//!                  ▼                                                 ▲
//!             Step, Step, Step … ──► Disk: durable and pending changes ──► one such folder, by Loss and seed
//! ```
//!
//! `disk.c` is preloaded between a program and the C library. It records every change of a folder and every sync, and
//! makes operations fail as its control file says. [`record()`] runs a test in this way. [`Disk`] applies such a record
//! step by step. After any step [`Disk::cut`] returns a folder that a power cut may leave: synced changes are there, the
//! others are kept, lost, torn or reordered at random. The test rebuilds the folder and opens it.
//!
//! The model is harsher than a good file system: a name is durable only after a sync of its folder, and pages reach
//! the disk in any order, in sectors of 512 bytes.
//!
//! [`Files::damage`] damages files at rest.
//!
//! The black-box tests in `e2e/` use `disk.c` alone.

mod damage;
mod disk;
mod every_step;
mod files;
mod program;
mod random;
mod record;

pub use disk::{Disk, Loss};
pub use every_step::after_every_step;
pub use files::Files;
pub use program::{Recorded, record};
pub use random::Random;
pub use record::Step;
