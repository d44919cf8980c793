"""Traces of jobs, at a collector that decodes them with OpenTelemetry's own definition."""

import uuid

import pytest
import requests

from harness.client import Api
from harness.collector import Collector
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import ADMIN_KEY, QUICK
from harness.wait import until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
CLIENT, CONSUMER, SERVER, INTERNAL = 3, 5, 2, 1
ERROR = 2


@pytest.fixture
def collector():
    with Collector() as collector:
        yield collector


@pytest.fixture
def traced(fresh_server, collector):
    """Starts a server that sends its traces to the collector, with further settings."""

    def start(more: str = ""):
        return fresh_server(config=f'{QUICK}webhook_retry_delay_ms = 300\notlp_endpoint = "{collector.url}"\n{more}')

    return start


def trace_id(job: str) -> str:
    """The trace of a job whose client names none."""
    return uuid.UUID(job.removeprefix("sync-")).hex


def check(spans: list[dict], root: str | None) -> None:
    """One trace without orphans, in which no span is twice and every child lies within what the clocks allow."""
    ids = [span["id"] for span in spans]
    assert len(set(ids)) == len(ids), sorted(span["name"] for span in spans)
    assert {span["trace"] for span in spans} == {spans[0]["trace"]}
    orphans = [span["name"] for span in spans if span["parent"] not in (*ids, root)]
    assert orphans == []
    assert all(0 < span["start"] <= span["end"] for span in spans)


def named(spans: list[dict], name: str) -> dict:
    (span,) = [span for span in spans if span["name"] == name or span["name"].startswith(f"{name} ")]
    return span


def test_a_job_is_one_trace_and_its_worker_continues_it(traced, collector):
    endpoint = Api(traced()).external(slug="traced")
    worker = FakeWorker(endpoint)
    job = endpoint.run({"n": 1})
    taken = worker.take()
    worker.chunk(job, "a")
    worker.progress(job, 1)
    worker.done(job, {"output": 2})
    trace = trace_id(job)
    spans = collector.wait_for(trace, "job traced", "queue", "attempt 1", "POST /v2/{endpoint}/run")
    check(spans, None)
    whole, queue, attempt = (named(spans, name) for name in ("job traced", "queue", "attempt"))
    assert [span["parent"] for span in (whole, queue, attempt)] == [None, whole["id"], whole["id"]]
    assert taken["traceparent"] == f"00-{trace}-{attempt['id']}-01"
    assert (whole["kind"], attempt["kind"], named(spans, "POST")["kind"]) == (INTERNAL, CONSUMER, SERVER)
    assert whole["attributes"] == {
        "longshore.job.id": job,
        "longshore.job.endpoint": endpoint.id,
        "longshore.job.version": endpoint.record["version"],
        "longshore.job.state": "completed",
        "longshore.job.retries": 0,
        "messaging.system": "longshore",
        "messaging.destination.name": "traced",
        "messaging.message.id": job,
    }
    assert attempt["events"] == ["first chunk", "progress"]
    assert attempt["attributes"]["longshore.worker"] == worker.id
    assert named(spans, "POST")["attributes"]["http.response.status_code"] == 200
    assert spans[0]["service"] == "longshore" and collector.requests[0]["path"] == "/v1/traces"
    shown = endpoint.ok("GET", f"/jobs/{job}")
    assert (shown["traceparent"], shown["traceUrl"]) == (f"00-{trace}-{whole['id']}-01", None)


def test_the_clients_trace_is_continued_up_to_its_webhook(traced, collector):
    server = traced('trace_link = "https://traces.example/{trace_id}"\n')
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    with Receiver(500, 200) as receiver:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        body = {"input": {}, "webhook": receiver.url}
        job = endpoint.ok("POST", "/run", json=body, headers=headers)["id"]
        assert worker.take()["traceparent"].startswith(f"00-{TRACE}-")
        worker.done(job, {"output": 1})
        calls = receiver.wait_for(2)
    spans = collector.wait_for(TRACE, "job", "queue", "attempt 1", "webhook 1", "webhook 2", "POST")
    check(spans, SPAN)
    assert named(spans, "job")["parent"] == named(spans, "POST")["parent"] == SPAN
    for number, call in enumerate(calls, 1):
        span = named(spans, f"webhook {number}")
        assert call["headers"]["traceparent"] == f"00-{TRACE}-{span['id']}-01"
        assert (span["kind"], span["status"] == ERROR) == (CLIENT, number == 1)
        assert span["attributes"]["server.address"] == receiver.url.removesuffix("/hook")
    assert endpoint.ok("GET", f"/jobs/{job}")["traceUrl"] == f"https://traces.example/{TRACE}"


