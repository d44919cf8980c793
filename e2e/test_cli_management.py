"""The commands for what endpoints share and for the server's records: volumes, registry credentials, usage, audit, sessions."""

import json

import pytest
import requests

from harness.client import Api, unique
from harness.server import ADMIN_KEY
from harness.wait import until
from test_billing import PRICED
from test_cli import NOT_FOUND, UNAUTHORIZED, USAGE, Cli, fails


@pytest.fixture
def cli(server, tmp_path):
    return Cli(tmp_path / "config", server.url)


def limited(cli: Cli, scope: str) -> dict:
    """The environment of a command with a key of this scope."""
    made = cli.ok("keys", "create", "--name", unique("limited"), "--scope", scope, "-o", "json").json
    return cli.environment(LONGSHORE_API_KEY=made["key"])


def row(cli: Cli, command: str, record: str) -> str:
    """The row of a record in the table of a command."""
    return next(line for line in cli.ok(command, "list").out.splitlines() if line.startswith(record))


def test_volumes_are_created_shared_and_deleted(cli, api):
    endpoint = api.endpoint("echo.py", workersMax=0, slug=unique("shared"))
    slug = endpoint.record["slug"]
    name = unique("weights")
    made = cli.ok("volume", "create", "--name", name, "--size", "200", "--data-center", "cellar", "-o", "json").json
    volume = made["id"]
    assert (made["name"], made["size"], made["dataCenterId"], made["endpoints"]) == (name, 200, "cellar", [])
    assert name in row(cli, "volume", volume) and "200 GB" in row(cli, "volume", volume)
    assert cli.ok("volume", "get", volume, "-o", "json").json["name"] == name

    changed = cli.ok("volume", "update", volume, "--size", "400", "--endpoint", slug, "-o", "json").json
    assert (changed["size"], changed["endpoints"]) == (400, [endpoint.id])
    assert slug in row(cli, "volume", volume), "the table has names of endpoints"
    assert cli.ok("volumes", "update", volume, "--endpoint", "*", "-o", "json").json["endpoints"] == ["*"]

    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"networkVolumeIds": [volume]})
    fails(cli.run("volume", "delete", volume, "--yes"), 1, endpoint.id)
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"networkVolumeIds": []})
    fails(cli.run("volume", "delete", volume), USAGE, "with all its files", "--yes")
    assert cli.ok("volume", "delete", volume, "--yes").out == f"network volume {volume} deleted\n"

    fails(cli.run("volume", "get", volume), NOT_FOUND, "longshore volume list")
    fails(cli.run("volume", "delete", volume, "--yes"), NOT_FOUND, "longshore volume list")
    fails(cli.run("volume", "update", volume), USAGE, "no field to change")
    fails(cli.run("volume", "create", "--name", name, "--size", "5000"), 1, "4000")
    reader = limited(cli, "read")
    fails(cli.run("volume", "create", "--name", name, "--size", "1", env=reader), UNAUTHORIZED, "`manage` for all")
    cli.ok("volume", "list", env=reader)


def test_registry_credentials_are_stored_without_showing_them(cli, api, tmp_path):
    name, hush = unique("hub"), unique("hush")
    (tmp_path / "token").write_text(f"{hush}\n")
    create = ("registry", "create", "--name", name, "--username", "ada-lovelace")
    fails(cli.run("deploy", "--image", "x", "--registry-auth", name), NOT_FOUND, "longshore registry create")
    fails(cli.run(*create), USAGE, "no password given", "--password-file")
    fails(cli.run(*create, "--password-file", tmp_path / "none"), 1, "cannot read")
    assert cli.run(*create, "--password", hush).code == USAGE, "the command line is visible to other users"
    made = cli.ok(*create, "--password-file", tmp_path / "token", "-o", "json")
    auth = made.json["id"]
    piped = cli.ok(*create[:3], unique("piped"), *create[4:], stdin=hush)
    listed = cli.ok("registry", "list")
    assert name in row(cli, "registry", auth) and auth in cli.ok("registries", "list", "-o", "json").out
    for shown in (made, piped, listed, cli.ok("registry", "get", auth)):
        assert hush not in shown.out + shown.err and "ada-lovelace" not in shown.out + shown.err, shown

    changed = cli.ok("registry", "update", auth, "--name", unique("named"), "--endpoint", "*", "-o", "json").json
    assert changed["endpoints"] == ["*"] and changed["name"] != name
    template = api.template(containerRegistryAuthId=auth)["id"]
    fails(cli.run("registry", "delete", auth, "--yes"), 1, template)
    api.ok("PATCH", f"/v1/templates/{template}", json={"containerRegistryAuthId": None})
    assert cli.ok("registry", "delete", auth, "--yes").out == f"registry credentials {auth} deleted\n"
    fails(cli.run("registry", "get", auth), NOT_FOUND, "longshore registry list")


