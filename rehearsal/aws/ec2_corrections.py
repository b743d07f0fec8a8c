"""Where moto makes an EC2 resource that differs from what EC2 makes.

With each of these differences the AWS provider finds a change in a stack that nobody changed.
"""

from __future__ import annotations

from moto.ec2.models import EC2Backend, ec2_backends

from rehearsal.aws.operations import Request


class Ec2Corrections:
    """Each public method runs after moto's operation of that name."""

    def create_subnet(self, request: Request) -> None:
        """EC2 gives public addresses by default in default subnets only; moto in the first subnet of a zone."""
        for subnets in _ec2(request).subnets.values():
            for subnet in subnets.values():
                if subnet.vpc_id == request.text("VpcId") and subnet.cidr_block == request.text("CidrBlock"):
                    subnet.default_for_az = False
                    subnet.map_public_ip_on_launch = False

    def create_nat_gateway(self, request: Request) -> None:
        """A NAT gateway in a subnet is zonal; its first address is the primary one."""
        for gateway in _ec2(request).nat_gateways.values():
            # The provider reads the address of a zonal gateway only. It would replace a gateway that it adopts.
            setattr(gateway, "availability_mode", "zonal")  # noqa: B010 - moto declares no such attribute
            for address in gateway.address_set[:1]:
                address["isPrimary"] = True

    def create_launch_template(self, request: Request) -> None:
        """A template's own tags are not tags of what it launches."""
        for template in _ec2(request).launch_templates.values():
            for version in template.versions:
                given = version.data.get("TagSpecifications", [])
                version.data["TagSpecifications"] = [
                    one for one in given if one.get("ResourceType") != "launch-template"
                ]


def _ec2(request: Request) -> EC2Backend:
    return ec2_backends[request.account_id][request.region]
