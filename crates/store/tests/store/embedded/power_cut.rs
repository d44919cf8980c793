//! The power goes at any moment: what was acknowledged is there when it comes back.
//!
//! A program of its own commits batches while `disk.c` writes down everything that happens to its folder, the
//! acknowledgements among it. For every prefix of this record and every kind of loss, the folder is rebuilt as the
//! power cut could have left it, opened, and compared with what had been acknowledged by then.

mod program;
mod rebuilt;
mod verdict;
mod workload;

use std::time::Instant;

use longshore_disk_faults::{Disk, Step};

use self::program::{Health, record};
use self::verdict::{Promise, Verdicts};
use self::workload::Workload;

/// Batches of each program. More with `LONGSHORE_POWER_CUT_BATCHES`, for a long run by hand.
const BATCHES: usize = 32;

fn batches() -> usize {
    std::env::var("LONGSHORE_POWER_CUT_BATCHES").ok().and_then(|text| text.parse().ok()).unwrap_or(BATCHES)
}

/// Cuts at every prefix of the record, in two threads.
fn cut_everywhere<'a>(
    steps: &'a [Step],
    workload: &Workload,
    disk: impl Fn() -> Disk<'a> + Sync,
) -> Verdicts {
    let began = Instant::now();
    let (verdicts, promises) = (Verdicts::new(workload), Promise::after_each(steps));
    let workers = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    std::thread::scope(|threads| {
        for worker in 0..workers {
            let (verdicts, promises, disk) = (&verdicts, &promises, &disk);
            threads.spawn(move || {
                let mut disk = disk();
                for (number, (step, promise)) in steps.iter().zip(promises).enumerate() {
                    disk.apply(step);
                    // Neighbours go to the same worker: what they leave is often the same.
                    if number / 16 % workers == worker {
                        verdicts.judge(number, &disk, promise);
                    }
                }
            });
        }
    });
    println!("{} prefixes, {verdicts}, in {:.1} s", steps.len(), began.elapsed().as_secs_f64());
    verdicts
}

#[test]
fn no_cut_loses_what_was_acknowledged() {
    let workload = Workload::new(1, batches());
    let steps = record(&workload, Health::Good);
    cut_everywhere(&steps, &workload, Disk::new).expect_no_loss();
}

/// A sync that failed has given up what it should have made durable; that a later one succeeds proves nothing.
#[test]
fn no_cut_after_failures_of_the_disk_loses_what_was_acknowledged() {
    let workload = Workload::new(3, batches());
    let steps = record(&workload, Health::Failing);
    cut_everywhere(&steps, &workload, Disk::new).expect_no_loss();
    cut_everywhere(&steps, &workload, || Disk::new().failed_syncs_leave_some(3)).expect_no_loss();
}

#[test]
fn the_loss_of_a_lying_disk_is_noticed() {
    let workload = Workload::new(2, 12);
    let steps = record(&workload, Health::Good);
    cut_everywhere(&steps, &workload, || Disk::new().lying()).expect_losses();
}
