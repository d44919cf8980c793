"""Draining and stopping single workers, and ending the wait after crashes; what is known of workers after their end."""

import signal

import pytest

from harness import processes
from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.wait import until
from test_cli import NOT_FOUND, Cli
from test_workers import running_job, started


@pytest.fixture
def cli(server, tmp_path):
    return Cli(tmp_path / "config", server.url)


def ended(endpoint) -> list[dict]:
    listed = endpoint.api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers?ended=true")
    return [worker for worker in listed if worker["status"] == "EXITED"]


def test_a_drained_worker_finishes_its_job_and_a_stopped_one_does_not(api, cli, tmp_path):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1, stopGraceMs=500)
    go = tmp_path / "go"
    job, note = running_job(endpoint, tmp_path, go=go)
    (shown,) = endpoint.api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers")
    assert shown["jobs"] == [job] and shown["jobsDone"] == 0, shown
    assert shown["rssBytes"] > 1_000_000 and shown["cpuRatio"] >= 0, "a Python process"
    assert shown["startedAt"] <= shown["readyAt"] and shown["startedAt"] <= shown["lastHeardAt"], shown
    assert shown["startMs"] >= 0 and shown["startedBecause"] == "QUEUED_JOBS", shown
    first = shown["id"]
    assert cli.ok("workers", "drain", endpoint.id, first).out == f"{first}  ends after its running jobs\n"
    go.touch()
    assert endpoint.wait_for(job)["status"] == "COMPLETED"
    until(lambda: [worker["id"] for worker in ended(endpoint)] == [first], "the drained worker ended", 20)

    again, _ = running_job(endpoint, tmp_path, seconds=60)
    (second,) = endpoint.workers()
    assert second.worker != first
    assert f"{second.worker}  is being stopped" in cli.ok("workers", "stop", endpoint.id, "--all").out
    until(lambda: started(note).count(again) == 2, "another worker runs the job", 40)
    assert endpoint.status(again).get("retries", 0) == 0, "a stop counts no retry"
    drained, stopped = ended(endpoint)
    assert drained["exit"]["stopped"] and drained["exit"]["because"] is None, drained
    assert drained["exit"]["stopReason"] == stopped["exit"]["stopReason"] == "by an operator", (drained, stopped)
    assert drained["jobsDone"] == 1 and drained["startedAt"] < drained["endedAt"], drained
    assert stopped["exit"]["signal"] in (9, 15) and stopped["jobsDone"] == 0, stopped
    listed = cli.ok("workers", endpoint.id, "-a").out
    assert "stopped: by an operator" in listed or "stopped with SIGKILL: by an operator" in listed, listed
    endpoint.cancel(again)


