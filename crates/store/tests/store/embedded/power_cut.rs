//! A power cut at any moment: every acknowledged batch is there afterwards.
//!
//! A program of its own commits batches while `disk.c` writes down everything that happens to its folder, the
//! acknowledgements among it. For every prefix of this record and every kind of loss, the folder is rebuilt as the
//! power cut could have left it, opened, and compared with what had been acknowledged by then.
//!
//! And a folder that was closed in order is damaged at random.
//!
//! For longer, by hand, with figures:
//!
//! ```text
//! LONGSHORE_POWER_CUT_SEED=1 LONGSHORE_POWER_CUT_BATCHES=400 \
//!     cargo test --release -p longshore-store --test store power_cut -- --nocapture
//! ```

mod check;
mod program;
mod rebuilt;
mod workload;

use std::time::Instant;

use longshore_disk_faults::{Disk, Step, after_every_step};

use self::check::{Promise, Verdicts};
use self::program::{Health, record};
use self::workload::Workload;

/// The workload of a test. `LONGSHORE_POWER_CUT_BATCHES` sets another number of batches, `LONGSHORE_POWER_CUT_SEED` another
/// seed.
fn workload(seed: u64, batches: u64) -> Workload {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let batches = number("LONGSHORE_POWER_CUT_BATCHES").unwrap_or(batches);
    Workload::new(seed + number("LONGSHORE_POWER_CUT_SEED").unwrap_or_default() * 100, batches as usize)
}

/// Cuts at every prefix of the record, in every way.
#[expect(clippy::print_stdout, reason = "figures of a test")]
fn cut_everywhere<'a>(
    steps: &'a [Step],
    workload: &Workload,
    disk: impl Fn() -> Disk<'a> + Sync,
) -> Verdicts {
    let began = Instant::now();
    let (verdicts, promises) = (Verdicts::new(workload), Promise::after_each(steps));
    after_every_step(steps, disk, |number, disk| verdicts.judge(number, disk, &promises[number - 1]));
    println!("{} prefixes, {verdicts}, in {:.1} s", steps.len(), began.elapsed().as_secs_f64());
    verdicts
}

#[test]
fn no_cut_loses_what_was_acknowledged() {
    let workload = workload(1, 28);
    let steps = record(&workload, Health::Good);
    let verdicts = cut_everywhere(&steps, &workload, Disk::new);
    verdicts.expect_no_loss();
}

/// A sync that failed has given up what it should have made durable; that a later one succeeds proves nothing.
#[test]
fn no_cut_after_failures_of_the_disk_loses_what_was_acknowledged() {
    let workload = workload(3, 22);
    let steps = record(&workload, Health::Failing);
    cut_everywhere(&steps, &workload, Disk::new).expect_no_loss();
    cut_everywhere(&steps, &workload, || Disk::new().failed_syncs_leave_some(3)).expect_no_loss();
}

/// A disk that forgets, after an orderly end: on disks that worked until then, and on failing ones.
#[test]
fn no_damage_to_a_closed_log_loses_what_was_acknowledged() {
    for (seed, health) in [(5, Health::Good), (6, Health::Failing)] {
        let workload = workload(seed, 30);
        let steps = record(&workload, health);
        let (verdicts, promises) = (Verdicts::new(&workload), Promise::after_each(&steps));
        after_every_step(&steps, Disk::new, |number, disk| {
            if steps[number - 1].mark().is_some_and(|mark| mark.starts_with("closed")) {
                verdicts.judge_damaged(number, disk, &promises[number - 1], 100);
            }
        });
        verdicts.expect_no_loss();
        assert!(verdicts.refused() > 50, "{} damaged folders were refused", verdicts.refused());
    }
}

#[test]
fn the_loss_of_a_lying_disk_is_noticed() {
    let workload = Workload::new(2, 12);
    let steps = record(&workload, Health::Good);
    cut_everywhere(&steps, &workload, || Disk::new().lying()).expect_losses();
}
