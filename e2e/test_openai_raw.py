"""OpenAI's routes with nothing but sockets: what is on the wire, byte for byte, and callers and workers that misbehave."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.client import Api
from harness.fake_worker import FakeWorker
from harness.server import QUICK
from harness.wait import until

STREAMED = {"model": "m", "stream": True}
WHOLE = {"model": "m"}


class Caller:
    """One connection that asks for a completion and reads what comes."""

    def __init__(self, endpoint, receive_buffer: int = 0):
        self.endpoint = endpoint
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", endpoint.api.server.port))
        self.got = b""

    def request(self, body: dict, route: str = "/v1/chat/completions") -> bytes:
        text = json.dumps(body).encode()
        head = (
            f"POST {self.endpoint.mount}/openai{route} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.endpoint.api.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        )
        return head.encode() + text

    def ask(self, body: dict = STREAMED) -> "Caller":
        self.socket.sendall(self.request(body))
        return self

    def until(self, end: bytes, piece: int = 65536) -> bytes:
        """What came up to and with `end`."""
        while end not in self.got:
            more = self.socket.recv(piece)
            assert more, f"closed after {self.got[-300:]!r}"
            self.got += more
        found, _, self.got = self.got.partition(end)
        return found + end

    def answer(self, piece: int = 65536) -> tuple[int, bytes]:
        """Status and body of a whole answer, without the comments that say that it goes on."""
        head = self.until(b"\r\n\r\n", piece).decode().lower()
        status = int(head.split(" ")[1])
        if "transfer-encoding: chunked" not in head:
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            while len(self.got) < length:
                self.got += self.socket.recv(piece)
            return status, self.got[:length]
        body = b""
        while size := int(self.until(b"\r\n", piece), 16):
            while len(self.got) < size + 2:
                more = self.socket.recv(piece)
                assert more, "closed within a chunk"
                self.got += more
            body, self.got = body + self.got[:size], self.got[size + 2:]
        return status, body.replace(b": keep-alive\n\n", b"")

    def close(self) -> None:
        self.socket.close()


def events_of(body: bytes) -> list:
    return [json.loads(event.removeprefix("data: ")) for event in body.decode().split("\n\n") if event]


def test_every_fragment_is_passed_on_byte_for_byte(endpoint, worker):
    """Fragments end within a character's surrogates, a line, a line break; lines are long; line ends are of any kind."""
    text = "data: " + json.dumps({"t": "ä🦜\u2028" * 40_000}, ensure_ascii=False) + "\r\n\r\n: comment\nevent: x\n\n\ndata: [DONE]\n\n"
    cuts = [0, 1, 5, 6, 13, 14, 15, 16, 17, 30_000, len(text) - 9, len(text) - 2, len(text) - 1, len(text)]
    caller = Caller(endpoint).ask()
    job = worker.take()["id"]
    for begin, end in zip(cuts, cuts[1:]):
        worker.chunk(job, text[begin:end])
    worker.done(job, {"output": []})
    assert caller.answer() == (200, text.encode())


def test_a_chunk_over_a_megabyte_comes_whole(endpoint, worker):
    line = "data: " + "é\\u00e9\"" * 500_000 + "\n\n"
    caller = Caller(endpoint).ask()
    job = worker.take()["id"]
    worker.chunk(job, line + "data: [DONE]\n\n")
    worker.done(job, {"output": []})
    assert caller.answer() == (200, (line + "data: [DONE]\n\n").encode())


def test_half_a_character_breaks_nothing(endpoint, worker):
    """A worker's JSON may hold half of a surrogate pair, which no text can."""
    caller = Caller(endpoint).ask()
    job = worker.take()["id"]
    for half in ('{"output": "data: \\ud83e"}', '{"output": "\\udd9c\\n\\n"}'):
        assert worker.post("job-stream", job, half).status_code == 200
    worker.chunk(job, "data: [DONE]\n\n")
    worker.done(job, {"output": []})
    status, body = caller.answer()
    assert status == 200 and body.decode().endswith("\n\ndata: [DONE]\n\n")


def test_a_slow_reader_gets_all_of_it_and_holds_the_worker_up_for_nothing(endpoint, worker):
    caller = Caller(endpoint, receive_buffer=4096).ask()
    job = worker.take()["id"]
    line = "data: " + "x" * 50_000 + "\n\n"
    for _ in range(60):
        worker.chunk(job, line)
    worker.done(job, {"output": []})
    assert endpoint.status(job)["status"] == "COMPLETED", "the worker is through before anything was read"
    assert caller.answer(piece=3_000) == (200, (line * 60 + "data: [DONE]\n\n").encode())


