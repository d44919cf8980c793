"""The official JavaScript SDK as client: every call of it, in one run of `js/talk.mjs`."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.server import ADMIN_KEY

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def report(api):
    """What the script saw."""
    node = shutil.which("node")
    assert node, "the JavaScript SDK needs node on the PATH"
    echo = api.endpoint("echo.py", workersMin=1, workersMax=1)
    generator = api.endpoint("generator.py", workersMin=1, workersMax=1)
    empty = api.external()
    ids = [endpoint.id for endpoint in (echo, generator, empty)]
    done = subprocess.run(
        [node, str(HERE / "js" / "talk.mjs"), f"{api.server.url}/sdk/v2", ADMIN_KEY, *ids],
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
