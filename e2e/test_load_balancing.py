"""Load-balancing endpoints with real HTTP servers as workers: FastAPI on uvicorn, and a server that misbehaves."""

import hashlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
import requests
import websockets

from harness import event_loop
from harness.client import Api, Endpoint
from harness.server import ADMIN_KEY
from harness.wait import until

KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}


@pytest.fixture(scope="module")
def lb_server():
    """A server without rate limits, and with a domain for hosts."""
    from harness.server import QUICK, Server

    server = Server(flags=("--rate-limits", "off"), config='lb_domain = "apps.test"\n' + QUICK).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def lb_api(lb_server):
    return Api(lb_server)


def make(api, handler="web_app.py", env=None, **fields) -> Endpoint:
    """A load-balancing endpoint with processes as workers."""
    lb = fields.pop("lb", {})
    return api.endpoint(handler, env, type="LB", lb=lb, scalerType="REQUEST_COUNT", **fields)


@pytest.fixture(scope="module")
def app(lb_api):
    """An endpoint whose worker is a FastAPI app."""
    return make(lb_api, workersMin=1, scalerValue=1000, models=["tiny"])


@pytest.fixture(scope="module")
def raw(lb_api):
    """An endpoint whose worker writes its answers by hand, with the usual limits."""
    return make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000)


@pytest.fixture(scope="module")
def impatient(lb_api):
    """The same with short pauses: for responses that pause for ever."""
    return make(lb_api, "raw_web.py", workersMin=1, scalerValue=1000, lb={"idleTimeoutMs": 2000})


def call(endpoint, method, path, **more):
    return endpoint.api.call(method, f"/lb/{endpoint.id}{path}", **more)


def header(answer, name):
    """The values of a header that an echoing worker got."""
    return [value for its, value in answer.json()["headers"] if its == name]


