"""The `eks` provider: the component `eks.Cluster` of pulumi-eks 4.4, as far as a cluster without its defaults needs it.

The real one is a Node.js plugin (pulumi/pulumi-eks, nodejs/eks/cluster/cluster.ts). This one registers the same kinds
of children by Pulumi's Python SDK. What it does not simulate it refuses, so that no input lacks an effect in silence.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import grpc.aio  # type: ignore[import-untyped]
import pulumi
import pulumi_aws as aws
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime.proto import plugin_pb2, provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import add_ResourceProviderServicer_to_server

Inputs = Mapping[str, pulumi.Input[Any]]

_CLUSTER = "eks:index:Cluster"
_TABLE = "rehearsal/providers/eks.py"

# Only these values are simulated: each other one would make children that are not built here.
_ONLY: Mapping[str, object] = {
    "authenticationMode": "API",
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "createInstanceRole": False,
}

_TAKEN = frozenset(
    {
        "bootstrapSelfManagedAddons", "corednsAddonOptions", "deletionProtection", "enabledClusterLogTypes",
        "endpointPrivateAccess", "endpointPublicAccess", "kubeProxyAddonOptions", "name", "privateSubnetIds",
        "publicAccessCidrs", "publicSubnetIds", "subnetIds", "tags", "upgradePolicy", "version", "vpcCniOptions",
        "vpcId",
    }
)  # fmt: skip

_CONFLICTS = ("resolveConflictsOnCreate", "resolveConflictsOnUpdate")

_OPTIONS: Mapping[str, frozenset[str]] = {
    "kubeProxyAddonOptions": frozenset({"version", *_CONFLICTS}),
    "vpcCniOptions": frozenset({"addonVersion", "enableNetworkPolicy", *_CONFLICTS}),
}

_SERVICE_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
_ASSUME_BY_EKS = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "eks.amazonaws.com"},
                "Action": ["sts:AssumeRole", "sts:TagSession"],
            }
        ],
    }
)

# Seen once the cluster exists; pulumi-eks ignores them too, since EKS sets them at creation only.
_SET_ONCE = ["accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons"]


def refusals(inputs: Inputs) -> list[pulumi.InputPropertyErrorDetails]:
    """What of `inputs` is not simulated: one sentence each, with its path."""
    found: list[pulumi.InputPropertyErrorDetails] = []
    for name, value in inputs.items():
        if name in _ONLY:
            if value != _ONLY[name]:
                found.append(_refusal(name, f"only {name}={_ONLY[name]!r} is simulated, not {value!r}: see {_TABLE}"))
        elif name not in _TAKEN:
            found.append(_refusal(name, f"eks.Cluster has no simulated input {name}: see {_TABLE}"))
        elif name in _OPTIONS and isinstance(value, dict):
            for member in sorted(value.keys() - _OPTIONS[name]):
                found.append(
                    _refusal(f"{name}.{member}", f"eks.Cluster has no simulated input {name}.{member}: see {_TABLE}")
                )
    for name, only in _ONLY.items():
        if name not in inputs:
            found.append(_refusal(name, f"only {name}={only!r} is simulated, and it is not the default: see {_TABLE}"))
    coredns = inputs.get("corednsAddonOptions")
    if not isinstance(coredns, dict) or coredns.get("enabled") is not False:
        found.append(
            _refusal("corednsAddonOptions.enabled", f"CoreDNS as a default add-on is not simulated: see {_TABLE}")
        )
    return found


def _refusal(path: str, reason: str) -> pulumi.InputPropertyErrorDetails:
    return {"property_path": path, "reason": reason}


class _Cluster(pulumi.ComponentResource):
    """The component itself: its URN and type are what the program sees."""

    def __init__(self, name: str, inputs: Inputs, opts: pulumi.ResourceOptions) -> None:
        super().__init__(_CLUSTER, name, {}, opts)
        own = pulumi.ResourceOptions(parent=self)
        tags = inputs.get("tags")
        role = aws.iam.Role(f"{name}-eksRole-role", assume_role_policy=_ASSUME_BY_EKS, tags=tags, opts=own)
        policy = aws.iam.RolePolicyAttachment(
            f"{name}-eksRole-cluster-policy", role=role.name, policy_arn=_SERVICE_POLICY, opts=own
        )
        self.cluster = aws.eks.Cluster(
            f"{name}-eksCluster",
            name=inputs.get("name"),
            role_arn=role.arn,
            version=inputs.get("version"),
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=_subnets(inputs),
                endpoint_private_access=inputs.get("endpointPrivateAccess"),
                endpoint_public_access=inputs.get("endpointPublicAccess"),
                public_access_cidrs=inputs.get("publicAccessCidrs"),
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            bootstrap_self_managed_addons=inputs.get("bootstrapSelfManagedAddons"),
            enabled_cluster_log_types=inputs.get("enabledClusterLogTypes"),
            deletion_protection=inputs.get("deletionProtection"),
            upgrade_policy=inputs.get("upgradePolicy"),
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy], ignore_changes=_SET_ONCE),
        )
        self._addon(name, "kube-proxy", inputs.get("kubeProxyAddonOptions", {}), "version", tags)
        self._addon(name, "vpc-cni", inputs.get("vpcCniOptions", {}), "addonVersion", tags)
        self.register_outputs({})

    def _addon(self, name: str, addon: str, options: pulumi.Input[Any], version: str, tags: pulumi.Input[Any]) -> None:
        given = pulumi.Output.from_input(options)
        aws.eks.Addon(
            f"{name}-{addon}",
            cluster_name=self.cluster.name,
            addon_name=addon,
            addon_version=given.apply(lambda options: options.get(version)),
            configuration_values=given.apply(_configuration_values),
            resolve_conflicts_on_create=given.apply(lambda options: options.get(_CONFLICTS[0])),
            resolve_conflicts_on_update=given.apply(lambda options: options.get(_CONFLICTS[1])),
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
        )


def _configuration_values(options: Mapping[str, Any]) -> str | None:
    """The add-on's configuration as JSON with sorted keys, as EKS takes it; None where nothing is configured.

    The real component adds its defaults for the CNI's environment (nodejs/eks/addons/cni-addon.ts, computeEnv); no
    simulated part reads them.
    """
    if options.get("enableNetworkPolicy") is None:
        return None
    return json.dumps({"enableNetworkPolicy": "true" if options["enableNetworkPolicy"] else "false"}, sort_keys=True)


def _subnets(inputs: Inputs) -> pulumi.Output[list[str]]:
    """Public, private and unnamed subnets, each once."""
    names = ("publicSubnetIds", "privateSubnetIds", "subnetIds")
    given = pulumi.Output.all(*(inputs[name] for name in names if name in inputs))
    return given.apply(lambda lists: list(dict.fromkeys(subnet for subnets in lists for subnet in subnets)))


class _EksProvider(Provider):
    def __init__(self, kubeconfig_json: Callable[[], str]) -> None:
        super().__init__(version=importlib.metadata.version("pulumi_eks"))
        self._kubeconfig_json = kubeconfig_json

    def construct(
        self, name: str, resource_type: str, inputs: Inputs, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Build the component. Raises InputPropertiesError for what is not simulated."""
        if resource_type != _CLUSTER:
            raise pulumi.InputPropertiesError(f"{resource_type} is not simulated: add it to {_TABLE}", [])
        refused = refusals(inputs)
        if refused:
            raise pulumi.InputPropertiesError(f"eks.Cluster {name} is not simulated as it is written", refused)
        component = _Cluster(name, inputs, options or pulumi.ResourceOptions())
        cluster = component.cluster
        # EKS's kubeconfig exists once the cluster does; here it is that of the local control plane behind it.
        text: pulumi.Output[str] = cluster.endpoint.apply(lambda _: self._kubeconfig_json())
        kubeconfig: pulumi.Output[str] = pulumi.Output.secret(text)
        state = {
            "eksCluster": cluster,
            "kubeconfigJson": kubeconfig,
            "kubeconfig": kubeconfig.apply(json.loads),
            "clusterSecurityGroupId": cluster.vpc_config.cluster_security_group_id,
            "instanceRoles": [],
        }
        return ConstructResult(urn=component.urn, state=state)


