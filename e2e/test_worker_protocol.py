"""What a naive server gets wrong about workers and clients: one test per known trap, named by its number.

Not here: 31 (the OpenAI routes) and 32 (GraphQL), which are not part of the job interface, and 34 (how to benchmark),
which is no behaviour of a server.
"""

import json
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.wait import holds, until


def taken(endpoint, worker, **fields) -> str:
    """A job that `worker` holds."""
    job = endpoint.run(**fields)
    assert worker.take()["id"] == job
    return job


@pytest.mark.parametrize("content_type", [
    "application/x-www-form-urlencoded", "application/json", "text/plain", "multipart/form-data", None,
])
def test_trap_01_bodies_are_json_with_any_content_type(endpoint, worker, content_type):
    job = taken(endpoint, worker)
    headers = {"Content-Type": content_type} if content_type else {}
    body = json.dumps({"output": "a=b&c=%20+"})
    for kind in ("job-stream", "job-done"):
        answer = worker.session.post(f"{worker.base}/{kind}/{worker.id}/{job}?gpu=x", data=body, headers=headers)
        assert answer.status_code == 200, answer.text
    assert endpoint.status(job)["output"] == "a=b&c=%20+"
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "a=b&c=%20+"}]


def test_trap_02_results_of_thirty_megabytes_are_taken_in(endpoint, worker):
    job = taken(endpoint, worker)
    worker.done(job, {"output": "x" * 30_000_000})
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and "output" not in record and "30000002" in re.sub(r"[ _,]", "", record["error"])
    small = taken(endpoint, worker)
    worker.done(small, {"output": "y" * 9_000_000})
    assert len(endpoint.status(small)["output"]) == 9_000_000


@pytest.mark.parametrize("text, kept", [
    ('{"output": NaN}', None),
    ('{"output": {"a": NaN, "b": [Infinity, -Infinity, 1]}}', {"a": None, "b": [None, None, 1]}),
    ('{"output": "NaN and Infinity stay in text"}', "NaN and Infinity stay in text"),
    ('{"output": "quote \\" NaN"}', 'quote " NaN'),
])
def test_trap_03_python_writes_nan_and_infinity(endpoint, worker, text, kept):
    job = taken(endpoint, worker)
    worker.done(job, text)
    record = endpoint.status(job)
    assert record["status"] == "COMPLETED" and record["output"] == kept
    stream = taken(endpoint, worker)
    assert worker.post("job-stream", stream, text).status_code == 200
    assert endpoint.ok("GET", f"/stream/{stream}") == [{"output": kept}]


@pytest.mark.parametrize("form", ["{}", "Bearer {}"])
def test_trap_04_workers_send_the_raw_key(endpoint, form):
    worker = FakeWorker(endpoint, token=form.format(endpoint.worker_token()["token"]))
    job = taken(endpoint, worker)
    worker.done(job, {"output": 1})
    assert endpoint.status(job)["status"] == "COMPLETED"


@pytest.mark.parametrize("token", ["", "wrong", "lsw_wrong"])
def test_trap_04_a_worker_without_a_token_gets_nothing(api, endpoint, worker, token):
    job = taken(endpoint, worker)
    stranger = FakeWorker(endpoint, name=worker.id, token=token)
    assert stranger.take_raw().status_code == 401
    assert stranger.post("job-done", job, {"output": "forged"}).status_code == 401
    foreign = FakeWorker(endpoint, name=worker.id, token=api.external().worker_token()["token"])
    assert foreign.post("job-done", job, {"output": "forged"}).status_code == 401, "a token serves one endpoint"
    assert endpoint.status(job)["status"] == "IN_PROGRESS"


def test_trap_05_url_templates_hold_what_the_sdk_needs(endpoint):
    env = endpoint.worker_token()["env"]
    assert "/job-take/" in env["RUNPOD_WEBHOOK_GET_JOB"]
    for name in ("GET_JOB", "POST_OUTPUT", "POST_STREAM", "PING"):
        assert "?" in env[f"RUNPOD_WEBHOOK_{name}"], f"{name} has no query for the SDK to append to"


