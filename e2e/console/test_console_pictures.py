"""Every page of the console looks as it did: its picture is compared with the kept one in `pictures/`.

The pages show what a server answered once (`pictures/usual.json`), at that time, so that nothing but the console changes a
picture. After a change that is meant, run the tests of this file with LONGSHORE_RECORD=1 and look at the pictures that git
shows as changed. With LONGSHORE_RECORD=all, the answers are recorded anew, too: after a change of what pages read.
"""

import os
import re
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from playwright.sync_api import expect

from harness import states, thousands
from harness.browser import MIDDLE, PHONE, WIDE, Console
from harness.client import Api
from harness.console_pages import GPUS, Shown, faults, usual
from harness.pictures import differing, go_in_its_font, small
from harness.recorded import Record
from harness.reverse_proxy import ReverseProxy
from harness.server import Server
from harness.wait import until

FOLDER = Path(__file__).parent / "pictures"
ANSWERS = FOLDER / "usual.json"
RECORDS = os.environ.get("LONGSHORE_RECORD", "")
# The share of a picture that may differ.
DIFFERENT_MAX = 0.002
SIZES = ((WIDE, "light"), (PHONE, "dark"), (MIDDLE, "light"))
ALL_SIZES = (*SIZES, (WIDE, "dark"), (PHONE, "light"), (MIDDLE, "dark"))
# Those of the pages of a server that has nothing, fails or is slow.
STATE_SIZES = SIZES[:2]
SETTLED_S = 0.1
# A page that asked for nothing for this time has read everything.
QUIET_S = 0.2
QUIET_IN_RECORD_S = 1
# A page that does not look as it did may look so a moment later, on a busy computer.
LOOKED_AT_S = 30
# In an ordinary run, each page is compared in one size, and in a long run in all of them.
IS_LONG = os.environ.get("LONGSHORE_PAGES") == "all" or RECORDS


@pytest.fixture(scope="module")
def record(browser) -> Record:
    """What the pages read; recorded anew with LONGSHORE_RECORD=all."""
    if RECORDS == "all":
        record_anew(browser)
    return Record.read(ANSWERS)


def record_anew(browser) -> None:
    server = Server(config=GPUS, flags=("--allow-private-webhooks", "--rate-limits", "off")).start()
    try:
        pages = usual(Api(server))
        record = Record(int(time.time() * 1000), [vars(shown) for shown in pages], names=neutral_names(server))
        with ReverseProxy(server.port, record=record.keep) as proxy:
            for width, scheme in SIZES:
                tab = tab_at(record, Console(browser, proxy, **options(width, scheme)))
                tab.forget("404")
                tab.sign_in()
                for shown in pages:
                    show(tab, shown, proxy, QUIET_IN_RECORD_S)
                tab.close()
        record.write(ANSWERS)
    finally:
        server.close()


def neutral_names(server: Server) -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    return {
        str(server.folder): "/var/lib/longshore",
        f"{root}/e2e/handlers": "/srv/workers",
        sys.executable: "python",
        root: "/srv",
        f'"{socket.gethostname()}"': '"harbour-1"',
    }


def options(width: int, scheme: str) -> dict:
    return {"width": width, "color_scheme": scheme, "has_touch": width == PHONE, "timezone_id": "UTC", "reduced_motion": "reduce"}


def tab_at(record: Record, tab: Console) -> Console:
    """A tab whose clock stands at the time of the record."""
    tab.context.clock.set_fixed_time(record.at_ms / 1000)
    return tab


def show(tab: Console, shown: Shown, proxy: ReverseProxy, quiet_s: float = QUIET_S) -> bytes:
    """A picture of a page that has read everything."""
    go_in_its_font(tab, shown.path)
    expect(tab.page.locator("#app").get_by_text(shown.text).filter(visible=True).first, shown.path).to_be_visible()
    expect(tab.page.locator(".loading, .loading-page")).to_have_count(0)
    return settled(tab, shown.path, proxy, quiet_s)


def settled(tab: Console, path: str, proxy: ReverseProxy, quiet_s: float = QUIET_S) -> bytes:
    """A picture of the page once it asks for nothing, and two in a row are the same."""
    last = [b""]

    def same() -> bool:
        before, last[0] = last[0], tab.page.screenshot(caret="hide", animations="disabled")
        return before == last[0] and proxy.unanswered == 0 and time.monotonic() - proxy.asked_at > quiet_s

    until(same, f"{path} no longer changes", 10, SETTLED_S)
    return last[0]


