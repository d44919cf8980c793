"""Requests that no honest client sends, byte by byte: each is refused or disconnected, none costs more than its share of
memory, and the server answers the next one."""

import gzip
import json
import sys
from http.client import HTTPResponse

import pytest

from harness.client import ADMIN_KEY, Api
from harness.fake_worker import FakeWorker
from harness.hostile_clients import GoodClient, ProcessStats, Wire, head
from harness.wait import until

BAD = {400}
TOO_LARGE = {431, None}
"""None: the server disconnected, perhaps before all of it was sent, so that its answer was lost."""

MALFORMED = {
    # name: bytes, and the statuses that are right
    "nothing but line ends": (b"\r\n\r\n\r\n\r\n", {None}),
    "no HTTP at all": (b"hello, are you there?\r\n\r\n", BAD),
    "TLS": (bytes.fromhex("16030100f8010000f40303") + b"\x00" * 240, BAD),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", {400, None}),
    "HTTP/9.9": (b"GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n", {400, None}),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", BAD),
    "a NUL in the path": (b"GET /he\0althz HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
    "a space in the path": (b"GET /he althz HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
    "a NUL in a header": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", BAD),
    "a space before the colon": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", BAD),
    "a folded header": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", BAD),
    "a header without a colon": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", BAD),
    "a method of symbols": (b"<>() /healthz HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
    "1 MB of request line": (b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {414, 431, None}),
    "1 MB of one header": (b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", TOO_LARGE),
    "1 MB of cookies": (
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nCookie: " + b"a=b; " * 200_000 + b"\r\n\r\n",
        TOO_LARGE,
    ),
    "5000 headers": (
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(5_000)) + b"\r\n",
        TOO_LARGE,
    ),
}


def tell(what: str) -> None:
    """Prints figures, visible with `-s`."""
    print(what, file=sys.stderr)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_http_is_refused(server, api, name):
    data, right = MALFORMED[name]
    with ProcessStats(server.process.pid) as stats:
        for _ in range(20):
            with Wire(server.port) as wire:
                wire.send(data)
                wire.half_close()
                status = wire.first_status()
                assert status in right, status
        # Twenty one after the other: no more than one buffer of a head, and some slack for other tests' work.
        assert stats.grown_mb() < 40
    assert api.call("GET", "/healthz").status_code == 200


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def framings(path: str) -> dict[str, tuple[bytes, set[int | None]]]:
    """Bodies whose length is told in two ways or in a wrong one. A server that reads such a request differently than
    the proxy before it hands the rest to another server."""
    start = f"POST {path}"
    return {
        "two lengths": (head(start, "Content-Length: 12", "Content-Length: 5") + b'{"input":{}}', BAD),
        "a list of lengths": (head(start, "Content-Length: 12, 12") + b'{"input":{}}', {400, 200}),
        "a negative length": (head(start, "Content-Length: -1") + SMUGGLED, BAD),
        "a signed length": (head(start, "Content-Length: +12") + b'{"input":{}}', BAD),
        "a length in hex": (head(start, "Content-Length: 0xc") + b'{"input":{}}', BAD),
        "a length over 64 bits": (head(start, "Content-Length: 99999999999999999999") + SMUGGLED, BAD),
        "length and chunks": (
            head(start, "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + SMUGGLED,
            BAD,
        ),
        "chunks and length": (
            head(start, "Transfer-Encoding: chunked", "Content-Length: 5") + b"0\r\n\r\n" + SMUGGLED,
            BAD,
        ),
        "chunked, but not last": (head(start, "Transfer-Encoding: chunked, identity") + b"0\r\n\r\n" + SMUGGLED, BAD),
        "packed below the chunks": (
            head(start, "Transfer-Encoding: gzip, chunked") + b"c\r\n{\"input\":{}}\r\n0\r\n\r\n" + SMUGGLED,
            BAD,
        ),
        "chunked twice": (
            head(start, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"c\r\n{\"input\":{}}\r\n0\r\n\r\n",
            BAD,
        ),
        "an unknown encoding": (head(start, "Transfer-Encoding: xchunked") + b"0\r\n\r\n" + SMUGGLED, BAD),
        "chunks in HTTP/1.0": (
            head(start, "Transfer-Encoding: chunked").replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n" + SMUGGLED,
            BAD,
        ),
        "a chunk's size that is no number": (head(start, "Transfer-Encoding: chunked") + b"zz\r\n" + SMUGGLED, BAD),
        "a negative chunk": (head(start, "Transfer-Encoding: chunked") + b"-1\r\n" + SMUGGLED, BAD),
        "a chunk over 64 bits": (head(start, "Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n" + SMUGGLED, BAD),
        "a chunk longer than its size": (
            head(start, "Transfer-Encoding: chunked") + b'2\r\n{"input":{}}\r\n0\r\n\r\n',
            BAD,
        ),
        "1 MB of a chunk's extension": (
            head(start, "Transfer-Encoding: chunked") + b"1;" + b"x" * 1_000_000 + b"\r\n{\r\n0\r\n\r\n",
            {400, None},
        ),
        "1 MB of trailers": (
            head(start, "Transfer-Encoding: chunked") + b'c\r\n{"input":{}}\r\n0\r\nX: ' + b"x" * 1_000_000 + b"\r\n\r\n",
            {400, None},
        ),
    }


@pytest.mark.parametrize("name", framings("/"))
def test_a_body_of_doubtful_length_never_becomes_two_requests(server, endpoint, name):
    data, right = framings(f"{endpoint.mount}/run")[name]
    with Wire(server.port) as wire:
        wire.send(data)
        wire.half_close()
        answers = wire.answer()
    status = int(answers.split(b" ", 2)[1]) if answers else None
    assert status in right, answers[:500]
    assert answers.count(b"HTTP/1.1 ") <= 1, "what follows was taken for a request"
    if status != 200:
        assert endpoint.health()["jobs"]["inQueue"] == 0


def test_ten_thousand_requests_in_one_write(besieged):
    """They are answered one after the other, in order, and held back while the client does not read."""
    endpoint = Api(besieged).external()
    count = 10_000
    with ProcessStats(besieged.process.pid) as stats, GoodClient(endpoint) as good:
        with Wire(besieged.port) as wire:
            wire.flood_quietly(head("GET /healthz") * count + head("GET /healthz", "Connection: close"))
            answers = wire.answer()
        good.stop()
        assert answers.count(b"HTTP/1.1 200 OK") == count + 1
        tell(f"{count} pipelined requests: {stats.grown_mb():.0f} MB; {good.summary()}")
        assert stats.grown_mb() < 20
        good.was_served()


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND", "get", "X" * 5_000])
def test_strange_methods(server, api, method):
    for path in ("/healthz", "/v1/endpoints", "/v2/x/run"):
        with Wire(server.port) as wire:
            wire.send(head(f"{method} {path}", "Connection: close"))
            assert wire.first_status() in (400, 401, 404, 405)
    assert "X" * 100 not in api.call("GET", "/metrics").text, "a stranger's method is no label"


def deep(levels: int, opening: str = "[", closing: str = "]") -> str:
    return opening * levels + closing * levels


INPUTS = {
    "as deep as may be": '{"a":' + deep(510) + "}",
    "a number of a million digits": '{"a":' + "9" * 1_000_000 + "}",
    "an enormous exponent": '{"a":1e999999999,"b":-1e-999999999}',
    "a hundred thousand members": "{" + ",".join(f'"k{n}":1' for n in range(100_000)) + "}",
    "one name a hundred thousand times": "{" + ",".join(['"k":1'] * 100_000) + "}",
    "half a surrogate": '{"a":"\\ud800"}',
    "an escaped NUL": '{"a":"\\u0000"}',
    "names like the server's own": '{"id":1,"status":"COMPLETED","input":{"input":2},"output":3,"error":4}',
}


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_that_is_made_to_hurt(endpoint, worker, name):
    """It goes to its worker and back byte for byte."""
    input = INPUTS[name].encode()
    answer = endpoint.call("POST", "/run", data=b'{"input":' + input + b"}")
    assert answer.status_code == 200, answer.text[:300]
    job = answer.json()["id"]
    assert b'"input":' + input in worker.take_raw().content
    worker.done(job, b'{"output":' + input + b"}")
    status = endpoint.call("GET", f"/status/{job}").content
    assert b'"output":' + input in status and b'"status":"COMPLETED"' in status


@pytest.mark.parametrize("body", ['{"input":1,"input":{"n":2}}', '{"\\u0069nput":{"n":2}}', '{"input":{"n":1},"input":{"n":2}}'])
def test_an_input_that_comes_twice_or_in_disguise(endpoint, worker, body):
    """The server and the worker understand the same by it."""
    assert endpoint.call("POST", "/run", data=body).status_code == 200
    assert worker.take()["input"] == {"n": 2}


TOO_DEEP = {
    # name: a body, and the byte of the bracket that goes too deep
    "an input": ('{"input":{"a":' + deep(511) + "}}", 14 + 510),
    "an input in a thousand flat ones": ('{"x":[' + ",".join(["[]"] * 1_000) + '],"input":{"a":' + deep(2_000) + "}}", 3005 + 15 + 510),
    "a million arrays": ('{"input":{"a":' + deep(1_000_000) + "}}", 14 + 510),
    "a million objects": ('{"input":' + '{"a":' * 1_000_000 + "1" + "}" * 1_000_001, 9 + 511 * 5),
    "around the input": ('{"a":' * 100_000 + '{"input":{}}' + "}" * 100_000, 512 * 5),
    "a policy": ('{"input":{},"policy":{"ttl":' + deep(1_000_000) + "}}", 28 + 510),
    "a webhook": ('{"input":{},"webhook":' + deep(1_000_000) + "}", 22 + 511),
    "nothing closed": ('{"input":{"a":' + "[" * 1_000_000, 14 + 510),
}


@pytest.mark.parametrize("path", ["/run", "/runsync", "/openai/v1/completions"])
@pytest.mark.parametrize("name", TOO_DEEP)
def test_json_that_is_nested_too_deep_is_refused_with_the_place(endpoint, name, path):
    """A worker in Python could not read it, nor anything that came with it."""
    body, at = TOO_DEEP[name]
    answer = endpoint.call("POST", path, data=body)
    assert answer.status_code == 400, answer.text[:300]
    said = answer.json()["error"]
    if path.startswith("/openai"):
        said, code = said["message"], said["code"]
    else:
        code = answer.json()["code"]
    assert code == "nested_too_deep" and f"512 levels: see byte {at}" in said, said
    assert endpoint.health()["jobs"]["inQueue"] == 0


NO_JOBS = {
    "a webhook of a megabyte": '{"input":{},"webhook":"http://' + "a" * 1_000_000 + '"}',
    "an enormous ttl": '{"input":{},"policy":{"ttl":1e999999999}}',
    "a ttl of a million digits": '{"input":{},"policy":{"ttl":' + "9" * 1_000_000 + "}}",
    "input twice, last wrong": '{"input":{},"input":1}',
    "a hundred thousand members": '{"input":{},' + ",".join(f'"k{n}":1' for n in range(100_000)) + "}",
    "a raw NUL": '{"input":{"a":"\0"}}',
    "invalid UTF-8": b'{"input":{"a":"\xff\xfe"}}',
    "overlong UTF-8": b'{"input":{"a":"\xc0\x80"}}',
    "a surrogate in UTF-8": b'{"input":{"a":"\xed\xa0\x80"}}',
    "UTF-16": '{"input":{}}'.encode("utf-16"),
    "nothing closed": '{"input":{"a":' + "[" * 400,
}


@pytest.mark.parametrize("name", NO_JOBS)
def test_json_that_is_made_to_hurt(endpoint, name):
    body = NO_JOBS[name]
    answer = endpoint.call("POST", "/run", data=body.encode() if isinstance(body, str) else body)
    assert answer.status_code == 400, answer.text[:300]
    assert set(answer.json()) == {"error", "code"} and len(answer.text) < 500
    assert endpoint.health()["jobs"]["inQueue"] == 0


WORKER_BODIES = {
    "a million arrays deep": '{"output":' + deep(1_000_000) + "}",
    "deep around the output": '{"a":' * 100_000 + '{"output":1}' + "}" * 100_000,
    "a deep error": '{"error":' + deep(1_000_000) + "}",
    "a deep status": '{"status":' + deep(1_000_000) + "}",
    "a hundred thousand members": "{" + ",".join(f'"k{n}":1' for n in range(100_000)) + ',"output":1}',
    "NaN a hundred thousand times": '{"output":[' + ",".join(["NaN"] * 100_000) + "]}",
    "nothing closed": '{"output":' + "[" * 1_000_000,
    "invalid UTF-8": b'{"output":"\xff\xfe"}',
    "a NUL": '{"output":"\0"}',
    "nothing": "",
    "no object": deep(1_000_000),
}


@pytest.mark.parametrize("kind", ["job-done", "job-stream"])
@pytest.mark.parametrize("name", WORKER_BODIES)
def test_a_workers_report_that_is_made_to_hurt(endpoint, worker, name, kind):
    """A worker gets 200 for every report, and its job ends or goes on, as the report says."""
    job = endpoint.run()
    worker.take()
    assert worker.post(kind, job, WORKER_BODIES[name]).status_code == 200
    status = endpoint.call("GET", f"/status/{job}")
    assert status.status_code == 200
    assert any(state in status.content[:200] for state in (b"COMPLETED", b"FAILED", b"IN_PROGRESS"))
    if kind == "job-done":
        assert b"IN_PROGRESS" not in status.content[:200]


def test_an_output_that_is_nested_too_deep_fails_its_job(endpoint, worker):
    """A client that lists jobs would read none of them."""
    for kind in ("job-done", "job-stream"):
        job = endpoint.run()
        worker.take()
        assert worker.post(kind, job, '{"output":' + deep(512) + "}").status_code == 200
        record = endpoint.status(job)
        assert record["status"] == "FAILED" and "512 levels at byte 521" in record["error"], record
    assert len(endpoint.ok("GET", "/requests")["requests"]) == 2


PATHS = [
    "/v2/{endpoint}/status/" + "a" * 30_000,
    "/v2/" + "a" * 30_000 + "/status/x",
    "/v2/{endpoint}/status/%00",
    "/v2/{endpoint}/status/%ff%fe",
    "/v2/{endpoint}/status/%",
    "/v2/{endpoint}/status/%zz",
    "/v2/{endpoint}/status/..%2f..%2f..%2fetc%2fpasswd",
    "/v2/{endpoint}/../../v1/endpoints",
    "/v2/{endpoint}/%2e%2e/%2e%2e/etc/passwd",
    "/v2/{endpoint}%2fstatus%2fx",
    "/v2/{endpoint}/status/x;y=z",
    "/v2/{endpoint}/status/" + "/".join(["x"] * 10_000),
    "/" + "/" * 30_000,
    "/v2/{endpoint}/status/x?" + "&".join(f"a{n}=b" for n in range(5_000)),
    "/v2/{endpoint}/requests?cursor=" + "9" * 30_000,
    "/v2/{endpoint}/requests?limit=99999999999999999999999",
    "/v2/{endpoint}/requests?status=%00",
    "/v2/{endpoint}/stream/x?offset=-1&wait=1e9",
    "/v1/endpoints/..%2f..%2fkeys",
    "/v1/templates/" + "a" * 30_000,
    "/console/../../../etc/passwd",
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_paths_that_are_made_to_confuse(server, endpoint, path):
    """Nothing but a refusal, in the usual shape; the same 401 without a key on every path."""
    path = path.format(endpoint=endpoint.id)
    for key, right in ((ADMIN_KEY, (400, 404)), (None, (401, 404))):
        with Wire(server.port) as wire:
            wire.send(head(f"GET {path}", "Connection: close", key=key))
            answer = wire.answer()
        assert int(answer.split(b" ", 2)[1]) in right, answer[:300]
        body = json.loads(answer.split(b"\r\n\r\n", 1)[1])
        assert set(body) == {"error", "code"} and len(answer) < 1_000
        assert key or not path.startswith("/v") or answer.startswith(b"HTTP/1.1 401")


def test_guessed_keys_leave_nothing_behind(besieged):
    """Strangers with ever new keys, ids and slugs: nothing is remembered of any of them."""
    endpoint = Api(besieged).external()
    count = 20_000
    with ProcessStats(besieged.process.pid) as stats, GoodClient(endpoint) as good:
        with Wire(besieged.port) as wire:
            statuses = set()
            for begin in range(0, count, 500):
                numbers = range(begin, begin + 500)
                paths = (f"GET /v2/{endpoint.id if n % 2 else f'unknown-{n}'}/status/job-{n}" for n in numbers)
                wire.send(b"".join(head(path, key=f"ls_{n:016x}_{n:064x}") for n, path in zip(numbers, paths)))
                statuses |= wire.statuses(500)
        good.stop()
        assert statuses == {401}
        tell(f"{count} unknown keys: {stats.grown_mb():.1f} MB; {good.summary()}")
        assert stats.grown_mb() < 10, "nothing of a stranger is kept"
        good.was_served()


def test_many_idempotency_keys(besieged):
    """They cost what a queued job costs and its key, and go with their jobs."""
    endpoint = Api(besieged).external(resultRetentionMs=1000)
    count = 3_000
    body = b'{"input":{}}'
    with ProcessStats(besieged.process.pid) as stats:
        with Wire(besieged.port) as wire:
            for begin in range(0, count, 100):
                line = f"POST {endpoint.mount}/run"
                headers = (("Content-Length: 12", f"Idempotency-Key: {n:0255d}") for n in range(begin, begin + 100))
                wire.send(b"".join(head(line, *more) + body for more in headers))
                assert wire.statuses(100) == {200}
        assert endpoint.health()["jobs"]["inQueue"] == count
        tell(f"{count} idempotency keys: {stats.grown_mb():.1f} MB, {stats.grown_mb() * 1e3 / count:.2f} KB each")
        # A job's 400 bytes, its key of 255 twice (with the job and in the index), and what the allocator rounds up;
        # and the memory for recent payloads, which is bounded by itself.
        assert stats.grown_mb() < 20 + count * 0.003
    too_long = endpoint.call("POST", "/run", data=body, headers={"Idempotency-Key": "k" * 256})
    assert too_long.status_code == 400


ROUTES = ["POST {mount}/run", "GET {mount}/health", "POST {mount}/run/", "GET /v1/endpoints", "GET /healthz", "POST /nowhere"]
"""Past the router and through it, with a key and without, and where nothing is."""


@pytest.mark.parametrize("line", ROUTES)
@pytest.mark.parametrize("header", ["Host: longshore", "Host: elsewhere", f"Authorization: Bearer {ADMIN_KEY}", "authorization: x"])
def test_a_header_that_decides_comes_once(server, endpoint, line, header):
    """A proxy may have looked at the other one."""
    with Wire(server.port) as wire:
        wire.send(head(line.format(mount=endpoint.mount), header, "Content-Length: 12") + b'{"input":{}}')
        answer = wire.answer()
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:300]
    body = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert set(body) == {"error", "code"} and body["code"] == "doubled_header"
    assert header.split(":")[0].lower() in body["error"].lower()
    assert endpoint.health()["jobs"]["inQueue"] == 0


STILL_THERE = b"HTTP/1.1 100 Continue\r\n\r\n"


def test_a_client_that_half_closes_gets_its_answer(server, endpoint, worker):
    """Its request is whole; that it says nothing more does not mean that it has gone."""
    body = b'{"input":{"n":1}}'
    length = f"Content-Length: {len(body)}"
    with Wire(server.port) as wire:
        wire.send(head(f"POST {endpoint.mount}/runsync?wait=60000", length) + body)
        wire.half_close()
        job = worker.take()
        first = wire.socket.recv(len(STILL_THERE))
        assert first == STILL_THERE, "after a while it is asked, in a word that clients skip, whether it is still there"
        worker.done(job["id"], {"output": "done"})
        answer = wire.answer()
    while answer.startswith(STILL_THERE):
        answer = answer.removeprefix(STILL_THERE)
    assert answer.startswith(b"HTTP/1.1 200 ") and b'"output":"done"' in answer, answer[:500]
    for line in (f"POST {endpoint.mount}/run", f"POST {endpoint.mount}/retry/x", "POST /v1/endpoints", "GET /healthz"):
        with Wire(server.port) as wire:
            wire.send(head(line, length) + body)
            wire.half_close()
            answer = wire.answer().replace(STILL_THERE, b"")
        assert answer.count(b"HTTP/1.1 ") == 1 and answer.partition(b"\r\n\r\n")[2], (line, answer)
    with Wire(server.port) as wire:
        wire.send(head("GET /healthz") * 3)
        wire.half_close()
        assert wire.answer().count(b"HTTP/1.1 200 OK") == 3, "those that came before its end, too"
    with Wire(server.port) as wire:
        wire.send(head(f"POST {endpoint.mount}/run", "Content-Length: 100") + body)
        wire.half_close()
        assert wire.first_status() in (400, None), "half a request is none"


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
def test_a_client_of_python_half_closes_and_gets_its_answer(server, endpoint, version):
    """The client library skips the words before the answer, and an old one is sent none."""
    with Wire(server.port) as wire:
        wire.send(head(f"POST {endpoint.mount}/runsync?wait=4000", "Content-Length: 12").replace(b"HTTP/1.1", version.encode()) + b'{"input":{}}')
        wire.half_close()
        answer = HTTPResponse(wire.socket)
        answer.begin()
        assert answer.status == 200 and json.loads(answer.read())["status"] == "IN_QUEUE"


@pytest.mark.parametrize("end", ["half_close", "reset", "close"])
def test_a_client_that_goes_is_noticed_long_before_its_wait_is_over(server, endpoint, end):
    """Its connection ends; the client of a half-closed one goes a moment after it has closed its side."""
    with ProcessStats(server.process.pid) as stats:
        before = stats.descriptors()
        wires = [Wire(server.port) for _ in range(20)]
        for wire in wires:
            wire.send(head(f"POST {endpoint.mount}/runsync?wait=300000", "Content-Length: 12") + b'{"input":{}}')
        until(lambda: endpoint.health()["jobs"]["inQueue"] == 20, "all wait")
        # Connections of earlier tests may have ended meanwhile.
        assert stats.descriptors() > before + 10
        for wire in wires:
            getattr(wire, end)()
        if end == "half_close":
            for wire in wires:
                assert wire.socket.recv(len(STILL_THERE)) == STILL_THERE
                wire.close()
        until(lambda: stats.descriptors() < before + 10, "the connections end", 10)
    endpoint.ok("POST", "/purge-queue")


def test_a_reader_that_disconnected_consumes_no_chunks(server, endpoint, worker):
    job = endpoint.run()
    worker.take()
    with Wire(server.port) as wire:
        wire.send(head(f"GET {endpoint.mount}/stream/{job}?wait=60000"))
        wire.half_close()
        assert wire.answer() == b"", "it counts as gone"
    worker.chunk(job, "kept")
    assert endpoint.ok("GET", f"/stream/{job}?wait=0") == [{"output": "kept"}]
    with Wire(server.port) as wire:
        wire.send(head(f"GET {endpoint.mount}/stream/{job}?offset=0&wait=60000"))
        wire.half_close()
        assert b"kept" in wire.answer(), "nothing is taken out by this one"


def packed(text: bytes) -> bytes:
    """Without a time in it: it names tests, and every process that runs them must give them the same names."""
    return gzip.compress(text, mtime=0)


BOMB = packed(b" " * 300_000_000)
GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("body, encoding, status, code", [
    (packed(b'{"input":{"n":1}}'), "gzip", 200, None),
    (packed(b'{"input":{"n":1}}'), "GZIP", 200, None),
    (b'{"input":{"n":1}}', "identity", 200, None),
    (packed(b'{"input":{"t":"' + b"x" * 9_999_979 + b'"}}'), "gzip", 200, None),
    (packed(b'{"input":{"t":"' + b"x" * 9_999_985 + b'"}}'), "gzip", 413, "body_too_large"),
    (BOMB, "gzip", 413, "body_too_large"),
    (packed(b'{"input":{"n":1}}')[:-5], "gzip", 400, "bad_gzip"),
    (b'{"input":{"n":1}}', "gzip", 400, "bad_gzip"),
    (b'{"input":{"n":1}}', "br", 415, "unsupported_encoding"),
    (packed(packed(b'{"input":{"n":1}}')), "gzip, gzip", 415, "unsupported_encoding"),
], ids=lambda value: str(value)[:20])
def test_bodies_come_packed_with_gzip_or_not_at_all(server, endpoint, worker, body, encoding, status, code):
    headers = {"Content-Encoding": encoding}
    with ProcessStats(server.process.pid) as stats:
        answer = endpoint.call("POST", "/run", data=body, headers=headers)
        assert (answer.status_code, answer.json().get("code")) == (status, code), answer.text
        assert stats.grown_mb() < 60
    if status == 200:
        job = worker.take()
        assert job["input"] == {"n": 1} or len(job["input"]["t"]) == 9_999_979
    else:
        assert set(answer.json()) == {"error", "code"} and endpoint.health()["jobs"]["inQueue"] == 0
    if status == 415:
        assert answer.headers["Accept-Encoding"] == "gzip, identity"
    stranger = endpoint.call("POST", "/run", data=body, headers={**headers, "Authorization": "Bearer wrong"})
    assert stranger.status_code == 401, "without a key the answer reveals nothing"


def test_a_packed_body_is_understood_everywhere(api, endpoint, worker):
    """Also through the router, in the management API and from workers; and the same request, packed or not, is the same."""
    body = {"input": {"n": 1}}
    key = {"Idempotency-Key": "once"}
    first = endpoint.call("POST", "/run", data=packed(json.dumps(body).encode()), headers={**GZIP, **key})
    assert endpoint.call("POST", "/run", data=json.dumps(body), headers=key).json()["id"] == first.json()["id"]
    made = api.call("POST", "/v1/templates", data=packed(b'{"name":"packed","imageName":"x"}'), headers=GZIP)
    assert made.status_code in (200, 201) and made.json()["name"] == "packed", made.text
    api.call("DELETE", f"/v1/templates/{made.json()['id']}")
    assert api.call("POST", "/v1/templates", data=b"{}", headers={"Content-Encoding": "zstd"}).status_code == 415
    asked = endpoint.call("POST", "/openai/v1/completions", data=b"{}", headers={"Content-Encoding": "br"})
    assert asked.status_code == 415 and set(asked.json()) == {"error"}, asked.text
    job = worker.take()["id"]
    worker.session.headers.update(GZIP)
    worker.done(job, packed(b'{"output":{"n":1}}'))
    assert endpoint.status(job)["output"] == {"n": 1}


@pytest.mark.parametrize("body, headers, reason", [(BOMB, GZIP, "over"), (b"x", GZIP, "gzip"), (b"x", {"Content-Encoding": "br"}, "identity")])
def test_a_workers_report_that_cannot_be_unpacked_fails_its_job(endpoint, worker, body, headers, reason):
    job = endpoint.run()
    worker.take()
    worker.session.headers.update(headers)
    worker.done(job, body)
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and reason in record["error"], record
