"""The official Python SDK's management functions, unmodified, over GraphQL."""

import contextlib

import pytest
import requests
import runpod
from runpod import error as sdk_error

from harness.client import Api, unique
from harness.server import ADMIN_KEY, QUICK
from harness.wait import until

L4 = "NVIDIA L4"
MACHINE = (
    QUICK.replace('gpu_sharing = "off"', "")
    + f"""
[[gpus]]
type = "{L4}"
count = 2
memory_gib = 24
[prices]
"{L4}" = 0.5
"""
)


@pytest.fixture(scope="module")
def api():
    """A server with two GPUs, and the SDK pointed at it."""
    from harness.server import Server

    server = Server(config=MACHINE).start()
    with pytest.MonkeyPatch.context() as patch, contextlib.closing(server):
        patch.setenv("RUNPOD_API_BASE_URL", server.url)
        patch.setattr(runpod, "api_key", ADMIN_KEY)
        patch.setattr(runpod, "endpoint_url_base", f"{server.url}/sdk/v2")
        yield Api(server)


def a_template(**more) -> dict:
    return runpod.create_template(
        unique("template"), "e2e", docker_start_cmd='python3 -u "my main.py"', is_serverless=True, **more
    )


def test_templates_are_made_as_the_sdk_asks(api):
    made = a_template(env={"MODEL": "base"}, ports="8888/http, 22/tcp", container_disk_in_gb=7, volume_mount_path="/m")
    stored = api.ok("GET", f"/v1/templates/{made['id']}")
    assert stored["dockerStartCmd"] == ["python3", "-u", "my main.py"] and stored["env"] == {"MODEL": "***"}
    assert stored["ports"] == ["8888/http", "22/tcp"] and stored["containerDiskInGb"] == 7 and stored["isServerless"]
    assert made["dockerArgs"] == "python3 -u 'my main.py'" and made["env"] == [{"key": "MODEL", "value": "***"}]
    with pytest.raises(sdk_error.QueryError, match=made["name"]):
        runpod.create_template(made["name"], "e2e")


def test_endpoints_are_made_listed_and_given_another_template(api):
    template = a_template()
    made = runpod.create_endpoint(
        unique("endpoint"), template["id"], gpu_ids=f"{L4},AMPERE_24", workers_max=0, idle_timeout=9, flashboot=True
    )
    assert made["gpuIds"] == f"{L4},AMPERE_24" and made["flashBootType"] == "FLASHBOOT"
    (listed,) = [endpoint for endpoint in runpod.get_endpoints() if endpoint["id"] == made["id"]]
    assert listed["idleTimeout"] == 9 and listed["version"] == 1 and listed["type"] == "QB"
    assert listed["workersStandby"] == 0 and listed["networkVolume"] is None and listed["env"] == []
    record = api.ok("GET", f"/v1/endpoints/{made['id']}")
    assert record["gpuTypeIds"] == [L4, "AMPERE_24"] and record["provider"] == "process" and record["flashboot"]

    other = a_template()
    assert runpod.update_endpoint_template(made["id"], other["id"]) == {"id": made["id"], "templateId": other["id"]}
    assert api.ok("GET", f"/v1/endpoints/{made['id']}")["version"] == 2


def test_an_endpoint_of_the_sdk_runs_jobs_of_the_sdk(api):
    template = api.template("environment.py")
    made = runpod.create_endpoint(unique("endpoint"), template["id"], gpu_count=2, workers_max=1, idle_timeout=60)
    output = runpod.Endpoint(made["id"]).run_sync({"input": {"x": 1}}, timeout=40)
    assert output["CUDA_VISIBLE_DEVICES"] == "0,1", "AMPERE_16 is what the SDK asks for by itself"
    (pod,) = [pod for pod in runpod.get_pods() if pod["name"] == made["name"]]
    assert pod["gpuCount"] == 2 and pod["machine"] == {"gpuDisplayName": L4} and pod["costPerHr"] == 1.0
    assert runpod.get_pod(pod["id"])["desiredStatus"] == "RUNNING"
    assert api.call("DELETE", f"/v1/endpoints/{made['id']}").status_code == 204
    until(lambda: not runpod.get_pods(), "the worker is gone", 30)


def test_gpus_are_those_of_the_machine(api):
    assert runpod.get_gpus() == [{"id": L4, "displayName": L4, "memoryInGb": 24}]
    gpu = runpod.get_gpu(L4, 2)
    assert gpu["maxGpuCount"] == 2 and gpu["lowestPrice"]["uninterruptablePrice"] == 1.0
    with pytest.raises(ValueError, match="No GPU found"):
        runpod.get_gpu("NVIDIA A40")


def test_the_user_is_the_key(api):
    user = runpod.get_user()
    assert user["id"] == "admin" and user["pubKey"] is None and user["networkVolumes"] == []
    with pytest.raises(sdk_error.QueryError, match="no user settings"):
        runpod.update_user_settings("ssh-ed25519 AAAA")


def test_registry_auths(api):
    made = runpod.create_container_registry_auth(unique("auth"), "user", "password")
    assert api.ok("GET", f"/v1/containerregistryauth/{made['id']}")["name"] == made["name"]
    with pytest.raises(sdk_error.QueryError, match="cannot be changed"):
        runpod.update_container_registry_auth(made["id"], "user", "other")
    runpod.delete_container_registry_auth(made["id"])
    assert api.call("GET", f"/v1/containerregistryauth/{made['id']}").status_code == 404


def test_pods_are_refused_with_the_reason(api):
    for call in (
        lambda: runpod.create_pod("p", "image"),
        lambda: runpod.create_pod("p", "image", L4),
        lambda: runpod.stop_pod("x"),
        lambda: runpod.resume_pod("x", 1),
        lambda: runpod.terminate_pod("x"),
    ):
        with pytest.raises(sdk_error.QueryError, match="make an endpoint instead"):
            call()


def test_a_wrong_key_is_what_the_sdk_takes_it_for(api):
    with pytest.raises(sdk_error.AuthenticationError):
        runpod.get_gpus(api_key="ls_unknown_0000")
    answer = requests.post(f"{api.server.url}/graphql?api_key={ADMIN_KEY}", json={"query": "{ myself { id } }"}, timeout=60)
    assert answer.status_code == 401, "keys belong into headers: addresses end up in logs"
    assert ADMIN_KEY not in api.server.log()


def test_what_is_refused_says_why(api):
    with pytest.raises(sdk_error.QueryError, match="no template has this id"):
        runpod.create_endpoint("x", "0123456789abcd")
    with pytest.raises(sdk_error.QueryError, match="workersMin"):
        runpod.create_endpoint("x", a_template()["id"], workers_min=5, workers_max=1)
