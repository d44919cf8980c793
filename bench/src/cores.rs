//! Which processor runs what: the generator must not take time from what it measures.

use std::io;
use std::process::{Child, Command};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of a run: one for everything that is measured, another one for the generator.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    pinned: Option<Pinned>,
}

#[derive(Clone, Copy, Debug)]
struct Pinned {
    server: usize,
    generator: usize,
}

impl Cores {
    /// Takes two of the processors that this process may use, and moves the calling thread to one of them.
    /// With one processor nothing is pinned.
    pub fn claim() -> io::Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let pinned = match (allowed.next(), allowed.next()) {
            (Some(generator), Some(server)) => Some(Pinned { server, generator }),
            _ => None,
        };
        let cores = Self { pinned };
        cores.stay_on(|pinned| pinned.generator)?;
        Ok(cores)
    }

    /// Everything runs anywhere.
    #[cfg(test)]
    pub fn unpinned() -> Self {
        Self { pinned: None }
    }

    /// Whether the generator has a processor of its own.
    pub fn are_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Starts a program on the processor of what is measured. It and all its threads stay there.
    pub fn spawn_measured(&self, command: &mut Command) -> io::Result<Child> {
        // A child inherits the processors of the thread that starts it.
        self.measured(|| command.spawn())?
    }

    /// Does something there itself.
    pub fn measured<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.stay_on(|pinned| pinned.server)?;
        let done = work();
        self.stay_on(|pinned| pinned.generator)?;
        Ok(done)
    }

    fn stay_on(&self, choose: impl Fn(&Pinned) -> usize) -> io::Result<()> {
        let Some(pinned) = &self.pinned else { return Ok(()) };
        let mut set = CpuSet::new();
        set.set(choose(pinned));
        sched_setaffinity(None, &set).map_err(io::Error::from)
    }

    /// For the report.
    pub fn describe(&self) -> String {
        match &self.pinned {
            Some(Pinned { server, generator }) => {
                format!("measured on cpu {server}, generator on cpu {generator}")
            }
            None => "not pinned: only one processor".to_owned(),
        }
    }
}
