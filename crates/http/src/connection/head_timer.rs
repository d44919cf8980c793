//! The timer of the heads of one connection's requests.
//!
//! hyper makes a timer for every head and drops it when the head is complete. To register a timer and to remove it costs
//! two locks of the runtime, but to move it to a later time costs none. So the connection keeps one timer for all heads.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

type BoxSleep = Pin<Box<tokio::time::Sleep>>;

/// Makes the timers of one connection, of which hyper has one at a time.
#[derive(Default)]
pub(crate) struct HeadTimer {
    /// The timer between two heads; `None` while hyper has it.
    kept: Arc<Mutex<Option<BoxSleep>>>,
}

/// A timer that returns to its [`HeadTimer`] when it is dropped.
struct KeptSleep {
    /// `None` after the drop has begun.
    sleep: Option<BoxSleep>,
    kept: Arc<Mutex<Option<BoxSleep>>>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        // A poisoned place is valid, because every change is one call.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sleep = match kept {
            Some(mut sleep) => {
                sleep.as_mut().reset(deadline.into());
                sleep
            }
            None => Box::pin(tokio::time::sleep_until(deadline.into())),
        };
        Box::pin(KeptSleep { sleep: Some(sleep), kept: Arc::clone(&self.kept) })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

impl Sleep for KeptSleep {}

impl Future for KeptSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().map_or(Poll::Ready(()), |sleep| sleep.as_mut().poll(context))
    }
}

impl Drop for KeptSleep {
    fn drop(&mut self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = self.sleep.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kept_timer_fires_at_the_time_of_each_head() {
        let timer = HeadTimer::default();
        let began = tokio::time::Instant::now();
        drop(timer.sleep(Duration::from_mins(2)));
        assert!(timer.kept.lock().unwrap().is_some());
        for (length, fires_at) in [(5, 5), (200, 205), (1, 206)] {
            let sleep = timer.sleep(Duration::from_secs(length));
            assert!(timer.kept.lock().unwrap().is_none());
            sleep.await;
            assert_eq!(began.elapsed().as_secs(), fires_at);
        }
    }
}
