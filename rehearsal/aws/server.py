"""The simulated AWS of one world: moto behind HTTP on loopback, with this package's additions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from rehearsal.aws import clock  # isort: skip  (before any other part of moto is loaded)

from moto.autoscaling.responses import AutoScalingResponse
from moto.core import responses as core_responses
from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.core.utils import method_names_from_class
from moto.ec2.responses import EC2Response
from moto.eks import urls as eks_urls
from moto.eks.responses import EKSResponse
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.ssm.responses import SimpleSystemManagerResponse
from werkzeug.http import http_date
from werkzeug.serving import make_server
from werkzeug.wsgi import ClosingIterator

from rehearsal.aws.autoscaling import AutoScaling, AutoScalingOperations
from rehearsal.aws.calls import Call, CallLog, principal_of
from rehearsal.aws.capacity_block_operations import CapacityBlockOperations
from rehearsal.aws.capacity_blocks import CapacityBlocks
from rehearsal.aws.cluster_versions import ClusterVersionOperations
from rehearsal.aws.ec2_corrections import Ec2Corrections
from rehearsal.aws.eks import EksOperations
from rehearsal.aws.eks_contents import AccessEntryOperations, AddonOperations, ClusterContents
from rehearsal.aws.eks_creations import Creations
from rehearsal.aws.fleet import Fleet
from rehearsal.aws.instances import InstanceOperations
from rehearsal.aws.inventory import Existing, inventory
from rehearsal.aws.leftovers import LeftoverInterface
from rehearsal.aws.meter import Meter
from rehearsal.aws.network import NetworkGuards
from rehearsal.aws.node_groups import NodeGroups
from rehearsal.aws.node_images import NodeImageParameters
from rehearsal.aws.operations import correct, guard, serve
from rehearsal.aws.pod_identity import PodIdentityOperations
from rehearsal.aws.staged_weights import stage
from rehearsal.delays import Constants, Scenario, load_constants
from rehearsal.world import World

ACCOUNT_ID = "123456789012"
REGION = "us-west-2"
"""Where the world's held reservation is."""

# The methods of moto's response classes. They change when a simulated AWS starts and stops, and another user of moto in
# this process may have asked for them before.
_method_names: dict[type, list[str]] = {}

# moto reads these when it needs them. Roles of EKS need the managed policies; nobody needs moto's thousand images, and
# loading them takes longer than all else; naming the account saves a search in each request.
_MOTO_SETTINGS = {
    "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
    "MOTO_EC2_LOAD_DEFAULT_AMIS": "false",
    "MOTO_ACCOUNT_ID": ACCOUNT_ID,
}


