"""The examples of the manual's page on webhooks, as they stand there."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import ADMIN_KEY, QUICK
from harness.wait import until

OPEN = ("--allow-private-webhooks", "--rate-limits", "off")
FAST = QUICK + "webhook_retry_delay_ms = 200\n"
PAGE = (Path(__file__).parent.parent / "docs/manual/webhooks.md").read_text()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def example(fresh_server, tmp_path):
    """Runs a block of the page in one folder, with the receiver's port replaced by a free one."""
    endpoint = Api(fresh_server()).external()
    port = str(free_port())
    environment = {**os.environ, "SERVER": endpoint.api.server.url, "KEY": ADMIN_KEY, "ENDPOINT": endpoint.id}

    def is_listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(port))) == 0

    class Example:
        def __init__(self):
            self.endpoint = endpoint
            self.secret = ""

        def blocks(self, language: str) -> list[str]:
            found = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)
            return [block.replace("9000", port) for block in found]

        def shell(self, script: str) -> list[dict]:
            """What each line that the script prints says."""
            done = subprocess.run(
                ["bash", "-euc", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
            # curl adds no newline.
            documents, decoder, rest = [], json.JSONDecoder(), done.stdout.strip()
            while rest:
                document, end = decoder.raw_decode(rest)
                documents.append(document)
                rest = rest[end:].strip()
            return documents

        def receiver(self, program: str) -> subprocess.Popen:
            secret = json.loads((tmp_path / "secret.json").read_text())["secret"]
            process = subprocess.Popen(
                [sys.executable, "-uc", program],
                env={**environment, "WEBHOOK_SECRET": secret},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            until(is_listening, "the receiver listens")
            return process

    return Example()


def test_the_examples_do_what_the_page_says(example):
    run, of_endpoint, make_secret, export_secret, rotate, show_failed, redeliver = example.blocks("sh")
    worker = FakeWorker(example.endpoint)
    (job,) = example.shell(run)
    (changed,) = example.shell(of_endpoint)
    assert changed["webhookEvents"] == ["completed", "failed", "progress"]
    assert example.shell(make_secret) == []
    assert example.shell(f'{export_secret}\n[[ "$WEBHOOK_SECRET" == whsec_* ]]') == []
    receiver = example.receiver(*example.blocks("python"))
    try:
        worker.take()
        worker.done(job["id"], {"output": {"images": 1}})
        assert receiver.stdout.readline() == f"{job['id']} COMPLETED\n"
        made, shown = example.shell(rotate)
        assert made["secret"].startswith("whsec_") and len(shown["secrets"]) == 2
        by_default = example.endpoint.run({"prompt": "p"})
        worker.take()
        worker.done(by_default, {"output": 2})
        assert receiver.stdout.readline() == f"{by_default} COMPLETED\n"
        # It still has the first of the two secrets.
        assert example.shell(show_failed) == [{"webhooks": [], "cursor": None, "pausedReceivers": []}]
        assert example.shell(redeliver) == [{"redelivered": 0, "gone": 0}]
    finally:
        receiver.kill()
        receiver.wait(60)
        receiver.stdout.close()


def members(value) -> object:
    """The names and kinds of values of a document, without the values."""
    if isinstance(value, dict):
        return {name: members(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [members(inner) for inner in value]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def test_the_records_on_the_page_have_the_members_of_real_ones(fresh_server):
    shown_call, shown_list = (json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S))
    endpoint = Api(fresh_server(flags=OPEN, config=FAST)).external()
    worker = FakeWorker(endpoint)

    def attempts_of_failed(receiver: Receiver) -> list[dict]:
        """The attempts of the call of a job that ends now."""
        job = endpoint.run({"prompt": "a crane"}, webhook=receiver.url)
        worker.take()
        worker.done(job, {"output": {"images": 1}})
        failed = {"job": job, "state": "FAILED"}
        (call,) = until(lambda: endpoint.ok("GET", "/webhooks", params=failed)["webhooks"], "the call has failed")
        assert call.keys() == shown_list["webhooks"][0].keys()
        return call["attempts"]

    with Receiver(503) as receiver:
        refused = attempts_of_failed(receiver)
        assert members(receiver.calls[0]["json"]) == members(shown_call)
    with Receiver() as gone:
        pass
    unanswered = attempts_of_failed(gone)
    (shown,) = shown_list["webhooks"]
    assert [members(of[0]) for of in (refused, unanswered)] == [members(attempt) for attempt in shown["attempts"]]
