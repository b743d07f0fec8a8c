"""Requests are built by pure functions: tables of input and request."""

import base64
import email
import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from components import versions
from components.images import ModelImage
from components.node_groups import launch_template_args, node_config_user_data
from components.trust import trust_policy
from components.vllm import VllmArgs, chart_values, engine_args, engine_timeouts
from components.weights_access import read_policy
from planning.catalogue import load

KNOWN = load()


def test_the_node_configuration_is_a_mime_part_that_nodeadm_reads() -> None:
    message = email.message_from_bytes(base64.b64decode(node_config_user_data()))
    (part,) = message.get_payload()
    assert part.get_content_type() == "application/node.eks.aws"
    assert yaml.safe_load(part.get_payload()) == {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "featureGates": {"FastImagePull": True},
            "instance": {"localStorage": {"strategy": "RAID0"}},
        },
    }


@pytest.mark.parametrize("reservation_id", ["cr-0123456789abcdef0", None])
def test_market_type_and_reservation_stand_in_the_template_together_or_not_at_all(reservation_id: str | None) -> None:
    template: Any = launch_template_args(
        instance_type="p6-b300.48xlarge",
        root_gib=200,
        reservation_id=reservation_id,
        user_data=None,
        tags={"a": "b"},
    )
    assert template.instance_type == "p6-b300.48xlarge"
    assert template.placement is None
    assert template.metadata_options.http_put_response_hop_limit == 1
    if reservation_id is None:
        assert template.instance_market_options is None
        assert template.capacity_reservation_specification is None
    else:
        assert template.instance_market_options.market_type == "capacity-block"
        target = template.capacity_reservation_specification.capacity_reservation_target
        assert target.capacity_reservation_id == reservation_id


def vllm(model: str, instance: str, weights: str | None) -> VllmArgs:
    return VllmArgs(
        cluster=None,  # type: ignore[arg-type]
        region="us-west-2",
        model=KNOWN.model(model),
        instance_type=KNOWN.instance_type(instance),
        instance_count=1,
        weights=weights,
        image=ModelImage(reference="vllm/vllm-openai:v1", pull_secret=None),
        after=[],
    )


KIMI = vllm("kimi-k3", "p6-b300.48xlarge", "s3://bucket/kimi-k3")
SMALL = vllm("qwen3-0.6b", "g6.xlarge", None)


def flags(arguments: list[str]) -> dict[str, str]:
    """Each flag with what follows it, or the empty text."""
    following = dict(zip(arguments, [*arguments[1:], ""], strict=True))
    return {flag: "" if value.startswith("--") else value for flag, value in following.items() if flag.startswith("--")}


def test_kimi_k3_is_served_as_its_recipe_says() -> None:
    arguments = engine_args(KIMI.model, KIMI.weights)
    assert arguments[0] == "s3://bucket/kimi-k3"
    assert flags(arguments) == {
        "--load-format": "runai_streamer",
        "--model-loader-extra-config": '{"distributed":true}',
        "--served-model-name": "Kimi-K3",
        "--tensor-parallel-size": "8",
        "--max-model-len": "1048576",
        "--gpu-memory-utilization": "0.95",
        "--enable-auto-tool-choice": "",
        "--tool-call-parser": "kimi_k3",
        "--reasoning-parser": "kimi_k3",
        "--trust-remote-code": "",
        "--no-enable-flashinfer-autotune": "",
        "--kv-cache-dtype": "fp8",
        "--attention-config": '{"use_prefill_query_quantization":true,"mla_prefill_backend":"flashinfer"}',
        "--enable-prefix-caching": "",
    }


@pytest.mark.parametrize(
    ("args", "names"),
    [(KIMI, ["Kimi-K3", "moonshotai/Kimi-K3"]), (SMALL, ["Qwen3-0.6B", "Qwen/Qwen3-0.6B"])],
)
def test_each_model_is_served_as_its_short_name_and_its_hub_id(args: VllmArgs, names: list[str]) -> None:
    arguments = engine_args(args.model, args.weights)
    first = arguments.index("--served-model-name") + 1
    # The first name is the one of the stack output, of metrics and of answers.
    assert arguments[first : first + 2] == names
    assert names[0] == args.model.served_name
    assert arguments[first + 2].startswith("--")


def test_a_model_whose_short_name_is_its_hub_id_is_served_once() -> None:
    model = replace(SMALL.model, served_name=SMALL.model.hub_id)
    arguments = engine_args(model, None)
    first = arguments.index("--served-model-name") + 1
    assert arguments[first : first + 2] == ["Qwen/Qwen3-0.6B", "--tensor-parallel-size"]


@pytest.mark.parametrize("args", [KIMI, SMALL])
def test_no_model_uses_the_rust_front_end_which_loads_no_middleware(args: VllmArgs) -> None:
    """The chart's middleware asks for the API key; it is Python."""
    values = chart_values(args, engine_timeouts(args))
    assert values["env"]["VLLM_USE_RUST_FRONTEND"] == "0"


