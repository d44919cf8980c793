"""The server of the manual's pictures: endpoints with work, one whose workers crash, one that is paused, and all that
the pages show."""

import random
import threading
import time
from pathlib import Path

from .client import Api, Endpoint
from .receiver import Receiver
from .server import QUICK, Server
from .wait import until

CONFIG = (
    QUICK.replace('gpu_sharing = "off"', "")
    + """
webhook_retry_delay_ms = 100
webhook_attempts_max = 2

[[gpus]]
type = "NVIDIA H100 80GB HBM3"
count = 2
memory_gib = 80

[[gpus]]
type = "NVIDIA L4"
count = 2
memory_gib = 22

[prices]
"NVIDIA H100 80GB HBM3" = 2.4
"NVIDIA L4" = 0.8
"""
)
SCHEMA = {
    "type": "object",
    "required": ["prompt"],
    "properties": {
        "prompt": {"type": "string", "title": "Prompt", "description": "What the picture shows."},
        "sampler": {"enum": ["euler", "ddim", "dpm++"], "title": "Sampler", "default": "euler"},
        "steps": {"type": "integer", "title": "Steps", "minimum": 1, "maximum": 50, "default": 4},
        "tiled": {"type": "boolean", "title": "Tiles without a seam"},
    },
}
SEED = 7
PROMPTS = ["a harbour at dawn", "a lighthouse in fog", "three cranes, oil on canvas", "a ferry seen from above", "rope and rust"]


def start(folder: Path) -> Server:
    """A server of its own, with GPUs and prices."""
    return Server(folder=folder, config=CONFIG, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()


class Harbour:
    """The endpoints and jobs. `work(seconds)` keeps them busy for that time."""

    def __init__(self, server: Server):
        self.api = api = Api(server)
        self.random = random.Random(SEED)
        named = lambda name, handler, **fields: api.endpoint(handler, name=name, slug=name.lower().replace(" ", "-"), **fields)
        large, small = {"gpuCount": 1, "gpuTypeIds": ["NVIDIA H100 80GB HBM3"]}, {"gpuCount": 1, "gpuTypeIds": ["NVIDIA L4"]}
        self.images = named("SDXL Turbo", "harbour.py", workersMin=1, workersMax=2, idleTimeout=3600, **small)
        self.words = named("Llama 3 8B", "harbour.py", workersMin=1, workersMax=1, idleTimeout=3600, **large)
        self.crashing = named("Whisper large v3", "crash.py", workersMax=2)
        self.paused = named("BGE embeddings", "echo.py", workersMax=4)
        self.paused.patch(workersMax=0)
        self.images.patch(slo={"delayMs": 5000, "delayTarget": 0.95, "successTarget": 0.95, "windowDays": 30}, inputSchema=SCHEMA, example={"input": {"prompt": PROMPTS[0], "steps": 4}})
        self.words.patch(models=["llama-3-8b"])
        volume = api.ok("POST", "/v1/networkvolumes", json={"name": "model weights", "size": 400})
        api.ok("POST", "/v1/networkvolumes", json={"name": "training data", "size": 1200})
        self.words.patch(networkVolumeIds=[volume["id"]])
        api.ok("POST", "/v1/containerregistryauth", json={"name": "company registry", "username": "ci", "password": "not shown"})
        image = {"name": "vllm", "imageName": "vllm/vllm-openai:v0.9.1", "env": {"HF_HOME": "/models", "MODEL": "llama"}}
        api.ok("POST", "/v1/templates", json=image)
        for name, scope in (("website", "jobs"), ("grafana", "read"), ("ci", "manage")):
            ids = {"endpointIds": [self.images.id, self.words.id]} if scope != "manage" else {}
            api.ok("POST", "/v1/apikeys", json={"name": name, "scopes": [{"scope": scope, **ids}]})
        self.told, self.deaf = Receiver(), Receiver(500)

    def run_image(self, **input) -> str:
        seed = self.random.randrange(10**6)
        receiver = self.random.choices((None, self.told, self.deaf), (8, 2, 1))[0]
        fields = {"webhook": receiver.url} if receiver else {}
        body = {"prompt": self.random.choice(PROMPTS), "seed": seed, "takes": 0.3 + 0.9 * self.random.random() ** 2, **input}
        return self.images.run(body, **fields)

    def run_words(self, words: int = 46) -> str:
        return self.words.run({"prompt": "Write the harbour master's morning.", "words": words, "pause": 0.04})

    def work(self, seconds: float) -> None:
        """A few jobs a second with a wave in their rate, and now and then one that fails."""
        stop = threading.Event()
        began = time.monotonic()
        while (past := time.monotonic() - began) < seconds:
            kind = self.random.random()
            if kind < 0.02:
                self.run_image(fails="memory")
            elif kind < 0.04:
                self.run_image(fails="heun")
            elif kind < 0.2:
                self.run_words(self.random.randrange(10, 40))
            else:
                self.run_image()
            stop.wait(0.4 + 0.9 * abs((past % 240) - 120) / 120)

    def finish(self) -> dict[str, str]:
        """Ends with one job of each kind, which have pages of their own; answers their addresses by name."""
        for number in range(5):
            waiting = self.crashing.run({"audio": f"https://example.org/recordings/{number}.wav", "language": "en"})
        failed, streamed, completed = self.run_image(fails="heun"), self.run_words(), self.run_image(takes=0.8)
        self.images.wait_for(failed, "FAILED", timeout_s=120)
        self.images.wait_for(completed, "COMPLETED", timeout_s=120)
        self.words.wait_for(streamed, "COMPLETED", timeout_s=120)
        path = f"/v1/endpoints/{self.crashing.id}/workers?ended=true"
        until(lambda: len(self.api.ok("GET", path)) >= 3, "workers crashed three times", 120)
        worker = self.api.ok("GET", f"/v1/endpoints/{self.images.id}/workers")[0]["id"]
        of = lambda endpoint, page="": f"/endpoints/{endpoint.record['slug']}{page}"
        return {
            "overview": "/",
            "endpoints": "/endpoints",
            "endpoint": of(self.images),
            "endpoint-crashing": of(self.crashing),
            "requests": of(self.images, "/requests"),
            "requests-all": "/requests",
            "request": of(self.images, f"/requests/{completed}"),
            "request-failed": of(self.images, f"/requests/{failed}"),
            "request-stream": of(self.words, f"/requests/{streamed}"),
            "request-waiting": of(self.crashing, f"/requests/{waiting}"),
            "workers": of(self.images, "/workers"),
            "workers-ended": of(self.crashing, "/workers"),
            "worker": of(self.images, f"/workers/{worker}"),
            "logs": of(self.images, "/logs"),
            "metrics": of(self.images, "/metrics"),
            "playground": of(self.images, f"/playground?job={completed}"),
            "chat": of(self.words, "/playground?tab=chat"),
            "new-endpoint": "/new-endpoint",
            "settings": of(self.images, "/settings"),
            "webhooks": of(self.images, "/webhooks"),
            "templates": "/templates",
            "volumes": "/volumes",
            "registries": "/registries",
            "keys": "/api-keys",
            "audit": "/audit",
            "machines": "/machines",
            "usage": "/usage",
            "health": "/health",
        }

    def close(self) -> None:
        self.told.close()
        self.deaf.close()
