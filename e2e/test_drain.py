"""Draining a server before its computer is rebooted, with real workers: over the API and on the command line."""

import requests

from harness.client import Api
from harness.wait import holds, until
from test_cli import Cli, TIMED_OUT
from test_workers import running_job, started


def test_a_drained_server_has_no_worker_left_and_loses_no_job(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    api = Api(server)
    endpoint = api.endpoint("sleep_async.py", workersMin=1, workersMax=2)
    go = tmp_path / "go"
    running, note = running_job(endpoint, tmp_path, go=go)

    early = cli.run("drain", "--wait", "--timeout", "1s")
    assert early.code == TIMED_OUT and "the drain goes on" in early.err, early
    ready = requests.get(f"{server.url}/readyz", timeout=10)
    assert ready.status_code == 503 and "draining since" in ready.json()["error"], ready.text
    queued = endpoint.run({"seconds": 0, "started": str(note)})
    go.touch()
    drained = cli.ok("drain", "--wait")
    assert drained.out == "drained: no job runs, and no managed worker is left\n", drained
    assert endpoint.status(running)["status"] == "COMPLETED" and endpoint.status(running).get("retries", 0) == 0
    assert endpoint.workers() == [] and started(note) == [running]
    shown = cli.ok("server", "-o", "json").json
    assert (shown["state"], shown["busyWorkers"], shown["managedWorkers"]) == ("DRAINING", 0, 0), shown
    holds(lambda: endpoint.workers() == [], "no worker starts for the queued job", 2, 0.1)
    assert endpoint.status(queued)["status"] == "IN_QUEUE"

    # A reboot: the restarted server hands out what it kept.
    assert server.terminate() == 0
    server.start()
    assert endpoint.wait_for(queued, timeout_s=40)["status"] == "COMPLETED"


def test_an_ended_drain_hands_out_jobs_again(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    endpoint = Api(server).endpoint("echo.py", workersMax=1)
    assert "was not draining" in cli.ok("drain", "--end").out
    begun = cli.ok("drain")
    assert "none is handed out; 0 workers run jobs, 0 managed workers left" in begun.out, begun
    assert "longshore drain --end" in begun.err, begun
    job = endpoint.run({"text": "hello"})
    cause = endpoint.ok("GET", f"/explain/{job}")["cause"]
    assert (cause["code"], cause["blocking"]) == ("draining", True) and "`longshore drain --end`" in cause["text"], cause
    assert cli.ok("drain", "-o", "json").json["state"] == "DRAINING"
    assert cli.ok("drain", "--end").out == "the drain ended: jobs are handed out\n"
    assert endpoint.wait_for(job, timeout_s=40)["status"] == "COMPLETED"
    until(lambda: requests.get(f"{server.url}/readyz", timeout=10).status_code == 200, "the server is ready", 5)
    assert "state" in cli.ok("server").out
