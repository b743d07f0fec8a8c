"""Starts the providers of a world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pulumi.runtime.proto.provider_pb2_grpc import add_ResourceProviderServicer_to_server

from rehearsal.providers.aws import AwsProvider
from rehearsal.providers.eks import EksServer
from rehearsal.providers.operations import OperationLog
from rehearsal.providers.protocol import Server


@dataclass(frozen=True, kw_only=True)
class Providers:
    """The running providers. `debug_providers` is the value of PULUMI_DEBUG_PROVIDERS for an engine."""

    debug_providers: str
    stop: Callable[[], None]


def start_providers(endpoint_url: str, kubeconfig_json: Callable[[], str], log: OperationLog) -> Providers:
    """Serve `aws` and `eks` on free ports of 127.0.0.1.

    `endpoint_url` is the simulated AWS. `kubeconfig_json` gives, when a cluster is built, the kubeconfig of the local
    control plane that stands behind it. `log` learns what each engine operation changed.
    """
    aws_provider = AwsProvider(endpoint_url, log)
    aws = Server(lambda server: add_ResourceProviderServicer_to_server(aws_provider, server))
    eks = EksServer(kubeconfig_json)

    def stop() -> None:
        aws.stop()
        eks.stop()

    return Providers(debug_providers=f"aws:{aws.port},eks:{eks.port}", stop=stop)
