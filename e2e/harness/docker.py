"""A Docker daemon and a registry of the tests' own, and an image that is made of this machine's files: nothing is
downloaded, and no other daemon is touched."""

import io
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

import requests

from .wait import until

WORKER = Path(__file__).with_name("docker_worker.py")
PASSWORD = "pw????>>>>~~~~"
"""Its base64 has characters that differ between the two alphabets: a client that chooses the wrong one is refused."""
USERS = "ada:$2y$05$YIKEywND/dnl7QOPeU2QD.5WUgBLyYc73gLhEhMHjlzxOoDQ1TRwW\n"
"""The line of `htpasswd -nbB ada` for that password."""

REASON = "LONGSHORE_TESTS_WITHOUT_DOCKER"
"""Variable by which `cargo xtask test` says why no daemon can run; empty: one can."""

MODULES = "import encodings.idna, http.client, json, os, signal, sys, urllib.parse"
FILES = MODULES + "; print('\\n'.join(filter(None, (getattr(m, '__file__', None) for m in list(sys.modules.values())))))"


def reason_not_to_run() -> str | None:
    """Why no daemon can run here; None if one can."""
    if REASON in os.environ:
        return os.environ[REASON] or None
    for program in ("dockerd", "docker", "docker-registry"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if os.geteuid() != 0:
        return "a Docker daemon needs root"
    daemon = DockerDaemon()
    try:
        daemon.start()
    except (AssertionError, RuntimeError) as error:
        return f"dockerd does not run here: {str(error).splitlines()[-1]}"
    finally:
        daemon.close()
    return None


class DockerDaemon:
    """A daemon with folders and a socket of its own, without networks: containers use the host's or none."""

    def __init__(self, disk_mb: int | None = None):
        """`disk_mb`: the size of the disk for images; None: that of this machine."""
        self.folder = Path(tempfile.mkdtemp(prefix="ls-docker-"))
        self.disk = self.folder / "data-root"
        self.has_disk = disk_mb is not None
        if self.has_disk:
            self.disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk_mb}m", "tmpfs", str(self.disk)], check=True)
        self.socket = self.folder / "docker.sock"
        self.process: subprocess.Popen | None = None

    def start(self) -> "DockerDaemon":
        self.restart()
        return self

    def restart(self) -> None:
        """Starts the daemon, again if it ends, as an init system does: on a busy machine it gives up waiting for its own
        containerd."""
        self._launch()

        def answers() -> bool:
            if self.process.poll() is not None:
                self._launch()
            assert self._is_up(), (self.folder / "log").read_text()[-3000:]
            return True

        until(answers, "the daemon answers", 60)

    def kill(self) -> None:
        """Kills the daemon itself, with SIGKILL. Its containers go on until the next one starts."""
        self.process.kill()
        self.process.wait(20)

    def _launch(self) -> None:
        folders = [f"--{name}={self.folder / name}" for name in ("data-root", "exec-root")]
        command = ["dockerd", f"--host=unix://{self.socket}", *folders, f"--pidfile={self.folder / 'pid'}"]
        command += ["--bridge=none", "--iptables=false", "--ip-forward=false"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _is_up(self) -> bool:
        return self.docker("version", check=False).returncode == 0

    def docker(self, *words: str, check: bool = True, **more) -> subprocess.CompletedProcess:
        command = ["docker", f"--host=unix://{self.socket}", "--config", str(self.folder / "config"), *words]
        return subprocess.run(command, check=check, capture_output=True, timeout=120, **more)

    def containers(self) -> list[str]:
        """The names of all containers."""
        listed = self.docker("ps", "--all", "--format", "{{.Names}}").stdout.decode()
        return listed.split()

    def close(self) -> None:
        if self.process and self.process.poll() is None:
            for name in self.containers():
                self.docker("rm", "--force", name, check=False)
            self.process.terminate()
            self.process.wait(60)
        if self.has_disk:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def make_image(self, name: str, ballast: bytes = b"") -> None:
        """An image with a Python interpreter, the modules that the worker needs, a shell, and a file that is `ballast`."""
        changes = [f"--change=ENTRYPOINT [{as_json(python())}, \"-u\"]", '--change=CMD ["/worker.py"]', "--change=WORKDIR /tmp"]
        self.docker("import", *changes, "-", name, input=root_filesystem(ballast))


class Registry:
    """Debian's registry on the loopback address, with a user `ada`."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ls-registry-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.folder / "users").write_text(USERS)
        config = self.folder / "config.yml"
        config.write_text(
            f"version: 0.1\nstorage: {{filesystem: {{rootdirectory: {self.folder / 'data'}}}}}\n"
            f"http: {{addr: '127.0.0.1:{self.port}'}}\n"
            f"auth: {{htpasswd: {{realm: tests, path: {self.folder / 'users'}}}}}\n"
        )
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
        until(self._answers, "the registry answers", 20)

    def _answers(self) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{self.port}/v2/", timeout=5).status_code == 401
        except requests.ConnectionError:
            return False

    def push(self, daemon: DockerDaemon, image: str) -> str:
        """Pushes an image of the daemon; answers its name in the registry."""
        name = f"127.0.0.1:{self.port}/{image}"
        daemon.docker("tag", image, name)
        login = ["login", "--username", "ada", "--password-stdin", f"127.0.0.1:{self.port}"]
        daemon.docker(*login, input=PASSWORD.encode())
        daemon.docker("push", name)
        daemon.docker("rmi", name)
        return name

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class StallingProxy:
    """Forwards connections to a registry, and holds each answer back after `bytes_max` bytes until it is released."""

    def __init__(self, port: int, bytes_max: int):
        self.target, self.bytes_max = port, bytes_max
        self.released = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self._copy, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, self.bytes_max), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket, bytes_max: int | None) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                passed += len(data)
                if bytes_max is not None and passed > bytes_max:
                    self.released.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self.released.set()
        self.listener.close()


def python() -> str:
    """The interpreter itself, not the link of a virtual environment."""
    return os.path.realpath(sys.executable)


def as_json(text: str) -> str:
    return f'"{text}"'


def root_filesystem(ballast: bytes = b"") -> bytes:
    """The files of the image as a tar archive."""
    listed = subprocess.run([python(), "-I", "-c", FILES], check=True, capture_output=True, text=True).stdout.split()
    programs = [python(), shutil.which("dash") or "/bin/sh"]
    libraries = needed([*programs, *(file for file in listed if file.endswith(".so"))])
    # The interpreter finds its library folder by this file.
    landmark = os.path.join(os.path.dirname(os.__file__), "os.py")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        for folder in ("tmp", "usr/bin", "usr/lib", "usr/lib64"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777
            archive.addfile(entry)
        for file in {python(), landmark, *listed, *libraries}:
            archive.add(os.path.realpath(file), inside(file), recursive=False)
        archive.add(os.path.realpath(programs[1]), "usr/bin/sh", recursive=False)
        entry = tarfile.TarInfo("usr/bin/python3")
        entry.type, entry.linkname = tarfile.SYMTYPE, python()
        archive.addfile(entry)
        archive.add(WORKER, "worker.py", recursive=False)
        entry = tarfile.TarInfo("ballast")
        entry.size = len(ballast)
        archive.addfile(entry, io.BytesIO(ballast))
    return out.getvalue()


def needed(files: list[str]) -> set[str]:
    """The shared libraries of programs, as the loader looks them up."""
    lines = subprocess.run(["ldd", *files], check=True, capture_output=True, text=True).stdout.splitlines()
    # A line that begins with a path names the file whose libraries follow.
    return {word for line in lines if line[:1].isspace() for word in line.split() if word.startswith("/")}


def inside(file: str) -> str:
    """The path of a file in the image, where `/lib` and its like are links into `/usr`."""
    first = file.lstrip("/")
    return f"usr/{first}" if first.split("/")[0] in ("bin", "lib", "lib64") else first


if __name__ == "__main__":
    print(reason_not_to_run() or "")