def test_usage_is_shown_by_group_with_its_cost(fresh_server, tmp_path):
    server = fresh_server(config='currency = "EUR"\n' + PRICED)
    api, cli = Api(server), Cli(tmp_path / "config", server.url)
    assert cli.ok("usage").out == "no worker ran in this time\n"
    first = api.endpoint("echo.py", workersMin=1, workersMax=1, computeType="CPU", slug="first")
    other = api.endpoint("echo.py", workersMin=1, workersMax=1, gpuCount=1, slug="other")
    key = cli.ok("keys", "create", "--name", "batch", "--scope", "jobs", "--owner", "acme", "-o", "json").json
    assert Api(server, key["key"]).call("POST", f"/v2/{first.id}/runsync", json={"input": {}}).status_code == 200

    def billed():
        rows = {row["endpointId"]: row for row in cli.ok("usage", "-o", "json").json}
        return len(rows) == 2 and min(row["amount"] for row in rows.values()) > 0.1 and rows

    rows = until(billed, "both endpoints cost something", 60)
    assert set(rows[first.id]) == {"endpointId", "timeBilledMs", "gpuMs", "busyMs", "amount", "currency"}
    assert rows[first.id]["currency"] == "EUR"
    assert abs(rows[first.id]["amount"] - rows[first.id]["timeBilledMs"] / 10_000) < 1e-3, "360 an hour"

    lines = cli.ok("usage").out.splitlines()
    assert lines[0].split() == ["ENDPOINT", "WORKER", "TIME", "BUSY", "COST"], lines
    assert {line.split()[0] for line in lines[1:3]} == {"first", "other"} and lines[3].startswith("all "), lines
    assert all(line.endswith(" EUR") for line in lines[1:]), lines
    (line,) = cli.ok("usage", "first").out.splitlines()[1:]
    assert line.startswith("first "), "one row has no sum"
    types = {row["gpuTypeId"] for row in cli.ok("usage", "--by", "gpu", "-o", "json").json}
    assert types == {"CPU", "NVIDIA L4"}
    (worker,) = cli.ok("usage", first.id, "--by", "worker", "-o", "json").json
    assert [worker["podId"]] == [pod["id"] for pod in api.ok("GET", "/v1/pods", params={"endpointId": first.id})]

    def by_key():
        return [row for row in cli.ok("usage", "first", "--by", "key", "-o", "json").json if row.get("key") == key["id"]]

    ((row,), owners) = until(by_key, "the job is counted", 60), cli.ok("usage", "--by", "owner").out
    assert (row["owner"], row["jobs"]) == ("acme", 1) and "acme" in owners
    assert any(line.startswith("batch  acme ") for line in cli.ok("usage", "--by", "key").out.splitlines()), "keys have names"

    assert all("time" in row for row in cli.ok("usage", "--step", "hour", "-o", "json").json)
    assert cli.ok("usage", "--from", "2020-01-01", "--to", "2021-01-01").out == "no worker ran in this time\n"
    fails(cli.run("usage", "nosuch"), NOT_FOUND, "longshore endpoint list")
    fails(cli.run("usage", "--from", "yesterday"), USAGE, "2030-01-31")
    theirs = cli.environment(LONGSHORE_API_KEY=key["key"])
    fails(cli.run("usage", env=theirs), UNAUTHORIZED, "`read` or `manage` for all endpoints")
    # A deleted endpoint is named by its id.
    cli.ok("endpoint", "delete", "other", "--yes")
    (line,) = cli.ok("usage", other.id).out.splitlines()[1:]
    assert line.startswith(other.id)


