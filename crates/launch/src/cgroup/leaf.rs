//! The cgroup of one worker.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;

use super::put;
use crate::Limits;
use crate::proc::kill_while;

/// How many times the processes of a leaf are killed, and the pause between.
const KILL_ROUNDS: u32 = 500;
const KILL_PAUSE: Duration = Duration::from_millis(10);
/// The period of the processor limit, in microseconds.
const PERIOD_US: f64 = 100_000.0;

/// A cgroup without child cgroups, unless its processes create some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf(PathBuf);

impl Leaf {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The cgroup of the shims of a base.
    pub(super) fn shims(base: &Path) -> Self {
        Self(base.join("shims"))
    }

    /// The cgroup of the shim of this leaf's worker.
    pub(crate) fn of_shim(&self) -> Self {
        Self::shims(self.0.parent().unwrap_or(&self.0))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the cgroup if it does not exist.
    pub(crate) fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Sets the limits for the sum of the leaf's processes.
    pub(crate) fn limit(&self, limits: &Limits) -> io::Result<()> {
        if let Some(bytes) = limits.memory_bytes {
            self.set("memory.max", &bytes.to_string())?;
            // Otherwise memory above the limit would be swapped. The file is missing on a computer without swap.
            self.set_where_there_is("memory.swap.max", "0")?;
            // All processes are killed, because a worker without one of its processes would only seem to work.
            self.set_where_there_is("memory.oom.group", "1")?;
        }
        if let Some(vcpus) = limits.vcpus {
            let quota_us = (vcpus * PERIOD_US).round();
            self.set("cpu.max", &format!("{quota_us} {PERIOD_US}"))?;
        }
        Ok(())
    }

    fn set(&self, file: &str, text: &str) -> io::Result<()> {
        let path = self.0.join(file);
        put(&path, text).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write {text} to {}: {error}", path.display()))
        })
    }

    fn set_where_there_is(&self, file: &str, text: &str) -> io::Result<()> {
        match self.set(file, text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            set => set,
        }
    }

    /// Which limit caused a kill for lack of memory, as text; `None` if there was no such kill.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let read = |file: &str| fs::read_to_string(self.0.join(file)).unwrap_or_default();
        let events = read("memory.events");
        let happened = |event: &str| {
            let counts = events.lines().filter_map(|line| line.split_once(' '));
            counts.into_iter().any(|(name, count)| name == event && count != "0")
        };
        if !happened("oom_kill") {
            return None;
        }
        // The leaf's own limit was reached, not one of a parent cgroup or of the computer.
        let limit = read("memory.max").trim().parse::<u64>().ok().filter(|_| happened("oom"));
        Some(limit.map_or_else(
            || {
                "killed: out of memory, of which the machine or a cgroup above the worker's has no more"
                    .to_owned()
            },
            |bytes| format!("killed: out of memory, the limit is {} (memoryBytes)", size(bytes)),
        ))
    }

    /// Moves this process into the leaf, in which its new children start.
    pub(crate) fn enter(&self) -> io::Result<()> {
        put(&self.0.join("cgroup.procs"), "0")
    }

    /// Moves a process into the leaf.
    pub(crate) fn add(&self, process: Pid) -> io::Result<()> {
        put(&self.0.join("cgroup.procs"), &process.as_raw_nonzero().to_string())
    }

    /// Kills every process in the leaf, waits for their exits, and removes the leaf. Succeeds if there is no leaf.
    pub(crate) fn end(&self) -> io::Result<()> {
        for _ in 0..KILL_ROUNDS {
            if !self.0.exists() {
                return Ok(());
            }
            self.kill();
            if !self.is_populated() {
                return self.remove();
            }
            thread::sleep(KILL_PAUSE);
        }
        let text = format!("processes in {} do not end although they were killed", self.0.display());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    fn kill(&self) {
        if put(&self.0.join("cgroup.kill"), "1").is_err() {
            // Linux before 5.14 has no `cgroup.kill`.
            self.kill_each();
        }
    }

    fn kill_each(&self) {
        for folder in self.folders() {
            let procs = folder.join("cgroup.procs");
            let listed = || fs::read_to_string(&procs).unwrap_or_default();
            let has = |pid: i32| listed().lines().any(|line| line.parse() == Ok(pid));
            for pid in listed().lines().filter_map(|line| line.parse().ok()) {
                kill_while(pid, || has(pid));
            }
        }
    }

    /// Whether the cgroup or one below it has a process. `false` if `cgroup.events` cannot be read.
    fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    /// This folder and all folders below it, the innermost first.
    fn folders(&self) -> Vec<PathBuf> {
        let mut found = vec![self.0.clone()];
        let mut next = 0;
        while let Some(folder) = found.get(next) {
            let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
            let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let below: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
            found.extend(below);
            next += 1;
        }
        found.reverse();
        found
    }

    fn remove(&self) -> io::Result<()> {
        self.folders().iter().try_for_each(|folder| match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }
}

/// A number of bytes in the largest unit that divides it.
fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::super::CgroupBase;
    use super::*;

    /// A new cgroup; `None`, with a message on standard error, if this process may create none.
    fn real_leaf(name: &str) -> Option<Leaf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut places = mounts.lines().filter(|line| line.contains(" - cgroup2 ")).filter_map(|line| {
            let base = CgroupBase::at(Path::new(line.split(' ').nth(4)?)).ok()?;
            let leaf = Leaf::at(base.path().join(format!("longshore-test-{}-{name}", std::process::id())));
            leaf.make().ok().map(|()| leaf)
        });
        let leaf = places.next();
        if leaf.is_none() {
            eprintln!("SKIPPED: {name}: no cgroup v2 that this process may write");
        }
        leaf
    }

    fn sleeper_in(leaf: &Path) -> Child {
        let sleeper = Command::new("setsid").args(["sleep", "600"]).spawn().unwrap();
        put(&leaf.join("cgroup.procs"), &sleeper.id().to_string()).unwrap();
        sleeper
    }

    /// A folder that looks like a cgroup.
    fn plain_leaf(files: &[(&str, &str)]) -> (tempfile::TempDir, Leaf) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let leaf = Leaf::at(dir.path());
        (dir, leaf)
    }

    #[test]
    fn limits_are_written_in_the_kernels_words() {
        let files = ["memory.max", "memory.swap.max", "memory.oom.group", "cpu.max"].map(|name| (name, ""));
        let written =
            |leaf: &Leaf| files.map(|(name, _)| fs::read_to_string(leaf.path().join(name)).unwrap());
        let (_dir, leaf) = plain_leaf(&files);
        leaf.limit(&Limits::default()).unwrap();
        assert_eq!(written(&leaf), ["", "", "", ""]);
        leaf.limit(&Limits { memory_bytes: Some(2 << 30), vcpus: Some(1.5) }).unwrap();
        assert_eq!(written(&leaf), ["2147483648", "0", "1", "150000 100000"]);
        let (_dir, leaf) = plain_leaf(&files);
        leaf.limit(&Limits { memory_bytes: None, vcpus: Some(0.1) }).unwrap();
        assert_eq!(written(&leaf), ["", "", "", "10000 100000"]);
    }

    #[test]
    fn a_limit_that_cannot_be_set_is_an_error_and_swap_need_not_be_there() {
        let memory = Limits { memory_bytes: Some(1 << 24), vcpus: None };
        plain_leaf(&[("memory.max", "")]).1.limit(&memory).unwrap();
        let (_dir, leaf) = plain_leaf(&[("memory.max", "")]);
        let error = leaf.limit(&Limits { vcpus: Some(1.0), ..memory }).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot write 100000 100000 to ") && error.contains("/cpu.max: "),
            "{error}"
        );
    }

    #[test]
    fn a_kill_for_want_of_memory_is_named_with_the_limit() {
        let told = |max: &str, events: &str| {
            plain_leaf(&[("memory.max", max), ("memory.events", events)]).1.out_of_memory()
        };
        let own = "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n";
        let named = told("2147483648\n", own).unwrap();
        assert_eq!(named, "killed: out of memory, the limit is 2 GiB (memoryBytes)");
        assert!(told("1610612736\n", own).unwrap().contains("is 1536 MiB ("));
        let others = "max 0\noom 0\noom_kill 1\n";
        assert!(told("max\n", others).unwrap().contains("the machine or a cgroup above"));
        assert!(told("2147483648\n", others).unwrap().contains("the machine or a cgroup above"));
        assert_eq!(told("2147483648\n", "max 9\noom 1\noom_kill 0\n"), None);
        assert_eq!(plain_leaf(&[]).1.out_of_memory(), None, "no controller");
    }

    #[test]
    fn what_is_in_a_leaf_and_below_ends_with_it() {
        let Some(leaf) = real_leaf("ends") else { return };
        let below = leaf.path().join("made-by-a-worker/and-below");
        fs::create_dir_all(&below).unwrap();
        let mut sleepers = [sleeper_in(leaf.path()), sleeper_in(&below)];
        assert!(leaf.is_populated());
        leaf.end().unwrap();
        assert!(!leaf.path().exists());
        for sleeper in &mut sleepers {
            assert!(!sleeper.wait().unwrap().success());
        }
        leaf.end().unwrap();
    }

    #[test]
    fn an_old_kernel_has_each_process_killed() {
        let Some(leaf) = real_leaf("each") else { return };
        let below = leaf.path().join("below");
        fs::create_dir(&below).unwrap();
        let mut sleepers = [sleeper_in(leaf.path()), sleeper_in(&below)];
        leaf.kill_each();
        for sleeper in &mut sleepers {
            assert!(!sleeper.wait().unwrap().success());
        }
        leaf.end().unwrap();
    }
}