def test_each_stop_of_a_worker_has_its_reason_also_after_a_restart(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    idle = Api(server).endpoint("echo.py", workersMax=1, idleTimeout=1)
    life = idle.ok("GET", f"/jobs/{idle.runsync({'n': 1})['id']}")
    assert life["coldStart"]["requestedAt"] <= life["coldStart"]["readyAt"] <= life["startedAt"], life
    outdated = Api(server).endpoint("echo.py", workersMin=1, workersMax=1)
    outdated.wait_health("workers", "idle", 1)
    template = f"/v1/templates/{outdated.record['templateId']}"
    env = Api(server).ok("GET", template)["env"]
    Api(server).ok("PATCH", template, json={"env": {**env, "NEW": "1"}})
    for endpoint, reason in ((idle, "idle for longer than idleTimeout"), (outdated, "replaced by the endpoint's new version")):
        until(lambda of=endpoint: ended(of), "the worker has ended", 30)
        assert [one["exit"]["stopReason"] for one in ended(endpoint)] == [reason]
    until(lambda: "jobsDone" in ended(idle)[0], "what it did is noted", 10)
    (before,) = ended(idle)
    assert before["jobsDone"] == 1 and before["startedAt"] <= before["readyAt"] <= before["endedAt"], before
    assert server.terminate() == 0
    server.start()
    assert ended(idle) == [before], "also what it did"
    assert "stopped: idle for longer than idleTimeout, after " in cli.ok("workers", idle.id, "--all").out


def test_the_end_of_a_worker_is_told_in_words_also_after_a_restart(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    endpoint = Api(server).endpoint("echo.py", workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1)
    (worker,) = endpoint.workers()
    processes.send(worker.pid, signal.SIGKILL)
    until(lambda: ended(endpoint), "the worker has ended", 20)
    assert server.terminate() == 0
    server.start()
    (known,) = [one for one in ended(endpoint) if one["id"] == worker.worker]
    assert known["exit"]["signal"] == 9 and not known["exit"]["stopped"], known
    assert known["version"] == 1 and known["startedBecause"] == "WORKERS_MIN", known
    listed = cli.ok("workers", endpoint.id, "--all").out
    assert "signal 9 (SIGKILL, often because the memory was full), after" in listed, listed
    # Within the second of its end the list says "now".
    until(lambda: " ago" in cli.ok("workers", endpoint.id, "--all").out, "the end is a second ago", 10)


def test_what_cannot_be_stopped_is_refused_in_words(api, cli, endpoint, worker):
    endpoint.run()
    worker.take()
    external = cli.run("workers", "stop", endpoint.id, worker.id)
    assert external.code == 1 and "the worker is external" in external.err, external
    unknown = cli.run("workers", "drain", endpoint.id, "nosuchworker")
    assert unknown.code == NOT_FOUND and "no running worker" in unknown.err, unknown
    nothing = cli.run("workers", "stop", endpoint.id)
    assert nothing.code == 2, nothing
    # An external worker is none that the server could stop.
    assert f"no worker of {endpoint.id} runs" in cli.ok("workers", "stop", endpoint.id, "--all").err


def test_all_workers_of_all_endpoints_are_stopped(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    assert "no worker runs" in cli.ok("workers", "stop", "--all").err
    endpoints = [Api(server).endpoint("echo.py", workersMin=1, workersMax=1) for _ in range(2)]
    for endpoint in endpoints:
        endpoint.wait_health("workers", "idle", 1)
    stopped = cli.ok("workers", "stop", "--all")
    assert stopped.out.count("is being stopped") == 2 and "2 workers of all endpoints" in stopped.err, stopped
    for endpoint in endpoints:
        until(lambda endpoint=endpoint: ended(endpoint), "its worker has ended", 20)


def test_a_wait_after_crashes_is_ended(fresh_server, tmp_path):
    server = fresh_server()
    cli = Cli(tmp_path / "config", server.url)
    endpoint = Api(server).endpoint("crash.py", workersMax=1)
    endpoint.run()
    until(lambda: len(ended(endpoint)) >= 4, "the wait has grown to 8 s", 60)
    before = len(ended(endpoint))
    cli.ok("workers", "try-now", endpoint.id)
    until(lambda: len(ended(endpoint)) > before, "the next worker started without a wait", 7)


def test_an_external_worker_has_the_address_that_it_last_asked_from(fresh_server):
    api = Api(fresh_server(config=QUICK + 'trusted_proxies = "127.0.0.1"\n'))
    endpoint, other = api.external(), api.external()
    worker = FakeWorker(endpoint)

    def addresses(path=f"/v1/endpoints/{endpoint.id}/workers", of=api):
        answer = of.ok("GET", path)
        return [one.get("address") for one in (answer["workers"] if "workers" in answer else answer)]

    worker.ping()
    assert addresses() == [None], "it has not asked for a job"
    for address, hops in (("203.0.113.9", "6.6.6.6, 203.0.113.9"), ("2001:db8::7", "2001:db8::7"), ("127.0.0.1", "")):
        worker.session.headers["X-Forwarded-For"] = hops
        endpoint.run({})
        job = worker.take()
        worker.done(job["id"], {"output": 1})
        assert addresses() == [address]
    shown = f"/v1/endpoints/{endpoint.id}?includeWorkers=true"
    assert addresses(shown) == addresses("/v1/pods") == ["127.0.0.1"]
    # Who may not see the computers sees no address.
    scopes = [{"scope": "read", "endpointIds": [endpoint.id, other.id]}]
    key = Api(api.server, api.ok("POST", "/v1/apikeys", json={"name": "some", "scopes": scopes})["key"])
    assert addresses(of=key) == addresses(shown, of=key) == [None]
    # One that the server started has a computer.
    managed = api.endpoint("echo.py", workersMax=1)
    managed.runsync({})
    (started,) = api.ok("GET", f"/v1/endpoints/{managed.id}/workers")
    assert "address" not in started and "machineId" in started
