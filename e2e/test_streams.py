"""Streams that people can resume: server-sent events, several readers, broken connections, lost attempts."""

import asyncio
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from harness import event_loop, manual, processes
from harness.client import Api
from harness.cutting_proxy import CuttingProxy
from harness.events import follow
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.wait import until

CUTS = int(os.environ.get("LONGSHORE_CUTS", "1000"))
SEED = int(os.environ.get("LONGSHORE_SEED", "1"))


def events(endpoint, job, **more):
    """The events of a job from one request."""
    query = more.pop("query", "")
    return follow(f"{endpoint.api.server.url}{endpoint.mount}/stream/{job}{query}", endpoint.api.key, **more)


def test_one_request_follows_a_job_to_its_end(endpoint, worker):
    job = endpoint.run()
    seen = events(endpoint, job)
    first = next(seen)
    assert (first.name, first.json) == ("status", {"id": job, "status": "IN_QUEUE"})
    worker.take()
    assert next(seen).json["status"] == "IN_PROGRESS"
    worker.chunk(job, {"text": ["a\nb"]})
    chunk = next(seen)
    assert (chunk.name, chunk.id, chunk.json) == ("message", 0, {"output": {"text": ["a\nb"]}})
    worker.progress(job, {"percent": 50})
    progress = next(seen)
    assert (progress.name, progress.json["output"]) == ("status", {"percent": 50})
    worker.chunk(job, None)
    worker.done(job, {"output": [1]})
    assert (next(seen).json, (end := next(seen)).name) == ({"output": None}, "done")
    record = endpoint.status(job)
    assert end.json == record and record["output"] == [1]
    assert list(seen) == [], "the answer ends"


