"""A disk that fails on command, under a server and without root: see `crates/disk-faults/disk.c`."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "crates/disk-faults/disk.c"
CONTROL_BYTES = 256


class Disk:
    """The disk under one folder, which need not exist yet. It works until it is told to fail."""

    def __init__(self, folder: Path, workshop: Path):
        library = workshop / "disk.so"
        command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
        subprocess.run(command, check=True)
        self._control = workshop / "disk.control"
        self._control.write_bytes(bytes(CONTROL_BYTES))
        self.environment = {
            "LD_PRELOAD": str(library),
            "DISK_FAULTS_FOLDER": str(folder.resolve()),
            "DISK_FAULTS_CONTROL": str(self._control),
        }

    def fail(self, *faults: str) -> None:
        """From now on these operations fail, and no others: `write ENOSPC`, `sync EIO .log`."""
        text = "\n".join(faults).encode()
        assert len(text) < CONTROL_BYTES
        # In place: the server has the file mapped.
        with self._control.open("r+b") as control:
            control.write(text.ljust(CONTROL_BYTES, b"\0"))

    def work(self) -> None:
        """From now on nothing fails."""
        self.fail()
