"""The official `openai` libraries, unmodified, against the example worker and against workers that answer as known ones do."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from harness import manual
from harness.fake_worker import FakeWorker
from harness.server import ADMIN_KEY
from harness.wait import holds, until

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "openai" / "handler.py"
SAID = [{"role": "user", "content": "Polly wants"}]


def client_of(base: str, key: str = ADMIN_KEY, **more) -> openai.OpenAI:
    # The library takes proxies from the environment; this machine needs none.
    return openai.OpenAI(base_url=base, api_key=key, http_client=openai.DefaultHttpxClient(trust_env=False), **more)


def base_of(endpoint) -> str:
    return f"{endpoint.api.server.url}{endpoint.mount}/openai/v1"


@pytest.fixture(scope="module")
def parrot(api):
    """An endpoint with the example as its worker."""
    template = api.template(dockerStartCmd=[sys.executable, "-u", str(EXAMPLE)])
    return api.endpoint(templateId=template["id"], workersMax=1, maxConcurrency=30, models=["parrot-1"])


@pytest.fixture(params=["one endpoint", "the fleet"])
def client(parrot, request):
    fleet = f"{parrot.api.server.url}/openai/v1"
    return client_of(base_of(parrot) if request.param == "one endpoint" else fleet)


def test_chat(client):
    answer = client.chat.completions.create(model="parrot-1", messages=SAID)
    assert answer.choices[0].message.content == "You said: Polly wants"
    assert (answer.model, answer.usage.total_tokens) == ("parrot-1", 6)


def test_chat_in_pieces(client):
    parts = client.chat.completions.create(model="parrot-1", messages=SAID, stream=True)
    assert [part.choices[0].delta.content for part in parts] == ["", "You", " said:", " Polly", " wants", None]


def test_completions_whole_and_in_pieces(client):
    assert client.completions.create(model="parrot-1", prompt="hi").choices[0].text == "You said: hi"
    parts = client.completions.create(model="parrot-1", prompt="hi", stream=True)
    assert "".join(part.choices[0].text for part in parts) == "You said: hi"


def test_responses_whole_and_in_pieces(client):
    assert client.responses.create(model="parrot-1", input="hi").output_text == "You said: hi"
    events = list(client.responses.create(model="parrot-1", input="hi", stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "You said: hi"
    assert events[-1].type == "response.completed" and events[-1].response.output_text == "You said: hi"


def test_embeddings(client):
    found = client.embeddings.create(model="parrot-1", input=["a", "b"])
    assert [len(one.embedding) for one in found.data] == [8, 8]
    plain = client.embeddings.create(model="parrot-1", input="a", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(found.data[0].embedding)


def test_models_and_one_of_them(client):
    assert "parrot-1" in [model.id for model in client.models.list()]
    assert client.models.retrieve("parrot-1").id == "parrot-1"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("org/unknown")
    assert missing.value.code == "model_not_found"


def test_an_invalid_request_is_refused(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="parrot-1", messages=[])
    assert refused.value.type == "invalid_request_error" and "at least one message" in refused.value.message
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model="parrot-1", messages=[], stream=True)


def test_the_javascript_library(parrot):
    node = shutil.which("node")
    assert node, "the library needs node on the PATH"
    done = subprocess.run(
        [node, str(HERE / "js" / "openai.mjs"), base_of(parrot), ADMIN_KEY, "parrot-1"],
        capture_output=True, text=True, timeout=300, env={**os.environ, "NO_PROXY": "127.0.0.1"}, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["models"] == ["parrot-1"]
    assert seen["chat"] == "".join(seen["streamed"]) == "You said: Polly wants"
    assert seen["completion"] == seen["response"] == "You said: hello"
    assert seen["events"][0] == "response.created" and seen["events"][-1] == "response.completed"
    assert seen["embedding"] == [8, 8]
    assert seen["badRequest"]["status"] == 400 and seen["badRequest"]["type"] == "invalid_request_error"
    assert seen["wrongKey"]["status"] == 401


# Workers that pass on the text of their model server, run by the official SDK.


@pytest.fixture(scope="module", params=["whole", "whole, aggregated", "lines, aggregated", "bits", "returned"])
def texts(api, request):
    """An endpoint whose worker answers with JSON text, and how it does."""
    form, _, aggregates = request.param.partition(", ")
    env = {"FORM": form, "AGGREGATE": "1" if aggregates else "0"}
    return api.endpoint("json_text.py", env, workersMax=1, maxConcurrency=4)


TOOLS = [{"type": "function", "function": {"name": "fly", "parameters": {"type": "object"}}}]


def test_text_that_is_json_is_the_answer(texts):
    client = client_of(base_of(texts), max_retries=0)
    assert [model.id for model in client.models.list()] == ["m"]
    assert client.chat.completions.create(model="m", messages=SAID).choices[0].message.content == 'she said: "🦜"'
    called = client.chat.completions.create(model="m", messages=SAID, tools=TOOLS).choices[0].message.tool_calls
    assert [(call.function.name, json.loads(call.function.arguments)) for call in called] == [("fly", {"to": "sea"})]
    assert client.completions.create(model="m", prompt="hi").choices[0].text == "polly\n🦜"
    found = client.embeddings.create(model="m", input="a", encoding_format="float")
    assert found.data[0].embedding == [0.25, -1.0]


def test_an_error_in_text_has_its_status(texts):
    client = client_of(base_of(texts), max_retries=0)
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="m", messages=SAID, user="flat")
    assert missing.value.body == {"message": "no such thing", "type": "NotFoundError", "param": None, "code": 404}
    with pytest.raises(openai.RateLimitError) as busy:
        client.chat.completions.create(model="m", messages=SAID, user="nested")
    assert (busy.value.code, busy.value.type) == ("busy", "rate_limit_error")


def test_text_that_is_json_reaches_the_javascript_library(texts):
    done = subprocess.run(
        [shutil.which("node"), str(HERE / "js" / "openai_text.mjs"), base_of(texts), ADMIN_KEY],
        capture_output=True, text=True, timeout=300, env={**os.environ, "NO_PROXY": "127.0.0.1"}, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert (seen["models"], seen["chat"], seen["tools"]) == (["m"], 'she said: "🦜"', [["fly", {"to": "sea"}]])
    assert (seen["completion"], seen["embedding"]) == ("polly\n🦜", [0.25, -1.0])
    assert seen["flat"] == {"status": 404, "message": "no such thing", "type": "NotFoundError", "code": 404}
    assert seen["nested"] == {"status": 429, "message": "slow down", "type": "rate_limit_error", "code": "busy"}


# Workers as vLLM's and older ones, played: what they post, and what the client makes of it.


def chunk_of(text: str, **more) -> dict:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def event_of(text: str) -> str:
    return f"data: {json.dumps(chunk_of(text))}\n\n"


BODY = {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "one"}, "finish_reason": "stop"}]}
FRAGMENTS = [event_of("one")[:20], event_of("one")[20:] + event_of(" two")[:3], event_of(" two")[3:], "data: [DONE]\n\n"]
BATCHES = [event_of("one"), event_of(" two") + "data: [DONE]\n\n"]
LISTS = [[chunk_of("one")], [chunk_of(" "), chunk_of("two")]]


def with_worker(endpoint, ask, chunks, result, **more):
    """What `ask` makes of a client whose request a worker answers with these posts; and the job's id."""
    worker = FakeWorker(endpoint)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask, client_of(base_of(endpoint), **more))
        job = worker.take()["id"]
        for chunk in chunks:
            worker.chunk(job, chunk)
        worker.done(job, result, "gpu=none&isStream=true")
        return asking.result(60), job


