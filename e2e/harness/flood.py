"""Submits as fast as it gets answers, to endpoints without workers: a deep queue of acknowledged jobs."""

import threading

import requests

from .client import ADMIN_KEY, Endpoint
from .fake_worker import FakeWorker
from .expectations import Expectations

PAUSE_S = 0.005


class Flood:
    """One submitting thread for each endpoint, until stopped; keeps the ids that were acknowledged."""

    def __init__(self, endpoints: list[Endpoint], expectations: Expectations):
        self.acknowledged: dict[str, list[str]] = {endpoint.id: [] for endpoint in endpoints}
        self._endpoints = endpoints
        self._expectations = expectations
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._submit, args=(endpoint,)) for endpoint in endpoints]
        for thread in self._threads:
            thread.start()

    def _submit(self, endpoint: Endpoint) -> None:
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
        url = f"{endpoint.api.server.url}{endpoint.mount}/run"
        while not self._stop.wait(PAUSE_S):
            try:
                answer = session.post(url, json={"input": {"some": "payload"}}, timeout=5)
            except requests.RequestException:
                self._expectations.lost_answer()
                continue
            if answer.status_code == 200:
                self.acknowledged[endpoint.id].append(answer.json()["id"])

    def count(self) -> int:
        """How many jobs were acknowledged."""
        return sum(len(jobs) for jobs in self.acknowledged.values())

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)

    def findings(self) -> list[str]:
        """What is wrong once the server was left alone: every acknowledged job is handed out, and once, in order."""
        found = []
        for endpoint in self._endpoints:
            wanted = self.acknowledged[endpoint.id]
            queued = endpoint.health()["jobs"]["inQueue"]
            worker = FakeWorker(endpoint)
            handed: list[str] = []
            while len(handed) < queued:
                batch = [job["id"] for job in worker.take_batch(1000, busy=bool(handed))]
                if not batch:
                    break
                handed += batch
            if len(handed) != queued or len(set(handed)) != queued:
                found.append(f"flood: {queued} jobs queued, {len(handed)} handed out, {len(set(handed))} different")
            lost = set(wanted) - set(handed)
            if lost or len(set(wanted)) != len(wanted):
                found.append(f"flood: {len(lost)} of {len(wanted)} acknowledged jobs are lost: {sorted(lost)[:3]}")
            # One client, one request at a time: it was told of its jobs in the order in which they were made.
            places = {job: place for place, job in enumerate(handed)}
            order = [places[job] for job in wanted if job in places]
            if order != sorted(order):
                found.append("flood: jobs were handed out in another order than they were acknowledged in")
        return found
