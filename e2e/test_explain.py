"""Why a job waits: each cause is brought about, and the sentence about it read."""

import re
import signal
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import pytest

from harness import processes
from harness.client import Api, Endpoint, unique
from harness.disk import Disk
from harness.fake_worker import FakeWorker
from harness.server import QUICK, Server
from harness.wait import until
from test_cli import TIMED_OUT, UNAUTHORIZED, Cli, fails
from test_gpus import LARGE, MACHINE

BLOCKING = {
    "store_failing", "draining", "paused", "provider_unavailable", "gpu_impossible", "start_failed", "workers_crash",
    "workers_unhealthy", "no_external_worker",
}
SPAN = r"\d+(\.\d)? (ms|s|min|h)"


def explain(endpoint: Endpoint, job: str | None = None) -> dict:
    """The explanation of a job or of the endpoint, with what holds for every one checked."""
    answer = endpoint.ok("GET", f"/explain/{job}" if job else "/explain")
    assert (answer["endpoint"], answer["job"]) == (endpoint.id, job)
    for cause in [answer["cause"], *answer["also"]]:
        assert cause["blocking"] == (cause["code"] in BLOCKING)
        assert cause["title"] and not cause["title"].endswith(".") and cause["text"].endswith("."), cause
    codes = [cause["code"] for cause in [answer["cause"], *answer["also"]]]
    assert len(set(codes)) == len(codes), codes
    assert answer["ahead"] == (answer["position"] - 1 if answer["position"] else None)
    if BLOCKING & set(codes):
        assert answer["estimate"] is None
    return answer


def wait_cause(endpoint: Endpoint, job: str | None, code: str, text: str = "", timeout_s: float = 20) -> dict:
    """The explanation once its cause has this code, and its text matches."""

    def there():
        answer = explain(endpoint, job)
        assert answer["cause"]["code"] == code, answer
        assert re.search(text, answer["cause"]["text"]), answer["cause"]["text"]
        return answer

    return until(there, f"the cause is {code}", timeout_s)


def also(answer: dict, code: str) -> dict:
    """The further cause with this code."""
    (found,) = [cause for cause in answer["also"] if cause["code"] == code] or [None]
    assert found, answer
    return found


def actions(answer: dict) -> list[str]:
    return [action["do"] for action in answer["cause"]["actions"]]


def test_a_job_that_does_not_wait_runs_or_has_ended(api, tmp_path):
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    parked = worker.park()
    job = endpoint.run()
    assert parked.result().json()["id"] == job
    running = explain(endpoint, job)
    assert running["state"] == "IN_PROGRESS" and running["waitingMs"] is None
    assert re.fullmatch(f"It has been running for {SPAN}\\.", running["cause"]["text"])
    assert running["also"] == [], "what would make it wait does not matter"
    worker.done(job, {"output": 1})
    ended = explain(endpoint, job)
    assert ended["cause"]["code"] == "not_waiting" and ended["cause"]["since"]
    assert re.fullmatch(f"It ended {SPAN} ago: completed\\.", ended["cause"]["text"])
    assert explain(endpoint)["cause"]["text"] == "No job is queued, and none runs."
    for unknown in ("no-id", "0190163d-8694-739b-aea5-966c26f8ad90"):
        assert endpoint.call("GET", f"/explain/{unknown}").status_code == 404


