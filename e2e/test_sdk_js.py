"""The official JavaScript SDK as client: every call of it, in one run of `js/talk.mjs`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.server import ADMIN_KEY

HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=["/sdk/v2", "/v2"])
def report(api, request):
    """What the script saw: at the address for SDKs, and at the other where only the host was changed."""
    shape = {"streamShape": "object"} if request.param == "/v2" else {}
    node = shutil.which("node")
    assert node, "the JavaScript SDK needs node on the PATH"
    echo = api.endpoint("echo.py", workersMin=1, workersMax=1, **shape)
    generator = api.endpoint("generator.py", workersMin=1, workersMax=1, **shape)
    empty = api.external()
    ids = [endpoint.id for endpoint in (echo, generator, empty)]
    done = subprocess.run(
        [node, str(HERE / "js" / "talk.mjs"), f"{api.server.url}{request.param}", ADMIN_KEY, *ids],
        capture_output=True, text=True, timeout=300, env={**os.environ, "NO_PROXY": "127.0.0.1"}, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_run_sync(report):
    assert report["runSync"]["status"] == "COMPLETED" and report["runSync"]["output"]["echo"] == {"a": 1}


def test_run_and_status(report):
    assert report["run"]["status"] == "IN_QUEUE"
    assert report["statusSync"]["output"]["echo"] == {"b": 2}
    assert report["status"]["status"] == "COMPLETED"


def test_stream(report):
    assert [chunk["output"] for chunk in report["stream"]] == [{"n": n} for n in range(4)]


def test_cancel_health_purge(report):
    assert report["cancel"]["status"] == "CANCELLED"
    assert report["health"]["jobs"]["inQueue"] == 1
    assert report["purge"]["removed"] == 1


def test_wrong_key(report):
    assert report["wrongKey"] == 401
