"""Pictures of pages, compared with kept ones. A kept picture has a sixteenth of the pixels: each is the mean of a block, so that
the edges of letters, which differ between computers, hardly change it. Its colours are in steps: it has few of them, and few bytes.
The browser itself reads the pictures."""

import base64

from playwright.sync_api import Page

from .browser import Console
from .png import written
from .wait import until

BLOCK = 4
STEP = 8
# By how much a colour may differ, of 255.
COLOUR_MAX = 24

# Text has the width of the next font where the page's own is not used.
IN_ITS_FONT = """async () => {
  await document.fonts.ready;
  const context = document.createElement("canvas").getContext("2d");
  const width = (fonts) => {
    context.font = `32px ${fonts}`;
    return context.measureText("Longshore").width;
  };
  return width("Inter, monospace") !== width("monospace");
}"""

SMALL = """async ({picture, block, step}) => {
  const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
  const {width, height} = bitmap;
  const whole = new OffscreenCanvas(width, height).getContext("2d");
  whole.drawImage(bitmap, 0, 0);
  const from = whole.getImageData(0, 0, width, height).data;
  const [w, h] = [Math.ceil(width / block), Math.ceil(height / block)];
  const sums = new Float64Array(w * h * 4);
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) {
      const [to, at] = [(Math.floor(y / block) * w + Math.floor(x / block)) * 4, (y * width + x) * 4];
      for (let channel = 0; channel < 3; channel += 1) sums[to + channel] += from[at + channel];
      sums[to + 3] += 1;
    }
  const small = new Uint8ClampedArray(w * h * 3);
  for (let pixel = 0; pixel < w * h; pixel += 1)
    for (let channel = 0; channel < 3; channel += 1)
      small[pixel * 3 + channel] = Math.round(sums[pixel * 4 + channel] / sums[pixel * 4 + 3] / step) * step;
  let text = "";
  for (const byte of small) text += String.fromCharCode(byte);
  return [w, h, btoa(text)];
}"""

DIFFERING = """async ({pictures, most}) => {
  const read = async (picture) => {
    const bitmap = await createImageBitmap(await (await fetch("data:image/png;base64," + picture)).blob());
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height);
  };
  const [a, b] = await Promise.all(pictures.map(read));
  if (a.width !== b.width || a.height !== b.height) return [1, []];
  let count = 0;
  const box = [a.width, a.height, 0, 0];
  for (let at = 0; at < a.data.length; at += 4) {
    if (![0, 1, 2].some((channel) => Math.abs(a.data[at + channel] - b.data[at + channel]) > most)) continue;
    const [x, y] = [(at / 4) % a.width, Math.floor(at / 4 / a.width)];
    count += 1;
    box.splice(0, 4, Math.min(box[0], x), Math.min(box[1], y), Math.max(box[2], x + 1), Math.max(box[3], y + 1));
  }
  return [count / (a.width * a.height), box];
}"""


def go_in_its_font(tab: Console, path: str) -> Page:
    """Loads a page of the console anew until it is in its own font: a page whose font comes late keeps the one of the system."""
    until(lambda: tab.go(path).evaluate(IN_ITS_FONT), f"{path} is in its font")
    return tab.page


def small(tool: Page, png: bytes) -> bytes:
    """The picture with the mean of each block; `tool` is an empty page that does the work."""
    width, height, pixels = tool.evaluate(SMALL, {"picture": _text(png), "block": BLOCK, "step": STEP})
    return written(width, height, base64.b64decode(pixels))


def differing(tool: Page, one: bytes, other: bytes) -> tuple[float, str]:
    """The share of the pixels of two small pictures that differ, and where on the page they are; 1 for pictures of different sizes."""
    share, box = tool.evaluate(DIFFERING, {"pictures": [_text(one), _text(other)], "most": COLOUR_MAX})
    if not box:
        return share, "the sizes are different"
    left, top, right, bottom = (BLOCK * edge for edge in box)
    return share, f"from {left}, {top} to {right}, {bottom}"


def _text(png: bytes) -> str:
    return base64.b64encode(png).decode()
