"""`DOCKER_HOST` of a daemon that this server does not use. No daemon is needed for that."""

import pytest

from harness.client import Api, unique
from harness.server import QUICK, Server


@pytest.mark.parametrize("address", ["tcp://ada:hush@10.0.0.9:2376", "ssh://ada:hush@gpu-3"])
def test_a_remote_daemon_is_refused_in_words(address):
    server = Server(config=QUICK)
    server.environment["DOCKER_HOST"] = address
    try:
        api = Api(server.start())
        (line,) = [line for line in server.log().splitlines() if "DOCKER_HOST names no unix socket" in line]
        assert address.partition("://")[0] in line and "hush" not in server.log()
        template = api.template()["id"]
        wanted = {"name": unique("endpoint"), "templateId": template, "provider": "docker"}
        refused = api.call("POST", "/v1/endpoints", json=wanted)
        assert refused.status_code == 400 and "this server starts no containers" in refused.text, refused.text
        assert "DOCKER_HOST" in refused.text and "unix" in refused.text, refused.text
    finally:
        server.close()