def test_a_paused_endpoint(api):
    endpoint = api.endpoint(workersMax=0)
    jobs = [endpoint.run() for _ in range(3)]
    answer = explain(endpoint, jobs[2])
    assert answer["cause"]["code"] == "paused" and "`workersMax` is 0" in answer["cause"]["text"]
    assert (answer["state"], answer["position"], answer["ahead"], answer["queued"]) == ("IN_QUEUE", 3, 2, 3)
    assert actions(answer) == ["resume"]
    assert answer["cause"]["since"] and answer["cause"]["details"]["by"] == "the operator's key", "it was made paused"
    assert also(answer, "in_line")["text"].startswith("2 jobs are ahead; none has finished")
    assert explain(endpoint)["cause"]["code"] == "paused"
    endpoint.patch(workersMax=1)
    assert endpoint.wait_for(jobs[2])["status"] == "COMPLETED"

    # Who paused it and when is known from the change.
    endpoint.patch(workersMax=0)
    endpoint.run()
    cause = explain(endpoint)["cause"]
    assert re.fullmatch(rf"`workersMax` is 0\. It was paused {SPAN} ago by the operator's key\.", cause["text"]), cause
    assert cause["since"] and cause["details"]["by"] == "the operator's key"
    scopes = [{"scope": "jobs", "endpointIds": [endpoint.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": "jobs", "scopes": scopes})["key"]
    seen = Endpoint(Api(api.server, key), endpoint.record).ok("GET", "/explain")["cause"]
    assert "It was paused" in seen["text"] and "operator" not in str(seen), seen


def test_workers_that_crash_while_they_start(api, tmp_path):
    endpoint = api.endpoint("crash.py", workersMax=1)
    job = endpoint.run()
    text = rf"^\d+ workers in a row ended with code 3 after {SPAN}, the last {SPAN} ago\. The next try (is in|has begun)"
    answer = wait_cause(endpoint, job, "workers_crash", text)
    cause = answer["cause"]
    assert cause["title"] == "Every worker crashes while it starts" and cause["since"]
    assert cause["logTail"] == ["no model file: giving up"]
    details = cause["details"]
    assert (details["code"], details["signal"]) == (3, None) and details["crashes"] >= 2 and details["livedMs"] < 20_000
    assert actions(answer) == ["tryNow", "openLog"]
    log = api.call("GET", f"/v1/endpoints/{endpoint.id}/workers/{details['worker']}/logs")
    assert "no model file" in log.text
    assert explain(endpoint)["cause"]["code"] == "workers_crash"

    # A key for jobs reads no logs and changes no settings.
    scopes = [{"scope": "jobs", "endpointIds": [endpoint.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": unique("key"), "scopes": scopes})["key"]
    seen = Endpoint(Api(api.server, key), endpoint.record).ok("GET", f"/explain/{job}")["cause"]
    assert (seen["code"], seen["logTail"], seen["actions"]) == ("workers_crash", [], [])
    narrow = Cli(tmp_path / "narrow", api.server.url, key)
    fails(narrow.run("explain", job), UNAUTHORIZED, f"longshore explain ENDPOINT {job}")
    assert "Every worker crashes" in narrow.ok("explain", endpoint.id, job).out

    # The commands that wait, and `health`, say it without being asked.
    cli = Cli(tmp_path / "cli", api.server.url)
    assert "Every worker crashes while it starts" in cli.ok("health", endpoint.id).out
    for words in (("status", endpoint.id, job), ("run", endpoint.id, "{}")):

        def is_said(words=words) -> bool:
            waited = cli.run(*words, "--wait", "--timeout", "5s")
            assert waited.code == TIMED_OUT, waited
            assert "Every worker crashes while it starts" in waited.err and "no model file" in waited.err, waited
            return True

        until(is_said, f"{words[0]} says it")


def test_a_change_without_effect_tries_now(api):
    endpoint = api.endpoint("crash.py", workersMax=1)
    job = endpoint.run()
    until(lambda: explain(endpoint, job)["cause"].get("details", {}).get("crashes", 0) >= 4, "four crashes", 40)
    # While a worker starts, there is no next try.
    next_try = until(lambda: explain(endpoint, job)["cause"]["details"].get("nextTryAt"), "the next try is known")
    began = datetime.now(UTC)
    endpoint.patch()
    until(lambda: explain(endpoint, job)["cause"]["details"].get("crashes", 9) < 4, "the crashes are counted anew", 5)

    def tried() -> list[datetime]:
        listed = api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers?ended=true")
        starts = [datetime.fromisoformat(worker["startedAt"]) for worker in listed]
        return sorted(start for start in starts if start >= began)

    if began < datetime.fromisoformat(next_try):
        assert until(tried, "the next try")[0] < datetime.fromisoformat(next_try), "the wait was not over"


def test_a_command_that_does_not_exist(api):
    template = api.template(dockerStartCmd=["/no/such/program"])
    endpoint = api.endpoint(templateId=template["id"], workersMax=1)
    job = endpoint.run()
    answer = wait_cause(endpoint, job, "start_failed", r"^Cannot start `/no/such/program`: .*\. The next try (is in|has begun)")
    assert answer["cause"]["title"] == "A worker cannot be started" and actions(answer) == ["tryNow"]


def test_a_start_that_hangs(api):
    endpoint = api.endpoint("never_ready.py", workersMax=1, startPatienceMs=10_000)
    job = endpoint.run()
    starting = wait_cause(endpoint, job, "worker_starting", rf"^1 worker has been starting for {SPAN}: it loads\.$")
    assert starting["cause"]["details"]["stage"] == "loading"
    late = r"It is replaced if it asks for no job within 10 s \(`startPatienceMs`\)\.$"
    wait_cause(endpoint, job, "worker_starting", late)
    text = rf"^It asked for no job within 10 s \(`startPatienceMs`\) and was ended\."
    answer = wait_cause(endpoint, job, "start_failed", text, 30)
    assert answer["cause"]["title"] == "A worker does not become ready"
    until(lambda: explain(endpoint, job)["cause"]["logTail"] == ["loading"], "its log is shown")


def test_an_environment_that_cannot_be_made(api):
    """Workers of deployed code say what they do: they make the environment, and fail to install a package."""
    from test_code import archive, keep

    name = unique("code")
    files = {"handler.py": "print()", "requirements.txt": "/no/such/package.whl\n"}
    code = keep(api, name, archive(files)).json()["hash"]
    template = api.template(dockerStartCmd=[], workdir=f"code:{code}")
    endpoint = api.endpoint(templateId=template["id"], workersMax=1)
    job = endpoint.run()
    stages = set()

    def failed():
        cause = explain(endpoint, job)["cause"]
        stages.add(cause["details"].get("stage"))
        assert cause["code"] == "start_failed", cause
        return cause

    cause = until(failed, "the environment cannot be made", 60)
    assert cause["title"] == "A worker cannot be started: its Python environment cannot be made"
    assert any("package.whl" in line for line in cause["logTail"]), cause
    assert "environment" in stages, stages


SLOW_BACKEND = """
import pathlib, time, zipfile

def build_wheel(directory, *_):
    pathlib.Path({begun!r}).touch()
    while not pathlib.Path({go_on!r}).exists():
        time.sleep(0.05)
    with zipfile.ZipFile(f"{{directory}}/slow-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("slow-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1\\n")
        wheel.writestr("slow-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("slow-1.dist-info/RECORD", "")
    return "slow-1-py3-none-any.whl"
"""


def installing(api, folder: Path):
    """An endpoint whose first worker installs a package until the file that is returned exists, and its job."""
    from test_code import archive, keep

    package, begun, go_on = folder / "slow", folder / "begun", folder / "go_on"
    package.mkdir()
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "slow"\nversion = "1"\n'
    )
    (package / "backend.py").write_text(SLOW_BACKEND.format(begun=str(begun), go_on=str(go_on)))
    files = {"handler.py": "import slow_is_no_module", "requirements.txt": f"{package}\n"}
    code = keep(api, unique("code"), archive(files)).json()["hash"]
    template = api.template(dockerStartCmd=[], workdir=f"code:{code}")
    endpoint = api.endpoint(templateId=template["id"], workersMax=1)
    job = endpoint.run()
    until(begun.exists, "the package is being installed", 60)
    return endpoint, job, go_on


def test_a_worker_that_installs_packages_says_so(api, tmp_path):
    endpoint, job, go_on = installing(api, tmp_path)
    answer = wait_cause(endpoint, job, "worker_starting", rf"^1 worker has been starting for {SPAN}: it installs packages")
    assert answer["cause"]["details"]["stage"] == "packages", answer
    cli = Cli(tmp_path / "config", api.server.url)
    assert "installs packages" in cli.ok("explain", endpoint.id, job).out
    waited = ("status", endpoint.id, job, "--wait", "--timeout", "1s")
    until(lambda: "it installs packages" in cli.run(*waited).err, "the command that waits says it")
    go_on.touch()
    wait_cause(endpoint, job, "workers_crash", "", 60)


def test_no_external_worker_a_silent_one_and_a_busy_one(api):
    endpoint = api.external()
    job = endpoint.run()
    answer = explain(endpoint, job)
    assert answer["cause"]["code"] == "no_external_worker" and actions(answer) == ["showCommand"]
    assert "none has asked for a job since it was made" in answer["cause"]["text"]
    assert answer["cause"]["since"] == endpoint.record["createdAt"], answer
    worker = FakeWorker(endpoint)
    assert worker.take()["id"] == job
    second = endpoint.run()
    answer = explain(endpoint, second)
    assert answer["cause"]["code"] == "all_busy"
    assert answer["cause"]["text"].startswith("The only worker is busy. No job is ahead;")
    worker.done(job, {"output": 1})
    answer = wait_cause(endpoint, second, "worker_silent", rf"^1 worker is ready but has not asked for a job for {SPAN}: its handler", 30)
    assert answer["cause"]["details"]["silentMs"] >= 10_000
    worker.take()


def test_gpus_that_no_machine_has(fresh_server):
    api = Api(fresh_server(config=MACHINE))
    endpoint = api.endpoint("environment.py", gpuTypeIds=["NVIDIA B200"], gpuCount=4)
    job = endpoint.run()
    answer = explain(endpoint, job)
    assert answer["cause"]["code"] == "gpu_impossible" and actions(answer) == ["changeGpus"]
    assert answer["cause"]["text"] == f"A worker asks for 4 × NVIDIA B200; there are 2 × {LARGE}, 2 × NVIDIA L4."
    endpoint.patch(gpuTypeIds=[LARGE], gpuCount=1)
    assert endpoint.wait_for(job)["status"] == "COMPLETED"


def test_gpus_that_are_taken_and_gpus_that_are_kept(fresh_server):
    api = Api(fresh_server(config=MACHINE))
    holder = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMin=1, workersMax=1, name="holder")
    holder.wait_health("workers", "idle", 1, 40)
    wide = api.endpoint("environment.py", gpuTypeIds=[LARGE], gpuCount=2, workersMax=1, idleTimeout=90, name="wide")
    wide_job = wide.run()
    answer = wait_cause(wide, wide_job, "gpu_busy")
    assert answer["cause"]["text"] == (
        f"A worker asks for 2 × {LARGE}. 1 of 2 are free: holder has 1 worker, idle. "
        "It is first in line for what comes free."
    )
    narrow = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMax=1, name="narrow")
    narrow_job = narrow.run()
    text = rf"^A worker asks for 1 × {LARGE}\. What is free is kept for wide, which needs 2 and has waited longest, for \d+ min more\.$"
    wait_cause(narrow, narrow_job, "gpu_kept", text)

    # Who may see `narrow` alone reads no other name.
    scopes = [{"scope": "read", "endpointIds": [narrow.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": "narrow", "scopes": scopes})["key"]
    seen = Endpoint(Api(api.server, key), narrow.record).ok("GET", f"/explain/{narrow_job}")["cause"]
    assert "kept for another endpoint, which" in seen["text"] and "wide" not in str(seen)

    holder.patch(workersMin=0, workersMax=0)
    assert wide.wait_for(wide_job)["status"] == "COMPLETED"
    taken = r"All 2 are taken: wide has 1 worker, idle, ends in \d+ s if it gets no job\."
    wait_cause(narrow, narrow_job, "gpu_busy", taken)
    assert narrow.ok("GET", "/explain")["cause"]["details"]["idleEndAt"]
    wide.patch(workersMax=0)
    assert narrow.wait_for(narrow_job)["status"] == "COMPLETED"


def test_every_worker_is_busy(api):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1)
    first = endpoint.run({"seconds": 600})
    endpoint.wait_for(first, "IN_PROGRESS", timeout_s=40)
    jobs = [endpoint.run({"seconds": 0}) for _ in range(3)]
    answer = explain(endpoint, jobs[2])
    assert answer["cause"]["code"] == "all_busy" and actions(answer) == ["raiseWorkersMax"]
    assert answer["cause"]["text"].startswith("The only worker is busy, and `workersMax` is 1. 2 jobs are ahead; none has finished")
    assert answer["estimate"] is None, "nothing was measured"
    assert answer["ahead"] == 2 and explain(endpoint)["cause"]["code"] == "all_busy"
    endpoint.cancel(first)
    assert endpoint.wait_for(jobs[2], timeout_s=60)["status"] == "COMPLETED"


def test_only_low_priority_jobs(api):
    endpoint = api.endpoint(workersMax=1)
    job = endpoint.run(policy={"lowPriority": True})
    answer = explain(endpoint, job)
    assert answer["cause"]["code"] == "low_priority"
    assert endpoint.runsync(wait_ms=60000)["status"] == "COMPLETED", "a worker starts for another job"
    assert endpoint.wait_for(job)["status"] == "COMPLETED"


def test_the_scaler_waits(api):
    by_delay = api.endpoint("sleep_blocking.py", workersMax=3, scalerType="QUEUE_DELAY", scalerValue=600)
    by_count = api.endpoint("sleep_blocking.py", workersMax=3, scalerType="REQUEST_COUNT", scalerValue=9)
    running = [endpoint.run({"seconds": 600}) for endpoint in (by_delay, by_count)]
    for endpoint, job in zip((by_delay, by_count), running):
        endpoint.wait_for(job, "IN_PROGRESS", timeout_s=40)
    text = rf"^A worker is added once a job has waited 10 min \(`scalerValue` is 600 s\); the oldest one has waited {SPAN}\.$"
    wait_cause(by_delay, by_delay.run(), "scaler_waits", text)
    text = r"^It wants one worker for 9 jobs \(`scalerValue`\): 2 jobs are queued or running, for 1 worker\.$"
    wait_cause(by_count, by_count.run(), "scaler_waits", text)


def test_workers_of_an_older_version_finish_first(api):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1)
    running = endpoint.run({"seconds": 600})
    endpoint.wait_for(running, "IN_PROGRESS", timeout_s=40)
    waiting = endpoint.run({"seconds": 0})
    endpoint.patch(templateId=api.template("echo.py")["id"])
    text = r"^Workers of version 1 finish their jobs; those of version 2 start as they go \(0 of 1\)\.$"
    wait_cause(endpoint, waiting, "version_change", text)
    endpoint.cancel(running)
    assert "echo" in endpoint.wait_for(waiting, timeout_s=60)["output"]


def test_a_job_whose_worker_was_lost(api):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1, maxRetries=2)
    job = endpoint.run({"seconds": 600})
    endpoint.wait_for(job, "IN_PROGRESS", timeout_s=40)
    (worker,) = endpoint.workers()
    processes.send(worker.pid, signal.SIGKILL)
    until(lambda: endpoint.status(job).get("retries") == 1, "the loss is noticed")
    # The supervisor says a moment later that it starts another one.
    until(lambda: explain(endpoint, job)["cause"]["code"] in ("worker_starting", "workers_crash"), "another worker starts", 10)
    answer = explain(endpoint, job)
    retrying = also(answer, "retrying")
    text = rf"^Its last try failed {SPAN} ago: worker {worker.worker} was killed by signal 9 after [\d.]+ (ms|s)"
    assert re.search(text, retrying["text"]), retrying
    assert retrying["text"].endswith("This is try 2 of 3, from the front of the queue.")
    endpoint.cancel(job)


def test_starts_and_rates_give_an_estimate(api):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1)
    for _ in range(8):
        assert endpoint.runsync({"seconds": 0.2}, wait_ms=60000)["status"] == "COMPLETED"
    jobs = [endpoint.run({"seconds": 0.5}) for _ in range(6)]
    answer = explain(endpoint, jobs[-1])
    while answer["state"] == "IN_QUEUE" and answer["estimate"] is None:
        answer = explain(endpoint, jobs[-1])
    assert answer["estimate"]["minMs"] <= answer["estimate"]["maxMs"], answer
    assert re.search(r"finish (a second|a minute|an hour)", answer["cause"]["text"]), answer
    endpoint.wait_for(jobs[-1], timeout_s=60)


def test_remarks_about_the_ttl_and_a_full_queue(api):
    endpoint = api.endpoint(workersMax=0, maxQueueLength=2)
    soon, late = endpoint.run(policy={"ttl": 60_000}), endpoint.run()
    answer = explain(endpoint, soon)
    assert re.fullmatch(r"It is deleted in \d+ s, when its ttl ends\.", also(answer, "ttl_near")["text"])
    assert also(answer, "queue_full")["text"] == "2 jobs are queued (`maxQueueLength`); further ones are refused."
    assert "ttl_near" not in [cause["code"] for cause in explain(endpoint, late)["also"]]


def test_a_version_whose_jobs_run_longer(api):
    endpoint = api.endpoint("sleep_blocking.py", workersMax=1)

    def end(count: int, seconds: float) -> float:
        """The median of their execution times, in ms."""
        jobs = [endpoint.run({"seconds": seconds}) for _ in range(count)]
        return median(endpoint.wait_for(job, "COMPLETED", timeout_s=60)["executionTime"] for job in jobs)

    before = end(20, 0)
    longer = max(250, 4 * before)
    api.ok("PATCH", f"/v1/templates/{endpoint.record['templateId']}", json={"env": {"MODEL": "larger"}})
    # The first one shows that the version has changed. It may have begun before.
    end(21, longer / 1000)
    endpoint.patch(workersMax=0)
    slow = also(explain(endpoint, endpoint.run()), "slow_since_version")
    assert slow["details"]["to"] == slow["details"]["from"] + 1, slow
    assert slow["details"]["p50MsBefore"] < longer <= slow["details"]["p50Ms"], slow
    assert re.match(r"Half of the last 20 jobs of version \d+ ran [\d.]+ s or longer; of version", slow["text"]), slow


@pytest.mark.parametrize("fault, text", [("write ENOSPC", "Free space on the disk"), ("write EIO", "nothing new is handed out")])
def test_a_store_that_cannot_write(tmp_path: Path, fault, text):
    server = Server(folder=tmp_path, config=QUICK)
    disk = Disk(server.data, tmp_path)
    server.environment = disk.environment
    try:
        endpoint = Api(server.start()).external()
        job = endpoint.run()
        disk.fail(fault, fault.replace("write", "create"))
        until(lambda: endpoint.call("POST", "/run", json={"input": {}}).status_code == 503, "a submit is refused")
        answer = wait_cause(endpoint, job, "store_failing", text)
        assert answer["cause"]["since"] and answer["cause"]["details"]["error"]
        disk.work()
        wait_cause(endpoint, job, "no_external_worker")
    finally:
        disk.work()
        server.close()
