"""GPUs that the driver lists, and that break: a stand-in for `nvidia-smi` prints what the test says."""

import json
import os
import signal
import subprocess

import pytest

from harness import processes
from harness.client import Api
from harness.server import ADMIN_KEY, QUICK, Server, binary
from harness.wait import until

CONFIG = QUICK.replace('gpu_sharing = "off"', "gpu_interval_ms = 500")
TOOL = """#!/bin/sh
case "$1" in -L) cat "{folder}/parts" ;; *) cat "{folder}/rows"; exit $(cat "{folder}/code") ;; esac
"""


class Driver:
    """The stand-in, and the GPUs that it lists."""

    def __init__(self, folder):
        self.folder = folder
        self.lists("")
        tool = folder / "nvidia-smi"
        tool.write_text(TOOL.format(folder=folder))
        tool.chmod(0o755)

    def lists(self, *rows: str, code: int = 0, parts: str = "") -> None:
        for name, text in (("code", str(code)), ("parts", parts), ("rows", "\n".join(rows))):
            draft = self.folder / f"{name}.new"
            draft.write_text(text + "\n")
            draft.rename(self.folder / name)


def row(number: int, temperature: str = "40", errors: int = 0, mig: str = "Disabled") -> str:
    return f"GPU-{number}, NVIDIA L4, 23034, {mig}, 00000000:0{number}:00.0, 570.1, {temperature}, {errors}, 8.9, 87, 11500"


@pytest.fixture
def driver(tmp_path) -> Driver:
    return Driver(tmp_path)


@pytest.fixture
def server(driver):
    server = Server(config=CONFIG)
    server.environment["PATH"] = f"{driver.folder}:{os.environ['PATH']}"
    yield server
    server.close()


def gpus(api: Api) -> dict[str, dict]:
    (machine,) = api.ok("GET", "/v1/machines")
    return {gpu["id"]: gpu for gpu in machine["gpus"]}


def test_a_gpu_that_breaks_gets_no_worker_and_its_worker_is_replaced(server, driver):
    driver.lists(row(1), row(2))
    server.start()
    api = Api(server)
    first = until(lambda: gpus(api)["GPU-1"]["driverVersion"] and gpus(api)["GPU-1"], "the driver is asked", 20)
    assert (first["busId"], first["computeCapability"], first["temperatureC"]) == ("00000000:01:00.0", "8.9", 40)
    assert (first["useRatio"], first["memoryUsedBytes"]) == (0.87, 11500 << 20)
    assert (first["eccErrors"], first["fault"]) == (0, None)
    mine = api.endpoint("environment.py", gpuTypeIds=["NVIDIA L4"], workersMin=1, workersMax=1)
    held = mine.runsync({})["output"]["CUDA_VISIBLE_DEVICES"]
    assert held == "GPU-1"
    (pod,) = api.ok("GET", "/v1/pods")
    (shown,) = pod["gpus"]
    assert {name: shown[name] for name in shown} == {name: first[name] for name in shown} and shown["useRatio"] == 0.87
    (machine,) = api.ok("GET", "/v1/machines")
    assert pod["machineId"] == machine["id"] and machine["endpoints"] == [mine.id]
    driver.lists(row(1, "[GPU requires reset]"), row(2))
    until(lambda: gpus(api)["GPU-1"]["fault"], "the fault is shown", 20)
    assert gpus(api)["GPU-1"]["fault"] == 'the driver says "requires reset"'
    until(lambda: gpus(api)["GPU-2"]["worker"], "another worker has the other GPU", 40)
    assert mine.runsync({})["output"]["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    listed = subprocess.run(
        [binary(), "gpus"], check=True, capture_output=True, text=True,
        env=os.environ | {"LONGSHORE_URL": server.url, "LONGSHORE_API_KEY": ADMIN_KEY},
    ).stdout.splitlines()
    assert listed[0].split() == ["GPU", "MEMORY", "USED", "BUSY", "STATE", "TEMP", "WORKER", "ENDPOINT", "BUS", "DEVICE", "FAULT"]
    assert "sick" in listed[1] and 'the driver says "requires reset"' in listed[1], listed
    assert "taken" in listed[2] and mine.id in listed[2], listed
    metrics = api.call("GET", "/metrics").text
    assert 'longshore_gpus{type="NVIDIA L4",state="sick"} 1' in metrics
    # The other one is lost, too: no worker can be placed, and that is no lack of free ones.
    lost = "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost."
    driver.lists(row(1, "[GPU requires reset]"), lost, code=15)
    until(lambda: gpus(api)["GPU-2"]["fault"] == "the driver no longer lists it", "both are sick", 30)
    job = mine.run({})
    until(lambda: mine.ok("GET", f"/explain/{job}")["cause"]["code"] == "gpu_impossible", "the cause", 40)
    told = mine.ok("GET", f"/explain/{job}")["cause"]
    assert "2 × NVIDIA L4 (2 sick): " in told["text"] and "changeGpus" not in json.dumps(told["actions"]), told
    driver.lists(row(1), row(2))
    assert mine.wait_for(job, timeout_s=90)["status"] == "COMPLETED"


