"""The times, rates and costs of an endpoint in the events of the server."""

from datetime import datetime

from harness.client import Api
from harness.events import follow
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY, QUICK
from harness.wait import until

PRICED = QUICK + "[prices]\ncpu = 360\n"


def test_stats_have_the_times_rates_and_costs_of_an_endpoint(fresh_server, tmp_path):
    api = Api(fresh_server(config=PRICED))
    endpoint = api.endpoint("sleep_blocking.py", computeType="CPU", workersMin=1, workersMax=1)
    endpoint.wait_health("workers", "idle", 1, 40)
    events = follow(f"{api.server.url}/v1/events?topics=stats&endpoint={endpoint.id}", ADMIN_KEY)
    told, rates = {}, []

    def read_until(is_told) -> None:
        while not is_told():
            event = next(events)
            if event.name == "stats":
                told.update(event.json)
                rates.append(told.get("finished"))

    read_until(lambda: "costHour" in told)
    assert (told["costHour"], told["oldestAt"], told["runP50"], told["failedShare"]) == (360, None, None, None)
    go = tmp_path / "go"
    first = endpoint.run({"seconds": 60, "go": str(go)})
    until(lambda: endpoint.status(first)["status"] == "IN_PROGRESS", "the first job runs")
    second = endpoint.run({"seconds": 0})
    read_until(lambda: told["oldestAt"] is not None)
    created_at = datetime.fromisoformat(endpoint.ok("GET", f"/jobs/{second}")["createdAt"])
    assert abs(told["oldestAt"] - created_at.timestamp() * 1000) < 2, (told, created_at)
    third = endpoint.run({"seconds": "no number"})
    go.touch()
    read_until(lambda: told["failedShare"] == 0.3333 and told["oldestAt"] is None)
    assert max(rate for rate in rates if rate is not None) > 0

    names = {"delayP50": "delayP50Ms", "delayP95": "delayP95Ms", "runP50": "runP50Ms", "runP95": "runP95Ms", "starts": "starts", "startP50": "startP50Ms"}
    path = f"/v1/endpoints/{endpoint.id}/history?last=900000&series={','.join(names.values())}"

    def agrees() -> bool:
        total = api.ok("GET", path)["total"]
        return all(told[name] == total[series] for name, series in names.items())

    until(agrees, "the history has the same figures")
    # Of three jobs, the longest time is the one; a percentile is within 12.3 %.
    records = [endpoint.status(job) for job in (first, second, third)]
    for name, member in (("runP95", "executionTime"), ("delayP95", "delayTime")):
        longest = max(record[member] for record in records)
        assert 0.87 * longest <= told[name] <= 1.13 * longest, (name, longest, told)
    assert told["starts"] == 1, told
    read_until(lambda: told["finished"] == 0 and told["costToday"] > 0)


def test_when_an_external_worker_was_heard_last_is_told(api):
    endpoint = api.external()
    worker, job = FakeWorker(endpoint), endpoint.run()
    assert worker.take()["id"] == job
    events = follow(f"{api.server.url}/v1/events?topics=workers&endpoint={endpoint.id}", ADMIN_KEY)

    def heard(after: str) -> str:
        return next(event.json["lastHeardAt"] for event in events if event.name == "worker" and event.json["lastHeardAt"] > after)

    first = heard("")
    assert worker.ping(job).ok
    heard(first)
