"""Secrets that templates name: real workers get the value, nothing else shows it, and a new value reaches new workers."""

import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import termios

import pytest

from harness.client import HANDLERS, Api, Endpoint, unique
from harness.server import Server
from harness.wait import until
from test_backup import back_up, longshore
from test_cli import NOT_FOUND, UNAUTHORIZED, USAGE, Cli, fails
from test_secrets import HUSH, files_with, sealing

NEWER = "hush-newer-91c3"
ENV = {"TOKEN": {"secret": "HF_TOKEN"}}


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(api: Api, value: str, name: str = "HF_TOKEN") -> dict:
    return api.ok("POST", "/v1/secrets", json={"name": name, "value": value})


def wait_token(endpoint: Endpoint, value: str, timeout_s: float = 60) -> None:
    """Returns when a worker has this value as its `TOKEN`."""

    def there():
        done = endpoint.runsync({"names": ["TOKEN"]})
        assert done["status"] == "COMPLETED", done
        assert done["output"] == {"TOKEN": fingerprint(value)}, done
        return done

    until(there, "a worker has the value", timeout_s)


def test_workers_get_the_value_and_no_file_has_it(fresh_server, tmp_path):
    server, keys = sealing(fresh_server, tmp_path)
    api = Api(server)
    assert put(api, HUSH)["sealed"] is True
    endpoint = api.endpoint("variables.py", ENV, workersMax=1)
    wait_token(endpoint, HUSH)
    shown = api.ok("GET", f"/v1/endpoints/{endpoint.id}?includeTemplate=true&includeWorkers=true")
    assert shown["env"] == shown["template"]["env"] == shown["workers"][0]["env"] == ENV
    assert api.ok("GET", "/v1/secrets/HF_TOKEN")["usedBy"]["endpoints"] == [endpoint.id]

    # A new value is a new version, and a new worker has it.
    before = endpoint.workers()[0]
    api.ok("PATCH", "/v1/secrets/HF_TOKEN", json={"value": NEWER})
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == shown["version"] + 1
    wait_token(endpoint, NEWER)
    assert before not in endpoint.workers()

    refused = api.call("DELETE", "/v1/secrets/HF_TOKEN")
    assert refused.status_code == 400 and endpoint.id in refused.text, refused.text

    # The audit log names the field, and nothing on disk or in the log has a value.
    assert '"value"' in json.dumps(api.ok("GET", "/v1/audit"))
    backup = back_up(server, tmp_path / "backup")
    server.terminate()
    server.start()
    wait_token(endpoint, NEWER)
    for value in (HUSH, NEWER):
        assert not files_with(server, value), files_with(server, value)
        assert value not in server.log()
        assert not [path for path in backup.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]

    # The backup has the secret as the store has it: a server with the keys runs on it.
    longshore("restore", backup, "--data-dir", tmp_path / "restored" / "data")
    other = Server(tmp_path / "restored", config=server.config.read_text())
    try:
        other.start()
        wait_token(Endpoint(Api(other), endpoint.record), NEWER)
    finally:
        other.close()


def test_a_key_change_seals_the_value_again(fresh_server, tmp_path):
    server, keys = sealing(fresh_server, tmp_path)
    api = Api(server)
    put(api, HUSH)
    endpoint = api.endpoint("variables.py", ENV)
    server.terminate()
    longshore("secret", "new-key", keys)
    done = longshore("secret", "rotate", "--config", server.config, "--data-dir", server.data)
    # The others are the key of worker tokens and the version of the endpoint.
    assert "3 records, 0 jobs" in done.stdout, done
    keys.write_text("\n".join(keys.read_text().splitlines()[:2]))
    server.start()
    wait_token(endpoint, HUSH)


def test_a_secret_is_set_listed_and_deleted_on_the_command_line(fresh_server, tmp_path):
    server = fresh_server()
    api, cli = Api(server), Cli(tmp_path / "config", server.url)
    fails(cli.run("secret", "set", "HF_TOKEN", stdin="\n"), USAGE, "no value given")
    fails(cli.run("secret", "set", "1A", stdin="x"), USAGE, "A-Za-z")
    made = cli.ok("secret", "set", "HF_TOKEN", stdin=f"{HUSH}\n")
    assert "secret HF_TOKEN created" in made.out and "unencrypted" in made.err and "new-key" in made.err, made
    endpoint = api.endpoint("variables.py", ENV)
    wait_token(endpoint, HUSH)
    changed = cli.ok("secret", "set", "HF_TOKEN", "--endpoint", endpoint.id, stdin=f"{NEWER}\r\n")
    assert "secret HF_TOKEN changed; 1 endpoint with it gets new workers" in changed.out, changed
    wait_token(endpoint, NEWER)
    listed = cli.ok("secret", "list")
    assert "HF_TOKEN" in listed.out and HUSH not in listed.out, listed
    name = endpoint.record.get("slug") or endpoint.record["name"]
    assert listed.out.count(name) == 2 and re.search(rf"{name} +no +", listed.out), listed
    [shown] = cli.ok("secrets", "list", "-o", "json").json
    assert (shown["endpoints"], shown["sealed"]) == ([endpoint.id], False)
    assert "value" not in shown
    fails(cli.run("secret", "delete", "HF_TOKEN", "--yes"), 1, "in use by template", endpoint.id)
    template = endpoint.record["templateId"]
    cli.ok("template", "update", template, "--unset-env", "TOKEN", "--secret", "OTHER=HF_TOKEN")
    assert api.ok("GET", f"/v1/templates/{template}")["env"] == {"OTHER": {"secret": "HF_TOKEN"}}
    cli.ok("template", "update", template, "--unset-env", "OTHER", "--env", "A=1")
    assert "secret HF_TOKEN deleted" in cli.ok("secret", "delete", "HF_TOKEN", "--yes").out
    fails(cli.run("secret", "delete", "HF_TOKEN", "--yes"), NOT_FOUND, "secret list")


