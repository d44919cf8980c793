"""Random clients and workers, all concurrently; the totals must be right in the end."""

import random
import threading
import time

from harness.client import TERMINAL, Api
from harness.fake_worker import FakeWorker
from harness.wait import until

JOBS = 600


class Storm:
    """Threads that act on one endpoint at random until told to stop."""

    def __init__(self, endpoint):
        self.endpoint = endpoint
        self.submitted: list[str] = []
        self.failures: list[str] = []
        self._stop = threading.Event()
        # A session is for one thread.
        actors = [self._submit, self._submit, self._meddle, self._work, self._work, self._work]
        self._threads = [threading.Thread(target=self._act, args=(actor, seed)) for seed, actor in enumerate(actors)]
        for thread in self._threads:
            thread.start()

    def _act(self, actor, seed: int) -> None:
        try:
            actor(random.Random(seed), type(self.endpoint)(Api(self.endpoint.api.server), self.endpoint.record))
        except Exception as error:  # Told to the test, which runs in another thread.
            self.failures.append(repr(error))

    def _submit(self, chance: random.Random, endpoint) -> None:
        while not self._stop.is_set():
            self.submitted.append(endpoint.run({"n": chance.random()}))

    def _meddle(self, chance: random.Random, endpoint) -> None:
        while not self._stop.is_set():
            if self.submitted:
                job = chance.choice(self.submitted)
                path = chance.choice([f"/cancel/{job}", f"/retry/{job}", f"/cancel/{job}"])
                assert endpoint.call("POST", path).status_code in (200, 400)
            if chance.random() < 0.02:
                endpoint.ok("POST", "/purge-queue")
            time.sleep(0.002)

    def _work(self, chance: random.Random, endpoint) -> None:
        worker = FakeWorker(endpoint)
        while not self._stop.is_set():
            jobs = [job["id"] for job in worker.take_batch(chance.randint(2, 5))]
            for job in jobs:
                what = chance.random()
                if what < 0.1:
                    continue  # Forgets it: the next take says that it holds nothing.
                if what < 0.3:
                    worker.progress(job, chance.random())
                    worker.chunk(job, chance.random())
                worker.done(job, {"output": job} if chance.random() < 0.8 else {"error": job})

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


def test_sums_come_out_right(fresh_server):
    endpoint = Api(fresh_server(flags=("--rate-limits", "off"))).external(maxRetries=100)
    storm = Storm(endpoint)
    until(lambda: storm.failures or len(storm.submitted) >= JOBS, "the storm has raged", 90)
    # Workers leave their polls only when there is a job.
    storm.stop()
    assert not storm.failures
    worker = FakeWorker(endpoint)

    def drained():
        for job in worker.take_batch(200) if endpoint.health()["jobs"]["inQueue"] else []:
            worker.done(job["id"], {"output": job["id"]})
        health = endpoint.health()["jobs"]
        # What the storm's workers took last and forgot is theirs until they are cancelled.
        return health if health["inQueue"] == 0 else None

    until(drained, "the queue is empty", 60)
    records = [endpoint.status(job) for job in storm.submitted]
    for record in records:
        if record["status"] not in TERMINAL:
            endpoint.cancel(record["id"])
    records = [endpoint.status(job) for job in storm.submitted]
    assert {record["status"] for record in records} <= set(TERMINAL)
    for record in records:
        if record["status"] == "COMPLETED":
            assert record["output"] == record["id"], "every result belongs to its job"
        if record["status"] == "FAILED":
            assert record["error"] == record["id"]
    health = endpoint.health()["jobs"]
    assert health["inQueue"] == 0 and health["inProgress"] == 0
    states = [record["status"] for record in records]
    # Retried jobs counted at each of their ends.
    assert health["completed"] == states.count("COMPLETED")
    assert health["failed"] >= states.count("FAILED")
    listed = endpoint.ok("GET", "/requests?limit=1000")["requests"]
    assert [r["id"] for r in listed] == sorted((r["id"] for r in listed), reverse=True)