def test_trap_06_placeholders_are_the_right_ones(endpoint):
    env = endpoint.worker_token()["env"]
    assert "$RUNPOD_POD_ID" not in env["RUNPOD_WEBHOOK_GET_JOB"]
    for name in ("POST_OUTPUT", "POST_STREAM"):
        path = urlsplit(env[f"RUNPOD_WEBHOOK_{name}"]).path
        assert path.endswith("/$ID"), f"{name}: the last segment is the job"
    assert "$ID" not in env["RUNPOD_WEBHOOK_PING"].replace("$RUNPOD_POD_ID", "")
    assert env["RUNPOD_AI_API_KEY"] == endpoint.worker_token()["token"]


def test_trap_07_and_08_an_idle_poll_is_held_but_not_too_long(endpoint, worker):
    began = time.monotonic()
    answer = worker.take_raw(timeout_s=90)
    held = time.monotonic() - began
    assert answer.status_code == 204 and answer.content == b""
    assert 5 <= held < 60, f"held {held:.1f} s"


def test_trap_08_a_poll_whose_client_is_gone_gets_no_job(endpoint, worker):
    """The worker disconnects with its poll open; the job that comes next must not vanish into that poll."""
    path = urlsplit(worker.base).path
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", endpoint.api.server.port)) as connection:
            connection.sendall(
                f"GET {path}/job-take/{worker.id}?gpu=x&job_in_progress=0 HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: {worker.token}\r\n\r\n".encode()
            )
            until(lambda: endpoint.health()["workers"]["ready"] == 1, "the poll has arrived")
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.done(job, {"output": 1})
    assert "retries" not in endpoint.status(job)


def test_trap_09_a_job_that_its_worker_never_confirms_goes_back(endpoint, worker):
    """Assigned, yet two pings in a row do not list it: the answer got lost on the way."""
    lost, later = endpoint.run({"n": 1}), endpoint.run({"n": 2})
    assert worker.take()["id"] == lost
    worker.ping(), worker.ping(), worker.ping()
    other = FakeWorker(endpoint)
    assert other.take()["id"] == lost, "it goes back to the front"
    other.done(lost, {"output": 1})
    assert "retries" not in endpoint.status(lost), "an unconfirmed delivery is no retry"
    assert other.take()["id"] == later


def test_trap_09_a_take_with_nothing_in_progress_gives_the_job_back(endpoint, worker):
    job = taken(endpoint, worker)
    assert worker.take(busy=False)["id"] == job, "the worker says it holds nothing, so the answer was lost"
    worker.done(job, {"output": 1})
    assert "retries" not in endpoint.status(job)


def test_trap_09_a_silent_worker_loses_its_job(api):
    endpoint = api.external(maxRetries=1)
    worker = FakeWorker(endpoint)
    job = taken(endpoint, worker)
    worker.ping(job)
    other = FakeWorker(endpoint)
    assert other.take()["id"] == job
    assert endpoint.status(job)["retries"] == 1
    other.ping(job)
    record = endpoint.wait_for(job, timeout_s=20)
    assert record["status"] == "FAILED" and record["error"], "after maxRetries it fails with the reason"


def test_trap_10_pings_are_hints(endpoint, worker):
    job = taken(endpoint, worker)
    idle = FakeWorker(endpoint)
    worker.done(job, {"output": 1})
    for _ in range(3):
        worker.ping(job)
        idle.ping(job, "not-a-job", "0192f000-0000-7000-8000-000000000000", "")
    assert endpoint.status(job)["status"] == "COMPLETED", "a stale ping does not reopen a job"
    two = [taken(endpoint, worker), endpoint.run()]
    assert worker.take(busy=True)["id"] == two[1]
    for _ in range(4):
        worker.ping(*two)
    assert [endpoint.status(job)["status"] for job in two] == ["IN_PROGRESS"] * 2, "a list of two holds both"
    queued = endpoint.run()
    worker.ping(queued)
    assert endpoint.status(queued)["status"] == "IN_QUEUE", "a ping takes no job"


