"""Debian's Chromium, driven by Playwright. What must not happen on any page is collected and fails the test."""

import re
import shutil
import socket
from functools import cached_property
from pathlib import Path
from typing import Callable, Pattern
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, Route, expect, sync_playwright

from .client import Api
from .gate import Gate
from .reverse_proxy import ReverseProxy
from .server import ADMIN_KEY, Server
from .shared_workers import SharedWorkers

# Chromium without a window. With one, half of the processor time goes to pages of the window, which no test sees.
PROGRAM = "chromium-headless-shell"
AXE = Path(__file__).parent.parent / "node_modules/axe-core/axe.min.js"
WIDE, MIDDLE, PHONE = 1440, 1024, 390
# A name that resolves to this computer without being local: browsers treat its pages as those of any plain HTTP host.
LAN_NAME = "console.test"
# Another site on this computer, for pages of people who mean harm.
EVIL_NAME = "evil.test"

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""

# How long a button asks "Sure?", as its module says it, and as it is for tests that press the button a second time.
ASKS = "const SURE_MS = 4000;"
ASKS_LONG = "const SURE_MS = 400000;"

ANIMATED = """() => Promise.all(document.getAnimations()
  .filter((animation) => animation.effect.getComputedTiming().iterations !== Infinity)
  .map((animation) => animation.finished.catch(() => {})))"""

# What a page asks for to learn whether its requests are intercepted.
INTERCEPTED = re.compile(r"\?intercepted$")

expect.set_options(timeout=20_000)


