"""A tiny fake chat model that speaks the convention of OpenAI-compatible workers. No GPU: it answers by rule.

A request arrives as a job with `openai_route` and `openai_input`. The worker answers it with chunks: one object
for a plain answer, server-sent events as ready text for a streamed one.
"""

import asyncio
import json
import time
import uuid

import runpod

MODEL = "parrot-1"
TOKENS_PER_SECOND = 20


class BadRequest(Exception):
    """What the caller sent cannot be answered."""


async def handler(job):
    route = job["input"].get("openai_route")
    request = job["input"].get("openai_input") or {}
    try:
        if route == "/v1/models":
            yield models()
        elif route == "/v1/chat/completions":
            async for part in chat(request):
                yield part
        else:
            raise BadRequest(f"there is no route {route}; this model has /v1/models and /v1/chat/completions")
    except BadRequest as error:
        # An `error` in a chunk ends the job as FAILED.
        yield {"error": {"message": str(error), "type": "invalid_request_error", "code": 400}}


def models():
    return {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "longshore-examples"}],
    }


async def chat(request):
    answer = reply_to(request)
    head = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "created": int(time.time()),
        "model": request.get("model") or MODEL,
    }
    words = answer.split(" ")
    if request.get("stream"):
        async for event in stream(head, words):
            yield event
        return
    prompt_tokens = sum(len(str(m.get("content", "")).split()) for m in request["messages"])
    yield {
        **head,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": answer},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(words),
            "total_tokens": prompt_tokens + len(words),
        },
    }


async def stream(head, words):
    def event(delta, finish_reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        chunk = {**head, "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(chunk)}\n\n"

    yield event({"role": "assistant", "content": ""})
    for index, word in enumerate(words):
        await asyncio.sleep(1 / TOKENS_PER_SECOND)
        yield event({"content": word if index == 0 else f" {word}"})
    yield event({}, "stop")
    yield "data: [DONE]\n\n"


def reply_to(request):
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages` must be a list with at least one message")
    said = messages[-1].get("content")
    if not isinstance(said, str):
        raise BadRequest("this model reads text only: `content` must be a string")
    return f"You said: {said}"


runpod.serverless.start(
    {
        "handler": handler,
        "concurrency_modifier": lambda current: 30,
        "return_aggregate_stream": True,
    }
)