def read(client) -> str:
    parts = client.chat.completions.create(model="m", messages=SAID, stream=True)
    return "".join(part.choices[0].delta.content for part in parts)


def whole(client) -> str:
    return client.chat.completions.create(model="m", messages=SAID).choices[0].message.content


@pytest.mark.parametrize("chunks", [FRAGMENTS, BATCHES, LISTS, [chunk_of("one"), chunk_of(" two")]],
                         ids=["fragments of events", "batches of events", "lists of objects", "objects"])
@pytest.mark.parametrize("aggregates", [True, False])
def test_streams_of_every_kind_of_worker(endpoint, chunks, aggregates):
    assert with_worker(endpoint, read, chunks, {"output": chunks if aggregates else []})[0] == "one two"


@pytest.mark.parametrize("chunks, output", [([BODY], [BODY]), ([BODY], []), ([], BODY), ([json.dumps(BODY)], []), ([], json.dumps(BODY)),
                                            (json.dumps(BODY, indent=1).split("\n"), [])],
                         ids=["a list of one", "the chunk alone", "a plain handler", "text", "text of a plain handler", "lines of text"])
def test_whole_answers_of_every_kind_of_worker(endpoint, chunks, output):
    assert with_worker(endpoint, whole, chunks, {"output": output})[0] == "one"


def test_models_of_a_worker(endpoint):
    listed = {"object": "list", "data": [{"id": "org/m", "object": "model", "created": 1, "owned_by": "vllm"}]}
    ask = lambda client: [model.id for model in client.models.list()]
    assert with_worker(endpoint, ask, [listed], {"output": [listed]})[0] == ["org/m"]


VLLM = ("{'message': 'vLLM returned HTTP %d: {\"error\": {\"message\": \"it\\'s too long\", \"type\": \"BadRequestError\","
        " \"param\": \"messages\", \"code\": %d}}', 'type': 'worker_error', 'code': None}")
