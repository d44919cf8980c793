"""Webhooks that can be checked, seen and delivered again; receivers that die, and servers that do."""

import base64
import json
import os
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import QUICK, binary
from harness.wait import holds, until
from test_cli import Cli

OPEN = ("--allow-private-webhooks", "--rate-limits", "off")
COUNT = int(os.environ.get("LONGSHORE_WEBHOOKS", "500"))
FAST = QUICK + "webhook_retry_delay_ms = 200\n"


def rotate(endpoint, **query) -> dict:
    return endpoint.api.ok("POST", f"/v1/endpoints/{endpoint.id}/webhook-secret", params=query)


def end(endpoint, **fields) -> str:
    """A job that ended immediately."""
    job = endpoint.run({"prompt": "p"}, **fields)
    endpoint.cancel(job)
    return job


def deliveries(endpoint, **query) -> list[dict]:
    return endpoint.ok("GET", "/webhooks", params=query)["webhooks"]


def wait_for_state(endpoint, state: str, count: int = 1, timeout_s: float = 20) -> list[dict]:
    until(lambda: len(deliveries(endpoint, state=state)) == count, f"{count} webhooks are {state}", timeout_s)
    return deliveries(endpoint, state=state)


def test_the_official_library_verifies_calls_and_notices_forged_ones(endpoint):
    secret = rotate(endpoint)["secret"]
    with Receiver() as receiver:
        job = end(endpoint, webhook=receiver.url)
        call = receiver.wait_for(1)[0]
    body = Webhook(secret).verify(call["raw"], dict(call["headers"]))
    assert body["id"] == job
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(call["raw"] + b" ", dict(call["headers"]))
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(call["raw"], dict(call["headers"]))


def test_both_secrets_are_good_while_a_rotation_lasts(endpoint):
    first = rotate(endpoint)["secret"]
    made = rotate(endpoint, overlapMs=600_000)
    assert [secret["expiresAt"] is None for secret in made["secrets"]] == [True, False]
    with Receiver() as receiver:
        end(endpoint, webhook=receiver.url)
        call = receiver.wait_for(1)[0]
        assert len(call["headers"]["webhook-signature"].split(" ")) == 2
        for secret in (first, made["secret"]):
            Webhook(secret).verify(call["raw"], dict(call["headers"]))
        last = rotate(endpoint, overlapMs=0)["secret"]
        end(endpoint, webhook=receiver.url)
        call = receiver.wait_for(2)[1]
        Webhook(last).verify(call["raw"], dict(call["headers"]))
        with pytest.raises(WebhookVerificationError):
            Webhook(made["secret"]).verify(call["raw"], dict(call["headers"]))


def test_secrets_are_shown_once_and_survive_a_restart(fresh_server):
    api = Api(fresh_server())
    endpoint = api.external()
    path = f"/v1/endpoints/{endpoint.id}/webhook-secret"
    assert api.ok("GET", path) == {"secrets": []}
    secret = rotate(endpoint)["secret"]
    assert secret not in json.dumps(api.ok("GET", path))
    api.server.kill()
    api.server.start()
    with Receiver() as receiver:
        end(endpoint, webhook=receiver.url)
        call = receiver.wait_for(1)[0]
        Webhook(secret).verify(call["raw"], dict(call["headers"]))
        assert secret not in api.server.log()
        assert api.call("DELETE", path).status_code == 204
        end(endpoint, webhook=receiver.url)
        assert receiver.wait_for(2)[1]["headers"]["webhook-signature"] is None


def test_attempts_of_one_webhook_have_one_id(fresh_server):
    endpoint = Api(fresh_server(flags=OPEN, config=FAST)).external()
    with Receiver(500, 200) as receiver:
        end(endpoint, webhook=receiver.url)
        calls = receiver.wait_for(2)
        ids = {call["headers"]["webhook-id"] for call in calls}
        assert len(ids) == 1
        shown = wait_for_state(endpoint, "DELIVERED")[0]
        assert {shown["id"]} == ids
        assert [attempt["status"] for attempt in shown["attempts"]] == [500, 200]


