"""What besieges a server: thousands of concurrent connections from one thread; and measurements of the server meanwhile."""

import os
import resource
import selectors
import socket
import struct
import threading
import time
from pathlib import Path

import requests

from .client import ADMIN_KEY, Api, Endpoint
from .fake_worker import FakeWorker

PORTS_PER_ADDRESS = 20_000
"""Connections from one of our addresses to one port; the kernel has some 28 000 ports for them."""
LONGEST_S = 15.0
"""What a good client may have to wait for a job that takes no time, while the server is besieged: with a debug build
and two processors for everything, including those for the attackers and other programs."""
IP_BIND_ADDRESS_NO_PORT = 24
"""From `linux/in.h`; Python has no name for it."""


def raise_descriptor_limit() -> int:
    """As many open files as this process may have; answers how many connections that is."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - 500


class ProcessStats:
    """Samples a process's resident memory while a test runs."""

    def __init__(self, pid: int):
        self.pid = pid
        self.before_mb = self.now_mb()
        self.peak_mb = self.before_mb
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def now_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def _sample(self) -> None:
        while not self._stop.wait(0.02):
            try:
                self.peak_mb = max(self.peak_mb, self.now_mb())
            except FileNotFoundError:
                return

    def grown_mb(self) -> float:
        """How much more there was at the worst moment than in the beginning."""
        return max(self.peak_mb, self.now_mb()) - self.before_mb

    def cpu_s(self) -> float:
        """The processor time that the process has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def descriptors(self) -> int:
        """How many open files the process has."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def __enter__(self) -> "ProcessStats":
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()


class GoodClient:
    """A well-behaved client, and the worker that serves it, while others misbehave: hands in job after job and waits
    for each; every other one over a connection of its own."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint
        self.latencies_s: list[float] = []
        self.failures: list[str] = []
        self._asking_ends = threading.Event()
        self._work_ends = threading.Event()
        self._asker = threading.Thread(target=self._ask)
        self._worker = threading.Thread(target=self._work)
        self._asker.start()
        self._worker.start()

    def _work(self) -> None:
        worker = FakeWorker(Endpoint(Api(self.endpoint.api.server), self.endpoint.record))
        while not self._work_ends.is_set():
            try:
                for job in worker.take_batch(10):
                    worker.done(job["id"], {"output": job["input"]})
            except (requests.RequestException, AssertionError) as error:
                self.failures.append(f"worker: {error!r}")

    def _ask(self) -> None:
        server = self.endpoint.api.server
        kept = Endpoint(Api(server), self.endpoint.record)
        n = 0
        while not self._asking_ends.wait(0.02):
            n += 1
            endpoint = kept if n % 2 else Endpoint(Api(server), self.endpoint.record)
            began = time.monotonic()
            try:
                record = endpoint.runsync({"n": n}, 30_000)
                assert record["status"] == "COMPLETED" and record["output"] == {"n": n}, record
                self.latencies_s.append(time.monotonic() - began)
            except (requests.RequestException, AssertionError) as error:
                self.failures.append(f"after {time.monotonic() - began:.1f} s: {error!r}")

    def stop(self) -> None:
        """The client first: its last job wants a worker."""
        self._asking_ends.set()
        self._asker.join(60)
        self._work_ends.set()
        self._worker.join(30)

    def __enter__(self) -> "GoodClient":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def summary(self) -> str:
        ordered = sorted(self.latencies_s) or [float("nan")]
        at = lambda part: ordered[min(len(ordered) - 1, int(part * len(ordered)))] * 1000
        return (
            f"{len(self.latencies_s)} good requests: median {at(0.5):.0f} ms, 99 % under {at(0.99):.0f} ms, "
            f"longest {at(1):.0f} ms; {len(self.failures)} failed"
        )

    def was_served(self) -> None:
        """Fails unless every request of it was answered in time."""
        assert not self.failures, self.failures[:5]
        assert self.latencies_s and max(self.latencies_s) < LONGEST_S, self.summary()


class ConnectionSwarm:
    """Very many connections of one thread, all of them open until the server or the test closes them."""

    def __init__(self, port: int):
        self.port = port
        self.open: dict[int, socket.socket] = {}
        self.received: dict[int, bytes] = {}
        self.ended = 0
        self._made = 0
        self._selector = selectors.EpollSelector()

    def connect(self, count: int, first_bytes: bytes) -> None:
        """Opens `count` more and sends each the same beginning."""
        for _ in range(count):
            connection = socket.socket()
            # Each of our addresses has ports of its own. One is chosen when the connection is made: a port that must be
            # free for every peer is searched for ever longer.
            connection.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            connection.bind((f"127.0.0.{2 + self._made // PORTS_PER_ADDRESS}", 0))
            self._made += 1
            connection.settimeout(60)
            connection.connect(("127.0.0.1", self.port))
            connection.sendall(first_bytes)
            connection.setblocking(False)
            self.open[connection.fileno()] = connection
            self.received[connection.fileno()] = b""
            self._selector.register(connection, selectors.EVENT_READ)

    def send(self, more: bytes) -> None:
        """A few more bytes on every connection that is still open."""
        for fd in list(self.open):
            try:
                self.open[fd].send(more)
            except BlockingIOError:
                pass
            except OSError:
                self._end(fd)

    def receive(self, timeout_s: float = 0) -> None:
        """Reads available bytes; notes closed connections."""
        for key, _ in self._selector.select(timeout_s):
            try:
                data = key.fileobj.recv(65_536)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if data:
                self.received[key.fd] += data
            else:
                self._end(key.fd)

    def _end(self, fd: int) -> None:
        connection = self.open.pop(fd)
        self._selector.unregister(connection)
        connection.close()
        self.ended += 1

    def close(self) -> None:
        for fd in list(self.open):
            self._end(fd)
        self._selector.close()

    def __enter__(self) -> "ConnectionSwarm":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def head(line: str, *headers: str, key: str | None = ADMIN_KEY) -> bytes:
    """A request's head with our key."""
    lines = [f"{line} HTTP/1.1", "Host: longshore"]
    lines += [f"Authorization: Bearer {key}"] if key else []
    return "\r\n".join([*lines, *headers, "", ""]).encode()


