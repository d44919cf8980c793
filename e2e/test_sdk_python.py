"""The official Python SDK, unmodified, on both sides: as worker processes that the server starts, and as client."""

import threading

import aiohttp
import pytest
import runpod

from harness import event_loop
from harness.client import TERMINAL
from harness.wait import until


@pytest.fixture(scope="module", autouse=True)
def sdk(server):
    """Points the client SDK at the server."""
    from harness.server import ADMIN_KEY

    runpod.endpoint_url_base = f"{server.url}/sdk/v2"
    runpod.api_key = ADMIN_KEY


@pytest.fixture(scope="module")
def echo(api):
    """An endpoint whose one worker is kept warm."""
    return api.endpoint("echo.py", workersMin=1, workersMax=1)


@pytest.fixture(scope="module")
def outcomes(api):
    return api.endpoint("outcomes.py", workersMin=1, workersMax=1)


@pytest.fixture(scope="module")
def generator(api):
    return api.endpoint("generator.py", workersMin=1, workersMax=1)


@pytest.fixture(scope="module")
def sleeper(api):
    return api.endpoint("sleep_async.py", workersMin=1, workersMax=1)


# The client


def test_run_status_output(echo):
    job = runpod.Endpoint(echo.id).run({"a": 1})
    assert job.output(timeout=300)["echo"] == {"a": 1}
    assert job.status() == "COMPLETED"


def test_run_sync(echo):
    assert runpod.Endpoint(echo.id).run_sync({"input": {"b": [1, 2.5, "ü"]}}, timeout=300)["echo"] == {"b": [1, 2.5, "ü"]}


def test_run_sync_of_a_failing_handler_returns_nothing(outcomes):
    assert runpod.Endpoint(outcomes.id).run_sync({"mood": "raise"}, timeout=300) is None


def test_stream(generator):
    job = runpod.Endpoint(generator.id).run({"count": 5, "pause": 0.1})
    assert list(job.stream()) == [{"n": n} for n in range(5)]
    assert job.status() == "COMPLETED"


def test_stream_where_only_the_host_was_changed(api, server, monkeypatch):
    """The setting for all endpoints is in test_streams.py."""
    monkeypatch.setattr(runpod, "endpoint_url_base", f"{server.url}/v2")
    endpoint = api.endpoint("generator.py", workersMin=1, workersMax=1)
    assert endpoint.record["streamShape"] == "array"
    job = runpod.Endpoint(endpoint.id).run({"count": 2})
    with pytest.raises(TypeError):
        list(job.stream())
    assert endpoint.patch(streamShape="object")["streamShape"] == "object"
    job = runpod.Endpoint(endpoint.id).run({"count": 3, "pause": 0.1})
    assert list(job.stream()) == [{"n": n} for n in range(3)]


@pytest.fixture(scope="module")
def large(api):
    return api.endpoint("large_chunks.py", workersMin=1, workersMax=1)


@pytest.mark.parametrize("kind", ["text", "list", "member", "nested"])
def test_a_large_chunk_comes_in_parts(large, kind):
    job = runpod.Endpoint(large.id).run({"kind": kind})
    parts = list(job.stream())
    whole = large.status(job.job_id)["output"][0]
    assert len(parts) > 1, "and the job has not failed"
    if kind == "text":
        assert "".join(parts) == whole
    elif kind == "list":
        assert [element for part in parts for element in part] == whole
    elif kind == "member":
        assert (parts[0]["id"], parts[0]["usage"]) == (1, {"tokens": 2})
        assert "".join(part["text"] for part in parts) == whole["text"]
    else:
        assert (parts[0]["f"], parts[0]["a"]["e"], parts[0]["a"]["b"]["d"]) == (3, 2, 1)
        assert [element for part in parts for element in part["a"]["b"]["c"]] == whole["a"]["b"]["c"]


def test_a_yielded_output_with_metrics_is_a_chunk_with_metrics(large):
    client = runpod.Endpoint(large.id)
    job = client.run({"kind": "metrics"})
    assert list(job.stream()) == ["hello"]
    assert large.ok("GET", f"/stream/{job.job_id}?offset=0") == [{"output": "hello", "metrics": {"tokens": 1, "speed": None}}]
    assert large.status(job.job_id)["output"] == [{"output": "hello", "metrics": {"tokens": 1, "speed": None}}]
    other = client.run({"kind": "output"})
    assert list(other.stream()) == [{"output": "hello", "metrics": {"tokens": 1}, "more": True}]