class SimulatedAws:
    """A running simulated AWS. Only one can run in a process at a time: moto's state is the process's."""

    def __init__(self, world: World, constants: Constants) -> None:
        refusals = constants.refusals
        self._world = world
        self.wait_percent = 2
        self.on_pulumi_request: list[Callable[[str], None]] = []
        """Told of each request of a Pulumi provider, with the client's port, before it is answered."""
        self._calls = CallLog(world, refusals["not_implemented"])
        self.blocks = CapacityBlocks(world, constants, ACCOUNT_ID)
        self.fleet = Fleet(world, self.blocks, refusals, ACCOUNT_ID)
        self.meter = Meter(world, constants.prices, self.blocks, ACCOUNT_ID, self.fleet.stamp_end)
        self._calls.on_change.append(self.meter.after_call)
        self.fleet.on_change.append(self._after_fleet_change)
        scaling = AutoScaling(world, self.fleet, refusals, ACCOUNT_ID)
        contents = ClusterContents(refusals)
        versions = {name: addon.version for name, addon in constants.addons.items()}
        self.creations = Creations(world)
        groups = NodeGroups(world, self.blocks, scaling, refusals)
        self._eks = EksOperations(groups, contents, self.creations, refusals)
        cluster_versions = constants.cluster_versions
        self._stop = ExitStack()
        for operations, response_class in (
            (CapacityBlockOperations(self.blocks, refusals), EC2Response),
            (InstanceOperations(self.fleet, refusals), EC2Response),
            (AutoScalingOperations(scaling), AutoScalingResponse),
            (self._eks, EKSResponse),
            (ClusterVersionOperations(world, cluster_versions), EKSResponse),
            (AddonOperations(contents, self.creations, refusals, versions, cluster_versions), EKSResponse),
            (AccessEntryOperations(contents, refusals), EKSResponse),
            (PodIdentityOperations(contents, refusals), EKSResponse),
        ):
            self._stop.callback(serve(operations, response_class))
        self._stop.callback(guard(NetworkGuards(refusals), EC2Response))
        self._stop.callback(correct(Ec2Corrections(), EC2Response))
        self._stop.callback(guard(NodeImageParameters(constants.node_amis), SimpleSystemManagerResponse))
        self._stop.callback(stage(constants.staged_weights, ACCOUNT_ID))
        self._stop.callback(_method_names.clear)
        self._stop.callback(self._calls.record())
        self._stop.callback(lambda: clock.use(None))
        clock.use(lambda: world.now)
        self.port = self._listen()

    @property
    def url(self) -> str:
        """The endpoint for every service and region."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls so far, in their order."""
        return self._calls.calls

    @property
    def cluster_endpoint(self) -> tuple[str, str] | None:
        """URL and base64 CA of the control plane that every cluster created from now on shows."""
        return self._eks.cluster_endpoint

    @cluster_endpoint.setter
    def cluster_endpoint(self, endpoint: tuple[str, str] | None) -> None:
        self._eks.cluster_endpoint = endpoint

    @property
    def on_new_cluster(self) -> list[Callable[[], None]]:
        """Told that a cluster is being made, before anyone can reach its control plane."""
        return self._eks.on_new_cluster

    def call_record(self) -> str:
        """The AWS API actions that were called, with count and caller, as JSON. A least policy is made from it."""
        return self._calls.summary()

    def apply(self, scenario: Scenario) -> None:
        """Let happen what a scenario lets go wrong in AWS."""
        for name, count in scenario.failed_creations.items():
            self.creations.fail(name, count)
        if scenario.leftover_interface:
            self._calls.on_change.append(LeftoverInterface(ACCOUNT_ID).after_call)

    def operation_ended(self) -> None:
        """To be called when an engine operation has ended, after the world has jumped to its end: see `Meter`."""
        with self._world.lock:
            self.meter.operation_ended()

    def inventory(self) -> list[Existing]:
        """Everything that exists now and bills or blocks a deletion; blocks that were bought and run are among it."""
        with self._world.lock:
            bought = (item for item in self.blocks.reservations if not item.held and item.state != "expired")
            blocks = [
                Existing(kind="capacity_block", resource_id=item.reservation_id, region=item.region) for item in bought
            ]
            return [*inventory(ACCOUNT_ID), *blocks]

    def stop(self) -> None:
        """Stop listening and take everything back that was added to moto."""
        self._stop.close()

    def _after_fleet_change(self) -> None:
        # What a call does to the fleet, the meter sees after the call, together with who made it.
        if not self._calls.answering:
            self.meter.after_event()

    def _listen(self) -> int:
        app = _one_at_a_time(DomainDispatcherApplication(create_backend_app), self._world, self.on_pulumi_request)
        server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_handler(self._world))
        # The interval is how long `stop` waits for the server to notice.
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="simulated-aws", daemon=True)
        thread.start()

        def close() -> None:
            server.shutdown()
            thread.join(timeout=10)
            server.server_close()

        self._stop.callback(close)
        return int(server.server_port)


def start_aws(world: World, *, constants: Constants | None = None) -> SimulatedAws:
    """Start an empty simulated AWS with the world's held reservation in it. Raises OSError if it can't listen."""
    os.environ.update(_MOTO_SETTINGS)
    _forget_the_last_world()
    aws = SimulatedAws(world, constants or load_constants())
    aws.blocks.hold(region=REGION, zone_id="usw2-az2", instance_type="p6-b300.48xlarge", instance_count=1)
    return aws


def _forget_the_last_world() -> None:
    # Emptied first: moto's reset would make every backend anew, IAM with its 1,600 policies too, only to drop it then.
    for backends in vars(BackendDict)["_instances"]:
        backends.clear()
    BackendDict.reset()
    reset_model_data()
    _method_names.clear()


def _handler(world: World) -> type[MotoRequestHandler]:
    class Handler(MotoRequestHandler):
        # Answers go out as a head and a body; Nagle's algorithm would hold the second back for 40 ms.
        disable_nagle_algorithm = True

        def date_time_string(self, timestamp: float | None = None) -> str:
            """The Date header: clients take their time from it."""
            return http_date(world.now)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing: the call log has it."""

    return Handler


def _one_at_a_time(
    app: WSGIApplication, world: World, on_pulumi_request: Sequence[Callable[[str], None]]
) -> WSGIApplication:
    """moto is not made for parallel requests, and no event of the world may run in the middle of one."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if principal_of(environ.get("HTTP_USER_AGENT", "")) == "pulumi":
            for tell in on_pulumi_request:
                tell(environ["REMOTE_PORT"])
        with world.lock:
            return list(ClosingIterator(app(environ, start_response)))

    return answer


def _prepare_moto() -> None:
    # EKS has paths that moto does not know; which operation a path means is decided by botocore's model.
    eks_urls.url_paths["{0}/.*"] = EKSResponse.dispatch

    # moto lists the methods of a response class in each request; EC2 has some 500 of them.
    def names(response_class: type) -> list[str]:
        if response_class not in _method_names:
            _method_names[response_class] = method_names_from_class(response_class)
        return _method_names[response_class]

    vars(core_responses)["method_names_from_class"] = names


_prepare_moto()
