"""Writes pictures of few colours in PNG's format. What a browser writes of them has four times the bytes."""

import struct
import zlib

COLOURS_MAX = 256
# The kinds of pixels: three bytes of colour, or a place in a palette.
RGB, PALETTE = 2, 3


def written(width: int, height: int, pixels: bytes) -> bytes:
    """A picture of these pixels, three bytes each, in rows."""
    colours = [pixels[at : at + 3] for at in range(0, len(pixels), 3)]
    palette = {colour: place for place, colour in enumerate(sorted(set(colours)))}
    if len(palette) > COLOURS_MAX:
        return _file(width, height, RGB, pixels, 3 * width)
    places = bytes(palette[colour] for colour in colours)
    return _file(width, height, PALETTE, places, width, _chunk(b"PLTE", b"".join(palette)))


def _file(width: int, height: int, kind: int, data: bytes, row: int, palette: bytes = b"") -> bytes:
    # Each row begins with how it was filtered: not at all.
    rows = b"".join(b"\0" + data[at : at + row] for at in range(0, len(data), row))
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + palette + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