def test_cancel(sleeper):
    job = runpod.Endpoint(sleeper.id).run({"seconds": 60})
    until(lambda: job.status() == "IN_PROGRESS", "the job runs", 40)
    assert job.cancel(timeout=60)["status"] == "CANCELLED"
    assert job.status() == "CANCELLED"
    assert runpod.Endpoint(sleeper.id).run_sync({"seconds": 0}, timeout=300) == {"slept": 0}, "the worker is free again"


def test_health_and_purge(api):
    endpoint = api.external()
    client = runpod.Endpoint(endpoint.id)
    jobs = [client.run({"n": n}) for n in range(3)]
    assert client.health(timeout=60)["jobs"]["inQueue"] == 3
    assert client.purge_queue(timeout=60)["removed"] == 3
    assert {until(lambda job=job: job.status(), "status") for job in jobs} == {"CANCELLED"}


def test_wrong_key():
    with pytest.raises(RuntimeError, match="401"):
        runpod.Endpoint("some-endpoint", api_key="wrong").health()


def test_asyncio_client(echo, generator):
    async def talk():
        async with aiohttp.ClientSession() as session:
            client = runpod.AsyncioEndpoint(echo.id, session)
            job = await client.run({"a": 1})
            assert (await job.output(timeout=300))["echo"] == {"a": 1}
            assert await job.status() == "COMPLETED"
            assert (await client.health())["workers"]
            streaming = await runpod.AsyncioEndpoint(generator.id, session).run({"count": 3})
            chunks = [chunk async for chunk in streaming.stream()]
            assert chunks == [{"n": n} for n in range(3)]
            queued = await runpod.AsyncioEndpoint(echo.id, session).run({"a": 2})
            await queued.cancel()
            assert await queued.status() in ("CANCELLED", "COMPLETED")

    event_loop.run(talk())


# The worker


@pytest.mark.parametrize("mood, output", [
    ("text", "just text"), ("number", 4.5), ("list", [1, "two", None]),
    ("nan", {"value": None, "more": [None, None]}),
])
def test_outputs(outcomes, mood, output):
    record = outcomes.runsync({"mood": mood})
    assert record["status"] == "COMPLETED" and record["output"] == output


@pytest.mark.parametrize("mood", ["empty", "none"])
def test_empty_outputs(outcomes, mood):
    record = outcomes.runsync({"mood": mood})
    assert record["status"] == "COMPLETED" and record.get("output") is None and "error" not in record


def test_raising_handler(outcomes):
    record = outcomes.runsync({"mood": "raise"})
    assert record["status"] == "FAILED" and "the handler raised" in record["error"]


def test_error_dict(outcomes):
    record = outcomes.runsync({"mood": "error"})
    assert record["status"] == "FAILED" and record["error"] == "the handler said so" and record["output"] == {"partial": 1}


def test_error_object_is_rendered_as_text(outcomes):
    record = outcomes.runsync({"mood": "error object"})
    assert record["status"] == "FAILED" and '"structured"' in record["error"]


def test_handler_sees_the_whole_job(outcomes):
    s3 = {"accessId": "i", "accessSecret": "s", "bucketName": "b", "endpointUrl": "https://s3.test"}
    seen = outcomes.runsync({"mood": "see"}, s3Config=s3, extra={"x": 1})["output"]
    assert seen["s3Config"] == s3 and seen["extra"] == {"x": 1} and seen["id"].startswith("sync-")


def test_a_big_output_of_a_real_worker(outcomes):
    record = outcomes.runsync({"mood": "big", "bytes": 5_000_000})
    assert len(record["output"]) == 5_000_000


@pytest.mark.parametrize("sync, limit", [(False, 10_000_000), (True, 20_000_000)])
def test_an_output_over_its_limit_fails_the_job_and_says_so(outcomes, sync, limit):
    for over in (0, 1):
        input = {"mood": "big", "bytes": limit - len('""') + over}
        record = outcomes.runsync(input, 120_000) if sync else outcomes.wait_for(outcomes.run(input), timeout_s=60)
        if over:
            assert record["status"] == "FAILED" and "output" not in record
            assert f"the output has {limit + 1} bytes, the limit is {limit}: upload it" in record["error"]
        else:
            assert record["status"] == "COMPLETED" and len(record["output"]) == limit - 2


