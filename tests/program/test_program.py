"""What the program asks of AWS and of Kubernetes, request by request."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from components import versions
from components.node_groups import node_config_user_data

PROJECT = Path(__file__).resolve().parents[2]
SESSION = "rtb-20261201-ab12"
TAGS = {"rent-the-block:session": SESSION}
CONTROL_PLANE = "session-cluster-control-plane"

NODES_ASKED = "aws:eks/getNodeGroup:getNodeGroup"


def test_the_gpu_launch_template_is_exactly_what_a_capacity_block_demands(dev: Any) -> None:
    assert dev.one("aws:ec2/launchTemplate:LaunchTemplate", "-gpu").inputs == {
        "instanceType": "p6-b300.48xlarge",
        "instanceMarketOptions": {"marketType": "capacity-block"},
        "capacityReservationSpecification": {
            "capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}
        },
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {"volumeSize": 200, "volumeType": "gp3", "encrypted": "true", "deleteOnTermination": "true"},
            }
        ],
        "userData": node_config_user_data(),
        "tagSpecifications": [
            {"resourceType": kind, "tags": TAGS} for kind in ("instance", "volume", "network-interface")
        ],
    }


def test_the_gpu_node_group_waits_at_zero_in_the_blocks_zone(dev: Any) -> None:
    assert dev.one("aws:eks/nodeGroup:NodeGroup", "-gpu").inputs == {
        "clusterName": SESSION,
        "nodeGroupName": "gpu",
        "nodeRoleArn": "arn:aws:mock:::session-nodes-node",
        "subnetIds": ["session-network-gpu-id"],
        "amiType": "AL2023_x86_64_NVIDIA",
        "releaseVersion": versions.NODE_AMI_RELEASE,
        "capacityType": "CAPACITY_BLOCK",
        "launchTemplate": {"id": "session-nodes-gpu-id", "version": "3"},
        "scalingConfig": {"minSize": 0, "desiredSize": 0, "maxSize": 1},
        "labels": {"rent-the-block/role": "gpu"},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
    }


def test_an_update_while_serving_leaves_the_groups_size_alone(dev: Any) -> None:
    group = dev.one("aws:eks/nodeGroup:NodeGroup", "-gpu")
    assert list(group.raw.ignoreChanges) == ["scalingConfig"]
    # The path is the provider's own: a name that is no input of the request would be ignored in silence.
    assert group.inputs["scalingConfig"]["desiredSize"] == 0


def test_the_gpu_subnet_is_placed_by_zone_id_and_is_private(dev: Any) -> None:
    subnet = dev.one("aws:ec2/subnet:Subnet", "-gpu").inputs
    assert subnet["availabilityZoneId"] == "usw2-az2"
    assert subnet["mapPublicIpOnLaunch"] is False
    second = dev.one("aws:ec2/subnet:Subnet", "-second").inputs
    assert second["availabilityZoneId"] not in ("usw2-az2", "")


def test_gpus_on_demand_take_the_same_shape_without_market_and_reservation(on_demand: Any) -> None:
    template = on_demand.one("aws:ec2/launchTemplate:LaunchTemplate", "-gpu").inputs
    assert template["instanceType"] == "g6.xlarge"
    assert not {"instanceMarketOptions", "capacityReservationSpecification", "placement"} & set(template)
    group = on_demand.one("aws:eks/nodeGroup:NodeGroup", "-gpu").inputs
    assert group["capacityType"] == "ON_DEMAND"
    assert group["scalingConfig"] == {"minSize": 0, "desiredSize": 0, "maxSize": 1}
    assert group["taints"]
    assert [call.token for call in on_demand.calls] == [
        "aws:index/getAvailabilityZones:getAvailabilityZones",
        NODES_ASKED,
    ]


def test_several_nodes_have_the_interfaces_that_eks_gives_them(two_nodes: Any) -> None:
    """Each node serves a whole copy of the model, so no traffic needs EFA: 16 more interfaces would serve nothing."""
    assert two_nodes.one("aws:eks/nodeGroup:NodeGroup", "-gpu").inputs["scalingConfig"]["maxSize"] == 2
    assert two_nodes.one("kubernetes:helm.sh/v3:Release").inputs["values"]["replicas"] == 2
    for template in two_nodes.of("aws:ec2/launchTemplate:LaunchTemplate"):
        assert "networkInterfaces" not in template.inputs
    assert not [request for request in two_nodes.requests if "security" in request.type.lower()]


def test_the_model_server_is_pulled_as_the_stack_file_says(program: Any, configuration: Any) -> None:
    digest = f"sha256:{'0a' * 32}"
    settings = {"imageRegistryPrefix": "mirror.example/hub", "imagePullSecret": "hub", "imageDigest": digest}
    values = program({**configuration, **settings}).one("kubernetes:helm.sh/v3:Release").inputs["values"]
    assert values["image"] == f"mirror.example/hub/vllm/vllm-openai:v0.29.0@{digest}"
    assert values["imagePullSecrets"] == ["hub"]


def test_the_system_group_carries_what_must_run_before_the_block(dev: Any) -> None:
    group = dev.one("aws:eks/nodeGroup:NodeGroup", "-system")
    assert group.inputs["nodeGroupName"] == "system"
    assert group.inputs["capacityType"] == "ON_DEMAND"
    assert group.inputs["scalingConfig"] == {"minSize": 1, "desiredSize": 1, "maxSize": 1}
    assert group.inputs["labels"] == {"rent-the-block/role": "system"}
    assert "taints" not in group.inputs
    addons = {addon.inputs["addonName"]: addon for addon in dev.of("aws:eks/addon:Addon")}
    assert set(addons) == {"coredns", "eks-pod-identity-agent"}
    for addon in addons.values():
        assert group.urn in addon.raw.dependencies
        assert addon.inputs["addonVersion"].startswith("v1.")


def test_the_control_plane_leaves_nothing_to_a_default(dev: Any) -> None:
    cluster = dev.one("eks:index:Cluster")
    assert cluster.inputs == {
        "name": SESSION,
        "version": "1.35",
        "upgradePolicy": {"supportType": "STANDARD"},
        "authenticationMode": "API",
        "vpcId": "session-network-vpc-id",
        "subnetIds": ["session-network-gpu-id", "session-network-second-id"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": True,
        "publicAccessCidrs": ["203.0.113.7/32"],
        "enabledClusterLogTypes": ["api", "audit", "authenticator"],
        "skipDefaultNodeGroup": True,
        "skipDefaultSecurityGroups": True,
        "createInstanceRole": False,
        "bootstrapSelfManagedAddons": False,
        "kubeProxyAddonOptions": {
            "version": versions.KUBE_PROXY,
            "resolveConflictsOnCreate": "OVERWRITE",
            "resolveConflictsOnUpdate": "OVERWRITE",
        },
        "vpcCniOptions": {
            "addonVersion": versions.VPC_CNI,
            # Without it the chart's NetworkPolicy is an object that nothing enforces.
            "enableNetworkPolicy": True,
            "resolveConflictsOnCreate": "OVERWRITE",
            "resolveConflictsOnUpdate": "OVERWRITE",
        },
        "corednsAddonOptions": {
            "enabled": False,
            "resolveConflictsOnCreate": "OVERWRITE",
            "resolveConflictsOnUpdate": "OVERWRITE",
        },
    }


def test_only_cluster_log_group_and_tags_bear_the_stacks_name_so_the_longest_cluster_name_fits_all(
    program: Any, configuration: Any
) -> None:
    longest = "a" * 100
    run = program({**configuration, "instanceCount": "2"}, stack=longest)
    named = [request for request in run.requests if not request.type.startswith("pulumi:")]
    for request in named:
        # AWS's least limit, 64 for an IAM role, less the hyphen and seven digits that Pulumi puts behind such a name.
        assert len(request.name) <= 64 - 8
        assert longest not in request.name
    bearers = {
        (request.type, key) for request in named for key, value in request.inputs.items() if longest in str(value)
    }
    assert bearers == {
        ("aws:cloudwatch/logGroup:LogGroup", "name"),
        ("eks:index:Cluster", "name"),
        ("aws:ec2/launchTemplate:LaunchTemplate", "tagSpecifications"),
        ("aws:eks/addon:Addon", "clusterName"),
        ("aws:eks/nodeGroup:NodeGroup", "clusterName"),
        ("aws:eks/podIdentityAssociation:PodIdentityAssociation", "clusterName"),
    }


def test_the_stack_owns_the_control_planes_log_group_with_a_retention(dev: Any) -> None:
    logs = dev.one("aws:cloudwatch/logGroup:LogGroup")
    assert logs.inputs == {"name": f"/aws/eks/{SESSION}/cluster", "retentionInDays": 7}
    assert logs.urn in dev.one("eks:index:Cluster").raw.dependencies


def test_every_in_cluster_resource_goes_down_with_the_control_plane_and_no_aws_resource_does(dev: Any) -> None:
    control_plane = dev.one("eks:index:Cluster").urn
    inside = [request for request in dev.requests if request.type.startswith("kubernetes:")]
    assert {request.type for request in inside} == {
        "kubernetes:apps/v1:DaemonSet",
        "kubernetes:core/v1:Namespace",
        "kubernetes:helm.sh/v3:Release",
    }
    assert {request.deleted_with for request in inside} == {control_plane}
    assert {request.deleted_with for request in dev.requests if request not in inside} == {""}


def test_no_rule_lets_the_world_in(dev: Any, on_demand: Any, two_nodes: Any) -> None:
    for run in (dev, on_demand, two_nodes):
        for request in run.requests:
            assert "ingress" not in request.inputs
            if "/route:" not in request.type:  # the ways out lead anywhere
                assert "0.0.0.0/0" not in json.dumps(request.inputs)
        assert run.one("eks:index:Cluster").inputs["publicAccessCidrs"] == ["203.0.113.7/32"]


def test_every_resource_and_every_question_names_its_provider(dev: Any) -> None:
    package_of = {"aws": "pulumi:providers:aws", "eks": "pulumi:providers:eks", "kubernetes": "providers:kubernetes"}
    for request in dev.requests:
        package = request.type.split(":")[0]
        if package in package_of:
            assert package_of[package] in request.raw.provider, request.name
    assert len(dev.calls) == 3
    for call in dev.calls:
        assert "pulumi:providers:aws::aws" in call.provider


def test_default_providers_are_off_for_the_whole_project() -> None:
    project = yaml.safe_load((PROJECT / "Pulumi.yaml").read_text())
    assert project["config"]["pulumi:disable-default-providers"] == ["*"]


def test_everything_that_takes_tags_says_whose_it_is(dev: Any) -> None:
    (provider,) = dev.of("pulumi:providers:aws")
    assert json.loads(provider.inputs["defaultTags"]) == {"tags": TAGS}
    assert provider.inputs["region"] == "us-west-2"


def test_another_kubeconfig_of_the_same_cluster_replaces_nothing(dev: Any) -> None:
    (provider,) = dev.of("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == f"arn:aws:mock:::{CONTROL_PLANE}-inner"


def test_weights_reach_the_node_by_the_s3_endpoint_and_one_nat_gateway_is_enough(dev: Any) -> None:
    endpoint = dev.one("aws:ec2/vpcEndpoint:VpcEndpoint").inputs
    assert endpoint["serviceName"] == "com.amazonaws.us-west-2.s3"
    assert endpoint["vpcEndpointType"] == "Gateway"
    assert endpoint["routeTableIds"] == ["session-network-private-id"]
    assert len(dev.of("aws:ec2/natGateway:NatGateway")) == 1


def test_nodes_come_after_every_way_out_of_their_subnet(dev: Any) -> None:
    ways_out = [dev.one("aws:ec2/route:Route", "private"), dev.one("aws:ec2/vpcEndpoint:VpcEndpoint")]
    ways_out += [r for r in dev.of("aws:ec2/routeTableAssociation:RouteTableAssociation") if "private" in r.name]
    for group in dev.of("aws:eks/nodeGroup:NodeGroup"):
        assert {way.urn for way in ways_out} <= set(group.raw.dependencies)


def test_the_device_plugin_runs_on_gpu_nodes_and_nothing_waits_for_it(dev: Any) -> None:
    daemonset = dev.one("kubernetes:apps/v1:DaemonSet").inputs
    assert daemonset["metadata"]["name"] == "nvidia-device-plugin"
    assert daemonset["metadata"]["namespace"] == "kube-system"
    assert daemonset["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    pod = daemonset["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"rent-the-block/role": "gpu"}
    taints = dev.one("aws:eks/nodeGroup:NodeGroup", "-gpu").inputs["taints"]
    assert {taint["key"] for taint in taints} == {toleration["key"] for toleration in pod["tolerations"]}
    assert pod["containers"][0]["image"].startswith("nvcr.io/nvidia/k8s-device-plugin:v0.18.2")


def test_the_release_waits_for_no_pod_and_keeps_the_evidence(dev: Any) -> None:
    release = dev.one("kubernetes:helm.sh/v3:Release")
    assert release.inputs["chart"] == "./charts/vllm"
    assert (PROJECT / release.inputs["chart"] / "Chart.yaml").exists()
    assert (release.inputs["name"], release.inputs["namespace"]) == ("vllm", "vllm")
    assert release.inputs["skipAwait"] is True
    assert release.inputs["atomic"] is False
    assert release.inputs["timeout"] > 3600
    assert release.raw.customTimeouts.create == release.raw.customTimeouts.update != ""


def test_a_changed_chart_is_a_changed_value_of_the_release(
    program: Any, configuration: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The provider compares a release's inputs only: it does not read the chart's files for its diff."""
    folder = PROJECT / "charts" / "vllm"
    before = program(configuration).one("kubernetes:helm.sh/v3:Release").inputs
    changed = Path(shutil.copytree(folder, tmp_path / "vllm"))
    (changed / "templates" / "service.yaml").write_text((folder / "templates" / "service.yaml").read_text() + "\n")
    monkeypatch.setattr("components.vllm.CHART_FOLDER", changed)
    after = program(configuration).one("kubernetes:helm.sh/v3:Release").inputs
    assert after["values"].pop("chartHash") != before["values"].pop("chartHash")
    assert after == before


