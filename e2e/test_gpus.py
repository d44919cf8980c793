"""GPUs that the configuration names, shared out among real workers. No machine needs to have them."""

import shutil

import pytest

from harness.client import Api
from harness.server import QUICK
from harness.wait import until

SMALL, LARGE = "NVIDIA L4", "NVIDIA H100 80GB HBM3"
MACHINE = (
    QUICK.replace('gpu_sharing = "off"', "")
    + f"""
[[gpus]]
type = "{SMALL}"
count = 2
memory_gib = 24
[[gpus]]
type = "{LARGE}"
devices = ["GPU-aaaa", "GPU-bbbb"]
memory_gib = 80
"""
)


@pytest.fixture
def api(fresh_server) -> Api:
    """The management API of a machine with two GPUs of either type."""
    return Api(fresh_server(config=MACHINE))


def sees(endpoint) -> dict:
    return endpoint.runsync({})["output"]


def pods(api, **query) -> list[dict]:
    return api.ok("GET", "/v1/pods", params=query)


def test_a_worker_gets_gpus_of_the_first_type_with_enough_free_ones(api):
    first = api.endpoint("environment.py", gpuTypeIds=[LARGE, SMALL], gpuCount=2, workersMax=1)
    assert sees(first)["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa,GPU-bbbb"
    second = api.endpoint("environment.py", gpuTypeIds=[LARGE, SMALL], workersMax=1)
    seen = sees(second)
    assert seen["CUDA_VISIBLE_DEVICES"] == "0" and seen["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    any_type = api.endpoint("environment.py", env={"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, workersMax=1)
    assert sees(any_type)["CUDA_VISIBLE_DEVICES"] == "1", "a template cannot claim more"
    without = api.endpoint("environment.py", computeType="CPU", gpuCount=4, workersMax=1)
    assert sees(without)["CUDA_VISIBLE_DEVICES"] == ""

    (pod,) = pods(api, gpuTypeId=LARGE)
    assert pod["endpointId"] == first.id and pod["gpu"] == {"id": LARGE, "displayName": LARGE, "count": 2}
    assert {pod["endpointId"] for pod in pods(api)} == {first.id, second.id, any_type.id, without.id}
    assert pods(api, gpuTypeId=["NVIDIA A40", SMALL], endpointId=second.id)[0]["gpu"]["count"] == 1
    assert [pod["endpointId"] for pod in pods(api, computeType="CPU")] == [without.id]
    assert "gpu" not in pods(api, computeType="CPU")[0]


def test_who_finds_no_gpu_is_throttled_with_the_reason_and_starts_when_one_is_free(api):
    holder = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMin=2, workersMax=2)
    holder.wait_health("workers", "idle", 2, 40)
    waiting = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMax=1)
    job = waiting.run()
    health = waiting.wait_health("workers", "throttled", 1)
    assert health["reasons"]["throttled"] == f"a worker needs a GPU of {LARGE}; 0 of 2 are free"
    (throttled,) = api.ok("GET", f"/v1/endpoints/{waiting.id}?includeWorkers=true")["workers"]
    assert throttled["status"] == "THROTTLED" and throttled["reason"] == health["reasons"]["throttled"]
    assert api.ok("GET", f"/v1/pods/{throttled['id']}")["status"] == "THROTTLED"

    holder.patch(workersMin=1, workersMax=1)
    record = waiting.wait_for(job)
    assert record["output"]["CUDA_VISIBLE_DEVICES"] in ("GPU-aaaa", "GPU-bbbb")
    health = waiting.health()
    assert health["workers"]["throttled"] == 0 and "reasons" not in health
    devices = [sees(endpoint)["CUDA_VISIBLE_DEVICES"] for endpoint in (holder, waiting)]
    assert sorted(devices) == ["GPU-aaaa", "GPU-bbbb"]


def test_a_job_keeps_the_gpu_that_it_ran_on(api):
    endpoint = api.endpoint("environment.py", gpuTypeIds=[SMALL], workersMax=1)
    job = endpoint.run()
    endpoint.wait_for(job)
    (worker,) = pods(api)
    api.ok("POST", f"/v1/endpoints/{endpoint.id}/workers/{worker['id']}/stop")
    until(lambda: not pods(api), "the worker has ended", 30)
    # As after a time: nothing is left of the worker.
    for left in list(api.server.data.rglob(f"*{worker['id']}*")):
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    assert api.ok("GET", f"/v1/endpoints/{endpoint.id}/workers?ended=true") == []
    assert [attempt["gpu"] for attempt in endpoint.ok("GET", f"/jobs/{job}")["attempts"]] == [SMALL]


