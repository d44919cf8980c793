"""Yields a text word by word. Readers of `/stream` get each word immediately."""

import time

import runpod


def handler(job):
    text = job["input"].get("text", "one word after the other")
    delay_s = float(job["input"].get("delay_s", 0.2))
    for index, word in enumerate(text.split()):
        time.sleep(delay_s)
        yield {"index": index, "word": word}


runpod.serverless.start(
    {
        "handler": handler,
        # The output of the finished job is the list of all chunks, for clients that do not stream.
        "return_aggregate_stream": True,
    }
)
