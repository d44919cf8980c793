"""Deploys with the command line: what they change and what stays, the return to a version, and keys for one endpoint."""

import json
import re
import shutil
from pathlib import Path

import pytest
from test_cli import NOT_FOUND, UNAUTHORIZED, USAGE, Cli, fails, folder

from harness.client import HANDLERS, Api, Endpoint, unique
from harness.server import Server

MANIFEST = "longshore.toml"


@pytest.fixture
def cli(tmp_path, server) -> Cli:
    return Cli(tmp_path / "home", server.url)


def project(parent: Path, name: str, env: dict[str, str], fields: str = "") -> Path:
    """A folder whose handler answers with the variables whose names begin with `SHOP_`."""
    target = folder(parent, name, "x")
    worker = (HANDLERS / "echo.py").read_text().replace('{"echo": job["input"],', '{**os.environ,')
    (target / "worker.py").write_text(worker)
    command = next(line for line in (target / MANIFEST).read_text().splitlines() if line.startswith("command"))
    variables = "".join(f'{key} = "{value}"\n' for key, value in env.items())
    (target / MANIFEST).write_text(f"{command}\n[env]\n{variables}[endpoint]\n{fields}")
    (target / "test_input.json").unlink(missing_ok=True)
    return target


def variables(endpoint: Endpoint) -> dict[str, str]:
    output = endpoint.runsync()["output"]
    return {name: value for name, value in output.items() if name.startswith("SHOP_")}


def deployed(cli: Cli, target: Path, *flags: str) -> str:
    return cli.ok("deploy", target, "--no-sample", *flags).err


def opened(api: Api, name: str) -> Endpoint:
    return Endpoint(api, api.ok("GET", f"/v1/endpoints/{name}"))


def test_an_operators_settings_stay_and_versions_come_back_over_a_restart(tmp_path, fresh_server):
    server: Server = fresh_server()
    cli, api, name = Cli(tmp_path / "home", server.url), Api(server), unique("shop")
    first = project(tmp_path, name, {"SHOP_A": "1", "SHOP_B": "1"}, "idleTimeout = 60\n")
    assert "(version 1)" in deployed(cli, first)
    endpoint = opened(api, name)
    assert variables(endpoint) == {"SHOP_A": "1", "SHOP_B": "1"}

    # The operator.
    template = f"/v1/templates/{endpoint.record['templateId']}"
    env = {key: "***" for key in api.ok("GET", template)["env"]}
    api.ok("PATCH", template, json={"env": {**env, "SHOP_OPERATOR": "hush"}})
    endpoint.patch(workersMax=7)
    before = api.ok("GET", f"/v1/endpoints/{name}")
    assert "nothing changed" in deployed(cli, first)
    assert api.ok("GET", f"/v1/endpoints/{name}") == before

    project(tmp_path, name, {"SHOP_A": "2"}, "idleTimeout = 61\n")
    assert "(version 3)" in deployed(cli, first)
    after = api.ok("GET", f"/v1/endpoints/{name}")
    assert (after["workersMax"], after["idleTimeout"]) == (7, 61)
    assert variables(endpoint) == {"SHOP_A": "2", "SHOP_OPERATOR": "hush"}

    project(tmp_path, name, {"SHOP_A": "2"}, "idleTimeout = 62\n")
    assert "(version 3)" in deployed(cli, first), "a change of fields alone is no version"
    assert api.ok("GET", f"/v1/endpoints/{name}")["idleTimeout"] == 62

    server.terminate()
    server.start()
    assert "(version 4)" in deployed(cli, first, "--to", "1")
    back = api.ok("GET", f"/v1/endpoints/{name}")
    assert (back["workersMax"], back["idleTimeout"]) == (3, 60), "as version 1 last stood"
    assert variables(endpoint) == {"SHOP_A": "1", "SHOP_B": "1"}
    assert "(version 5)" in deployed(cli, first, "--to", "3")
    assert variables(endpoint) == {"SHOP_A": "2", "SHOP_OPERATOR": "hush"}
    assert "already runs" in deployed(cli, first, "--to", "5")
    entries = cli.ok("deploy", first, "--list", "-o", "json").json
    assert [entry["version"] for entry in entries] == [5, 4, 3, 3, 2, 2, 1]
    assert entries[4]["fields"] == [{"name": "workersMax", "from": 3, "to": 7}]
    assert "hush" not in json.dumps(entries)


