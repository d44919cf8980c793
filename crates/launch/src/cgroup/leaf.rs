//! The cgroup of one worker.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::put;
use crate::proc::kill_while;

/// How often the processes of a leaf are killed before giving up, and the pause between.
const KILL_ROUNDS: u32 = 500;
const KILL_PAUSE: Duration = Duration::from_millis(10);

/// A cgroup without others in it, unless its processes make some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf(PathBuf);

impl Leaf {
    pub(crate) fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where the shims of a base are.
    pub(super) fn shims(base: &Path) -> Self {
        Self(base.join("shims"))
    }

    /// Where the shim of this leaf's worker is.
    pub(crate) fn of_shim(&self) -> Self {
        Self::shims(self.0.parent().unwrap_or(&self.0))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes it where it is not there.
    pub(crate) fn make(&self) -> io::Result<()> {
        match fs::create_dir(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Moves this process into it. What the process starts from then on begins there.
    pub(crate) fn enter(&self) -> io::Result<()> {
        put(&self.0.join("cgroup.procs"), "0")
    }

    /// Kills every process in it, waits until there is none, and removes it. One that is gone already is fine.
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
            // Linux before 5.14.
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

    /// Whether there is a process in it or below. Where nobody can tell, there is none.
    fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    /// This folder and all below it, the innermost first.
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

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::super::CgroupBase;
    use super::*;

    /// A fresh cgroup; none, said aloud, where this process may make none.
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
