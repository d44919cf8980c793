"""Finding and ending worker processes by what is in their environment, so that only our own are touched."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class WorkerProcess:
    """The first process of a worker: its pid and the worker id it was given."""

    pid: int
    worker: str
    endpoint: str


def pids() -> list[int]:
    """Every process."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def children(pid: int) -> list[int]:
    """The processes that a process has started and that it is still the parent of."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty for one that is gone."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.split(b"=", 1) for item in raw.split(b"\0") if b"=" in item)
    return {key.decode(): value.decode(errors="replace") for key, value in pairs}


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def parent(pid: int) -> int:
    """The pid of a process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def lives(pid: int) -> bool:
    """Whether a process runs."""
    return not _is_zombie(pid)


def worker_pids(port: int) -> dict[int, dict[str, str]]:
    """Every live process whose environment says that it works for the server on `port`."""
    found = {}
    for pid in pids():
        started_with = environment(pid)
        if f"127.0.0.1:{port}/" in started_with.get("RUNPOD_WEBHOOK_GET_JOB", "") and not _is_zombie(pid):
            found[pid] = started_with
    return found


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def workers(port: int, endpoint: str | None = None) -> list[WorkerProcess]:
    """The workers of the server on `port`: one entry per worker, the leader of its process group."""
    found = []
    for pid, environment in worker_pids(port).items():
        if _group_of(pid) == pid and endpoint in (None, environment.get("RUNPOD_ENDPOINT_ID")):
            found.append(
                WorkerProcess(pid, environment.get("RUNPOD_POD_ID", "?"), environment.get("RUNPOD_ENDPOINT_ID", "?"))
            )
    return found


def arguments(pid: int) -> str:
    """The command line of a process, for messages."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "gone"


def started_under(folder: Path) -> list[int]:
    """Every live process whose arguments name something under `folder`."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and not _is_zombie(int(entry)):
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.startswith(str(folder).encode() + b"/") for word in words):
                found.append(int(entry))
    return found


def signal_worker(worker: WorkerProcess, number: signal.Signals) -> None:
    """Signals every process of a worker's group, each by its id."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and _group_of(int(entry)) == worker.pid:
            send(int(entry), number)


def send(pid: int, number: signal.Signals) -> None:
    """Signals one process; one that is gone is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def rss_bytes(pid: int) -> int:
    """The memory that a process has at this moment."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
