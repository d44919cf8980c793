//! Cgroups (version 2) of workers: a base that the server may divide, and a leaf in it for each worker.
//!
//! ```text
//! <base>/                                the parent of the server's own cgroup, or the operator's setting
//!   shims/                               the shims, so that killing a worker's leaf does not kill its shim
//!   longshore-<data directory>-<worker>/ one worker with all processes that it starts
//! ```

pub(crate) mod leaf;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use longshore_model::WorkerId;
use rustix::fs::{Access, access, getxattr, statfs};

use crate::{Limits, unenforced};
use leaf::Leaf;

/// The type that `statfs` returns for a cgroup v2 file system.
const CGROUP2_MAGIC: i64 = 0x6367_7270;
/// The attributes that systemd sets to 1 on a cgroup that a unit with `Delegate=yes` may divide; only root sees the second.
const DELEGATED: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// There is no cgroup that the server may divide.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CgroupError(String);

/// A cgroup v2 folder that the server may make workers' cgroups in.
#[derive(Clone, Debug)]
pub struct CgroupBase(PathBuf);

impl CgroupBase {
    /// The cgroup at this path.
    ///
    /// # Errors
    ///
    /// The path is no folder of a cgroup v2 file system, or this process may not write there.
    pub fn at(path: &Path) -> Result<Self, CgroupError> {
        let refused = |why: String| CgroupError(format!("{}: {why}", path.display()));
        let facts = statfs(path).map_err(|error| refused(error.to_string()))?;
        if facts.f_type != CGROUP2_MAGIC {
            return Err(refused("no folder of a cgroup v2 file system".to_owned()));
        }
        // A process may enter a cgroup only with write access to the common ancestor of both cgroups.
        for place in [path, &path.join("cgroup.procs")] {
            access(place, Access::WRITE_OK)
                .map_err(|error| refused(format!("{} cannot be written: {error}", place.display())))?;
        }
        Ok(Self(path.to_owned()))
    }

    /// The parent of this process's cgroup, if it is delegated.
    ///
    /// # Errors
    ///
    /// There is no cgroup v2 file system, or the parent is not delegated.
    pub fn delegated() -> Result<Self, CgroupError> {
        let read = |path: &str| {
            fs::read_to_string(path).map_err(|error| CgroupError(format!("cannot read {path}: {error}")))
        };
        let own = own_cgroup(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
        match own.parent() {
            Some(parent) if is_delegated(parent) => Self::at(parent),
            _ if is_delegated(&own) => Err(CgroupError(format!(
                "{} is delegated, but the server is in that cgroup itself; set DelegateSubgroup=server in the systemd \
                 unit",
                own.display()
            ))),
            _ => Err(CgroupError(format!(
                "no cgroup is delegated to the server, which is in {}; set Delegate=yes and DelegateSubgroup=server in \
                 the systemd unit, or `worker_cgroup`",
                own.display()
            ))),
        }
    }

    /// The path of the cgroup directory, in a mount of cgroup v2.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

fn is_delegated(cgroup: &Path) -> bool {
    DELEGATED.iter().any(|name| {
        let mut value = [0_u8; 8];
        matches!(getxattr(cgroup, *name, &mut value), Ok(1) if value[0] == b'1')
    })
}

/// The path of a process's cgroup, from `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo`.
fn own_cgroup(cgroup: &str, mountinfo: &str) -> Result<PathBuf, CgroupError> {
    let none =
        || CgroupError("no cgroup v2 file system is mounted that shows the server's cgroup".to_owned());
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::")).ok_or_else(none)?;
    let own = Path::new(own);
    let mut shown = mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(())?;
        let mut words = mount.split(' ').skip(3);
        let (root, place) = (words.next()?, words.next()?);
        let below = own.strip_prefix(root).ok()?;
        // Outside the namespace of this process.
        let is_inside = !below.components().any(|part| part.as_os_str() == "..");
        is_inside.then(|| Path::new(place).join(below).components().collect())
    });
    shown.next_back().ok_or_else(none)
}

/// The cgroups of the workers of one data directory.
#[derive(Clone, Debug)]
pub(crate) struct Cgroups {
    base: PathBuf,
    /// The prefix of the leaves' names, because another server may use the base.
    prefix: String,
    /// `Err`: why memory cannot be limited.
    memory: Result<(), String>,
    /// `Err`: why processors cannot be limited.
    cpu: Result<(), String>,
}

impl Cgroups {
    /// Prepares the base for the workers whose folders are in `workers`.
    pub(crate) fn prepare(base: &CgroupBase, workers: &Path) -> Result<Self, CgroupError> {
        let failed = |path: &Path, error: io::Error| CgroupError(format!("{}: {error}", path.display()));
        let facts = fs::create_dir_all(workers)
            .and_then(|()| fs::metadata(workers))
            .map_err(|error| failed(workers, error))?;
        let base = base.path().to_owned();
        let shims = Leaf::shims(&base);
        shims.make().map_err(|error| failed(shims.path(), error))?;
        let prefix = format!("longshore-{:x}-{:x}-", facts.dev(), facts.ino());
        let (memory, cpu) = (enable(&base, "memory"), enable(&base, "cpu"));
        Ok(Self { base, prefix, memory, cpu })
    }

