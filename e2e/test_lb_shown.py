"""What people see of a load-balancing endpoint: why its requests wait, its numbers, and its events."""

import json
import threading

import pytest

from harness.client import Api
from harness.events import follow
from harness.server import ADMIN_KEY, QUICK, Server
from harness.wait import until
from test_cli import Cli
from test_explain import explain
from test_load_balancing import call, make


@pytest.fixture(scope="module")
def lb_api():
    server = Server(flags=("--rate-limits", "off"), config=QUICK).start()
    yield Api(server)
    server.close()


class Asker:
    """A request whose answer is waited for in a thread."""

    def __init__(self, endpoint, path: str):
        self._answers = []
        self._thread = threading.Thread(target=lambda: self._answers.append(call(endpoint, "GET", path)))
        self._thread.start()

    def answer(self):
        self._thread.join(240)
        (answer,) = self._answers
        return answer


def causes(endpoint) -> dict[str, dict]:
    told = explain(endpoint)
    return {cause["code"]: cause for cause in [told["cause"], *told["also"]]}


def wait_cause(endpoint, code: str, part: str) -> dict:
    return until(lambda: (cause := causes(endpoint).get(code)) and part in cause["text"] and cause, f"{code} with {part!r}", 40)


def test_requests_wait_for_a_start_for_room_and_for_health(lb_api, tmp_path):
    ping, release = tmp_path / "ping", tmp_path / "release"
    ping.write_text("initializing")
    env = {"PING_FILE": str(ping), "RELEASE_FILE": str(release)}
    endpoint = make(lb_api, "raw_web.py", env, slug="shown", workersMax=1, lb={"maxConcurrency": 1})
    events = follow(f"{lb_api.server.url}/v1/events?topics=workers,stats&endpoint={endpoint.id}", ADMIN_KEY)
    assert next(events).name == "hello"
    assert list(causes(endpoint)) == ["not_waiting"]

    held = Asker(endpoint, "/held")
    starting = wait_cause(endpoint, "worker_starting", "1 worker has been starting")
    starting = until(lambda: (cause := causes(endpoint)["worker_starting"])["details"]["lastCheck"] == "GET /ping: 204 No Content" and cause, "its check")
    told = explain(endpoint)
    assert (told["queued"], told["position"], told["estimate"]) == (1, None, None) and told["waitingMs"] > 0
    cli = Cli(tmp_path, lb_api.server.url)
    assert starting["title"] in cli.ok("explain", "shown").out

    ping.write_text("healthy")
    endpoint.wait_health("jobs", "inProgress", 1)
    second = Asker(endpoint, "/fine")
    wait_cause(endpoint, "all_busy", "A worker gets 1 request (`lb.maxConcurrency`); 1 request waits.")
    release.touch()
    assert (held.answer().content, second.answer().content) == (b"held", b"hello")

    lb = until(lambda: (lb := endpoint.health()["lb"])["durationMs"]["count"] == 2 and lb, "both requests have ended")
    assert (lb["requests"], lb["retries"]) == ({"1xx": 0, "2xx": 2, "3xx": 0, "4xx": 0, "5xx": 0, "refused": 0}, 0)
    assert lb["queueWaitMs"]["count"] == 2 and lb["firstByteMs"]["count"] == 2
    assert lb["workers"] == {"starting": 0, "initializing": 0, "healthy": 1, "unhealthy": 0, "draining": 0}
    shown = cli.ok("endpoint", "get", "shown").out
    for name, part in [
        ("requestsPerSecond", "."), ("answers", "2xx 2"), ("outstanding", "0"), ("waiting", "0"), ("queueWait", "p50 ≤ "),
        ("firstByte", "of 2"), ("workerHealth", "healthy 1"),
    ]:
        (line,) = [line for line in shown.splitlines() if line.startswith(f"{name} ")]
        assert part in line, shown
    traffic = cli.ok("endpoint", "get", "shown", "-o", "json").json["traffic"]
    assert (traffic["requests"]["2xx"], traffic["outstanding"], traffic["workers"]["healthy"]) == (2, 0, 1), traffic
    until(lambda: endpoint.health()["lb"]["requestsPerSecond"] > 0, "a whole second has requests")
    seen, numbers = set(), []
    for event in events:
        if event.name == "worker":
            seen.add(event.json.get("health"))
        elif event.name == "stats" and "lb" in event.json:
            numbers.append(event.json["lb"]["requests"]["2xx"])
        if {"initializing", "healthy"} <= seen and numbers and numbers[-1] == 2:
            break

    # A worker that accepts no more connections is unhealthy after three requests, or one that is sent three times.
    assert call(endpoint, "GET", "/deaf").status_code == 200
    until(lambda: call(endpoint, "GET", "/fine").status_code == 502, "no connection is left")
    wait_cause(endpoint, "workers_unhealthy", "1 worker runs and is not healthy: the last check said `")
    assert "unhealthy" in next(event.json.get("health", "") for event in events if event.name == "worker" and event.json.get("health") == "unhealthy")
    (problem,) = until(lambda: [one for one in lb_api.ok("GET", "/v1/attention") if one["endpoint"] == endpoint.id], "it needs attention")
    assert problem["severity"] == "bad", problem
    endpoint.patch(workersMax=0)
    wait_cause(endpoint, "paused", "`workersMax` is 0.")
    assert endpoint.call("GET", "/explain/0190163d-8694-739b-aea5-966c26f8ad90").status_code == 404


