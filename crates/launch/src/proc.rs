//! Processes, as `/proc` shows them: identities, sessions and descendants.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

/// The identity of a process: its number, and its start time and boot, because numbers are reused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pid: i32,
    /// The start time, in clock ticks since boot.
    start_ticks: u64,
    boot_id: String,
}

impl ProcessId {
    /// The process that has this number now; `None` if there is none.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_nonzero().get();
        Some(Self { pid, start_ticks: Stat::read(pid)?.start_ticks, boot_id: boot_id()? })
    }

    /// The number; `None` if a damaged note contains 0 or less, which stands for process groups.
    pub(crate) fn pid(&self) -> Option<Pid> {
        if self.pid > 0 { Pid::from_raw(self.pid) } else { None }
    }

    /// Whether this process still runs. A zombie does not.
    pub(crate) fn is_alive(&self) -> bool {
        boot_id().as_ref() == Some(&self.boot_id)
            && Stat::read(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.ended)
    }

    /// The value of [`MARK`] in the environment of the processes that this shim starts.
    pub(crate) fn mark(&self) -> String {
        let Self { pid, start_ticks, boot_id } = self;
        format!("{pid}-{start_ticks}-{boot_id}")
    }

    /// Kills the shim, the processes of its session, the processes with its mark, and their descendants. After the shim's
    /// exit, a process that left the session is a child of the system's first process: only the mark shows its origin.
    pub(crate) fn kill_all(&self) {
        let reused = || Stat::read(self.pid).is_some_and(|stat| stat.start_ticks != self.start_ticks);
        if self.pid().is_none() || boot_id().as_ref() != Some(&self.boot_id) || reused() {
            return;
        }
        // A process may start another one while the list is read, so the list is read again until it is empty.
        for _ in 0..KILL_ROUNDS {
            let left = self.left_behind();
            if left.is_empty() {
                return;
            }
            left.iter().for_each(Stat::kill);
            thread::sleep(KILL_PAUSE);
        }
    }

    /// The running processes that descend from `worker` or are its orphans, and started within these clock ticks since
    /// boot.
    pub(crate) fn began_within(&self, worker: &Self, ticks: &Range<u64>) -> Vec<Self> {
        let all = processes(|stat| stat.start_ticks >= self.start_ticks && !stat.ended);
        let is_root = |stat: &Stat| stat.pid == worker.pid || stat.parent == self.pid;
        let (roots, others) = all.into_iter().partition(is_root);
        let of_worker = with_descendants(roots, others);
        let began = |stat: &&Stat| ticks.contains(&stat.start_ticks) && stat.pid != worker.pid;
        let boot_id = &self.boot_id;
        let identity =
            |stat: &Stat| Self { pid: stat.pid, start_ticks: stat.start_ticks, boot_id: boot_id.clone() };
        of_worker.iter().filter(began).map(identity).collect()
    }

    fn left_behind(&self) -> Vec<Stat> {
        let marked = format!("{MARK}={}", self.mark()).into_bytes();
        // The worker did not start an older process, so that one's environment is not read.
        let (found, others) = processes(|stat| stat.start_ticks >= self.start_ticks && !stat.ended)
            .into_iter()
            .partition(|stat| stat.session == self.pid || has_variable(stat.pid, &marked));
        with_descendants(found, others)
    }
}

/// What the processes of one worker use together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    /// The resident memory. Memory that several processes share counts in each of them.
    pub(crate) rss_bytes: u64,
    /// The processor time since the start, in clock ticks; at least that of the present processes.
    pub(crate) cpu_ticks: u64,
    /// The start of the oldest process, in clock ticks since boot; 0 without a process.
    pub(crate) start_ticks: u64,
}

/// What runs below each of these shims, in their order. Lists the processes of the computer once.
pub(crate) fn usage_below(shims: &[ProcessId]) -> Vec<TreeUsage> {
    let mut all = processes(|stat| !stat.ended);
    let usage_of = |shim: &ProcessId| {
        let is_shim = |stat: &Stat| stat.pid == shim.pid && stat.start_ticks == shim.start_ticks;
        let Some(place) = all.iter().position(is_shim) else { return TreeUsage::default() };
        let roots = vec![all.swap_remove(place)];
        let (tree, others) = split_descendants(roots, std::mem::take(&mut all));
        all = others;
        let below: Vec<&Stat> = tree.iter().filter(|stat| stat.pid != shim.pid).collect();
        TreeUsage {
            rss_bytes: below.iter().map(|stat| rss_bytes(stat.pid)).sum(),
            cpu_ticks: below.iter().map(|stat| stat.cpu_ticks).sum(),
            start_ticks: below.iter().map(|stat| stat.start_ticks).min().unwrap_or(0),
        }
    };
    shims.iter().map(usage_of).collect()
}

/// The resident memory of a process; 0 of one that has ended.
fn rss_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = rss.and_then(|rss| rss.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1_024)
}

