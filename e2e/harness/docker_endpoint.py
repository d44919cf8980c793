"""What the tests of workers in containers share: fixtures of a daemon and a registry, and endpoints whose workers are containers."""

import json

import pytest

from . import docker
from .client import Api, unique
from .docker import DockerDaemon, Registry
from .server import QUICK, Server
from .wait import until

REASON = docker.reason_not_to_run()
needs_docker = pytest.mark.skipif(REASON is not None, reason=f"NOT RUN: workers in containers: {REASON}")

IMAGE = "longshore-test-worker:1"


@pytest.fixture(scope="module")
def daemon():
    daemon = DockerDaemon().start()
    daemon.make_image(IMAGE)
    yield daemon
    daemon.close()


@pytest.fixture(scope="module")
def registry():
    registry = Registry()
    yield registry
    registry.close()


def config(daemon, **more) -> str:
    lines = [f'{name} = {json.dumps(value)}' for name, value in more.items()]
    return QUICK + f'[docker]\nsocket = "unix://{daemon.socket}"\n' + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def docked(daemon):
    """A server that runs containers, and deployed folders in the test image."""
    server = Server(config=config(daemon, base_image=IMAGE)).start()
    yield server
    server.close()


@pytest.fixture
def api(docked) -> Api:
    return Api(docked)


def endpoint(api: Api, image: str = IMAGE, template: dict | None = None, **fields):
    """An endpoint whose workers are containers."""
    inline = {"name": unique("template"), "imageName": image, **(template or {})}
    made = api.ok("POST", "/v1/templates", json=inline)
    return api.endpoint(provider="docker", computeType="CPU", templateId=made["id"], **{"workersMax": 1, **fields})


def cause(endpoint, code: str) -> dict:
    """The first cause of the waiting jobs, once it is this one."""

    def told():
        cause = endpoint.ok("GET", "/explain")["cause"]
        assert cause["code"] == code, cause
        return cause

    return until(told, f"the cause {code}", 30)


def end(endpoint) -> None:
    """Deletes an endpoint."""
    assert endpoint.api.call("DELETE", f"/v1/endpoints/{endpoint.id}").status_code < 300
