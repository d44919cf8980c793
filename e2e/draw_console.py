"""Draws the manual's pictures of the console: every page, wide and on a phone, light and dark.

    LONGSHORE_BIN=target/debug/longshore .tools/venv/bin/python e2e/draw_console.py docs/manual/console [SECONDS]

It needs Pillow beside the requirements of the tests. A server with four endpoints works for SECONDS (300) first, so that the
charts have something to show. Look at the pictures before you commit them.
"""

import io
import os
import socket
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import expect

from harness.browser import PHONE, WIDE, Browser, Console
from harness.harbour import Harbour, start
from harness.pictures import go_in_its_font
from harness.server import Server
from harness.wait import until

HEIGHTS = {WIDE: 900, PHONE: 844}
# Text and surfaces of few colours: more cost bytes and show nothing.
COLOURS = 256
WORK_S = 300
SETTLED_S = 0.3

# Puts neutral names into the texts of the page, in place of those of this computer.
NEUTRAL = """(names) => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode())
    for (const [name, neutral] of names) if (node.data.includes(name)) node.data = node.data.replaceAll(name, neutral);
  for (const field of document.querySelectorAll("input, textarea"))
    for (const [name, neutral] of names) if (field.value.includes(name)) field.value = field.value.replaceAll(name, neutral);
}"""


def neutral_names(server: Server, harbour: Harbour) -> list[tuple[str, str]]:
    """Names of this computer and what stands for them, the longest first."""
    root = str(Path(__file__).resolve().parents[1])
    names = {
        str(server.folder): "/var/lib/longshore",
        f"{root}/e2e/handlers": "/srv/workers",
        root: "/srv",
        sys.executable: "python",
        socket.gethostname(): "harbour-1",
        f"127.0.0.1:{server.port}": "longshore.example:8080",
        harbour.told.url.removesuffix("/hook"): "https://shop.example",
        harbour.deaf.url.removesuffix("/hook"): "https://old.example",
    }
    return sorted(names.items(), key=lambda pair: -len(pair[0]))


def small(png: bytes) -> bytes:
    """The picture as lossless WebP with a palette."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    few = image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).convert("RGB")
    made = io.BytesIO()
    few.save(made, "WEBP", lossless=True, quality=100, method=6)
    return made.getvalue()


def settled(page, names: list[tuple[str, str]]) -> bytes:
    """A picture of the page once two in a row are the same, or after 5 s: some pages count seconds."""
    last = [b""]

    def same() -> bool:
        page.evaluate(NEUTRAL, names)
        before, last[0] = last[0], page.screenshot(caret="hide")
        return before == last[0]

    try:
        until(same, "the page no longer changes", 5, SETTLED_S)
    except AssertionError:
        pass
    return last[0]


def draw(browser: Browser, server: Server, names: list[tuple[str, str]], pages: dict[str, str], folder: Path) -> int:
    """Draws all pages in all sizes; answers their bytes."""
    total = 0
    for width, height in HEIGHTS.items():
        for scheme in ("light", "dark"):
            size = {"viewport": {"width": width, "height": height}, "has_touch": width == PHONE}
            tab = Console(browser, server, width=width, color_scheme=scheme, timezone_id="UTC", reduced_motion="reduce", **size).sign_in()
            for name, path in pages.items():
                go_in_its_font(tab, path)
                expect(tab.page.locator("h1"), path).to_have_count(1)
                expect(tab.page.locator(".loading, .loading-page"), path).to_have_count(0)
                drawn = small(settled(tab.page, names))
                total += len(drawn)
                (folder / f"{name}-{width}-{scheme}.webp").write_bytes(drawn)
            tab.context.close()
    return total


def main() -> None:
    folder = Path(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else WORK_S
    with tempfile.TemporaryDirectory(prefix="longshore-") as data:
        server = start(Path(data))
        harbour, browser = Harbour(server), Browser()
        try:
            harbour.work(seconds)
            pages = harbour.finish()
            only = os.environ.get("LONGSHORE_PICTURES")
            pages = {name: path for name, path in pages.items() if not only or name in only.split(",")}
            total = draw(browser, server, neutral_names(server, harbour), pages, folder)
            print(f"{4 * len(pages)} pictures, {total / 1e6:.2f} MB")
        finally:
            browser.close()
            harbour.close()
            server.close()


if __name__ == "__main__":
    main()
