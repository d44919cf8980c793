"""A server for each module: the lists of the console show what the module's tests made, and nothing of others."""

import pytest

from harness.client import Api
from harness.server import Server


@pytest.fixture(scope="module")
def server():
    """The server whose console the tests of a module open."""
    server = Server(flags=("--allow-private-webhooks",)).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def api(server) -> Api:
    """The management API of that server."""
    return Api(server)
