"""Webhooks: what is sent, when, how often, and where not to."""

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.waiting import holds, until


def finish(endpoint, worker, body, **fields) -> str:
    """A job that ended with `body`."""
    job = endpoint.run({"prompt": "p"}, **fields)
    assert worker.take()["id"] == job
    worker.done(job, body)
    return job


def test_body_is_the_record_with_input_and_webhook(endpoint, worker):
    secret = {"accessId": "id", "accessSecret": "top-secret", "bucketName": "b", "endpointUrl": "https://s3.test"}
    with Receiver() as receiver:
        job = finish(endpoint, worker, {"output": {"n": 1}}, webhook=receiver.url, s3Config=secret)
        call = receiver.wait_for(1)[0]
        body = call["json"]
        assert body["id"] == job and body["status"] == "COMPLETED" and body["output"] == {"n": 1}
        assert body["input"] == {"prompt": "p"} and body["webhook"] == receiver.url
        assert {"delayTime", "executionTime"} <= set(body)
        assert b"top-secret" not in call["raw"] and "s3Config" not in body
        assert call["headers"]["Content-Type"].split(";")[0] == "application/json"


def test_numbers_keep_their_digits(endpoint, worker):
    with Receiver() as receiver:
        finish(endpoint, worker, '{"output": [1.0, 1e400, 9007199254740993]}', webhook=receiver.url)
        raw = receiver.wait_for(1)[0]["raw"].replace(b" ", b"")
        assert b"[1.0,1e400,9007199254740993]" in raw


@pytest.mark.parametrize("body, status", [({"output": 1}, "COMPLETED"), ({"error": "e"}, "FAILED")])
def test_once_per_finished_job(endpoint, worker, body, status):
    with Receiver() as receiver:
        finish(endpoint, worker, body, webhook=receiver.url)
        assert receiver.wait_for(1)[0]["json"]["status"] == status
        holds(lambda: len(receiver.calls) == 1, "one call only", 1.5)


def test_cancelled_jobs_are_told_too(endpoint):
    with Receiver() as receiver:
        endpoint.cancel(endpoint.run({}, webhook=receiver.url))
        assert receiver.wait_for(1)[0]["json"]["status"] == "CANCELLED"


def test_a_retried_job_is_told_again(endpoint, worker):
    with Receiver() as receiver:
        job = finish(endpoint, worker, {"error": "e"}, webhook=receiver.url)
        receiver.wait_for(1)
        endpoint.ok("POST", f"/retry/{job}")
        worker.take()
        worker.done(job, {"output": 2})
        assert receiver.wait_for(2)[1]["json"]["status"] == "COMPLETED"


def test_three_attempts_ten_seconds_apart_then_no_more(endpoint, worker):
    with Receiver(500, 302, 404) as receiver:
        job = finish(endpoint, worker, {"output": 1}, webhook=receiver.url)
        calls = receiver.wait_for(3, 30)
        gaps = [later["at"] - earlier["at"] for earlier, later in zip(calls, calls[1:])]
        assert all(9 <= gap < 19 for gap in gaps), gaps
        assert {call["path"] for call in calls} == {"/hook"}, "redirects are not followed"
        holds(lambda: len(receiver.calls) == 3, "no fourth attempt", 11)
        assert endpoint.status(job)["status"] == "COMPLETED", "a webhook never changes a job"


def test_only_200_is_success(endpoint, worker):
    with Receiver(202, 200) as receiver:
        finish(endpoint, worker, {"output": 1}, webhook=receiver.url)
        receiver.wait_for(2, 15)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
def test_private_addresses_are_refused_by_default(fresh_server, host):
    api = Api(fresh_server(flags=()))
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    with Receiver() as receiver:
        job = finish(endpoint, worker, {"output": 1}, webhook=f"http://{host}:{receiver.port}/hook")
        until(lambda: "private" in api.server.log().lower() or "not public" in api.server.log().lower(), "the log says why", 10)
        holds(lambda: not receiver.calls, "no call", 1)
        assert endpoint.status(job)["status"] == "COMPLETED"
