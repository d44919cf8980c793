"""Certificates for tests, made with the `openssl` program."""

import subprocess
from pathlib import Path


class Authority:
    """Signs certificates for `localhost` and 127.0.0.1."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.path = folder / "authority.pem"
        self._key = folder / "authority.key"
        self._openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=Longshore tests", "-keyout", self._key, "-out", self.path,
        )

    def issue(self, name: str, serial: int) -> tuple[Path, Path]:
        """A certificate with this serial number, and its key."""
        certificate, key, request = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        self._openssl(
            "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=localhost", "-keyout", key, "-out", request,
        )
        names = self.folder / "names"
        names.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self._openssl(
            "x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self._key, "-days", "2",
            "-set_serial", serial, "-extfile", names, "-out", certificate,
        )
        return certificate, key

    def _openssl(self, *arguments) -> None:
        command = ["openssl", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