def test_a_killed_server_continues_the_trace_under_the_same_ids(traced, collector):
    server = traced()
    endpoint = Api(server).external(maxRetries=1)
    first, second = FakeWorker(endpoint), FakeWorker(endpoint)
    job = endpoint.ok("POST", "/run", json={"input": {}}, headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})["id"]
    given = first.take()["traceparent"]
    first.ping(job)
    collector.wait_for(TRACE, "queue", "POST")
    server.kill()
    server.start()
    # The worker is lost, and the job runs again at another one.
    again = second.take()
    second.ping(job)
    # Spans that ended in the last moments before a kill are lost, as the manual says.
    collector.wait_for(TRACE, "attempt 1")
    until(lambda: [span["name"] for span in collector.spans(TRACE)].count("queue") == 2, "both waits are told")
    server.kill()
    server.start()
    second.done(job, {"output": 1})
    spans = collector.wait_for(TRACE, "job", "attempt 1", "attempt 2")
    check(spans, SPAN)
    assert [given.split("-")[2], again["traceparent"].split("-")[2]] == [
        named(spans, f"attempt {number}")["id"] for number in (1, 2)
    ]
    assert named(spans, "attempt 1")["events"] == ["lost"] and named(spans, "attempt 1")["status"] == ERROR
    assert named(spans, "job")["attributes"]["longshore.job.retries"] == 1
    assert len([span for span in spans if span["name"] == "queue"]) == 2


def test_a_client_retry_adds_a_second_run_to_the_trace(traced, collector):
    server = traced()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    worker.done(job, {"error": "no"})
    collector.wait_for(trace_id(job), "job", "attempt 1", "queue", "POST")
    server.kill()
    server.start()
    endpoint.ok("POST", f"/retry/{job}")
    worker.take()
    worker.done(job, {"output": 1})
    endpoint.wait_for(job, "COMPLETED")

    def both():
        spans = collector.spans(trace_id(job))
        runs = [span for span in spans if span["name"].startswith("job ")]
        return len(runs) == 2 and runs

    failed, completed = until(both, "two runs")
    assert [run["attributes"]["longshore.job.state"] for run in (failed, completed)] == ["failed", "completed"]
    assert failed["end"] <= completed["start"]
    check(collector.wait_for(trace_id(job), "attempt 2"), None)


def test_the_clients_word_or_the_ratio_decides_what_is_sent(traced, collector):
    endpoint = Api(traced("otlp_sample = 0\n")).external()
    worker = FakeWorker(endpoint)

    def served(flags: str | None) -> tuple[str, dict]:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-{flags}"} if flags else {}
        job = endpoint.ok("POST", "/run", json={"input": {}}, headers=headers)["id"]
        taken = worker.take()
        worker.done(job, {"output": 1})
        return job, taken

    unsaid, refused, wanted = served(None), served("00"), served("01")
    spans = collector.wait_for(TRACE, "job", "attempt 1")
    assert {span["attributes"]["longshore.job.id"] for span in collector.spans()} == {wanted[0]}
    check(spans, SPAN)
    # A worker's own spans are not recorded either.
    assert [taken["traceparent"][-2:] for _, taken in (unsaid, refused, wanted)] == ["00", "00", "01"]


def test_real_workers_tell_their_start_and_their_handlers_see_the_trace(traced, collector):
    endpoint = Api(traced()).endpoint("traceparent.py", workersMax=1)
    done = endpoint.runsync({})
    spans = collector.wait_for(trace_id(done["id"]), "job", "attempt 1", "queue", "POST /v2/{endpoint}/runsync")
    check(spans, None)
    assert done["output"].split("-")[2] == named(spans, "attempt")["id"]
    queue = named(spans, "queue")
    (link,) = queue["links"]
    start = until(lambda: [span for span in collector.spans(link[0]) if span["id"] == link[1]], "the start of the worker")[0]
    assert (start["name"], queue["attributes"]["longshore.cold_start"]) == ("worker start", True)
    assert start["attributes"]["longshore.worker"] == done["workerId"]


