"""Clients that keep at it while their server is killed again and again: they submit, resubmit, watch and meddle."""

import itertools
import json
import random
import threading
import time
from pathlib import Path

import requests

from .client import Api, Endpoint
from .expectations import Expectations, ExpectedJob

OPEN_MAX = {"plain": 6, "many": 60, "stream": 12}
"""How many unfinished jobs of a flavour the crowd keeps in the air: what its workers do in a few seconds."""
ALPHABET = "abc äöü \"\\/\n\t☃𝄞 0123456789"


class ServerGone(Exception):
    """No answer came; the server may have done it or not."""


class ChaosClients:
    """Client threads on one server's endpoints, one endpoint for each flavour of `handlers/identity.py`."""

    def __init__(self, expectations: Expectations, endpoints: dict[str, Endpoint], hook: str, folder: Path, seed: int):
        self.expectations = expectations
        self.endpoints = endpoints
        self.hook = hook
        self.folder = folder
        self._numbers = itertools.count(1)
        self._stop = threading.Event()
        actors = [(self._submit, flavour) for flavour in endpoints for _ in range(2)]
        actors += [(self._watch, flavour) for flavour in endpoints]
        actors += [(self._meddle, None)]
        self._threads = [
            threading.Thread(target=self._act, args=(actor, flavour, random.Random(f"{seed} {number}")))
            for number, (actor, flavour) in enumerate(actors)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Lets every client finish what it began; the server must be up."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in self._threads), "a client is stuck"

    def _act(self, actor, flavour: str | None, chance: random.Random) -> None:
        api = Api(next(iter(self.endpoints.values())).api.server)
        mine = {name: Endpoint(api, endpoint.record) for name, endpoint in self.endpoints.items()}
        while not self._stop.is_set():
            try:
                actor(mine, flavour, chance)
            except ServerGone:
                self.expectations.lost_answer()
                time.sleep(0.01)
            except Exception as error:  # Raised again in the thread of the test.
                self.expectations.violation(f"a client met {error!r}")
                return

    def _ask(self, endpoint: Endpoint, method: str, path: str, **more) -> requests.Response:
        """One request; only 200 and refusals that a client can expect are answers."""
        try:
            answer = endpoint.call(method, path, timeout=10, **more)
        except requests.RequestException as error:
            raise ServerGone from error
        if answer.status_code == 503:
            self.expectations.answers_503 += 1
            raise ServerGone
        if answer.status_code not in (200, 400):
            self.expectations.violation(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
            raise ServerGone
        return answer

    # Submitting

    def _submit(self, mine: dict[str, Endpoint], flavour: str, chance: random.Random) -> None:
        if len(self.expectations.unfinished(flavour)) >= OPEN_MAX[flavour]:
            time.sleep(0.02)
            return
        order = self._order(flavour, chance)
        with self.expectations.lock:
            self.expectations.orders[order.key] = order
        self._insist(mine[flavour], order, chance)
        if order.idempotent and chance.random() < 0.3:
            self._insist(mine[flavour], order, chance)
        time.sleep(chance.uniform(0, 0.1))

    def _order(self, flavour: str, chance: random.Random) -> ExpectedJob:
        key = f"order-{next(self._numbers)}"
        text = "".join(chance.choices(ALPHABET, k=chance.choice([0, 10, 500, 20_000])))
        input = {"key": key, "text": text, "seconds": round(chance.uniform(0, 0.4), 3)}
        if flavour == "stream":
            input["count"] = chance.randint(1, 12)
        elif chance.random() < 0.1:
            input["fails_until"] = str(self.folder / key)
        webhook = chance.random() < 0.5
        body = {"input": input, **({"webhook": f"{self.hook}/{key}"} if webhook else {})}
        return ExpectedJob(
            flavour=flavour,
            key=key,
            input=input,
            body=json.dumps(body).encode(),
            sync=chance.random() < 0.3,
            webhook=webhook,
            idempotent=chance.random() < 0.8,
        )

    def _insist(self, endpoint: Endpoint, order: ExpectedJob, chance: random.Random) -> None:
        """Sends the order until it is acknowledged; without an idempotency key there is one try."""
        path = f"/runsync?wait={chance.choice([1000, 2000])}" if order.sync else "/run"
        headers = {"Idempotency-Key": order.key} if order.idempotent else {}
        while True:
            asked = order.asked()
            try:
                answer = self._ask(endpoint, "POST", path, data=order.body, headers=headers)
            except ServerGone:
                if not order.idempotent:
                    raise
                self.expectations.lost_answer()
                time.sleep(0.02)
                continue
            record = answer.json()
            self.expectations.acknowledge(order, record["id"])
            if order.sync:
                self.expectations.observe(order, record, answer.text, asked)
            return

    # Watching

    def _watch(self, mine: dict[str, Endpoint], flavour: str, chance: random.Random) -> None:
        """Looks at some unfinished orders and at one that was finished before."""
        orders = self.expectations.unfinished(flavour)[:20]
        finished = [order for order in self.expectations.acknowledged(flavour) if order.end is not None]
        if finished:
            orders.append(chance.choice(finished))
        for order in orders:
            self._look(mine[flavour], order)
        time.sleep(0.1)

    def _look(self, endpoint: Endpoint, order: ExpectedJob) -> None:
        asked = order.asked()
        answer = self._ask(endpoint, "GET", f"/status/{order.id}")
        self.expectations.observe(order, answer.json(), answer.text, asked)

    # Meddling

    def _meddle(self, mine: dict[str, Endpoint], _flavour: None, chance: random.Random) -> None:
        what = chance.random()
        if what < 0.05:
            self._ask(mine[chance.choice(list(mine))], "POST", "/purge-queue")
        elif what < 0.4:
            orders = self.expectations.unfinished()
            if orders:
                self._cancel(mine, chance.choice(orders))
        else:
            failed = [order for order in self.expectations.acknowledged() if order.end and '"FAILED"' in order.end]
            if failed:
                self._retry(mine, chance.choice(failed))
        time.sleep(chance.uniform(0, 0.4))

    def _cancel(self, mine: dict[str, Endpoint], order: ExpectedJob) -> None:
        record = self._ask(mine[order.flavour], "POST", f"/cancel/{order.id}").json()
        if record["status"] == "CANCELLED":
            order.cancelled = True
        elif order.cancelled:
            self.expectations.violation(f"{order.id} was CANCELLED and is {record}")

    def _retry(self, mine: dict[str, Endpoint], order: ExpectedJob) -> None:
        if "fails_until" in order.input:
            Path(order.input["fails_until"]).touch()
        # Requests from before this, or answered while their effect is unknown, prove nothing.
        with self.expectations.lock:
            order.retries_sent += 1
            order.end = None
        try:
            self._ask(mine[order.flavour], "POST", f"/retry/{order.id}")
        finally:
            with self.expectations.lock:
                order.retries_sent += 1
                order.end = None
