"""Every page of the console in a server with something to show, and what is a fault on any page in any state."""

import re
from dataclasses import dataclass
from pathlib import Path

from .browser import Console
from .client import Api
from .fake_worker import FakeWorker
from .receiver import Receiver
from .server import QUICK
from .wait import until

ROUTER = Path(__file__).parents[2] / "crates/console/assets/router.js"

GPUS = (
    QUICK.replace('gpu_sharing = "off"', "")
    + """
webhook_retry_delay_ms = 100
webhook_attempts_max = 2

[[gpus]]
type = "NVIDIA L4"
count = 2
memory_gib = 22

[prices]
"NVIDIA L4" = 0.8
"""
)

# Texts that only a mistake puts on a page.
ODD = re.compile(r"undefined|\bNaN\b|\[object |Invalid Date|Unknown|Something went wrong")


@dataclass
class Shown:
    """A page: its route in `router.js`, its address, and a text that is in its content once everything is read."""

    route: str
    path: str
    text: str


def routes() -> list[str]:
    """The patterns of all addresses that the console has, as its router lists them."""
    found = re.findall(r'^  \["(/[^"]*)", "\w+"\],$', ROUTER.read_text(), re.MULTILINE)
    assert len(found) > 20, found
    return found


def usual(api: Api) -> list[Shown]:
    """Makes what a small server has, and answers every page of it."""
    waiting = api.external(name="Whisper large v3")
    ended = api.endpoint("outcomes.py", name="Outcomes of every kind", gpuCount=1, gpuTypeIds=["NVIDIA L4"], idleTimeout=3600)
    streaming = api.external(name="Llama 3 8B")
    api.ok("POST", "/v1/networkvolumes", json={"name": "weights of the models", "size": 200})
    api.ok("POST", "/v1/containerregistryauth", json={"name": "company registry", "username": "ada", "password": "hush"})
    with Receiver(500) as receiver:
        completed = ended.run({"mood": "list"}, webhook=receiver.url)
        failed = ended.run({"mood": "raise"})
        ended.wait_for(completed, "COMPLETED", timeout_s=60)
        ended.wait_for(failed, "FAILED", timeout_s=60)
        until(lambda: failed_calls(api), "the webhook has failed", 30)
    queued = waiting.run({"audio": "harbour.wav"})
    streamed = streaming.run({"prompt": "a harbour"})
    worker = FakeWorker(streaming)
    assert worker.take()["id"] == streamed
    for word in ("The", " tide", " turns"):
        worker.chunk(streamed, word)
    history = f"/v1/endpoints/{ended.id}/history?last=900000"
    until(lambda: api.ok("GET", history)["total"]["completed"] == 1, "the job is in a step that is over", 30)
    runner = api.ok("GET", f"/v1/endpoints/{ended.id}/workers")[0]["id"]
    return [
        Shown("/", "/", "Whisper large v3"),
        Shown("/endpoints", "/endpoints", "Whisper large v3"),
        Shown("/endpoints/:endpoint", f"/endpoints/{ended.id}", completed[-12:]),
        Shown("/endpoints/:endpoint", f"/endpoints/{waiting.id}", "No worker is there"),
        Shown("/endpoints/:endpoint", "/endpoints/nowhere", "No endpoint has this name"),
        Shown("/endpoints/:endpoint/requests", f"/endpoints/{ended.id}/requests", completed[-12:]),
        Shown("/endpoints/:endpoint/requests/:job", f"/endpoints/{ended.id}/requests/{completed}", "two"),
        Shown("/endpoints/:endpoint/requests/:job", f"/endpoints/{ended.id}/requests/{failed}", "The handler raised ValueError"),
        Shown("/endpoints/:endpoint/requests/:job", f"/endpoints/{waiting.id}/requests/{queued}", "Place in the line"),
        Shown("/endpoints/:endpoint/requests/:job", f"/endpoints/{streaming.id}/requests/{streamed}", "The tide turns"),
        Shown("/endpoints/:endpoint/requests/:job", f"/endpoints/{ended.id}/requests/none", "This job is not here"),
        Shown("/endpoints/:endpoint/workers", f"/endpoints/{ended.id}/workers", "Idle"),
        Shown("/endpoints/:endpoint/workers/:worker", f"/endpoints/{ended.id}/workers/{runner}", "jobs were waiting"),
        Shown("/endpoints/:endpoint/logs", f"/endpoints/{ended.id}/logs", completed[-12:]),
        Shown("/endpoints/:endpoint/metrics", f"/endpoints/{ended.id}/metrics?compare=1", "Failed, of those that ended"),
        Shown("/endpoints/:endpoint/playground", f"/endpoints/{ended.id}/playground", "The last 50 runs"),
        Shown("/endpoints/:endpoint/playground", f"/endpoints/{ended.id}/playground?job={completed}", "two"),
        Shown("/endpoints/:endpoint/settings", f"/endpoints/{ended.id}/settings", "is the present one"),
        Shown("/endpoints/:endpoint/webhooks", f"/endpoints/{ended.id}/webhooks", completed[-12:]),
        Shown("/workers", "/workers", "Outcomes of every kind"),
        Shown("/new-endpoint", "/new-endpoint", "A queue of jobs with the workers"),
        Shown("/requests", "/requests", failed[-12:]),
        Shown("/api-keys", "/api-keys", "the operator"),
        Shown("/audit", "/audit", f"endpoints/{ended.id}"),
        Shown("/webhooks", "/webhooks", completed[-12:]),
        Shown("/machines", "/machines", "NVIDIA L4"),
        Shown("/usage", "/usage", "By endpoint"),
        Shown("/health", "/health", "ping_interval_ms"),
        Shown("/templates", "/templates", "Outcomes of every kind"),
        Shown("/volumes", "/volumes", "weights of the models"),
        Shown("/registries", "/registries", "company registry"),
        Shown("not found", "/nowhere", "No page has this address"),
    ]


def failed_calls(api: Api) -> list[dict]:
    """The webhook calls that were given up."""
    return [call for call in api.ok("GET", "/v1/webhooks")["webhooks"] if call["state"] == "FAILED"]


def faults(tab: Console) -> list[str]:
    """What is wrong with the page as it is: for axe-core, in width, in its headings, in its words."""
    found = [f"axe: {fault}" for fault in tab.axe()]
    if (wider := tab.sideways()) > 0:
        found.append(f"{wider} px wider than the window")
    if (headings := tab.page.locator("h1").count()) != 1:
        found.append(f"{headings} headings of level 1")
    content = tab.page.locator("main:not(.signed-out), #app").first.inner_text()
    found += [f"odd text: {content[max(0, odd.start() - 60):odd.end() + 60]!r}" for odd in ODD.finditer(content)]
    return found
