"""The examples for load balancing, deployed and run with the command line as a person does."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import requests
import websockets
from test_cli import Cli
from test_dev import EXAMPLES, environment

from harness import event_loop
from harness.client import Api, Endpoint, unique
from harness.server import ADMIN_KEY, binary
from harness.wait import until

KEY = {"Authorization": f"Bearer {ADMIN_KEY}"}


def example(name: str, parent: Path) -> Path:
    """A copy whose packages are those of the tests: nothing has to be installed."""
    target = parent / unique(name)
    shutil.copytree(EXAMPLES / name, target, ignore=shutil.ignore_patterns(".longshore"))
    (target / "requirements.txt").unlink()
    manifest = target / "longshore.toml"
    manifest.write_text(manifest.read_text().replace('"python"', f'"{sys.executable}"'))
    return target


def deployed(parent: Path, server, name: str) -> tuple[Cli, Path, Endpoint]:
    target = example(name, parent)
    cli = Cli(parent / "home", server.url)
    told = cli.ok("deploy", target)
    endpoint = Endpoint(Api(server), Api(server).ok("GET", f"/v1/endpoints/{target.name}"))
    assert endpoint.record["type"] == "LB" and f"{server.url}/lb/{target.name}/" in told.out + told.err, told
    return cli, target, endpoint


def test_the_fastapi_example_is_deployed_and_replaced(tmp_path, server):
    cli, target, endpoint = deployed(tmp_path, server, "fastapi")
    assert endpoint.record["lb"]["maxConcurrency"] == 50 and endpoint.record["scalerType"] == "REQUEST_COUNT"
    url = f"{server.url}/lb/{target.name}"
    answer = requests.get(f"{url}/?name=Ada", headers=KEY, timeout=120)
    assert answer.json() == {"greeting": "Hello, Ada!"}
    with requests.get(f"{url}/count?to=2", headers=KEY, stream=True, timeout=120) as events:
        assert [line for line in events.iter_lines() if line] == [b"data: 1", b"data: 2"]
    app = target / "app.py"
    app.write_text(app.read_text().replace("Hello, ", "Goodbye, "))
    cli.ok("deploy", target)
    until(
        lambda: requests.get(url, headers=KEY, timeout=120).json() == {"greeting": "Goodbye, world!"},
        "the new version answers", 60,
    )


def test_the_websocket_example_is_deployed(tmp_path, server):
    _, target, _ = deployed(tmp_path, server, "websocket")

    async def talk() -> str:
        url = f"{server.url}/lb/{target.name}/ws".replace("http", "ws", 1)
        async with websockets.connect(url, additional_headers=KEY, open_timeout=120) as connection:
            await connection.send("hello")
            return await connection.recv()

    assert event_loop.run(talk()) == "HELLO"


def test_dev_runs_the_fastapi_example_and_prints_its_address(tmp_path):
    target = example("fastapi", tmp_path)
    log = tmp_path / "log"
    env = environment() | {"XDG_CONFIG_HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [binary(), "dev", str(target), "--port", "0"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env
        )
    try:
        def request() -> tuple[str, str]:
            assert process.poll() is None, log.read_text()
            lines = [line.strip() for line in log.read_text().splitlines()]
            (address,) = [line for line in lines if line.startswith("http") and line.endswith(f"/lb/{target.name}/")] or [""]
            (header,) = [line for line in lines if line.startswith("-H 'Authorization: Bearer ")] or [""]
            return address and header and (address, header.split("'")[1].partition(": ")[2])

        address, authorization = until(request, "the address is printed", 140)
        answer = requests.get(address, headers={"Authorization": authorization}, timeout=120)
        assert answer.json() == {"greeting": "Hello, world!"}, log.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130), log.read_text()
