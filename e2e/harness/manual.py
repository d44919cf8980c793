"""Running the examples of the manual as they stand there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).parent.parent.parent / "docs" / "manual"
E2E = Path(__file__).parent.parent


def examples(page: str, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def run(language: str, code: str, **environment: str) -> str:
    """Runs an example to its end; answers what it wrote."""
    command = {
        "sh": ["sh", "-euc", code],
        "python": [sys.executable, "-c", code],
        "js": [shutil.which("node"), "--input-type=module", "-e", code],
    }[language]
    done = subprocess.run(
        command, cwd=E2E, env={**os.environ, "NO_PROXY": "127.0.0.1", **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert done.returncode == 0, f"{code}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout
