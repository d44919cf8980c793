"""Multiplies matrices on the worker's GPU with PyTorch, and says what it sees of the GPU and how it was started. With `barrier` it
does so while as many workers as `workers` each hold `bytes` of the GPU's memory."""

import os
import sys
import time
from pathlib import Path

import runpod
import torch


def wait_for_others(folder: Path, workers: int) -> None:
    """Returns once this number of workers is here, each with its memory."""
    (folder / os.environ["RUNPOD_POD_ID"]).touch()
    deadline = time.monotonic() + 100
    while len(list(folder.iterdir())) < workers:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{workers} workers did not meet")
        time.sleep(0.01)


def handler(job):
    wanted = job["input"]
    held = torch.empty(wanted.get("bytes", 0), dtype=torch.uint8, device="cuda")
    if "barrier" in wanted:
        wait_for_others(Path(wanted["barrier"]), wanted["workers"])
    left, right = (torch.rand(512, 512, dtype=torch.float64) for _ in range(2))
    of_gpu = (left.cuda() @ right.cuda()).cpu()
    known = torch.cuda.get_device_properties(0)
    return {
        "fork": "longshore_runtime.zygote" in sys.modules,
        "pid": os.getpid(),
        "worker": os.environ["RUNPOD_POD_ID"],
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "devices": torch.cuda.device_count(),
        "name": known.name,
        "capability": f"{known.major}.{known.minor}",
        "memory": known.total_memory,
        "allocated": torch.cuda.memory_allocated(),
        "held": held.numel(),
        "deviation": float((of_gpu - left @ right).abs().max()),
        "versions": [torch.__version__, torch.version.cuda],
    }


runpod.serverless.start({"handler": handler})
