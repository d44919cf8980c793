"""Debian's Firefox, driven by WebDriver BiDi, which it speaks itself: no driver program is between."""

import json
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from queue import Queue

from websockets.sync.client import connect

from .browser import LAN_NAME
from .wait import until

PREFERENCES = {
    # The name resolves to this computer.
    "network.dns.localDomains": LAN_NAME,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "app.update.auto": False,
    "browser.shell.checkDefaultBrowser": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "extensions.getAddons.cache.enabled": False,
}
ANSWER_S = 120

# The first visible element with a role and a name, as the tests of Chromium name them.
FIND = """(role, name) => {
  const tags = {button: "button", link: "a[href]", textbox: "input, textarea", heading: "h1, h2, h3"};
  const named = (node) => node.getAttribute("aria-label") ?? (node.labels?.[0] ?? node).textContent.trim();
  const found = [...document.querySelectorAll(tags[role])].find((node) => named(node) === name && node.getClientRects().length > 0);
  if (!found) return null;
  found.scrollIntoView({block: "center"});
  const {x, y, width, height} = found.getBoundingClientRect();
  return JSON.stringify([Math.round(x + width / 2), Math.round(y + height / 2)]);
}"""
ENTER = "\ue007"


class Firefox:
    """One process with a profile of its own, and one tab. `printed` has the errors and warnings of its console."""

    def __init__(self):
        program = shutil.which("firefox-esr") or shutil.which("firefox")
        assert program, "install Debian's package firefox-esr"
        self._profile = tempfile.TemporaryDirectory(prefix="longshore-firefox-", ignore_cleanup_errors=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        Path(self._profile.name, "user.js").write_text("\n".join(lines))
        command = [program, "--headless", "--no-remote", "--profile", self._profile.name, "--remote-debugging-port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.printed: list[str] = []
        self._answers: dict[int, Queue] = {}
        self._last = 0
        address: Queue[str] = Queue()
        threading.Thread(target=self._read_stderr, args=(address,), daemon=True).start()
        self._socket = connect(f"{address.get(timeout=ANSWER_S)}/session", max_size=None, proxy=None)
        threading.Thread(target=self._read, daemon=True).start()
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": 1440, "height": 900})

    def _read_stderr(self, address: Queue) -> None:
        for line in self._process.stderr:
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
                address.put(found[1])

    def _read(self) -> None:
        for text in self._socket:
            message = json.loads(text)
            if message.get("id") in self._answers:
                self._answers.pop(message["id"]).put(message)
            elif message.get("method") == "log.entryAdded" and message["params"]["level"] in ("error", "warn"):
                self.printed.append(message["params"]["text"])

    def call(self, method: str, **params) -> dict:
        """Sends a command; answers its result."""
        self._last += 1
        answer = self._answers[self._last] = Queue()
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": params}))
        message = answer.get(timeout=ANSWER_S)
        assert message["type"] == "success", (method, message)
        return message["result"]

    def go(self, url: str) -> None:
        self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    def evaluate(self, expression: str):
        """The value of an expression in the page: a text, a number, a truth value or None."""
        target = {"context": self.context}
        answer = self.call("script.evaluate", expression=expression, target=target, awaitPromise=True)
        assert answer["type"] == "success", answer
        return answer["result"].get("value")

    def text(self) -> str:
        """The visible text of the page."""
        return self.evaluate("document.body.innerText")

    def wait_for(self, text: str, timeout_s: float = 30) -> None:
        until(lambda: text in self.text(), f"Firefox shows {text!r}", timeout_s, 0.1)

    def click(self, role: str, name: str) -> None:
        """Clicks with the mouse, once the element is there."""
        find = f"({FIND})({json.dumps(role)}, {json.dumps(name)})"
        x, y = json.loads(until(lambda: self.evaluate(find), f"Firefox shows the {role} {name!r}", 30, 0.1))
        move = {"type": "pointerMove", "x": x, "y": y}
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "actions": [move, *press]})

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._act({"type": "key", "id": "keyboard", "actions": keys})

    def _act(self, source: dict) -> None:
        self.call("input.performActions", context=self.context, actions=[source])

    def close(self) -> None:
        try:
            self.call("browser.close")
            self._process.wait(30)
        finally:
            self._socket.close()
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait(30)
            self._profile.cleanup()
