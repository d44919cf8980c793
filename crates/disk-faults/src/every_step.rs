//! Cutting a record at every step.

use crate::disk::Disk;
use crate::record::Step;

/// Neighbours are judged by the same thread: what a cut leaves there is often the same.
const NEIGHBOURS: usize = 16;

/// Follows the record with a disk and calls `judge` after every step, with the number of steps so far, on all cores.
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