def test_a_deploy_that_repairs_something_does_not_say_that_nothing_changed(tmp_path, fresh_server):
    server: Server = fresh_server()
    cli, api, name = Cli(tmp_path / "home", server.url), Api(server), unique("shop")
    target = project(tmp_path, name, {"SHOP_A": "1"}, "idleTimeout = 60\n")
    assert "(version 1)" in deployed(cli, target)
    assert "(version 1): nothing changed" in deployed(cli, target)

    (folder,) = (path for path in (server.data / "code" / name).iterdir() if path.is_dir())
    for damage in (lambda: (folder / "worker.py").write_text(""), lambda: shutil.rmtree(folder)):
        damage()
        done = deployed(cli, target)
        assert f"runs {folder.name[:12]} (version 1): its code was missing or damaged, and is stored again" in done, done
        assert "nothing changed" in deployed(cli, target)

    endpoint = opened(api, name)
    endpoint.patch(idleTimeout=7)
    done = deployed(cli, target)
    assert "(version 1)" in done and "nothing changed" not in done and "already" not in done, done
    assert opened(api, name).record["idleTimeout"] == 60
    assert "nothing changed" in deployed(cli, target)


def test_the_next_job_runs_what_was_deployed_although_a_worker_is_idle(api):
    endpoint = api.endpoint("variables.py", {"SHOP_A": "0"}, workersMin=1, workersMax=2)
    seen = [endpoint.runsync({"names": ["SHOP_A"]})["output"]]
    for number in range(1, 6):
        change = {"template": {"env": {"SHOP_A": str(number)}}}
        answer = api.ok("POST", f"/v1/endpoints/{endpoint.id}/deploy", json=change)
        assert answer["changed"], answer
        seen.append(endpoint.runsync({"names": ["SHOP_A"]})["output"])
    restored = api.ok("POST", f"/v1/endpoints/{endpoint.id}/versions/1/restore")
    assert restored["version"] == 7
    assert endpoint.runsync({"names": ["SHOP_A"]})["output"] == seen[0]
    assert len({json.dumps(output) for output in seen}) == 6, "each job ran with its own value"


def test_a_key_for_one_endpoint_deploys_to_it_and_to_no_other(tmp_path, server, api):
    admin, name, other = Cli(tmp_path / "home", server.url), unique("shop"), unique("other")
    target = project(tmp_path, name, {"SHOP_A": "1"})
    deployed(admin, target)
    deployed(admin, project(tmp_path, other, {"SHOP_A": "1"}))
    endpoint = opened(api, name)
    body = {"name": "deploys", "scopes": [{"scope": "manage", "endpointIds": [endpoint.id]}]}
    key = api.ok("POST", "/v1/apikeys", json=body)
    limited = Cli(tmp_path / "limited", server.url, key=key["key"])

    project(tmp_path, name, {"SHOP_A": "2"})
    (target / "test_input.json").write_text('{"input": {}}')
    done = limited.ok("deploy", target)
    assert "(version 2)" in done.err and "not run" in done.err, done
    assert variables(endpoint) == {"SHOP_A": "2"}
    newest = limited.ok("deploy", target, "--list", "-o", "json").json[0]
    assert (newest["by"], newest["byName"]) == (key["id"], "deploys")
    assert re.search(r"^\*  +2  +\w{12}  +(now|\S.* ago)  +deploys ", limited.ok("deploy", target, "--list").out, re.M)
    assert "(version 3)" in limited.ok("deploy", target, "--to", "1").err
    assert variables(endpoint) == {"SHOP_A": "1"}
    # The endpoint can be named without its folder, and an option that would be ignored is refused.
    assert "(version 4)" in limited.ok("deploy", "--name", name, "--to", "2").err
    assert limited.ok("deploy", "--name", name, "--list").out.startswith("   VERSION")
    fails(limited.run("deploy", target, "--to", "1", "--env", "SHOP_A=3"), USAGE, "--env")
    shared = limited.run("deploy", target, "--secret", "SHOP_TOKEN")
    fails(shared, UNAUTHORIZED, f"longshore secret set SHOP_TOKEN --endpoint {name}")

    project(tmp_path, other, {"SHOP_A": "2"})
    fails(limited.run("deploy", tmp_path / other), UNAUTHORIZED, "manage")
    fails(limited.run("deploy", tmp_path / other, "--list"), UNAUTHORIZED)
    fails(limited.run("deploy", tmp_path / other, "--to", "1"), UNAUTHORIZED)
    fails(limited.run("deploy", project(tmp_path, unique("new"), {})), UNAUTHORIZED, "does not exist yet")
    assert opened(api, other).record["version"] == 1


