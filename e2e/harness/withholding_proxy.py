"""A proxy that passes requests on and withholds the responses to some of them: the server has done what they ask for."""

import select
import socket
import threading

from .wait import until


class WithholdingProxy:
    """Forwards connections to the port that `forward_to` names. After `withhold`, a connection over which a request with this text
    goes passes no more bytes back."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._to: int | None = None
        self._text: bytes | None = None
        self._lock = threading.Lock()
        self._withheld = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "WithholdingProxy":
        self._accepting.start()
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def forward_to(self, port: int) -> None:
        self._to = port

    def withhold(self, text: str) -> None:
        self._text = text.encode()

    def wait_withheld(self, count: int) -> None:
        """Waits until `count` responses have come and were withheld."""

        def there():
            assert self._withheld >= count, f"{self._withheld} of {count} responses have come"
            return True

        until(there, f"{count} responses are withheld", 30)

    def close(self) -> None:
        """Refuses connections from now on, as the port of a process that has ended."""
        try:
            # Closing alone does not wake an accept.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It was closed before.
            return
        self._listener.close()
        self._accepting.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        withholds = has_come = False
        try:
            with client, socket.create_connection(("127.0.0.1", self._to)) as server:
                while True:
                    for readable in select.select([client, server], [], [])[0]:
                        data = readable.recv(65536)
                        if not data:
                            return
                        if readable is client:
                            withholds = withholds or (self._text is not None and self._text in data)
                            server.sendall(data)
                        elif not withholds:
                            client.sendall(data)
                        elif not has_come:
                            has_come = True
                            with self._lock:
                                self._withheld += 1
        except OSError:
            # One of the two sides has ended.
            return
