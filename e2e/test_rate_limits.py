"""Rate and concurrency limits."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.waiting import until


def statuses(endpoint, method: str, path: str, count: int, **more) -> list[int]:
    return [endpoint.call(method, path, **more).status_code for _ in range(count)]


def test_over_the_rate_is_429_with_headers(endpoint):
    answers = [endpoint.call("POST", "/purge-queue") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    refused = answers[-1]
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert "RateLimit" in refused.headers and "RateLimit-Policy" in refused.headers
    assert set(refused.json()) == {"error", "code"}
    until(lambda: endpoint.call("POST", "/purge-queue").status_code == 200, "the window moves on", 12, 0.5)


@pytest.mark.parametrize("method, path, limit", [("GET", "/requests", 10), ("POST", "/cancel/nope", 100)])
def test_rates_of_the_table(endpoint, method, path, limit):
    with ThreadPoolExecutor(2) as threads:
        seen = list(threads.map(lambda _: endpoint.call(method, path).status_code, range(limit + 5)))
    assert seen.count(429) == 5, seen


def test_retry_shares_the_row_of_cancel(endpoint):
    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(lambda _: endpoint.call("POST", "/cancel/nope").status_code, range(100)))
    assert 429 not in seen
    assert endpoint.call("POST", "/retry/nope").status_code == 429


def test_limits_are_per_endpoint(api, endpoint):
    assert 429 in statuses(endpoint, "POST", "/purge-queue", 3)
    assert statuses(api.external(), "POST", "/purge-queue", 2) == [200, 200]


def test_runsync_allows_400_at_once(endpoint):
    """The 401st waiting `/runsync` is refused; the waiting ones go on."""
    body = b'{"input":{}}'
    head = (
        f"POST /v2/{endpoint.id}/runsync?wait=30000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {endpoint.api.key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    held = []
    try:
        for _ in range(400):
            connection = socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=5)
            connection.sendall(head + body)
            held.append(connection)
        until(lambda: endpoint.health()["jobs"]["inQueue"] == 400, "400 wait")
        assert endpoint.call("POST", "/runsync?wait=1000", json={"input": {}}).status_code == 429
        assert endpoint.call("POST", "/run", json={"input": {}}).status_code == 200, "another operation, another limit"
    finally:
        for connection in held:
            connection.close()


def test_the_limit_grows_with_running_workers(endpoint):
    """Two for purge by the table; a hundred for each worker that runs a job."""
    worker = FakeWorker(endpoint)
    endpoint.run()
    worker.take()
    endpoint.wait_health("workers", "running", 1)
    seen = statuses(endpoint, "POST", "/purge-queue", 20)
    assert set(seen) == {200}


def test_off_switch(fresh_server):
    api = Api(fresh_server(flags=("--rate-limits", "off")))
    assert set(statuses(api.external(), "POST", "/purge-queue", 10)) == {200}