FLAT = {"object": "error", "message": "it's too long", "type": "BadRequestError", "param": None, "code": 400}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("chunks, result, status", [
    ([], {"error": VLLM % (400, 400)}, 400),
    ([], {"error": VLLM % (404, 404)}, 404),
    ([], {"error": "{'message': \"it's too long\", 'type': 'BadRequestError', 'code': 400}"}, 400),
    ([FLAT], {"output": [FLAT]}, 400),
    ([], {"output": [FLAT]}, 400),
    ([json.dumps(FLAT)], {"output": [json.dumps(FLAT)]}, 400),
    ([json.dumps(FLAT)], {"output": []}, 400),
    ([], {"output": json.dumps({"error": FLAT})}, 400),
    ([], {"error": "handler: it's too long \ntraceback: somewhere"}, 500),
])
def test_errors_of_every_kind_of_worker(endpoint, streams, chunks, result, status):
    ask = read if streams else whole

    def refused(client):
        with pytest.raises(openai.APIStatusError) as error:
            ask(client)
        return error.value

    error, _ = with_worker(endpoint, refused, chunks, result)
    assert error.status_code == status and "it's too long" in error.message
    assert endpoint.health()["jobs"]["inQueue"] == 0, "the prompt is not run again"


def test_an_error_in_the_middle(endpoint):
    def broken(client):
        parts = client.chat.completions.create(model="m", messages=SAID, stream=True)
        assert next(parts).choices[0].delta.content == "one"
        with pytest.raises(openai.APIError) as error:
            list(parts)
        return error.value

    worker = FakeWorker(endpoint)
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(broken, client_of(base_of(endpoint)))
        job = worker.take()["id"]
        worker.chunk(job, event_of("one"))
        until(lambda: endpoint.ok("GET", f"/stream/{job}?offset=0"), "the chunk is there")
        worker.done(job, {"error": VLLM % (503, 503)})
        assert "it's too long" in str(asking.result(60))


def test_a_cold_start_is_waited_for(endpoint):
    """No worker is there for longer than the client is told nothing."""
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(read, client_of(base_of(endpoint)))
        job = until(lambda: endpoint.ok("GET", "/requests")["requests"], "the job is there")[0]["id"]
        # The first comment comes after 15 s.
        holds(lambda: endpoint.status(job)["status"] == "IN_QUEUE" and not asking.done(), "it waits", 17, every_s=0.5)
        worker = FakeWorker(endpoint)
        assert worker.take()["id"] == job
        for chunk in BATCHES:
            worker.chunk(job, chunk)
        worker.done(job, {"output": []})
        assert asking.result(60) == "one two"
    assert len(endpoint.ok("GET", "/requests")["requests"]) == 1


def test_a_client_that_disconnects_before_the_end_stops_the_job_and_one_after_it_does_not(endpoint):
    worker = FakeWorker(endpoint)
    for chunks, state in (([event_of("one")], "CANCELLED"), (BATCHES, "IN_PROGRESS")):
        stops = worker.park_stops() if state == "CANCELLED" else None
        with ThreadPoolExecutor(1) as threads:
            def leave():
                parts = client_of(base_of(endpoint)).chat.completions.create(model="m", messages=SAID, stream=True)
                if state == "CANCELLED":
                    next(parts)
                    parts.close()
                else:
                    list(parts)

            leaving = threads.submit(leave)
            job = worker.take()["id"]
            for chunk in chunks:
                worker.chunk(job, chunk)
            leaving.result(60)
        if state == "CANCELLED":
            assert stops.result(60) == [job], "its worker is told"
            assert endpoint.wait_for(job)["status"] == state
        else:
            worker.done(job, {"output": BATCHES})
            assert endpoint.status(job)["status"] == "COMPLETED"


def test_a_rate_that_is_over_is_retried_by_the_client(fresh_server):
    from harness.client import Api
    from harness.server import QUICK

    server = fresh_server(config=QUICK + "[rate_limits.openai]\nper_10_s = 1\nconcurrent = 1\n")
    endpoint = Api(server).external(models=["m"])
    client = client_of(base_of(endpoint), max_retries=0)
    assert client.models.list().data[0].id == "m"
    with pytest.raises(openai.RateLimitError) as over:
        client.models.list()
    assert over.value.code == "rate_limited" and int(over.value.response.headers["retry-after"]) <= 10
    patient = client_of(base_of(endpoint), max_retries=2)
    answer = patient.models.with_raw_response.list()
    assert answer.retries_taken >= 1, "it waits as long as it is told, and asks again"


def test_a_key_sees_its_own_models_and_uses_no_others(api):
    mine, others = api.external(models=["org/mine"]), api.external(models=["org/others"])
    scopes = [{"scope": "jobs", "endpointIds": [mine.id]}]
    key = api.ok("POST", "/v1/apikeys", json={"name": "k", "scopes": scopes})["key"]
    client = client_of(f"{api.server.url}/openai/v1", key)
    assert [model.id for model in client.models.list()] == ["org/mine"]
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="org/others", messages=SAID)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError):
        client_of(base_of(others), key).models.list()
    with pytest.raises(openai.AuthenticationError):
        client_of(f"{api.server.url}/openai/v1", "wrong").models.list()


@pytest.mark.parametrize("language, number", [("python", 0), ("js", 0), ("sh", 0), ("python", 1)])
def test_the_examples_of_the_manual_run(parrot, language, number):
    code = manual.examples("openai.md", language)[number]
    wrote = manual.run(language, code, URL=parrot.api.server.url, KEY=ADMIN_KEY, ENDPOINT=parrot.id)
    assert "You said: Polly wants a cracker" in wrote or "parrot-1" in wrote, wrote