/// Kills these processes and their descendants, until none is left. Returns the number of killed processes.
pub(crate) fn end_trees(roots: &[ProcessId]) -> usize {
    let mut ended = BTreeSet::new();
    let mut known: BTreeSet<(i32, u64)> = roots.iter().map(|root| (root.pid, root.start_ticks)).collect();
    for _ in 0..KILL_ROUNDS {
        let is_known = |stat: &Stat| known.contains(&(stat.pid, stat.start_ticks));
        let (found, others): (Vec<_>, Vec<_>) = processes(|stat| !stat.ended).into_iter().partition(is_known);
        if found.is_empty() {
            break;
        }
        let tree = with_descendants(found, others);
        tree.iter().for_each(Stat::kill);
        known.extend(tree.iter().map(|stat| (stat.pid, stat.start_ticks)));
        ended.extend(tree.iter().map(|stat| (stat.pid, stat.start_ticks)));
        thread::sleep(KILL_PAUSE);
    }
    ended.len()
}

/// These processes, and repeatedly those of the others whose parent or session leader is among the result.
fn with_descendants(found: Vec<Stat>, others: Vec<Stat>) -> Vec<Stat> {
    split_descendants(found, others).0
}

/// [`with_descendants`], and the processes that are left.
fn split_descendants(mut found: Vec<Stat>, mut others: Vec<Stat>) -> (Vec<Stat>, Vec<Stat>) {
    loop {
        let belongs = |stat: &Stat| found.iter().any(|it| it.pid == stat.parent || it.pid == stat.session);
        let (more, rest): (Vec<Stat>, Vec<Stat>) = others.into_iter().partition(belongs);
        if more.is_empty() {
            return (found, rest);
        }
        found.extend(more);
        others = rest;
    }
}

/// The variable that names the shim in the environment of a worker and its descendants. A process that is started with a
/// new environment lacks the variable.
pub(crate) const MARK: &str = "LONGSHORE_WORKER_MARK";

/// Whether the initial environment of a process contains `marked`, a variable with its value.
fn has_variable(pid: i32, variable: &[u8]) -> bool {
    // An unreadable environment belongs to another user's process, or to one that has exited.
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable)
}

/// How many times a list of processes is read and killed, and the pause between.
const KILL_ROUNDS: u32 = 200;
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// Kills and reaps the children of this process, including those that become its children meanwhile.
pub(crate) fn end_children() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    for _ in 0..KILL_ROUNDS {
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
        let children = processes(|stat| stat.parent == own);
        if children.is_empty() {
            return;
        }
        children.iter().for_each(Stat::kill);
        thread::sleep(KILL_PAUSE);
    }
}

/// The processes for which `fits` is true.
fn processes(fits: impl Fn(&Stat) -> bool) -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(Stat::read).filter(fits).collect()
}

/// Kills the process with this number if `is_meant`. A later process with that number is never killed.
pub(crate) fn kill_while(pid: i32, is_meant: impl FnOnce() -> bool) {
    let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 0) else { return };
    let handle = pidfd_open(pid, PidfdFlags::empty());
    if !is_meant() {
        return;
    }
    // The process may have exited. Old kernels and some sandboxes have no handles of processes.
    let _ = match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
        Err(_) => kill_process(pid, Signal::KILL),
    };
}

fn boot_id() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// The used fields of `/proc/<pid>/stat`.
struct Stat {
    pid: i32,
    ended: bool,
    parent: i32,
    session: i32,
    /// The processor time of the process and of its children that have ended.
    cpu_ticks: u64,
    start_ticks: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Kills this process. A later process with that number is never killed.
    fn kill(&self) {
        kill_while(self.pid, || Self::read(self.pid).is_some_and(|now| now.start_ticks == self.start_ticks));
    }

    /// Parses a line. The second field is the program's name in brackets, and may contain brackets.
    fn parse(pid: i32, text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let mut ticks = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
        let cpu_ticks =
            [ticks(7)?, ticks(0)?, ticks(0)?, ticks(0)?].iter().fold(0, |sum, it| it.saturating_add(sum));
        let start_ticks = ticks(4)?;
        Some(Self { pid, ended, parent, session, cpu_ticks, start_ticks })
    }
}

#[cfg(test)]
mod tests {
    use longshore_hostile::{cases, mutated};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_program_name_cannot_confuse_the_parser() {
        let text = "42 (a) R 9 9) S 7 40 41 0 -1 4194304 1 0 0 0 5 6 7 8 20 0 1 0 777 0 0";
        let stat = Stat::parse(42, text).unwrap();
        assert_eq!((stat.ended, stat.parent, stat.session, stat.start_ticks), (false, 7, 41, 777));
        assert_eq!(stat.cpu_ticks, 26);
        assert!(Stat::parse(42, "garbage").is_none());
    }

    #[test]
    fn a_number_that_was_given_out_again_is_someone_else() {
        let own = ProcessId::of(rustix::process::getpid()).unwrap();
        assert!(own.is_alive());
        assert!(!ProcessId { start_ticks: own.start_ticks + 1, ..own.clone() }.is_alive());
        assert!(!ProcessId { boot_id: "another boot".into(), ..own.clone() }.is_alive());
        for pid in [0, -1, i32::MIN] {
            assert_eq!(ProcessId { pid, ..own.clone() }.pid(), None);
        }
    }

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn any_line_about_a_process_is_survived(line in mutated(Just("42 (a) R 9 9) S 7 40 41 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 0 0"), &[b")", b" ", b"-", b"99999999999"])) {
            let _ = Stat::parse(42, &String::from_utf8_lossy(&line));
        }
    }
}
