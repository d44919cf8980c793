"""Worker time, metered and priced."""

import signal
import time

from harness import processes
from harness.client import Api
from harness.server import QUICK
from harness.wait import until

PRICED = (
    QUICK.replace('gpu_sharing = "off"', "")
    + """
[[gpus]]
type = "NVIDIA L4"
count = 2
[prices]
"NVIDIA L4" = 3600
cpu = 360
"""
)


def billing(api, **query) -> list[dict]:
    return api.ok("GET", "/v1/billing/endpoints", params=query)


def total_ms(api, **query) -> int:
    return sum(record["timeBilledMs"] for record in billing(api, **query))


def test_worker_time_is_metered_and_priced(fresh_server):
    api = Api(fresh_server(config=PRICED))
    two = api.endpoint("echo.py", gpuCount=2, workersMin=1, workersMax=1)
    cpu = api.endpoint("echo.py", computeType="CPU", workersMin=2, workersMax=2)
    two.wait_health("workers", "idle", 1, 40)
    cpu.wait_health("workers", "idle", 2, 40)
    until(lambda: min(total_ms(api, endpointId=endpoint.id) for endpoint in (two, cpu)) > 2000, "two seconds of each")

    by_endpoint = {record["endpointId"]: record for record in billing(api)}
    assert set(by_endpoint) == {two.id, cpu.id}
    record = by_endpoint[two.id]
    assert set(record) == {"time", "endpointId", "timeBilledMs", "gpuMs", "busyMs", "amount", "diskSpaceBilledGb"}
    assert record["busyMs"] == 0, "no job ran"
    assert record["time"].endswith("T00:00:00.000Z")
    assert record["gpuMs"] == 2 * record["timeBilledMs"], record
    assert abs(record["amount"] - 2 * record["timeBilledMs"] / 1000) < 1e-3, "two GPUs at one a second"
    record = by_endpoint[cpu.id]
    assert abs(record["amount"] - 0.1 * record["timeBilledMs"] / 1000) < 1e-3

    by_type = {record["gpuTypeId"]: record["timeBilledMs"] for record in billing(api, grouping="gpuTypeId")}
    assert set(by_type) == {"NVIDIA L4", "CPU"} and by_type["CPU"] >= by_endpoint[cpu.id]["timeBilledMs"]
    by_pod = billing(api, grouping="podId", endpointId=cpu.id, bucketSize="hour")
    pods = {pod["id"] for pod in api.ok("GET", "/v1/pods", params={"endpointId": cpu.id})}
    assert {record["podId"] for record in by_pod} == pods and len(pods) == 2
    assert billing(api, gpuTypeId=["NVIDIA A40"]) == [] and billing(api, endTime="2020-01-01T00:00:00Z") == []
    assert total_ms(api, startTime="2020-01-01T00:00:00Z", templateId=cpu.record["templateId"]) > 2000
    for query in ({"bucketSize": "minute"}, {"grouping": "name"}, {"startTime": "yesterday"}):
        answer = api.call("GET", "/v1/billing/endpoints", params=query)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_parameter"), answer.text


def test_the_time_with_a_job_is_a_part_of_the_worker_time(fresh_server):
    api = Api(fresh_server(config=PRICED))
    endpoint = api.endpoint("sleep_blocking.py", computeType="CPU", workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1, 40)
    until(lambda: total_ms(api) > 4000, "four seconds without a job")
    [before] = billing(api)
    assert before["busyMs"] == 0
    job = endpoint.run({"seconds": 9})
    until(lambda: endpoint.status(job)["status"] == "COMPLETED", "the job has ended", 40)
    ran_ms = endpoint.status(job)["executionTime"]

    def counted():
        [record] = billing(api, bucketSize="year")
        return record["busyMs"] >= ran_ms - 4000 and record

    # The history counts steps of 2 s: those at both ends of the job count whole, or not at all.
    record = until(counted, "the steps of the job are over", 10)
    assert record["busyMs"] <= ran_ms + 4000 and record["busyMs"] <= record["timeBilledMs"] - 2000, (record, ran_ms)
    for query in ({"grouping": "podId"}, {"grouping": "gpuTypeId"}, {"grouping": "owner"}, {"gpuTypeId": "CPU"},
                  {"templateId": endpoint.record["templateId"]}):
        assert all(one["busyMs"] is None for one in billing(api, **query)), query
    assert billing(api, templateId=endpoint.record["templateId"]) != []


def test_what_was_metered_survives_a_killed_server_and_is_made_up_for(fresh_server):
    server = fresh_server(config=PRICED)
    api = Api(server)
    endpoint = api.endpoint("echo.py", computeType="CPU", workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "idle", 2, 40)
    lasting, ending = endpoint.workers()
    before_ms = total_ms(api)
    server.kill()
    killed_at = time.monotonic()
    processes.send(ending.pid, signal.SIGKILL)
    until(lambda: time.monotonic() - killed_at > 3, "three seconds without a server")
    server.start()

    def by_pod():
        return {record["podId"]: record["timeBilledMs"] for record in billing(api, grouping="podId")}

    counted = until(lambda: {lasting.worker, ending.worker} <= set(by_pod()) and by_pod(), "both are counted")
    assert counted[lasting.worker] >= before_ms / 2 + 3000, "the server was away, the worker was not"
    assert counted[ending.worker] < counted[lasting.worker] - 2000, counted
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    until(lambda: not endpoint.workers(), "the workers are gone", 30)
    assert until(lambda: total_ms(api), "time of a deleted endpoint") >= sum(counted.values())
