"""A process that has imported what a handler imports, and forks a worker for each request.

The launcher starts it as `python OPTIONS -c "from longshore_runtime import zygote; exec(*zygote.worker())"`, with a socket as
its input, on which the process reads one order, answers whether it can fork, and then gets the descriptors of a worker's
connection and of the shim's program for each worker. It ends when the launcher closes the socket.

A request makes two processes. The first becomes the worker's shim by executing the shim's program; the connection is the
shim's input and output. The second is its child and becomes the worker, so that the shim sees its end, and finds what it leaves
behind, as it does for a worker that it starts itself. They talk over a socket that is the shim's error output. Secrets go
from the launcher to the shim and from there to the worker; the zygote never reads them.
"""

import array
import ctypes
import fcntl
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import threading
import time

from . import imports

PROBE_S = 10
"""How long the probe of a fork may take, in seconds. A fork that cannot use OpenMP hangs."""

BYTES_MAX = 64 * 1024 * 1024
"""The longest order, in bytes."""

REASON_CHARS_MAX = 500
"""The longest reason not to fork, in characters."""

DEVICES = ("socket:", "/dev/nvidia", "/dev/dri", "/dev/kfd")
"""What an open file begins with that a fork cannot share."""


def worker():
    """Serves requests. Returns in each worker: the code that it runs and the namespace for it, the arguments of `exec`."""
    control = socket.socket(fileno=os.dup(0))
    _replace(os.open(os.devnull, os.O_RDONLY), 0)
    if sys.path and sys.path[0] == "":
        del sys.path[0]
    order = _receive(control)
    _end_with_the_launcher(control, True)
    why = _preload(order["modules"]) or _refusal(control.fileno())
    _end_with_the_launcher(control, False)
    _send(control, {"why": why and why[:REASON_CHARS_MAX]})
    if why is not None:
        os._exit(0)
    # The collector would touch, and so copy, the memory that all workers share.
    gc.collect()
    gc.freeze()
    # The exits of shims are the launcher's to see.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    channel = _serve(control)
    return _become(channel, order)


def _end_with_the_launcher(control, is_wanted):
    """Has the kernel end this process when the launcher closes the socket, also in the middle of an import. The launcher sends
    nothing meanwhile."""
    # The default of this signal ends a process.
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(control, fcntl.F_GETFL)
    fcntl.fcntl(control, fcntl.F_SETFL, flags | os.O_ASYNC if is_wanted else flags & ~os.O_ASYNC)


def _preload(names):
    """Imports the modules. Answers why this process must not fork; `None` if nothing speaks against it."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            # A worker may live without it, or fail by it, as with a plain start.
            continue
        except BaseException as error:
            return f"the import of {name} failed: {type(error).__name__}: {error}"
    return None


def _refusal(control):
    """Answers why a fork of this process would not work; `None` if nothing speaks against it."""
    if threading.active_count() > 1:
        others = (thread.name for thread in threading.enumerate() if thread is not threading.main_thread())
        return "an import started a thread: " + ", ".join(others)
    for name in imports.NEVER:
        if name in sys.modules:
            return f"{name} is imported by another package, and a fork cannot use it"
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + fd)
        except OSError:
            continue
        if int(fd) != control and target.startswith(DEVICES):
            return f"an import left {target} open"
    return _probe()


def _probe():
    """Tries in a fork whether CUDA and OpenMP still work there. Nothing else tells: both can be used by an import that leaves
    neither a Python thread nor an open device."""
    pid = os.fork()
    if pid == 0:
        _try_fork()
    end = _wait(pid, PROBE_S)
    if end == 0:
        return None
    return "an import used CUDA" if end == 2 else "an import used OpenMP"


def _try_fork():
    """Ends with 0 if this fork can use CUDA and OpenMP, with 2 if not CUDA; hangs or crashes if not OpenMP."""
    code = 1
    try:
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda._is_in_bad_fork():
            os._exit(2)
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            files = {line.split(None, 5)[5].strip() for line in maps if "libgomp" in line}
        nothing = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p)
        for file in files:
            ctypes.CDLL(file).GOMP_parallel(nothing, None, 2, 0)
        code = 0
    finally:
        os._exit(code)


def _wait(pid, seconds):
    """Answers the exit code of a child; a negative signal if one ended it, or if it took longer and was killed."""
    deadline = time.monotonic() + seconds
    ended, status = os.waitpid(pid, os.WNOHANG)
    while not ended:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, 0)
        else:
            time.sleep(0.005)
            ended, status = os.waitpid(pid, os.WNOHANG)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def _serve(control):
    """Forks a shim and its worker for each request. Returns only in a worker, with its socket to the shim."""
    while True:
        fds = _receive_fds(control)
        if not fds:
            os._exit(0)
        try:
            is_child = os.fork() == 0
        except OSError:
            # The launcher reads the end of the connection, and starts the worker without this process.
            is_child = False
        if is_child:
            control.close()
            return _begin(*fds)
        for fd in fds:
            os.close(fd)


def _begin(connection, program):
    """Becomes the shim in this process. Returns in its child, with the socket to the shim."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        os.setsid()
        arguments = json.loads(_read(connection, _length(_read(connection, 4))))
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.close(connection)
            os.close(program)
            ours.close()
            return theirs
        os.write(connection, struct.pack("!i", os.getpid()))
        for fd, to in ((connection, 0), (connection, 1), (ours.fileno(), 2)):
            os.dup2(fd, to)
        os.execve(program, arguments, os.environ)
    except BaseException:
        # The launcher reads the end of the connection.
        os._exit(127)


