//! Checks a record after every step.

use crate::disk::Disk;
use crate::record::Step;

/// Consecutive steps that one thread checks: cuts after neighbouring steps often leave the same folder.
const NEIGHBOURS: usize = 16;

/// Applies the record to a disk and calls `judge` after every step with the number of steps so far. Uses all cores; each
/// step is judged once.
pub fn after_every_step<'a>(
    steps: &'a [Step],
    disk: impl Fn() -> Disk<'a> + Sync,
    judge: impl Fn(usize, &Disk<'a>) + Sync,
) {
    let threads = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (disk, judge) = (&disk, &judge);
            scope.spawn(move || {
                let mut disk = disk();
                for (number, step) in (1..).zip(steps) {
                    disk.apply(step);
                    if number / NEIGHBOURS % threads == thread {
                        judge(number, &disk);
                    }
                }
            });
        }
    });
}
