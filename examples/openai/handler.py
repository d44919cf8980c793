"""A fake model with the interface of OpenAI-compatible workers. It needs no GPU: fixed rules produce the answers.

A request arrives as a job with `openai_route` and `openai_input`. The worker answers it with chunks: one object
for a plain answer, server-sent events as ready text for a streamed one.
"""

import asyncio
import base64
import json
import struct
import time
import uuid
import zlib

import runpod

MODEL = "parrot-1"
TOKENS_PER_SECOND = 20
DIMENSIONS = 8


class BadRequest(Exception):
    """The request is invalid."""


async def handler(job):
    route = job["input"].get("openai_route", "")
    request = job["input"].get("openai_input") or {}
    answer = ROUTES.get(route.split("?")[0])
    try:
        if answer is None:
            raise BadRequest(f"there is no route {route}; this model has {', '.join(ROUTES)}")
        parts = answer(request)
        if request.get("stream"):
            async for part in parts:
                yield part
        else:
            yield [part async for part in parts][-1]
    except BadRequest as error:
        # An `error` in a chunk ends the job as FAILED.
        yield {"error": {"message": str(error), "type": "invalid_request_error", "code": 400}}


async def models(_request):
    yield {
        "object": "list",
        "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "longshore-examples"}],
    }


async def chat(request):
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("`messages` must be a list with at least one message")
    answer = reply_to(messages[-1].get("content"))
    head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model_of(request)}

    def event(delta, finish_reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return data({**head, "object": "chat.completion.chunk", "choices": [choice]})

    if request.get("stream"):
        yield event({"role": "assistant", "content": ""})
        async for word in spoken(answer):
            yield event({"content": word})
        yield event({}, "stop")
        yield "data: [DONE]\n\n"
    else:
        message = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        prompt = " ".join(str(message.get("content", "")) for message in messages)
        yield {**head, "object": "chat.completion", "choices": [choice], "usage": usage(prompt, answer)}


async def completions(request):
    answer = reply_to(request.get("prompt"))
    head = {
        "id": f"cmpl-{uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model_of(request),
    }

    def with_text(text, finish_reason):
        return {**head, "choices": [{"index": 0, "text": text, "finish_reason": finish_reason, "logprobs": None}]}

    if request.get("stream"):
        async for word in spoken(answer):
            yield data(with_text(word, None))
        yield data(with_text("", "stop"))
        yield "data: [DONE]\n\n"
    else:
        yield {**with_text(answer, "stop"), "usage": usage(request["prompt"], answer)}


async def responses(request):
    answer = reply_to(request.get("input"))
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": answer, "annotations": []}]
    response = {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "model": model_of(request),
        "status": "completed",
        "output": [item],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    if request.get("stream"):
        numbers = iter(range(1_000_000))

        def event(name, **members):
            return data({"type": name, "sequence_number": next(numbers), **members}, name)

        yield event("response.created", response={**response, "status": "in_progress", "output": []})
        async for word in spoken(answer):
            yield event("response.output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=word)
        yield event("response.completed", response=response)
    else:
        yield response


async def embeddings(request):
    texts = request.get("input")
    texts = texts if isinstance(texts, list) else [texts]
    if not all(isinstance(text, str) for text in texts):
        raise BadRequest("this model reads text only: `input` must be a string or a list of strings")
    found = [
        {"object": "embedding", "index": index, "embedding": embedding(text, request.get("encoding_format"))}
        for index, text in enumerate(texts)
    ]
    tokens = sum(len(text.split()) for text in texts)
    yield {
        "object": "list",
        "data": found,
        "model": model_of(request),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def embedding(text, encoding):
    numbers = [zlib.crc32(f"{n}{text}".encode()) / 2**32 for n in range(DIMENSIONS)]
    return base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *numbers)).decode() if encoding == "base64" else numbers


def reply_to(said):
    if not isinstance(said, str):
        raise BadRequest("this model reads text only, as one string")
    return f"You said: {said}"


async def spoken(answer):
    """The answer, word by word."""
    for index, word in enumerate(answer.split(" ")):
        await asyncio.sleep(1 / TOKENS_PER_SECOND)
        yield word if index == 0 else f" {word}"


def data(value, name=None):
    return (f"event: {name}\n" if name else "") + f"data: {json.dumps(value)}\n\n"


def model_of(request):
    return request.get("model") or MODEL


def usage(prompt, answer):
    counts = [len(str(text).split()) for text in (prompt, answer)]
    return {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}


ROUTES = {
    "/v1/models": models,
    "/v1/chat/completions": chat,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/embeddings": embeddings,
}

runpod.serverless.start(
    {
        "handler": handler,
        "concurrency_modifier": lambda current: 30,
        "return_aggregate_stream": True,
    }
)
