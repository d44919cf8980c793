"""What survives: `kill -9` at chosen moments, restarts, and folders that are not ours to touch."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import requests
from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.receiver import Receiver
from harness.server import QUICK, binary
from harness.wait import until


def test_acknowledged_results_survive_kill_9(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    jobs = [endpoint.run({"n": n}) for n in range(6)]
    worker.take()
    worker.chunk(jobs[0], "chunk")
    worker.progress(jobs[0], "progress")
    worker.done(jobs[0], {"output": {"big": "x" * 2_000_000}})
    worker.take()
    worker.done(jobs[1], {"error": "bad"})
    endpoint.cancel(jobs[2])
    worker.take()
    before = [endpoint.status(job) for job in jobs]
    health = endpoint.health()["jobs"]
    server.kill()
    server.start()
    after = [endpoint.status(job) for job in jobs]
    for old, new in zip(before, after):
        assert {**new, "executionTime": 0} == {**old, "executionTime": 0}
    assert endpoint.ok("GET", f"/stream/{jobs[0]}") == [{"output": "chunk"}]
    assert endpoint.health()["jobs"] == health
    worker.ping(jobs[3])
    worker.done(jobs[3], {"output": "went on"})
    assert endpoint.status(jobs[3])["output"] == "went on" and "retries" not in endpoint.status(jobs[3])


def test_attempts_and_the_reason_of_a_retry_survive_kill_9(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    job = endpoint.run()
    worker.take()
    # The worker says that it has no job: the delivery was lost.
    assert worker.take()["id"] == job
    worker.ping(job), worker.ping(), worker.ping()
    endpoint.wait_for(job, "IN_QUEUE")
    before = endpoint.ok("GET", f"/jobs/{job}")["attempts"]
    ends = [(attempt["n"], attempt["end"], attempt["worker"]) for attempt in before]
    assert ends == [(1, "undelivered", worker.id), (2, "workerLost", worker.id)], before
    server.kill()
    server.start()
    assert endpoint.ok("GET", f"/jobs/{job}")["attempts"] == before
    explained = endpoint.ok("GET", f"/explain/{job}")
    (retrying,) = [cause for cause in explained["also"] if cause["code"] == "retrying"]
    assert before[-1]["reason"] in retrying["text"], retrying
    endpoint.cancel(job)


def test_large_payloads_survive_kill_9_byte_for_byte(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    texts = {endpoint.run({"n": n, "text": chr(65 + n) * 3_000_000}): chr(65 + n) * 3_000_000 for n in range(3)}
    first = next(iter(texts))
    assert worker.take()["id"] == first
    worker.done(first, {"output": texts[first]})
    server.kill()
    server.start()
    assert endpoint.status(first)["output"] == texts[first]
    for job in list(texts)[1:]:
        taken = worker.take()
        assert taken["id"] == job and taken["input"]["text"] == texts[job]
        worker.done(job, {"output": None})


def test_payload_files_go_with_their_jobs(fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint = api.external(resultRetentionMs=1000)
    worker = FakeWorker(endpoint)

    def stored_mb() -> int:
        files = (path for path in server.data.rglob("*") if path.is_file() and path.name != "reserve")
        files = (path for path in files if path.parent != server.data / "log")
        return sum(path.stat().st_size for path in files) // 1_000_000

    job = endpoint.run({"text": "x" * 5_000_000})
    assert stored_mb() >= 5
    worker.take()
    worker.done(job, {"output": "y" * 5_000_000})
    until(lambda: endpoint.is_gone(job), "the job expires", 10)
    until(lambda: stored_mb() == 0, "its files are gone", 20)
    endpoint.run({"text": "x" * 5_000_000})
    assert stored_mb() >= 5
    assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    until(lambda: stored_mb() == 0, "the files of a deleted endpoint are gone", 20)


def test_order_survives_kill_9(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    jobs = [endpoint.run({"n": n}) for n in range(20)]
    server.kill()
    server.start()
    jobs += [endpoint.run({"n": n}) for n in range(20, 25)]
    assert [job["id"] for job in FakeWorker(endpoint).take_batch(100)] == jobs


def test_idempotency_key_survives_kill_9(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    headers = {"Idempotency-Key": "abc"}
    first = endpoint.ok("POST", "/run", json={"input": {"n": 1}}, headers=headers)
    server.kill()
    server.start()
    assert endpoint.ok("POST", "/run", json={"input": {"n": 1}}, headers=headers)["id"] == first["id"]
    assert endpoint.call("POST", "/run", json={"input": {"n": 2}}, headers=headers).status_code == 409


def test_pending_webhooks_survive_kill_9(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    with Receiver(503, 200) as receiver:
        job = endpoint.run({}, webhook=receiver.url)
        worker.take()
        worker.done(job, {"output": "told"})
        receiver.wait_for(1)
        server.kill()
        server.start()
        assert receiver.wait_for(2, 25)[1]["json"]["output"] == "told"


def test_catalog_survives_kill_9(fresh_server):
    server = fresh_server()
    api = Api(server)
    endpoint = api.external(slug="kept", workersMax=7)
    gone = api.external()
    assert api.call("DELETE", f"/v1/endpoints/{gone.id}").status_code == 204
    server.kill()
    server.start()
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}")["workersMax"] == 7
    assert [record["id"] for record in api.ok("GET", "/v1/endpoints")] == [endpoint.id]


def test_worker_token_survives_a_restart(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    assert server.terminate() == 0
    server.start()
    job = endpoint.run()
    assert worker.take()["id"] == job


def test_sigterm_answers_what_waits_and_exits_in_time(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    worker = FakeWorker(endpoint)
    poll = worker.park()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(endpoint.runsync, {}, 60000)
        taken = poll.result(60).json()
        idle = FakeWorker(endpoint)
        poll = idle.park()
        endpoint.wait_health("workers", "ready", 1)
        began = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - began < 30, "it does not wait for the minute that they may wait"
        assert waiting.result(60)["status"] in ("IN_QUEUE", "IN_PROGRESS")
        assert poll.result(60).status_code == 204
    server.start()
    worker.done(taken["id"], {"output": 1})
    assert endpoint.status(taken["id"])["status"] == "COMPLETED"


def refused_start(server) -> str:
    """Starts a second process on the same folder; it must end by itself. Answers what it printed."""
    before = len(server.log())
    port, server.port = server.port, 0
    process = server.spawn()
    server.port = port
    try:
        assert process.wait(60) not in (0, None)
    finally:
        if process.poll() is None:
            process.kill()
    said = server.log()[before:]
    assert "panicked" not in said, said
    return said


def test_second_server_on_the_same_folder_is_refused(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    said = refused_start(server)
    assert "another" in said.lower() or "in use" in said.lower() or "locked" in said.lower(), said
    assert endpoint.status(endpoint.run())["status"] == "IN_QUEUE", "the first one goes on"


def test_a_newer_format_is_refused(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    job = endpoint.run()
    server.terminate()
    newest = max((server.data / "log").glob("*.log"))

    def format_version(change: int) -> None:
        with newest.open("r+b") as segment:
            segment.seek(8)
            old = int.from_bytes(segment.read(4), "little")
            segment.seek(8)
            segment.write((old + change).to_bytes(4, "little"))

    format_version(+1000)
    said = refused_start(server)
    assert "newer" in said.lower(), said
    format_version(-1000)
    server.start()
    assert endpoint.status(job)["status"] == "IN_QUEUE", "and nothing was touched"


def filled(server, jobs: int = 40) -> tuple:
    """A server with this number of acknowledged jobs in its queue; and the jobs."""
    endpoint = Api(server).external()
    return endpoint, [endpoint.run({"n": n}) for n in range(jobs)]


def newest_segment(server):
    return max((server.data / "log").glob("*.log"))


def flip_in_first_frame(segment) -> None:
    bytes_ = bytearray(segment.read_bytes())
    bytes_[4096 + 40] ^= 1
    segment.write_bytes(bytes_)


def test_a_flipped_bit_after_a_clean_end_is_refused_with_file_and_place(fresh_server):
    server = fresh_server()
    endpoint, jobs = filled(server)
    assert server.terminate() == 0
    segment = newest_segment(server)
    whole = segment.read_bytes()
    flip_in_first_frame(segment)
    damaged = segment.read_bytes()
    said = refused_start(server)
    assert f"log/{segment.name}" in said and "byte 4096" in said and "restore" in said, said
    assert segment.read_bytes() == damaged, "the evidence was changed"
    segment.write_bytes(whole)
    server.start()
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs)


def test_a_flipped_bit_after_kill_9_is_refused(fresh_server):
    server = fresh_server()
    filled(server)
    server.kill()
    flip_in_first_frame(newest_segment(server))
    said = refused_start(server)
    assert "damaged" in said and "byte 4096" in said, said


def test_a_cut_end_and_a_missing_end_of_the_log_are_refused(fresh_server):
    server = fresh_server()
    endpoint, jobs = filled(server)
    assert server.terminate() == 0
    segment = newest_segment(server)
    whole = segment.read_bytes()
    end = len(whole.rstrip(b"\0"))
    for length in (end - 1, (end + 4096) // 2, 4096, 0):
        segment.write_bytes(whole[:length])
        said = refused_start(server)
        assert segment.name in said and "damaged" in said, said
    segment.unlink()
    said = refused_start(server)
    assert segment.name in said and "missing" in said, said
    segment.write_bytes(whole)
    server.start()
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs)


def test_a_log_without_a_proven_end_is_told_of(fresh_server):
    server = fresh_server()
    assert "log-end" not in server.log(), "a new log has no records"
    endpoint, jobs = filled(server)
    assert server.terminate() == 0
    note = server.data / "log-end"
    note.write_bytes(b"?" + note.read_bytes()[1:])
    unproven = "the end of the log is unproven, and what was acknowledged last may be missing"
    said = refused_start(server)
    assert unproven in said and "take a copy" in said, said
    code, said = store_command(server, "verify", str(server.data))
    assert code == 1 and unproven in said and "take a copy" in said, said
    note.unlink()
    code, said = store_command(server, "verify", str(server.data))
    assert code == 0 and unproven in said, said
    before = len(server.log())
    server.start()
    said = server.log()[before:]
    assert "WARN" in said and "there is no file `log-end`" in said and unproven in said, said
    assert server.terminate() == 0
    before = len(server.log())
    server.start()
    assert "log-end" not in server.log()[before:]
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs)


def test_data_of_a_server_without_its_log_is_refused(fresh_server):
    server = fresh_server()
    endpoint, jobs = filled(server)
    endpoint.run({"text": "x" * 3_000_000})
    assert server.terminate() == 0
    aside = server.folder / "aside"
    aside.mkdir()
    for name in ("log", "log-end"):
        (server.data / name).rename(aside / name)
    said = refused_start(server)
    assert str(server.data) in said and "`blobs/`" in said and "`audit/`" in said and "put `log/`" in said, said
    for name in ("log", "log-end"):
        (aside / name).rename(server.data / name)
    server.start()
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs)


def test_second_server_is_refused_although_the_lock_file_was_removed(fresh_server):
    server = fresh_server()
    endpoint = Api(server).external()
    (server.data / "lock").unlink()
    for _ in range(2):
        assert "in use" in refused_start(server)
    jobs = [endpoint.run() for _ in range(10)]
    server.kill()
    server.start()
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs)


def store_command(server, *arguments: str):
    """`longshore store`, which needs no server. Answers its exit code and what it printed."""
    done = subprocess.run([binary(), "store", *arguments], capture_output=True, text=True, timeout=60, cwd=server.folder)
    assert "panicked" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_store_verify_tells_a_whole_folder_from_a_damaged_one(fresh_server):
    server = fresh_server()
    endpoint, jobs = filled(server)
    endpoint.run({"text": "x" * 3_000_000})
    code, said = store_command(server, "verify", str(server.data))
    assert code == 0 and "nothing is damaged" in said, said
    assert server.terminate() == 0
    code, said = store_command(server, "verify", str(server.data))
    assert code == 0 and f"{len(jobs) + 1} jobs" in said and "1 large payload with" in said, said
    segment = newest_segment(server)
    whole = segment.read_bytes()
    flip_in_first_frame(segment)
    code, said = store_command(server, "verify", str(server.data))
    assert code == 1 and f"log/{segment.name}, byte 4096: " in said and "damaged: 1 place;" in said, said
    segment.write_bytes(whole)
    (blob,) = (server.data / "blobs").rglob("*.sum-*")
    large = blob.read_bytes()
    for damaged in (large[:-1], large[:1_000_000] + b"?" + large[1_000_001:]):
        blob.write_bytes(damaged)
        code, said = store_command(server, "verify", str(server.data))
        assert code == 1 and f"blobs/{blob.relative_to(server.data / 'blobs')}" in said, said
    for nothing in (server.folder / "nothing", server.folder):
        code, said = store_command(server, "verify", str(nothing))
        assert code == 1 and "not a data directory" in said, said


def test_store_recover_keeps_what_can_be_read(fresh_server):
    server = fresh_server()
    endpoint, jobs = filled(server)
    text = "x" * 3_000_000
    large = endpoint.run({"text": text})
    new = server.folder / "new"
    code, said = store_command(server, "recover", str(server.data), "--to", str(new))
    assert code == 1 and "in use" in said, said
    assert server.terminate() == 0
    segment = newest_segment(server)
    damaged = bytearray(segment.read_bytes())
    lost = jobs[20]
    at = damaged.index(b'"n":20') if b'"n":20' in damaged else damaged.index(b'"n": 20')
    damaged[at] ^= 1
    segment.write_bytes(damaged)
    assert "damaged" in refused_start(server)
    code, said = store_command(server, "recover", str(server.data), "--to", str(new))
    assert code == 0 and f"damaged: log/{segment.name}, byte " in said and f"{len(jobs)} jobs, 1 large payload" in said, said
    assert segment.read_bytes() == damaged
    code, again = store_command(server, "recover", str(server.data), "--to", str(new))
    assert code == 1 and "not empty" in again, again
    server.data = new
    code, said = store_command(server, "verify", str(new))
    assert code == 0, said
    server.start()
    assert endpoint.is_gone(lost)
    assert all(endpoint.status(job)["status"] == "IN_QUEUE" for job in jobs if job != lost)
    worker = FakeWorker(endpoint)
    taken = {job["id"]: job["input"] for job in worker.take_batch(100)}
    assert taken[large] == {"text": text} and len(taken) == len(jobs)


def test_damage_to_files_at_rest_is_found_in_the_background(fresh_server):
    server = fresh_server(config=QUICK + "scrub_bytes_per_second = 50000000\nscrub_interval_ms = 1000\n")
    endpoint = Api(server).external()
    # More than a start writes again: the next one begins another file, and this one is read.
    jobs = [endpoint.run({"text": "y" * 50_000}) for _ in range(30)]
    large = endpoint.run({"text": "z" * 1_000_000})
    assert server.terminate() == 0
    segment = newest_segment(server)
    server.start()

    def checks() -> str:
        answer = requests.get(f"{server.url}/readyz?verbose", timeout=60)
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
        return answer.text

    def metric(name: str) -> float:
        page = Api(server).call("GET", "/metrics").text
        return next(float(line.split()[-1]) for line in page.splitlines() if line.startswith(f"longshore_scrub_{name} "))

    until(lambda: metric("passes_total") >= 2, "everything was read twice", 30)
    assert metric("bytes_total") > 2_000_000 and metric("damaged") == 0
    assert "ok endpoints" in checks() and "ok files: 0 damaged" in checks(), checks()
    with segment.open("r+b") as file:
        at = segment.read_bytes().index(b"y" * 10_000)
        file.seek(at)
        file.write(b"Y")
    (blob,) = (server.data / "blobs").rglob("*.sum-*")
    blob.rename(server.folder / "aside")
    until(lambda: metric("damaged") == 2, "the damage is found", 30)
    assert "failed files: 2 damaged places" in checks()
    said = server.log()
    assert said.count("stored file is damaged") == 2 and "ERROR" in said, said[-2000:]
    assert f"log/{segment.name}" in said and str(blob.relative_to(server.data)) in said, said[-2000:]
    with segment.open("r+b") as file:
        file.seek(at)
        file.write(b"y")
    (server.folder / "aside").rename(blob)
    until(lambda: metric("damaged") == 0, "what was mended is damaged no more", 30)
    assert server.log().count("stored file is damaged") == 2, "each place is told of once"
    for job in [*jobs, large]:
        assert endpoint.status(job)["status"] == "IN_QUEUE"