def test_metrics_are_kept_and_shown_everywhere(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    posts = [
        '{"output": {"text": ["a"]}, "metrics": {"avg": 1.0, "scenario": "stream", "big": 12345678901234567890}}',
        '{"output": {"output": "b", "metrics": {"load": NaN, "deep": {"m": [1]}}}}',
        '{"output": "c", "metrics": "no object"}',
        '{"output": {"output": "d", "metrics": 1}}',
    ]
    for post in posts:
        assert worker.post("job-stream", job, post).status_code == 200
    shown = [
        {"output": {"text": ["a"]}, "metrics": {"avg": 1.0, "scenario": "stream", "big": 12345678901234567890}},
        {"output": "b", "metrics": {"load": None, "deep": {"m": [1]}}},
        {"output": "c"},
        {"output": {"output": "d", "metrics": 1}},
    ]
    server.kill()
    server.start()
    assert endpoint.ok("GET", f"/stream/{job}?offset=1") == shown[1:]
    assert endpoint.api.ok("GET", f"/sdk{endpoint.mount}/stream/{job}?offset=0")["stream"] == shown
    worker.done(job, {"output": [{"output": "b", "metrics": {}}]})
    assert [event.json for event in events(endpoint, job) if event.id is not None] == shown
    assert endpoint.ok("GET", f"/stream/{job}") == shown
    assert endpoint.status(job)["output"] == [{"output": "b", "metrics": {}}], "the output stays what the worker says"
    document = endpoint.api.ok("GET", "/v1/openapi.json")
    assert document["components"]["schemas"]["StreamChunk"]["properties"]["metrics"]["type"] == "object"


def size_of(chunk: dict) -> int:
    return len(json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode())


def joined(values: list):
    """Parts of a value put together, as far as their kind says how."""
    first = values[0]
    if isinstance(first, str):
        return "".join(values)
    if isinstance(first, list):
        return [element for value in values for element in value]
    members = {}
    for value in values:
        for name, part in value.items():
            members.setdefault(name, []).append(part)
    return {name: joined(parts) if len(parts) > 1 else parts[0] for name, parts in members.items()}


TEXT = "🦜é\\\"\n" * 300_000


@pytest.mark.parametrize("output", [
    TEXT,
    [{"n": n, "text": "x" * 100} for n in range(30_000)],
    {"id": 1, "text": TEXT, "usage": {"tokens": 2}},
    {"a": {"b": {"c": ["x" * 1000] * 2500, "d": 1}, "e": 2}, "f": 3},
    {f"member {n}": n for n in range(100_000)},
], ids=["text", "list", "a large member", "nested", "many members"])
@pytest.mark.parametrize("metrics", [None, {"tokens": 7}], ids=["no metrics", "metrics"])
def test_a_chunk_of_any_kind_over_a_megabyte_is_split(endpoint, worker, output, metrics):
    job = endpoint.run()
    worker.take()
    post = {"output": output} | ({"metrics": metrics} if metrics else {})
    for ascii in (True, False):
        assert worker.post("job-stream", job, json.dumps(post, ensure_ascii=ascii)).status_code == 200
        chunks = endpoint.ok("GET", f"/stream/{job}")
        assert len(chunks) > 1 and all(size_of(chunk) <= 1_000_000 for chunk in chunks)
        assert joined([chunk["output"] for chunk in chunks]) == output
        assert [chunk.get("metrics") for chunk in chunks] == [metrics] + [None] * (len(chunks) - 1)
    if isinstance(output, dict) and "id" in output:
        assert chunks[0]["output"]["usage"] == {"tokens": 2}, "the others go with the first part"
    worker.done(job, {"output": []})
    assert endpoint.status(job)["status"] == "COMPLETED"


@pytest.mark.parametrize("post", [
    '{"output": ' + "7" * 2_500_000 + "}",
    '{"output": {"' + "k" * 2_500_000 + '": 1}}',
    '{"output": ' + "[" * 400 + '"' + "x" * 2_500_000 + '"' + "]" * 400 + "}",
    '{"output": 1, "metrics": {"text": "' + "m" * 2_500_000 + '"}}',
    '{"output": "' + "x" * 1_500_000 + '", "metrics": {"text": "' + "m" * 2_500_000 + '"}}',
], ids=["a number", "a name", "nesting", "metrics", "both"])
def test_no_chunk_fails_its_job_for_its_size(endpoint, worker, post):
    job = endpoint.run()
    worker.take()
    assert worker.post("job-stream", job, post).status_code == 200
    answer = endpoint.call("GET", f"/stream/{job}?offset=0")
    assert answer.status_code == 200 and len(answer.content) > 1_200_000
    seen = follow(f"{endpoint.api.server.url}{endpoint.mount}/stream/{job}", endpoint.api.key)
    worker.done(job, {"output": []})
    chunks = [event.data for event in seen if event.id is not None]
    assert len(chunks) > 1 and all(len(chunk) <= 1_000_000 for chunk in chunks)
    assert endpoint.status(job)["status"] == "COMPLETED"


def test_the_server_sets_the_shape_and_an_endpoint_has_its_own(fresh_server):
    server = fresh_server(config=QUICK + 'stream_shape = "object"\n')
    api = Api(server)
    for shape, is_object in ((None, True), ("object", True), ("array", False)):
        endpoint = api.external(streamShape=shape)
        assert endpoint.record["streamShape"] == ("object" if is_object else "array")
        worker = FakeWorker(endpoint)
        job = endpoint.run()
        worker.take()
        worker.chunk(job, 1)
        chunks = [{"output": 1}]
        shown = {"status": "IN_PROGRESS", "stream": chunks}
        assert endpoint.ok("GET", f"/stream/{job}?offset=0") == (shown if is_object else chunks)
        assert endpoint.ok("POST", f"/stream/{job}") == (shown if is_object else chunks)
        assert api.ok("GET", f"/sdk{endpoint.mount}/stream/{job}?offset=0") == shown
        worker.done(job, {"output": []})
        assert endpoint.ok("GET", f"/stream/{job}") == ({"status": "COMPLETED", "stream": []} if is_object else [])
    assert api.call("PATCH", f"/v1/endpoints/{endpoint.id}", json={"streamShape": "list"}).status_code == 400


def test_several_concurrent_readers_during_and_after_the_job(endpoint, worker):
    job = endpoint.run()
    worker.take()

    def read(_):
        return [event.id for event in events(endpoint, job) if event.id is not None]

    with ThreadPoolExecutor(5) as threads:
        readers = [threads.submit(read, n) for n in range(5)]
        for n in range(50):
            worker.chunk(job, n)
        worker.done(job, {"output": []})
        assert [reader.result(60) for reader in readers] == [list(range(50))] * 5
    assert read(0) == list(range(50)), "also when the job is over"
    assert [event.id for event in events(endpoint, job, last=47)] == [48, 49, None]
    assert [event.id for event in events(endpoint, job, query="?offset=48")] == [48, 49, None]
    assert len(endpoint.ok("GET", f"/stream/{job}")) == 50, "events do not drain"


def test_a_new_attempt_goes_on_with_the_offsets(endpoint, worker):
    job = endpoint.run()
    worker.take()
    seen = events(endpoint, job)
    worker.chunk(job, "lost")
    until(lambda: next(seen).id == 0, "the first attempt's chunk comes")
    # It asks again with nothing in progress: it has lost the job, which it had shown to have.
    worker.park()
    while next(seen).json.get("retries") != 1:
        pass
    worker.chunk(job, "kept")
    worker.done(job, {"output": []})
    ids = [(event.id, event.json["output"]) for event in seen if event.id is not None]
    assert ids == [(1, "kept")]
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "kept"}]


