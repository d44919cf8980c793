"""Deployed folders in containers, and the worker runtime there."""

import subprocess
from pathlib import Path

from harness.client import Api
from harness.docker import WORKER
from harness.docker_endpoint import IMAGE, api, cause, config, daemon, docked, end, endpoint, needs_docker  # noqa: F401
from harness.server import ADMIN_KEY, Server
from harness.wait import until

pytestmark = needs_docker


def longshore(server, *words: str) -> subprocess.CompletedProcess:
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LONGSHORE_URL": server.url, "LONGSHORE_API_KEY": ADMIN_KEY}
    return subprocess.run([server.program, *words], capture_output=True, text=True, timeout=240, env=environment)


def make_folder(folder: Path, text: str) -> None:
    (folder / "handler.py").write_text(WORKER.read_text())
    (folder / "lib").mkdir(exist_ok=True)
    (folder / "lib" / "data.txt").write_text(text)
    (folder / "test_input.json").write_text('{"input": {"do": "list", "path": "."}}')


def test_a_folder_is_deployed_into_the_base_image(docked, tmp_path):
    make_folder(tmp_path, "one")
    done = longshore(docked, "deploy", "--provider", "docker", str(tmp_path))
    assert done.returncode == 0 and '"handler.py"' in done.stdout + done.stderr, done.stdout + done.stderr
    (mine,) = [one for one in Api(docked).ok("GET", "/v1/endpoints") if one["provider"] == "docker"]
    listed = Api(docked).ok("POST", f"/v2/{mine['id']}/runsync", json={"input": {"do": "list", "path": "/longshore/code/lib"}})
    assert listed["output"] == ["data.txt"]
    # The code is the same for all workers: one cannot change it.
    changed = {"do": "write", "path": "/longshore/code/handler.py", "text": "x"}
    Api(docked).ok("POST", f"/v2/{mine['id']}/run", json={"input": changed, "policy": {"maxRetries": 0}})
    own = {"do": "write", "path": "scratch", "text": "mine"}
    assert Api(docked).ok("POST", f"/v2/{mine['id']}/runsync?wait=90000", json={"input": own})["status"] == "COMPLETED"
    codes = (docked.data / "code").rglob("handler.py")
    assert all(code.read_text() == WORKER.read_text() for code in codes)
    assert Api(docked).call("DELETE", f"/v1/endpoints/{mine['id']}").status_code < 300


def test_without_a_base_image_a_folder_is_refused_with_the_setting(daemon, tmp_path):
    server = Server(config=config(daemon)).start()
    try:
        make_folder(tmp_path, "one")
        done = longshore(server, "deploy", "--no-sample", "--provider", "docker", str(tmp_path))
        assert done.returncode == 0, done.stderr
        (mine,) = Api(server).ok("GET", "/v1/endpoints")
        Api(server).ok("POST", f"/v2/{mine['id']}/run", json={"input": {}})

        def told():
            cause = Api(server).ok("GET", f"/v2/{mine['id']}/explain")["cause"]
            assert cause["code"] == "start_failed", cause
            return cause["text"]

        assert "`base_image` in [docker]" in until(told, "the cause", 30)
    finally:
        server.close()


def test_the_worker_runtime_is_before_the_folders_of_python(api):
    mine = endpoint(api, template={"env": {"PYTHONPATH": "/own"}})
    output = mine.runsync({"env": ["PYTHONPATH"]}, wait_ms=60000)["output"]
    assert output["env"] == {"PYTHONPATH": "/longshore/runtime:/own"}
    assert "sitecustomize.py" in mine.runsync({"do": "list", "path": "/longshore/runtime"}, wait_ms=60000)["output"]
    end(mine)
    off = endpoint(api, template={"env": {"LONGSHORE_RUNTIME": "off"}})
    assert off.runsync({"env": ["PYTHONPATH"]}, wait_ms=60000)["output"]["env"] == {"PYTHONPATH": None}
    end(off)
