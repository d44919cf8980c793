"""The files in dist/systemd: systemd accepts them, and the server accepts the unit's command line."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.server import Server, binary

FOLDER = Path(__file__).parent.parent / "dist/systemd"
UNIT = FOLDER / "longshore.service"
# Keys of the unit that a systemd before 254 does not know.
NEW_KEYS = ("DelegateSubgroup",)


def command_of_unit() -> list[str]:
    (line,) = [line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart=")]
    return shlex.split(line.removeprefix("ExecStart="))


def test_the_server_accepts_the_command_line_of_the_unit():
    program, serve, *flags = command_of_unit()
    assert (Path(program).name, serve) == ("longshore", "serve")
    at = flags.index("--data-dir")
    assert flags[at + 1] == "/var/lib/longshore"
    # The harness brings a data directory of its own.
    server = Server(flags=(*flags[:at], *flags[at + 2 :])).start()
    try:
        assert server.log_path.read_text().splitlines()[0].startswith(("{", "listening")), "JSON log lines, as the unit asks"
    finally:
        server.close()


def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(command_of_unit()[0], binary()))
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    faults = [line for line in ran.stderr.splitlines() if unit.name in line and not any(key in line for key in NEW_KEYS)]
    assert faults == []


@pytest.mark.parametrize("program", ["systemd-sysusers", "systemd-tmpfiles"])
def test_systemd_accepts_the_user_and_the_directories(program, tmp_path):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    name = program.removeprefix("systemd-")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    if name == "tmpfiles":
        # The directories belong to the user that the other file creates.
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nlongshore:x:990:990::/var/lib/longshore:/bin/sh\n")
        (root / "etc/group").write_text("root:x:0:\nlongshore:x:990:\n")
    flags = [f"--root={root}", *(["--create"] if name == "tmpfiles" else [])]
    folder = root / f"usr/lib/{name}.d"
    folder.mkdir(parents=True)
    shutil.copy(FOLDER / f"longshore.{name}", folder / "longshore.conf")
    ran = subprocess.run([program, *flags, "longshore.conf"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    if name == "sysusers":
        assert "longshore:x:" in (root / "etc/passwd").read_text()
    else:
        data = root / "var/lib/longshore"
        assert oct(data.stat().st_mode & 0o777) == "0o700"
        assert (data.stat().st_uid, (root / "etc/longshore").stat().st_gid) == (990, 990)