def test_a_poll_never_shows_chunks_of_a_lost_attempt(endpoint, worker):
    """What was drained stays drained, what was not is gone, and the next attempt's chunks come once."""
    job = endpoint.run()
    worker.take()
    worker.chunk(job, "drained")
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "drained"}]
    worker.chunk(job, {"output": "never seen", "metrics": {}})
    worker.chunk(job, "x" * 2_500_000)
    worker.park()
    until(lambda: endpoint.status(job).get("retries") == 1, "the job runs again")
    assert endpoint.ok("GET", f"/stream/{job}?wait=0") == endpoint.ok("GET", f"/stream/{job}?offset=0&wait=0") == []
    worker.chunk(job, "kept")
    worker.done(job, {"output": []})
    assert [event.id for event in events(endpoint, job) if event.id is not None] == [5]
    assert endpoint.ok("GET", f"/stream/{job}") == [{"output": "kept"}]
    assert endpoint.ok("GET", f"/stream/{job}?offset=6") == []


def test_limits_of_outputs_are_settings_and_the_worker_is_answered_200(fresh_server):
    server = fresh_server(config=QUICK + "output_bytes_max = 100\nsync_output_bytes_max = 200\n")
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    for path, limit in (("/run", 100), ("/runsync?wait=1000", 200)):
        for over in (0, 1):
            job = endpoint.ok("POST", path, json={"input": {}})["id"]
            assert worker.take()["id"] == job
            answer = worker.post("job-done", job, json.dumps({"output": "x" * (limit - 2 + over)}))
            assert answer.status_code == 200
            record = endpoint.status(job)
            assert record["status"] == ("FAILED" if over else "COMPLETED")
            if over:
                expected = f"the output has {limit + 1} bytes, the limit is {limit}: upload it to storage and return a link"
                assert record["error"] == expected and "output" not in record


