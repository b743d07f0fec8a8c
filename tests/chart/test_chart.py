"""The chart as it stands: what its values may be, and what it must never contain."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from components.images import ModelImage
from components.vllm import VllmArgs, chart_values, engine_timeouts
from planning.catalogue import load

CHART = Path(__file__).resolve().parents[2] / "charts" / "vllm"
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
TEMPLATES = {path.name: path.read_text() for path in (CHART / "templates").glob("*.yaml")}
KNOWN = load()


def program_values(model: str, instance: str) -> dict[str, Any]:
    args = VllmArgs(
        cluster=None,  # type: ignore[arg-type]
        region="us-west-2",
        model=KNOWN.model(model),
        instance_type=KNOWN.instance_type(instance),
        instance_count=1,
        weights=None,
        image=ModelImage(reference=KNOWN.model(model).image, pull_secret="hub"),
        after=[],
    )
    return dict(chart_values(args, engine_timeouts(args)))


@pytest.mark.parametrize(("model", "instance"), [("kimi-k3", "p6-b300.48xlarge"), ("qwen3-0.6b", "g6.xlarge")])
def test_the_programs_values_are_values_of_the_chart(model: str, instance: str) -> None:
    values = program_values(model, instance)
    jsonschema.validate(values, SCHEMA)
    assert set(values) <= set(DEFAULTS)


@pytest.mark.parametrize(
    "change",
    [
        {"image": "vllm/vllm-openai"},
        {"image": "vllm/vllm-openai:v1@sha256:short"},
        {"imagePullSecrets": "hub"},
        {"args": []},
        {"args": "serve"},
        {"replicas": 0},
        {"env": {"A": 1}},
        {"memory": 1},
        {"startupProbe": {"periodSeconds": 5}},
    ],
)
def test_values_that_could_not_work_are_refused(change: dict[str, object]) -> None:
    values = {**program_values("qwen3-0.6b", "g6.xlarge"), **change}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(values, SCHEMA)


def test_each_value_is_documented_and_in_the_schema() -> None:
    assert set(DEFAULTS) == set(SCHEMA["properties"]) - {"global"}
    used = set(re.findall(r"\.Values\.(\w+)", "".join(TEMPLATES.values())))
    assert used == set(DEFAULTS)
    lines = (CHART / "values.yaml").read_text().splitlines()
    for key in DEFAULTS:
        before = lines[next(index for index, line in enumerate(lines) if line.startswith(f"{key}:")) - 1]
        assert before.startswith("#") or key == "tolerations"


def test_every_number_is_printed_as_a_whole_number() -> None:
    """Values arrive as floats: 3875150 would print as 3.87515e+06, which is no quantity."""
    numbers = {key for key, value in DEFAULTS.items() if isinstance(value, int)}
    numbers |= {f"{key}.{part}" for key in ("startupProbe", "drain") for part in DEFAULTS[key]}
    for text in TEMPLATES.values():
        for printed in re.findall(r"\{\{-? \.Values\.([\w.]+)", text):
            assert printed not in numbers


def test_the_key_is_in_the_secret_and_nowhere_else() -> None:
    assert "randAlphaNum 48" in TEMPLATES["secret.yaml"]
    assert 'lookup "v1" "Secret" .Release.Namespace "vllm-api-key"' in TEMPLATES["secret.yaml"]
    for name, text in TEMPLATES.items():
        if name != "secret.yaml":
            assert "randAlphaNum" not in text
    assert "--api-key" not in "".join(TEMPLATES.values())


def test_nothing_in_the_chart_owns_anything_in_aws() -> None:
    text = "".join(TEMPLATES.values())
    for kind in ("LoadBalancer", "PersistentVolumeClaim", "kind: Ingress", "volumeClaimTemplates", "hostPath"):
        assert kind not in text.replace("nothing in the cluster may own a load balancer", "")
