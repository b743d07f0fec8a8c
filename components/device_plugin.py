"""NVIDIA's device plugin: what makes a node's GPUs allocatable. The node image does not bring it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components import names, versions
from components.images import pull_reference

KUBELET_PLUGINS = "/var/lib/kubelet/device-plugins"


@dataclass(frozen=True, kw_only=True)
class DevicePluginArgs:
    """`cluster` is the component that this goes down with."""

    cluster: pulumi.Resource


class DevicePlugin(pulumi.ComponentResource):
    """The DaemonSet, on GPU nodes only; nothing waits for one to exist."""

    def __init__(self, name: str, args: DevicePluginArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("rent-the-block:nodes:DevicePlugin", name, None, opts)
        labels = {names.APP_LABEL: names.DEVICE_PLUGIN}
        k8s.apps.v1.DaemonSet(
            f"{name}-daemonset",
            metadata={
                "name": names.DEVICE_PLUGIN,
                "namespace": "kube-system",
                "labels": labels,
                # Its pods come with the block's nodes, hours after the update.
                "annotations": {"pulumi.com/skipAwait": "true"},
            },
            spec={
                "selector": {"match_labels": labels},
                "update_strategy": {"type": "RollingUpdate"},
                "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
            },
            opts=pulumi.ResourceOptions(parent=self, deleted_with=args.cluster),
        )
        self.register_outputs({})


def pod_spec() -> k8s.core.v1.PodSpecArgs:
    """The plugin's pod: it registers with the kubelet by a socket, and tolerates every taint that we set."""
    return k8s.core.v1.PodSpecArgs(
        node_selector={names.ROLE_LABEL: names.GPU_ROLE},
        tolerations=[k8s.core.v1.TolerationArgs(key=names.GPU_TAINT_KEY, operator="Exists", effect="NoSchedule")],
        priority_class_name="system-node-critical",
        automount_service_account_token=False,
        containers=[
            k8s.core.v1.ContainerArgs(
                name=names.DEVICE_PLUGIN,
                image=pull_reference(versions.DEVICE_PLUGIN_IMAGE, digest=versions.DEVICE_PLUGIN_DIGEST),
                # A pod that ends is shown by its restarts; one that waits for a driver for ever is shown by nothing.
                env=[k8s.core.v1.EnvVarArgs(name="FAIL_ON_INIT_ERROR", value="true")],
                security_context=k8s.core.v1.SecurityContextArgs(
                    allow_privilege_escalation=False, capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"])
                ),
                volume_mounts=[k8s.core.v1.VolumeMountArgs(name="plugins", mount_path=KUBELET_PLUGINS)],
            )
        ],
        volumes=[
            k8s.core.v1.VolumeArgs(name="plugins", host_path=k8s.core.v1.HostPathVolumeSourceArgs(path=KUBELET_PLUGINS))
        ],
    )