def _become(channel, order):
    """Turns this fork into the worker that the shim orders. Answers its code and its namespace."""
    try:
        channel.sendall(struct.pack("!i", os.getpid()))
        head, fds = _receive_with_fds(channel, 1)
        if len(fds) != 2:
            os._exit(1)
        wanted = json.loads(_read(channel.fileno(), _length(head + _read(channel.fileno(), 3))))
        os.chdir(wanted["cwd"])
        for fd, to in zip(fds, (1, 2)):
            _replace(fd, to)
        os.environ.clear()
        os.environ.update(wanted["env"])
        _show(order["command"], wanted["env"], wanted["mark"])
        _forget_the_zygote(wanted["cwd"])
        run = _program(order)
    except BaseException as error:
        channel.sendall(f"{type(error).__name__}: {error}".replace("\n", " ").encode("utf-8", "replace"))
        os._exit(1)
    channel.sendall(b"ok")
    channel.close()
    return run


def _forget_the_zygote(cwd):
    """Renews what Python and its packages have kept of the process that this one was forked from."""
    import random

    time.tzset()
    random.seed()
    modules = sys.modules
    if "tempfile" in modules:
        modules["tempfile"].tempdir = None
    if "numpy.random" in modules:
        modules["numpy"].random.seed()
    if "torch" in modules:
        modules["torch"].seed()
    if "multiprocessing.process" in modules:
        process = modules["multiprocessing.process"]
        # `spawn` and `forkserver` look for the script from there.
        process.ORIGINAL_DIR = cwd
        process.current_process().authkey = os.urandom(32)


def _program(order):
    """Sets what a plain start of the command sets. Answers the code and the namespace of the command's program."""
    command, argv = order["command"], order["argv"]
    words = len(argv)
    kind, target = command[-words - 1] if len(command) > words else "", command[-words]
    if kind == "-m":
        code = compile(f"import runpy; runpy._run_module_as_main({target!r})", "<zygote>", "exec")
        first = os.getcwd()
    elif kind == "-c":
        code, first = compile(target, "<string>", "exec", dont_inherit=True), ""
    else:
        path = os.path.abspath(target) if sys.version_info >= (3, 9) else target
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        first = os.path.dirname(os.path.realpath(path))
    sys.argv = ([kind] if kind in ("-m", "-c") else [target]) + argv[1:]
    sys.orig_argv = list(command)
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, first)
    # Pickles, `multiprocessing` and threads that outlive the program look for its names in the real `__main__`.
    space = sys.modules["__main__"].__dict__
    for name in [name for name in space if not (name.startswith("__") and name.endswith("__"))]:
        del space[name]
    if kind not in ("-m", "-c"):
        from importlib.machinery import SourceFileLoader

        space.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    return code, space


def _show(command, env, mark):
    """Shows the worker's command and environment in `/proc`, where the kernel has put those of the zygote. The variable `mark`
    comes first, so that the launcher finds the processes of the worker by it even if not all fits."""
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    words_at, words_end, env_at, env_end = (int(field) for field in fields[45:49])
    _write(words_at, words_end - words_at, [os.fsencode(word) for word in command])
    names = sorted(env, key=lambda name: name != mark)
    _write(env_at, env_end - env_at, [os.fsencode(f"{name}={env[name]}") for name in names])


def _write(at, size, texts):
    """Fills `size` bytes of memory with those texts that fit, each with a zero byte at its end, and zeros. Nothing else may
    refer to the memory."""
    written = bytearray()
    for text in texts:
        if len(written) + len(text) < size:
            written += text + b"\0"
    ctypes.memmove(at, bytes(written.ljust(size, b"\0")), size)


def _replace(fd, to):
    """Makes `to` the only number of an open file."""
    if fd != to:
        os.dup2(fd, to)
        os.close(fd)


def _send(sock, value):
    text = json.dumps(value).encode()
    sock.sendall(struct.pack("!I", len(text)) + text)


def _receive(sock):
    return json.loads(_read(sock.fileno(), _length(_read(sock.fileno(), 4))))


def _length(head):
    (length,) = struct.unpack("!I", head)
    if length > BYTES_MAX:
        raise ValueError(f"a message of {length} bytes")
    return length


def _read(fd, count):
    """Reads exactly `count` bytes, so that what follows is left for another reader."""
    parts = []
    while count > 0:
        part = os.read(fd, min(count, 1 << 20))
        if not part:
            raise EOFError("the other side has closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _receive_fds(sock):
    """Answers the two descriptors of a request; none once the launcher has closed the socket."""
    return _receive_with_fds(sock, 1)[1]


def _receive_with_fds(sock, count):
    """Reads `count` bytes and the descriptors that came with them."""
    fds = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(count, socket.CMSG_LEN(2 * fds.itemsize))
    for level, kind, part in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(part[: len(part) - len(part) % fds.itemsize])
    return data, list(fds)
