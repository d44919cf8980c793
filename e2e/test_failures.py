"""Why jobs failed, in groups: with the official SDK, over a restart, and by kind."""

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.wait import until
from test_cli import Cli


def groups(endpoint, query: str = "") -> list[dict]:
    return endpoint.api.ok("GET", f"/v1/endpoints/{endpoint.id}/failures{query}")


def fail(endpoint, worker: FakeWorker, error: str) -> str:
    job = endpoint.run()
    assert worker.take()["id"] == job
    worker.done(job, {"error": error})
    return job


def test_errors_of_the_sdk_are_grouped_by_type_and_place(api):
    endpoint = api.endpoint("outcomes.py")
    jobs = [endpoint.run({"mood": "raise"}) for _ in range(2)]
    for job in jobs:
        assert endpoint.wait_for(job, "FAILED")["error"]
    (group,) = groups(endpoint)
    assert (group["kind"], group["count"], group["sinceVersion"]) == ("handler", 2, 1), group
    assert (group["type"], group["message"]) == ("ValueError", "the handler raised"), group
    assert group["place"].startswith("outcomes.py:"), group
    assert group["job"] in jobs and sum(group["perHour"]) == 2


def test_what_is_too_large_and_what_runs_too_long_are_kinds_of_their_own(api):
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    # Its upload may take long on a busy computer.
    large = endpoint.run()
    assert worker.take()["id"] == large
    worker.done(large, {"output": "x" * 21_000_000})
    assert endpoint.wait_for(large)["status"] == "FAILED"
    slow = endpoint.run(policy={"executionTimeout": 5000})
    assert worker.take()["id"] == slow
    assert endpoint.wait_for(slow)["status"] == "TIMED_OUT"
    kinds = {group["kind"]: group for group in groups(endpoint)}
    assert set(kinds) == {"size", "timedOut"}, kinds
    assert kinds["timedOut"]["message"] == "the job ran longer than its execution timeout of # ms"


def test_a_group_says_how_many_failed_in_the_present_version_also_after_a_restart(fresh_server, tmp_path):
    server = fresh_server()
    api = Api(server)
    endpoint = api.external(slug="changing")
    worker = FakeWorker(endpoint)

    def told() -> list[tuple]:
        return [tuple(group[name] for name in ("count", "sinceVersion", "presentVersion", "presentVersionCount")) for group in groups(endpoint)]

    for _ in range(2):
        fail(endpoint, worker, "out of memory")
    assert told() == [(2, 1, 1, 2)]
    endpoint.patch(templateId=api.template(dockerStartCmd=["true"])["id"])
    assert told() == [(2, 1, 2, 0)]
    fail(endpoint, worker, "out of memory")
    fail(endpoint, worker, "no such file")
    assert told() == [(3, 1, 2, 1), (1, 2, 2, 1)]
    server.terminate()
    server.start()
    assert told() == [(3, 1, 2, 1), (1, 2, 2, 1)]
    fail(endpoint, worker, "out of memory")
    assert told()[0] == (4, 1, 2, 2)
    printed = Cli(tmp_path, server.url).ok("failures", "changing").out.splitlines()
    assert printed[1].split()[:2] == ["4", "2"], printed


def test_groups_survive_a_restart_and_the_command_prints_them(fresh_server, tmp_path):
    server = fresh_server()
    endpoint = Api(server).external(slug="sad")
    worker = FakeWorker(endpoint)
    for number in range(3):
        fail(endpoint, worker, f"attempt {number} failed")
    job = fail(endpoint, worker, "out of memory")
    before = groups(endpoint)
    assert [(group["message"], group["count"]) for group in before] == [("attempt # failed", 3), ("out of memory", 1)]
    server.terminate()
    server.start()
    assert groups(endpoint) == before
    fail(endpoint, worker, "out of memory")
    until(lambda: groups(endpoint)[1]["count"] == 2, "the group goes on")
    assert groups(endpoint)[1]["job"] != job
    cli = Cli(tmp_path, server.url)
    printed = cli.ok("failures", "sad").out
    assert "attempt # failed" in printed and "handler" in printed, printed
    assert '"message": "out of memory"' in cli.ok("failures", "sad", "--last", "1h", "-o", "json").out
