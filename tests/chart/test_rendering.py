"""The chart as Helm itself renders it. Skipped where its library (helm-python-sdk on PyPI) is not installed."""

import base64
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

helm = pytest.importorskip("helm_python", reason="Helm's library is not installed: pip install helm-python-sdk")

CHART = Path(__file__).resolve().parents[2] / "charts" / "vllm"
# As they arrive from Pulumi: every number is a float.
VALUES: dict[str, Any] = {
    "chartHash": "4f5e",
    "image": "vllm/vllm-openai:v0.29.0",
    "replicas": 2.0,
    "gpus": 8.0,
    "cpus": 96.0,
    "memoryMib": 3875150.0,
    "sharedMemoryGib": 50.0,
    "args": ["s3://bucket/k3", "--attention-config", '{"mla_prefill_backend":"flashinfer"}'],
    "env": {"VLLM_ENGINE_READY_TIMEOUT_S": "6608"},
    "startupProbe": {"periodSeconds": 5.0, "failureThreshold": 1322.0},
    "progressDeadlineSeconds": 7208.0,
}


def render(**changes: Any) -> dict[str, dict[str, Any]]:
    """The rendered objects by kind."""
    texts = helm.Chart.load(CHART).render({**VALUES, **changes}, name="vllm", namespace="vllm").values()
    documents = [yaml.safe_load(text) for text in texts]
    return {document["kind"]: document for document in documents if document}


def pod() -> dict[str, Any]:
    found: dict[str, Any] = render()["Deployment"]["spec"]["template"]["spec"]
    return found


def test_helm_finds_nothing_wrong() -> None:
    report = helm.lint(CHART, VALUES, strict=True, kube_version="v1.35.0")
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_helm_loads_no_leftovers_of_editors(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "vllm"))
    for name in ("templates/.service.yaml.swp", "templates/service.yaml~"):
        (chart / name).write_text("{{ no template")
    rendered = helm.Chart.load(chart).render(VALUES, name="vllm", namespace="vllm")
    assert {Path(name).name for name in rendered} == {file.name for file in CHART.glob("templates/*.yaml")}


