"""The workers of the server in the manual's pictures: makes an image, yields words, or fails, as the input says."""

import base64
import struct
import time
import zlib

import runpod

WORDS = (
    "The harbour master reads the board before the light comes. Three ships wait outside the bar, two lie at the quay, "
    "and one is due with the tide. She writes the order of the day: coal to the north berth, timber to the south, and the "
    "ferry first, because people wait worse than freight."
).split(" ")
SIDE = 192


def png(seed: int) -> str:
    """A picture of a horizon, as a data URL."""
    rows = bytearray()
    for y in range(SIDE):
        rows.append(0)
        for x in range(SIDE):
            is_sky = y < SIDE * 0.55
            wave = (x * (seed % 5 + 2) // 7 + y) % 9
            rows += bytes((40 + y // 3 + seed % 40, 90 + y // 2, 130 + (y if is_sky else wave * 6)))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows), 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def handler(job):
    wanted = job["input"]
    print(f"{job['id']} {wanted.get('prompt', '')!r}", flush=True)
    if "words" in wanted:
        for word in WORDS[: wanted["words"]]:
            time.sleep(wanted.get("pause", 0.05))
            yield word + " "
        return
    time.sleep(wanted.get("takes", 0.2))
    if wanted.get("fails") == "memory":
        raise MemoryError("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 22.04 GiB")
    if wanted.get("fails"):
        raise ValueError(f"the sampler {wanted['fails']!r} is not known; use one of euler, ddim, dpm++")
    yield {"image": png(wanted.get("seed", 0)), "seed": wanted.get("seed", 0), "steps": 4}


runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
