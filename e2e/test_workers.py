"""Workers as processes: lost, hung, crashing, stopped, scaled, adopted; and external workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import processes
from harness.client import HANDLERS, Api
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.wait import holds, until


def started(path: Path) -> list[str]:
    """The jobs that a handler began, in order."""
    return path.read_text().split() if path.exists() else []


def running_job(endpoint, tmp_path, seconds: float = 60, go: Path | None = None, **fields) -> tuple[str, Path]:
    """A job whose handler is at work, and the file in which handlers note their starts. The file `go` ends the job earlier."""
    note = tmp_path / "started"
    ends = {"go": str(go)} if go else {}
    job = endpoint.run({"seconds": seconds, "started": str(note), "finished": str(tmp_path / "finished"), **ends}, **fields)
    until(lambda: job in started(note), "the handler is at work", 40)
    return job, note


# Lost workers


@pytest.mark.parametrize("handler", ["sleep_async.py", "sleep_blocking.py"])
def test_killed_worker_has_its_job_retried_then_failed(api, tmp_path, handler):
    endpoint = api.endpoint(handler, workersMax=1, maxRetries=1)
    job, note = running_job(endpoint, tmp_path)
    (first,) = endpoint.workers()
    processes.send(first.pid, signal.SIGKILL)
    until(lambda: started(note) == [job, job], "the job runs again", 40)
    assert endpoint.status(job)["retries"] == 1
    (second,) = endpoint.workers()
    assert second.worker != first.worker
    processes.send(second.pid, signal.SIGKILL)
    record = endpoint.wait_for(job)
    assert record["status"] == "FAILED" and record["retries"] == 1
    assert "signal" in record["error"].lower() and "9" in record["error"], record["error"]
    attempts = endpoint.ok("GET", f"/jobs/{job}")["attempts"]
    shown = [(attempt["n"], attempt["worker"], attempt["end"]) for attempt in attempts]
    assert shown == [(1, first.worker, "workerLost"), (2, second.worker, "workerLost")]
    assert all("signal 9" in attempt["reason"] and attempt["takenAt"] <= attempt["endedAt"] for attempt in attempts)


def test_handler_that_ends_its_process_fails_with_code_and_log(api):
    endpoint = api.endpoint("outcomes.py", workersMax=1, maxRetries=0)
    record = endpoint.wait_for(endpoint.run({"mood": "die"}), timeout_s=40)
    assert record["status"] == "FAILED"
    assert "7" in record["error"] and "the handler ends its own process" in record["error"], record["error"]


def test_hung_worker_loses_its_job_and_is_replaced(api, tmp_path):
    endpoint = api.endpoint("sleep_async.py", workersMax=1)
    go = tmp_path / "go"
    job, note = running_job(endpoint, tmp_path, go=go)
    (hung,) = endpoint.workers()
    processes.signal_worker(hung, signal.SIGSTOP)
    until(lambda: started(note) == [job, job], "another worker runs the job", 40)
    go.touch()
    record = endpoint.wait_for(job)
    assert record["status"] == "COMPLETED" and record["retries"] == 1 and record["workerId"] != hung.worker
    until(lambda: hung.pid not in [worker.pid for worker in endpoint.workers()], "the hung one is gone", 20)


def test_unserialisable_output_does_not_hold_the_job_for_ever(api):
    """The worker never posts anything and asks for the next job: an unconfirmed job comes back."""
    endpoint = api.endpoint("outcomes.py", workersMax=1, maxRetries=1)
    job = endpoint.run({"mood": "unserialisable"})
    record = endpoint.wait_for(job, timeout_s=60)
    assert record["status"] == "FAILED" and record["error"]


def test_crash_loop_backs_off_and_says_why(fresh_server):
    server = fresh_server()
    endpoint = Api(server).endpoint("crash.py", workersMax=2)
    job = endpoint.run()
    until(lambda: endpoint.health()["workers"]["unhealthy"] >= 1, "the endpoint's workers count as unhealthy", 30)
    assert endpoint.status(job)["status"] == "IN_QUEUE"
    until(lambda: "exited with code 3" in server.log(), "the log says how a worker exited", 10)
    told = endpoint.ok("GET", "/explain")["cause"]
    assert "no model file: giving up" in "\n".join(told["logTail"]), told
    # What a worker prints can hold payload, which is never in the server's log.
    assert "no model file" not in server.log()
    before = server.log().count("exited with code 3")
    holds(lambda: server.log().count("exited with code 3") - before <= 8, "starts back off", 5, 0.2)


def test_workers_run_where_the_session_leader_is_in_another_pid_namespace(fresh_server):
    """As in a container that did not begin a session: `getsid` answers 0 there."""
    isolated = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    tried = subprocess.run([*isolated, "ps", "-o", "sid=", "-p", "1"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"NOT RUN, because a PID namespace cannot be made (are we root?): {tried.stderr}")
    assert tried.stdout.strip() == "0"
    server = fresh_server(prefix=isolated)
    endpoint = Api(server).endpoint("echo.py")
    assert endpoint.runsync({"n": 1}, wait_ms=40000)["output"]["echo"] == {"n": 1}
    # The namespace ends with its first process. `unshare` does not pass SIGTERM on to it.
    server.kill()
    until(lambda: not endpoint.workers() and not processes.started_under(server.data), "the namespace has ended")


# Jobs that must end


@pytest.mark.parametrize("handler", ["sleep_async.py", "sleep_blocking.py"])
def test_cancel_really_frees_the_worker(api, tmp_path, handler):
    endpoint = api.endpoint(handler, workersMax=1)
    job, _ = running_job(endpoint, tmp_path)
    endpoint.cancel(job)
    after = endpoint.runsync({"seconds": 0}, wait_ms=40000)
    assert after["status"] == "COMPLETED"
    assert endpoint.status(job)["status"] == "CANCELLED"
    assert not (tmp_path / "finished").exists(), "the cancelled handler did not run on"


def test_an_endpoint_says_how_soon_a_blocking_handler_gives_up_its_place(fresh_server, tmp_path):
    """With the server's own grace, the place would come free after an hour."""
    server = fresh_server(config="gpu_sharing = 'off'\nstop_grace_ms = 3_600_000\nkill_grace_ms = 1_000\n")
    endpoint = Api(server).endpoint("sleep_blocking.py", workersMax=1, stopGraceMs=500)
    assert endpoint.record["stopGraceMs"] == 500
    job, _ = running_job(endpoint, tmp_path, seconds=600)
    endpoint.cancel(job)
    assert endpoint.runsync({"seconds": 0}, wait_ms=30000)["status"] == "COMPLETED"
    assert not (tmp_path / "finished").exists()


