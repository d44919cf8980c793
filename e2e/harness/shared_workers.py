"""What shared workers of a browser print and throw. Playwright listens to pages alone."""

import json
import threading
from typing import Callable

import requests
from playwright.sync_api import Page
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

ENABLED = ("Runtime.enable", "Log.enable")
RESUME = "Runtime.runIfWaitingForDebugger"
PRINTED = ("error", "warning", "assert")
ANSWER_S = 60
WORKERS = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True, "filter": [{"type": "shared_worker"}]}


class SharedWorkers:
    """Listens to the shared workers of all profiles of the browser whose DevTools have this port.

    It has a connection and a thread of its own: the browser stops a worker that begins again until it is told to go on, also
    while a test does not use Playwright.
    """

    def __init__(self, port: int):
        version = requests.get(f"http://127.0.0.1:{port}/json/version", timeout=ANSWER_S).json()
        self._socket = connect(version["webSocketDebuggerUrl"], max_size=None, proxy=None, legacy=True)
        self._listeners: dict[str, Callable[[str], None]] = {}
        # The workers that run, by their sessions, each with its profile.
        self._running: dict[str, str] = {}
        self._stopped: dict[str, str] = {}
        self._changed = threading.Condition()
        self._asked = 0
        self._answered: set[int] = set()
        self._send("Target.setAutoAttach", WORKERS)
        threading.Thread(target=self._read, daemon=True).start()

    def listen(self, page: Page, listener: Callable[[str], None]) -> str:
        """Calls `listener` with each fault in a worker of the page's profile; answers the profile."""
        devtools = page.context.new_cdp_session(page)
        profile = devtools.send("Target.getTargetInfo")["targetInfo"]["browserContextId"]
        devtools.detach()
        self._listeners[profile] = listener
        return profile

    def leave(self, profile: str) -> None:
        """Stops listening, once everything is told that has happened until now."""
        with self._changed:
            for session in [session for session, of in self._running.items() if of == profile]:
                asked = self._send("Runtime.getIsolateId", session=session)
                is_told = self._changed.wait_for(lambda s=session, a=asked: a in self._answered or s not in self._running, ANSWER_S)
                assert is_told, "the shared worker does not answer"
        self._listeners.pop(profile, None)

    def close(self) -> None:
        self._socket.close()

    def _send(self, method: str, params: dict | None = None, session: str | None = None) -> int:
        with self._changed:
            self._asked += 1
            to = {"sessionId": session} if session else {}
            self._socket.send(json.dumps({"id": self._asked, "method": method, "params": params or {}, **to}))
            return self._asked

    def _read(self) -> None:
        try:
            for text in self._socket:
                with self._changed:
                    self._receive(json.loads(text))
                    self._changed.notify_all()
        except ConnectionClosed:
            pass

    def _receive(self, message: dict) -> None:
        method, params, session = message.get("method", ""), message.get("params", {}), message.get("sessionId", "")
        if "id" in message:
            self._answered.add(message["id"])
        elif method == "Target.attachedToTarget":
            self._begin(params["sessionId"], params["targetInfo"]["browserContextId"])
        elif method == "Target.detachedFromTarget":
            self._running.pop(params["sessionId"], None)
            self._stopped.pop(params["sessionId"], None)
        elif method == "Inspector.targetCrashed" and session in self._running:
            # Its last page was left. Another page of the profile may begin it again, in the same session.
            self._stopped[session] = self._running.pop(session)
        elif method == "Inspector.targetReloadedAfterCrash":
            profile = self._stopped.pop(session, None)
            if profile is not None:
                self._begin(session, profile)
        elif fault := fault_of(method, params):
            listener = self._listeners.get(self._running.get(session) or self._stopped.get(session, ""))
            if listener:
                listener(f"shared worker: {fault}")

    def _begin(self, session: str, profile: str) -> None:
        self._running[session] = profile
        for method in (*ENABLED, RESUME):
            self._send(method, session=session)


def fault_of(method: str, params: dict) -> str | None:
    """What an event says that must not happen. That the server refuses a request or is not there may happen."""
    if method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        return details.get("exception", {}).get("description") or details["text"]
    if method == "Runtime.consoleAPICalled" and params["type"] in PRINTED:
        return f"{params['type']}: {' '.join(str(one.get('value', one.get('description'))) for one in params['args'])}"
    entry = params.get("entry", {})
    if method == "Log.entryAdded" and entry["level"] in PRINTED and entry["source"] != "network":
        return f"{entry['level']}: {entry['text']}"
    return None
