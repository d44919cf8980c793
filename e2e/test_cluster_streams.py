"""Streams that go on through a take-over: their clients are connected to another node than the owner, and see a pause."""

import threading

import pytest
import requests

from harness.client import Api, Endpoint
from harness.fake_worker import FakeWorker
from harness.nodes import Node, Nodes
from harness.postgres import DATABASE, Postgres
from harness.server import ADMIN_KEY
from harness.wait import until
from harness.withholding_proxy import WithholdingProxy

# A server that stops breaks streams off after this time.
CONFIG = "shutdown_grace_ms = 300\n"
PIECES = ['data: {"text":', '"one"}\n\n', 'data: {"text":"tw', 'o"}\n\ndata: {"te', 'xt":"three"}\n\n', "data: [DONE]\n\n"]
BEFORE = 3


@pytest.fixture(scope="module")
def postgres():
    """The PostgreSQL of these tests."""
    postgres = Postgres()
    yield postgres
    postgres.close()


class Reader:
    """Reads a response to its end, in a thread."""

    def __init__(self, node: Node, method: str, path: str, **more):
        self.read = b""
        self.error: Exception | None = None
        headers = {"Authorization": f"Bearer {ADMIN_KEY}", **more.pop("headers", {})}
        self._ask = lambda: requests.request(method, node.url + path, headers=headers, stream=True, timeout=60, **more)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._ask() as response:
                assert response.status_code == 200, response.text
                for piece in response.iter_content(None):
                    self.read += piece
        except (requests.RequestException, AssertionError) as error:
            self.error = error

    def wait_for(self, text: str) -> None:
        def there():
            assert self.error is None, self.error
            return text.encode() in self.read

        until(there, f"{text!r} is read", 30)

    def all(self) -> str:
        """All that was read, once the response has ended."""
        self._thread.join(60)
        assert not self._thread.is_alive() and self.error is None, (self.error, self.read)
        return self.read.decode()


def ask(node: Node, endpoint: Endpoint) -> Reader:
    """An OpenAI client that wants a stream."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    return Reader(node, "POST", f"{endpoint.mount}/openai/v1/chat/completions", json=body)


def without_comments(text: str) -> str:
    return "".join(event + "\n\n" for event in text.split("\n\n") if event and not event.startswith(":"))


def follow(node: Node, endpoint: Endpoint, job: str) -> Reader:
    """A client that follows a job."""
    return Reader(node, "GET", f"{endpoint.mount}/stream/{job}", headers={"Accept": "text/event-stream"})


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_streams_go_on_with_the_next_owner(postgres, how):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    nodes = Nodes(postgres, ("a", "b", "c"), CONFIG).start()
    owner, *others = nodes.all
    try:
        endpoint = Api(others[0]).external()
        followed = endpoint.run({})
        # One of the nodes takes over, and the other one passes on what the next owner says.
        followers = [follow(node, endpoint, followed) for node in others]
        asking = [ask(node, endpoint) for node in others]
        endpoint.wait_health("jobs", "inQueue", 3)
        # Each worker holds one job, and says so by its pings.
        workers = {}
        for _ in range(3):
            worker = FakeWorker(endpoint)
            workers[worker.take()["id"]] = worker
        late = ask(others[0], endpoint)

        def post(number: int) -> None:
            for job, worker in workers.items():
                worker.ping(job)
                worker.chunk(job, {"number": number} if job == followed else PIECES[number])

        for number in range(BEFORE):
            post(number)
        for reader in followers:
            reader.wait_for(f'"number": {BEFORE - 1}}}')
        for reader in asking:
            reader.wait_for(PIECES[BEFORE - 1])

        getattr(owner, how)()
        assert nodes.owner() is not owner
        for number in range(BEFORE, len(PIECES)):
            post(number)
        for job, worker in workers.items():
            worker.done(job, {"output": []})
        # A client that had no byte yet.
        worker = FakeWorker(endpoint)
        last = worker.take()["id"]
        assert last not in workers
        for piece in PIECES:
            worker.chunk(last, piece)
        worker.done(last, {"output": []})

        for reader in followers:
            read = reader.all()
            ids = [line for line in read.splitlines() if line.startswith("id: ")]
            assert ids == [f"id: {number}" for number in range(len(PIECES))], read
            assert read.count("event: done") == 1 and read.endswith("\n\n"), read
        for reader in (*asking, late):
            assert without_comments(reader.all()) == "".join(PIECES), reader.read
        # No job was cancelled, and none was made twice.
        counts = endpoint.health()["jobs"]
        assert (counts["completed"], counts["failed"], counts["inQueue"], counts["inProgress"]) == (4, 0, 0, 0), counts
        assert len(endpoint.ok("GET", "/requests?limit=100")["requests"]) == 4
    finally:
        nodes.close()


def test_a_stream_of_a_lost_attempt_fails_in_words_after_a_take_over(postgres):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    nodes = Nodes(postgres, ("a", "b")).start()
    owner, other = nodes.all
    try:
        endpoint = Api(other).external()
        worker = FakeWorker(endpoint)
        reader = ask(other, endpoint)
        job = worker.take()["id"]
        worker.chunk(job, PIECES[0])
        reader.wait_for(PIECES[0])
        owner.kill()
        assert nodes.owner() is other
        # The worker is restarted: it says that it holds nothing, and the job is handed out again.
        worker.done(job, {"error": "it failed"})
        read = reader.all()
        assert read.startswith(PIECES[0]) and '"error"' in read and "[DONE]" not in read, read
    finally:
        nodes.close()


def test_a_chunk_whose_answer_was_lost_with_the_owner_is_there_once(postgres):
    postgres.sql("DROP SCHEMA IF EXISTS longshore CASCADE", DATABASE)
    with WithholdingProxy() as proxy:
        nodes = Nodes(postgres, ("b", "c"), CONFIG)
        owner = Node(postgres, "a", CONFIG + f'cluster_address = "127.0.0.1:{proxy.port}"\n')
        proxy.forward_to(owner.peer_port)
        others, nodes.all = nodes.all, [owner, *nodes.all]
        try:
            nodes.start()
            created = Api(others[0]).external()
            # One of the two nodes takes over, and the other one sends its post to that one.
            workers = {}
            for node in others:
                worker = FakeWorker(Endpoint(Api(node), created.record))
                created.run({})
                workers[worker.take()["id"]] = worker
            for job, worker in workers.items():
                worker.chunk(job, "first")
            proxy.withhold("/job-stream/")
            posts = [worker.post_in_background("job-stream", job, {"output": "second"}) for job, worker in workers.items()]
            proxy.wait_withheld(len(posts))
            owner.kill()
            proxy.close()
            for post in posts:
                assert post.result(60).status_code == 200, post.result().text
            for job, worker in workers.items():
                # The same text in a post of its own is another chunk.
                worker.chunk(job, "second")
                worker.done(job, {"output": []})
                stream = created.ok("GET", f"/stream/{job}?offset=0")
                assert [chunk["output"] for chunk in stream] == ["first", "second", "second"], stream
        finally:
            nodes.close()