def test_trap_11_idle_connections_stay_open(endpoint, worker):
    """A blocking handler leaves its connection silent; the result goes out on that same connection."""
    job = taken(endpoint, worker)
    connection = HTTPConnection("127.0.0.1", endpoint.api.server.port, timeout=60)
    headers = {"Authorization": worker.token}
    path = urlsplit(worker.base).path
    connection.request("GET", f"{path}/ping/{worker.id}?gpu=x&job_id={job}", headers=headers)
    assert connection.getresponse().read() is not None
    # 20 s: longer than the 15 s for which the SDK keeps an idle connection.
    holds(lambda: worker.ping(job), "the worker lives", 20, 0.5)
    connection.auto_open = 0  # A closed connection is an error here, not a reason for a new one.
    connection.request("POST", f"{path}/job-done/{worker.id}/{job}?gpu=x", body=b'{"output": 1}', headers=headers)
    assert connection.getresponse().status == 200
    assert endpoint.status(job)["output"] == 1


def test_trap_12_results_are_never_pushed_back(endpoint, worker):
    """Workers drop a result on any 4xx: a burst of them must be taken in whole."""
    count = 300
    with ThreadPoolExecutor(8) as threads:
        jobs = set(threads.map(lambda n: endpoint.run({"n": n}), range(count)))
    held = {job["id"] for job in worker.take_batch(count)}
    while len(held) < count:
        held |= {job["id"] for job in worker.take_batch(count - len(held), busy=True)}
    assert held == jobs
    with ThreadPoolExecutor(8) as threads:
        answers = set(threads.map(lambda job: worker.post("job-done", job, {"output": 1}).status_code, held))
    assert answers == {200}
    assert endpoint.health()["jobs"]["completed"] == count


@pytest.mark.parametrize("path", ["/run/", "//run", "/run"])
def test_trap_13_no_redirects(endpoint, path):
    answer = endpoint.call("POST", path, json={"input": {}}, allow_redirects=False)
    assert answer.status_code == 200, f"{answer.status_code} {answer.headers}"


def test_trap_13_no_redirects_for_workers(endpoint, worker):
    job = endpoint.run()
    root = worker.base.replace("/v2/", "//v2/")
    headers = {"Authorization": worker.token}
    take = worker.session.get(f"{root}/job-take/{worker.id}/?gpu=x", headers=headers, allow_redirects=False, timeout=60)
    assert take.status_code == 200 and take.json()["id"] == job
    done = worker.session.post(f"{root}/job-done/{worker.id}/{job}/?gpu=x", data='{"output":1}', allow_redirects=False)
    assert done.status_code == 200 and endpoint.status(job)["status"] == "COMPLETED"


@pytest.mark.parametrize("params", ["", "gpu=x", "isStream=true", "isStream=false&novel=1&a", "gpu=a%26b&=&"])
def test_trap_14_the_path_tells_chunk_from_result(endpoint, worker, params):
    job = taken(endpoint, worker)
    assert worker.post("job-stream", job, {"output": "chunk"}, params).status_code == 200
    assert endpoint.status(job)["status"] == "IN_PROGRESS"
    worker.done(job, {"output": "result"}, params)
    assert endpoint.status(job)["output"] == "result"
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "chunk"}]


def test_trap_15_late_progress_changes_nothing(endpoint, worker):
    job = taken(endpoint, worker)
    worker.progress(job, "p1")
    worker.done(job, {"output": "final"})
    for value in ("p0", "p2"):
        worker.progress(job, value)
    record = endpoint.status(job)
    assert record["status"] == "COMPLETED" and record["output"] == "final"


def test_trap_16_a_result_after_a_stop_is_ignored(endpoint, worker):
    job = taken(endpoint, worker)
    endpoint.cancel(job)
    worker.done(job, {"output": "late"})
    worker.chunk(job, "late")
    assert endpoint.status(job)["status"] == "CANCELLED" and "output" not in endpoint.status(job)
    worker.done("0192f000-0000-7000-8000-000000000000", {"output": 1})
    worker.done("no-such-job", {"output": 1})
    worker.chunk("no-such-job", 1)


