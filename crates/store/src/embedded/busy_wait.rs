//! Waiting for the disk without letting the processor sleep.
//!
//! A processor that has nothing to do halts, and is woken by the disk, twice in a commit. On a virtual machine that is a third
//! of the time that a commit takes, and more than half of the processor's (130 us and 50 us of one thread, without
//! it 80 and 23). So who waits for a commit that many wait for asks again and again. Each time everybody else goes
//! first: other tasks, sockets, and other threads, those that write among them.
//!
//! When only few wait for a commit the processor has time, and sleeps. And where there are several processors this would keep
//! another one awake than the one that the disk wakes: half as much again of the processors' time, for nothing.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A disk that takes longer is waited for asleep.
const QUICK: Duration = Duration::from_micros(400);
/// A commit with fewer writes is waited for asleep.
const WRITES_MIN: usize = 8;

/// See the module.
#[derive(Debug)]
pub(super) struct BusyWait {
    one_processor: bool,
    /// The last commit was. It says what to expect of the next one.
    was_quick: AtomicBool,
}

impl BusyWait {
    /// For this machine, and a disk that nothing is known of.
    pub fn new() -> Self {
        // Not `available_parallelism`, which is also one where several may be used for some of the time.
        let processors = rustix::thread::sched_getaffinity(None).map_or(0, |set| set.count());
        Self::with(processors == 1)
    }

    fn with(one_processor: bool) -> Self {
        Self { one_processor, was_quick: AtomicBool::new(true) }
    }

    /// See [`crate::Store::writes_at_once`]. One processor works for each commit, some 35 us, and could answer requests
    /// instead: with 16 busy connections big commits one after the other give 5 to 10 % more than several at a time.
    /// With several processors they give as much less.
    pub fn writes_at_once(&self) -> usize {
        if self.one_processor { WRITES_MIN } else { usize::MAX }
    }

    /// Waits for the answer to a commit with so many writes.
    pub async fn until<F: Future>(&self, answer: F, writes: usize) -> F::Output {
        let began = Instant::now();
        let mut answer = pin!(answer);
        if self.one_processor && writes >= WRITES_MIN && self.was_quick.load(Ordering::Relaxed) {
            while began.elapsed() < QUICK {
                tokio::select! {
                    biased;
                    answer = &mut answer => return answer,
                    () = everybody_else() => {}
                }
            }
        }
        let answer = answer.await;
        self.was_quick.store(began.elapsed() < QUICK, Ordering::Relaxed);
        answer
    }
}

/// Other threads have a turn, then other tasks, then whoever waits for a socket.
async fn everybody_else() {
    // They would have to wait for the scheduler to take the processor away from this one.
    std::thread::yield_now();
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::oneshot;

    use super::*;

    /// How often the future was asked that answers after so long, and waits for that in another thread.
    async fn asked(wait: &BusyWait, writes: usize, after: Duration) -> usize {
        let (reply, mut answer) = oneshot::channel();
        let disk = std::thread::spawn(move || {
            wait_as_a_disk(after);
            reply.send("done").unwrap();
        });
        let asked = AtomicUsize::new(0);
        let counted = poll_fn(|context| {
            asked.fetch_add(1, Ordering::Relaxed);
            pin!(&mut answer).poll(context)
        });
        assert_eq!(wait.until(counted, writes).await, Ok("done"));
        disk.join().unwrap();
        asked.into_inner()
    }

    fn wait_as_a_disk(time: Duration) {
        std::thread::sleep(time);
    }

    #[tokio::test]
    async fn a_commit_that_many_wait_for_is_asked_again_and_again() {
        let wait = BusyWait::with(true);
        // A machine that has other things to do may pause this thread for all of that time; not always.
        let deadline = Instant::now() + Duration::from_secs(30);
        while asked(&wait, WRITES_MIN, Duration::from_micros(100)).await < 5 {
            assert!(Instant::now() < deadline, "it sleeps");
            wait.was_quick.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn a_commit_that_few_wait_for_is_slept_for() {
        assert!(asked(&BusyWait::with(true), WRITES_MIN - 1, Duration::from_millis(5)).await <= 2);
    }

    #[tokio::test]
    async fn several_processors_sleep() {
        assert!(asked(&BusyWait::with(false), WRITES_MIN, Duration::from_millis(5)).await <= 2);
    }

    #[tokio::test]
    async fn after_a_slow_commit_it_sleeps_until_one_was_quick() {
        let wait = BusyWait::with(true);
        asked(&wait, WRITES_MIN, 5 * QUICK).await;
        assert!(asked(&wait, WRITES_MIN, 5 * QUICK).await <= 2);
        // One may look slow on a machine that has other things to do.
        let deadline = Instant::now() + Duration::from_secs(30);
        while !wait.was_quick.load(Ordering::Relaxed) {
            assert!(Instant::now() < deadline, "no commit is quick");
            wait.until(std::future::ready(()), 1).await;
        }
    }
}
