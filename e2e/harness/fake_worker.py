"""A worker that does exactly what a test says, speaking the protocol as the SDK does on the wire."""

import json
import time
from concurrent.futures import Future, ThreadPoolExecutor

import requests

from .client import Endpoint, unique

USER_AGENT = "RunPod-Python-SDK/1.12.0 (Linux; x86_64) Language/Python 3.11.7"
_threads = ThreadPoolExecutor(max_workers=32, thread_name_prefix="fake-worker")


class FakeWorker:
    """One worker of an endpoint. Its token goes out raw, as the SDK sends it."""

    def __init__(self, endpoint: Endpoint, name: str | None = None, token: str | None = None):
        self.endpoint = endpoint
        self.id = name or unique("worker")
        self.token = endpoint.worker_token()["token"] if token is None else token
        self.base = f"{endpoint.api.server.url}/v2/{endpoint.id}"
        self.session = requests.Session()
        self.session.verify = endpoint.api.server.verify or True
        self.session.trust_env = False
        self.session.headers.update({"Authorization": self.token, "User-Agent": USER_AGENT})

    def get(self, path: str, timeout_s: float = 90, **more) -> requests.Response:
        return self.session.get(f"{self.base}{path}", timeout=timeout_s, **more)

    def take_raw(self, slots: int = 1, busy: bool = False, timeout_s: float = 90) -> requests.Response:
        """One poll, with any response."""
        rest = f"/{self.id}?gpu=none&job_in_progress={int(busy)}"
        if slots > 1:
            return self.get(f"/job-take-batch{rest}&batch_size={slots}", timeout_s, headers={"Content-Type": "application/json"})
        return self.get(f"/job-take{rest}", timeout_s, headers={"Content-Type": "application/json"})

    def take(self, busy: bool = False, timeout_s: float = 90) -> dict:
        """One job; fails if none comes in time. A poll may end before a lost worker is noticed: a server that stood still itself gives
        its workers more time."""
        deadline = time.monotonic() + timeout_s
        answer = self.take_raw(1, busy, timeout_s)
        while answer.status_code == 204 and time.monotonic() < deadline:
            answer = self.take_raw(1, busy, timeout_s)
        assert answer.status_code == 200, f"job-take: {answer.status_code} {answer.text[:500]}"
        assert answer.headers["Content-Type"].split(";")[0] == "application/json"
        return answer.json()

    def take_batch(self, slots: int, busy: bool = False) -> list[dict]:
        """Up to `slots` jobs, as a list for every shape of the response."""
        answer = self.take_raw(slots, busy)
        if answer.status_code == 204:
            return []
        assert answer.status_code == 200, f"job-take-batch: {answer.status_code} {answer.text[:500]}"
        jobs = answer.json()
        return jobs if isinstance(jobs, list) else [jobs]

    def park(self, slots: int = 1, busy: bool = False) -> Future:
        """A poll that waits in the background; its result is the raw answer."""
        return _threads.submit(self.take_raw, slots, busy)

    def post(self, kind: str, job: str, body, params: str = "gpu=none&isStream=false") -> requests.Response:
        """Posts to job-done or job-stream: a JSON text under the SDK's misleading headers."""
        text = body if isinstance(body, (bytes, str)) else json.dumps(body)
        raw = text.encode() if isinstance(text, str) else text
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "charset": "utf-8",
            "X-Request-ID": job,
        }
        return self.session.post(f"{self.base}/{kind}/{self.id}/{job}?{params}", data=raw, headers=headers, timeout=90)

    def post_in_background(self, kind: str, job: str, body) -> Future:
        """A post that waits in the background; its result is the raw answer."""
        return _threads.submit(self.post, kind, job, body)

    def done(self, job: str, body, params: str = "gpu=none&isStream=false") -> None:
        """Reports a result; the server must take it."""
        answer = self.post("job-done", job, body, params)
        assert answer.status_code == 200, f"job-done: {answer.status_code} {answer.text[:500]}"

    def progress(self, job: str, value) -> None:
        self.done(job, {"status": "IN_PROGRESS", "output": value})

    def chunk(self, job: str, value) -> None:
        """Yields one chunk."""
        answer = self.post("job-stream", job, {"output": value})
        assert answer.status_code == 200, f"job-stream: {answer.status_code} {answer.text[:500]}"

    def ping(self, *jobs: str, **query: str) -> requests.Response:
        """One heartbeat that names the jobs it holds."""
        params = {"runpod_version": "1.12.0", **query}
        if jobs:
            params["job_id"] = ",".join(jobs)
        answer = self.get(f"/ping/{self.id}?gpu=none", params=params)
        assert answer.status_code == 200, f"ping: {answer.status_code} {answer.text[:500]}"
        return answer

    def stops(self, timeout_s: float = 90) -> list[str]:
        """One poll of the stop channel."""
        answer = self.get(f"/job-stop/{self.id}?gpu=none&job_in_progress=0", timeout_s)
        if answer.status_code == 204:
            return []
        assert answer.status_code == 200, f"job-stop: {answer.status_code} {answer.text[:500]}"
        return answer.json()["jobsToStop"]

    def park_stops(self) -> Future:
        """A poll of the stop channel in the background."""
        return _threads.submit(self.stops)