def test_trap_16_a_delivered_result_posted_again_is_fine(endpoint, worker):
    job = taken(endpoint, worker)
    for output in (1, 1, 2):
        worker.done(job, {"output": output})
    worker.done(job, {"error": "now it failed"})
    assert endpoint.status(job)["output"] == 1 and endpoint.health()["jobs"]["completed"] == 1


@pytest.mark.parametrize("body, status, error, output", [
    ({"error": {"message": "m", "code": 4}}, "FAILED", {"message": "m", "code": 4}, None),
    ({"error": '{"error_type": "x"}'}, "FAILED", '{"error_type": "x"}', None),
    ({"error": "text", "output": {"part": 1}}, "FAILED", "text", {"part": 1}),
    ({"error": ["a", 1]}, "FAILED", ["a", 1], None),
    ({}, "COMPLETED", None, None),
    ({"error": None, "output": 1}, "COMPLETED", None, 1),
    ({"error": "", "output": 1}, "COMPLETED", None, 1),
    ({"output": {"error": "inside"}}, "COMPLETED", None, {"error": "inside"}),
])
def test_trap_17_errors_come_in_many_shapes(endpoint, worker, body, status, error, output):
    job = taken(endpoint, worker)
    worker.done(job, body)
    record = endpoint.status(job)
    assert record["status"] == status and record.get("output") == output
    if error is None:
        assert "error" not in record
    else:
        assert isinstance(record["error"], str), "clients decode it as text"
        assert (record["error"] if isinstance(error, str) else json.loads(record["error"])) == error


def test_trap_17_a_body_that_is_no_json_fails_the_job(endpoint, worker):
    job = taken(endpoint, worker)
    assert worker.post("job-done", job, b"<html>\xff").status_code == 200, "a 400 would lose the job"
    record = endpoint.wait_for(job, timeout_s=5)
    assert record["status"] == "FAILED" and record["error"]


def test_trap_18_a_worker_that_wants_to_be_replaced(api):
    """It is replaced where the server can do that; an external worker, which the server cannot replace, goes on."""
    real = api.endpoint("refresh.py", workersMax=1)
    first = real.wait_for(real.run(), timeout_s=40)["workerId"]
    assert real.wait_for(real.run(), timeout_s=40)["workerId"] != first
    outside = api.external()
    worker = FakeWorker(outside)
    worker.done(taken(outside, worker), {"output": 1, "stopPod": True})
    taken(outside, worker)


def test_trap_19_the_stop_channel_exists_and_is_held(endpoint, worker):
    job = taken(endpoint, worker)
    channel = worker.park_stops()
    holds(lambda: not channel.done(), "the poll is held while there is nothing to stop", 1.5)
    endpoint.cancel(job)
    assert channel.result(60) == [job]


def test_trap_20_shapes_that_workers_understand(endpoint, worker):
    for _ in range(6):
        endpoint.run({})
    single = worker.take_raw().json()
    assert isinstance(single, dict) and single["input"] == {} and isinstance(single["id"], str)
    batch = worker.take_raw(slots=3, busy=True).json()
    assert isinstance(batch, list) and 1 <= len(batch) <= 3
    for job in batch:
        assert isinstance(job["id"], str) and "input" in job
    assert len({job["id"] for job in [single, *batch]}) == 1 + len(batch)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", job["id"]) for job in [single, *batch])


def test_trap_21_success_is_always_200(endpoint, worker):
    assert endpoint.call("POST", "/runsync?wait=1000", json={"input": {}}).status_code == 200
    job = worker.take()["id"]
    worker.done(job, {"error": "x"})
    assert endpoint.call("GET", f"/status/{job}").status_code == 200
    assert endpoint.call("GET", f"/status-sync/{job}").status_code == 200


def test_trap_22_and_24_stream_envelope(endpoint, worker):
    endpoint.mount = f"/sdk{endpoint.mount}"
    job = taken(endpoint, worker)
    assert endpoint.ok("GET", f"/stream/{job}?wait=0") == {"status": "IN_PROGRESS", "stream": []}
    for n in range(50):
        worker.chunk(job, n)
    worker.done(job, {"output": []}, "gpu=x&isStream=true")
    last = endpoint.ok("GET", f"/stream/{job}")
    assert last == {"status": "COMPLETED", "stream": [{"output": n} for n in range(50)]}
    assert endpoint.ok("GET", f"/stream/{job}") == {"status": "COMPLETED", "stream": []}
    failed = taken(endpoint, worker)
    worker.done(failed, {"error": "x"})
    assert endpoint.ok("GET", f"/stream/{failed}") == {"status": "FAILED", "stream": []}