def test_the_audit_log_is_listed_filtered_and_read_to_its_end(fresh_server, tmp_path):
    server = fresh_server()
    api, cli = Api(server), Cli(tmp_path / "config", server.url)
    boss = cli.ok("keys", "create", "--name", "boss", "--scope", "manage", "-o", "json").json
    theirs = Api(server, boss["key"])
    # One more than the server returns in a page.
    ids = [theirs.ok("POST", "/v1/networkvolumes", json={"name": f"v{number}", "size": 1})["id"] for number in range(1001)]

    newest = cli.ok("audit")
    lines = newest.out.splitlines()
    assert lines[0].split() == ["TIME", "KEY", "KEY", "ID", "ADDRESS", "WHAT", "FIELDS", "OUTCOME"], lines
    assert len(lines) == 21 and "newest 20" in newest.err and "--all" in newest.err, newest
    for part in ("boss", boss["id"], "127.0.0.1", f"POST networkvolumes/{ids[-1]}", "name size", "done"):
        assert part in lines[1], part

    made = cli.ok("audit", "--resource", "networkvolumes", "--all", "-o", "jsonl").out.splitlines()
    assert [json.loads(line)["resource"] for line in made] == [f"networkvolumes/{volume}" for volume in reversed(ids)]
    exactly = cli.ok("audit", "--resource", "networkvolumes", "--limit", 1001)
    assert len(exactly.out.splitlines()) == 1002 and "newest" not in exactly.err, "no more entries match"
    assert "newest 1000" in cli.ok("audit", "--resource", "networkvolumes", "--limit", 1000).err
    (one,) = cli.ok("audit", "--resource", f"networkvolumes/{ids[7]}", "-o", "json").json
    assert one["fields"] == ["name", "size"] and "first use from this address" in cli.ok("audit", "--key", boss["id"], "--all").out
    assert {entry["key"]["id"] for entry in cli.ok("audit", "--key", "admin", "--all", "-o", "json").json} == {"admin"}
    assert cli.ok("audit", "--since", "2040-01-01", "-o", "json").json == []
    assert len(cli.ok("audit", "--last", "1h", "--limit", 3, "-o", "json").json) == 3

    fails(cli.run("audit", env=limited(cli, "read")), UNAUTHORIZED, "`manage` for all endpoints")
    assert cli.run("audit", "--since", "yesterday").code == USAGE


def signed_in(server, agent: str) -> requests.Session:
    """A browser that is signed in at the console with the operator's key."""
    browser = requests.Session()
    browser.headers["User-Agent"] = agent
    answer = browser.post(f"{server.url}/console/session", json={"key": ADMIN_KEY})
    assert answer.status_code == 200, answer.text
    browser.headers["X-Longshore-Console"] = answer.json()["csrf"]
    return browser


def test_sessions_are_listed_and_ended(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    assert cli.ok("sessions", "list", "-o", "json").json == []
    browsers = [signed_in(server, name) for name in ("one", "two", "three")]
    listed = cli.ok("sessions", "list", "-o", "json").json
    ids = {session["agent"]: session["id"] for session in listed}
    assert set(ids) == {"one", "two", "three"}
    line = next(line for line in cli.ok("sessions", "list").out.splitlines() if line.startswith(ids["one"]))
    assert "127.0.0.1" in line and line.endswith(" one"), line

    ended = cli.ok("sessions", "end", ids["one"], ids["two"])
    assert ended.out == f"session {ids['one']} ended\nsession {ids['two']} ended\n"
    assert [browser.get(f"{server.url}/v1/me").status_code for browser in browsers] == [401, 401, 200]
    # The others end, although one has ended before.
    again = cli.run("sessions", "end", ids["one"], ids["three"])
    assert (again.code, again.out) == (NOT_FOUND, f"session {ids['three']} ended\n"), again
    assert f"{ids['one']}: no session has this id" in again.err and "longshore sessions list" in again.err, again
    assert cli.ok("sessions", "list", "-o", "json").json == []
    fails(cli.run("sessions", "list", env=limited(cli, "read")), UNAUTHORIZED, "`manage` for all endpoints")
    assert cli.run("sessions", "end").code == USAGE
