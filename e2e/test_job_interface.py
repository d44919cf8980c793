"""The job interface, row by row: operations, records, errors, limits and the life of a job.

The workers here are played by the tests, so that every step happens when the test says so.
"""

import json
import re
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.wait import until

UUID7 = re.compile(r"^(sync-)?[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")


def assert_error(answer, status: int) -> dict:
    """The one shape of errors: exactly `error` and `code`."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text[:500]}"
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"
    body = answer.json()
    assert set(body) == {"error", "code"}, body
    assert re.fullmatch(r"[a-z][a-z0-9_]*", body["code"]), body
    assert body["error"], body
    return body


# Operations and records


def test_run_answers_id_and_status_immediately(endpoint):
    answer = endpoint.call("POST", "/run", json={"input": {"a": 1}})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"
    body = answer.json()
    assert set(body) == {"id", "status"} and body["status"] == "IN_QUEUE"
    assert UUID7.match(body["id"]) and not body["id"].startswith("sync-")


def test_runsync_answers_the_finished_record(endpoint, worker):
    poll = worker.park()

    def finish():
        job = poll.result(60).json()
        worker.done(job["id"], {"output": {"ok": True}})

    with ThreadPoolExecutor(1) as threads:
        finished = threads.submit(finish)
        record = endpoint.runsync({"a": 1})
        finished.result(60)
    assert record["status"] == "COMPLETED" and record["output"] == {"ok": True}
    assert record["id"].startswith("sync-") and UUID7.match(record["id"])
    assert isinstance(record["delayTime"], int) and isinstance(record["executionTime"], int)
    assert record["workerId"] == worker.id and "retries" not in record and "error" not in record


def test_runsync_whose_wait_passes_answers_the_unfinished_record(endpoint):
    record = endpoint.runsync({}, wait_ms=1000)
    assert record["status"] == "IN_QUEUE" and record["id"].startswith("sync-")


def test_record_fields_appear_as_the_job_goes_on(endpoint, worker):
    job = endpoint.run({"a": 1})
    queued = endpoint.status(job)
    assert queued == {"id": job, "status": "IN_QUEUE"}
    assert worker.take()["id"] == job
    running = endpoint.status(job)
    assert running["status"] == "IN_PROGRESS" and running["workerId"] == worker.id
    assert isinstance(running["delayTime"], int) and isinstance(running["executionTime"], int)
    assert "output" not in running and "error" not in running and "retries" not in running
    worker.progress(job, {"step": 1})
    assert endpoint.status(job)["output"] == {"step": 1}
    worker.done(job, {"output": [1, 2]})
    done = endpoint.status(job)
    assert done["status"] == "COMPLETED" and done["output"] == [1, 2]
    assert {"delayTime", "executionTime", "workerId"} <= set(done)


def test_failed_record_has_the_error(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.done(job, {"error": "out of cheese", "output": {"partial": 1}})
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and record["error"] == "out of cheese"
    assert record["output"] == {"partial": 1}


def test_status_accepts_post_and_status_sync_holds_until_the_end(endpoint, worker):
    job = endpoint.run()
    assert endpoint.ok("POST", f"/status/{job}")["status"] == "IN_QUEUE"
    assert endpoint.ok("GET", f"/status-sync/{job}?wait=1000")["status"] == "IN_QUEUE"
    worker.take()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(endpoint.ok, "POST", f"/status-sync/{job}?wait=30000")
        worker.done(job, {"output": 5})
        assert waiting.result(60)["output"] == 5


def test_cancel_of_a_queued_job(endpoint, worker):
    first, second = endpoint.run(), endpoint.run()
    assert endpoint.cancel(first) == {"id": first, "status": "CANCELLED"}
    assert worker.take()["id"] == second, "a cancelled job is not handed out"
    assert endpoint.status(first)["status"] == "CANCELLED"


def test_cancel_of_a_running_job_tells_its_worker(endpoint, worker):
    job = endpoint.run()
    worker.take()
    channel = worker.park_stops()
    assert endpoint.cancel(job) == {"id": job, "status": "CANCELLED"}
    assert channel.result(60) == [job]
    worker.done(job, {"output": "too late"})
    record = endpoint.status(job)
    assert record["status"] == "CANCELLED" and "output" not in record


def test_cancel_of_a_finished_job_answers_what_it_is(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.done(job, {"output": 1})
    assert endpoint.cancel(job) == {"id": job, "status": "COMPLETED"}
    assert endpoint.status(job)["output"] == 1


def test_retry_of_a_failed_job_starts_it_anew(endpoint, worker):
    job = endpoint.run({"n": 1})
    worker.take()
    worker.chunk(job, "old")
    worker.done(job, {"error": "first time", "output": 3})
    assert endpoint.ok("POST", f"/retry/{job}") == {"id": job, "status": "IN_QUEUE"}
    assert endpoint.status(job) == {"id": job, "status": "IN_QUEUE"}, "output and error are cleared"
    again = worker.take()
    assert again["id"] == job and again["input"] == {"n": 1}
    worker.chunk(job, "new")
    worker.done(job, {"output": 4})
    assert endpoint.status(job)["output"] == 4
    assert endpoint.ok("GET", f"/stream/{job}?offset=0") == [{"output": "new"}]


@pytest.mark.parametrize("state", ["IN_QUEUE", "IN_PROGRESS", "COMPLETED", "CANCELLED"])
def test_retry_of_any_other_job_is_refused(endpoint, worker, state):
    job = endpoint.run()
    if state in ("IN_PROGRESS", "COMPLETED"):
        worker.take()
    if state == "COMPLETED":
        worker.done(job, {"output": 1})
    if state == "CANCELLED":
        endpoint.cancel(job)
    before = endpoint.status(job)["status"]
    assert before == state
    assert assert_error(endpoint.call("POST", f"/retry/{job}"), 400)["code"] == "job_not_retryable"
    assert endpoint.status(job)["status"] == state


def test_purge_cancels_what_is_queued_and_nothing_else(endpoint, worker):
    running = endpoint.run()
    worker.take()
    queued = [endpoint.run() for _ in range(5)]
    assert endpoint.ok("POST", "/purge-queue") == {"removed": 5, "status": "completed"}
    assert {endpoint.wait_for(job)["status"] for job in queued} == {"CANCELLED"}
    assert endpoint.status(running)["status"] == "IN_PROGRESS"
    later = endpoint.run()
    assert endpoint.status(later)["status"] == "IN_QUEUE", "what comes after a purge stays"


def test_health_counts(endpoint, worker):
    empty = endpoint.health()
    assert set(empty) == {"jobs", "workers"}
    assert set(empty["jobs"]) >= {"completed", "failed", "inProgress", "inQueue", "retried"}
    assert set(empty["workers"]) == {"idle", "initializing", "ready", "running", "throttled", "unhealthy"}
    jobs = [endpoint.run() for _ in range(4)]
    first = worker.take()["id"]
    worker.done(first, {"output": 1})
    second = worker.take()["id"]
    worker.done(second, {"error": "no"})
    worker.take()
    health = endpoint.health()
    assert health["jobs"]["completed"] == 1 and health["jobs"]["failed"] == 1
    assert health["jobs"]["inProgress"] == 1 and health["jobs"]["inQueue"] == 1
    assert health["workers"]["running"] == 1
    endpoint.ok("POST", f"/retry/{second}")
    assert endpoint.health()["jobs"]["retried"] == 1
    assert len(jobs) == 4


def test_jobs_leave_in_the_order_they_came(endpoint, worker):
    jobs = [endpoint.run({"n": n}) for n in range(10)]
    taken = []
    for _ in jobs:
        job = worker.take()
        taken.append(job["id"])
        worker.done(job["id"], {"output": None})
    assert taken == jobs


def test_requests_lists_pages_newest_first(endpoint, worker):
    jobs = [endpoint.run({"n": n}) for n in range(5)]
    worker.take()
    worker.done(jobs[0], {"output": "x"})
    first = endpoint.ok("GET", "/requests?limit=2")
    assert [r["id"] for r in first["requests"]] == [jobs[4], jobs[3]] and first["cursor"]
    seen = [r["id"] for r in first["requests"]]
    page = first
    while page["cursor"]:
        page = endpoint.ok("GET", f"/requests?limit=2&cursor={page['cursor']}")
        seen += [r["id"] for r in page["requests"]]
    assert seen == jobs[::-1]
    done = endpoint.ok("GET", "/requests?status=COMPLETED")
    assert [r["id"] for r in done["requests"]] == [jobs[0]] and done["cursor"] is None
    record = done["requests"][0]
    assert record["status"] == "COMPLETED" and record["output"] == "x"
    assert {"createdAt", "startedAt", "completedAt"} <= set(record)


@pytest.mark.parametrize("limit", ["0", "1001", "some"])
def test_requests_refuses_a_limit_out_of_range(endpoint, limit):
    assert_error(endpoint.call("GET", f"/requests?limit={limit}"), 400)


def test_slug_is_a_second_address(api):
    slug = f"model-{uuid.uuid4().hex[:12]}"
    endpoint = api.external(slug=slug)
    job = api.ok("POST", f"/v2/{slug}/run", json={"input": {}})["id"]
    assert endpoint.status(job)["status"] == "IN_QUEUE"


def test_unknown_keys_and_s3_config_reach_only_the_worker(endpoint, worker):
    s3 = {"accessId": "id", "accessSecret": "very-secret", "bucketName": "b", "endpointUrl": "https://s3.test"}
    extra = {"webhook": "http://127.0.0.1:9/none", "policy": {"lowPriority": True}, "colour": {"deep": [1]}}
    job = endpoint.run({"a": 1}, s3Config=s3, **extra)
    seen = worker.take()
    assert seen["id"] == job and seen["input"] == {"a": 1}
    assert seen["s3Config"] == s3 and seen["colour"] == {"deep": [1]}
    assert seen["webhook"] == extra["webhook"] and seen["policy"] == extra["policy"]
    for answer in (endpoint.call("GET", f"/status/{job}"), endpoint.call("GET", "/requests")):
        assert "very-secret" not in answer.text
    assert "very-secret" not in endpoint.api.server.log()


def test_keys_of_the_server_in_a_job_are_the_servers(endpoint, worker):
    body = '{"id": "mine", "status": "COMPLETED", "delayTime": 5, "input": {"a": 1}}'
    job = endpoint.ok("POST", "/run", data=body)["id"]
    text = worker.take_raw().text
    assert json.loads(text)["id"] == job and text.count('"id"') == 1


@pytest.mark.parametrize("value", ["1.0", "1e400", "9007199254740993", "-0.0", "18446744073709551616", "0.1e-7"])
def test_numbers_keep_their_digits(endpoint, worker, value):
    endpoint.ok("POST", "/run", data='{"input": {"n": %s}}' % value)
    taken = worker.take_raw().text
    assert re.search(r'"n":\s*' + re.escape(value) + r"\s*}", taken), taken
    job = json.loads(taken)["id"]
    worker.done(job, '{"output": {"n": %s}}' % value)
    text = endpoint.call("GET", f"/status/{job}").text
    assert re.search(r'"n":\s*' + re.escape(value) + r"\s*}", text), text


def test_text_survives_in_every_script(endpoint, worker):
    input = {"text": 'Grüße 漢字 🚢 \u0000 "quoted" \\ \u2028', "": {"nested": [[], {}]}}
    job = endpoint.run(input)
    assert worker.take()["input"] == input
    worker.done(job, json.dumps({"output": input}, ensure_ascii=False))
    assert endpoint.status(job)["output"] == input


def test_a_client_that_disconnects_leaves_the_job(endpoint, worker):
    body = b'{"input": {"n": 1}}'
    with socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=60) as connection:
        connection.sendall(
            f"POST /v2/{endpoint.id}/runsync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {endpoint.api.key}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        )
        job = worker.take()["id"]
    worker.done(job, {"output": 1})
    assert endpoint.status(job)["output"] == 1


def test_deleting_an_endpoint_answers_waiting_clients(api):
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    # Both polls are open long before the job has made its way to the worker.
    poll, poll_job = worker.park(), worker.park_stops()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(endpoint.call, "POST", "/runsync?wait=60000", json={"input": {}})
        job = poll.result(60).json()["id"]
        began = time.monotonic()
        assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
        answer = waiting.result(60)
        assert time.monotonic() - began < 30, "before its wait is over"
        if answer.status_code == 200:
            assert answer.json()["status"] == "CANCELLED"
        else:
            assert_error(answer, 404)
        assert poll_job.result(60) in ([job], [])


# Streams


def test_stream_drains_and_offset_does_not(endpoint, worker):
    job = endpoint.run()
    worker.take()
    for n in range(3):
        worker.chunk(job, {"n": n})
    chunks = [{"output": {"n": n}} for n in range(3)]
    assert endpoint.ok("GET", f"/stream/{job}?offset=0") == chunks
    assert endpoint.ok("GET", f"/stream/{job}?offset=2") == chunks[2:]
    assert endpoint.ok("GET", f"/stream/{job}") == chunks, "offsets do not drain"
    worker.chunk(job, "late")
    assert endpoint.ok("POST", f"/stream/{job}") == [{"output": "late"}]
    worker.done(job, {"output": []}, "gpu=none&isStream=true")
    assert endpoint.ok("GET", f"/stream/{job}") == []


def test_stream_waits_for_the_next_chunk(endpoint, worker):
    job = endpoint.run()
    worker.take()
    assert endpoint.ok("GET", f"/stream/{job}?wait=0") == []
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(endpoint.ok, "GET", f"/stream/{job}?wait=20000")
        worker.chunk(job, 0)
        assert reading.result(60) == [{"output": 0}]


def test_sdk_mount_envelopes_the_stream(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.chunk(job, None)
    endpoint.mount = f"/sdk{endpoint.mount}"
    assert endpoint.ok("GET", f"/stream/{job}") == {"status": "IN_PROGRESS", "stream": [{"output": None}]}
    worker.done(job, {"output": 1})
    assert endpoint.ok("GET", f"/stream/{job}") == {"status": "COMPLETED", "stream": []}
    assert endpoint.status(job)["output"] == 1


def test_stream_of_chunks_too_long_is_split(endpoint, worker):
    job = endpoint.run()
    worker.take()
    text = "ü" * 1_200_000
    worker.chunk(job, text)
    items = ["x" * 300_000] * 5
    worker.chunk(job, items)
    worker.done(job, {"output": []})
    raw = endpoint.call("GET", f"/stream/{job}?offset=0&wait=0").json()
    texts = [chunk["output"] for chunk in raw if isinstance(chunk["output"], str)]
    lists = [chunk["output"] for chunk in raw if isinstance(chunk["output"], list)]
    assert len(texts) > 1 and "".join(texts) == text
    assert len(lists) > 1 and sum(lists, []) == items
    assert all(len(json.dumps(c["output"], ensure_ascii=False).encode()) <= 1_000_000 for c in raw)


def test_a_stream_chunk_that_is_an_object_is_split_by_its_largest_member(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.chunk(job, {"n": 1, "k": "x" * 1_100_000})
    worker.done(job, {"output": []})
    first, *more = [chunk["output"] for chunk in endpoint.call("GET", f"/stream/{job}?offset=0&wait=0").json()]
    assert first["n"] == 1 and more and all(set(part) == {"k"} for part in more)
    assert first["k"] + "".join(part["k"] for part in more) == "x" * 1_100_000
    assert endpoint.wait_for(job)["status"] == "COMPLETED"


# Errors


@pytest.mark.parametrize("body", [
    "", "{", "[]", "null", '"text"', "{}", '{"input": 1}', '{"input": []}', '{"input": "text"}', '{"input": null}',
    '{"input": {}} trailing', '{"input": {"a": NaN}}', '{"input": {}, "webhook": 5}',
    '{"input": {}, "webhook": "relative/path"}', '{"input": {}, "webhook": "ftp://host/x"}',
    '{"input": {}, "policy": 5}', '{"input": {}, "policy": {"lowPriority": "yes"}}',
    '{"input": {}, "policy": {"ttl": "long"}}',
])
@pytest.mark.parametrize("path", ["/run", "/runsync"])
def test_malformed_bodies_are_400_and_change_nothing(endpoint, path, body):
    assert_error(endpoint.call("POST", path, data=body), 400)
    assert endpoint.health()["jobs"]["inQueue"] == 0


@pytest.mark.parametrize("policy, fits", [
    ({"executionTimeout": 4999}, False), ({"executionTimeout": 5000}, True),
    ({"executionTimeout": 604_800_000}, True), ({"executionTimeout": 604_800_001}, False),
    ({"ttl": 9999}, False), ({"ttl": 10000}, True), ({"ttl": 604_800_000}, True), ({"ttl": 604_800_001}, False),
    ({"ttl": -1}, False), ({"executionTimeout": 0}, False), ({"executionTimeout": 6000.5}, False),
])
def test_policy_limits(endpoint, policy, fits):
    answer = endpoint.call("POST", "/run", json={"input": {}, "policy": policy})
    if fits:
        assert answer.status_code == 200, answer.text
    else:
        assert_error(answer, 400)


@pytest.mark.parametrize("wait, fits", [("999", False), ("1000", True), ("300001", False), ("soon", False), ("-5", False)])
def test_wait_limits(endpoint, wait, fits):
    answer = endpoint.call("POST", f"/runsync?wait={wait}", json={"input": {}})
    if fits:
        assert answer.status_code == 200, answer.text
    else:
        assert_error(answer, 400)
        assert endpoint.health()["jobs"]["inQueue"] == 0


@pytest.mark.parametrize("ttl", ["999", "604800001", "never"])
def test_status_ttl_limits(endpoint, ttl):
    job = endpoint.run()
    assert_error(endpoint.call("GET", f"/status/{job}?ttl={ttl}"), 400)


@pytest.mark.parametrize("job", ["nope", "0192f000-0000-7000-8000-000000000000", "sync-x", "%2e%2e", "a" * 500])
@pytest.mark.parametrize("method, operation", [
    ("GET", "status"), ("GET", "status-sync"), ("GET", "stream"), ("POST", "cancel"), ("POST", "retry"),
])
def test_unknown_job_is_404(endpoint, method, operation, job):
    assert_error(endpoint.call(method, f"/{operation}/{job}"), 404)


@pytest.mark.parametrize("method, rest", [
    ("POST", "run"), ("POST", "runsync?wait=1000"), ("GET", "status/x"), ("GET", "stream/x"), ("POST", "cancel/x"),
    ("POST", "retry/x"), ("POST", "purge-queue"), ("GET", "health"), ("GET", "requests"),
])
class TestKeys:
    def test_unknown_endpoint_is_404(self, api, method, rest):
        assert_error(api.call(method, f"/v2/doesnotexist00/{rest}", json={"input": {}}), 404)

    @pytest.mark.parametrize("key", [None, "", "Bearer ", "Bearer wrong", "ls_wrong", "Basic dXNlcjpwYXNz"])
    def test_missing_or_wrong_key_is_401_even_where_nothing_is(self, api, method, rest, key):
        assert_error(api.call(method, f"/v2/doesnotexist00/{rest}", json={"input": {}}, headers={"Authorization": key}), 401)

    def test_bare_key_is_accepted(self, api, endpoint, method, rest):
        answer = endpoint.call(method, f"/{rest}", json={"input": {}}, headers={"Authorization": api.key})
        assert answer.status_code != 401


def test_worker_token_is_no_client_key(endpoint):
    token = endpoint.worker_token()["token"]
    assert_error(endpoint.call("POST", "/run", json={"input": {}}, headers={"Authorization": token}), 401)
    assert_error(endpoint.api.call("GET", "/v1/endpoints", headers={"Authorization": f"Bearer {token}"}), 401)


def test_deleted_endpoint_is_404(api):
    endpoint = api.external()
    job = endpoint.run()
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    assert_error(endpoint.call("GET", f"/status/{job}"), 404)
    assert_error(endpoint.call("POST", "/run", json={"input": {}}), 404)


def test_body_is_not_read_before_the_key_is_checked(endpoint):
    """The answer comes although the body that was announced never does."""
    with socket.create_connection(("127.0.0.1", endpoint.api.server.port), timeout=60) as connection:
        connection.sendall(
            f"POST /v2/{endpoint.id}/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n"
            "Content-Type: application/json\r\nContent-Length: 9000000\r\n\r\n".encode()
        )
        assert connection.recv(4096).startswith(b"HTTP/1.1 401 ")


def exact_body(size: int) -> bytes:
    """A valid body of exactly `size` bytes."""
    frame = b'{"input": {"x": ""}}'
    return frame[:-3] + b"y" * (size - len(frame)) + frame[-3:]


@pytest.mark.parametrize("path, limit", [("/run", 10_000_000), ("/runsync?wait=1000", 20_000_000)])
def test_body_limit_is_exact(endpoint, worker, path, limit):
    assert_error(endpoint.call("POST", path, data=exact_body(limit + 1)), 413)
    assert endpoint.health()["jobs"]["inQueue"] == 0
    assert endpoint.call("POST", path, data=exact_body(limit)).status_code == 200
    assert len(worker.take()["input"]["x"]) == limit - 20


def test_body_over_the_limit_is_refused_without_a_length(endpoint):
    """A chunked body, without a length."""
    pieces = (b" " * 1_000_000 for _ in range(11))
    try:
        answer = endpoint.call("POST", "/run", data=pieces)
    except OSError:
        return  # Refused while still sending: the answer may get lost, the job must not exist.
    finally:
        assert endpoint.health()["jobs"]["inQueue"] == 0
    assert_error(answer, 413)


def test_method_and_path_that_do_not_exist(endpoint):
    assert_error(endpoint.call("DELETE", "/run"), 405)
    assert_error(endpoint.call("GET", "/unknown-operation"), 404)


def test_output_over_the_limit_fails_the_job(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.done(job, {"output": "x" * 10_000_100})
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and "output" not in record
    assert "10000102" in record["error"].replace(" ", "").replace("_", "").replace(",", ""), record["error"]


# Idempotency


def test_idempotency_key_returns_the_first_job(endpoint, worker):
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    first = endpoint.ok("POST", "/run", json={"input": {"a": 1}}, headers=headers)
    again = endpoint.ok("POST", "/run", json={"input": {"a": 1}}, headers=headers)
    assert again["id"] == first["id"] and endpoint.health()["jobs"]["inQueue"] == 1
    assert_error(endpoint.call("POST", "/run", json={"input": {"a": 2}}, headers=headers), 409)
    worker.take()
    worker.done(first["id"], {"output": 7})
    last = endpoint.ok("POST", "/run", json={"input": {"a": 1}}, headers=headers)
    assert last["id"] == first["id"] and last["status"] == "COMPLETED"


def test_idempotency_key_belongs_to_its_endpoint(api, endpoint):
    headers = {"Idempotency-Key": "one"}
    other = api.external()
    assert endpoint.ok("POST", "/run", json={"input": {}}, headers=headers)["id"] != other.ok(
        "POST", "/run", json={"input": {}}, headers=headers)["id"]


@pytest.mark.parametrize("length, fits", [(255, True), (256, False)])
def test_idempotency_key_length(endpoint, length, fits):
    answer = endpoint.call("POST", "/run", json={"input": {}}, headers={"Idempotency-Key": "k" * length})
    assert answer.status_code == 200 if fits else assert_error(answer, 400)


# Time


def test_status_ttl_deletes_a_job_in_any_state(endpoint, worker):
    running = endpoint.run()
    worker.take()
    queued = endpoint.run()
    for job in (running, queued):
        assert endpoint.ok("GET", f"/status/{job}?ttl=1000")["id"] == job
    channel = worker.park_stops()
    for job in (running, queued):
        until(lambda job=job: endpoint.is_gone(job), "the job is deleted", 10)
    assert channel.result(60) == [running], "a running job is told to stop"
    worker.done(running, {"output": 1})
    assert endpoint.is_gone(running)


def test_ttl_deletes_a_queued_job(endpoint):
    kept = endpoint.run()
    began = time.monotonic()
    job = endpoint.run(policy={"ttl": 10000})
    until(lambda: endpoint.is_gone(job), "the job is deleted", every_s=0.5)
    assert time.monotonic() - began >= 9.9, "the job lives until its ttl"
    assert endpoint.status(kept)["status"] == "IN_QUEUE"


def test_retention_of_finished_jobs(api):
    endpoint = api.external(resultRetentionMs=1500, syncResultRetentionMs=60000)
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    worker.done(job, {"error": "x"})
    sync = endpoint.runsync({}, wait_ms=1000)["id"]
    assert worker.take()["id"] == sync
    worker.done(sync, {"output": 1})
    until(lambda: endpoint.is_gone(job), "the result expires", 10)
    assert_error(endpoint.call("POST", f"/retry/{job}"), 404)
    assert endpoint.status(sync)["status"] == "COMPLETED", "runsync jobs have their own retention"


def test_execution_timeout(endpoint, worker):
    job = endpoint.run(policy={"executionTimeout": 5000})
    worker.take()
    channel = worker.park_stops()
    until(lambda: worker.ping(job) and endpoint.status(job)["status"] != "IN_PROGRESS", "it ends", every_s=0.5)
    record = endpoint.status(job)
    assert record["status"] == "TIMED_OUT" and 5000 <= record["executionTime"] < 60_000
    assert channel.result(60) == [job]
    assert endpoint.ok("POST", f"/retry/{job}")["status"] == "IN_QUEUE"


def test_handler_errors_are_retried_only_where_the_endpoint_says_so(api):
    endpoint = api.external(retryOn=["workerLost", "handlerError"], maxRetries=1)
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    worker.done(job, {"error": "once"})
    assert worker.take()["id"] == job
    assert endpoint.status(job)["retries"] == 1
    worker.done(job, {"error": "twice"})
    record = endpoint.status(job)
    assert record["status"] == "FAILED" and record["error"] == "twice" and record["retries"] == 1


def test_full_queue_is_429(api):
    endpoint = api.external(maxQueueLength=2)
    endpoint.run(), endpoint.run()
    answer = endpoint.call("POST", "/run", json={"input": {}})
    assert_error(answer, 429)
    assert int(answer.headers["Retry-After"]) >= 1


def test_service_addresses_need_no_key(server):
    api = Api(server)
    for path in ("/healthz", "/readyz"):
        assert api.call("GET", path, headers={"Authorization": None}).status_code == 200, path