@pytest.mark.parametrize("handler", ["sleep_async.py", "sleep_blocking.py"])
def test_execution_timeout_really_frees_the_worker(api, tmp_path, handler):
    endpoint = api.endpoint(handler, workersMax=1)
    job, _ = running_job(endpoint, tmp_path, policy={"executionTimeout": 5000})
    assert endpoint.wait_for(job)["status"] == "TIMED_OUT"
    after = endpoint.runsync({"seconds": 0}, wait_ms=40000)
    assert after["status"] == "COMPLETED"
    assert not (tmp_path / "finished").exists()


def test_the_other_jobs_of_a_replaced_worker_go_on_without_a_retry(api, tmp_path):
    """A worker that does not let go of a cancelled job is replaced; what else it held is queued again."""
    endpoint = api.endpoint("ignores_cancel.py", workersMin=1, workersMax=1, maxConcurrency=4)
    endpoint.wait_health("workers", "ready", 1, 40)
    go = tmp_path / "go"
    stuck = endpoint.run({"seconds": 60, "stubborn": True})
    innocent = endpoint.run({"go": str(go), "seconds": 60})
    endpoint.wait_health("jobs", "inProgress", 2)
    (old,) = endpoint.workers()
    endpoint.cancel(stuck)
    until(lambda: endpoint.workers() and old not in endpoint.workers(), "a fresh worker", 30)
    go.touch()
    record = endpoint.wait_for(innocent, timeout_s=40)
    assert record["status"] == "COMPLETED" and record["workerId"] != old.worker and "retries" not in record
    assert endpoint.status(stuck)["status"] == "CANCELLED"


# Scaling


def test_scale_from_zero_to_three_and_back(api):
    endpoint = api.endpoint(
        "sleep_async.py", workersMin=0, workersMax=3, idleTimeout=2, scalerType="REQUEST_COUNT", scalerValue=1
    )
    assert endpoint.workers() == []
    jobs = [endpoint.run({"seconds": 4}) for _ in range(9)]
    until(lambda: len(endpoint.workers()) == 3, "three workers", 30)
    seen = [len(endpoint.workers())]
    for job in jobs:
        endpoint.wait_for(job, timeout_s=60)
        seen.append(len(endpoint.workers()))
    assert max(seen) <= 3
    assert len({endpoint.status(job)["workerId"] for job in jobs}) == 3, "all three worked"
    until(lambda: endpoint.workers() == [], "back to none", 30)
    endpoint.wait_health("workers", "idle", 0)
    assert endpoint.health()["jobs"]["retried"] == 0, "scaling down cost no job anything"