def test_a_field_in_the_manifest_is_any_of_the_endpoints_and_a_wrong_one_is_named(tmp_path, cli, api):
    name = unique("shop")
    fields = (
        'models = ["m"]\ngpuTypeIds = ["A"]\ngpuCount = 2\ncomputeType = "CPU"\nwebhook = "http://example.com/"\n'
        'webhookEvents = ["failed"]\nflashboot = false\nmaxQueueLength = 9\nmemoryBytes = 1000000000\n'
    )
    target = project(tmp_path, name, {}, fields)
    deployed(cli, target)
    record = opened(api, name).record
    assert (record["models"], record["gpuTypeIds"], record["gpuCount"]) == (["m"], ["A"], 2)
    assert (record["webhook"], record["webhookEvents"], record["flashboot"]) == ("http://example.com/", ["failed"], False)
    before = opened(api, name).record
    for option in (("--env", "1A=hush"), ("--secret", "1A=TOKEN"), ("--secret", "hf-token")):
        done = cli.run("deploy", target, *option)
        fails(done, USAGE, "must be of the form ^[A-Za-z_][A-Za-z0-9_]*$")
        assert "hush" not in done.err
    project(tmp_path, name, {"1A": "hush"})
    fails(cli.run("deploy", target), 1, '`env` in longshore.toml has the name "1A"')
    for wrong, reason in (
        ("gpuTypeIDs = []", "did you mean `gpuTypeIds`?"),
        ("workersMaxx = 1", "did you mean `workersMax`?"),
        ('workersMax = "1"', "must be a whole number"),
        ('templateId = "x"', "unknown field"),
        ("workersMax = 100000", "`endpoint.workersMax`"),
        ("workersMin = 9\nworkersMax = 8", "must not be larger"),
    ):
        project(tmp_path, name, {}, f"{wrong}\n")
        done = cli.run("deploy", target, "--no-sample")
        assert done.code != 0 and reason in done.err, (wrong, done)
    assert opened(api, name).record == before


def test_the_manifest_knows_every_field_that_a_new_endpoint_may_have(tmp_path, cli, api):
    target = project(tmp_path, unique("shop"), {}, "zzzzz = 1\n")
    done = cli.run("deploy", target)
    known = {word for word in done.err.replace("`", " ` ").split() if word.isalnum()}
    document = api.ok("GET", "/v1/openapi.json")
    fields = set(document["components"]["schemas"]["EndpointCreateInput"]["properties"])
    assert fields - known == {"template", "templateId", "deployedEnv"}, done


@pytest.mark.parametrize("wanted", ["0", "2", "ffff"])
def test_a_version_that_is_not_there_is_not_found(tmp_path, cli, wanted):
    target = project(tmp_path, unique("shop"), {})
    deployed(cli, target)
    fails(cli.run("deploy", target, "--to", wanted), NOT_FOUND, "--list")


def test_the_example_is_kept_as_its_file_has_it(tmp_path, cli, api):
    name = unique("shop")
    target = project(tmp_path, name, {})
    (target / "test_input.json").write_text('{"input": {"seed": 0.50, "a": 9007199254740993123123}}')
    (target / "input_schema.json").write_text('{"type": "object", "properties": {"seed": {}, "a": {}}}')
    deployed(cli, target)
    endpoint = opened(api, name)
    text = api.call("GET", f"/v1/endpoints/{endpoint.id}").text
    assert '"example":{"input":{"seed":0.50,"a":9007199254740993123123}}' in text
    assert '"inputSchema":{"type":"object","properties":{"seed":{},"a":{}}}' in text
    assert "nothing changed" in deployed(cli, target)
    (target / "test_input.json").unlink()
    manifest = target / MANIFEST
    manifest.write_text(manifest.read_text() + "example = { input = { seed = 2, a = [1.5] } }\n")
    deployed(cli, target)
    assert '"example":{"input":{"seed":2,"a":[1.5]}}' in api.call("GET", f"/v1/endpoints/{endpoint.id}").text
    # The command line writes what the server has, and sends what a person writes.
    shown = cli.ok("endpoint", "get", name, "--output", "json").out
    assert re.search(r'"seed": 2,\s+"a"', shown), shown