@pytest.mark.parametrize("args", [KIMI, SMALL])
def test_no_argument_needs_a_shell_and_json_is_json(args: VllmArgs) -> None:
    for argument in engine_args(args.model, args.weights):
        assert "'" not in argument
        assert argument.strip() == argument
        if argument.startswith("{"):
            json.loads(argument)


def test_weights_from_the_hub_are_files_for_the_fast_loader() -> None:
    arguments = engine_args(SMALL.model, None)
    assert arguments[0] == "Qwen/Qwen3-0.6B"
    assert flags(arguments)["--load-format"] == "fastsafetensors"
    assert "--revision" not in flags(arguments)


@pytest.mark.parametrize("args", [KIMI, SMALL])
def test_the_engine_fits_beside_the_nodes_own_pods_with_its_shared_memory(args: VllmArgs) -> None:
    values = chart_values(args, engine_timeouts(args))
    assert values["memoryMib"] <= args.instance_type.allocatable_memory_mib - 1024
    assert values["sharedMemoryGib"] * 1024 < values["memoryMib"]
    assert values["cpus"] < args.instance_type.vcpus
    assert values["gpus"] == args.model.tensor_parallel <= args.instance_type.gpus


@pytest.mark.parametrize("args", [KIMI, SMALL])
def test_one_budget_is_behind_every_timeout(args: VllmArgs) -> None:
    limits = engine_timeouts(args)
    values = chart_values(args, limits)
    probe = values["startupProbe"]
    ready_s = int(values["env"]["VLLM_ENGINE_READY_TIMEOUT_S"])
    assert ready_s <= probe["periodSeconds"] * probe["failureThreshold"] <= ready_s + probe["periodSeconds"]
    assert values["progressDeadlineSeconds"] == limits.helm_timeout_s > ready_s


def test_the_engine_knows_its_region_without_the_metadata_service() -> None:
    env = chart_values(KIMI, engine_timeouts(KIMI))["env"]
    assert env["AWS_REGION"] == env["AWS_DEFAULT_REGION"] == "us-west-2"
    assert env["AWS_EC2_METADATA_DISABLED"] == "true"
    assert not [name for name in env if "KEY" in name or "TOKEN" in name]


@pytest.mark.parametrize("model", KNOWN.models)
def test_streamed_weights_never_meet_the_front_end_that_can_not_read_s3(model: str) -> None:
    args = vllm(model, "p6-b300.48xlarge", "s3://bucket/model")
    assert chart_values(args, engine_timeouts(args))["env"].get("VLLM_USE_RUST_FRONTEND", "0") == "0"


@pytest.mark.parametrize(
    ("weights", "objects", "prefixes"),
    [
        ("s3://bucket/kimi-k3", "arn:aws:s3:::bucket/kimi-k3/*", ["kimi-k3/*", "kimi-k3"]),
        ("s3://bucket/a/b/", "arn:aws:s3:::bucket/a/b/*", ["a/b/*", "a/b"]),
        ("s3://bucket", "arn:aws:s3:::bucket/*", ["*", ""]),
    ],
)
def test_the_pod_may_read_its_weights_and_nothing_else(weights: str, objects: str, prefixes: list[str]) -> None:
    listing, reading = json.loads(read_policy(weights, None))["Statement"]
    assert (listing["Action"], listing["Resource"]) == ("s3:ListBucket", "arn:aws:s3:::bucket")
    assert listing["Condition"] == {"StringLike": {"s3:prefix": prefixes}}
    assert (reading["Action"], reading["Resource"]) == ("s3:GetObject", objects)


def test_weights_that_a_key_of_the_customers_encrypts_may_be_decrypted_with_that_key_alone() -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    without = json.loads(read_policy("s3://bucket/kimi-k3", None))["Statement"]
    *reading, decrypting = json.loads(read_policy("s3://bucket/kimi-k3", key))["Statement"]
    assert reading == without
    assert decrypting == {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": key}


def test_a_role_is_for_one_service() -> None:
    (statement,) = json.loads(trust_policy("ec2.amazonaws.com", "sts:AssumeRole"))["Statement"]
    assert statement["Principal"] == {"Service": "ec2.amazonaws.com"}


def test_every_pin_that_nobody_verified_says_how_to() -> None:
    pins = versions.unverified_pins()
    assert len({pin.name for pin in pins}) == len(pins)
    assert all(pin.value and pin.what_to_check for pin in pins)
    values = " ".join(pin.value for pin in pins)
    for pinned in (versions.VPC_CNI, versions.COREDNS, versions.NODE_AMI_RELEASE, versions.DEVICE_PLUGIN_IMAGE):
        assert pinned in values
    for model in KNOWN.models.values():
        assert model.image in values


def test_the_node_image_is_of_the_clusters_kubernetes_and_new_enough_for_the_driver() -> None:
    kubernetes, _, day = versions.NODE_AMI_RELEASE.partition("-")
    assert kubernetes.startswith(f"{versions.KUBERNETES}.")
    assert day >= "20260714"  # driver r580 since then
