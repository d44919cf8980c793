"""Clients and workers of one endpoint that continue after every response, and remember what was acknowledged."""

import itertools
import random
import threading
import time
from typing import Callable

import requests

from .client import Api, Endpoint, unique
from .fake_worker import FakeWorker
from .wait import until

BIG = "x" * 600_000
"""Kept as a file beside the database."""


class BackgroundLoad:
    """Three clients that submit, two workers, and one who looks at what is finished."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint
        self.submitted: dict[str, int] = {}
        """By job, the number in its input: what was acknowledged."""
        self.results: dict[str, int] = {}
        """By job, the number in its output: what a worker reported and the server took."""
        self.looks = 0
        self.refused_looks = 0
        self.refused: list[requests.Response] = []
        """Refused submits and results."""
        self.unanswered = 0
        """Submits that may or may not have happened."""
        self.violations: list[str] = []
        self._numbers = itertools.count(1)
        self._no_more_jobs, self._stop = threading.Event(), threading.Event()
        acts = [(self._no_more_jobs, self._submit)] * 3 + [(self._stop, self._work)] * 2 + [(self._stop, self._look)]
        self._threads = [threading.Thread(target=self._loop, args=act) for act in acts]
        for thread in self._threads:
            thread.start()

    def _loop(self, stop: threading.Event, act: Callable) -> None:
        # A session belongs to one thread.
        mine = Endpoint(Api(self.endpoint.api.server), self.endpoint.record)
        worker = FakeWorker(mine, unique("worker"))
        while not stop.is_set():
            try:
                act(mine, worker)
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                # Killed, also in the middle of an answer, or about to be ready again.
                self.unanswered += act == self._submit
                time.sleep(0.02)
            except Exception as error:  # Raised again in the thread of the test.
                self.violations.append(repr(error))
                return

    def _submit(self, endpoint: Endpoint, _) -> None:
        number = next(self._numbers)
        answer = endpoint.call("POST", "/run", json={"input": {"n": number, "text": BIG if number % 10 == 0 else ""}})
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
        output = {"n": number, "text": BIG if number % 10 == 5 else ""}
        # The SDK tries a few times as well; this one never gives up.
        while (answer := worker.post("job-done", job["id"], {"output": output})).status_code != 200:
            self.refused.append(answer)
            worker.ping(job["id"])
            time.sleep(0.1)
        self.results[job["id"]] = number

    def _look(self, endpoint: Endpoint, _) -> None:
        time.sleep(0.02)
        if not self.results:
            return
        job, number = random.choice(list(self.results.items()))
        answer = endpoint.call("GET", f"/status/{job}")
        self.looks += 1
        if answer.status_code == 503:
            self.refused_looks += 1
        elif answer.status_code != 200 or not is_result(answer.json(), number):
            self.violations.append(f"{job} should be {number}: {answer.status_code} {answer.text[:300]}")

    def wait_for_more(self, submitted: int = 30, results: int = 30) -> None:
        """Until this number of further requests was acknowledged."""
        self._wait(lambda: (len(self.submitted), len(self.results)), (submitted, results), "jobs and results")

    def wait_refused(self, count: int = 20) -> None:
        """Until this number of further requests was refused, and as many reads have ended."""
        self._wait(lambda: (len(self.refused), self.looks), (count, count), "refusals")

    def _wait(self, counts: Callable, more: tuple[int, ...], what: str) -> None:
        targets = [count + each for count, each in zip(counts(), more)]

        def there():
            assert not self.violations, self.violations
            return all(count >= target for count, target in zip(counts(), targets))

        until(there, f"more {what}", 30)

    def stop(self) -> None:
        """All clients finish their requests; the server must be up."""
        self._no_more_jobs.set()
        for thread in self._threads[:3]:
            thread.join(60)
        self._stop.set()
        while any(thread.is_alive() for thread in self._threads):
            # An open poll ends with a job.
            self._submit(self.endpoint, None)
        assert not self.violations, self.violations


def is_result(record: dict, number: int) -> bool:
    """Whether the record is of a job that was finished with the output of this number."""
    expected = {"n": number, "text": BIG if number % 10 == 5 else ""}
    return record["status"] == "COMPLETED" and record["output"] == expected
