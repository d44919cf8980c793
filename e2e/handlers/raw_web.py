"""A worker that serves HTTP by hand, so that it can answer what no server library answers."""

import os
import socket
import struct
import threading
import time

STARTED = time.monotonic()
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n%s\r\n"
AWAY = b"Location: http://169.254.169.254/latest/meta-data"
released = threading.Event()
cut = threading.Event()
"""The connection of a request ended before its body."""


def read_head(connection):
    """The request line and headers, and what came after them; `None` at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, rest = data.split(b"\r\n\r\n", 1)
    return head, rest


def receive(connection, bytes_max=65536):
    """What comes next of a body that is not complete."""
    piece = connection.recv(bytes_max)
    if not piece:
        cut.set()
        raise ConnectionAbortedError
    return piece


def answer(status, body=b"", *headers):
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


def ping():
    mode = os.environ.get("PING", "healthy")
    if "PING_FILE" in os.environ:
        with open(os.environ["PING_FILE"]) as file:
            mode = file.read()
    if mode == "silent":
        time.sleep(3600)
    if mode == "late" and time.monotonic() - STARTED < 1.5:
        return answer(b"204 No Content")
    if mode == "away":
        return answer(b"302 Found", b"", AWAY)
    return answer({"healthy": b"200 OK", "late": b"200 OK", "initializing": b"204 No Content"}.get(mode, b"500 Sick"))


def serve(connection):
    while True:
        got = read_head(connection)
        if got is None:
            return
        head, rest = got
        target = head.split(b" ")[1]
        print(target.decode(), flush=True)
        if target == b"/ping":
            connection.sendall(ping())
        elif target == b"/lost":
            connection.sendall(answer(b"404 Not Found"))
        elif target == b"/close":
            return
        elif target == b"/half":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
            return
        elif target == b"/half-chunked":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            return
        elif target == b"/early":
            connection.sendall(answer(b"413 Too Large", b"no", b"Connection: close"))
            # A close with unread bytes would be a reset, which may overtake the answer: the rest is read and dropped.
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
            return
        elif target in (b"/early-close", b"/early-reset"):
            connection.sendall(answer(b"413 Too Large", b"no", b"Connection: close"))
            if target == b"/early-reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # The unread rest of the body makes a close a reset, too.
            return
        elif target == b"/early-half":
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 100\r\n\r\nonly this")
            return
        elif target == b"/garbage":
            connection.sendall(b"SSH-2.0-nothing\r\n\r\n")
            return
        elif target == b"/folded":
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: 1\r\n X-B: 2\r\nContent-Length: 0\r\n\r\n")
        elif target == b"/two-lengths":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")
        elif target == b"/head-bomb":
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-Bomb: " + b"b" * 4_000_000 + b"\r\n\r\n")
        elif target == b"/many-headers":
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-A: 1\r\n" * 100_000 + b"\r\n")
        elif target == b"/two-answers":
            # More than what was asked for, as a server does that sends a body to HEAD.
            connection.sendall(answer(b"200 OK", b"hello") + answer(b"200 OK", b"evil"))
        elif target == b"/two-framings":
            framings = b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + framings + b"\r\n6\r\nabcdef\r\n0\r\n\r\n")
        elif target == b"/coded":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        elif target == b"/head-only":
            connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n")
            return
        elif target == b"/own-trailers":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Longshore-A, X-T\r\n\r\n")
            connection.sendall(b"0\r\nX-Longshore-A: 1\r\nX-T: 2\r\n\r\n")
        elif target.startswith(b"/lines?"):
            lines = [b"X-A: %d" % number for number in range(int(target.split(b"?")[1]) - 1)]
            connection.sendall(answer(b"200 OK", b"", *lines))
        elif target == b"/upgrade-unasked":
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nboo")
        elif target == b"/silent":
            time.sleep(3600)
        elif target == b"/held":
            # Answers once the file is there.
            while not os.path.exists(os.environ["RELEASE_FILE"]):
                time.sleep(0.02)
            connection.sendall(answer(b"200 OK", b"held", b"X-Pid: %d" % os.getpid()))
        elif target == b"/deaf":
            # No further connection is accepted.
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            connection.sendall(answer(b"200 OK", b"", b"Connection: close"))
            return
        elif target == b"/drip":
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while True:
                connection.sendall(b"x")
                time.sleep(0.1)
        elif target.startswith((b"/send?", b"/send-end?")):
            # These bytes, and then the end of the connection.
            connection.sendall(bytes.fromhex(target.split(b"?")[1].decode()))
            if target.startswith(b"/send-end?"):
                return
        elif target.startswith(b"/flood?"):
            left = int(target.split(b"?")[1])
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % left)
            while left > 0:
                left -= connection.send(b"f" * min(left, 1 << 20))
        elif target == b"/hints":
            own = b"X-Longshore-Error: forged\r\nConnection: X-Hop\r\nX-Hop: 1\r\nContent-Length: 9\r\n"
            connection.sendall(HINTS % own + b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"200 OK", b"after hints"))
        elif target == b"/hints-held":
            connection.sendall(HINTS % b"")
            released.wait()
            connection.sendall(answer(b"200 OK", b"after hints"))
        elif target == b"/release":
            released.set()
            connection.sendall(answer(b"200 OK"))
        elif target == b"/cut":
            cut.wait()
            connection.sendall(answer(b"200 OK"))
        elif target == b"/hints-flood":
            hint = HINTS % (b"X-Long: " + b"h" * 10_000 + b"\r\n")
            while True:
                connection.sendall(hint)
        elif target == b"/swallow":
            length = int(head.split(b"ontent-length: ")[-1].split(b"\r\n")[0])
            left = length - len(rest)
            while left > 0:
                left -= len(receive(connection, 1 << 20))
            connection.sendall(answer(b"200 OK", b"swallowed %d" % length))
        elif target == b"/away":
            connection.sendall(answer(b"302 Found", b"", AWAY))
        elif target == b"/cors":
            allowed = b"Access-Control-Allow-Origin: https://app.example", b"Access-Control-Expose-Headers: X-Cost"
            connection.sendall(answer(b"200 OK", b"", *allowed))
        elif target == b"/pause":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
            time.sleep(3600)
        elif target == b"/until-close":
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nto the end")
            return
        elif target == b"/trailers":
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5;ext=1\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n"
            )
        elif target == b"/raw":
            # The head as it came, and the body as far as its length says.
            length = 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            while b"transfer-encoding: chunked" not in head.lower() and len(rest) < length:
                rest += receive(connection)
            end = b"\r\n\r\n" if b"trailer: " in head.lower() else b"0\r\n\r\n"
            while b"transfer-encoding: chunked" in head.lower() and not rest.endswith(end):
                rest += receive(connection)
            connection.sendall(answer(b"200 OK", head + b"\r\n\r\n" + rest))
        else:
            connection.sendall(answer(b"200 OK", b"hello", b"X-Pid: %d" % os.getpid()))


def guarded(connection):
    with connection:
        try:
            serve(connection)
        except OSError:
            pass


listener = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=1024)
while True:
    try:
        accepted, _ = listener.accept()
    except OSError:
        # It is deaf now, and goes on.
        time.sleep(3600)
        continue
    threading.Thread(target=guarded, args=(accepted,), daemon=True).start()
