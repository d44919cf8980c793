"""Bulk tasks: many jobs in one task, over a kill, in the audit log, the events and the command line."""

import json

from harness.client import Api
from harness.events import follow
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY
from harness.wait import until
from test_cli import Cli

MANY = 1_500


def start(endpoint, **body) -> dict:
    answer = endpoint.call("POST", "/bulk", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


def wait_end(endpoint, task: dict) -> dict:
    def over():
        now = endpoint.ok("GET", f"/bulk/{task['id']}")
        assert now["state"] != "running", now
        return now

    return until(over, "the bulk task ends", 60)


def failed_jobs(endpoint, count: int) -> list[str]:
    """Jobs that failed, made in batches."""
    worker = FakeWorker(endpoint)
    jobs = [endpoint.run({"n": n}) for n in range(count)]
    left = set(jobs)
    while left:
        for job in worker.take_batch(100):
            worker.done(job["id"], {"error": "out of memory"})
            left.discard(job["id"])
    return jobs


def test_a_killed_server_goes_on_and_changes_no_job_twice(fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"))
    endpoint = Api(server).external()
    jobs = failed_jobs(endpoint, MANY)
    task = start(endpoint, do="retry", filter={"status": "FAILED"})
    assert task["matches"] == MANY and task["counted"] is True
    server.kill()
    server.start()
    done = wait_end(endpoint, task)
    assert (done["state"], done["matches"], done["done"], done["failed"]) == ("completed", MANY, MANY, 0), done
    health = endpoint.health()["jobs"]
    assert (health["inQueue"], health["retried"]) == (MANY, MANY), health
    assert endpoint.status(jobs[0])["status"] == "IN_QUEUE"


def test_a_stopped_task_leaves_the_other_jobs(fresh_server):
    server = fresh_server(flags=("--rate-limits", "off"))
    endpoint = Api(server).external()
    for n in range(MANY):
        endpoint.run({"n": n})
    task = start(endpoint, do="cancel", filter={})
    stopped = endpoint.ok("DELETE", f"/bulk/{task['id']}")
    assert stopped["state"] in ("stopped", "completed"), stopped
    if stopped["state"] == "completed":
        return

    def counted() -> dict:
        shown = endpoint.ok("GET", f"/bulk/{task['id']}")
        assert (shown["state"], shown["done"]) == ("stopped", MANY - endpoint.health()["jobs"]["inQueue"]), shown
        return shown

    # The batch that was being changed when the task was stopped ends, and is counted.
    shown = until(counted, "the last batch is counted")
    assert shown["done"] < MANY and shown["endedAt"], shown


def test_a_task_is_audited_and_told(api):
    endpoint = api.external()
    jobs = failed_jobs(endpoint, 3)
    events = follow(f"{api.server.url}/v1/events?topics=bulk&endpoint={endpoint.id}", ADMIN_KEY)
    assert next(events).name == "hello"
    task = start(endpoint, do="delete", ids=jobs)
    last = None
    for event in events:
        if event.name == "bulk":
            last = event.json
            if last["state"] == "completed":
                break
    assert (last["id"], last["done"], last["endpoint"]) == (task["id"], 3, endpoint.id)
    entries = api.ok("GET", "/v1/audit")
    entry = next(entry for entry in entries if entry.get("resource") == f"endpoints/{endpoint.id}/bulk/{task['id']}")
    assert (entry["outcome"], entry["method"], sorted(entry["fields"])) == ("done", "POST", ["do=delete", "ids"])


def test_the_command_counts_asks_and_waits(fresh_server, tmp_path):
    server = fresh_server()
    endpoint = Api(server).external(slug="many")
    failed_jobs(endpoint, 5)
    cli = Cli(tmp_path, server.url)
    assert cli.ok("bulk", "retry", "many", "--dry-run").out.strip() == "5 jobs of `many` match"
    refused = cli.run("bulk", "retry", "many")
    assert refused.code == 2 and "--yes" in refused.err, refused
    assert cli.ok("bulk", "retry", "many", "--text", "Memory", "--yes").out.strip() == "completed: 5 jobs"
    assert endpoint.health()["jobs"]["inQueue"] == 5
    done = json.loads(cli.ok("bulk", "cancel", "many", "--last", "1h", "--yes", "-o", "json").out)
    assert (done["state"], done["done"]) == ("completed", 5)