def test_the_pod_is_made_after_its_credentials_can_be_injected(dev: Any) -> None:
    release = dev.one("kubernetes:helm.sh/v3:Release")
    association = dev.one("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    assert association.inputs["serviceAccount"] == association.inputs["namespace"] == "vllm"
    agent = dev.one("aws:eks/addon:Addon", "pod-identity")
    assert {association.urn, agent.urn} <= set(release.raw.dependencies)


def test_the_pods_role_may_decrypt_with_the_key_that_the_stack_file_names(program: Any, configuration: Any) -> None:
    key = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    run = program({**configuration, "weightsKmsKeyArn": key})
    policy = json.loads(run.one("aws:iam/rolePolicy:RolePolicy").inputs["policy"])
    assert policy["Statement"][-1] == {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": key}


def test_weights_from_the_hub_need_no_access_to_a_bucket(on_demand: Any) -> None:
    assert not on_demand.of("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    values = on_demand.one("kubernetes:helm.sh/v3:Release").inputs["values"]
    assert values["args"][0] == "Qwen/Qwen3-0.6B"


def test_no_secret_is_in_any_request(dev: Any) -> None:
    (provider,) = dev.of("pulumi:providers:kubernetes")
    for request in dev.requests:
        text = json.dumps(request.inputs).lower()
        assert "api-key" not in text
        assert "password" not in text
        if request is not provider:
            assert "kubeconfig" not in text


def test_the_stack_tells_exactly_what_a_session_reads(dev: Any) -> None:
    outputs: dict[str, Any] = dict(dev.outputs)
    assert outputs.pop("next_step")
    kubeconfig = outputs.pop("kubeconfig")
    assert kubeconfig["4dabf18193072939515e22adb298388d"] == "1b47061264138c4ac30d75fd1eb44270"  # Pulumi's mark: secret
    assert json.loads(kubeconfig["value"]) == {"kind": "Config"}
    assert outputs == {
        "cluster_name": SESSION,
        "region": "us-west-2",
        "vpc_id": "session-network-vpc-id",
        "availability_zone_id": "usw2-az2",
        "gpu_node_group": "gpu",
        "namespace": "vllm",
        "service": "vllm",
        "served_model": "Kimi-K3",
    }


def test_the_stack_says_how_to_start_its_nodes(two_nodes: Any, on_demand: Any) -> None:
    by_hand = two_nodes.outputs["next_step"]
    assert "When the block cr-0123456789abcdef0 has started" in by_hand
    group = two_nodes.one("aws:eks/nodeGroup:NodeGroup", "-gpu").inputs
    assert (
        f"aws eks update-nodegroup-config --region us-west-2 --cluster-name {group['clusterName']} "
        f"--nodegroup-name {group['nodeGroupName']} --scaling-config minSize=0,maxSize=2,desiredSize=2\n"
    ) in by_hand
    # Without it the next update would set the size back to 0, on paid time.
    assert list(two_nodes.one("aws:eks/nodeGroup:NodeGroup", "-gpu").raw.ignoreChanges) == ["scalingConfig"]
    assert "port-forward service/vllm 8000:8000" in by_hand
    assert "Kimi-K3 at http://127.0.0.1:8000/v1" in by_hand
    assert "reservation" not in on_demand.outputs["next_step"]
    assert "They bill from then on" in on_demand.outputs["next_step"]


def test_nothing_here_buys(dev: Any, on_demand: Any) -> None:
    for run in (dev, on_demand):
        assert not [request for request in run.requests if "capacityBlock" in request.type]


@pytest.mark.parametrize(
    "file", ["Pulumi.dev.yaml", *sorted(f"examples/{p.name}" for p in PROJECT.glob("examples/*.yaml"))]
)
def test_every_stack_file_that_ships_runs(program: Any, file: str) -> None:
    config = yaml.safe_load((PROJECT / file).read_text())["config"]
    flat = {
        key.removeprefix("rent-the-block:"): json.dumps(value) if isinstance(value, list) else str(value)
        for key, value in config.items()
    }
    zone = flat.get("availabilityZoneId", "usw2-az2")
    run = program(flat, zones=[zone, "other-az9"], availabilityZoneId=zone)
    assert run.outputs["served_model"]
