"""Answers OpenAI's routes with the text of its model server, as workers do that pass on what they read.

FORM says how: `whole` yields it in one piece, `lines` line by line, `bits` in pieces of three characters, `returned`
returns it. AGGREGATE=1 keeps what is yielded as the job's output as well.
"""

import json
import os

import runpod

FORM = os.environ["FORM"]


def answer(route: str, asked: dict) -> dict:
    """What a model server says."""
    if asked.get("user") == "flat":
        return {"object": "error", "message": "no such thing", "type": "NotFoundError", "param": None, "code": 404}
    if asked.get("user") == "nested":
        return {"error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "busy", "status": 429}}
    head = {"id": "x", "created": 1, "model": asked.get("model", "m")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if route == "/v1/models":
        return {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "e2e"}]}
    if route == "/v1/embeddings":
        return {"object": "list", "model": "m", "usage": usage,
                "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -1.0]}]}
    if route == "/v1/completions":
        choice = {"index": 0, "text": "polly\n🦜", "finish_reason": "stop", "logprobs": None}
        return {**head, "object": "text_completion", "choices": [choice], "usage": usage}
    message = {"role": "assistant", "content": 'she said: "🦜"'}
    if asked.get("tools"):
        call = {"id": "call-1", "type": "function", "function": {"name": "fly", "arguments": '{"to": "sea"}'}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def text_of(job: dict) -> str:
    asked = job["input"].get("openai_input") or {}
    return json.dumps(answer(job["input"]["openai_route"], asked), indent=1 if FORM == "lines" else None, ensure_ascii=FORM == "bits")


async def yields(job):
    text = text_of(job)
    for piece in {"whole": [text], "lines": text.split("\n"), "bits": [text[at:at + 3] for at in range(0, len(text), 3)]}[FORM]:
        yield piece


runpod.serverless.start({
    "handler": text_of if FORM == "returned" else yields,
    "return_aggregate_stream": os.environ.get("AGGREGATE") == "1",
    "concurrency_modifier": lambda _: 4,
})