def test_queue_delay_adds_workers_only_when_jobs_wait(api):
    endpoint = api.endpoint("sleep_async.py", workersMax=2, scalerType="QUEUE_DELAY", scalerValue=2)
    endpoint.run({"seconds": 15})
    until(lambda: len(endpoint.workers()) == 1, "the first job starts a worker immediately", 10)
    endpoint.wait_health("jobs", "inProgress", 1, 40)
    endpoint.run({"seconds": 0})
    until(lambda: len(endpoint.workers()) == 2, "the second worker comes when the job has waited", 20)


def test_low_priority_starts_nothing(api):
    endpoint = api.endpoint("echo.py")
    low = endpoint.run(policy={"lowPriority": True})
    holds(lambda: endpoint.workers() == [], "no worker is started", 3)
    endpoint.run()
    assert endpoint.wait_for(low, timeout_s=40)["status"] == "COMPLETED", "it rides along with what others start"


def test_no_workers_allowed_means_paused(api):
    endpoint = api.endpoint("echo.py", workersMax=0)
    job = endpoint.run()
    holds(lambda: endpoint.workers() == [], "nothing starts", 2)
    endpoint.patch(workersMax=1)
    assert endpoint.wait_for(job, timeout_s=40)["status"] == "COMPLETED"


def test_idle_timeout_and_minimum(api):
    endpoint = api.endpoint("echo.py", workersMin=1, workersMax=2, idleTimeout=1)
    until(lambda: len(endpoint.workers()) == 1, "the minimum is there without a job", 10)
    endpoint.wait_health("workers", "ready", 1, 40)
    holds(lambda: len(endpoint.workers()) == 1, "the minimum stays", 3)
    endpoint.patch(workersMin=0)
    until(lambda: endpoint.workers() == [], "the idle worker ends", 20)


def test_scaled_down_worker_ends_by_itself(fresh_server):
    """It is drained, told to end, and its polls are let go: nothing needs to be killed."""
    # Python has a minute for its own end.
    server = fresh_server(config=QUICK.replace("stop_grace_ms = 4000", "stop_grace_ms = 60000"))
    endpoint = Api(server).endpoint("echo.py", workersMax=1, idleTimeout=1)
    assert endpoint.runsync({}, wait_ms=40000)["status"] == "COMPLETED"
    until(lambda: endpoint.workers() == [], "the idle worker ends", 20)
    ends = until(lambda: [line for line in server.log().splitlines() if "worker stopped" in line], "its end is logged")
    assert len(ends) == 1 and "code=0" in ends[0], ends


def test_running_jobs_are_not_killed_to_scale_down(api, tmp_path):
    endpoint = api.endpoint("sleep_async.py", workersMax=1, idleTimeout=1)
    job, note = running_job(endpoint, tmp_path, seconds=5)
    endpoint.patch(workersMax=0)
    record = endpoint.wait_for(job)
    assert record["status"] == "COMPLETED" and "retries" not in record and started(note) == [job]
    until(lambda: endpoint.workers() == [], "then the worker ends", 20)


def test_changed_template_replaces_workers_after_their_jobs(api, tmp_path):
    template = api.template("sleep_async.py")
    endpoint = api.endpoint(templateId=template["id"], workersMin=1, workersMax=1)
    job, note = running_job(endpoint, tmp_path, seconds=4)
    (old,) = endpoint.workers()
    api.ok("PATCH", f"/v1/templates/{template['id']}", json={"env": {"NEW": "value"}})
    record = endpoint.wait_for(job)
    assert record["status"] == "COMPLETED" and started(note) == [job]
    until(lambda: [w.worker for w in endpoint.workers()] not in ([], [old.worker]), "a new worker serves", 30)
    until(lambda: old.worker not in [w.worker for w in endpoint.workers()], "the old one ends", 30)


def test_deleting_an_endpoint_stops_its_workers(api, tmp_path):
    endpoint = api.endpoint("sleep_blocking.py", workersMin=1, workersMax=1)
    running_job(endpoint, tmp_path)
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    until(lambda: endpoint.workers() == [], "the workers end", 20)


