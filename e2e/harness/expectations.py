"""What a server promised its clients and what they saw of it: noted while it happens, judged in the end."""

import threading
import time
from dataclasses import dataclass, field

from .client import TERMINAL


@dataclass
class ExpectedJob:
    """One job that a client wants, under one input; it may take many requests to get it acknowledged."""

    flavour: str
    key: str
    input: dict
    body: bytes
    sync: bool
    webhook: bool
    idempotent: bool
    ids: set[str] = field(default_factory=set)
    """Every id that an answer gave for it: more than one is one too many."""
    cancelled: bool = False
    """Whether a client was told CANCELLED."""
    retries_sent: int = 0
    end: str | None = None
    """The terminal record as it was first seen, as text."""

    @property
    def id(self) -> str | None:
        return next(iter(self.ids), None)

    def asked(self) -> "KnownWhenSent":
        """What is known at the moment when a client asks about it."""
        return KnownWhenSent(self.retries_sent, self.end is not None)


@dataclass(frozen=True)
class KnownWhenSent:
    """What was known of an order when a question was sent: answers arrive in another order than they were made in."""

    retries_sent: int
    was_over: bool


class Expectations:
    """All orders, by their keys; what went wrong; and when the server was down."""

    def __init__(self):
        self.lock = threading.Lock()
        self.orders: dict[str, ExpectedJob] = {}
        self.violations: list[str] = []
        self.answers_lost = 0
        self.answers_503 = 0
        self.down: list[tuple[float, float]] = []
        """From just before a kill to the moment when the server was ready again, in seconds of the wall clock."""

    def acknowledge(self, order: ExpectedJob, id: str) -> None:
        with self.lock:
            order.ids.add(id)
            if len(order.ids) > 1:
                self.violations.append(f"two jobs for one order {order.key}: {order.ids}")

    def violation(self, text: str) -> None:
        with self.lock:
            self.violations.append(text)

    def lost_answer(self) -> None:
        with self.lock:
            self.answers_lost += 1

    def observe(self, order: ExpectedJob, record: dict, text: str, asked: KnownWhenSent) -> None:
        """A record that a client read, and what was known when it asked for it."""
        with self.lock:
            if asked.retries_sent != order.retries_sent:
                return
            if record["status"] not in TERMINAL:
                if asked.was_over:
                    self.violations.append(f"{record['id']} is {text[:300]} after it was {order.end[:300]}")
                if "error" in record:
                    self.violations.append(f"{record['id']} goes on and has an error: {text[:300]}")
            elif order.end is None:
                order.end = text
            elif order.end != text:
                self.violations.append(f"{record['id']} was {order.end[:300]} and is {text[:300]}")

    def acknowledged(self, flavour: str | None = None) -> list[ExpectedJob]:
        """The orders that some answer confirmed."""
        with self.lock:
            return [order for order in self.orders.values() if order.ids and flavour in (None, order.flavour)]

    def unfinished(self, flavour: str | None = None) -> list[ExpectedJob]:
        """The acknowledged orders whose end no client has seen."""
        return [order for order in self.acknowledged(flavour) if order.end is None]

    def was_down(self, since: float, until: float) -> bool:
        """Whether the server was down at any moment between these two, by the wall clock."""
        return any(begin <= until and since <= end for begin, end in self.down)

    def note_down(self, since: float) -> None:
        """The server was killed at `since` and is ready now."""
        self.down.append((since, time.time()))