def reserved_port() -> socket.socket:
    """A port that no other process is given until this is closed: what is told its number can listen on it meanwhile."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def is_quiet(page: Page, asked: list) -> bool:
    """Whether a page with a clock of its own asks for nothing now; `asked` is what it has asked for, as a list that grows."""
    known = len(asked)
    # Events that come together are answered by one reading, up to 2 s later.
    page.clock.fast_forward(2_000)
    page.wait_for_timeout(1_000)
    return len(asked) == known


def intercept(page: Page, address: str | Pattern, handler: Callable[[Route], object]) -> None:
    """Answers what the page asks of an address from now on, also on a page that is open.

    `Page.route` returns when the browser intercepts, and a page that is busy may send one more request past it.
    """
    page.route(address, handler)
    if not page.url.startswith("http"):
        return
    page.route(INTERCEPTED, lambda route: route.fulfill(body="intercepted"))
    page.evaluate("""async () => {
        const isPast = async () => (await (await fetch(`${location.pathname}?intercepted`)).text()) !== "intercepted";
        while (await isPast());
    }""")
    page.unroute(INTERCEPTED)


class Browser:
    """One process of Chromium."""

    def __init__(self):
        program = shutil.which(PROGRAM)
        assert program, f"install Debian's package {PROGRAM}"
        self._playwright = sync_playwright().start()
        names = ", ".join(f"MAP {name} 127.0.0.1" for name in (LAN_NAME, EVIL_NAME))
        with reserved_port() as reserved:
            self._port = reserved.getsockname()[1]
            # Playwright itself uses a pipe.
            arguments = ["--no-sandbox", f"--host-resolver-rules={names}", f"--remote-debugging-port={self._port}"]
            self.chromium = self._playwright.chromium.launch(executable_path=program, args=arguments)

    @cached_property
    def shared_workers(self) -> SharedWorkers:
        """What is listened to from the first console on: measurements have no listener beside them."""
        return SharedWorkers(self._port)

    def close(self) -> None:
        if "shared_workers" in self.__dict__:
            self.shared_workers.close()
        self.chromium.close()
        self._playwright.stop()


class Console:
    """One browser profile at the console of one server."""

    def __init__(self, browser: Browser, server: Server | ReverseProxy | Gate, host: str = "127.0.0.1", **options):
        self.server = server
        self.root = f"{server.url.replace('127.0.0.1', host)}/console"
        # Only the browser knows the other names of this computer.
        self.is_by_form = host in (LAN_NAME, EVIL_NAME)
        width = options.pop("width", WIDE)
        options.setdefault("viewport", {"width": width, "height": 844 if width == PHONE else 900})
        # Without a window, Chromium asks even for what a page may do by itself after a click.
        options.setdefault("permissions", ["clipboard-write"])
        self.context: BrowserContext = browser.chromium.new_context(locale="en-GB", **options)
        self.context.add_init_script(WATCH)
        self.faults: list[str] = []
        self.expected: list[str] = []
        self.page = self.open_page()
        self._shared_workers = browser.shared_workers
        self._profile = self._shared_workers.listen(self.page, self.faults.append)

    def open_page(self) -> Page:
        """A new tab, watched."""
        page = self.context.new_page()
        page.on("console", self._printed)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}\n{error.stack}"))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        return page

    def _printed(self, message) -> None:
        url = message.location.get("url", "")
        # Chromium prints refused requests. Only the session is asked for without knowing whether there is one.
        is_question = "401" in message.text and urlsplit(url).path.endswith("/console/session")
        # On a page of plain HTTP, browsers say that they ignore this header.
        is_plain = "Cross-Origin-Opener-Policy header has been ignored" in message.text
        if message.type in ("error", "warning") and not is_question and not is_plain:
            self.faults.append(f"{message.type}: {message.text} {url}")

    def keep_asking(self) -> "Console":
        """From now on, the present tab's buttons ask "Sure?" for minutes instead of 4 s: a computer that stands still between two
        presses would have the question taken back. It costs each request, so it is for tests that press twice."""
        intercept(self.page, "**/ui/sure_button.js", self._ask_long)
        return self

    def _ask_long(self, route: Route) -> None:
        answer = route.fetch()
        text = answer.text()
        if ASKS not in text:
            self.faults.append(f"sure_button.js no longer has {ASKS}")
        route.fulfill(response=answer, body=text.replace(ASKS, ASKS_LONG))

    def watch_hosts(self) -> "Console":
        """From now on, a request of the present tab to another host is a fault. It costs each request; the page's policy, which is
        always watched, forbids the same."""
        self.page.on("request", self._asked)
        return self

    def _asked(self, request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ("http", "https") and address.netloc != urlsplit(self.root).netloc:
            self.faults.append(f"another host: {request.url}")

    def go(self, path: str) -> Page:
        """Loads a page of the console anew."""
        self.page.goto(self.root + path)
        return self.page

    def sign_in(self, key: str = ADMIN_KEY, path: str = "/") -> "Console":
        """Signs in, and goes to a page. Without the form, whose page and the overview behind it take longer than most tests."""
        if self.is_by_form:
            return self.sign_in_by_form(key, path)
        answer = self.context.request.post(f"{self.root}/session", data={"key": key})
        assert answer.ok, answer.text()
        self.go(path)
        expect(self.page.locator("#side")).to_have_count(1)
        return self

    def sign_in_by_form(self, key: str = ADMIN_KEY, path: str = "/") -> "Console":
        """Signs in as a person does, and goes to a page."""
        page = self.go("/sign-in")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("#side")).to_have_count(1)
        if path != "/":
            self.go(path)
        return self

    def sign_out(self) -> None:
        """Signs out by the menu of the signed-in key."""
        self.page.get_by_role("button", name="Signed in as").click()
        self.page.get_by_role("button", name="Sign out").click()

    def buttons(self) -> list[str]:
        """The names of the buttons that are shown."""
        return [text.strip() for text in self.page.get_by_role("button").all_inner_texts()]

    def axe(self) -> list[str]:
        """What axe-core finds on the page as it is."""
        # The page's policy forbids scripts in its nodes; the browser's own interface may evaluate.
        self.page.evaluate(AXE.read_text())
        # What fades in has less contrast until it is there.
        self.page.evaluate(ANIMATED)
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{violation['id']}: {violation['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for violation in found["violations"]
            for node in violation["nodes"][:3]
        ]

    def sideways(self) -> int:
        """How many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def forget(self, text: str) -> None:
        """Faults with this text do not count, earlier and later ones: the test brings them about."""
        self.expected.append(text)

    def close(self) -> None:
        """Closes the profile; fails if anything happened that must not."""
        for page in self.context.pages:
            violations = [] if page.is_closed() else page.evaluate("window.violations ?? []")
            self.faults += [f"policy: {violation}" for violation in violations]
        self._shared_workers.leave(self._profile)
        self.context.close()
        faults = [fault for fault in self.faults if not any(text in fault for text in self.expected)]
        assert not faults, "\n".join(faults)


def message(page: Page) -> Locator:
    """The message about what was done. Up to 5 s later, its text is in the region for screen readers, too."""
    return page.get_by_role("region", name="Message")


def key_for(api: Api, *scopes: dict, name: str = "test") -> dict:
    """A new key: its record, with its text in `key`."""
    return api.ok("POST", "/v1/apikeys", json={"name": name, "scopes": list(scopes)})