@pytest.mark.parametrize("cut", ["head", "body"])
def test_who_leaves_within_the_request_has_asked_for_nothing(endpoint, cut):
    caller = Caller(endpoint)
    request = caller.request(STREAMED)
    caller.socket.sendall(request[:60] if cut == "head" else request[:-3])
    caller.close()
    other = Caller(endpoint).ask(WHOLE)
    worker = FakeWorker(endpoint)
    worker.done(worker.take()["id"], {"output": {"answer": 42}})
    assert other.answer() == (200, b'{"answer": 42}')
    assert len(endpoint.ok("GET", "/requests")["requests"]) == 1


@pytest.mark.parametrize("body", [STREAMED, WHOLE], ids=["in pieces", "whole"])
@pytest.mark.parametrize("is_taken", [False, True], ids=["queued", "running"])
def test_who_leaves_before_the_answer_begins_cancels(endpoint, worker, body, is_taken):
    caller = Caller(endpoint).ask(body)
    job = until(lambda: endpoint.ok("GET", "/requests")["requests"], "the job is there")[0]["id"]
    if is_taken:
        assert worker.take()["id"] == job
    caller.close()
    assert endpoint.wait_for(job)["status"] == "CANCELLED"


def test_who_leaves_within_the_head_of_the_answer_cancels(endpoint, worker):
    caller = Caller(endpoint).ask()
    job = worker.take()["id"]
    worker.chunk(job, "data: 1\n\n")
    assert caller.socket.recv(10)
    caller.close()
    assert endpoint.wait_for(job)["status"] == "CANCELLED"


def test_a_worker_that_dies_ends_the_answer_with_an_error(fresh_server):
    endpoint = Api(fresh_server(config=QUICK)).external()
    worker = FakeWorker(endpoint)
    caller = Caller(endpoint).ask()
    job = worker.take()["id"]
    worker.ping(job)
    worker.chunk(job, 'data: {"a": 1}\n\nda')
    # And it is never heard of again.
    status, body = caller.answer()
    begin, end = body.split(b"\n\nda\n\n")
    assert (status, begin) == (200, b'data: {"a": 1}')
    assert events_of(end)[0]["error"]["code"] == "worker_lost"
    assert endpoint.wait_for(job)["status"] == "CANCELLED", "no client waits for another attempt"


@pytest.mark.parametrize("begun", [False, True], ids=["before the first piece", "in the middle"])
@pytest.mark.parametrize("what", ["cancel", "delete the endpoint"])
def test_what_ends_otherwise_ends_the_answer(api, begun, what):
    endpoint = api.external()
    worker = FakeWorker(endpoint)
    caller = Caller(endpoint).ask()
    whole = None if begun else Caller(endpoint).ask(WHOLE)
    jobs = [job["id"] for job in worker.take_batch(2)] if whole else [worker.take()["id"]]
    until(lambda: len(endpoint.ok("GET", "/requests")["requests"]) == (1 if begun else 2), "all asked", every_s=1)
    if begun:
        worker.chunk(jobs[0], "data: 1\n\n")
        caller.until(b"data: 1\n\n")
    if what == "cancel":
        for job in endpoint.ok("GET", "/requests")["requests"]:
            endpoint.cancel(job["id"])
    else:
        assert api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code == 204
    if begun:
        assert b'data: {"error":' in caller.until(b"0\r\n\r\n")
        return
    for one in (caller, whole):
        status, body = one.answer()
        assert 400 <= status < 500 and json.loads(body)["error"]["message"], (status, body)


def test_a_thousand_concurrent_requests_each_get_their_own_answer(besieged):
    endpoint = Api(besieged).external()
    worker = FakeWorker(endpoint)
    callers = [Caller(endpoint).ask({**(STREAMED if n % 2 else WHOLE), "n": n}) for n in range(1000)]

    def work():
        done = 0
        while done < len(callers):
            for job in worker.take_batch(50):
                asked = job["input"]["openai_input"]
                if asked.get("stream"):
                    worker.chunk(job["id"], f"data: {asked['n']}\n\n")
                worker.done(job["id"], {"output": [] if asked.get("stream") else [{"n": asked["n"]}]})
                done += 1

    working = threading.Thread(target=work, daemon=True)
    working.start()
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(Caller.answer, callers))
    working.join(60)
    for n, (status, body) in enumerate(answers):
        expected = f"data: {n}\n\ndata: [DONE]\n\n".encode() if n % 2 else b'{"n": %d}' % n
        assert (status, body) == (200, expected)
