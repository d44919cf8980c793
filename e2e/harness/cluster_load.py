"""Callers and workers on several nodes: what callers were told, and what of it was broken."""

import itertools
import threading
import time

import requests

from .client import TERMINAL, Endpoint, unique
from .nodes import Node
from .server import ADMIN_KEY

PAUSE_S = 0.02


class ClusterLoad:
    """On each node a caller of `runsync` and one of `run`, and workers that ask one node after the other. A caller stays with
    its node, as behind a connection that was balanced once; a worker goes on with the next node when one does not answer."""

    def __init__(self, endpoint: Endpoint, nodes: list[Node], workers: int = 2):
        self.endpoint, self.nodes = endpoint, nodes
        self.acknowledged: dict[str, int] = {}
        """The number in the input of each job that a caller was told of."""
        self.violations: list[str] = []
        self.answered = 0
        self.unavailable = 0
        """Calls that got 503: a caller of a node that was paused, or while the database was away."""
        self.may_refuse = threading.Event()
        """Set while a node may answer 503."""
        self._token = endpoint.worker_token()["token"]
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._stop_workers = threading.Event()
        self._ends: dict[str, str] = {}
        self._callers = [
            threading.Thread(target=self._call, args=(node, how)) for node in nodes for how in ("runsync?wait=20000", "run")
        ]
        self._workers = [threading.Thread(target=self._work, args=(place,)) for place in range(workers)]
        for thread in self._callers + self._workers:
            thread.start()

    def count(self) -> int:
        with self._lock:
            return self.answered

    def _call(self, node: Node, how: str) -> None:
        session = _session()
        while not self._over.wait(PAUSE_S):
            if not node.is_running():
                continue
            turns, number = node.turns, next(self._numbers)
            may_refuse = self.may_refuse.is_set()
            try:
                answer = session.post(f"{node.url}/v2/{self.endpoint.id}/{how}", json={"input": {"n": number}}, timeout=60)
            except requests.RequestException as error:
                self._broken(node, turns, f"{node.name} lives and broke a connection: {error}")
                continue
            if answer.status_code == 200:
                self._told(answer.json(), number)
            elif answer.status_code == 503 and (may_refuse or self.may_refuse.is_set()):
                with self._lock:
                    self.unavailable += 1
            else:
                self._broken(node, turns, f"{node.name} answered {how} with {answer.status_code}: {answer.text[:300]}")

    def _told(self, record: dict, number: int) -> None:
        with self._lock:
            self.answered += 1
            known = self.acknowledged.setdefault(record["id"], number)
            if known != number:
                self.violations.append(f"job {record['id']} is the one of input {known} and of {number}")
        self._see(record)

    def _see(self, record: dict) -> None:
        """A job that is over stays as it is."""
        if record["status"] not in TERMINAL:
            return
        end = f"{record['status']} {record.get('output')}"
        with self._lock:
            first = self._ends.setdefault(record["id"], end)
            if first != end:
                self.violations.append(f"job {record['id']} ended twice: {first}, and {end}")

    def _broken(self, node: Node, turns: int, text: str) -> None:
        """What a node does that ends, is ended or started meanwhile is no violation: its callers ask another node."""
        if node.turns == turns and not node.will_end:
            with self._lock:
                self.violations.append(text)

    def _work(self, place: int) -> None:
        session = _session()
        session.headers["Authorization"] = self._token
        worker = unique("worker")
        for node in itertools.cycle(self.nodes[place % len(self.nodes) :] + self.nodes[: place % len(self.nodes)]):
            if self._stop_workers.wait(PAUSE_S):
                return
            base = f"{node.url}/v2/{self.endpoint.id}"
            try:
                while not self._stop_workers.is_set():
                    taken = session.get(f"{base}/job-take/{worker}?job_in_progress=0", timeout=30)
                    if taken.status_code != 200:
                        break
                    job = taken.json()
                    body = {"output": {"n": job["input"]["n"], "by": unique("attempt")}}
                    self._report(session, worker, job["id"], body, node)
            except requests.RequestException:
                continue

    def _report(self, session, worker: str, job: str, body: dict, first: Node) -> None:
        """Reports as a worker does that does not give up: to each node in turn."""
        for node in [first, *self.nodes, *self.nodes]:
            try:
                url = f"{node.url}/v2/{self.endpoint.id}/job-done/{worker}/{job}?isStream=false"
                if session.post(url, json=body, timeout=40).status_code == 200:
                    return
            except requests.RequestException:
                continue

    def stop(self) -> None:
        """Ends all threads."""
        self._over.set()
        self._stop_workers.set()
        for thread in self._callers + self._workers:
            thread.join(70)

    def finish(self) -> None:
        """Ends the callers, then looks at every job that they were told of until all are over."""
        self._over.set()
        for thread in self._callers:
            thread.join(70)
        session = _session()
        deadline = time.monotonic() + 60
        node = next(node for node in self.nodes if node.is_running())
        open_jobs = dict(self.acknowledged)
        while open_jobs and time.monotonic() < deadline:
            for job, number in list(open_jobs.items()):
                answer = session.get(f"{node.url}/v2/{self.endpoint.id}/status/{job}", timeout=60)
                if answer.status_code == 404:
                    self.violations.append(f"job {job} of input {number} was acknowledged and is lost")
                    del open_jobs[job]
                    continue
                record = answer.json()
                if record.get("status") in TERMINAL:
                    self._see(record)
                    if record["status"] != "COMPLETED" or record["output"]["n"] != number:
                        self.violations.append(f"job {job} of input {number} ended as {record}")
                    del open_jobs[job]
            time.sleep(PAUSE_S)
        self._stop_workers.set()
        for thread in self._workers:
            thread.join(40)
        if open_jobs:
            self.violations.append(f"{len(open_jobs)} jobs are not over, as {next(iter(open_jobs))}")


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
    return session