# Workers outlive the server


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("handler", ["sleep_async.py", "sleep_blocking.py"])
def test_restart_during_a_job_does_not_disturb_it(fresh_server, tmp_path, how, handler):
    server = fresh_server()
    endpoint = Api(server).endpoint(handler, workersMax=1)
    # The SDK tells an end three times within about 2 s: the job ends when a server is there.
    go = tmp_path / "go"
    job, note = running_job(endpoint, tmp_path, go=go)
    before = endpoint.workers()
    if how == "SIGTERM":
        assert server.terminate() == 0
    else:
        server.kill()
    assert endpoint.workers() == before, "the worker lives on without a server"
    server.start()
    go.touch()
    record = endpoint.wait_for(job, timeout_s=30)
    assert record["status"] == "COMPLETED" and "retries" not in record
    assert started(note) == [job] and record["workerId"] == before[0].worker
    assert endpoint.runsync({"seconds": 0})["workerId"] == before[0].worker, "the adopted worker goes on serving"
    assert endpoint.workers() == before


def test_worker_that_ended_while_the_server_was_away_is_noticed(fresh_server, tmp_path):
    server = fresh_server()
    endpoint = Api(server).endpoint("sleep_async.py", workersMax=1)
    go = tmp_path / "go"
    job, note = running_job(endpoint, tmp_path, go=go)
    (worker,) = endpoint.workers()
    server.kill()
    processes.send(worker.pid, signal.SIGKILL)
    go.touch()
    server.start()
    record = endpoint.wait_for(job, timeout_s=40)
    assert record["status"] == "COMPLETED" and record["retries"] == 1 and started(note) == [job, job]


# External workers


def test_processes_of_a_cancelled_async_handler_end(fresh_server, tmp_path):
    """The worker lives on, and so do what it began before the job and what the next job begins."""
    server = fresh_server()
    endpoint = Api(server).endpoint("subprocesses.py", workersMax=1)

    def begun(name: str) -> list[int]:
        note = tmp_path / name
        until(lambda: note.exists() and len(note.read_text().split()) == 3, f"{name} began its processes", 40)
        return [int(pid) for pid in note.read_text().split()]

    job = endpoint.run({"note": str(tmp_path / "first")})
    helper, child, daemon = begun("first")
    endpoint.cancel(job)
    again = endpoint.run({"note": str(tmp_path / "second")})
    assert begun("second")[0] == helper, "the same worker"
    until(lambda: not processes.lives(child) and not processes.lives(daemon), "its processes are gone", 20)
    assert all(processes.lives(pid) for pid in begun("second"))
    until(lambda: "leftover processes of stopped job ended" in server.log(), "the log says so", 10)
    endpoint.cancel(again)
    until(lambda: not any(processes.lives(pid) for pid in begun("second")[1:]), "those of the second are gone, too", 20)
    assert processes.lives(helper)


def test_workers_whose_server_is_gone_for_good_end_and_say_little(fresh_server, tmp_path):
    server = fresh_server(config=QUICK + "orphan_ms = 6_000\n")
    endpoint = Api(server).endpoint("sleep_async.py", workersMin=1, workersMax=1, maxRetries=0)
    job, note = running_job(endpoint, tmp_path, seconds=600)
    (worker,) = endpoint.workers()
    log = server.data / "workers" / "live" / worker.worker / "log"
    server.kill()
    until(lambda: not processes.worker_pids(server.port), "the worker and all that it started are gone", 40)
    text = log.read_text()
    assert len(text) < 100_000, "it repeats itself a thousand times a second"
    assert "more times: " in text and "the server has been away for 6 s: ending the worker" in text, text[-2000:]
    server.start()
    until(lambda: started(note) == [job, job], "the job runs again", 40)
    assert "retries" not in endpoint.status(job), "the job is not blamed"
    endpoint.cancel(job)


def test_processes_of_a_worker_whose_shim_was_killed_end(fresh_server, tmp_path):
    """A handler's daemon, in a session of its own and without a parent, would keep its GPU for ever."""
    server = fresh_server()
    endpoint = Api(server).endpoint("daemon.py", workersMax=1)
    daemon = int(endpoint.runsync({}, wait_ms=40000)["output"]["daemon"])
    (worker,) = [worker for worker in endpoint.workers() if worker.pid != daemon]
    shim = processes.parent(worker.pid)
    assert processes.parent(daemon) == shim and os.getsid(daemon) == daemon
    processes.send(shim, signal.SIGKILL)
    until(lambda: not processes.lives(daemon), "the daemon is gone", 20)
    assert endpoint.runsync({}, wait_ms=40000)["status"] == "COMPLETED", "a fresh worker takes its place"