def test_a_call_that_is_tried_again_says_when(fresh_server):
    config = QUICK + "webhook_retry_delay_ms = 600000\n"
    endpoint = Api(fresh_server(flags=OPEN, config=config)).external()
    with Receiver(500) as receiver:
        job = end(endpoint, webhook=receiver.url)
        shown = wait_for_state(endpoint, "PENDING")[0]
        told = endpoint.ok("GET", f"/jobs/{job}")["webhooks"][0]
    times = [datetime.fromisoformat(text) for text in (shown["attempts"][0]["at"], shown["nextAttemptAt"])]
    assert 600 <= (times[1] - times[0]).total_seconds() < 620, shown
    assert told == shown


def test_the_log_says_what_happened_and_can_be_searched(fresh_server, tmp_path):
    server = fresh_server(flags=OPEN, config=FAST)
    api = Api(server)
    endpoint = api.external()
    with Receiver(500, 404, 503) as refuses, Receiver() as accepts:
        failed = end(endpoint, webhook=refuses.url)
        good = [end(endpoint, webhook=accepts.url) for _ in range(3)]
        shown = wait_for_state(endpoint, "FAILED")[0]
        wait_for_state(endpoint, "DELIVERED", 3)
    assert shown["job"] == failed and shown["event"] == "cancelled"
    assert [(attempt["attempt"], attempt["status"]) for attempt in shown["attempts"]] == [(1, 500), (2, 404), (3, 503)]
    assert all(attempt["latencyMs"] < 5_000 and attempt["answer"] == "" for attempt in shown["attempts"])
    assert shown["receiver"] == f"http://127.0.0.1:{refuses.port}"
    assert shown["nextAttemptAt"] is None
    assert [hook["job"] for hook in deliveries(endpoint, job=good[1])] == [good[1]]
    assert deliveries(endpoint, since="2100-01-01T00:00:00Z") == []
    first = endpoint.ok("GET", "/webhooks", params={"limit": 3})
    rest = endpoint.ok("GET", "/webhooks", params={"limit": 3, "cursor": first["cursor"]})
    assert rest["cursor"] is None
    jobs = [hook["job"] for hook in first["webhooks"] + rest["webhooks"]]
    assert sorted(jobs) == sorted([failed, *good])
    cli = Cli(tmp_path, server.url)
    printed = cli.ok("webhooks", endpoint.id, "--state", "failed").out.splitlines()
    assert len(printed) == 2 and failed in printed[1] and "HTTP 503" in printed[1], printed
    assert cli.ok("webhooks", "--job", good[0], "-o", "json").json[0]["endpoint"] == endpoint.id
    assert len(cli.ok("webhooks", "--last", "1h", "--limit", "2", "-o", "jsonl").out.splitlines()) == 2
    for wrong in ({"state": "x"}, {"job": "x"}, {"since": "yesterday"}, {"limit": 0}, {"cursor": "x"}):
        assert endpoint.call("GET", "/webhooks", params=wrong).status_code == 400, wrong


def test_the_calls_of_all_endpoints_are_listed_in_pages(fresh_server, tmp_path):
    server = fresh_server(flags=OPEN, config=FAST)
    api = Api(server)
    endpoints = [api.external() for _ in range(3)]
    with Receiver() as receiver:
        jobs = [end(endpoints[number % 3], webhook=receiver.url) for number in range(11)]
        until(lambda: api.ok("GET", "/v1/webhooks")["of"] == len(jobs), "all calls are logged")
        seen, page = [], {"cursor": ""}
        while page["cursor"] is not None:
            page = api.ok("GET", "/v1/webhooks", params={"limit": 4, "cursor": page["cursor"]})
            seen += page["webhooks"]
            assert len(page["webhooks"]) == 4 or page["cursor"] is None, page
            # What comes meanwhile moves no call to another page.
            known = page["of"]
            end(endpoints[0], webhook=receiver.url)
            until(lambda: api.ok("GET", "/v1/webhooks")["of"] == known + 1, "the new call is logged")
    assert sorted(call["job"] for call in seen) == sorted(jobs)
    tried = [call["attempts"][-1]["at"] for call in seen]
    assert tried == sorted(tried, reverse=True) and {call["endpoint"] for call in seen} == {endpoint.id for endpoint in endpoints}
    for wrong in ("x", "5.x", "5." + "-".join(seen[0]["id"].split("-")[:-1])):
        refused = api.call("GET", "/v1/webhooks", params={"cursor": wrong})
        assert (refused.status_code, refused.json()["code"]) == (400, "bad_parameter"), refused.text
    assert "the latest 5; --limit lists more" in Cli(tmp_path, server.url).ok("webhooks", "--limit", "5").err


