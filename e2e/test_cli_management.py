"""The commands for what endpoints share and for the server's records: volumes, registry credentials, usage, audit, sessions."""

import json

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
