//! Assigns processors: the generator must not take time from the measured server.

use std::io;
use std::process::{Child, Command};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of a run: one for the generator, the others for the measured programs.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    pinned: Option<Pinned>,
}

#[derive(Clone, Copy, Debug)]
struct Pinned {
    generator: usize,
    /// All processors except the generator's.
    others: CpuSet,
    /// Whether measured programs use all of `others` instead of the first one.
    uses_all: bool,
}

impl Pinned {
    fn generator(&self) -> CpuSet {
        only(self.generator)
    }

    fn measured(&self) -> CpuSet {
        match numbers(&self.others).first() {
            Some(first) if !self.uses_all => only(*first),
            _ => self.others,
        }
    }
}

impl Cores {
    /// Chooses two of this process's processors and pins the calling thread to the generator's. With one processor
    /// nothing is pinned.
    ///
    /// # Errors
    ///
    /// If the system refuses to read or set the affinity.
    pub fn claim() -> io::Result<Self> {
        let mut others = sched_getaffinity(None)?;
        let mut allowed = numbers(&others).into_iter();
        let pinned = match (allowed.next(), allowed.next()) {
            (Some(generator), Some(_)) => {
                others.unset(generator);
                Some(Pinned { generator, others, uses_all: false })
            }
            _ => None,
        };
        let cores = Self { pinned };
        cores.stay_on(Pinned::generator)?;
        Ok(cores)
    }

    /// Returns a copy in which measured programs use every processor except the generator's.
    pub fn measuring_on_all_others(self) -> Self {
        Self { pinned: self.pinned.map(|pinned| Pinned { uses_all: true, ..pinned }) }
    }

    /// Returns processors without pinning.
    #[cfg(test)]
    pub fn unpinned() -> Self {
        Self { pinned: None }
    }

    /// Whether the generator has a processor of its own.
    pub fn are_pinned(&self) -> bool {
        self.pinned.is_some()
    }

    /// Number of processors that run measured programs, at least 1.
    pub fn measured_count(&self) -> usize {
        self.pinned.map_or(1, |pinned| numbers(&pinned.measured()).len())
    }

    /// Starts a measured program on its processors. Its threads inherit them.
    ///
    /// # Errors
    ///
    /// If the program or the pinning fails.
    pub fn spawn_measured(&self, command: &mut Command) -> io::Result<Child> {
        // A child inherits the processors of the thread that starts it.
        self.measured(|| command.spawn())?
    }

    /// Runs `work` on the processors of measured programs.
    ///
    /// # Errors
    ///
    /// If the system refuses to move the thread.
    pub fn measured<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.stay_on(Pinned::measured)?;
        let done = work();
        self.stay_on(Pinned::generator)?;
        Ok(done)
    }

    fn stay_on(&self, choose: impl Fn(&Pinned) -> CpuSet) -> io::Result<()> {
        let Some(pinned) = &self.pinned else { return Ok(()) };
        sched_setaffinity(None, &choose(pinned)).map_err(io::Error::from)
    }

    /// Describes the pinning for the report.
    pub fn describe(&self) -> String {
        match &self.pinned {
            Some(pinned) => {
                format!(
                    "measured on cpu {}, generator on cpu {}",
                    listed(&pinned.measured()),
                    pinned.generator
                )
            }
            None => "not pinned: only one processor".to_owned(),
        }
    }
}

fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}

/// The processor numbers of a set, ascending.
fn numbers(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

fn listed(set: &CpuSet) -> String {
    numbers(set).iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_shares_no_processor_with_what_is_measured() {
        let mut others = only(3);
        others.set(5);
        let one = Cores { pinned: Some(Pinned { generator: 0, others, uses_all: false }) };
        assert_eq!(
            (one.measured_count(), one.describe()),
            (1, "measured on cpu 3, generator on cpu 0".into())
        );
        let all = one.measuring_on_all_others();
        assert_eq!(
            (all.measured_count(), all.describe()),
            (2, "measured on cpu 3, 5, generator on cpu 0".into())
        );
        assert!(!Cores::unpinned().measuring_on_all_others().are_pinned());
    }
}