def test_a_webhook_that_failed_is_delivered_again(fresh_server):
    api = Api(fresh_server(flags=OPEN, config=FAST))
    endpoint = api.external()
    with Receiver(500, 500, 500, 200) as receiver:
        job = end(endpoint, webhook=receiver.url)
        hook = wait_for_state(endpoint, "FAILED")[0]
        before = endpoint.status(job)
        answer = endpoint.ok("POST", f"/webhooks/{hook['id']}/redeliver")
        assert answer["job"] == job and answer["state"] == "PENDING"
        call = receiver.wait_for(4)[3]
        assert call["headers"]["webhook-id"] == hook["id"], "its receiver can tell that it is the same"
        attempts = wait_for_state(endpoint, "DELIVERED")[0]["attempts"]
        assert [attempt["attempt"] for attempt in attempts] == [1, 2, 3, 1]
        assert endpoint.status(job) == before, "a webhook never changes a job"
        # One that was accepted, too.
        endpoint.ok("POST", f"/webhooks/{hook['id']}/redeliver")
        receiver.wait_for(5)
    assert endpoint.call("POST", "/webhooks/nonsense/redeliver").status_code == 404
    gone = "0190163d-8694-739b-aea5-966c26f8ad90-1-completed"
    assert endpoint.call("POST", f"/webhooks/{gone}/redeliver").status_code == 404


def test_all_that_failed_are_delivered_again(fresh_server):
    api = Api(fresh_server(flags=OPEN, config=FAST))
    endpoint = api.external()
    with Receiver() as dead:
        url = dead.url
        port = dead.port
    jobs = {end(endpoint, webhook=url) for _ in range(3)}
    wait_for_state(endpoint, "FAILED", 3)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    assert endpoint.ok("POST", "/webhooks/redeliver", params={"since": since}) == {"redelivered": 0, "gone": 0}
    with Receiver(port=port) as alive:
        assert endpoint.ok("POST", "/webhooks/redeliver") == {"redelivered": 3, "gone": 0}
        assert {call["json"]["id"] for call in alive.wait_for(3)} == jobs


def test_all_that_failed_of_all_endpoints_are_delivered_again(fresh_server, tmp_path):
    server = fresh_server(flags=OPEN, config=FAST)
    api = Api(server)
    one, other = api.external(), api.external()
    with Receiver() as dead:
        url, port = dead.url, dead.port
    jobs = {end(endpoint, webhook=url) for endpoint in (one, other, other)}
    wait_for_state(one, "FAILED", 1)
    wait_for_state(other, "FAILED", 2)
    reader = api.ok("POST", "/v1/apikeys", json={"name": "reader", "scopes": [{"scope": "read"}]})["key"]
    assert api.call("POST", "/v1/webhooks/redeliver", headers={"Authorization": f"Bearer {reader}"}).status_code == 401
    assert api.call("POST", "/v1/webhooks/redeliver?since=soon").status_code == 400
    of_one = api.ok("POST", "/v1/apikeys", json={"name": "of one", "scopes": [{"scope": "jobs", "endpointIds": [one.id]}]})["key"]
    with Receiver(port=port) as alive:
        assert Cli(tmp_path, server.url, of_one).ok("webhooks", "redeliver", "--all").out == "1 call is delivered again\n"
        wait_for_state(one, "DELIVERED", 1)
        cli = Cli(tmp_path, server.url)
        done = cli.ok("webhooks", "redeliver", "--all", "--last", "1h", "-o", "json")
        assert json.loads(done.out) == {"redelivered": 2, "gone": 0, "unread": 0}
        assert {call["json"]["id"] for call in alive.wait_for(3)} == jobs
        wait_for_state(other, "DELIVERED", 2)
        assert cli.ok("webhooks", "redeliver", other.id).out == "no call is delivered again\n"


