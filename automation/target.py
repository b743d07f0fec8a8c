"""Where a session runs: a real AWS account, or a rehearsal of one.

Everything outside this package that a session needs arrives through a `Target`, so production code never knows the
rehearsal. The real one is made by `aws_target`; a detached child makes its own by the function that
`RENTBLOCK_TARGET_FACTORY` names.
"""

import importlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from platformdirs import user_state_dir

from automation.aws_errors import aws_errors
from automation.clock import AwsClock, Clock
from automation.errors import InvalidRequest

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_logs import CloudWatchLogsClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_sts import STSClient

Mode = Literal["aws", "rehearsal"]

HOME_VARIABLE = "RENTBLOCK_HOME"
TARGET_FACTORY_VARIABLE = "RENTBLOCK_TARGET_FACTORY"
_DEFAULT_FACTORY = "automation.target:aws_target"

_DEFAULT_REGION = "us-east-1"
_CONNECT_TIMEOUT_S = 5
_READ_TIMEOUT_S = 30
_ATTEMPTS = 4
# So that CloudTrail tells a session's own calls from the engine's and from people's.
_USER_AGENT = "rentblock"
_ONLY_ASKED = "Nothing was changed. What already runs in AWS goes on and is billed."


Part = Literal["runner", "purchase", "sweep"]
"""A part of the product that calls AWS. Each needs permissions of its own."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """An account, its clock, and the environment of the programs that work in it.

    `account_id` is the account that is expected; `refusals.check_account` compares it with what STS says.
    `engine_environment` is laid over this process's own environment for Pulumi and its plugins (`PULUMI_HOME`,
    `PULUMI_BACKEND_URL`, ...); the processes of a rehearsal already live in a scrubbed one.
    `home` is where sessions are kept (`RENTBLOCK_HOME`). `part` is the part of the product that calls AWS: its name is
    in the User-Agent of each call. `providers` says, by name, which AWS and EKS providers the engine uses and how each
    was obtained; empty: the vendor's plugins of the pinned packages.
    `registry_mirror_url` answers for every image registry; None:
    each registry answers for itself.
    """

    mode: Mode
    account_id: str
    region: str
    boto_session: boto3.Session
    endpoint_url: str | None
    clock: Clock
    home: Path
    engine_environment: Mapping[str, str]
    part: Part = "runner"
    providers: Mapping[str, str] = field(default_factory=dict)
    registry_mirror_url: str | None = None
    _clients: dict[tuple[str, str, str, int], BaseClient] = field(default_factory=dict, repr=False, compare=False)

    def in_region(self, region: str) -> "Target":
        """The same account, seen from another region."""
        return replace(self, region=region)

    def acting_as(self, part: Part) -> "Target":
        """The same account, called by another part of the product."""
        return replace(self, part=part)

    @overload
    def client(self, service: Literal["ec2"], *, total_max_attempts: int = ...) -> "EC2Client": ...
    @overload
    def client(self, service: Literal["autoscaling"], *, total_max_attempts: int = ...) -> "AutoScalingClient": ...
    @overload
    def client(self, service: Literal["eks"], *, total_max_attempts: int = ...) -> "EKSClient": ...
    @overload
    def client(self, service: Literal["iam"], *, total_max_attempts: int = ...) -> "IAMClient": ...
    @overload
    def client(self, service: Literal["logs"], *, total_max_attempts: int = ...) -> "CloudWatchLogsClient": ...
    @overload
    def client(self, service: Literal["ssm"], *, total_max_attempts: int = ...) -> "SSMClient": ...
    @overload
    def client(self, service: Literal["sts"], *, total_max_attempts: int = ...) -> "STSClient": ...
    def client(self, service: str, *, total_max_attempts: int = _ATTEMPTS) -> BaseClient:
        """A boto3 client for this target's region and endpoint; `total_max_attempts=1` retries nothing.

        Clients are kept: making one takes a tenth of a second, and a session looks at AWS every few seconds.
        """
        key = (service, self.region, self.part, total_max_attempts)
        if key not in self._clients:
            config = Config(
                connect_timeout=_CONNECT_TIMEOUT_S,
                read_timeout=_READ_TIMEOUT_S,
                retries={"total_max_attempts": total_max_attempts, "mode": "standard"},
                user_agent_extra=f"{_USER_AGENT}/{self.part}",
            )
            self._clients[key] = self.boto_session.client(  # type: ignore[call-overload]
                service, region_name=self.region, endpoint_url=self.endpoint_url, config=config
            )
        return self._clients[key]


def aws_target(region: str | None = None, home: Path | None = None) -> Target:
    """The real AWS account of the user's credentials.

    Region: the one given, else AWS_REGION, else what boto3 is configured with, else us-east-1. One call to STS tells
    account and time, so this raises CredentialsMissing or AwsUnreachable.
    """
    target = unasked_aws_target(region, home)
    return replace(target, account_id=account_of(target))


def unasked_aws_target(region: str | None = None, home: Path | None = None) -> Target:
    """As `aws_target`, before AWS has been asked anything: it does not know its account yet."""
    with aws_errors("reading the AWS configuration"):
        boto_session = boto3.Session()
        # boto3 itself reads AWS_DEFAULT_REGION only; every other tool of a session takes this one first.
        region = region or os.environ.get("AWS_REGION") or boto_session.region_name or _DEFAULT_REGION
    return Target(
        mode="aws",
        account_id="",
        region=region,
        boto_session=boto_session,
        endpoint_url=None,
        clock=AwsClock(boto_session),
        home=home or home_from(os.environ),
        engine_environment={
            "PATH": _path_with_engine(os.environ.get("PATH", os.defpath)),
            "AWS_REGION": region,
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        },
    )


def _path_with_engine(path: str) -> str:
    """PATH, and behind it the folder of the engine that `make setup` has put into the user's cache, if there is one."""
    if shutil.which("pulumi", path=path):
        return path
    # Imported here: who has an engine of his own on PATH has no use for it.
    from toolchain import describe

    own = [str(part.path.parent) for part in describe() if part.name == "pulumi" and part.path]
    return os.pathsep.join([path, *own])


def account_of(target: Target) -> str:
    """The account that STS says these credentials belong to."""
    with aws_errors("asking STS whose credentials these are", cost=_ONLY_ASKED):
        return target.client("sts").get_caller_identity()["Account"]


def home_from(environ: Mapping[str, str]) -> Path:
    """Where sessions are kept: `$RENTBLOCK_HOME`, else the platform's place for a program's state."""
    chosen = environ.get(HOME_VARIABLE)
    return Path(chosen) if chosen else Path(user_state_dir("rent-the-block"))


def target_from_environment() -> Target:
    """The target of a detached child, and of a program that names none: made by the function that
    `RENTBLOCK_TARGET_FACTORY` ("module:function") names, else the user's AWS account."""
    module_name, _, function_name = os.environ.get(TARGET_FACTORY_VARIABLE, _DEFAULT_FACTORY).partition(":")
    try:
        factory = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidRequest(
            happened=f"{TARGET_FACTORY_VARIABLE} names no function: {error}.",
            remedy="Unset it, or write module:function.",
        ) from error
    target = factory()
    if not isinstance(target, Target):
        raise InvalidRequest(
            happened=f"{module_name}:{function_name} makes no Target.", remedy=f"Unset {TARGET_FACTORY_VARIABLE}."
        )
    return target
