"""A full disk, a failing disk, and one that works again: nothing false is said, and service resumes by itself."""

import itertools
import re
import threading
import time

import pytest
import requests

from harness.client import Api, Endpoint, unique
from harness.disk import Disk
from harness.fake_worker import FakeWorker
from harness.server import Server
from harness.waiting import holds, until

BIG = "x" * 600_000
"""Kept as a file beside the database."""
FAULTS = {
    "full": ["write ENOSPC", "create ENOSPC"],
    "writes fail": ["write EIO"],
    "syncs fail": ["sync EIO"],
    "syncs of the log fail": ["sync EIO .db-wal"],
}


@pytest.fixture
def broken(tmp_path):
    """A server that is started by the test, and its disk."""
    server = Server(folder=tmp_path, flags=("--rate-limits", "off"))
    disk = Disk(server.data, tmp_path)
    server.environment = disk.environment
    yield server, disk
    disk.work()
    server.close()


class Traffic:
    """Clients that submit and a worker that works, and what they were told."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint
        self.submitted: dict[str, int] = {}
        """Job by the number in its input: what was acknowledged."""
        self.results: dict[str, int] = {}
        """What the worker reported and the server took."""
        self.refused: list[requests.Response] = []
        self.unexpected: list[str] = []
        self._numbers = itertools.count(1)
        self._submitting, self._working = threading.Event(), threading.Event()
        self._clients = [threading.Thread(target=self._loop, args=(self._submitting, self._submit)) for _ in range(3)]
        self._workers = [threading.Thread(target=self._loop, args=(self._working, self._work)) for _ in range(2)]
        for thread in self._clients + self._workers:
            thread.start()

    def _loop(self, stop: threading.Event, act) -> None:
        api = Api(self.endpoint.api.server)
        mine = Endpoint(api, self.endpoint.record)
        worker = FakeWorker(mine, unique("worker")) if act == self._work else None
        while not stop.is_set():
            try:
                act(mine, worker)
            except Exception as error:  # The test must hear of it, in its own thread.
                self.unexpected.append(repr(error))
                return

    def _submit(self, endpoint: Endpoint, _) -> None:
        number = next(self._numbers)
        input = {"n": number, "text": BIG if number % 10 == 0 else "small"}
        answer = endpoint.call("POST", "/run", json={"input": input})
        if answer.status_code == 200:
            self.submitted[answer.json()["id"]] = number
        else:
            self.refused.append(answer)
        time.sleep(0.01)

    def _work(self, _, worker: FakeWorker) -> None:
        taken = worker.take_raw(timeout_s=60)
        if taken.status_code == 429:
            time.sleep(0.2)
        if taken.status_code != 200:
            return
        job = taken.json()
        number = job["input"]["n"]
        output = {"n": number, "text": BIG if number % 10 == 5 else "small"}
        # The SDK tries a few times as well; here nobody gives up.
        while (answer := worker.post("job-done", job["id"], {"output": output})).status_code != 200:
            self.refused.append(answer)
            worker.ping(job["id"])
            time.sleep(0.1)
        self.results[job["id"]] = number

    def wait_for_more(self, submitted: int = 30, results: int = 30) -> None:
        """Until so many more were acknowledged."""
        target = len(self.submitted) + submitted, len(self.results) + results

        def there():
            assert not self.unexpected, self.unexpected
            return len(self.submitted) >= target[0] and len(self.results) >= target[1]

        until(there, "jobs and results go through", 30)

    def wait_refused(self, count: int = 20) -> None:
        """Until so many more requests were refused."""
        target = len(self.refused) + count
        until(lambda: self.unexpected or len(self.refused) >= target, "requests are refused", 30)
        assert not self.unexpected, self.unexpected

    def stop(self) -> None:
        """Everybody finishes the request that is under way."""
        self._submitting.set()
        for thread in self._clients:
            thread.join(60)
        self._working.set()
        for thread in self._workers:
            # An open poll ends with a job.
            while thread.is_alive():
                self.endpoint.call("POST", "/run", json={"input": {"n": 0}})
                thread.join(0.1)
        assert not self.unexpected, self.unexpected


@pytest.mark.timeout(180)
@pytest.mark.parametrize("durability", ["synced", "buffered"])
@pytest.mark.parametrize("kind", FAULTS)
def test_nothing_false_is_said_while_the_disk_fails(broken, kind, durability):
    server, disk = broken
    endpoint = Api(server.start()).external(durability=durability)
    traffic = Traffic(endpoint)
    try:
        traffic.wait_for_more()
        first = next(iter(traffic.results))
        for _ in range(2):
            disk.fail(*FAULTS[kind])
            traffic.wait_refused()
            assert requests.get(f"{server.url}/healthz", timeout=5).status_code == 200
            assert requests.get(f"{server.url}/readyz", timeout=5).status_code == 200
            until(lambda: endpoint.call("GET", f"/status/{first}").status_code == 200, "reads go on", 5)
            disk.work()
            traffic.wait_for_more()
    finally:
        disk.work()
        traffic.stop()
    for answer in traffic.refused:
        assert answer.status_code == 503, f"{answer.status_code} {answer.text[:500]}"
        assert int(answer.headers["Retry-After"]) >= 1
        assert set(answer.json()) == {"error", "code"}
    server.kill()
    server.start()
    for job, number in traffic.submitted.items():
        record = endpoint.status(job)
        if job in traffic.results:
            assert record["status"] == "COMPLETED" and record["output"]["n"] == number, record
            assert len(record["output"]["text"]) in (5, len(BIG))
    log = server.log()
    assert re.search("is full" if kind == "full" else "(?i)I/O error|input/output error", log), log[-4000:]
    assert "panicked" not in log
