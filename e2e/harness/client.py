"""The clients' side, without an SDK: the management API and one endpoint's job interface."""

import itertools
import os
import sys
from pathlib import Path

import requests

from .server import ADMIN_KEY, Server
from .wait import until

HANDLERS = Path(__file__).parent.parent / "handlers"
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT")
_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A name that no other test uses, in this process or another."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


class Api:
    """The management API with the first key."""

    def __init__(self, server: Server, key: str = ADMIN_KEY):
        self.server = server
        self.key = key
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = server.verify or True

    def call(self, method: str, path: str, **more) -> requests.Response:
        """One request to the server, with the key unless `headers` says otherwise."""
        headers = {"Authorization": f"Bearer {self.key}", **more.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        more.setdefault("timeout", 90)
        return self.session.request(method, self.server.url + path, headers=headers, **more)

    def ok(self, method: str, path: str, **more):
        """As `call`; the answer must be 200, and its JSON is returned."""
        answer = self.call(method, path, **more)
        assert answer.status_code == 200, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json()

    def template(self, handler: str = "echo.py", env: dict[str, str] | None = None, **fields) -> dict:
        """A template that runs one of `handlers/`."""
        body = {
            "name": unique("template"),
            "imageName": "e2e",
            "dockerStartCmd": [sys.executable, "-u", str(HANDLERS / handler)],
            "env": env or {},
            **fields,
        }
        return self.ok("POST", "/v1/templates", json=body)

    def endpoint(self, handler: str = "echo.py", env: dict[str, str] | None = None, **fields) -> "Endpoint":
        """An endpoint with real workers that run `handler`."""
        body = {"name": unique("endpoint"), "provider": "process", "idleTimeout": 60, **fields}
        body.setdefault("templateId", self.template(handler, env)["id"])
        return Endpoint(self, self.ok("POST", "/v1/endpoints", json=body))

    def external(self, **fields) -> "Endpoint":
        """An endpoint with external workers, which the tests simulate."""
        return self.endpoint(provider="external", **fields)


class Endpoint:
    """One endpoint's job interface."""

    def __init__(self, api: Api, record: dict):
        self.api = api
        self.record = record
        self.id = record["id"]
        self.mount = f"/v2/{self.id}"

    def call(self, method: str, path: str, **more) -> requests.Response:
        return self.api.call(method, f"{self.mount}{path}", **more)

    def ok(self, method: str, path: str, **more):
        return self.api.ok(method, f"{self.mount}{path}", **more)

    def run(self, input=None, **fields) -> str:
        """Hands in a job; answers its id."""
        answer = self.ok("POST", "/run", json={"input": {} if input is None else input, **fields})
        assert answer["status"] == "IN_QUEUE", answer
        return answer["id"]

    def runsync(self, input=None, wait_ms: int = 30000, **fields) -> dict:
        body = {"input": {} if input is None else input, **fields}
        return self.ok("POST", f"/runsync?wait={wait_ms}", json=body)

    def status(self, job: str) -> dict:
        return self.ok("GET", f"/status/{job}")

    def is_gone(self, job: str) -> bool:
        """Whether the server no longer knows the job."""
        return self.call("GET", f"/status/{job}").status_code == 404

    def cancel(self, job: str) -> dict:
        return self.ok("POST", f"/cancel/{job}")

    def health(self) -> dict:
        return self.ok("GET", "/health")

    def patch(self, **fields) -> dict:
        return self.api.ok("PATCH", f"/v1/endpoints/{self.id}", json=fields)

    def worker_token(self) -> dict:
        """`token` and `env` for an external worker."""
        return self.api.ok("POST", f"/v1/endpoints/{self.id}/worker-token")

    def workers(self):
        """The processes that work for this endpoint."""
        return self.api.server.workers(self.id)

    def wait_for(self, job: str, *states: str, timeout_s: float = 30) -> dict:
        """The job's record once it is in one of `states` (terminal ones by default)."""
        states = states or TERMINAL

        def there():
            record = self.status(job)
            assert record["status"] in states, record
            return record

        return until(there, f"job {job} is {' or '.join(states)}", timeout_s)

    def wait_health(self, kind: str, name: str, count: int, timeout_s: float = 20) -> dict:
        """The health record once `kind.name` is `count`."""

        def there():
            health = self.health()
            assert health[kind][name] == count, health
            return health

        return until(there, f"{kind}.{name} is {count}", timeout_s)