def test_generator_aggregates_if_asked(api):
    endpoint = api.endpoint("generator.py", env={"AGGREGATE": "1"}, workersMax=1)
    job = endpoint.run({"count": 4})
    record = endpoint.wait_for(job, timeout_s=40)
    assert record["output"] == [{"n": n} for n in range(4)]
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": {"n": n}} for n in range(4)]


def test_generator_that_raises(generator):
    job = generator.run({"count": 2, "fail": True})
    record = generator.wait_for(job, timeout_s=40)
    assert record["status"] == "FAILED" and "broke after the last chunk" in record["error"]
    assert generator.ok("GET", f"/stream/{job}") == [{"output": {"n": 0}}, {"output": {"n": 1}}]


def test_concurrent_handler_shares_one_worker(api):
    endpoint = api.endpoint("eight_at_once.py", workersMin=1, workersMax=1, maxConcurrency=8)
    endpoint.wait_health("workers", "ready", 1, 40)
    jobs = [endpoint.run({"seconds": 4}) for _ in range(8)]
    seen = [endpoint.wait_for(job)["output"]["at_once"] for job in jobs]
    assert max(seen) >= 4, seen
    assert len({endpoint.status(job)["workerId"] for job in jobs}) == 1


@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_job_that_python_cannot_read_fails_alone(api, place):
    """A number of more than 4300 digits ends Python's parser, and the SDK drops all that came in the same answer."""
    endpoint = api.endpoint("eight_at_once.py", env={"AT_ONCE": "10"}, workersMax=0, maxConcurrency=10)
    unreadable = '{"input":{"seconds":0.05,"n":' + "7" * 5_000 + "}}"
    jobs = []
    for n in range(10):
        body = unreadable if n == place else '{"input":{"seconds":0.05}}'
        jobs.append(endpoint.ok("POST", "/run", data=body)["id"])
    api.ok("PATCH", f"/v1/endpoints/{endpoint.id}", json={"workersMin": 1, "workersMax": 1})
    culprit = jobs.pop(place)
    for job in jobs:
        record = endpoint.wait_for(job, timeout_s=60)
        assert record["status"] == "COMPLETED" and "retries" not in record, record
    record = endpoint.wait_for(culprit, timeout_s=120)
    assert record["status"] == "FAILED" and "4300 digits" in record["error"] and "6 deliveries" in record["error"], record
    readable = endpoint.run({"seconds": 0})
    assert endpoint.wait_for(readable)["status"] == "COMPLETED"


def test_progress_update(api, tmp_path):
    endpoint = api.endpoint("progress.py", workersMax=1)
    go = tmp_path / "go"
    job = endpoint.run({"go": str(go)})
    until(lambda: endpoint.status(job).get("output") == "half way", "progress is visible", 40)
    assert endpoint.status(job)["status"] == "IN_PROGRESS"
    go.touch()
    assert endpoint.wait_for(job)["output"] == "all the way"


@pytest.mark.parametrize("in_config", ["0", "1"])
def test_refresh_worker_gets_a_fresh_process(api, in_config):
    endpoint = api.endpoint("refresh.py", env={"REFRESH_CONFIG": in_config}, workersMax=1)
    pids = [endpoint.wait_for(endpoint.run(), timeout_s=40)["output"]["pid"] for _ in range(2)]
    assert pids[0] != pids[1]
    assert endpoint.health()["jobs"]["retried"] == 0


def test_workers_do_not_share_a_folder(api):
    endpoint = api.endpoint("outcomes.py", workersMin=2, workersMax=2)
    endpoint.wait_health("workers", "ready", 2, 40)
    folders: dict[str, str] = {}

    def both():
        jobs = [endpoint.run({"mood": "cwd"}) for _ in range(2)]
        for record in [endpoint.wait_for(job) for job in jobs]:
            folders[record["workerId"]] = record["output"]
        return len(folders) == 2

    until(both, "both workers ran a job", 30)
    assert len(set(folders.values())) == 2, folders


def test_many_concurrent_clients_and_workers(api):
    endpoint = api.endpoint("eight_at_once.py", workersMin=2, workersMax=2, maxConcurrency=8)
    client = runpod.Endpoint(endpoint.id)
    ended: list[str] = []

    def one(n: int) -> None:
        job = client.run({"seconds": 0.05, "n": n})
        job.output(timeout=300)
        ended.append(job.status())

    threads = [threading.Thread(target=one, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert ended == ["COMPLETED"] * 24 and set(ended) <= set(TERMINAL)
