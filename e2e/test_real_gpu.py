"""Workers on a real NVIDIA GPU, with PyTorch and CuPy. Where `nvidia-smi` lists no GPU, nothing of this runs, and the summary says
so. `cargo xtask gpu` runs it with a Python of your choice."""

import importlib.util
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness.client import Api, Endpoint
from harness.server import ADMIN_KEY, QUICK, Server, binary
from harness.wait import until

FIELDS = "uuid,name,memory.total,pci.bus_id,driver_version,temperature.gpu,ecc.errors.uncorrected.volatile.total,compute_cap"
CONFIG = QUICK.replace('gpu_sharing = "off"', "zygotes_max = 4")
FIGURES = os.environ.get("LONGSHORE_GPU_FIGURES")
MIB, GIB = 1 << 20, 1 << 30


def driver() -> list[dict[str, str]]:
    """What the driver's tool says of each GPU."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    rows = told.stdout.splitlines() if told.returncode == 0 else []
    return [dict(zip(FIELDS.split(","), (value.strip() for value in row.split(",")), strict=True)) for row in rows]


GPUS = driver()
pytestmark = pytest.mark.skipif(not GPUS, reason="NOT RUN: workers on a real GPU: nvidia-smi lists none")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="NOT RUN: PyTorch is not installed")
needs_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="NOT RUN: CuPy is not installed")


@pytest.fixture(scope="module")
def api():
    server = Server(config=CONFIG).start()
    yield Api(server)
    server.close()


@pytest.fixture
def fresh():
    made = []

    def make(config: str) -> Api:
        made.append(Server(config=config).start())
        return Api(made[-1])

    yield make
    for server in made:
        server.close()


def note(**figures) -> None:
    """Adds what was seen to the file that a person reads afterwards."""
    if FIGURES:
        with Path(FIGURES).open("a") as file:
            file.write(json.dumps(figures) + "\n")


def stop_workers(endpoint: Endpoint) -> None:
    for worker in endpoint.workers():
        endpoint.api.ok("POST", f"/v1/endpoints/{endpoint.id}/workers/{worker.worker}/stop")
    until(lambda: not endpoint.workers(), "the workers have ended", 30)


def drop(endpoint: Endpoint) -> None:
    """Removes the endpoint and frees its GPUs."""
    assert endpoint.api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    until(lambda: not endpoint.workers(), "the workers have ended", 30)


def timed(endpoint: Endpoint) -> tuple[float, dict]:
    """The seconds from a job to the result of a worker that has to start for it, and the result."""
    began = time.monotonic()
    record = endpoint.runsync(wait_ms=120_000)
    assert record["status"] == "COMPLETED", record.get("error")
    return round(time.monotonic() - began, 2), record["output"]


def first_fork(endpoint: Endpoint) -> tuple[float, dict]:
    """As `timed`, of the first worker that is a fork."""

    def forked():
        stop_workers(endpoint)
        seconds, output = timed(endpoint)
        return (seconds, output) if output["fork"] else None

    return until(forked, "a worker is a fork", 120)


def test_what_the_driver_says_is_shown(api):

    def read():
        (machine,) = api.ok("GET", "/v1/machines")
        assert machine["gpus"][0]["busId"]
        return machine

    machine = until(read, "the driver has been asked", 30)
    environment = os.environ | {"LONGSHORE_URL": api.server.url, "LONGSHORE_API_KEY": ADMIN_KEY}
    listed = subprocess.run([binary(), "gpus"], capture_output=True, text=True, env=environment, check=True).stdout
    note(machine=machine["gpus"], driver=GPUS, cli=listed)
    assert len(machine["gpus"]) == len(GPUS)
    for gpu, told in zip(sorted(machine["gpus"], key=lambda it: it["id"]), sorted(GPUS, key=lambda it: it["uuid"]), strict=True):
        assert (gpu["id"], gpu["typeId"], gpu["busId"]) == (told["uuid"], told["name"], told["pci.bus_id"])
        assert gpu["memoryBytes"] == int(told["memory.total"]) * MIB
        assert (gpu["driverVersion"], gpu["computeCapability"]) == (told["driver_version"], told["compute_cap"])
        assert abs(gpu["temperatureC"] - int(told["temperature.gpu"])) < 30 and gpu["fault"] is None
        errors = told["ecc.errors.uncorrected.volatile.total"]
        assert gpu["eccErrors"] == (int(errors) if errors.isdigit() else None)
        assert gpu["id"] in listed


def check_output(output: dict) -> None:
    gpu = next(gpu for gpu in GPUS if gpu["uuid"] == output["visible"])
    assert output["devices"] == 1 and output["name"] == gpu["name"] and output["deviation"] < 1e-9
    # The driver keeps some of the memory for itself.
    assert 0.9 < output["memory"] / (int(gpu["memory.total"]) * MIB) <= 1
    assert output["capability"].replace(".", "") == gpu["compute_cap"].replace(".", "")


@pytest.mark.parametrize("handler", [pytest.param("gpu_torch.py", marks=needs_torch), pytest.param("gpu_cupy.py", marks=needs_cupy)])
def test_a_handler_computes_on_its_gpu_and_a_fork_does_too(api, handler):
    """The starts alternate, after one that reads the files, so that both kinds have the same machine."""
    plain, warm = (api.endpoint(handler, workersMax=1, flashboot=fork, gpuTypeIds=[GPUS[0]["name"]]) for fork in (False, True))
    try:
        seconds = {"first": [timed(warm)[0]], "plain": [], "fork": []}
        first_fork(warm)
        for _ in range(3):
            stop_workers(warm)
            took, output = timed(plain)
            assert not output["fork"]
            check_output(output)
            seconds["plain"].append(took)
            stop_workers(plain)
            took, output = timed(warm)
            assert output["fork"]
            check_output(output)
            seconds["fork"].append(took)
        note(handler=handler, seconds=seconds, output=output)
        assert min(seconds["fork"]) < min(seconds["plain"])
    finally:
        drop(plain)
        drop(warm)


@needs_torch
@pytest.mark.parametrize("use", ["torch.zeros(1).cuda()", "torch.cuda.is_available()"])
def test_a_package_that_uses_cuda_at_import_is_never_forked(api, use, tmp_path):
    (tmp_path / "uses_cuda.py").write_text(
        f"import torch\n\n{use}\n\n\ndef total():\n    return float(torch.ones(1000, device='cuda').sum())\n"
    )
    endpoint = api.endpoint("gpu_at_import.py", env={"PYTHONPATH": str(tmp_path)}, workersMax=1, flashboot=True)
    try:
        assert timed(endpoint)[1] == {"fork": False, "sum": 1000.0}

        def refused():
            lines = [line for line in api.server.log().splitlines() if "without a zygote" in line and endpoint.id in line]
            assert lines
            return lines[0]

        line = until(refused, "the log says why there is no zygote", 90)
        note(use=use, line=line)
        stop_workers(endpoint)
        assert timed(endpoint)[1] == {"fork": False, "sum": 1000.0}
    finally:
        drop(endpoint)


def cause(endpoint: Endpoint, code: str) -> dict:
    def there():
        answer = endpoint.ok("GET", "/explain")
        assert answer["cause"]["code"] == code, answer
        return answer["cause"]

    return until(there, f"the cause is {code}", 30)


@needs_torch
def test_a_gpu_that_is_taken_is_told_from_one_that_does_not_exist(api):
    holders = [api.endpoint("gpu_torch.py", workersMin=1, workersMax=1) for _ in GPUS]
    for holder in holders:
        holder.wait_health("workers", "idle", 1, 90)
    busy = api.endpoint("gpu_torch.py", workersMax=1)
    impossible = api.endpoint("gpu_torch.py", workersMax=1, gpuCount=len(GPUS) + 1)
    try:
        job = busy.run()
        impossible.run()
        told = [cause(busy, "gpu_busy"), cause(impossible, "gpu_impossible")]
        note(causes=[cause["text"] for cause in told])
        assert [cause["blocking"] for cause in told] == [False, True]
        drop(holders.pop())
        record = busy.wait_for(job, timeout_s=120)
        assert record["status"] == "COMPLETED", record.get("error")
        check_output(record["output"])
    finally:
        for endpoint in [*holders, busy, impossible]:
            drop(endpoint)


@needs_torch
def test_two_workers_compute_on_the_shares_of_one_gpu(fresh, tmp_path):
    gpu = GPUS[0]
    api = fresh(CONFIG + f'[[gpus]]\ntype = "half"\ndevices = ["{gpu["uuid"]}"]\nshares = 2\n')
    endpoint = api.endpoint("gpu_torch.py", workersMin=2, workersMax=2, gpuTypeIds=["half"])
    endpoint.wait_health("workers", "idle", 2, 90)
    job = {"bytes": 2 * GIB, "barrier": str(tmp_path), "workers": 2}
    records = [endpoint.wait_for(job, timeout_s=120) for job in [endpoint.run(job), endpoint.run(job)]]
    outputs = [record.get("output", record) for record in records]
    note(shares=outputs)
    assert {output["visible"] for output in outputs} == {gpu["uuid"]}
    assert len({output["worker"] for output in outputs}) == 2
    for output in outputs:
        assert (output["devices"], output["name"], output["held"]) == (1, gpu["name"], 2 * GIB)
        assert output["deviation"] < 1e-9