@pytest.fixture
def project(tmp_path):
    """A folder to deploy; its endpoint has the folder's name."""
    folder = tmp_path / unique("secretive")
    folder.mkdir()
    shutil.copy(HANDLERS / "variables.py", folder / "handler.py")
    (folder / "longshore.toml").write_text(
        f'command = ["{sys.executable}", "-u", "handler.py"]\nenv = {{ TOKEN = {{ secret = "HF_TOKEN" }}, PLAIN = "p" }}\n'
    )
    return folder


def test_a_deployed_folder_names_secrets_in_its_file_and_on_the_command_line(server, project, tmp_path):
    cli, api = Cli(tmp_path / "config", server.url), Api(server)
    fails(cli.run("deploy", project), 1, "`env.TOKEN` names secret `HF_TOKEN`, which does not exist")
    cli.ok("secret", "set", "HF_TOKEN", stdin=HUSH)
    cli.ok("secret", "set", "OTHER", stdin=NEWER)
    fails(cli.run("deploy", project, "--secret", "TOKEN=OTHER", "--env", "TOKEN=x"), USAGE, "both set `TOKEN`")
    try:
        cli.ok("deploy", project, "--env", "PLAIN=q", "--secret", "OTHER", "--secret", "MORE=OTHER")
        done = cli.ok("runsync", project.name, '{"names": ["TOKEN", "PLAIN", "OTHER", "MORE"]}', timeout_s=300)
        expected = {"TOKEN": HUSH, "PLAIN": "q", "OTHER": NEWER, "MORE": NEWER}
        assert done.json == {name: fingerprint(value) for name, value in expected.items()}
    finally:
        cli.run("endpoint", "delete", project.name, "--yes")
        for template in api.ok("GET", "/v1/templates"):
            if template["name"] == f"deploy-{project.name}":
                api.call("DELETE", f"/v1/templates/{template['id']}")
        cli.ok("secret", "delete", "HF_TOKEN", "--yes")
        cli.ok("secret", "delete", "OTHER", "--yes")


def test_a_key_for_one_endpoint_keeps_secrets_of_its_own(fresh_server, tmp_path):
    server = fresh_server()
    api = Api(server)
    put(api, "of the operator", "FOREIGN")
    mine, theirs = api.endpoint("variables.py"), api.endpoint("variables.py", {"T": {"secret": "FOREIGN"}})
    scopes = [{"scope": "manage", "endpointIds": [mine.id]}, {"scope": "jobs", "endpointIds": [mine.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": "mine", "scopes": scopes})["key"]
    limited, cli = Api(server, key), Cli(tmp_path / "config", server.url, key)
    cli.ok("secret", "set", "HF_TOKEN", stdin=HUSH)
    template = f"/v1/templates/{mine.record['templateId']}"
    assert limited.ok("PATCH", template, json={"env": ENV})["env"] == ENV
    wait_token(Endpoint(limited, mine.record), HUSH)
    cli.ok("secret", "set", "HF_TOKEN", stdin=NEWER)
    wait_token(Endpoint(limited, mine.record), NEWER)
    for name in ("FOREIGN", "NO_SUCH"):
        refused = limited.call("PATCH", template, json={"env": {"T": {"secret": name}}})
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized"), refused.text
        assert limited.call("GET", f"/v1/secrets/{name}").status_code == 401
    fails(cli.run("secret", "set", "FOREIGN", stdin="x"), UNAUTHORIZED)
    assert [one["name"] for one in cli.ok("secret", "list", "-o", "json").json] == ["HF_TOKEN"]
    assert limited.call("PATCH", f"/v1/templates/{theirs.record['templateId']}", json={}).status_code == 401


def test_a_terminal_is_asked_for_the_value_and_does_not_show_it(server, tmp_path):
    cli, name = Cli(tmp_path / "config", server.url), unique("TOKEN").replace("-", "_").upper()
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        cli.command("secret", "set", name), stdin=theirs, stdout=theirs, stderr=theirs, env=cli.environment(TERM="xterm")
    )
    shown = b""
    while f"value of {name}: ".encode() not in shown:
        shown += os.read(ours, 65536)
    assert not termios.tcgetattr(ours)[3] & termios.ECHO, "what is typed is hidden before it is asked for"
    os.write(ours, f"{HUSH}\n".encode())
    while b"created" not in shown:
        shown += os.read(ours, 65536)
    assert asking.wait(60) == 0 and termios.tcgetattr(ours)[3] & termios.ECHO, "typing is shown again"
    os.close(theirs)
    os.close(ours)
    assert HUSH.encode() not in shown, shown
    endpoint = Api(server).endpoint("variables.py", {"TOKEN": {"secret": name}}, workersMax=1)
    wait_token(endpoint, HUSH)
