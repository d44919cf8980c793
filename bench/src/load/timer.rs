//! A timer with microsecond precision for the poll, whose own timeout counts in milliseconds.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Wakes a poll at a set instant.
pub(super) struct Timer {
    descriptor: OwnedFd,
    /// The instant for which the timer is set.
    due: Option<Instant>,
}

impl Timer {
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let descriptor =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&descriptor.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { descriptor, due: None })
    }

    /// Sets the timer for `due`. `None` leaves it unchanged, because an early wake-up is harmless.
    pub fn set(&mut self, due: Option<Instant>, now: Instant) -> io::Result<()> {
        let Some(due) = due.filter(|due| self.due != Some(*due)) else { return Ok(()) };
        // Zero would disable the timer.
        let left = due.saturating_duration_since(now).max(Duration::from_nanos(1));
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: left };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once)?;
        self.due = Some(due);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mio::{Events, Poll};

    use super::*;

    #[test]
    fn it_wakes_the_poll_in_time() {
        let mut poll = Poll::new().unwrap();
        let mut timer = Timer::new(poll.registry(), Token(7)).unwrap();
        let mut events = Events::with_capacity(1);
        for _ in 0..2 {
            let now = Instant::now();
            let due = now + Duration::from_millis(3);
            timer.set(Some(due), now).unwrap();
            poll.poll(&mut events, Some(Duration::from_secs(10))).unwrap();
            assert_eq!(events.iter().map(|event| event.token().0).collect::<Vec<_>>(), [7]);
            assert!(Instant::now() >= due);
        }
    }
}