def exchange(server, data: bytes, timeout_s: float = 20) -> bytes:
    """Sends bytes over a connection of its own and reads until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=timeout_s) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


# The model and the management API


def test_a_bad_field_is_refused_with_its_name_and_what_is_allowed(lb_api):
    command = {"template": {"imageName": "x", "dockerStartCmd": ["true"]}, "provider": "process"}
    for fields, part in [
        ({"type": "lb"}, '`type` is "lb"; it must be one of "QUEUE", "LB"'),
        ({"type": "LB", "lb": {"queueMax": -1}}, "`lb.queueMax` is -1; it must be an integer from 0 to 100000"),
        ({"type": "LB", "lb": {"port": 0}}, "`lb.port` is 0; it must be an integer from 1 to 65535"),
        ({"type": "LB", "lb": {"healthPath": "ping"}}, "`lb.healthPath` is"),
        ({"type": "LB", "lb": {"public": 1}}, "`lb.public` is 1; it must be true or false"),
        ({"type": "LB", "lb": {"queuMax": 1}}, "`lb.queuMax` is not a field; the nearest known field is `queueMax`"),
        ({"type": "LB", "lb": []}, "`lb` must be an object"),
        ({"lb": {}}, "`lb` is for load-balancing endpoints"),
        ({"type": "LB", "provider": "external"}, "needs workers that this server starts"),
    ]:
        answer = lb_api.call("POST", "/v1/endpoints", json={**command, **fields})
        assert answer.status_code == 400 and part in answer.json()["error"], (fields, answer.text)


def test_the_type_cannot_change_and_fields_of_lb_change_one_by_one(lb_api):
    endpoint = make(lb_api, workersMax=0, lb={"queueMax": 7})
    assert endpoint.record["type"] == "LB"
    assert endpoint.record["lb"] == {
        "healthPath": "/ping",
        "maxConcurrency": 0,
        "queueMax": 7,
        "queueTimeoutMs": 120000,
        "requestTimeoutMs": 330000,
        "idleTimeoutMs": 60000,
        "drainTimeoutMs": 330000,
        "bodyBytesMax": 30000000,
        "public": False,
        "passAuthorization": False,
    }
    answer = lb_api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"type": "QUEUE"})
    assert answer.status_code == 400 and "can only be set when the resource is created" in answer.text
    changed = endpoint.patch(lb={"maxConcurrency": 3, "port": 9000})
    assert (changed["lb"]["queueMax"], changed["lb"]["maxConcurrency"], changed["lb"]["port"]) == (7, 3, 9000)
    assert changed["version"] == 2, "a worker learns its port at its start"
    changed = endpoint.patch(lb={"port": None})
    assert "port" not in changed["lb"] and changed["lb"]["maxConcurrency"] == 3


def test_job_routes_and_requests_name_the_other_address(lb_api, app):
    for method, path in [("POST", "/run"), ("POST", "/runsync"), ("GET", "/status/x"), ("POST", "/purge-queue")]:
        answer = app.call(method, path, json={"input": {}} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (400, "load_balancing"), answer.text
        assert f"/lb/{app.id}/" in answer.json()["error"]
    assert app.call("GET", "/health").status_code == 200
    queue = lb_api.external()
    answer = call(queue, "GET", "/x")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (400, "not_load_balancing")


def test_openai_clients_reach_the_worker_by_the_name_of_its_model(app):
    client = openai.OpenAI(base_url=f"{app.api.server.url}/openai/v1", api_key=ADMIN_KEY, max_retries=0)
    # A queue endpoint is beside it: the model decides.
    queue = app.api.external(models=["queued"])
    assert {"tiny", "queued"} <= {model.id for model in client.models.list()}
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "hello from afar"}]}
    assert client.chat.completions.create(**asked).choices[0].message.content == "HELLO FROM AFAR"
    pieces = [chunk.choices[0].delta.content for chunk in client.chat.completions.create(**asked, stream=True)]
    assert pieces == ["HELLO", "FROM", "AFAR"]
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(client.chat.completions.create, **{**asked, "model": "queued"})
        queue.wait_health("jobs", "inQueue", 1)
        queue.call("POST", "/purge-queue")
        assert isinstance(job.exception(60), openai.APIStatusError)
    direct = openai.OpenAI(base_url=f"{app.api.server.url}/lb/{app.id}/v1", api_key=ADMIN_KEY, max_retries=0)
    assert direct.chat.completions.create(**asked).choices[0].message.content == "HELLO FROM AFAR"


def test_workers_and_metrics_show_the_health(lb_api, app):
    call(app, "GET", "/echo")
    (worker,) = lb_api.ok("GET", f"/v1/endpoints/{app.id}?includeWorkers=true")["workers"]
    assert (worker["health"], worker["lastCheck"]) == ("healthy", "GET /ping: 200 OK")
    text = lb_api.call("GET", "/metrics").text
    assert f'longshore_lb_requests_total{{endpoint="{app.id}",answer="2xx"}}' in text
    assert f'longshore_lb_health_changes_total{{endpoint="{app.id}",to="healthy"}} 1' in text
    series = [line for line in text.splitlines() if f'endpoint="{app.id}"' in line]
    assert 80 < len(series) <= 120, len(series)


# Keys


def test_a_request_needs_a_key_with_the_scope_jobs(lb_api, app):
    for key in [None, "wrong"]:
        headers = {"Authorization": key and f"Bearer {key}"}
        answer = call(app, "GET", "/echo", headers=headers)
        assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (401, "unauthorized")
        assert lb_api.call("GET", "/lb/nothing/x", headers=headers).status_code == 401
    made = lb_api.ok("POST", "/v1/apikeys", json={"name": "reader", "scopes": [{"scope": "read"}]})
    answer = call(app, "GET", "/echo", headers={"Authorization": f"Bearer {made['key']}"})
    assert answer.status_code == 401
    assert lb_api.call("GET", "/lb/nothing/x").status_code == 404


def test_a_preflight_needs_no_key_and_its_answer_is_the_workers(app):
    headers = {"Authorization": None, "Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = call(app, "OPTIONS", "/echo", headers=headers)
    assert answer.status_code == 200 and answer.json()["method"] == "OPTIONS"
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_workers_cors_headers_stay(raw):
    answer = call(raw, "GET", "/cors", headers={"Origin": "https://app.example"})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert answer.headers["Access-Control-Expose-Headers"] == "X-Cost"


def test_a_public_endpoint_needs_no_key(lb_api):
    endpoint = make(lb_api, "raw_web.py", lb={"public": True, "passAuthorization": True})
    answer = call(endpoint, "GET", "/raw", headers={"Authorization": None})
    assert answer.status_code == 200
    answer = call(endpoint, "GET", "/raw", headers={"Authorization": "Basic b25l"})
    assert b"authorization: Basic b25l" in answer.content


# What the worker gets


def test_the_worker_gets_the_request_as_it_was_sent(app):
    answer = call(app, "PUT", "/echo/a//b/%2F%20/?x=1&x=2", data=b"body", headers={"X-Own": "kept"})
    got = answer.json()
    assert (got["method"], got["path"], got["query"]) == ("PUT", "/echo/a//b/%2F%20/", "x=1&x=2")
    assert (got["http"], got["body_bytes"]) == ("1.1", 4)
    assert header(answer, "x-own") == ["kept"]


def test_headers_of_the_connection_and_of_the_server_are_removed(app):
    headers = {
        "X-Longshore-Internal": "1",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "1",
        "Keep-Alive": "timeout=5",
        "Proxy-Authorization": "Basic x",
        "X-Forwarded-For": "6.6.6.6",
        "X-Forwarded-Host": "evil",
        "Forwarded": "for=6.6.6.6",
        "Cookie": "mine=1; longshore-012345=secret; __Host-longshore=secret",
        "X-Request-Id": "req-1",
    }
    answer = call(app, "GET", "/echo", headers=headers)
    names = {name for name, _ in answer.json()["headers"]}
    gone = {"authorization", "x-longshore-internal", "x-hop", "keep-alive", "proxy-authorization", "forwarded", "te"}
    assert not names & gone, names & gone
    assert header(answer, "cookie") == ["mine=1"]
    assert header(answer, "x-forwarded-for") == ["127.0.0.1"]
    assert header(answer, "x-forwarded-proto") == ["http"]
    assert header(answer, "x-forwarded-host") == [f"127.0.0.1:{app.api.server.port}"]
    assert header(answer, "x-forwarded-prefix") == [f"/lb/{app.id}"]
    assert header(answer, "x-request-id") == ["req-1"] and answer.headers["X-Request-Id"] == "req-1"
    (host,) = header(answer, "host")
    assert host.startswith("127.0.0.1:") and host != f"127.0.0.1:{app.api.server.port}"


def test_a_host_below_the_domain_names_the_endpoint(app):
    answer = app.api.call("GET", "/echo/x", headers={"Host": f"{app.id}.apps.test"})
    assert answer.json()["path"] == "/echo/x"
    assert header(answer, "x-forwarded-prefix") == []
    assert "Content-Security-Policy" not in answer.headers
    assert app.api.call("GET", "/echo/x", headers={"Host": "other.test"}).status_code == 404


def test_pages_of_workers_do_not_share_the_origin_of_the_console(app):
    answer = call(app, "GET", "/cookies")
    assert answer.headers["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "Service-Worker-Allowed" not in answer.headers and "Clear-Site-Data" not in answer.headers
    assert "X-Longshore-Error" not in answer.headers
    assert answer.headers["Set-Cookie"].startswith(f"mine=1; Path=/lb/{app.id}/")


def test_redirects_lead_to_the_address_for_clients(app):
    answer = call(app, "GET", "/redirect", allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (307, f"/lb/{app.id}/echo")
    assert call(app, "GET", "/redirect").json()["path"] == "/echo"


# Streams


def test_an_upload_and_a_download_pass_without_being_stored(app):
    piece = b"p" * (1 << 20)
    pieces = 48

    def body():
        for _ in range(pieces):
            yield piece

    answer = call(app, "POST", "/upload", data=body())
    assert answer.json() == {"bytes": pieces << 20, "sha256": hashlib.sha256(piece * pieces).hexdigest()}
    with call(app, "GET", f"/download?bytes={pieces << 20}", stream=True) as answer:
        assert sum(len(part) for part in answer.iter_content(1 << 20)) == pieces << 20


def test_events_arrive_one_by_one(app):
    with call(app, "GET", "/events?count=4&pause_ms=1000", stream=True) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        arrivals = [(line, time.monotonic()) for line in answer.iter_lines() if line]
    assert [line for line, _ in arrivals] == [b"data: %d" % number for number in range(4)]
    assert arrivals[-1][1] - arrivals[0][1] > 0.5


def test_trailers_and_the_end_of_a_connection_end_a_body(raw):
    server = raw.api.server
    head = f"Host: x\r\n{'Authorization: Bearer ' + ADMIN_KEY}\r\nConnection: close\r\n".encode()
    answer = exchange(server, b"GET /lb/%s/trailers HTTP/1.1\r\nTE: trailers\r\n%s\r\n" % (raw.id.encode(), head))
    assert b"5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n" in answer.lower()
    assert call(raw, "GET", "/until-close").content == b"to the end"


def test_an_http_1_0_client_gets_its_answer(raw):
    head = f"Authorization: Bearer {ADMIN_KEY}\r\n".encode()
    answer = exchange(raw.api.server, b"GET /lb/%s/raw HTTP/1.0\r\n%s\r\n" % (raw.id.encode(), head))
    assert answer.startswith(b"HTTP/1.0 200 OK") and b"GET /raw HTTP/1.1\r\n" in answer


def test_a_client_that_expects_100_is_told_to_go_on(raw):
    server = raw.api.server
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(
            b"POST /lb/%s/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n"
            b"Content-Length: 4\r\n\r\n" % (raw.id.encode(), ADMIN_KEY.encode())
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(b"body")
        answer = connection.recv(10000)
        assert b"body" in answer and b"expect:" not in answer


async def talk(url, **options):
    async with websockets.connect(url, **options) as connection:
        hello = json.loads(await connection.recv())
        await connection.send("longshore")
        return connection.subprotocol, hello["headers"], await connection.recv()


def test_a_websocket_is_a_tunnel(app):
    url = f"{app.api.server.url}/lb/{app.id}/ws".replace("http", "ws", 1)
    _, headers, text = event_loop.run(talk(url, additional_headers=KEY))
    assert text == "erohsgnol" and "authorization" not in headers
    protocols = ["longshore", f"longshore.key.{ADMIN_KEY}"]
    chosen, headers, text = event_loop.run(talk(url, subprotocols=protocols))
    assert (chosen, text) == ("longshore", "erohsgnol")
    assert ADMIN_KEY not in json.dumps(headers)
    with pytest.raises(websockets.InvalidStatus, match="401"):
        event_loop.run(talk(url))


# Workers that misbehave


@pytest.mark.parametrize("path", ["/close", "/garbage", "/folded", "/two-lengths", "/coded", "/head-bomb", "/many-headers", "/upgrade-unasked"])
def test_a_worker_that_speaks_no_http_is_a_bad_gateway(raw, path):
    answer = call(raw, "POST", path)
    assert answer.status_code == 502, answer.text
    assert answer.headers["X-Longshore-Error"] in ("upstream_closed", "upstream_protocol")
    assert call(raw, "GET", "/fine").content == b"hello"


def answered(endpoint, path, *lines) -> bytes:
    """All bytes of the answer to a request on a connection of its own."""
    head = [f"GET /lb/{endpoint.id}{path} HTTP/1.1", "Host: x", f"Authorization: Bearer {ADMIN_KEY}", *lines, "Connection: close"]
    return exchange(endpoint.api.server, "\r\n".join([*head, "", ""]).encode())


def test_a_response_has_at_most_100_header_lines(raw):
    # Libraries of clients have the same limit, and the server adds lines of its own.
    assert answered(raw, "/lines?100").count(b"\r\nx-a: ") == 99
    answer = call(raw, "GET", "/lines?101")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (502, "upstream_protocol")


def test_chunks_count_and_not_a_length_beside_them(raw):
    answer = answered(raw, "/two-framings")
    assert b"content-length" not in answer and answer.endswith(b"\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n"), answer


def test_the_head_of_a_response_arrives_that_breaks_immediately(raw):
    answer = answered(raw, "/head-only")
    assert answer.startswith(b"HTTP/1.1 201 Created\r\n") and answer.endswith(b"\r\n\r\n"), answer


def test_headers_of_the_server_are_removed_from_trailers(raw):
    answer = answered(raw, "/own-trailers", "TE: trailers")
    assert answer.endswith(b"\r\n0\r\nx-t: 2\r\n\r\n"), answer


def test_the_server_is_no_tunnel_to_other_servers(raw):
    head = f"CONNECT /lb/{raw.id}/fine HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\nConnection: close\r\n\r\n"
    answer = exchange(raw.api.server, head.encode())
    assert answer.startswith(b"HTTP/1.1 405 ") and b"no_proxy" in answer, answer


def test_a_failed_worker_is_a_line_of_the_log(raw):
    answer = call(raw, "POST", "/garbage", headers={"X-Request-Id": "of-the-log"})
    assert "no HTTP/1.1 response: " in answer.json()["error"]
    (line,) = [line for line in raw.api.server.log().splitlines() if "of-the-log" in line]
    assert all(part in line for part in ("WARN", "request not forwarded", raw.id, "upstream_protocol")), line


def test_a_worker_that_never_answers_times_out(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMin=1, lb={"requestTimeoutMs": 3000})
    endpoint.wait_health("workers", "idle", 1)
    began = time.monotonic()
    answer = call(endpoint, "POST", "/silent")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (504, "upstream_timeout")
    assert 2.5 < time.monotonic() - began < 20


@pytest.mark.parametrize("path", ["/half", "/half-chunked", "/pause"])
def test_an_answer_that_ends_early_is_no_whole_answer(impatient, path):
    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.ConnectionError)):
        call(impatient, "GET", path)


def test_an_answer_before_the_body_was_read_arrives(raw):
    answer = call(raw, "POST", "/early", data=b"x" * 100_000)
    assert answer.status_code == 413 and answer.content == b"no"


@pytest.mark.parametrize("path", ["/early-close", "/early-reset"])
def test_an_answer_before_a_reset_arrives(raw, path):
    """The worker reads the head of the request alone, answers, and is gone while the body is still sent."""
    for _ in range(20):
        answer = call(raw, "POST", path, data=b"x" * 3_000_000)
        assert (answer.status_code, answer.content) == (413, b"no"), answer.text
    # What is lost with the connection is no whole answer.
    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.ConnectionError)):
        call(raw, "POST", "/early-half", data=b"x" * 3_000_000)


def test_a_worker_that_is_not_ready_gets_no_request(lb_api):
    endpoint = make(lb_api, "raw_web.py", {"PING": "late"})
    assert call(endpoint, "GET", "/fine").content == b"hello"
    (log,) = [lb_api.call("GET", f"/v1/endpoints/{endpoint.id}/workers/{worker['id']}/logs").text
              for worker in lb_api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers")]
    asked = [line for line in log.splitlines() if line.rstrip().endswith(("/ping", "/fine"))]
    assert asked[0].rstrip().endswith("/ping"), log


@pytest.mark.parametrize("ping", ["initializing", "sick", "silent"])
def test_a_worker_that_never_gets_healthy_gets_no_request_and_is_replaced(lb_api, ping):
    endpoint = make(lb_api, "raw_web.py", {"PING": ping}, startPatienceMs=10_000, lb={"queueTimeoutMs": 2000})
    answer = call(endpoint, "GET", "/fine")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (503, "no_worker")
    assert int(answer.headers["Retry-After"]) > 0
    # The load keeps the worker wanted until its patience is over.
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            call(endpoint, "GET", "/fine")

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        until(lambda: "was not healthy within 10" in lb_api.server.log(), "the worker is replaced", 40)
    finally:
        stop.set()
        asker.join()


# The queue


def test_a_request_starts_a_worker_and_a_full_queue_refuses(lb_api):
    endpoint = make(lb_api, "raw_web.py", {"PING": "initializing"}, lb={"queueMax": 1, "queueTimeoutMs": 8000})
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(call(endpoint, "GET", "/fine")))
    waiting.start()
    endpoint.wait_health("jobs", "inQueue", 1)
    answer = call(endpoint, "GET", "/fine")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (503, "queue_full")
    assert answer.json()["code"] == "queue_full" and int(answer.headers["Retry-After"]) > 0
    waiting.join()
    assert answers[0].headers["X-Longshore-Error"] == "no_worker"


def test_a_client_that_leaves_the_queue_is_forgotten(lb_api):
    endpoint = make(lb_api, "raw_web.py", {"PING": "initializing"})
    request = f"GET /lb/{endpoint.id}/fine HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN_KEY}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", lb_api.server.port)) as connection:
        connection.sendall(request.encode())
        endpoint.wait_health("jobs", "inQueue", 1)
    endpoint.wait_health("jobs", "inQueue", 0)


def test_max_concurrency_is_kept_and_requests_wait_for_their_turn(lb_api):
    endpoint = make(lb_api, workersMin=1, workersMax=1, lb={"maxConcurrency": 2})
    with_answers = []
    threads = [
        threading.Thread(target=lambda: with_answers.append(call(endpoint, "GET", "/slow?ms=200").json()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(with_answers) == 8 and max(answer["running"] for answer in with_answers) <= 2


def test_a_paused_endpoint_refuses_immediately(lb_api):
    endpoint = make(lb_api, "raw_web.py", workersMax=0)
    answer = call(endpoint, "GET", "/fine")
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (503, "paused")


# Change and restart


def test_a_worker_is_found_again_after_a_restart(fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"))
    endpoint = make(Api(server), "raw_web.py", workersMin=1)
    pid = call(endpoint, "GET", "/fine").headers["X-Pid"]
    server.kill()
    server.start()
    assert call(endpoint, "GET", "/fine").headers["X-Pid"] == pid


# Request smuggling: what the edge reads is what the worker reads


def send_raw(raw, head: bytes, body: bytes = b"", path: bytes = b"/raw") -> bytes:
    """A request with these lines and this body; the worker answers with what it got."""
    start = b"POST /lb/%s%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
    return exchange(raw.api.server, start % (raw.id.encode(), path, ADMIN_KEY.encode()) + head + b"\r\n" + body)


def worker_log(raw) -> str:
    (worker,) = raw.api.ok("GET", f"/v1/endpoints/{raw.id}/workers")
    return raw.api.call("GET", f"/v1/endpoints/{raw.id}/workers/{worker['id']}/logs").text


SMUGGLED = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    "head, body",
    [
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", SMUGGLED),
        (b"Transfer-Encoding: identity, chunked\r\n", SMUGGLED),
        (b"Transfer-Encoding: xchunked\r\n", SMUGGLED),
        (b"Transfer-Encoding : chunked\r\n", SMUGGLED),
        (b"Transfer-Encoding:\x0bchunked\r\n", SMUGGLED),
        (b"Content-Length: 1\r\nContent-Length: 2\r\n", b"ab"),
        (b"Content-Length: 1, 2\r\n", b"ab"),
        (b"Content-Length: +1\r\n", b"a"),
        (b"Content-Length: 0x1\r\n", b"a"),
        (b"X-A: 1\r\n Transfer-Encoding: chunked\r\n", SMUGGLED),
        (b"X-A: a\rb\r\n", b""),
        (b"X-A: a\0b\r\n", b""),
        (b"Transfer-Encoding: chunked\r\n", b"1\nZ\n0\n\n"),
        (b"Transfer-Encoding: chunked\r\n", b"1\r\nZ\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"1;a\nb\r\nZ\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"-1\r\nZ\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"0x1\r\nZ\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\nZ\r\n0\r\n\r\n"),
    ],
)
def test_an_ambiguous_request_is_refused(raw, head, body):
    assert send_raw(raw, head, body).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert "/smuggled" not in worker_log(raw)


@pytest.mark.parametrize("order", [1, -1])
def test_a_request_with_both_lengths_has_the_chunks_alone(raw, order):
    head = b"".join([b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"][::order])
    answer = send_raw(raw, head, SMUGGLED)
    got = answer.partition(b"\r\n\r\n")[2].lower()
    assert got.endswith(b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n") and b"content-length" not in got, got
    assert "/smuggled" not in worker_log(raw)


def test_a_bare_line_feed_ends_a_line_for_the_worker_too(raw):
    answer = send_raw(raw, b"X-A: 1\nX-B: 2\n\nGET /smuggled HTTP/1.1\r\n")
    got = answer.partition(b"\r\n\r\n")[2]
    assert b"\r\nx-a: 1\r\n" in got and b"\r\nx-b: 2\r\n" in got and b"smuggled" not in got, got
    assert "/smuggled" not in worker_log(raw)


def test_trailers_of_a_request_reach_the_worker(raw):
    head = b"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"
    got = send_raw(raw, head, b"1\r\nZ\r\n0\r\nX-Sum: 5\r\nContent-Length: 9\r\nX-Longshore-Key: k\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n").partition(b"\r\n\r\n")[2].lower()
    assert got.endswith(b"1\r\nz\r\n0\r\nx-sum: 5\r\n\r\n"), got


@pytest.mark.parametrize(
    "trailers, got",
    [
        # A bare line feed within the section: the worker gets the trailers that the server read, each in a line of its own, or
        # the request is refused.
        (b"X-Sum: 5\nX-Other: 6\r\n\r\n", None),
        (b"X-Sum: 5\nX-Other: 6\r\nX-Sum: 7\r\n\r\n", None),
        (b"X-Sum: 5\r\nX-Other: 6\n\r\n\r\n", b"x-sum: 5\r\nx-other: 6\r\n"),
        (b"X-Sum: 5\n\r\n\r\n", b"x-sum: 5\r\n"),
        # An end of the section with bare line feeds alone: what follows is no request, neither to the server nor to the worker.
        (b"\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        (b"X-Sum: 5\n\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b"x-sum: 5\r\n"),
        (b"X-Sum: 5\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b"x-sum: 5\r\n"),
        (b"X-Sum: 5\r\n\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b"x-sum: 5\r\n"),
        # Other lines that can be read in two ways.
        (b"X-Sum: 5\rX-Other: 6\r\n\r\n", None),
        (b"X-Sum: 5\r\n X-Other: 6\r\n\r\n", None),
        (b"X-Sum : 5\r\n\r\n", None),
        (b"X-Sum: a\0b\r\n\r\n", None),
    ],
)
def test_trailers_with_a_bare_line_feed_are_refused_or_written_anew(raw, trailers, got):
    key = ADMIN_KEY.encode()
    start = b"POST /lb/%s/raw HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" % (raw.id.encode(), key)
    head = b"Transfer-Encoding: chunked\r\nTrailer: X-Sum, X-Other\r\n\r\n1\r\nZ\r\n0\r\n"
    after = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answers = exchange(raw.api.server, start + head + trailers + after).split(b"HTTP/1.1 ")[1:]
    if got is None:
        assert len(answers) == 1 and answers[0].startswith(b"400 Bad Request\r\n") and b"bad_body" in answers[0], answers
    else:
        assert [answer[:3] for answer in answers] == [b"200", b"200"], answers
        assert answers[0].endswith(b"\r\n\r\n1\r\nZ\r\n0\r\n" + got + b"\r\n"), answers
    assert "/smuggled" not in worker_log(raw)


def test_trailers_of_a_request_do_not_name_its_client(raw):
    """Some servers take trailers for headers."""
    names = b"X-Forwarded-For", b"X-Real-IP", b"X-Request-Id", b"Cookie", b"Forwarded", b"X_Forwarded_For", b"X-Sum"
    head = b"Transfer-Encoding: chunked\r\nTrailer: %s\r\n" % b", ".join(names)
    trailers = b"".join(b"%s: 9.9.9.9\r\n" % name for name in names)
    got = send_raw(raw, head, b"1\r\nZ\r\n0\r\n" + trailers + b"\r\n")
    assert got.endswith(b"1\r\nZ\r\n0\r\nx-sum: 9.9.9.9\r\n\r\n"), got


@pytest.mark.parametrize("method", [b"GET", b"DELETE", b"OPTIONS"])
def test_chunks_of_a_request_that_seldom_has_a_body_reach_the_worker(raw, method):
    start = b"%s /lb/%s/raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    answer = exchange(raw.api.server, start % (method, raw.id.encode(), ADMIN_KEY.encode()) + body)
    assert answer.endswith(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), answer


def test_a_header_with_an_underscore_frames_nothing(raw):
    got = send_raw(raw, b"Content_Length: 3\r\nTransfer_Encoding: chunked\r\nContent-Length: 5\r\n", b"hello").partition(b"\r\n\r\n")[2]
    assert got.endswith(b"hello") and b"content-length: 5\r\n" in got and b"_" not in got, got


def test_what_a_worker_sends_after_its_answer_is_no_answer_to_the_next_request(raw):
    for _ in range(50):
        for path, expected in [("/two-answers", b"hello"), ("/fine", b"hello")]:
            answer = call(raw, "GET", path)
            assert answer.status_code == 200 and answer.content == expected, answer.content


def sends(raw_bytes: bytes, ends: bool = False) -> str:
    """The path at which the worker answers these bytes, and keeps its connection, or ends it."""
    return f"/send{'-end' if ends else ''}?{raw_bytes.hex()}"


def begin(raw, method: str, path: str, *lines: str) -> socket.socket:
    """A connection with the head of a request."""
    connection = socket.create_connection(("127.0.0.1", raw.api.server.port), timeout=20)
    start = f"{method} /lb/{raw.id}{path} HTTP/1.1", "Host: x", f"Authorization: Bearer {ADMIN_KEY}"
    connection.sendall("\r\n".join([*start, *lines, "", ""]).encode())
    return connection


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")


def test_the_rest_of_a_body_is_no_request_after_an_early_answer(raw):
    """The worker keeps its connection, and takes the body, which it has not read, for the next request."""
    body = b"GET /lost HTTP/1.1\r\nX-Rest: "
    for _ in range(10):
        with begin(raw, "POST", sends(OK), f"Content-Length: {len(body)}") as connection:
            assert connection.recv(10_000).endswith(b"ok")
            connection.sendall(body)
            answer = call(raw, "GET", "/fine")
            assert (answer.status_code, answer.content) == (200, b"hello")


def test_a_body_that_never_comes_after_an_early_answer_ends_its_connections(impatient):
    with begin(impatient, "POST", sends(OK), "Content-Length: 5") as connection:
        assert connection.recv(10_000).endswith(b"ok")
        assert connection.recv(10_000) == b""


def test_a_websocket_has_no_body(raw):
    """A body that never comes would hold the worker: the connection cannot leave HTTP before its end."""
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    with begin(raw, "GET", sends(switch), *UPGRADE, "Content-Length: 5") as connection:
        assert connection.recv(10_000).startswith(b"HTTP/1.1 502 ")
        raw.wait_health("jobs", "inProgress", 0)


@pytest.mark.parametrize("line", [b"Upgrade: h2c\r\n", b""])
def test_a_worker_leaves_http_for_a_websocket_alone(raw, line):
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n%s\r\n" % line
    with begin(raw, "GET", sends(switch), *UPGRADE) as connection:
        assert connection.recv(10_000).startswith(b"HTTP/1.1 502 ")


def test_a_response_with_two_codings_is_refused(raw):
    answer = call(raw, "GET", sends(b"HTTP/1.1 200 OK\r\n" + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n3\r\nabc\r\n0\r\n\r\n"))
    assert (answer.status_code, answer.headers["X-Longshore-Error"]) == (502, "upstream_protocol")


def test_a_request_is_not_sent_again_after_a_hint(raw):
    answer = answered(raw, sends(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", ends=True))
    assert answer.count(b"HTTP/1.1 103 Early Hints\r\n") == 1 and b"upstream_closed" in answer, answer


def test_no_other_upgrade_is_forwarded(raw):
    settings = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    answer = send_raw(raw, settings)
    got = answer.partition(b"\r\n\r\n")[2].lower()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"upgrade" not in got and b"http2-settings" not in got, answer


def test_what_follows_a_refused_upgrade_is_a_request_to_the_server(raw):
    """A tunnel would lead past the keys."""
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    first = b"GET /lb/%s/fine HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%s\r\n" % (raw.id.encode(), ADMIN_KEY.encode(), upgrade)
    answer = exchange(raw.api.server, first + b"GET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"HTTP/1.1 404 Not Found\r\n" in answer, answer
    assert "/smuggled" not in worker_log(raw)


@pytest.mark.parametrize("target", [b"CONNECT 127.0.0.1:22", b"GET http://169.254.169.254/raw", b"GET /lb/@169.254.169.254/raw"])
def test_no_request_chooses_its_host(raw, target):
    request = b"%s HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    answer = exchange(raw.api.server, request % (target, ADMIN_KEY.encode()))
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n"), answer


def test_redirects_are_the_clients_to_follow(raw):
    """The server follows none, whether a request or a health check is redirected."""
    answer = call(raw, "GET", "/away", allow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, "http://169.254.169.254/latest/meta-data")
    endpoint = make(raw.api, "raw_web.py", {"PING": "away"}, lb={"queueTimeoutMs": 2000})
    assert call(endpoint, "GET", "/fine").headers["X-Longshore-Error"] == "no_worker"
    (worker,) = raw.api.ok("GET", f"/v1/endpoints/{endpoint.id}?includeWorkers=true")["workers"]
    assert worker["lastCheck"] == "GET /ping: 302 Found"


def test_chunks_reach_the_worker_without_extensions(raw):
    start = b"POST /lb/%s/raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
    body = b"Transfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\n\r\n"
    answer = exchange(raw.api.server, start % (raw.id.encode(), ADMIN_KEY.encode()) + body)
    assert b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n" in answer and b"a=" not in answer


def test_an_absolute_uri_goes_to_the_worker_alone(raw):
    start = b"GET http://169.254.169.254/lb/%s/raw HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    answer = exchange(raw.api.server, start % (raw.id.encode(), ADMIN_KEY.encode()))
    assert b"GET /raw HTTP/1.1\r\n" in answer