def test_an_endpoints_webhook_is_called_for_jobs_that_name_none(api):
    with Receiver() as of_endpoint, Receiver() as of_job:
        endpoint = api.external(webhook=of_endpoint.url)
        plain, own = end(endpoint), end(endpoint, webhook=of_job.url)
        call = of_endpoint.wait_for(1)[0]
        assert call["json"]["id"] == plain and call["json"]["webhook"] == of_endpoint.url
        assert of_job.wait_for(1)[0]["json"]["id"] == own
        endpoint.patch(webhook=None)
        end(endpoint)
        holds(lambda: len(of_endpoint.calls) == 1, "no receiver is called", 1)


def test_only_the_events_that_an_endpoint_names_are_told(api):
    with Receiver() as receiver:
        endpoint = api.external(webhook=receiver.url, webhookEvents=["failed", "progress"])
        worker = FakeWorker(endpoint)
        end(endpoint)
        job = endpoint.run({})
        worker.take()
        worker.progress(job, {"percent": 25})
        progress = receiver.wait_for(1)[0]["json"]
        assert progress["status"] == "IN_PROGRESS" and progress["output"] == {"percent": 25}
        worker.done(job, {"error": "e"})
        call = receiver.wait_for(2)[1]
        assert call["json"]["status"] == "FAILED" and call["json"]["id"] == job
        holds(lambda: len(receiver.calls) == 2, "no other call", 1)
    refusal = api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"webhookEvents": ["finished"]})
    assert refusal.status_code == 400 and "webhookEvents" in refusal.json()["error"]
    refusal = api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"webhook": "ftp://example.com"})
    assert refusal.status_code == 400


def test_a_body_that_is_too_large_has_a_link_in_place_of_the_output(fresh_server):
    config = QUICK + 'webhook_body_bytes_max = 10_000\npublic_url = "https://jobs.example.com/"\n'
    api = Api(fresh_server(config=config))
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    with Receiver() as receiver:
        job = endpoint.run({"prompt": "p"}, webhook=receiver.url)
        worker.take()
        worker.done(job, {"output": "x" * 20_000})
        call = receiver.wait_for(1)[0]
    body = call["json"]
    assert "output" not in body and body["outputOmitted"] is True and body["outputBytes"] == 20_002
    assert body["statusUrl"] == f"https://jobs.example.com/v2/{endpoint.id}/status/{job}"
    assert body["input"] == {"prompt": "p"} and len(call["raw"]) < 10_000


def test_attempts_follow_the_settings(fresh_server):
    config = QUICK + "webhook_attempts_max = 5\nwebhook_retry_delay_ms = 200\nwebhook_retry_factor = 2\n"
    endpoint = Api(fresh_server(config=config)).external()
    with Receiver(500) as receiver:
        end(endpoint, webhook=receiver.url)
        calls = receiver.wait_for(5)
        gaps = [later["at"] - earlier["at"] for earlier, later in zip(calls, calls[1:])]
        assert all(gap >= least for gap, least in zip(gaps, (0.2, 0.4, 0.8, 1.6))), gaps
        holds(lambda: len(receiver.calls) == 5, "no sixth attempt", 1)