def test_events_go_on_across_a_restart(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    for n in range(10):
        worker.chunk(job, n)
    ids = []
    try:
        for event in events(endpoint, job):
            if event.id is not None:
                ids.append(event.id)
            if event.id == 9:
                server.kill()
    except requests.RequestException:
        pass
    server.start()
    for n in range(10, 20):
        worker.chunk(job, n)
    worker.done(job, {"output": []})
    ids += [event.id for event in events(endpoint, job, last=ids[-1]) if event.id is not None]
    assert ids == list(range(20))


def test_the_chunks_go_with_their_job(endpoint, worker):
    job = endpoint.run()
    worker.take()
    worker.chunk(job, 1)
    worker.done(job, {"output": []})
    endpoint.ok("GET", f"/status/{job}?ttl=1000")
    until(lambda: endpoint.call("GET", f"/stream/{job}?offset=0").status_code == 404, "the job is gone")
    answer = endpoint.call("GET", f"/stream/{job}", headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.json()["code"]) == (404, "job_not_found")


def test_a_stream_over_its_limit_fails_the_job(fresh_server):
    server = fresh_server(config=QUICK + "stream_bytes_max = 1000\n")
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    stop = worker.park_stops()
    for _ in range(10):
        worker.chunk(job, "x" * 98)
    assert endpoint.status(job)["status"] == "IN_PROGRESS", "the limit itself is allowed"
    worker.chunk(job, 0)
    record = endpoint.status(job)
    assert record["status"] == "FAILED"
    assert "the job's stream has 1001 bytes, the limit is 1000" in record["error"]
    assert stop.result(60) == [job], "the worker is told"
    assert len(endpoint.ok("GET", f"/stream/{job}")) == 10, "what came before can be read"


def test_a_reader_that_does_not_read_delays_no_other(endpoint, worker):
    job = endpoint.run()
    worker.take()
    url = f"{endpoint.api.server.url}{endpoint.mount}/stream/{job}"
    headers = {"Authorization": f"Bearer {endpoint.api.key}", "Accept": "text/event-stream"}
    server = endpoint.api.server
    before = processes.rss_bytes(server.process.pid)
    with requests.get(url, headers=headers, stream=True, timeout=60):
        text = "x" * 100_000
        for _ in range(300):
            worker.chunk(job, text)
        grown = processes.rss_bytes(server.process.pid) - before
    worker.done(job, {"output": []})
    assert sum(1 for event in events(endpoint, job) if event.id is not None) == 300
    # 30 MB went by; what is left in memory is a window of it.
    assert grown < 25_000_000, f"{grown} bytes"


def test_a_thousand_readers_of_one_job(besieged):
    """Each gets every chunk, within 100 MB for all of them."""
    endpoint = Api(besieged).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    before = processes.rss_bytes(besieged.process.pid)
    request = (
        f"GET {endpoint.mount}/stream/{job} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {endpoint.api.key}\r\n\r\n"
    ).encode()

    async def read() -> list[int]:
        reader, writer = await asyncio.open_connection("127.0.0.1", besieged.port)
        writer.write(request)
        ids = []
        while b"event: done" not in (line := await reader.readline()):
            assert line, "the answer ended"
            if line.startswith(b"id: "):
                ids.append(int(line[4:]))
        writer.close()
        return ids

    async def all_of_them() -> tuple[list[list[int]], int]:
        readings = [asyncio.create_task(read()) for _ in range(1000)]
        for n in range(50):
            await asyncio.to_thread(worker.chunk, job, {"n": n, "text": "x" * 200})
        grown = processes.rss_bytes(besieged.process.pid) - before
        await asyncio.to_thread(worker.done, job, {"output": []})
        return await asyncio.wait_for(asyncio.gather(*readings), 60), grown

    seen, grown = event_loop.run(all_of_them())
    assert seen == [list(range(50))] * 1000
    print(f"1000 readers: {grown / 1e6:.0f} MB")
    assert grown < 100_000_000


class Resuming:
    """Reads a job's chunks through a proxy that cuts, and comes back with the last id until it is done."""

    def __init__(self, endpoint, job, proxy):
        self.url = f"{proxy.url}{endpoint.mount}/stream/{job}"
        self.key = endpoint.api.key
        self.ids, self.outputs, self.cuts, self.record = [], [], 0, None

    def read(self) -> "Resuming":
        while self.record is None:
            try:
                for event in follow(self.url, self.key, self.ids[-1] if self.ids else None):
                    assert self.record is None, "nothing comes after the end"
                    if event.name == "done":
                        self.record = event.json
                    elif event.id is not None:
                        self.ids.append(event.id)
                        self.outputs.append(event.json["output"])
            except requests.RequestException:
                pass
            self.cuts += self.record is None
        return self


def test_every_chunk_comes_once_however_often_the_connection_breaks(endpoint):
    """`LONGSHORE_CUTS` broken connections, `LONGSHORE_SEED` where they break."""
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    over, sent = threading.Event(), []

    def work():
        try:
            while not over.is_set():
                chunk = {"n": len(sent), "text": "x" * (len(sent) * 37 % 400)}
                worker.chunk(job, chunk)
                sent.append(chunk)
            worker.done(job, {"output": []})
        finally:
            # No client waits for a job whose worker has failed.
            endpoint.cancel(job)

    with CuttingProxy(endpoint.api.server.port, SEED, 6_000) as proxy, ThreadPoolExecutor(5) as threads:
        working = threads.submit(work)
        readers = [Resuming(endpoint, job, proxy) for _ in range(4)]
        readings = [threads.submit(reader.read) for reader in readers]
        try:
            until(lambda: proxy.cuts >= CUTS or working.done(), f"{CUTS} connections broke", timeout_s=60 + CUTS)
        finally:
            over.set()
            # However far behind the readers are: what they have yet to read is read in one go.
            proxy.spare()
        working.result(60)
        for reading in readings:
            reader = reading.result(120)
            assert reader.ids == list(range(len(sent))), "by offset, none lost and none twice"
            assert reader.outputs == sent
            assert reader.record["status"] == "COMPLETED"
    print(f"{proxy.cuts} broken connections, {len(sent)} chunks, 4 readers: 0 lost, 0 twice")


@pytest.mark.parametrize("language, number", [("sh", 0), ("python", 0), ("js", 0), ("sh", 1)])
def test_the_examples_of_the_manual_run(endpoint, worker, language, number):
    job = endpoint.run()
    worker.take()
    worker.chunk(job, "hello")
    worker.chunk(job, "world")
    worker.done(job, {"output": []})
    url, key = endpoint.api.server.url, endpoint.api.key
    code = manual.examples("streams.md", language)[number]
    wrote = manual.run(language, code, URL=url, KEY=key, ENDPOINT=endpoint.id, JOB=job)
    if (language, number) == ("sh", 0):
        assert wrote.startswith('id: 0\ndata: {"output":"hello"}\n\nid: 1\n')
        head, end = wrote.split("event: done\n")
        assert json.loads(end.removeprefix("data: "))["status"] == "COMPLETED"
    elif language == "sh":
        assert json.loads(wrote) == [{"output": "hello"}, {"output": "world"}]
    else:
        assert wrote.split() == ["hello", "world", "COMPLETED"]


@pytest.mark.parametrize("last", ["x", "-1", "1.0"])
def test_a_last_event_id_that_is_no_number_is_400(endpoint, last):
    headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
    assert endpoint.call("GET", f"/stream/{endpoint.run()}", headers=headers).status_code == 400
