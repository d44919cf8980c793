"""Callers and workers on several nodes: what callers were told, and what of it was broken."""

import collections
import itertools
import random
import threading
import time

import requests

from . import linearizability
from .client import TERMINAL, Endpoint, unique
from .linearizability import ABSENT, RUNNING, Operation, State
from .nodes import Node
from .server import ADMIN_KEY

PAUSE_S = 0.02
WATCHED = 40
"""How many of the last jobs the watchers ask about."""
CANCELS = 0.05
"""The share of a watcher's calls that cancel."""


class ClusterLoad:
    """On each node a caller of `runsync`, one of `run` and a watcher of jobs, who sometimes cancels one; and workers that ask one
    node after the other. A caller stays with its node, as behind a connection that was balanced once; a worker goes on with the
    next node when one does not answer. What all of them were told is a history that must be linearizable."""

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
        self.history: list[Operation] = []
        self._recent = collections.deque(maxlen=WATCHED)
        self._cancelled: set[str] = set()
        self._unanswered: dict[int, tuple[float, Node]] = {}
        """When and where a submit was called whose answer is unknown, by the number in its input."""
        self._taken: dict[str, int] = {}
        """The number in the input of each job that a worker got."""
        self._callers = [
            threading.Thread(target=self._call, args=(node, how)) for node in nodes for how in ("runsync?wait=20000", "run")
        ]
        self._callers += [threading.Thread(target=self._watch, args=(node,)) for node in nodes]
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
            may_refuse, called = self.may_refuse.is_set(), time.monotonic()
            try:
                answer = session.post(f"{node.url}/v2/{self.endpoint.id}/{how}", json={"input": {"n": number}}, timeout=60)
            except requests.RequestException as error:
                self._unanswered[number] = (called, node)
                self._broken(node, turns, f"{node.name} lives and broke a connection: {error}")
                continue
            if answer.status_code != 200:
                self._unanswered[number] = (called, node)
            if answer.status_code == 200:
                record = answer.json()
                self._note(record["id"], "submit", called, node)
                if how != "run":
                    self._note(record["id"], "status", called, node, state_of(record))
                self._told(record, number)
                # The answer of a run has no output, also if the job has ended: a node that sends it again finds the job.
                if how != "run":
                    self._see(record)
            elif answer.status_code == 503 and (may_refuse or self.may_refuse.is_set()):
                with self._lock:
                    self.unavailable += 1
            else:
                self._broken(node, turns, f"{node.name} answered {how} with {answer.status_code}: {answer.text[:300]}")

    def _told(self, record: dict, number: int) -> None:
        with self._lock:
            self.answered += 1
            self._recent.append(record["id"])
            known = self.acknowledged.setdefault(record["id"], number)
            if known != number:
                self.violations.append(f"job {record['id']} is the one of input {known} and of {number}")

    def _watch(self, node: Node) -> None:
        session, choices = _session(), random.Random(node.name)
        while not self._over.wait(PAUSE_S):
            with self._lock:
                jobs = list(self._recent)
            if not jobs or not node.is_running():
                continue
            job, cancels = choices.choice(jobs), choices.random() < CANCELS
            if cancels:
                with self._lock:
                    self._cancelled.add(job)
            method, kind = ("POST", "cancel") if cancels else ("GET", "status")
            turns, called, may_refuse = node.turns, time.monotonic(), self.may_refuse.is_set()
            try:
                answer = session.request(method, f"{node.url}/v2/{self.endpoint.id}/{kind}/{job}", timeout=60)
            except requests.RequestException as error:
                self._note(job, kind, called, node, is_unknown=True)
                self._broken(node, turns, f"{node.name} lives and broke a connection: {error}")
                continue
            if answer.status_code == 200:
                record = answer.json()
                # The answer of a cancel has no output.
                told = (record["status"], None) if cancels else state_of(record)
                self._note(job, kind, called, node, told)
            elif answer.status_code == 404:
                self._note(job, "status", called, node, ABSENT)
            else:
                self._note(job, kind, called, node, is_unknown=True)
                if answer.status_code != 503 or not (may_refuse or self.may_refuse.is_set()):
                    self._broken(node, turns, f"{node.name} answered {kind} with {answer.status_code}: {answer.text[:300]}")

    def _note(self, job: str, kind: str, called: float, node: Node, told: State | None = None, is_unknown: bool = False) -> None:
        answered = None if is_unknown else time.monotonic()
        # A read whose answer is unknown says nothing.
        if not (is_unknown and kind == "status"):
            with self._lock:
                self.history.append(Operation(job, kind, called, answered, told, node.name))

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
                    called = time.monotonic()
                    taken = session.get(f"{base}/job-take/{worker}?job_in_progress=0", timeout=30)
                    if taken.status_code != 200:
                        break
                    job = taken.json()
                    self._taken[job["id"]] = job["input"]["n"]
                    self._note(job["id"], "take", called, node, RUNNING)
                    body = {"output": {"n": job["input"]["n"], "by": unique("attempt")}}
                    self._report(session, worker, job["id"], body, node)
            except requests.RequestException:
                continue

    def _report(self, session, worker: str, job: str, body: dict, first: Node) -> None:
        """Reports as a worker does that does not give up: to each node in turn."""
        told = ("COMPLETED", body["output"]["by"])
        for node in [first, *self.nodes, *self.nodes]:
            called, is_accepted = time.monotonic(), False
            try:
                url = f"{node.url}/v2/{self.endpoint.id}/job-done/{worker}/{job}?isStream=false"
                is_accepted = session.post(url, json=body, timeout=40).status_code == 200
            except requests.RequestException:
                pass
            self._note(job, "done", called, node, told, is_unknown=not is_accepted)
            if is_accepted:
                return

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
                called = time.monotonic()
                answer = session.get(f"{node.url}/v2/{self.endpoint.id}/status/{job}", timeout=60)
                if answer.status_code == 404:
                    self._note(job, "status", called, node, ABSENT)
                    self.violations.append(f"job {job} of input {number} was acknowledged and is lost")
                    del open_jobs[job]
                    continue
                record = answer.json()
                if record.get("status") in TERMINAL:
                    self._see(record)
                    self._note(job, "status", called, node, state_of(record))
                    is_cancelled = record["status"] == "CANCELLED" and job in self._cancelled
                    is_completed = record["status"] == "COMPLETED" and record["output"]["n"] == number
                    if not is_cancelled and not is_completed:
                        self.violations.append(f"job {job} of input {number} ended as {record}")
                    del open_jobs[job]
            time.sleep(PAUSE_S)
        self._stop_workers.set()
        for thread in self._workers:
            thread.join(40)
        if open_jobs:
            self.violations.append(f"{len(open_jobs)} jobs are not over, as {next(iter(open_jobs))}")
        for job, number in self._taken.items():
            if number in self._unanswered:
                called, node = self._unanswered[number]
                self.history.append(Operation(job, "submit", called, None, node=node.name))
        self.violations += linearizability.violations(self.history)

    def counts(self) -> str:
        """What there was, for the output of a test."""
        unknown = sum(one.is_unknown for one in self.history)
        jobs = len({one.job for one in self.history})
        return (
            f"{self.answered} submits answered, {self.unavailable} refused while that was allowed; {len(self.history)} operations on "
            f"{jobs} jobs, {unknown} of them with an unknown outcome"
        )


def state_of(record: dict) -> State:
    """What a record says of its job."""
    output = record.get("output")
    return record["status"], output["by"] if record["status"] == "COMPLETED" else None


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
    return session
