"""A proxy that cuts connections at random bytes of what the server sends."""

import random
import select
import socket
import struct
import sys
import threading

RESET = struct.pack("ii", 1, 0)


class CuttingProxy:
    """Forwards connections to `port`; each ends after a random number of bytes of its answers, every other one with
    a reset. A used-up connection takes unread bytes with it, as a broken one does."""

    def __init__(self, port: int, seed: int, bytes_max: int):
        self.port = port
        self.dice = random.Random(seed)
        self.bytes_max = bytes_max
        self.cuts = 0
        self.sparing = False
        self.counting = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def __enter__(self) -> "CuttingProxy":
        return self

    def __exit__(self, *_) -> None:
        # Closing alone does not wake an accept.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join(10)

    def spare(self) -> None:
        """From now on new connections live as long as they like."""
        self.sparing = True

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            # Drawn here, in the order of connections, so that a seed means something.
            left, resets = self.dice.randint(1, self.bytes_max), self.dice.random() < 0.5
            left = sys.maxsize if self.sparing else left
            threading.Thread(target=self._forward, args=(client, left, resets), daemon=True).start()

    def _forward(self, client: socket.socket, left: int, resets: bool) -> None:
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            while left > 0:
                for readable in select.select([client, server], [], [])[0]:
                    try:
                        data = readable.recv(min(left, 65536) if readable is server else 65536)
                        if not data:
                            return
                        (client if readable is server else server).sendall(data)
                    except OSError:
                        return
                    left -= len(data) if readable is server else 0
            with self.counting:
                self.cuts += 1
            if resets:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