    /// The limits that cannot be set, and why, as text; `None` if all can.
    pub(crate) fn unenforced(&self, limits: &Limits) -> Option<String> {
        let why = |can: &'_ Result<(), String>| can.clone().err();
        unenforced(limits, why(&self.memory).as_deref(), why(&self.cpu).as_deref())
    }

    /// The part of these limits that can be set.
    pub(crate) fn enforced(&self, limits: &Limits) -> Limits {
        Limits {
            memory_bytes: limits.memory_bytes.filter(|_| self.memory.is_ok()),
            vcpus: limits.vcpus.filter(|_| self.cpu.is_ok()),
        }
    }

    /// The leaf of a worker, which may not exist.
    pub(crate) fn leaf(&self, worker: &WorkerId) -> Leaf {
        Leaf::at(self.base.join(format!("{}{worker}", self.prefix)))
    }

    /// The ids and leaves of the workers of this data directory.
    pub(crate) fn leaves(&self) -> Vec<(String, Leaf)> {
        let entries = fs::read_dir(&self.base).into_iter().flatten().filter_map(Result::ok);
        let named = entries.filter_map(|entry| {
            let worker = entry.file_name().to_str()?.strip_prefix(&self.prefix)?.to_owned();
            Some((worker, Leaf::at(entry.path())))
        });
        named.collect()
    }
}

/// Enables a controller for the leaves of a base.
fn enable(base: &Path, controller: &str) -> Result<(), String> {
    let there = fs::read_to_string(base.join("cgroup.controllers")).unwrap_or_default();
    if !there.split_whitespace().any(|name| name == controller) {
        return Err(format!("the cgroup {} has no `{controller}` controller", base.display()));
    }
    let file = base.join("cgroup.subtree_control");
    put(&file, &format!("+{controller}"))
        .map_err(|error| format!("cannot write +{controller} to {}: {error}", file.display()))
}

/// Writes to an existing file of a cgroup.
fn put(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "30 1 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n\
                           31 1 0:28 / /proc rw - proc proc rw\n";

    #[test]
    fn the_own_cgroup_is_where_the_mount_shows_it() {
        let own = |cgroup: &str, mounts: &str| own_cgroup(cgroup, mounts).ok();
        let unit = "0::/system.slice/longshore.service/server\n";
        let path = Path::new("/sys/fs/cgroup/system.slice/longshore.service/server");
        assert_eq!(own(unit, UNIFIED).as_deref(), Some(path));
        let hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own("5:memory:/x\n0::/\n", hybrid).as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        let part = "41 31 0:38 /system.slice /mnt rw - cgroup2 none rw\n";
        assert_eq!(own(unit, part).as_deref(), Some(Path::new("/mnt/longshore.service/server")));
        assert_eq!(own("0::/user.slice\n", part), None, "not shown there");
        assert_eq!(own("0::/../other\n", UNIFIED), None, "outside the namespace");
        assert_eq!(own("5:memory:/x\n", UNIFIED), None, "version 1 alone");
        assert_eq!(own(unit, "31 1 0:28 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn a_plain_folder_is_no_base() {
        let dir = tempfile::tempdir().unwrap();
        let error = CgroupBase::at(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no folder of a cgroup v2 file system"), "{error}");
        let error = CgroupBase::at(&dir.path().join("missing")).unwrap_err().to_string();
        assert!(error.contains("missing: No such file"), "{error}");
    }

    #[test]
    fn limits_that_cannot_be_set_are_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let (base, workers) = (dir.path().join("base"), dir.path().join("workers"));
        fs::create_dir(&base).unwrap();
        let cgroups = || Cgroups::prepare(&CgroupBase(base.clone()), &workers).unwrap();
        let both = Limits { memory_bytes: Some(1 << 30), vcpus: Some(0.5) };
        fs::write(base.join("cgroup.controllers"), "cpuset memory pids\n").unwrap();
        let text = cgroups().unenforced(&both).unwrap();
        assert!(text.contains("`memoryBytes` does not hold: cannot write +memory to "), "{text}");
        assert!(
            text.contains("; `vcpus` does not hold: the cgroup ") && text.ends_with("no `cpu` controller"),
            "{text}"
        );
        fs::write(base.join("cgroup.subtree_control"), "").unwrap();
        let cgroups = cgroups();
        assert!(!cgroups.unenforced(&both).unwrap().contains("memoryBytes"));
        assert_eq!(cgroups.enforced(&both), Limits { vcpus: None, ..both });
        assert_eq!(cgroups.unenforced(&Limits { vcpus: None, ..both }), None);
        assert_eq!(fs::read_to_string(base.join("cgroup.subtree_control")).unwrap(), "+memory");
    }

    #[test]
    fn leaves_are_told_from_those_of_another_data_folder() {
        let dir = tempfile::tempdir().unwrap();
        let (base, one, other) = (dir.path().join("base"), dir.path().join("one"), dir.path().join("other"));
        for folder in [&base, &one, &other] {
            fs::create_dir(folder).unwrap();
        }
        let cgroups = |workers: &Path| Cgroups::prepare(&CgroupBase(base.clone()), workers).unwrap();
        let (one, other) = (cgroups(&one), cgroups(&other));
        let worker: WorkerId = "abc".parse().unwrap();
        one.leaf(&worker).make().unwrap();
        assert_eq!(one.leaves().into_iter().map(|(worker, _)| worker).collect::<Vec<_>>(), ["abc"]);
        assert!(other.leaves().is_empty());
        assert!(base.join("shims").is_dir());
    }
}
