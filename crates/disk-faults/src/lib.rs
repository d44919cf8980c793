//! For tests: a disk that is recorded, cut off at any moment, and broken on command.
//!
//! ```text
//! program ──► disk.c, preloaded ──► the real folder
//!                  │ record                         the folder as a power cut could have left it
//!                  ▼                                                 ▲
//!             Step, Step, Step … ──► Disk: what is durable, what is not ──► one of them, by Loss and seed
//! ```
//!
//! `disk.c` stands between a program and the C library; it writes down every change of a folder and every sync, and
//! lets them fail when its control file says so. [`record()`] runs a test in this way. [`Disk`] follows such a record step by step. At every step
//! [`Disk::cut`] makes up a folder that a power cut at this moment may leave: what was synced is there, the rest is
//! kept, dropped, torn or reordered at random. The test rebuilds the folder and opens it.
//!
//! The model is harsher than a good file system: a name is durable only after a sync of its folder, and pages reach
//! the disk in any order, in sectors of 512 bytes.
//!
//! [`Files::damage`] does to files at rest what a bad disk does, or a hand in the wrong folder.
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