def test_a_wrong_path_of_the_health_check_needs_attention_though_no_request_waits(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=1, lb={"healthPath": "/lost"})
    (problem,) = until(lambda: [one for one in lb_api.ok("GET", "/v1/attention") if one["endpoint"] == endpoint.id], "it needs attention", 40)
    assert (problem["code"], problem["severity"], problem["jobs"]) == ("workers_unhealthy", "bad", 0), problem
    assert "the last check said `GET /lost: 404 Not Found`" in problem["text"], problem
    endpoint.patch(lb={"healthPath": "/ping"})
    until(lambda: not [one for one in lb_api.ok("GET", "/v1/attention") if one["endpoint"] == endpoint.id], "it is healthy", 40)


def test_top_counts_forwarded_requests(lb_api, tmp_path):
    endpoint = make(lb_api, "raw_web.py", slug="topped", workersMin=1)
    call(endpoint, "GET", "/fine")
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            call(endpoint, "GET", "/fine")

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        top = Cli(tmp_path, lb_api.server.url).ok("top", "--once", "-o", "json").out
    finally:
        stop.set()
        asker.join()
    (row,) = [row for row in json.loads(top) if row["endpoint"] == "topped"]
    assert row["donePerSecond"] > 0 and row["failedPerSecond"] == 0, row


def test_a_request_that_waits_too_long_adds_a_worker(lb_api, tmp_path):
    release = tmp_path / "release"
    endpoint = lb_api.endpoint(
        "raw_web.py", {"RELEASE_FILE": str(release)}, type="LB", scalerType="QUEUE_DELAY", scalerValue=1,
        workersMin=1, workersMax=2, lb={"maxConcurrency": 1},
    )
    held = Asker(endpoint, "/held")
    endpoint.wait_health("jobs", "inProgress", 1)
    second = call(endpoint, "GET", "/fine")
    release.touch()
    assert second.status_code == 200 and held.answer().headers["X-Pid"] != second.headers["X-Pid"]


def test_the_history_has_forwarded_requests(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=1)
    for path, status in (("/fine", 200), ("/fine", 200), ("/lost", 404)):
        assert call(endpoint, "GET", path).status_code == status
    names = "answered2xx,answered4xx,answered5xx,forwardsRefused,sentAgain,firstByteP50Ms,workersIdle"

    def recorded() -> dict | None:
        total = endpoint.api.ok("GET", f"/v1/endpoints/{endpoint.id}/history?last=600000&series={names}")["total"]
        return total if (total["answered2xx"], total["answered4xx"]) == (2, 1) else None

    total = until(recorded, "the requests are in the history")
    assert (total["answered5xx"], total["forwardsRefused"], total["sentAgain"]) == (0, 0, 0), total
    assert total["firstByteP50Ms"] is not None and total["workersIdle"] == 1, total
