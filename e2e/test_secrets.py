"""Secrets: nothing of them on disk when a key is set, keys changed, and what a server without the key says."""

import json
import os
import subprocess

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY, QUICK, binary

HUSH = "hush-b52f0e"


def secrets(server, *args: str) -> subprocess.CompletedProcess:
    """`longshore secrets …`, with the server's settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LONGSHORE_")}
    command = [binary(), "secrets", *args]
    return subprocess.run(command, env=environment, cwd=server.folder, capture_output=True, text=True, timeout=60)


def sealing(fresh_server, tmp_path):
    """A server with a file of keys, and what is secret in it."""
    path = tmp_path / "keys"
    run = subprocess.run([binary(), "secrets", "new-key", str(path)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and path.stat().st_mode & 0o777 == 0o600, run
    server = fresh_server(config=f'secrets_key_file = "{path}"\n' + QUICK)
    return server, path


def fill(server) -> tuple:
    api = Api(server)
    endpoint = api.external(templateId=api.template(env={"TOKEN": HUSH})["id"])
    api.ok("POST", "/v1/containerregistryauth", json={"name": "hub", "username": "me", "password": HUSH})
    config = {"accessId": "me", "accessSecret": HUSH, "bucketName": "b", "endpointUrl": "https://s3.example"}
    jobs = [endpoint.run({"n": "x" * size}, s3Config=config) for size in (1, 400_000)]
    return endpoint, jobs, config


def files_with(server, text: str) -> list:
    return [path for path in server.data.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_no_secret_is_in_any_file_and_workers_get_them(fresh_server, tmp_path):
    server, _ = sealing(fresh_server, tmp_path)
    endpoint, jobs, config = fill(server)
    server.terminate()
    assert files_with(server, "longshore-sealed:1:")
    assert not files_with(server, HUSH), files_with(server, HUSH)
    assert HUSH not in server.log() and "unsealed" not in server.log()
    server.start()
    worker = FakeWorker(endpoint)
    for number, job in enumerate(jobs):
        taken = worker.take(busy=number > 0)
        assert taken["id"] == job and taken["s3Config"] == config
        worker.done(job, {"output": 1})
        assert HUSH not in json.dumps(endpoint.status(job))


def test_a_new_key_takes_over_and_the_old_one_can_go(fresh_server, tmp_path):
    server, path = sealing(fresh_server, tmp_path)
    endpoint, jobs, config = fill(server)
    server.terminate()
    assert secrets(server, "new-key", str(path)).returncode == 0
    run = secrets(server, "rotate", "--config", str(server.config), "--data-dir", str(server.data))
    assert run.returncode == 0 and "4 records, 2 jobs" in run.stdout, run
    new = path.read_text().splitlines()[:2]
    path.write_text("\n".join(new))
    server.start()
    worker = FakeWorker(endpoint)
    assert [worker.take(busy=number > 0)["s3Config"] for number in range(2)] == [config, config]


def test_a_server_without_its_key_says_so_and_does_not_start(fresh_server, tmp_path):
    server, path = sealing(fresh_server, tmp_path)
    fill(server)
    server.terminate()
    key = path.read_text().split()[4]
    for text, expected in [
        ("", "there is no key in it"),
        ("lsk_123", "line 1 is not a key"),
        (secrets(server, "new-key").stdout, f"sealed under key {key}, which is not among the keys given"),
    ]:
        path.write_text(text)
        run = server.spawn()
        assert run.wait(60) == 1
        last = server.reason()
        assert expected in last and "lsk_" not in last.replace("`lsk_`", ""), last


def test_the_environment_can_hold_the_key(fresh_server):
    server = fresh_server()
    assert server.log().count("secrets are stored unencrypted") == 1
    endpoint, jobs, config = fill(server)
    server.terminate()
    server.environment = {"LONGSHORE_SECRETS_KEY": secrets(server, "new-key").stdout.splitlines()[1]}
    server.start()
    assert server.log().count("secrets are stored unencrypted") == 1
    stored = Api(server).ok("GET", "/v1/templates")
    assert HUSH not in json.dumps(stored)
    job = endpoint.run({}, s3Config=config)
    worker = FakeWorker(endpoint)
    taken = [worker.take(busy=number > 0) for number in range(3)]
    assert [one["id"] for one in taken] == [*jobs, job] and all(one["s3Config"] == config for one in taken)


def test_a_rotation_beside_a_running_server_is_refused(fresh_server, tmp_path):
    server, _ = sealing(fresh_server, tmp_path)
    run = secrets(server, "rotate", "--config", str(server.config), "--data-dir", str(server.data))
    assert run.returncode == 1 and "in use by another server" in run.stderr
    assert Api(server, ADMIN_KEY).call("GET", "/v1/endpoints").status_code == 200


def test_a_rotation_that_is_killed_loses_nothing_and_is_done_again(fresh_server, tmp_path):
    server, path = sealing(fresh_server, tmp_path)
    endpoint, jobs, config = fill(server)
    jobs += [endpoint.run({"n": number}, s3Config=config) for number in range(300)]
    server.terminate()
    rotate = ["rotate", "--config", str(server.config), "--data-dir", str(server.data)]
    for lives_s in (0.02, 0.1, 0.3):
        assert secrets(server, "new-key", str(path)).returncode == 0
        rotation = subprocess.Popen([binary(), "secrets", *rotate], cwd=server.folder, stdout=subprocess.DEVNULL)
        try:
            rotation.wait(lives_s)
        except subprocess.TimeoutExpired:
            rotation.kill()
            rotation.wait()
        server.start()
        server.terminate()
    done = secrets(server, *rotate)
    assert done.returncode == 0, done
    path.write_text("\n".join(path.read_text().splitlines()[:2]))
    server.start()
    worker = FakeWorker(endpoint)
    for number, job in enumerate(jobs):
        taken = worker.take(busy=number > 0)
        assert (taken["id"], taken["s3Config"]) == (job, config)