def test_trap_24_no_terminal_status_before_the_last_chunk(endpoint, worker):
    """More chunks than fit one answer: the status stays live until the answer that holds the last of them."""
    endpoint.mount = f"/sdk{endpoint.mount}"
    job = taken(endpoint, worker)
    for n in range(30):
        worker.chunk(job, f"{n}:" + "x" * 900_000)
    worker.done(job, {"output": []})
    seen = []
    while True:
        page = endpoint.ok("GET", f"/stream/{job}")
        seen += [int(chunk["output"].split(":")[0]) for chunk in page["stream"]]
        if page["status"] == "COMPLETED":
            break
    assert seen == list(range(30))


def test_trap_23_stream_is_held_a_little(endpoint, worker):
    job = taken(endpoint, worker)
    began = time.monotonic()
    assert endpoint.ok("GET", f"/stream/{job}") == []
    assert 1 <= time.monotonic() - began < 30


def test_trap_23_chunks_are_not_lost_with_their_reader(endpoint, worker):
    """The reader disconnects while its poll waits; the chunk that comes next is still there."""
    job = taken(endpoint, worker)
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", endpoint.api.server.port)) as connection:
            connection.sendall(
                f"GET /v2/{endpoint.id}/stream/{job}?wait=20000 HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {endpoint.api.key}\r\n\r\n".encode()
            )
            endpoint.status(job)
    worker.chunk(job, "kept")
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "kept"}]


def test_trap_25_stream_of_a_cancelled_job(endpoint, worker):
    endpoint.mount = f"/sdk{endpoint.mount}"
    job = taken(endpoint, worker)
    worker.chunk(job, 1)
    endpoint.cancel(job)
    page = endpoint.ok("GET", f"/stream/{job}")
    assert page["status"] == "CANCELLED" and page["stream"] in ([{"output": 1}], [])


def test_trap_26_quick_operations_are_quick(endpoint):
    """Also with a thousand jobs in the queue and no worker anywhere."""
    with ThreadPoolExecutor(8) as threads:
        jobs = list(threads.map(lambda n: endpoint.run({"n": n}), range(900)))
    for method, path in [("POST", f"/cancel/{jobs[500]}"), ("GET", "/health"), ("GET", f"/status/{jobs[0]}"),
                         ("POST", "/purge-queue")]:
        began = time.monotonic()
        endpoint.ok(method, path)
        assert time.monotonic() - began < 10, path
    assert endpoint.wait_for(jobs[-1], timeout_s=10)["status"] == "CANCELLED"


@pytest.mark.parametrize("body", [None, "", "{}"])
def test_trap_27_empty_bodies_are_fine(endpoint, worker, body):
    headers = {"Content-Type": "application/json"}
    job = taken(endpoint, worker)
    worker.done(job, {"error": "x"})
    assert endpoint.call("POST", f"/retry/{job}", data=body, headers=headers).status_code == 200
    assert endpoint.call("POST", f"/cancel/{job}", data=body, headers=headers).status_code == 200
    assert endpoint.call("GET", f"/status/{job}", headers=headers).status_code == 200
    assert endpoint.call("POST", "/purge-queue", data=body, headers=headers).status_code == 200


def test_trap_28_post_works_where_get_does_and_status_sync_exists(endpoint, worker):
    job = taken(endpoint, worker)
    worker.done(job, {"output": 1})
    for path in (f"/status/{job}", f"/status-sync/{job}?wait=1000", f"/stream/{job}"):
        assert endpoint.call("POST", path, json={}).status_code == 200, path


