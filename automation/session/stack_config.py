"""The configuration that a session gives to the program: the same keys that a team writes into its stack file."""

from automation.ledger.request import RentRequest
from planning.block import Block


def stack_config(request: RentRequest, block: Block, image_digest: str | None) -> dict[str, str | list[str]]:
    """The keys of `Pulumi.<session>.yaml`, without their namespace. `image_digest` None: the registry named none."""
    config: dict[str, str | list[str]] = {
        "region": block.region,
        "capacity": request.capacity,
        "instanceType": block.instance_type,
        "instanceCount": str(block.instance_count),
        "model": request.model,
        "endpointPublicAccessCidrs": [str(cidr) for cidr in request.endpoint_cidrs],
    }
    if request.weights_uri:
        config["weights"] = request.weights_uri
    if request.weights_kms_key_arn:
        config["weightsKmsKeyArn"] = request.weights_kms_key_arn
    if request.image_registry_prefix:
        config["imageRegistryPrefix"] = request.image_registry_prefix
    if request.image_pull_secret:
        config["imagePullSecret"] = request.image_pull_secret
    if image_digest:
        config["imageDigest"] = image_digest
    if request.capacity == "block":
        config["reservationId"] = block.reservation_id
    else:
        config["availabilityZoneId"] = block.availability_zone_id
    return config
