"""What a browser shows before the modules of the console are there: the frame, if it has a session, and else the name."""

from typing import Callable

from playwright.sync_api import expect

from harness.browser import Console, intercept
from harness.server import ADMIN_KEY
from harness.wait import until

# Where the parts of the frame are that stand before and after, and where their words begin.
PLACES = """() => [...document.querySelectorAll(".brand, .nav, .top")]
  .filter((node) => node.checkVisibility({visibilityProperty: true}) && /^$|^(Longshore|Overview|Endpoints|Requests)/.test(node.matches(".top") ? "" : node.textContent.trim()))
  .map((node) => {
    const words = document.createRange();
    words.selectNode([...node.childNodes].find((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim()) ?? node);
    const {x, y, width, height} = node.getBoundingClientRect();
    return [node.className, x, y, width, height, words.getBoundingClientRect().x];
  })"""
HELD = ("**/main.js", "**/console.css")
# The first frame comes after the load event, as on a busy computer.
LATE_FRAME = """const loaded = new Promise((resolve) => addEventListener("load", resolve));
const {requestAnimationFrame} = window;
window.requestAnimationFrame = (callback) => void loaded.then(() => requestAnimationFrame(callback));"""
# Chromium prints 3 s after the load event which of the preloaded files were not used.
PRINTED = """() => new Promise((resolve) => {
  const {loadEventEnd} = performance.getEntriesByType("navigation")[0];
  setTimeout(resolve, loadEventEnd + 4000 - performance.now());
})"""


def held(tab: Console, path: str) -> Callable[[], None]:
    """Goes to a page whose modules and styles do not come before the returned function is called."""
    waiting: list | None = []

    def answer(route) -> None:
        route.continue_() if waiting is None else waiting.append(route)

    def let_go() -> None:
        nonlocal waiting
        routes, waiting = waiting, None
        for route in routes:
            route.continue_()

    for name in HELD:
        intercept(tab.page, name, answer)
    with tab.page.expect_response("**/console/session"):
        tab.page.goto(tab.root + path, wait_until="commit")
    return let_go


def test_the_frame_is_there_before_the_modules_and_does_not_move(console, api):
    api.external(name="Early")
    tab = console().sign_in()
    let_go = held(tab, "/")
    frame = tab.page.locator(".still")
    expect(frame).to_be_visible()
    expect(frame).to_contain_text("Longshore")
    before = tab.page.evaluate(PLACES)
    assert len(before) == 5, before
    let_go()
    expect(tab.page.get_by_role("link", name="Early")).to_be_visible()
    expect(frame).to_have_count(0)
    assert tab.page.evaluate(PLACES) == before


def test_a_browser_without_a_session_shows_the_name_and_no_frame(console):
    tab = console()
    page = tab.page
    let_go = held(tab, "/endpoints")
    expect(page.locator(".still .brand")).to_be_visible()
    assert page.evaluate("document.body.innerText.trim()") == "Longshore"
    before = [place[1:3] for place in page.evaluate(PLACES) if place[0] == "brand"]
    let_go()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert [place[1:3] for place in page.evaluate(PLACES)] == before
    page.get_by_label("API key").fill(ADMIN_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Endpoints", level=1)).to_be_visible()
    # The stream of events begins with the session.
    expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_the_session_is_asked_for_once(console):
    tab = console().sign_in()
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url.rsplit("/console/", 1)[-1]))
    tab.go("/health")
    expect(tab.page.get_by_role("heading", name="Health", level=1)).to_be_visible()
    expect(tab.page.get_by_text("Live", exact=True)).to_be_visible()
    assert asked.count("session") == 1, asked


def test_a_font_that_is_there_long_before_its_text_is_no_fault(console):
    tab = console().sign_in()
    page = tab.page
    page.add_init_script(LATE_FRAME)
    waiting = []
    intercept(page, "**/console/session", lambda route: waiting.append(route))
    tab.go("/endpoints")
    page.evaluate(PRINTED)
    fonts = "[...document.fonts].map(({family, status}) => [family, status])"
    until(lambda: page.evaluate(fonts) == [["Inter", "loaded"], ["JetBrains Mono", "loaded"]], "both fonts are there")
    [session] = waiting
    session.continue_()
    # Closing the tab fails if the browser printed a warning.
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