class Proxy:
    """An HTTP proxy that notes what it is asked for, and answers by itself."""

    def __init__(self):
        self.asked: list[tuple[str, str]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                proxy.asked.append((self.command, self.path))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_CONNECT(self):
                proxy.asked.append((self.command, self.path))
                self.send_error(403)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize("setting, is_used", [("environment", True), ("off", False)])
def test_a_proxy_is_used_where_the_settings_say_so(fresh_server, setting, is_used):
    proxy = Proxy()
    server = fresh_server(flags=("--rate-limits", "off"), config=FAST + f'webhook_proxy = "{setting}"\n')
    server.kill()
    server.environment = {"HTTP_PROXY": proxy.url, "HTTPS_PROXY": proxy.url, "NO_PROXY": "localhost"}
    server.start()
    endpoint = Api(server).external()
    try:
        for url in ("http://receiver.invalid/a", "https://receiver.invalid/b"):
            end(endpoint, webhook=url)
        # Still checked here: what is written as an address, and what is called directly.
        for url in ("http://127.0.0.1:1/", "http://localhost:1/"):
            refused = endpoint.call("POST", "/run", json={"input": {}, "webhook": url})
            assert (refused.status_code, refused.json()["code"]) == (400, "webhook_never_allowed")
        wait_for_state(endpoint, "FAILED", 1 if is_used else 2)
        plain, tunnel = ("POST", "http://receiver.invalid/a"), ("CONNECT", "receiver.invalid:443")
        assert set(proxy.asked) == ({plain, tunnel} if is_used else set())
    finally:
        proxy.close()


class Deaf:
    """Takes connections and never says a word."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    def close(self) -> None:
        self._socket.close()


def submit_all(endpoint, count: int, url) -> list[str]:
    """Hands in many jobs; `url` gives each its webhook."""
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(lambda number: endpoint.run({"n": number}, webhook=url(number)), range(count)))


def test_a_dead_receiver_delays_no_other(fresh_server):
    server = fresh_server(flags=OPEN)
    endpoint = Api(server).external()
    deaf = Deaf()
    with Receiver() as healthy:
        # The dead one's come first.
        submit_all(endpoint, COUNT // 2, lambda _: deaf.url)
        jobs = submit_all(endpoint, COUNT // 2, lambda _: healthy.url)
        began = time.monotonic()
        endpoint.ok("POST", "/purge-queue")
        healthy.wait_for(len(jobs), 60 + COUNT / 100)
        took = time.monotonic() - began
        assert {call["json"]["id"] for call in healthy.calls} == set(jobs)
    deaf.close()
    print(f"{len(jobs)} webhooks to a healthy receiver took {took:.1f} s beside as many to a dead one")
    assert took < 10 * COUNT / 8 / 2, "the dead one holds its four calls for 10 s each"


def test_no_webhook_is_lost_when_the_server_is_killed(fresh_server):
    server = fresh_server(flags=OPEN, config=FAST)
    endpoint = Api(server).external()
    with Receiver() as receiver:
        jobs = submit_all(endpoint, COUNT, lambda _: receiver.url)
        endpoint.ok("POST", "/purge-queue")
        for kill in range(1, 4):
            # In the middle, however fast it is.
            receiver.wait_for(kill * COUNT // 5, 60 + COUNT / 100)
            server.kill()
            server.start()
        until(
            lambda: len({call["json"]["id"] for call in list(receiver.calls)}) == len(jobs),
            "every job's receiver was told",
            60 + COUNT / 50,
        )
        times = len(receiver.calls)
    assert {call["json"]["id"] for call in receiver.calls} == set(jobs)
    assert all(call["json"]["status"] == "CANCELLED" for call in receiver.calls)
    # What was accepted in the moment of a kill is told twice.
    print(f"{len(jobs)} webhooks, 3 kills: {times} calls, none lost, {times - len(jobs)} twice")
    assert times - len(jobs) < 3 * 300


def test_secrets_are_sealed_on_disk(fresh_server, tmp_path):
    keys = tmp_path / "keys"
    subprocess.run([binary(), "secrets", "new-key", str(keys)], check=True, capture_output=True, timeout=60)
    server = fresh_server(config=QUICK + f'secrets_key_file = "{keys}"\n')
    endpoint = Api(server).external()
    secret = rotate(endpoint)["secret"]
    server.terminate()
    plain = secret.removeprefix("whsec_").encode()
    assert not [path for path in server.data.rglob("*") if path.is_file() and plain in path.read_bytes()]
    server.start()
    with Receiver() as receiver:
        end(endpoint, webhook=receiver.url)
        call = receiver.wait_for(1)[0]
    Webhook(secret).verify(call["raw"], dict(call["headers"]))
