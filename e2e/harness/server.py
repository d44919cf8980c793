"""A Longshore server under test: started, restarted and killed as a process."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import requests

from . import processes, stores
from .wait import until

ADMIN_KEY = "ls_e2e_0123456789abcdef0123456789abcdef0123456789abcdef"

# Times that tests would otherwise have to wait for. What is not named here has its default. Where the machine that runs
# the tests has GPUs, workers would otherwise wait for one of their own.
QUICK = """
gpu_sharing = "off"
ping_interval_ms = 3000
stop_grace_ms = 4000
kill_grace_ms = 1000
"""


def binary() -> str:
    """The program under test."""
    path = os.environ.get("LONGSHORE_BIN", "")
    assert path and Path(path).exists(), "set LONGSHORE_BIN to the longshore binary"
    return path


class Server:
    """One data directory and, while it runs, the process that serves it. The port stays the same over restarts."""

    def __init__(
        self,
        folder: Path | None = None,
        config: str = QUICK,
        flags: tuple[str, ...] = (),
        prefix: tuple[str, ...] = (),
        verify: str = "",
    ):
        self._own = tempfile.TemporaryDirectory(prefix="longshore-e2e-") if folder is None else None
        self.folder = folder or Path(self._own.name)
        self.data = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.config = self.folder / "config.toml"
        self.config.write_text(stores.settings(self.folder, config) + config)
        self.flags = flags
        self.environment: dict[str, str] = {}
        """Added to what the process gets."""
        self.program = binary()
        # A program that becomes the server, such as `prlimit --nofile=400`.
        self.prefix = prefix
        # Who vouches for the server's certificate: a file, if it is to speak TLS.
        self.verify = verify
        # Kept for all runs: no other program gets the port while the server is stopped, not even a client that
        # connects to it and would talk to itself.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        self.port = self._reserved.getsockname()[1]
        self.process: subprocess.Popen | None = None
        self.ready_ms = 0.0

    @property
    def url(self) -> str:
        return f"http{'s' if self.verify else ''}://127.0.0.1:{self.port}"

    def spawn(self, *more: str) -> subprocess.Popen:
        """Starts the process without waiting for anything."""
        port_file = self.folder / "port"
        port_file.unlink(missing_ok=True)
        command = [*self.prefix, self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data-dir", str(self.data)]
        command += ["--port-file", str(port_file), "--config", str(self.config), *self.flags, *more]
        # No proxy and no key of the person who runs the tests may leak in.
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("RUNPOD_", "LONGSHORE_"))}
        environment |= {"LONGSHORE_ADMIN_KEY": ADMIN_KEY, **self.environment}
        with self.log_path.open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder
            )

    def start(self) -> "Server":
        """Starts the server and returns when `/readyz` says so."""
        began = time.monotonic()
        self.process = self.spawn()
        port_file = self.folder / "port"
        until(lambda: self._alive() and port_file.exists() and port_file.read_text().strip(), "port file", 15, 0.002)
        until(self._is_ready, "/readyz answers 200", 15, 0.002)
        self.ready_ms = (time.monotonic() - began) * 1000
        return self

    def _alive(self) -> bool:
        code = self.process.poll()
        if code is not None:
            raise RuntimeError(f"the server ended with {code}:\n{self.log()[-4000:]}")
        return True

    def _is_ready(self) -> bool:
        self._alive()
        try:
            return requests.get(f"{self.url}/readyz", timeout=60, verify=self.verify or True).status_code == 200
        except requests.ConnectionError:
            return False

    def log(self) -> str:
        """Everything the server printed so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def reason(self) -> str:
        """Why the program ended: its error. Threads that are still at work may log after it."""
        return [line for line in self.log().splitlines() if line.startswith("longshore: ")][-1]

    def terminate(self, timeout_s: float = 60) -> int:
        """SIGTERM; answers the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """SIGKILL: as a power cut for the process."""
        self.process.kill()
        self.process.wait(60)

    def lose(self) -> None:
        """SIGKILL for the server and for all that it started: as when the computer is lost."""
        self.kill()
        for pid in self._left():
            processes.send(pid, signal.SIGKILL)
        until(lambda: not self._left(), "the processes are gone", 10)

    def workers(self, endpoint: str | None = None) -> list[processes.WorkerProcess]:
        """The worker processes of this server, or of one of its endpoints."""
        return processes.workers(self.port, endpoint)

    def close(self) -> None:
        """Deletes the endpoints, sees their workers end, stops the server; ends processes that are left, and fails if there were any."""
        left: dict[int, str] = {}
        try:
            if self.process is not None and self.process.poll() is None:
                self._delete_endpoints()
                self.terminate()
        finally:
            if self.process is not None and self.process.poll() is None:
                self.kill()
            left = {pid: processes.arguments(pid) for pid in self._left()}
            for pid in left:
                processes.send(pid, signal.SIGKILL)
            until(lambda: not self._left(), "the processes are gone", 10)
            self._reserved.close()
        assert not left, f"workers outlived their endpoints: {left}\n{self.log()[-4000:]}"
        if self._own is not None:
            self._own.cleanup()

    def _left(self) -> list[int]:
        """Processes of workers: by what is in their environment, and what was started in our data directory."""
        workers = set(processes.worker_pids(self.port))
        return sorted(workers | set(processes.started_under(self.data)))

    def _delete_endpoints(self) -> None:
        headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
        for worker in self.workers():
            # A stopped process cannot end by itself.
            processes.signal_worker(worker, signal.SIGCONT)
        more = {"headers": headers, "timeout": 60, "verify": self.verify or True}
        for endpoint in requests.get(f"{self.url}/v1/endpoints", **more).json():
            requests.delete(f"{self.url}/v1/endpoints/{endpoint['id']}", **more)
        deadline = time.monotonic() + 120
        while self._left() and time.monotonic() < deadline:
            time.sleep(0.05)
