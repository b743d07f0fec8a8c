"""The configuration that a session gives to the program: the same keys that a team writes into its stack file."""

from automation.errors import InvalidRequest
from automation.session.record import Record


def stack_config(record: Record) -> dict[str, str | list[str]]:
    """The keys of `Pulumi.<session>.yaml`. Raises InvalidRequest for a session that has no block yet."""
    request, block = record.request, record.block
    if block is None:
        raise InvalidRequest(happened=f"Session {record.session} has no block.", remedy="Rent one.")
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
    if request.capacity == "block":
        config["reservationId"] = block.reservation_id
    else:
        config["availabilityZoneId"] = block.availability_zone_id
    return config
