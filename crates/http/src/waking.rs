//! Which wakes of a connection's task are worth a poll, and of what.
//!
//! A poll of a connection that has nothing to do costs over 1 000 instructions, and one of what runs beside it 300.
//! A submit used to have one of the former and three of the latter.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

thread_local! {
    /// What this thread does about a wake of a connection.
    static EARS: Cell<Ears> = const { Cell::new(Ears::Open) };
}

#[derive(Default)]
enum Ears {
    /// It passes it on.
    #[default]
    Open,
    /// It keeps it.
    Shut,
    Kept(Arc<Connection>),
}

/// The wakers of a connection's task, by what they are for.
pub(crate) struct Wakers {
    task: Waker,
    connection: Waker,
    beside: Waker,
    /// What runs beside the connection has to be polled.
    is_beside_due: Arc<Beside>,
}

impl Wakers {
    /// Wakers for whoever `task` wakes.
    pub(crate) fn of(task: &Waker) -> Self {
        let beside = Arc::new(Beside { task: task.clone(), is_due: AtomicBool::new(true) });
        Self {
            task: task.clone(),
            connection: Arc::new(Connection { task: task.clone() }).into(),
            beside: Arc::clone(&beside).into(),
            is_beside_due: beside,
        }
    }

    /// Whether they wake this task.
    pub(crate) fn are_of(&self, task: &Waker) -> bool {
        self.task.will_wake(task)
    }

    /// For polls of the connection.
    pub(crate) fn connection(&self) -> Context<'_> {
        Context::from_waker(&self.connection)
    }

    /// For polls of what runs beside it; none while nothing there has asked for one.
    pub(crate) fn beside(&self) -> Option<Context<'_>> {
        let is_due = &self.is_beside_due.is_due;
        // Read before it is written: it seldom is.
        (is_due.load(Ordering::Acquire) && is_due.swap(false, Ordering::AcqRel))
            .then(|| Context::from_waker(&self.beside))
    }
}

/// Wakes a connection's task to poll the connection.
pub(crate) struct Connection {
    task: Waker,
}

impl Wake for Connection {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let is_open = |ears: &Cell<Ears>| match ears.take() {
            Ears::Open => true,
            Ears::Shut | Ears::Kept(_) => {
                ears.set(Ears::Kept(Arc::clone(self)));
                false
            }
        };
        // A thread that ends has no ears any more.
        if EARS.try_with(is_open).unwrap_or(true) {
            self.task.wake_by_ref();
        }
    }
}

struct Beside {
    task: Waker,
    is_due: AtomicBool,
}

impl Wake for Beside {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_due.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

/// Polls something that may wake a connection; gives the wake back, if there was one, for the caller to pass on.
pub(crate) fn keeping_wakes<T>(poll: impl FnOnce() -> T) -> (T, Option<Arc<Connection>>) {
    /// Also where the poll panics.
    struct Opens;
    impl Drop for Opens {
        fn drop(&mut self) {
            EARS.take();
        }
    }
    EARS.set(Ears::Shut);
    let opens = Opens;
    let polled = poll();
    let kept = match EARS.take() {
        Ears::Kept(connection) => Some(connection),
        Ears::Open | Ears::Shut => None,
    };
    drop(opens);
    (polled, kept)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A task that counts its wakes.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Counted>, Wakers) {
        let task = Arc::new(Counted::default());
        let wakers = Wakers::of(&Arc::clone(&task).into());
        (task, wakers)
    }

    fn wakes(task: &Counted) -> usize {
        task.0.load(Ordering::Relaxed)
    }

    #[test]
    fn what_runs_beside_is_due_at_first_and_when_it_asks() {
        let (task, wakers) = counted();
        let waker = wakers.beside().unwrap().waker().clone();
        assert!(wakers.beside().is_none());
        wakers.connection().waker().wake_by_ref();
        assert!(wakers.beside().is_none());
        waker.wake_by_ref();
        assert_eq!(wakes(&task), 2);
        assert!(wakers.beside().is_some() && wakers.beside().is_none());
    }

    #[test]
    fn a_wake_in_a_poll_that_keeps_them_is_the_callers() {
        let (task, wakers) = counted();
        let waker = wakers.connection().waker().clone();
        assert!(keeping_wakes(|| ()).1.is_none());
        let ((), kept) = keeping_wakes(|| {
            waker.wake_by_ref();
            waker.wake_by_ref();
            // Others' wakes are none of this thread's business.
            std::thread::scope(|scope| scope.spawn(|| waker.wake_by_ref()).join()).unwrap();
        });
        assert_eq!(wakes(&task), 1);
        kept.unwrap().wake();
        waker.wake();
        assert_eq!(wakes(&task), 3);
    }

    #[test]
    fn a_poll_that_panics_keeps_nothing_longer() {
        let (task, wakers) = counted();
        let panics = || keeping_wakes(|| panic!("of the test's making"));
        let _panic = std::panic::catch_unwind(panics).map(|((), _)| ()).unwrap_err();
        wakers.connection().waker().wake_by_ref();
        assert_eq!(wakes(&task), 1);
    }

    #[test]
    fn wakers_are_of_one_task() {
        let (task, wakers) = counted();
        assert!(wakers.are_of(&task.into()));
        assert!(!wakers.are_of(&counted().0.into()));
    }
}