@pytest.mark.parametrize("status", [400, 500, 503])
def test_a_collector_that_refuses_costs_nothing_but_its_spans(traced, collector, status):
    collector.status, collector.answer = status, b"x" * 1_000_000
    server = traced("otlp_queue_spans = 10\n")
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    for _ in range(20):
        job = endpoint.run()
        worker.take()
        worker.done(job, {"output": 1})

    def dropped() -> float:
        page = requests.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {ADMIN_KEY}"}, timeout=60).text
        return next(float(line.split()[1]) for line in page.splitlines() if line.startswith("longshore_spans_dropped_total"))

    until(lambda: dropped() > 0, "spans are dropped", 40)
    shown = endpoint.api.ok("GET", "/v1/server")["traces"]
    assert shown["collector"] == f"{collector.url}/v1/traces" and shown["dropped"] > 0
    # Spans are also dropped while the first request to the collector has no answer yet.
    until(lambda: "does not accept spans" in server.log(), "the log names the collector's answer", 40)
    assert server.log().count("does not accept spans") == 1


def test_a_stop_sends_what_waits(traced, collector):
    server = traced()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    worker.done(job, {"output": 1})
    assert server.terminate() == 0
    spans = collector.spans(trace_id(job))
    assert {"queue", "attempt 1"} <= {span["name"] for span in spans}
    check(spans, None)


def test_the_variables_of_open_telemetry_name_the_collector(collector):
    from harness.server import Server

    server = Server()
    server.environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b",
        "OTEL_SERVICE_NAME": "gpu-queue",
    }
    server.start()
    try:
        endpoint = Api(server).external()
        job = endpoint.run()
        endpoint.cancel(job)
        spans = collector.wait_for(trace_id(job), "job", "queue")
    finally:
        server.close()
    assert spans[0]["service"] == "gpu-queue" and collector.requests[0]["headers"]["x-key"] == "a b"
    assert named(spans, "job")["attributes"]["longshore.job.state"] == "cancelled"


def test_a_forwarded_request_is_in_the_trace_of_its_client_and_of_its_worker(traced, collector):
    api = Api(traced())
    endpoint = api.endpoint("raw_web.py", type="LB", scalerType="REQUEST_COUNT", workersMin=1, lb={"queueTimeoutMs": 60_000})

    def seen(headers: dict) -> dict:
        """The headers of trace that the worker got."""
        answer = api.call("GET", f"/lb/{endpoint.id}/raw", headers=headers)
        assert answer.status_code == 200, answer.text
        lines = [line.partition(": ") for line in answer.text.splitlines()]
        return {name.lower(): value for name, _, value in lines if name.lower() in ("traceparent", "tracestate")}

    below = seen({"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b"})
    (span,) = collector.wait_for(TRACE, "GET /lb/{endpoint}/{*path}")
    assert below == {"traceparent": f"00-{TRACE}-{span['id']}-01", "tracestate": "a=b"}
    assert (span["parent"], span["kind"]) == (SPAN, SERVER)
    assert span["attributes"]["longshore.endpoint"] == endpoint.id and span["attributes"]["longshore.worker"]
    # Without a client's span the request is the first of a trace, and a state without a trace is dropped.
    own = seen({"tracestate": "a=b"})
    _, trace, number, flags = own.pop("traceparent").split("-")
    assert (own, flags) == ({}, "01")
    (first,) = collector.wait_for(trace, "GET")
    assert (first["id"], first["parent"]) == (number, None)
    # A client that records nothing is believed.
    unsampled = "a" * 32
    assert seen({"traceparent": f"00-{unsampled}-{SPAN}-00"})["traceparent"].endswith("-00")
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMin": 0, "workersMax": 0})
    refused = "b" * 32
    until(
        lambda: api.call(
            "GET", f"/lb/{endpoint.id}/raw", headers={"traceparent": f"00-{refused}-{SPAN}-01"}
        ).status_code == 503,
        "no worker is left",
    )
    spans = collector.wait_for(refused, "GET")
    assert [span["status"] for span in spans if span["attributes"]["http.response.status_code"] == 503] == [ERROR]
    assert collector.spans(unsampled) == []


def test_without_a_collector_nothing_is_added(server, endpoint, worker):
    job = endpoint.ok("POST", "/run", json={"input": {}}, headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})["id"]
    assert "traceparent" not in worker.take()
    shown = endpoint.ok("GET", f"/jobs/{job}")
    assert (shown["traceparent"], shown["traceUrl"]) == (None, None)
    assert endpoint.api.ok("GET", "/v1/server")["traces"] is None
