"""What EKS accepts and refuses, asked with boto3."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

MODEL = "p6-b300.48xlarge"


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_cluster_keeps_what_it_was_given_and_is_made_in_virtual_time(cloud: Any) -> None:
    network = cloud.network()
    cloud.aws.cluster_endpoint = ("https://127.0.0.1:6443", "Q0E=")
    network.cluster()
    cluster = network.eks.describe_cluster(name="c")["cluster"]
    assert cluster["createdAt"] == cloud.world.now
    assert cluster["accessConfig"]["authenticationMode"] == "API"
    assert cluster["upgradePolicy"] == {"supportType": "STANDARD"}
    assert (cluster["endpoint"], cluster["certificateAuthority"]) == ("https://127.0.0.1:6443", {"data": "Q0E="})
    assert cluster["resourcesVpcConfig"]["publicAccessCidrs"] == ["192.0.2.0/24"]
    assert cluster["resourcesVpcConfig"]["vpcId"] == network.vpc_id
    network.eks.update_cluster_config(name="c", resourcesVpcConfig={"publicAccessCidrs": ["198.51.100.0/24"]})
    config = network.eks.describe_cluster(name="c")["cluster"]["resourcesVpcConfig"]
    assert config["publicAccessCidrs"] == ["198.51.100.0/24"]
    assert len(config["subnetIds"]) == 2


@pytest.mark.parametrize(
    ("template", "group", "words"),
    [
        ({"InstanceMarketOptions": None}, {}, "market type"),
        ({"CapacityReservationSpecification": None}, {}, "reservation"),
        ({"InstanceType": None}, {}, "must specify an instance type"),
        ({}, {"instanceTypes": [MODEL]}, "Cannot specify instance types"),
        ({}, {"launchTemplate": None}, "requires a launch template"),
    ],
)
def test_a_block_group_of_the_wrong_shape_is_refused(
    cloud: Any, template: dict[str, Any], group: dict[str, Any], words: str
) -> None:
    network = cloud.network()
    network.cluster()
    template_id = network.template(**template)
    if "launchTemplate" in group:
        group = {"launchTemplate": {}}
    with pytest.raises(ClientError, match=words) as error:
        network.gpu_group(template_id, **group)
    assert code_of(error) == "InvalidParameterException"
    assert network.eks.list_nodegroups(clusterName="c")["nodegroups"] == []


def test_a_block_group_outside_the_zone_of_its_block_is_refused(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    template_id = network.template()
    for subnets in ([network.public], [network.private, network.public]):
        with pytest.raises(ClientError, match="Availability Zone us-west-2a") as error:
            network.gpu_group(template_id, subnets=subnets)
        assert code_of(error) == "InvalidParameterException"


def test_a_block_group_is_kept_as_it_was_asked_for(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    scaling_group = network.gpu_group(network.template())
    seen = [network.eks.describe_nodegroup(clusterName="c", nodegroupName="gpu")["nodegroup"] for _ in range(2)]
    assert [one["status"] for one in seen] == ["CREATING", "ACTIVE"]
    group = seen[-1]
    assert group["capacityType"] == "CAPACITY_BLOCK"
    assert group["nodeRepairConfig"] == {"enabled": False}
    assert group["instanceTypes"] == []
    groups = cloud.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[scaling_group])
    face = groups["AutoScalingGroups"][0]
    assert (face["MinSize"], face["MaxSize"], face["DesiredCapacity"]) == (0, 1, 0)
    assert face["CreatedTime"].replace(tzinfo=None) == cloud.world.now.replace(tzinfo=None)


def test_a_cluster_with_a_node_group_cannot_be_deleted(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    network.gpu_group(network.template())
    with pytest.raises(ClientError) as error:
        network.eks.delete_cluster(name="c")
    assert code_of(error) == "ResourceInUseException"
    network.eks.delete_nodegroup(clusterName="c", nodegroupName="gpu")
    network.eks.delete_cluster(name="c")
    with pytest.raises(ClientError) as error:
        network.eks.describe_cluster(name="c")
    assert code_of(error) == "ResourceNotFoundException"


def test_the_nodes_of_an_ordinary_group_are_there_when_it_is_created(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    network.system_group()
    assert {when for when, _ in cloud.listener.joins} == {cloud.world.now}
    nodes = [node for _, node in cloud.listener.joins]
    assert [(node.instance_type, node.gpus, node.node_group) for node in nodes] == [("m7i.large", 0, "system")] * 2
    assert len({node.name for node in nodes}) == 2


def test_eks_scales_a_block_group_to_zero_forty_minutes_before_the_end(cloud: Any) -> None:
    group = cloud.serve_from_the_block()
    scaling = cloud.client("autoscaling")
    cloud.world.advance(cloud.end - timedelta(minutes=40, seconds=1))
    described = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"][0]
    assert (described["DesiredCapacity"], len(described["Instances"])) == (1, 1)
    cloud.world.advance(cloud.end - timedelta(minutes=40))
    described = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"][0]
    assert described["DesiredCapacity"] == 0
    cloud.world.advance(cloud.end - timedelta(minutes=30, seconds=1))
    assert cloud.aws.fleet.machines == ()


def test_a_node_group_is_scaled_by_its_configuration_too(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    network.gpu_group(network.template())
    cloud.world.advance(cloud.start)
    network.eks.update_nodegroup_config(
        clusterName="c", nodegroupName="gpu", scalingConfig={"minSize": 0, "maxSize": 1, "desiredSize": 1}
    )
    cloud.world.jump(timedelta(minutes=10))
    assert len(cloud.aws.fleet.machines) == 1


def test_addons_and_access_entries_live_and_go_with_their_cluster(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    eks = network.eks
    configured = '{"enableNetworkPolicy":"true"}'
    eks.create_addon(
        clusterName="c", addonName="coredns", addonVersion="v1.2.3-eksbuild.1", configurationValues=configured
    )
    assert eks.describe_addon(clusterName="c", addonName="coredns")["addon"]["configurationValues"] == configured
    assert eks.describe_addon(clusterName="c", addonName="coredns")["addon"]["addonVersion"] == "v1.2.3-eksbuild.1"
    assert eks.list_addons(clusterName="c")["addons"] == ["coredns"]
    with pytest.raises(ClientError) as error:
        eks.create_addon(clusterName="c", addonName="coredns")
    assert code_of(error) == "ResourceInUseException"
    role = "arn:aws:iam::123456789012:role/team"
    eks.create_access_entry(clusterName="c", principalArn=role)
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
    eks.associate_access_policy(
        clusterName="c", principalArn=role, policyArn=policy, accessScope={"type": "namespace", "namespaces": ["vllm"]}
    )
    listed = eks.list_associated_access_policies(clusterName="c", principalArn=role)["associatedAccessPolicies"]
    assert [item["policyArn"] for item in listed] == [policy]
    eks.delete_cluster(name="c")
    with pytest.raises(ClientError) as error:
        eks.describe_addon(clusterName="c", addonName="coredns")
    assert code_of(error) == "ResourceNotFoundException"


def test_the_creator_of_a_cluster_has_an_access_entry_already(cloud: Any) -> None:
    network = cloud.network()
    network.cluster()
    creator = cloud.client("sts").get_caller_identity()["Arn"]
    with pytest.raises(ClientError) as error:
        network.eks.create_access_entry(clusterName="c", principalArn=creator)
    assert code_of(error) == "ResourceInUseException"


def test_a_world_with_one_control_plane_refuses_a_second_cluster(cloud: Any) -> None:
    network = cloud.network()
    cloud.aws.cluster_endpoint = ("https://127.0.0.1:1", "Y2E=")
    network.cluster()
    for region in ("us-west-2", "us-east-1"):
        with pytest.raises(ClientError, match="one Kubernetes control plane, and cluster c has it"):
            cloud.client("eks", region=region).create_cluster(
                name="another", roleArn=network.role_arn, resourcesVpcConfig={"subnetIds": [network.private]}
            )
    cloud.client("eks").delete_cluster(name="c")
    cloud.client("eks").create_cluster(
        name="another", roleArn=network.role_arn, resourcesVpcConfig={"subnetIds": [network.private]}
    )
