"""The commands for what endpoints share and for the server's records: volumes, registry credentials, usage, audit, sessions."""

import pytest

from harness.client import Api, unique
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
