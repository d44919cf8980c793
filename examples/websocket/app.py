"""A worker that talks over WebSockets: everything that a client says comes back in capital letters."""

import asyncio
import http
import os

from websockets.asyncio.server import serve


async def talk(connection) -> None:
    async for message in connection:
        await connection.send(message.upper())


def health(connection, request):
    """Answers the health check; every other request becomes a WebSocket."""
    if request.path == "/ping":
        return connection.respond(http.HTTPStatus.OK, "")
    return None


async def main() -> None:
    # The server chooses a free port for each worker.
    async with serve(talk, "127.0.0.1", int(os.environ["PORT"]), process_request=health) as server:
        await server.serve_forever()


asyncio.run(main())