def test_what_the_machine_does_not_have_is_said(api):
    endpoint = api.endpoint("environment.py", gpuTypeIds=["NVIDIA B200"])
    job = endpoint.run()
    reason = endpoint.wait_health("workers", "throttled", 1)["reasons"]["throttled"]
    assert reason == f"a worker needs a GPU of NVIDIA B200; this machine has 2 x {LARGE}, 2 x {SMALL}"
    impossible = endpoint.ok("GET", "/health")["reasons"]["impossible"]
    assert impossible == f"A worker asks for 1 × NVIDIA B200; there are 2 × {LARGE}, 2 × {SMALL}."
    assert impossible == endpoint.ok("GET", "/explain")["cause"]["text"]
    endpoint.patch(gpuTypeIds=["NVIDIA B200", SMALL])
    assert endpoint.wait_for(job)["output"]["CUDA_VISIBLE_DEVICES"] == "0"
    assert "reasons" not in endpoint.ok("GET", "/health")


def test_adopted_workers_keep_their_gpus(api):
    holder = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMin=2, workersMax=2)
    holder.wait_health("workers", "idle", 2, 40)
    before = {(pod["id"], pod["gpu"]["count"], pod["lastStartedAt"]) for pod in pods(api, endpointId=holder.id)}
    api.server.kill()
    api.server.start()
    waiting = api.endpoint("environment.py", gpuTypeIds=[LARGE], workersMax=1)
    job = waiting.run()
    waiting.wait_health("workers", "throttled", 1)
    after = {(pod["id"], pod["gpu"]["count"], pod["lastStartedAt"]) for pod in pods(api, endpointId=holder.id)}
    assert after == before
    assert api.call("DELETE", f"/v1/endpoints/{holder.id}").status_code == 204
    assert waiting.wait_for(job)["output"]["CUDA_VISIBLE_DEVICES"] in ("GPU-aaaa", "GPU-bbbb")


def test_many_workers_never_share_a_gpu(api, tmp_path):
    endpoints = [api.endpoint("environment.py", workersMax=3, scalerType="REQUEST_COUNT", scalerValue=1) for _ in range(2)]
    go = tmp_path / "go"
    jobs = [(endpoint, endpoint.run({"go": str(go)})) for endpoint in endpoints for _ in range(4)]

    def all_taken():
        shown = [pod for endpoint in endpoints for pod in pods(api, endpointId=endpoint.id)]
        placed = [pod for pod in shown if "gpu" in pod]
        assert len(placed) == 4 and len([pod for pod in shown if pod["status"] == "THROTTLED"]) == 2, shown
        return placed

    until(all_taken, "four workers and two that wait", 20)
    running = lambda: sum(endpoint.health()["jobs"]["inProgress"] for endpoint in endpoints)
    until(lambda: running() == 4, "each worker has a job", 60)
    go.touch()
    outputs = [endpoint.wait_for(job, timeout_s=60)["output"] for endpoint, job in jobs]
    devices = {output["worker"]: output["CUDA_VISIBLE_DEVICES"] for output in outputs}
    assert len(set(devices.values())) == len(devices) == 4, devices


def test_two_workers_have_the_shares_of_one_gpu(fresh_server):
    shares = f'[[gpus]]\ntype = "{SMALL}"\ndevices = ["GPU-cccc"]\nmemory_gib = 24\nshares = 2\n'
    api = Api(fresh_server(config=QUICK.replace('gpu_sharing = "off"', "") + shares))
    holder = api.endpoint("environment.py", gpuTypeIds=[SMALL], workersMin=2, workersMax=3)
    holder.wait_health("workers", "idle", 2, 40)
    job = holder.run({"seconds": 1})
    assert holder.wait_for(job)["output"]["CUDA_VISIBLE_DEVICES"] == "GPU-cccc"
    (machine,) = api.ok("GET", "/v1/machines")
    shown = [(gpu["id"], gpu["memoryBytes"] >> 30, bool(gpu["worker"])) for gpu in machine["gpus"]]
    assert shown == [("GPU-cccc::1", 12, True), ("GPU-cccc::2", 12, True)]
    wide = api.endpoint("environment.py", gpuCount=2)
    wide.run()
    reason = wide.wait_health("workers", "throttled", 1)["reasons"]["throttled"]
    assert reason == f"a worker needs 2 GPUs of any type; this machine has 1 x {SMALL} in 2 shares"
    narrow = api.endpoint("environment.py", workersMax=1)
    waiting = narrow.run()
    narrow.wait_health("workers", "throttled", 1)
    holder.patch(workersMin=1, workersMax=1)
    assert narrow.wait_for(waiting)["output"]["CUDA_VISIBLE_DEVICES"] == "GPU-cccc"


def test_an_invalid_inventory_is_refused(fresh_server):
    with pytest.raises(RuntimeError, match=r"needs either `count`, from 1 to 1024, or `devices`"):
        fresh_server(config=QUICK + '[[gpus]]\ntype = "L4"\n')
