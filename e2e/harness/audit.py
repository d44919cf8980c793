"""Checks the orders of a ledger through the HTTP API only. Shares no code with the server."""

import hashlib
import json
from collections import Counter
from datetime import datetime

from .client import Endpoint
from .expectations import Expectations, ExpectedJob

SLACK_S = 0.25
"""How far a worker's clock reading and ours may lie from what they describe."""


def expected(order: ExpectedJob) -> str:
    """The very text that the worker posted as the output of a job that yields nothing."""
    digest = hashlib.sha256(order.input["text"].encode()).hexdigest()
    output = {"id": order.id, "key": order.key, "digest": digest, "text": order.input["text"]}
    return json.dumps(output, ensure_ascii=False)


class Audit:
    """The findings about one ledger, after the server has had no requests."""

    def __init__(self, expectations: Expectations, endpoints: dict[str, Endpoint]):
        self.expectations = expectations
        self.endpoints = endpoints
        self.findings: list[str] = list(expectations.violations)
        self.states: Counter[str] = Counter()
        self.chunks = 0
        self.chunks_lost_on_the_way = 0

    def run(self, calls: list[dict]) -> list[str]:
        """Everything that is wrong; `calls` are those of the webhook receiver."""
        for order in self.expectations.acknowledged():
            self._judge(order)
        for flavour, endpoint in self.endpoints.items():
            self._count(flavour, endpoint)
        self._webhooks(calls)
        return self.findings

    def _judge(self, order: ExpectedJob) -> None:
        endpoint = self.endpoints[order.flavour]
        answer = endpoint.call("GET", f"/status/{order.id}")
        if answer.status_code != 200:
            self.findings.append(f"lost: {order.id} of {order.key}: {answer.status_code} {answer.text[:200]}")
            return
        record = answer.json()
        self.states[record["status"]] += 1
        wrong = self._wrong(order, record, answer.text)
        if wrong:
            self.findings.append(f"{order.id} of {order.key}: {wrong}: {answer.text[:500]}")

    def _wrong(self, order: ExpectedJob, record: dict, text: str) -> str | None:
        if record["id"] != order.id:
            return "it has another id"
        if order.end is not None and order.end != text:
            return f"it was seen as {order.end[:500]}"
        if order.cancelled and record["status"] != "CANCELLED":
            return "it was cancelled"
        match record["status"]:
            case "CANCELLED":
                return None
            case "FAILED":
                return None if record["error"] == f"not yet: {order.key}" else "it failed"
            case "COMPLETED" if order.flavour == "stream":
                return self._wrong_stream(order, record)
            case "COMPLETED":
                return None if f'"output":{expected(order)}' in text else f"its output is not {expected(order)[:500]}"
        return "it did not end, or must not end this way"

    def _wrong_stream(self, order: ExpectedJob, record: dict) -> str | None:
        yielded = record["output"]
        if [chunk["n"] for chunk in yielded] != list(range(order.input["count"])):
            return "the output is not what was yielded"
        if {(chunk["id"], chunk["key"]) for chunk in yielded} != {(order.id, order.key)}:
            return "the output is another job's"
        path = f"/stream/{order.id}?offset=0&wait=0"
        chunks = [chunk["output"] for chunk in self.endpoints["stream"].ok("GET", path)]
        self.chunks += len(chunks)
        if len({chunk["attempt"] for chunk in chunks}) > 1:
            return f"its stream mixes attempts: {chunks}"
        numbers = [chunk["n"] for chunk in chunks]
        if numbers != sorted(set(numbers)):
            return f"its stream is out of order: {numbers}"
        if chunks and chunks[0]["attempt"] != yielded[0]["attempt"]:
            return f"its stream is of another attempt than its output: {chunks}"
        for n in set(range(len(yielded))) - set(numbers):
            # The last one may be told as long as the job runs.
            until = yielded[n + 1]["at"] if n + 1 < len(yielded) else self._ended_at(order)
            # The worker SDK posts a chunk once: what finds no server is not the server's to keep.
            if not self.expectations.was_down(yielded[n]["at"] - SLACK_S, until + SLACK_S):
                return f"its stream lacks chunk {n}, and the server was there: {numbers}"
            self.chunks_lost_on_the_way += 1
        return None

    def _ended_at(self, order: ExpectedJob) -> float:
        ended_at = self.endpoints[order.flavour].ok("GET", f"/jobs/{order.id}")["completedAt"]
        return datetime.fromisoformat(ended_at).timestamp()

    def _count(self, flavour: str, endpoint: Endpoint) -> None:
        """The server has only ordered jobs, and its own totals are right."""
        listed: list[dict] = []
        cursor = ""
        while cursor is not None:
            page = endpoint.ok("GET", f"/requests?limit=1000&cursor={cursor}")
            listed += page["requests"]
            cursor = page["cursor"]
        ids = [record["id"] for record in listed]
        if len(set(ids)) != len(ids):
            self.findings.append(f"{flavour}: a job is listed twice")
        acknowledged = {order.id for order in self.expectations.acknowledged(flavour)}
        if not acknowledged <= set(ids):
            self.findings.append(f"{flavour}: not listed: {acknowledged - set(ids)}")
        orders = [order for order in self.expectations.orders.values() if order.flavour == flavour]
        # An order without an idempotency key is sent once: it may have become a job without its client hearing of it.
        unheard = sum(not order.ids for order in orders)
        if len(set(ids) - acknowledged) > unheard:
            self.findings.append(f"{flavour}: {len(set(ids) - acknowledged)} jobs without an order; {unheard} unheard")
        completed = sum(record["status"] == "COMPLETED" for record in listed)
        health = endpoint.health()["jobs"]
        if health["completed"] != completed or health["inQueue"] or health["inProgress"]:
            self.findings.append(f"{flavour}: {completed} completed jobs, but health says {health}")

    def _webhooks(self, calls: list[dict]) -> None:
        for order in self.expectations.orders.values():
            if not order.webhook:
                continue
            mine = [call["json"] for call in calls if call["path"].endswith(f"/{order.key}")]
            if len({call["id"] for call in mine}) > 1:
                self.findings.append(f"webhooks with two jobs for one order {order.key}")
            if order.ids and any(call["id"] != order.id for call in mine):
                self.findings.append(f"a webhook of {order.key} has another job")
            if any(call["input"] != order.input for call in mine):
                self.findings.append(f"a webhook of {order.key} has another input")


def webhooks_due(expectations: Expectations, calls: list[dict]) -> list[str]:
    """The finished orders whose last state no receiver was told."""
    told = {(call["path"].rsplit("/", 1)[1], call["json"]["status"]) for call in list(calls)}
    return [
        order.key
        for order in expectations.acknowledged()
        if order.webhook and order.end and not any((order.key, status) in told for status in statuses(order))
    ]


def statuses(order: ExpectedJob) -> list[str]:
    """The terminal state in which an order was seen."""
    return [json.loads(order.end)["status"]] if order.end else []


def webhook_repeats(expectations: Expectations, calls: list[dict]) -> int:
    """How many accepted calls there were beyond one for each time that a job became terminal."""
    told = Counter(call["path"].rsplit("/", 1)[1] for call in calls)
    # Two are noted for each retry: before it was sent and after.
    return sum(max(0, count - 1 - expectations.orders[key].retries_sent // 2) for key, count in told.items())
