"""A server with one processor: large commits must not delay other requests."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.wait import until

JOBS = 200


def pinned() -> tuple[str, ...]:
    """What makes a server stay on one of the processors that the tests may use."""
    return ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))


def ticks(pid: int) -> int:
    """The processor time of a process, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_big_commits_come_through_and_the_processor_sleeps_afterwards(fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"), prefix=pinned())
    assert len(os.sched_getaffinity(server.process.pid)) == 1
    endpoint = Api(server).external()
    jobs = {endpoint.run({"n": n}): n for n in range(JOBS)}
    worker = FakeWorker(endpoint)
    # Each of these takes is one commit of all its jobs.
    taken = [job for _ in range(4) for job in worker.take_batch(JOBS // 4, busy=True)]
    assert {job["id"]: job["input"]["n"] for job in taken} == jobs

    def report(share: list[dict]) -> None:
        reporter = FakeWorker(endpoint, worker.id, worker.token)
        for job in share:
            reporter.done(job["id"], {"output": job["input"]["n"]})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(report, [taken[at::8] for at in range(8)]))
    server.kill()
    server.start()
    assert {job: endpoint.status(job)["output"] for job in jobs} == jobs
    waiting = [endpoint.run({"n": n}) for n in range(JOBS)]
    assert endpoint.ok("POST", "/purge-queue")["removed"] == JOBS
    assert {endpoint.wait_for(job)["status"] for job in waiting} == {"CANCELLED"}

    before = [ticks(server.process.pid)]

    def asleep() -> bool:
        before.append(ticks(server.process.pid))
        return before[-1] - before[-2] <= 2

    until(asleep, "the server has nothing to do and does nothing", every_s=0.3)