class Wire:
    """One connection on which a test says exactly what it wants."""

    def __init__(self, port: int, timeout_s: float = 60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)

    def send(self, data: bytes) -> bool:
        """Whether all of it was taken."""
        try:
            self.socket.sendall(data)
            return True
        except (ConnectionError, TimeoutError):
            return False

    def flood(self, piece: bytes, bytes_max: int) -> int:
        """Repeats the same piece until this number of bytes is sent or the server reads no further;
        answers how many it was."""
        sent = 0
        while sent < bytes_max:
            try:
                self.socket.sendall(piece)
            except (ConnectionError, TimeoutError):
                break
            sent += len(piece)
        return sent

    def flood_quietly(self, data: bytes) -> None:
        """Sends while the test reads: the server stops reading from a client that does not read."""
        threading.Thread(target=self.send, args=(data,), daemon=True).start()

    def statuses(self, count: int) -> set[int]:
        """Reads this number of answers, none of which may have anything like a status line in its body."""
        found: list[int] = []
        data = b""
        while len(found) < count:
            piece = self.socket.recv(65_536)
            assert piece, f"the server disconnected after {len(found)} of {count} answers"
            *lines, data = (data + piece).split(b"\n")
            # A body without a line end is followed by the next status line.
            heads = [line.partition(b"HTTP/1.1 ")[2] for line in lines]
            found += [int(rest[:3]) for rest in heads if rest]
        return set(found)

    def answer(self) -> bytes:
        """Everything until the server closes, or says nothing more for the connection's timeout."""
        data = b""
        try:
            while piece := self.socket.recv(65_536):
                data += piece
        except (ConnectionError, TimeoutError):
            pass
        return data

    def first_status(self) -> int | None:
        """The status of the first answer; `None` if the server disconnected without one."""
        data = b""
        try:
            while b"\r\n" not in data:
                piece = self.socket.recv(65_536)
                if not piece:
                    break
                data += piece
        except (ConnectionError, TimeoutError):
            pass
        words = data.split(b" ", 2)
        return int(words[1]) if data.startswith(b"HTTP/1.") and len(words) > 1 else None

    def half_close(self) -> None:
        """Nothing more comes from us; we could still read."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server has already disconnected.

    def reset(self) -> None:
        """Resets the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_) -> None:
        self.close()
