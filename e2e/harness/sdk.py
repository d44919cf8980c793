"""The official SDK in other versions than the installed one: unpacked wheels that PYTHONPATH names."""

import os
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import make_known  # noqa: E402

WHEELS = ROOT / ".tools" / "sdk"

SHORT = ("1.7.13", "1.12.0")
"""The oldest and the newest kind of scaler that the worker runtime edits."""


FILELOCK = "3.20.0"
"""A package that versions from 1.7.13 to 1.10.0 need and the installed one does not."""


EDITED = make_known.VERSIONS[make_known.VERSIONS.index("1.7.6") :]
"""Every version whose scaler the worker runtime edits."""

IS_LONG = os.environ.get("LONGSHORE_SDK_VERSIONS") == "all"
"""Whether to test every version, with and without the runtime."""

VERSIONS = EDITED if IS_LONG else SHORT
"""The versions that this run tests."""


def python_path(version: str) -> str:
    """The PYTHONPATH by which Python imports this version of the SDK instead of the installed one."""
    return f"{_unpacked('runpod', version)}:{_unpacked('filelock', FILELOCK)}"


def _unpacked(package: str, version: str) -> Path:
    """The folder of a package, fetched from PyPI once."""
    folder = WHEELS / f"{package}-{version}"
    if not folder.exists():
        WHEELS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=WHEELS) as new:
            files = Path(new) / "files"
            with zipfile.ZipFile(make_known.wheel(version, WHEELS, package)) as wheel:
                wheel.extractall(files)
            try:
                files.rename(folder)
            except OSError:
                # Another test process was faster.
                assert folder.exists(), folder
    return folder