def test_an_update_replaces_one_model_server_at_a_time() -> None:
    """`Recreate` stopped all of them at any change; a surge could never be placed, since every GPU is taken."""
    strategy = render()["Deployment"]["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def test_another_hash_of_the_chart_restarts_no_model_server() -> None:
    """It stands beside the pod's template, so a change of the Service alone starts no rollout."""
    before, after = render()["Deployment"], render(chartHash="0a1b")["Deployment"]
    assert before["metadata"]["annotations"] == {"rent-the-block/chart-hash": "4f5e"}
    assert after["metadata"]["annotations"] == {"rent-the-block/chart-hash": "0a1b"}
    assert after["spec"] == before["spec"]


def test_the_deployment_takes_its_time() -> None:
    spec = render()["Deployment"]["spec"]
    assert spec["replicas"] == 2
    assert spec["progressDeadlineSeconds"] == 7208
    container = spec["template"]["spec"]["containers"][0]
    assert container["startupProbe"]["failureThreshold"] == 1322
    assert all(container[probe]["httpGet"]["path"] == "/health" for probe in ("startupProbe", "readinessProbe"))
    assert container["livenessProbe"]["timeoutSeconds"] >= 5


def test_a_pull_secret_is_named_only_where_there_is_one() -> None:
    assert "imagePullSecrets" not in pod()
    named = render(imagePullSecrets=["hub"])["Deployment"]["spec"]["template"]["spec"]
    assert named["imagePullSecrets"] == [{"name": "hub"}]


def test_arguments_reach_the_engine_as_they_are() -> None:
    container = pod()["containers"][0]
    assert container["name"] == "vllm"
    assert container["command"] == ["vllm", "serve"]
    assert container["args"][: len(VALUES["args"])] == VALUES["args"]


def test_the_key_comes_from_the_secret() -> None:
    (key,) = (entry for entry in pod()["containers"][0]["env"] if entry["name"] == "VLLM_API_KEY")
    assert key["valueFrom"] == {"secretKeyRef": {"name": "vllm-api-key", "key": "api-key"}}
    secret = render()["Secret"]
    assert secret["metadata"]["name"] == "vllm-api-key"
    assert len(base64.b64decode(secret["data"]["api-key"])) == 48
    assert secret["data"] != render()["Secret"]["data"]


def test_shared_memory_has_a_size_that_counts_in_the_pods_memory() -> None:
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert volumes["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "50Gi"}
    container = pod()["containers"][0]
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert container["resources"]["limits"] == {"memory": "3875150Mi", "nvidia.com/gpu": 8}
    assert container["resources"]["requests"] == {"cpu": 96, "memory": "3875150Mi", "nvidia.com/gpu": 8}
    with pytest.raises(helm.HelmError, match="50 GiB of shared memory"):
        render(memoryMib=51200.0)


def test_the_pod_goes_to_a_gpu_node_with_no_rights_it_does_not_need() -> None:
    spec = pod()
    assert spec["nodeSelector"] == {"rent-the-block/role": "gpu"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["automountServiceAccountToken"] is False
    security = spec["containers"][0]["securityContext"]
    assert security == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def shutdown_timeout_s(args: list[str]) -> int:
    return int(args[args.index("--shutdown-timeout") + 1])


def test_open_requests_have_the_time_that_the_values_promise() -> None:
    """Without the argument vLLM aborts them at SIGTERM."""
    args = pod()["containers"][0]["args"]
    assert args[: len(VALUES["args"])] == VALUES["args"]
    assert shutdown_timeout_s(args) == 60
    drain = {"preStopSeconds": 5.0, "requestsSeconds": 240.0, "exitSeconds": 20.0}
    longer = render(drain=drain)["Deployment"]["spec"]["template"]["spec"]
    assert shutdown_timeout_s(longer["containers"][0]["args"]) == 240
    assert longer["terminationGracePeriodSeconds"] == 265


def test_the_grace_period_is_longer_than_the_sleep_and_the_requests_together() -> None:
    spec = pod()
    container = spec["containers"][0]
    sleep_s = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] >= sleep_s + shutdown_timeout_s(container["args"]) + 30


def test_no_other_pod_or_node_reaches_the_model_server() -> None:
    """Port-forward and probes come from the pod's own node, which no policy of Kubernetes can shut out."""
    policy = render()["NetworkPolicy"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == []
    labels = render()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()


def test_vllm_finds_the_middleware_that_asks_for_the_key_everywhere() -> None:
    container = pod()["containers"][0]
    module, name = container["args"][container["args"].index("--middleware") + 1].split(".")
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "middleware")
    assert mount["readOnly"] is True
    assert {"name": "PYTHONPATH", "value": mount["mountPath"]} in container["env"]
    (volume,) = (volume for volume in pod()["volumes"] if volume["name"] == "middleware")
    config = render()["ConfigMap"]
    assert volume["configMap"]["name"] == config["metadata"]["name"]
    source = config["data"][f"{module}.py"]
    assert source == (CHART / "files" / f"{module}.py").read_text()
    assert f"class {name}:" in source


def test_another_middleware_restarts_the_model_servers(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "vllm"))
    (chart / "files" / "require_key.py").write_text("# another\n")
    rendered = helm.Chart.load(chart).render(VALUES, name="vllm", namespace="vllm")
    (other,) = (yaml.safe_load(text) for name, text in rendered.items() if name.endswith("deployment.yaml"))
    assert other["spec"]["template"] != render()["Deployment"]["spec"]["template"]


def test_the_service_is_for_the_cluster_only() -> None:
    service = render()["Service"]
    assert service["spec"]["type"] == "ClusterIP"
    assert service["spec"]["ports"] == [{"name": "http", "port": 8000, "targetPort": "http"}]
    labels = render()["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_a_misspelt_value_is_refused() -> None:
    with pytest.raises(helm.HelmError, match="memory"):
        render(memory=1.0)