def test_workers_keep_their_gpus_while_the_driver_does_not_answer(server, driver):
    driver.lists(row(1))
    server.start()
    api = Api(server)
    mine = api.endpoint("environment.py", gpuTypeIds=["NVIDIA L4"], workersMin=1, workersMax=1)
    mine.runsync({})
    worker = gpus(api)["GPU-1"]["worker"]
    driver.lists("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", code=9)
    fault = until(lambda: gpus(api)["GPU-1"]["fault"], "the fault", 30)
    assert "NVIDIA-SMI has failed" in fault
    assert mine.runsync({})["status"] == "COMPLETED"
    driver.lists(row(1))
    until(lambda: gpus(api)["GPU-1"]["fault"] is None, "the driver answers", 20)
    assert gpus(api)["GPU-1"]["worker"] == worker


def test_the_parts_of_a_divided_gpu_are_given_to_workers(server, driver):
    parts = "GPU 0: NVIDIA L4 (UUID: GPU-1)\n  MIG 1g.6gb  Device  0: (UUID: MIG-a)\n  MIG 1g.6gb  Device  1: (UUID: MIG-b)"
    driver.lists(row(1, mig="Enabled"), parts=parts)
    server.start()
    api = Api(server)
    assert {gpu["typeId"] for gpu in gpus(api).values()} == {"NVIDIA L4 MIG 1g.6gb"}
    mine = api.endpoint("environment.py", gpuTypeIds=["NVIDIA L4 MIG 1g.6gb"], workersMin=2, workersMax=2)
    until(lambda: {gpu["worker"] is None for gpu in gpus(api).values()} == {False}, "each has a worker", 40)
    assert mine.runsync({})["output"]["CUDA_VISIBLE_DEVICES"] in ("MIG-a", "MIG-b")


def test_the_driver_is_asked_when_a_worker_with_a_gpu_dies(driver):
    driver.lists(row(1), row(2))
    server = Server(config=CONFIG.replace("gpu_interval_ms = 500", "gpu_interval_ms = 3600000"))
    server.environment["PATH"] = f"{driver.folder}:{os.environ['PATH']}"
    try:
        api = Api(server.start())
        mine = api.endpoint("environment.py", gpuTypeIds=["NVIDIA L4"], workersMin=1, workersMax=1)
        mine.runsync({})
        until(lambda: gpus(api)["GPU-1"]["driverVersion"], "the driver was asked", 20)
        driver.lists(row(1, "[GPU requires reset]"), row(2))
        (worker,) = mine.workers()
        processes.signal_worker(worker, signal.SIGKILL)
        until(lambda: gpus(api)["GPU-1"]["fault"], "the fault is shown", 30)
        until(lambda: gpus(api)["GPU-2"]["worker"], "another worker has the other GPU", 60)
    finally:
        server.close()


def test_the_history_has_how_much_the_gpus_of_an_endpoint_computed(server, driver):
    driver.lists(row(1), row(2))
    server.start()
    api = Api(server)
    mine = api.endpoint("environment.py", gpuTypeIds=["NVIDIA L4"], workersMin=1, workersMax=1)
    without = api.endpoint("environment.py", computeType="CPU", workersMin=1, workersMax=1)
    mine.runsync({})
    without.runsync({})

    def steps(endpoint):
        found = api.ok("GET", f"/v1/endpoints/{endpoint.id}/history?last=300000&step=2000&series=gpuMs,gpuReadMs,gpuBusyMs")
        return list(zip(*(found["series"][name] for name in ("gpuMs", "gpuReadMs", "gpuBusyMs")), strict=True))

    # Some steps before and after which the worker held the GPU: the driver says 87 %.
    whole = until(lambda: [step for step in steps(mine) if step[0] and step[1] == step[0]], "a step in which the GPU was read", 30)
    assert all(abs(busy / read - 0.87) < 0.01 for _, read, busy in whole), whole
    assert {step for step in steps(without) if step[0] is not None} <= {(0, 0, 0)}
    # What the driver does not say is no idle time.
    driver.lists(row(1).replace(", 87,", ", [N/A],"), row(2))
    unread = until(lambda: [step for step in steps(mine) if step[0] and step[1] == 0], "a step in which nothing is known of the GPU", 30)
    assert {busy for _, _, busy in unread} == {0}
