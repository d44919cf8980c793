"""Rate and concurrency limits."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.wait import until


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
        answers = list(threads.map(lambda _: endpoint.call(method, path), range(limit + 5)))
    assert all(f";q={limit};w=10" in answer.headers["RateLimit-Policy"] for answer in answers)
    # The first ones leave the window after ten seconds, and a slow machine may take longer than that for all of them.
    admitted = [answer.status_code == 429 for answer in answers].count(False)
    took_s = sum(answer.elapsed.total_seconds() for answer in answers)
    assert admitted == limit or (admitted > limit and took_s > 10), f"{admitted} within {took_s} s"


def test_retry_shares_the_row_of_cancel(fresh_server):
    config = QUICK + "[rate_limits.cancel]\nper_10_s = 5\n"
    endpoint = Api(fresh_server(config=config)).external()
    assert statuses(endpoint, "POST", "/cancel/nope", 5) == [404] * 5
    assert endpoint.call("POST", "/retry/nope").status_code == 429


def test_limits_are_per_endpoint(api, endpoint):
    assert 429 in statuses(endpoint, "POST", "/purge-queue", 3)
    assert statuses(api.external(), "POST", "/purge-queue", 2) == [200, 200]


def test_runsync_allows_400_concurrent_requests(endpoint):
    """The 401st waiting `/runsync` is refused; the waiting ones go on."""
    body = b'{"input":{}}'
    head = (
        f"POST /v2/{endpoint.id}/runsync?wait=30000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {endpoint.api.key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    held = []
    try:
        for _ in range(400):
            connection = socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=60)
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
