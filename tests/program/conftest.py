"""Runs the real __main__.py against a monitor that records every request the program makes of the engine."""

import asyncio
import runpy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from pulumi.runtime import mocks, rpc, set_all_config
from pulumi.runtime.settings import ROOT
from pulumi.runtime.stack import run_in_stack

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # these warn of modules of their own when they are imported
    import pulumi_aws as aws
    import pulumi_eks  # noqa: F401

    assert aws.ec2.Vpc  # the package loads its modules when they are first used

PROJECT = Path(__file__).resolve().parents[2]
SESSION = "rtb-20261201-ab12"

BLOCK = {
    "region": "us-west-2",
    "capacity": "block",
    "reservationId": "cr-0123456789abcdef0",
    "instanceType": "p6-b300.48xlarge",
    "instanceCount": "1",
    "model": "kimi-k3",
    "endpointPublicAccessCidrs": '["203.0.113.7/32"]',
    "weights": "s3://rent-the-block-weights/kimi-k3",
}
BY_THE_HOUR = {
    "region": "us-west-2",
    "capacity": "on-demand",
    "availabilityZoneId": "usw2-az2",
    "instanceType": "g6.xlarge",
    "model": "qwen3-0.6b",
    "endpointPublicAccessCidrs": '["203.0.113.7/32"]',
}


@dataclass(kw_only=True)
class Cloud(mocks.Mocks):
    """What AWS answers: a reservation, zones, and ids for whatever is created."""

    reservation: dict[str, str]
    zones: Sequence[str]
    failure: str
    zones_failure: str
    gpu_nodes: int = 0
    calls: list[mocks.MockCallArgs] = field(default_factory=list)

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        outputs: dict[str, Any] = {"name": args.name, **args.inputs, "arn": f"arn:aws:mock:::{args.name}"}
        if args.typ == "aws:ec2/launchTemplate:LaunchTemplate":
            outputs["latestVersion"] = 3
        if args.typ == "eks:index:Cluster":
            outputs["eksCluster"] = aws.eks.Cluster(
                f"{args.name}-inner", name=args.inputs["name"], role_arn="arn:aws:mock:::role", vpc_config={}
            )
            outputs["kubeconfigJson"] = '{"kind": "Config"}'
            outputs["clusterSecurityGroupId"] = "sg-cluster"
        return f"{args.name}-id", outputs

    def call(self, args: mocks.MockCallArgs) -> Any:
        self.calls.append(args)
        if args.token == "aws:ec2/getCapacityBlockReservation:getCapacityBlockReservation":
            failures = [("id", self.failure)] if self.failure else []
            return {"id": args.args["id"], **self.reservation}, failures
        if args.token == "aws:index/getAvailabilityZones:getAvailabilityZones":
            return {"zoneIds": list(self.zones), "names": []}, [("", self.zones_failure)] if self.zones_failure else []
        if args.token == "aws:eks/getNodeGroup:getNodeGroup":
            missing = [("", "reading EKS Node Group (dev:gpu): couldn't find resource")]
            return {"resources": [{"autoscalingGroups": [{"name": "asg"}]}]}, [] if self.gpu_nodes else missing
        if args.token == "aws:autoscaling/getGroup:getGroup":
            return {"desiredCapacity": self.gpu_nodes}, []
        raise AssertionError(f"the program asked for {args.token}")


@dataclass(frozen=True, kw_only=True)
class Request:
    """One RegisterResource request; `raw` has the options that mocks do not show."""

    type: str
    name: str
    urn: str
    inputs: Mapping[str, Any]
    raw: Any

    @property
    def deleted_with(self) -> str:
        return str(self.raw.deletedWith)