@pytest.mark.parametrize("method, path", [
    ("GET", "/v2/none/health"), ("POST", "/v2/none/run"), ("GET", "/nowhere"), ("GET", "/v1/endpoints/none"),
    ("PUT", "/v2/none/run"), ("GET", "/v2"), ("GET", "/v2/none/status/x"),
])
def test_trap_29_errors_are_json_and_look_like_no_job(server, method, path):
    answer = Api(server).call(method, path, data="{")
    assert answer.status_code in (400, 401, 404, 405)
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"
    assert set(answer.json()) == {"error", "code"}


def test_trap_30_the_reason_of_a_failure_is_in_the_record(endpoint, worker):
    job = taken(endpoint, worker)
    worker.done(job, {"error": json.dumps({"error_type": "<class 'ValueError'>", "error_message": "bad"})})
    assert "ValueError" in endpoint.status(job)["error"]


def test_trap_33_an_unfit_worker_is_seen(endpoint, worker):
    """Its only trace on the wire is one ping."""
    worker.ping(status="unhealthy", check="_check_memory", reason="RuntimeError: 1.2 GB free, 4.0 GB needed")
    until(lambda: "4.0 GB needed" in endpoint.api.server.log(), "the log says why", 5)


def test_trap_33_workers_are_started_without_the_checks_and_with_pings(endpoint):
    env = endpoint.worker_token()["env"]
    assert env["RUNPOD_SKIP_AUTO_SYSTEM_CHECKS"] == "true" and env["RUNPOD_SKIP_GPU_CHECK"] == "true"
    assert int(env["RUNPOD_PING_INTERVAL"]) >= 1000


def test_parallel_single_polls_of_one_worker(endpoint, worker):
    """Workers before 1.7 open several concurrent polls; each must be answered."""
    polls = [worker.park()]
    until(lambda: endpoint.health()["workers"]["ready"] == 1, "the first poll has arrived")
    # These may come after its job was given out: that they have nothing in hand would give it back.
    polls += [worker.park(busy=True) for _ in range(2)]
    jobs = {endpoint.run() for _ in range(3)}
    assert {poll.result(60).json()["id"] for poll in polls} == jobs
    for job in jobs:
        worker.done(job, {"output": 1})
    assert all("retries" not in endpoint.status(job) for job in jobs)


def test_first_result_wins_when_a_lost_worker_comes_back(endpoint, worker):
    job = taken(endpoint, worker)
    worker.ping(job)
    other = FakeWorker(endpoint)
    assert other.take()["id"] == job, "the first worker was silent for too long"
    channel = other.park_stops()
    worker.done(job, {"output": "from the first"})
    assert endpoint.status(job)["output"] == "from the first"
    assert channel.result(60) == [job], "the other holder is told to stop"
    other.done(job, {"output": "from the second"})
    assert endpoint.status(job)["output"] == "from the first"


def test_chunks_of_a_lost_attempt_are_dropped_and_offsets_go_on(endpoint, worker):
    job = taken(endpoint, worker)
    worker.chunk(job, "a0"), worker.chunk(job, "a1")
    worker.ping(job)
    other = FakeWorker(endpoint)
    assert other.take()["id"] == job
    worker.chunk(job, "a2 of a worker that no longer holds it")
    other.chunk(job, "b0")
    other.done(job, {"output": []})
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "b0"}]
    assert endpoint.ok("GET", f"/stream/{job}?offset=2") == [{"output": "b0"}]
    assert endpoint.ok("GET", f"/stream/{job}?offset=3") == []


@pytest.mark.parametrize("route", ["job-take", "job-take-batch", "job-stop"])
def test_a_worker_that_disconnected_gets_no_job(endpoint, worker, route):
    """The end of what it sends is all that is seen of a worker that has gone: a job that it got would be lost until it is
    missed."""
    with socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=60) as connection:
        connection.sendall(
            f"GET /v2/{endpoint.id}/{route}/gone?job_in_progress=0 HTTP/1.1\r\nHost: x\r\nAuthorization: {worker.token}\r\n\r\n".encode()
        )
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1000) == b"", "its poll has ended, and nothing came"
    job = endpoint.run()
    assert worker.take()["id"] == job
    assert "retries" not in endpoint.status(job)