class _EksServicer(ProviderServicer):
    """The SDK's servicer, and the calls by which an engine attaches to a running provider."""

    async def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: object
    ) -> provider_pb2.ProviderHandshakeResponse:
        self.engine_address = request.engine_address
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True, accept_outputs=True)

    async def Attach(self, request: plugin_pb2.PluginAttach, context: object) -> empty_pb2.Empty:
        self.engine_address = request.address
        return empty_pb2.Empty()

    async def CheckConfig(self, request: provider_pb2.CheckRequest, context: object) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: provider_pb2.DiffRequest, context: object) -> provider_pb2.DiffResponse:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)


class EksServer:
    """The provider on a free port of 127.0.0.1, in an event loop of its own: the SDK's servicer is asynchronous."""

    def __init__(self, kubeconfig_json: Callable[[], str]) -> None:
        self.port = 0
        self._kubeconfig_json = kubeconfig_json
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        # What a cancelled operation leaves behind has been told to its engine; here it would only fill the terminal.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="provider-eks", daemon=True)
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """End at once; requests in progress fail."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self) -> None:
        server = grpc.aio.server()
        servicer = _EksServicer(_EksProvider(self._kubeconfig_json), [], "")
        add_ResourceProviderServicer_to_server(servicer, server)
        self.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        self._started.set()
        await self._stop.wait()
        await server.stop(grace=None)
