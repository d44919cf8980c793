"""A network between a program and a server that can be lost: nothing passes, or connections end."""

import select
import socket
import threading


class Gate:
    """Forwards connections to `target`, a port of this computer, while it is open."""

    def __init__(self, target: int = 0):
        self.target = target
        self.is_open = threading.Event()
        self.is_open.set()
        self._is_cut = threading.Event()
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_) -> None:
        self._ended.set()
        self.is_open.set()
        # Closing alone does not wake an accept.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(10)

    def part(self) -> None:
        """From now on nothing passes, also over connections that are open."""
        self.is_open.clear()

    def cut(self) -> None:
        """From now on connections end, and new ones, too."""
        self._is_cut.set()

    def join(self) -> None:
        """What waits passes again, and new connections do."""
        self._is_cut.clear()
        self.is_open.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        self.is_open.wait()
        if self._is_cut.is_set():
            client.close()
            return
        try:
            with client, socket.create_connection(("127.0.0.1", self.target)) as server:
                while not self._ended.is_set() and not self._is_cut.is_set():
                    self.is_open.wait()
                    for readable in select.select([client, server], [], [], 0.2)[0]:
                        data = readable.recv(65536)
                        if not data:
                            return
                        self.is_open.wait()
                        (client if readable is server else server).sendall(data)
        except OSError:
            return