def test_external_worker_serves_and_counts(api, tmp_path):
    endpoint = api.external()
    made = endpoint.worker_token()
    assert made["env"]["RUNPOD_AI_API_KEY"] == made["token"]
    environment = {**os.environ, **made["env"], "RUNPOD_POD_ID": "worker-from-outside"}
    with (tmp_path / "log").open("wb") as log:
        worker = subprocess.Popen(
            [sys.executable, "-u", str(HANDLERS / "echo.py")],
            env=environment, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True,
        )
        try:
            endpoint.wait_health("workers", "ready", 1, 40)
            record = endpoint.runsync({"hello": 1})
            assert record["output"]["echo"] == {"hello": 1} and record["workerId"] == "worker-from-outside"
        finally:
            # With the process that pings for it.
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(60)
    endpoint.wait_health("workers", "ready", 0, 30)


def test_a_worker_that_fails_its_checks_is_seen(fresh_server):
    """Asked for more memory than there is, the SDK pings `unhealthy` and ends with code 1."""
    server = fresh_server()
    env = {"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "false", "RUNPOD_MIN_MEMORY_GB": "1000000"}
    endpoint = Api(server).endpoint("echo.py", env=env, workersMin=1, workersMax=1)
    until(lambda: endpoint.health()["workers"]["unhealthy"] >= 1, "it counts as unhealthy", 40)
    until(lambda: "memory" in server.log().lower(), "the log says why", 10)


def test_worker_secrets_are_not_in_the_log(fresh_server):
    server = fresh_server()
    endpoint = Api(server).endpoint("echo.py", env={"PASSWORD": "hunter2-very-secret"}, workersMax=1)
    assert endpoint.runsync({}, wait_ms=40000)["status"] == "COMPLETED"
    token = endpoint.worker_token()["token"]
    assert "hunter2-very-secret" not in server.log() and token not in server.log()
    assert "hunter2-very-secret" not in endpoint.api.call("GET", f"/v1/endpoints/{endpoint.id}").text


# Tokens of managed workers


def token_of(worker) -> str:
    return processes.environment(worker.pid)["RUNPOD_AI_API_KEY"]


def poll_status(endpoint, name: str, token: str) -> int:
    return FakeWorker(endpoint, name=name, token=token).get(f"/ping/{name}?gpu=none").status_code


def test_a_stolen_token_serves_its_own_worker_alone_and_ends_with_it(api, tmp_path):
    endpoint = api.endpoint("sleep_blocking.py", workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "idle", 2, 60)
    one, other = endpoint.workers()
    token = token_of(one)
    assert token != token_of(other) and token != endpoint.worker_token()["token"]
    job, _ = running_job(endpoint, tmp_path)
    for name in (other.worker, "an-invented-one"):
        thief = FakeWorker(endpoint, name=name, token=token)
        assert thief.take_raw().status_code == 401
        assert thief.post("job-done", job, {"output": "forged"}).status_code == 401
        assert poll_status(endpoint, name, token) == 401
    assert endpoint.status(job)["status"] == "IN_PROGRESS"
    forged = token.replace(f"_{one.worker}_", f"_{other.worker}_")
    assert poll_status(endpoint, other.worker, forged) == 401, "the name in a token is signed"
    assert poll_status(endpoint, one.worker, token) == 200
    api.ok("POST", f"/v1/endpoints/{endpoint.id}/workers/{one.worker}/stop")
    until(lambda: poll_status(endpoint, one.worker, token) == 401, "the token has ended with its worker", 30)
    assert poll_status(endpoint, other.worker, token_of(other)) == 200
    endpoint.cancel(job)


def test_a_restarted_server_knows_which_tokens_have_ended(fresh_server):
    server = fresh_server()
    endpoint = Api(server).endpoint("echo.py", workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "idle", 2, 60)
    ended, alive = endpoint.workers()
    stolen, own = token_of(ended), token_of(alive)
    server.kill()
    processes.send(ended.pid, signal.SIGKILL)
    until(lambda: not processes.lives(ended.pid), "the worker has ended", 10)
    server.start()
    until(lambda: poll_status(endpoint, ended.worker, stolen) == 401, "the token has ended with its worker", 20)
    assert poll_status(endpoint, alive.worker, own) == 200
    assert endpoint.runsync({"n": 1})["status"] == "COMPLETED"