class Recorder(mocks.MockMonitor):
    """A mock monitor that keeps the requests, and the stack's outputs."""

    def __init__(self, cloud: Cloud, requests: list[Request]) -> None:
        super().__init__(cloud)
        self._requests = requests
        self.outputs: dict[str, Any] = {}

    def RegisterResource(self, request: Any) -> Any:
        answer = super().RegisterResource(request)
        if not request.name.endswith("-inner"):  # made by the mock, not by the program
            inputs = MessageToDict(request.object)
            self._requests.append(
                Request(type=request.type, name=request.name, urn=answer.urn, inputs=inputs, raw=request)
            )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:
        if "pulumi:pulumi:Stack::" in request.urn:
            self.outputs = rpc.deserialize_properties(request.outputs, keep_unknowns=True)
        return super().RegisterResourceOutputs(request)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the program asked of the engine."""

    requests: list[Request]
    outputs: Mapping[str, Any]
    calls: list[mocks.MockCallArgs]

    def of(self, type_: str) -> list[Request]:
        return [request for request in self.requests if request.type == type_]

    def one(self, type_: str, name: str = "") -> Request:
        (request,) = (request for request in self.of(type_) if name in request.name)
        return request


class Program:
    """Call it with a stack's configuration, and what AWS says, to run the program; exceptions come through.

    `requests` are those of the last run, also of one that failed.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def __call__(
        self,
        configuration: Mapping[str, str],
        *,
        zones: Sequence[str] = ("usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4"),
        failure: str = "",
        zones_failure: str = "",
        stack: str = SESSION,
        **reservation: str,
    ) -> Run:
        usual = {"instanceType": "p6-b300.48xlarge", "availabilityZoneId": "usw2-az2", "state": "scheduled"}
        cloud = Cloud(reservation={**usual, **reservation}, zones=zones, failure=failure, zones_failure=zones_failure)
        self.requests = []
        recorder = Recorder(cloud, self.requests)
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        mocks.set_mocks(cloud, project="rent-the-block", stack=stack, preview=False, monitor=recorder)
        ROOT.set(None)  # the program makes its own root, as under the engine
        set_all_config({f"rent-the-block:{key}": value for key, value in configuration.items()})
        try:
            loop.run_until_complete(run_in_stack(_main))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
        return Run(requests=self.requests, outputs=recorder.outputs, calls=cloud.calls)


def _main() -> None:
    runpy.run_path(str(PROJECT / "__main__.py"), run_name="__main__")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    monkeypatch.setenv("PULUMI_ERROR_OUTPUT_STRING", "true")
    monkeypatch.chdir(PROJECT)
    monkeypatch.syspath_prepend(str(PROJECT))
    loops: list[asyncio.AbstractEventLoop] = []
    new_event_loop = asyncio.new_event_loop

    def recorded_event_loop() -> asyncio.AbstractEventLoop:
        loops.append(new_event_loop())
        return loops[-1]

    # The mock monitor makes a loop in each thread that it runs in and closes none of them.
    monkeypatch.setattr(asyncio, "new_event_loop", recorded_event_loop)
    yield Program()
    set_all_config({})
    ROOT.set(None)
    for loop in loops:
        loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def configuration() -> dict[str, str]:
    """A stack's configuration for a block, as Pulumi keeps it."""
    return dict(BLOCK)


@pytest.fixture(scope="session")
def runs() -> dict[str, Run]:
    """Runs that several tests look at and none changes."""
    return {}


@pytest.fixture
def dev(program: Program, runs: dict[str, Run]) -> Run:
    """The program run for a block."""
    if "block" not in runs:
        runs["block"] = program(BLOCK)
    return runs["block"]


@pytest.fixture
def on_demand(program: Program, runs: dict[str, Run]) -> Run:
    """The program run for a GPU by the hour."""
    if "by the hour" not in runs:
        runs["by the hour"] = program(BY_THE_HOUR)
    return runs["by the hour"]


@pytest.fixture
def two_nodes(program: Program, runs: dict[str, Run]) -> Run:
    """The program run for a block of two instances."""
    if "two nodes" not in runs:
        runs["two nodes"] = program({**BLOCK, "instanceCount": "2"})
    return runs["two nodes"]
