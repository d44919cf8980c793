"""Workers of an older version finish their jobs and are replaced."""

import uuid

import pytest
from harness.wait import holds, until


def versions(api, endpoint) -> dict[str, int]:
    """The endpoint's workers and their versions."""
    workers = api.ok("GET", f"/v1/endpoints/{endpoint.id}?includeWorkers=true")["workers"]
    return {worker["id"]: worker["version"] for worker in workers}


def set_flavour(api, endpoint, flavour: str):
    api.ok("PATCH", f"/v1/templates/{endpoint.record['templateId']}", json={"env": {"FLAVOUR": flavour}})


def test_a_busy_worker_finishes_and_an_idle_one_ends_immediately(api):
    endpoint = api.endpoint("environment.py", env={"FLAVOUR": "old"}, workersMin=2, workersMax=3)
    endpoint.wait_health("workers", "idle", 2, 40)
    before = set(versions(api, endpoint))
    job = endpoint.run({"seconds": 6})
    busy = endpoint.wait_for(job, "IN_PROGRESS")["workerId"]
    (idle,) = before - {busy}
    set_flavour(api, endpoint, "new")
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["version"] == 2

    later = endpoint.run()
    until(lambda: idle not in versions(api, endpoint), "the idle one is gone")
    assert endpoint.status(job)["status"] == "IN_PROGRESS", "the busy one works on"
    assert versions(api, endpoint)[busy] == 1
    assert endpoint.wait_for(later, timeout_s=40)["output"]["FLAVOUR"] == "new", "no old worker takes a new job"
    record = endpoint.wait_for(job, timeout_s=40)
    assert (record["output"]["FLAVOUR"], record.get("retries", 0)) == ("old", 0)

    def replaced():
        shown = versions(api, endpoint)
        assert len(shown) == 2 and set(shown.values()) == {2}, shown
        return True

    until(replaced, "two workers of the new version", 40)
    assert not before & set(versions(api, endpoint))


@pytest.mark.parametrize("changed", ["template", "secret"])
def test_no_job_after_a_change_goes_to_an_old_worker(api, changed):
    name = f"FLAVOUR_{uuid.uuid4().hex}"
    api.ok("POST", "/v1/secrets", json={"name": name, "value": "0"})
    flavour = {"secret": name} if changed == "secret" else "0"
    endpoint = api.endpoint("environment.py", env={"FLAVOUR": flavour}, workersMin=3, workersMax=3)
    for flavour in "1234":
        endpoint.wait_health("workers", "idle", 3, 40)
        if changed == "secret":
            api.ok("PATCH", f"/v1/secrets/{name}", json={"value": flavour})
        else:
            set_flavour(api, endpoint, flavour)
        jobs = [endpoint.run() for _ in range(3)]
        outputs = [endpoint.wait_for(job, timeout_s=40)["output"] for job in jobs]
        assert {output["FLAVOUR"] for output in outputs} == {flavour}


def test_a_change_that_workers_do_not_see_replaces_none(api):
    endpoint = api.endpoint("environment.py", workersMin=1, workersMax=2)
    endpoint.wait_health("workers", "idle", 1, 40)
    before = versions(api, endpoint)
    endpoint.patch(idleTimeout=120, scalerValue=9)
    api.ok("PATCH", f"/v1/templates/{endpoint.record['templateId']}", json={"readme": "words"})
    holds(lambda: versions(api, endpoint) == before, "the same worker", 2)


def test_another_template_replaces_workers_within_the_maximum(api):
    endpoint = api.endpoint("environment.py", env={"FLAVOUR": "old"}, workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "idle", 2, 40)
    other = api.template("environment.py", env={"FLAVOUR": "new"})
    assert endpoint.patch(templateId=other["id"])["version"] == 2

    def replaced():
        shown = versions(api, endpoint)
        assert len(shown) <= 2, "never more than the maximum"
        return set(shown.values()) == {2} and len(shown) == 2

    until(replaced, "two workers of the new version", 60)
    assert endpoint.runsync()["output"]["FLAVOUR"] == "new"


def test_a_fleet_under_load_keeps_its_size(api):
    """The scaler alone would start one worker, and the next one a minute later."""
    endpoint = api.endpoint(
        "environment.py", env={"FLAVOUR": "old"}, workersMin=3, workersMax=3, scalerType="QUEUE_DELAY", scalerValue=60
    )
    endpoint.wait_health("workers", "idle", 3, 40)
    endpoint.patch(workersMin=0)
    jobs = [endpoint.run({"seconds": 3}) for _ in range(3)]
    endpoint.wait_health("workers", "running", 3)
    later = [endpoint.run({"seconds": 3}) for _ in range(6)]
    set_flavour(api, endpoint, "new")
    outputs = [endpoint.wait_for(job, timeout_s=60)["output"] for job in jobs]
    assert {output["FLAVOUR"] for output in outputs} == {"old"}
    outputs = [endpoint.wait_for(job, timeout_s=60)["output"] for job in later]
    assert {output["FLAVOUR"] for output in outputs} == {"new"}
    assert len({output["worker"] for output in outputs}) == 3, outputs
