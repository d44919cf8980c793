"""Workers of several endpoints that share the room of one computer."""

from harness.client import Api
from harness.server import QUICK
from harness.wait import until


def room(fresh_server, *settings: str) -> Api:
    return Api(fresh_server(config=QUICK + "".join(f"{line}\n" for line in settings)))


def cause(endpoint, path: str = "/explain") -> dict:
    return endpoint.ok("GET", path)["cause"]


def test_a_worker_over_the_number_of_all_workers_waits_and_says_why(fresh_server):
    api = room(fresh_server, "workers_max_total = 1")
    first = api.endpoint("echo.py", workersMin=1, workersMax=1)
    first.runsync({})
    second = api.endpoint("echo.py", workersMax=1)
    job = second.run({})
    full = lambda: [told for told in [cause(second, f"/explain/{job}")] if told["code"] == "machine_full"]
    (told,) = until(full, "the cause", 20)
    assert told["title"] == "There is no room for a worker"
    assert told["text"] == "The server runs 1 worker, and `workers_max_total` is 1."
    health = second.health()
    assert health["workers"]["throttled"] == 1
    assert "workers_max_total" in health["reasons"]["throttled"]
    first.patch(workersMin=0, workersMax=0)
    assert second.wait_for(job, timeout_s=60)["status"] == "COMPLETED"


def test_memory_that_is_promised_is_not_promised_again_also_by_the_next_server(fresh_server):
    settings = f"workers_memory_bytes_max = {3 << 30}", "workers_vcpus_max = 2"
    server = fresh_server(config=QUICK + "".join(f"{line}\n" for line in settings))
    api = Api(server)
    holder = api.endpoint("echo.py", workersMin=1, workersMax=1, memoryBytes=2 << 30, vcpus=1.5)
    holder.runsync({})
    server.kill()
    server.start()
    waiting = api.endpoint("echo.py", workersMax=1, memoryBytes=2 << 30)
    job = waiting.run({})
    shortage = "A worker needs 2048 MiB of memory (`memoryBytes`); 1024 MiB of 3072 MiB are not promised to other workers."
    until(lambda: cause(waiting)["text"] == shortage, "the shortage", 40)
    busy = api.endpoint("echo.py", workersMax=1, vcpus=1)
    busy.run({})
    until(lambda: "0.5 of 2 are not promised" in cause(busy)["text"], "the shortage of processors", 20)
    never = api.endpoint("echo.py", workersMax=1, memoryBytes=1 << 50)
    never.run({})
    until(lambda: "(`workers_memory_bytes_max`)" in cause(never)["text"], "what can never fit", 20)
    assert holder.runsync({})["status"] == "COMPLETED", "the worker of before goes on"
    holder.patch(workersMin=0, workersMax=0)
    assert waiting.wait_for(job, timeout_s=60)["status"] == "COMPLETED"
