"""The public parameters that tell of EKS's node images. moto has those of other images; these join them."""

from __future__ import annotations

from collections.abc import Mapping

from moto.ssm.models import Parameter, ParameterDict, ssm_backends

from rehearsal.aws.clock import utcnow
from rehearsal.aws.operations import Request
from rehearsal.delays import NodeAmi


class NodeImageParameters:
    """Each public method runs before moto's operation of that name and sees to it that the parameters are there."""

    def __init__(self, images: Mapping[str, NodeAmi]) -> None:
        self._values = {name: value for variant, image in images.items() for name, value in _named(variant, image)}

    def get_parameter(self, request: Request) -> None:
        self._publish(request)

    def get_parameters(self, request: Request) -> None:
        self._publish(request)

    def get_parameters_by_path(self, request: Request) -> None:
        self._publish(request)

    def _publish(self, request: Request) -> None:
        parameters: ParameterDict = ssm_backends[request.account_id][request.region]._parameters
        for name in self._values.keys() - parameters.keys():
            parameters[name].append(_parameter(name, self._values[name], request.account_id))


def _named(variant: str, image: NodeAmi) -> list[tuple[str, str]]:
    version, _, day = image.release.partition("-")
    kubernetes = version.rpartition(".")[0]
    path = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/{variant}"
    releases = (f"amazon-eks-node-al2023-x86_64-{variant}-{kubernetes}-v{day}", "recommended")
    values = {"image_id": image.image_id, "release_version": image.release}
    return [(f"{path}/{release}/{leaf}", value) for release in releases for leaf, value in values.items()]


def _parameter(name: str, value: str, account_id: str) -> Parameter:
    return Parameter(  # type: ignore[abstract]  # moto makes them so too
        account_id=account_id,
        name=name,
        value=value,
        parameter_type="String",
        description=None,
        allowed_pattern=None,
        keyid=None,
        last_modified_date=utcnow(),
        version=1,
        data_type="text",
    )
