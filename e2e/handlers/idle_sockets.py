"""A worker with very many WebSockets, upgraded by hand; it sends back the bytes that it gets."""

import asyncio
import base64
import hashlib
import os

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            fields = dict(line.lower().split(b": ", 1)[:1] + line.split(b": ", 1)[1:] for line in head.split(b"\r\n")[1:-2])
            key = fields.get(b"sec-websocket-key")
            if key is None:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                continue
            accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                b"Sec-WebSocket-Accept: %s\r\n\r\n" % accept
            )
            while said := await reader.read(4096):
                writer.write(said)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", int(os.environ["PORT"]), backlog=4096, limit=65_536)
    await server.serve_forever()


asyncio.run(main())
