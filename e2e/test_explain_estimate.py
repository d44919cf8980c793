"""When a queued job starts, by the server's estimate at its submit, compared with when it started."""

import math
import random
import time

from harness.client import Api
from harness.wait import until

WORKERS = 2
# The mean time that a job runs, in s. Jobs run 0.3 to 1.7 times as long.
MEAN_S = 0.4
LOAD_S = 60
# The period in which more and fewer jobs come than the workers can run.
WAVE_S = 20
# The specification's share of jobs that start within their estimate.
WITHIN_MIN = 0.8


def load(seed: int) -> list[tuple[float, float]]:
    """When each job is submitted, in s after the first one, and how long it runs, in s."""
    chance = random.Random(seed)
    at, jobs = 0.0, []
    while at < LOAD_S:
        jobs.append((at, MEAN_S * chance.uniform(0.3, 1.7)))
        wave = 0.95 + 0.45 * math.sin(at / WAVE_S * math.tau)
        at += chance.expovariate(WORKERS / MEAN_S * wave)
    return jobs


def test_four_of_five_jobs_start_within_their_estimate(api: Api):
    endpoint = api.endpoint("sleep_blocking.py", workersMin=WORKERS, workersMax=WORKERS)
    endpoint.wait_health("workers", "idle", WORKERS, timeout_s=60)
    began, told = time.monotonic(), {}
    for at, seconds in load(seed=18):
        until(lambda at=at: time.monotonic() - began >= at, "the next job is due", 10, 0.002)
        job = endpoint.run({"seconds": seconds})
        answer = endpoint.ok("GET", f"/explain/{job}")
        if answer["state"] == "IN_QUEUE" and answer["estimate"]:
            told[job] = answer
    within = 0
    for job, answer in told.items():
        ended = endpoint.wait_for(job, "COMPLETED", timeout_s=60)
        further_ms = ended["delayTime"] - answer["waitingMs"]
        within += answer["estimate"]["minMs"] <= further_ms <= answer["estimate"]["maxMs"]
    print(f"{within} of {len(told)} jobs started within their estimate")
    assert len(told) > 60, f"{len(told)} jobs waited with an estimate"
    assert within >= WITHIN_MIN * len(told), f"{within} of {len(told)}"
