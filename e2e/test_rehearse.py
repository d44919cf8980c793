"""`longshore rehearse`: jobs of the past with other scaling settings."""

import pytest

from harness.client import Api
from harness.wait import until
from test_cli import NOT_FOUND, UNAUTHORIZED, USAGE, Cli, fails

MINUTE_S = 60


@pytest.fixture
def cli(server, tmp_path):
    return Cli(tmp_path / "config", server.url)


@pytest.fixture
def paused(api):
    """An endpoint that runs no worker."""
    return api.endpoint("echo.py", workersMax=0)


def rehearsed(cli: Cli, *words) -> list[dict]:
    return cli.ok("rehearse", *words, "-o", "json").json


def trace_of(folder, *lines: str) -> str:
    file = folder / "jobs.csv"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def test_a_file_of_jobs_is_replayed_with_todays_settings_and_with_others(cli, api, tmp_path):
    endpoint = api.endpoint("echo.py", workersMax=2, idleTimeout=5)
    # A job each minute, which runs for 2 s; a worker takes 20 s to start.
    file = trace_of(tmp_path, "at,runMs", *(f"{minute * MINUTE_S},2000" for minute in range(30)))
    words = (endpoint.id, "--trace", file, "--start", "20s", "--price", "3.6")
    today, kept = rehearsed(cli, *words, "--set", "idleTimeout=120")
    assert (today["settings"], today["jobs"], today["expired"]) == ("today", 30, 0)
    assert (today["starts"], today["waitP50Ms"], today["waitMaxMs"]) == (30, 20_000, 20_000), today
    # Start, job and idle time of each; the trace ends with the last one.
    assert today["paidMs"] == 30 * 27_000 - 5_000 and today["busyMs"] == 60_000, today
    assert today["cost"] == round(today["paidMs"] / 1_000_000, 2)
    assert (kept["settings"], kept["starts"], kept["waitP95Ms"], kept["waitMaxMs"]) == ("idleTimeout=120", 1, 0, 20_000)
    (_, by_gaps) = rehearsed(cli, *words, "--set", "scalerType=IDLE_GAPS", "--set", "workersMax=1")
    assert by_gaps["settings"] == "scalerType=IDLE_GAPS workersMax=1" and by_gaps["starts"] == 12, by_gaps
    shown = cli.ok("rehearse", *words, "--set", "idleTimeout=120").out
    assert shown.startswith(f"30 jobs of {file}\nSETTINGS") and "20.0 s" in shown and "idleTimeout=120" in shown, shown
    assert endpoint.api.ok("GET", f"/v1/endpoints/{endpoint.id}")["idleTimeout"] == 5, "nothing is changed"


def test_the_jobs_of_the_history_are_replayed(cli, fresh_server, tmp_path):
    server = fresh_server()
    endpoint, cli = Api(server).endpoint("echo.py", workersMax=1, slug="replayed"), Cli(tmp_path / "config", server.url)
    for number in range(3):
        endpoint.runsync({"n": number})

    def seen():
        # A step is in the history once it is over.
        done = cli.run("rehearse", "replayed", "--last", "10m", "--set", "workersMin=1", "-o", "json")
        assert done.code == 0 and done.json[0]["jobs"] == 3, done
        return done.json

    today, kept = until(seen, "the jobs are in the history", 100)
    assert today["starts"] >= 1 and kept["starts"] >= 1 and kept["settings"] == "workersMin=1"
    # The start of the real worker is known, so none is assumed.
    said = cli.ok("rehearse", "replayed", "--last", "10m")
    assert "3 jobs from 20" in said.out and "assumed" not in said.err, said


def test_what_cannot_be_rehearsed_is_said(cli, api, paused, tmp_path):
    file = trace_of(tmp_path, "0,5", "1,many")
    fails(cli.run("rehearse", paused.id, "--trace", file), USAGE, f"{file}, line 2: `many` is no number of ms", "next:")
    fails(cli.run("rehearse", paused.id, "--trace", trace_of(tmp_path)), USAGE, "has no job")
    fails(cli.run("rehearse", paused.id, "--trace", str(tmp_path / "none.csv")), 1, "cannot read", "none.csv")
    fails(cli.run("rehearse", paused.id), 1, "no job of", "--last 30d")
    fails(cli.run("rehearse", "no-such-endpoint"), NOT_FOUND)
    fails(cli.run("rehearse", paused.id, "--set", "workers=1"), USAGE, "`workers` is no scaling setting; they are workersMin,")
    fails(cli.run("rehearse", paused.id, "--set", "workersMax=x"), USAGE, "workersMax must be a whole number")
    for price in ("-1", "nan", "much"):
        fails(cli.run("rehearse", paused.id, "--trace", file, f"--price={price}"), USAGE, "a price is a number from 0 on")
    fails(cli.run("rehearse", paused.id, "--last", "401d"), USAGE, "at most 400 days")
    fails(cli.run("rehearse", paused.id, "--last", "1h", "--trace", file), USAGE, "cannot be used with")
    (today,) = rehearsed(cli, paused.id, "--trace", trace_of(tmp_path, "0,5"))
    assert (today["expired"], today["starts"], today["waitP50Ms"], today["busyShare"]) == (1, 0, None, None)
    assert "10 s assumed; --start sets it" in cli.ok("rehearse", paused.id, "--trace", trace_of(tmp_path, "0,5")).err
    key = api.ok("POST", "/v1/apikeys", json={"name": "other", "scopes": [{"scope": "read", "endpointIds": [api.external().id]}]})
    other = Cli(tmp_path / "other", cli.url, key=key["key"])
    done = other.run("rehearse", paused.id)
    assert done.code in (NOT_FOUND, UNAUTHORIZED) and not done.out, done


def test_endpoints_may_have_the_scaler(api):
    endpoint = api.external(scalerType="IDLE_GAPS", idleTimeoutMax=600)
    assert (endpoint.record["scalerType"], endpoint.record["idleTimeoutMax"]) == ("IDLE_GAPS", 600)
    assert api.external().record["idleTimeoutMax"] == 3600
    for wrong in ({"scalerType": "GAPS"}, {"idleTimeoutMax": 0}, {"idleTimeoutMax": 86_401}):
        refused = api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json=wrong)
        assert refused.status_code == 400 and next(iter(wrong)) in refused.text, refused.text
