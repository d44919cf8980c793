"""Folders with a Dockerfile: built by the server's Docker daemon, and deployed."""

import json

from harness.client import Api
from harness.docker_endpoint import IMAGE, daemon, docked, needs_docker  # noqa: F401
from test_docker_code import longshore

pytestmark = needs_docker


def template(api: Api) -> dict:
    return api.ok("GET", "/v1/endpoints/built?includeTemplate=true")["template"]


def test_a_folder_with_a_dockerfile_is_built_and_deployed_and_a_bad_one_is_not(docked, tmp_path):
    def write(name: str, text: str) -> None:
        (tmp_path / name).write_text(text)

    def deploy():
        return longshore(docked, "deploy", "--provider", "docker", str(tmp_path))

    write("Dockerfile", f"FROM {IMAGE}\nCOPY . /files\nRUN echo made here > /files/made\n")
    write(".dockerignore", "*.env\n")
    write("longshore.toml", 'name = "built"\n')
    write("kept.txt", "kept")
    write("hush.env", "hush")
    write("test_input.json", json.dumps({"input": {"do": "list", "path": "/files"}}))
    done = deploy()
    said = done.stdout + done.stderr
    assert done.returncode == 0 and " : RUN echo made here" in said, said
    assert '"kept.txt"' in said and '"made"' in said and '"hush.env"' not in said, said
    api = Api(docked)
    first = template(api)
    assert first["imageName"].startswith("longshore-build/built:"), first
    again = deploy()
    assert again.returncode == 0 and "nothing changed" in again.stderr, again.stderr

    for text, reason in ((f"FROM {IMAGE}\nRUN echo so far; exit 3\n", "returned a non-zero code: 3"), ("FROMM x\n", "FROMM")):
        write("Dockerfile", text)
        refused = deploy()
        assert refused.returncode == 1 and reason in refused.stderr, refused.stderr
        assert "nothing was deployed" in refused.stderr and ("so far" in refused.stderr or "FROMM" in text), refused.stderr
    assert template(api) == first
    assert api.call("DELETE", "/v1/endpoints/built").status_code < 300
