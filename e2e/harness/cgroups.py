"""A cgroup v2 folder for a test's server, where this machine lets us have one."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest


class CgroupFolder:
    """A fresh folder in a cgroup v2 file system that is mounted for it. Skips the test where it cannot be had."""

    def __init__(self):
        self._mount = Path(tempfile.mkdtemp(prefix="longshore-cgroup2-"))
        mounted = subprocess.run(["mount", "-t", "cgroup2", "none", self._mount], capture_output=True, text=True)
        if mounted.returncode != 0:
            self._mount.rmdir()
            pytest.skip(f"cgroup v2 cannot be mounted here (root is needed): {mounted.stderr.strip()}")
        self.path = self._mount / f"longshore-e2e-{os.getpid()}-{time.monotonic_ns()}"
        self.path.mkdir()

    def leaves(self) -> list[Path]:
        """The cgroups of workers."""
        return sorted(self.path.glob("longshore-*"))

    @staticmethod
    def of(pid: int) -> str:
        """The name of the cgroup that a process is in."""
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        return next(line for line in lines if line.startswith("0::")).rsplit("/", 1)[1]

    def close(self) -> None:
        """Removes the folder, whose processes have ended, and the mount."""
        for folder in [*self.path.iterdir(), self.path]:
            if folder.is_dir():
                folder.rmdir()
        subprocess.run(["umount", self._mount], check=True)
        self._mount.rmdir()