def named(number: int, shown: Shown) -> str:
    """The name of a page's pictures: it is the same when ids are others."""
    return f"{number:02}-{named_by(shown.route)}"


def named_by(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "overview"


@pytest.mark.parametrize("width, scheme", ALL_SIZES if IS_LONG else SIZES)
def test_pages_look_as_they_did(console, browser, server, record, tmp_path, width, scheme):
    tool = browser.chromium.new_page()
    found = []
    with ReverseProxy(server.port, intercept=record.answer) as proxy:
        tab = tab_at(record, console(proxy, **options(width, scheme)))
        tab.forget("404")
        tab.sign_in()
        for number, shown in enumerate(Shown(**page) for page in record.pages):
            if not IS_LONG and SIZES[number % len(SIZES)] != (width, scheme):
                continue
            found += compared(tool, lambda: show(tab, shown, proxy), f"{named(number, shown)}-{width}-{scheme}", tmp_path)
        assert not record.missing, f"not recorded: {sorted(set(record.missing))}"
        tab.close()
    tool.close()
    assert not found, "\n".join(found)


def compared(tool, draw: Callable[[], bytes], name: str, tmp_path: Path) -> list[str]:
    """What differs from the kept picture, which is written anew with LONGSHORE_RECORD."""
    file = FOLDER / f"{name}.png"
    kept = file.read_bytes() if file.exists() else None
    ends = time.monotonic() + LOOKED_AT_S
    while True:
        drawn = draw()
        made = small(tool, drawn)
        share, where = differing(tool, made, kept) if kept else (1.0, "all of it")
        if RECORDS or share <= DIFFERENT_MAX:
            break
        if time.monotonic() > ends:
            seen = tmp_path / file.name
            seen.write_bytes(drawn)
            return [f"{file.name}: {share:.2%} differs, {where}; it looks like {seen}"]
    # Small changes would add up until an ordinary run exceeds the limit.
    if RECORDS and share > 0:
        file.write_bytes(made)
    return []


# An address has the endpoint that has most in the place of `{}`.
LISTS = ("/", "/endpoints", "/requests", "/api-keys", "/endpoints/{}/requests", "/endpoints/{}/workers", "/workers", "/webhooks", "/machines")


@pytest.mark.parametrize("width, scheme", ALL_SIZES if IS_LONG else SIZES)
def test_pages_look_as_they_did_with_thousands(console, browser, server, record, tmp_path, width, scheme):
    tool = browser.chromium.new_page()
    found = []
    busiest = next(page["path"] for page in record.pages if page["route"] == "/endpoints/:endpoint").rsplit("/", 1)[1]
    with ReverseProxy(server.port, intercept=lambda method, path: thousands.answer(record, method, path)) as proxy:
        tab = tab_at(record, console(proxy, **options(width, scheme)))
        tab.forget("404")
        tab.sign_in()
        for place, pattern in enumerate(LISTS):
            if not IS_LONG and SIZES[place % len(SIZES)] != (width, scheme):
                continue
            path = pattern.replace("{}", busiest)
            go_in_its_font(tab, path)
            expect(tab.page.locator("main").locator(".card, .grid-scroll, details").first, path).to_be_visible()
            found += compared(tool, lambda: settled(tab, path, proxy), f"thousands-{named_by(pattern.replace('{}', 'endpoint'))}-{width}-{scheme}", tmp_path)
            # After the picture, which the search for faults must not change.
            found += [f"{path}: {fault}" for fault in faults(tab)]
        tab.close()
    tool.close()
    assert not found, "\n".join(found)


# Lists that are no pictures of their own: they look as those of the usual server, with more rows.
MORE_LISTS = ("/audit", "/templates", "/volumes", "/registries")


def test_further_lists_of_thousands_have_no_fault(console, server, record):
    found = []
    with ReverseProxy(server.port, intercept=lambda method, path: thousands.answer(record, method, path)) as proxy:
        tab = tab_at(record, console(proxy, **options(PHONE, "dark"))).sign_in()
        for path in MORE_LISTS:
            go_in_its_font(tab, path)
            expect(tab.page.locator("main tbody tr").nth(40), path).to_be_attached()
            found += [f"{path}: {fault}" for fault in faults(tab)]
        tab.close()
    assert not found, "\n".join(found)


@pytest.mark.parametrize("width, scheme", ALL_SIZES if IS_LONG else SIZES)
def test_signing_in_looks_as_it_did(console, browser, server, tmp_path, width, scheme):
    tool = browser.chromium.new_page()
    tab = console(**options(width, scheme))
    tab.forget("401")
    page = go_in_its_font(tab, "/sign-in")
    field = page.get_by_label("API key")
    expect(field).to_be_focused()
    found = compared(tool, lambda: page.screenshot(caret="hide", animations="disabled"), f"sign-in-{width}-{scheme}", tmp_path)
    field.fill("ls_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(field).to_have_value("")
    found += compared(tool, lambda: page.screenshot(caret="hide", animations="disabled"), f"sign-in-refused-{width}-{scheme}", tmp_path)
    found += faults(tab)
    tool.close()
    assert not found, "\n".join(found)


@dataclass
class State:
    """What a server may be like, with pages by their places in the record: those that differ then from what they are usually."""

    has: str
    """What a page shows then."""
    changes: states.Change
    pages: list[int]
    parts: list[int]
    """The pages that are seen with the records of the endpoints: what their parts are then."""


# Pages of one endpoint, by their places in the record.
OF_ENDPOINT = [2, 5, 11, 13, 14, 17, 18]
OF_ALL = [0, 1, 3, 6, *range(19, 31)]
STATES = {
    "empty": State(".empty, .chart-empty, .log-note, .wizard", states.empty, [0, 1, 19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30], [2, 5, 11, 12, 13, 14, 18, 19, 21]),
    "failing": State(".failed-part", states.failing, OF_ALL, [0, 1, 7, 12, 16, 19, 21, *OF_ENDPOINT]),
    "loading": State(".bar.shown, .table", states.loading, OF_ALL, [0, 1, 12, 16, 19, 21, *OF_ENDPOINT]),
}


@pytest.mark.parametrize("width, scheme", ALL_SIZES if IS_LONG else STATE_SIZES)
@pytest.mark.parametrize("state", STATES)
def test_pages_look_as_they_did_in_each_state_of_a_server(console, browser, server, record, tmp_path, state, width, scheme):
    tool = browser.chromium.new_page()
    found = []
    shown = STATES[state]
    change = [shown.changes]
    with ReverseProxy(server.port, intercept=lambda method, path: change[0](record, method, path)) as proxy:
        tab = tab_at(record, console(proxy, **options(width, scheme)))
        for status in ("404", "500"):
            tab.forget(status)
        tab.sign_in()
        for place, (number, is_part) in enumerate([(number, False) for number in shown.pages] + [(number, True) for number in shown.parts]):
            if not IS_LONG and STATE_SIZES[place % len(STATE_SIZES)] != (width, scheme):
                continue
            page = Shown(**record.pages[number])
            change[0] = with_parts(state, page) if is_part else shown.changes
            go_in_its_font(tab, page.path)
            expect(tab.page.locator("main").locator(shown.has).first, f"{state} {page.path}").to_be_visible()
            name = f"{state}-{'part-' if is_part else ''}{named(number, page)}-{width}-{scheme}"
            found += compared(tool, lambda: in_state(tab, page.path, proxy), name, tmp_path)
        tab.close()
    tool.close()
    assert not found, "\n".join(found)


def with_parts(state: str, page: Shown) -> states.Change:
    """The answers of a server in this state that has the endpoint, the job or the worker of the page."""
    kept = states.JOB if page.route.endswith(":job") else states.WORKER if page.route.endswith(":worker") and state == "empty" else states.ENDPOINTS
    return states.but(kept, STATES[state].changes)


def in_state(tab: Console, path: str, proxy: ReverseProxy) -> bytes:
    """A picture of the page; of one that no longer changes, where it is kept."""
    return settled(tab, path, proxy, QUIET_S * 2) if RECORDS else tab.page.screenshot(caret="hide", animations="disabled")
