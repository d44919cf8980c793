"""A disk that cannot be read, or not in one place: only the job that it concerns pays for it, and the log says why."""

import time

import pytest

from harness.client import Api
from harness.disk import Disk
from harness.fake_worker import FakeWorker
from harness.server import QUICK, Server
from harness.wait import until

# Nothing is answered from memory, and polls are short.
CONFIG = QUICK + "recent_bytes_max = 0\nworker_hold_ms = 1000\n"
LARGE = "x" * 400_000
"""Becomes a file."""


@pytest.fixture
def unreadable(tmp_path):
    """A server and its disk."""
    server = Server(folder=tmp_path, flags=("--rate-limits", "off"), config=CONFIG)
    disk = Disk(server.data, tmp_path)
    server.environment = disk.environment
    server.start()
    yield server, disk
    disk.work()
    server.close()


def take_all(worker: FakeWorker, slots: int) -> dict[str, dict]:
    """What a worker that asks again and again gets within 6 s; as the SDK does, it says that it has nothing."""
    taken = {}
    until_s = time.monotonic() + 6
    while time.monotonic() < until_s:
        answer = worker.take_raw(slots)
        assert answer.status_code in (200, 204, 429), f"{answer.status_code} {answer.text[:500]}"
        if answer.status_code == 200:
            taken |= {job["id"]: job for job in answer.json()}
    return taken


def test_jobs_survive_a_log_that_cannot_be_read(unreadable):
    """For 6 s every read fails: no job does, none counts a retry, and the log names one and its file."""
    server, disk = unreadable
    endpoint = Api(server).external()
    jobs = [endpoint.run({"n": n, "text": "x" * 2_000}) for n in range(10)]
    worker = FakeWorker(endpoint)
    disk.fail("read EIO .log")
    assert take_all(worker, 10) == {}
    counts = endpoint.health()["jobs"]
    assert (counts["inQueue"], counts["failed"], counts["retried"]) == (10, 0, 0), counts
    lines = [line for line in server.log().splitlines() if "stored job unreadable" in line]
    assert any(job in lines[0] for job in jobs) and "log/" in lines[0] and "os error 5" in lines[0], lines[0]
    assert len(lines) <= 20, "and the log is not flooded"
    disk.work()
    done = []

    def work() -> bool:
        for job in worker.take_batch(10):
            worker.done(job["id"], {"output": job["input"]["n"]})
            done.append(job["id"])
        return len(done) == 10

    until(work, "all of them are delivered", 60)
    for n, job in enumerate(jobs):
        record = endpoint.status(job)
        assert (record["status"], record["output"], record.get("retries")) == ("COMPLETED", n, None), record


@pytest.mark.parametrize("damage", ["missing", "cut off"])
def test_a_damaged_file_fails_its_job_and_no_other_of_the_batch(unreadable, damage):
    server, _ = unreadable
    endpoint = Api(server).external()
    jobs = [endpoint.run({"n": n, "text": LARGE}) for n in range(7)]
    lost = jobs.pop(3)
    (file,) = server.data.glob(f"blobs/*/{lost}.input.sum-*")
    file.unlink() if damage == "missing" else file.write_bytes(file.read_bytes()[:100_000])
    worker = FakeWorker(endpoint)
    taken = worker.take_batch(10)
    assert [job["id"] for job in taken] == jobs
    for job in jobs:
        worker.done(job, {"output": 1})
        assert endpoint.status(job)["status"] == "COMPLETED"
    failed = endpoint.wait_for(lost)
    assert failed["status"] == "FAILED" and "damaged on the server's disk" in failed["error"], failed
    (line,) = [line for line in server.log().splitlines() if "stored job damaged" in line]
    assert "ERROR" in line and lost in line and file.name in line, line


def test_a_result_that_cannot_be_read_is_no_empty_success(unreadable):
    server, disk = unreadable
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    results = {}
    for output in ("y" * 2_000, LARGE):
        job = endpoint.run({})
        assert worker.take()["id"] == job
        worker.chunk(job, output[:1_000])
        worker.done(job, {"output": output})
        results[job] = output
    disk.fail("read EIO")
    for job in results:
        for path in (f"/status/{job}", f"/status-sync/{job}", f"/stream/{job}?offset=0"):
            answer = endpoint.call("GET", path)
            assert (answer.status_code, answer.json()["code"]) == (503, "unreadable"), f"{path}: {answer.text[:500]}"
            assert answer.headers["Retry-After"] == "1"
    listed = endpoint.ok("GET", "/requests")["requests"]
    assert {job["id"] for job in listed} == set(results) and all("cannot be read" in job["error"] for job in listed), listed
    disk.work()
    for job, output in results.items():
        assert endpoint.status(job)["output"] == output
    (file,) = server.data.glob("blobs/*/*.output.*")
    file.unlink()
    answer = endpoint.call("GET", f"/status/{file.name.split('.')[0]}")
    assert (answer.status_code, answer.json()["code"]) == (500, "damaged"), answer.text[:500]
