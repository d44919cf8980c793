"""Webhooks: what is sent, when, how often, and where not to."""

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import Server
from harness.wait import holds, until


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


@pytest.fixture(scope="module")
def strict() -> Api:
    """The management API of a server as it is out of the box: it calls no private addresses."""
    server = Server().start()
    yield Api(server)
    server.close()


NEVER = [
    "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "0",
    "0.0.0.0", "10.1.2.3", "10.66051", "172.16.0.1", "192.168.1.1", "192.168.257", "100.64.0.1", "169.254.169.254", "0xa9fea9fe",
    "2852039166", "0251.0376.0251.0376", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:7f00:1]",
    "[::127.0.0.1]", "[64:ff9b::10.0.0.1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "[ff02::1]", "localhost", "LocalHost",
    "localhost.", "a.localhost", "user:pass@127.0.0.1", "8.8.8.8@127.0.0.1", "127.0.0.1:8080",
]
"""Addresses inside, in every spelling that is understood."""


@pytest.mark.parametrize("host", NEVER)
def test_an_address_that_is_never_called_is_refused_immediately(strict, host):
    endpoint = strict.external()
    for url in (f"http://{host}/hook", f"HTTPS://{host}"):
        for operation in ("/run", "/runsync"):
            answer = endpoint.call("POST", operation, json={"input": {}, "webhook": url})
            assert (answer.status_code, answer.json().get("code")) == (400, "webhook_never_allowed"), (url, answer.text)
            assert set(answer.json()) == {"error", "code"} and host not in answer.json()["error"]
        changed = strict.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"webhook": url})
        assert (changed.status_code, changed.json().get("code")) == (400, "webhook_never_allowed"), (url, changed.text)
    record = {"name": "x", "provider": "external", "templateId": endpoint.record["templateId"], "webhook": f"http://{host}/"}
    made = strict.call("POST", "/v1/endpoints", json=record)
    assert (made.status_code, made.json().get("code")) == (400, "webhook_never_allowed"), made.text
    assert endpoint.health()["jobs"]["inQueue"] == 0 and not strict.ok("GET", f"/v1/endpoints/{endpoint.id}").get("webhook")


@pytest.mark.parametrize("host", ["8.8.8.8", "010.8.8.8", "example.com", "127.0.0.1.example.com", "localhost.example.com", "[2606:4700::1111]"])
def test_an_address_that_may_be_one_of_the_internet_is_taken(strict, host):
    endpoint = strict.external()
    endpoint.cancel(endpoint.run({}, webhook="http://u:p@example.com:8080/x"))
    answer = endpoint.call("POST", "/run", json={"input": {}, "webhook": f"http://{host}/hook"})
    assert answer.status_code == 200, answer.text


def test_a_server_that_allows_private_addresses_takes_them_in_every_spelling(endpoint):
    for host in NEVER:
        answer = endpoint.call("POST", "/run", json={"input": {}, "webhook": f"http://{host}/hook"})
        assert answer.status_code == 200, (host, answer.text)
    endpoint.ok("POST", "/purge-queue")


def test_what_is_refused_when_it_is_dialled_is_not_tried_again(fresh_server):
    """The setting was another one when the job came in: what counts is the moment of the call."""
    server = fresh_server()
    api = Api(server)
    endpoint = api.external()
    with Receiver() as receiver:
        jobs = [endpoint.run({}, webhook=receiver.url) for _ in range(2)]
        server.terminate()
        server.flags = ()
        server.start()
        worker = FakeWorker(endpoint)
        for job in jobs:
            assert worker.take()["id"] == job
            worker.done(job, {"output": 1})

        def settled() -> bool:
            hooks = endpoint.ok("GET", "/webhooks")["webhooks"]
            return len(hooks) == 2 and all(hook["state"] == "FAILED" and len(hook["attempts"]) == 1 for hook in hooks)

        until(settled, "given up after one attempt", 5)
        error = endpoint.ok("GET", "/webhooks")["webhooks"][0]["attempts"][0]["error"]
        assert "public" in error and "settings" in error, error
        assert "not a public address" in server.log(), "the log says why"
        holds(lambda: settled() and not receiver.calls, "no call and no second attempt", 11, 0.5)
        assert all(endpoint.status(job)["status"] == "COMPLETED" for job in jobs)
