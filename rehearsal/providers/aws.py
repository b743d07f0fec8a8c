"""The `aws` provider: what the engine asks of pulumi-aws, answered by boto3 against the simulated AWS.

It holds no state: a resource is what AWS shows of it. It never waits either; how long AWS would have taken is computed
when the operation has ended (operations.py).
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError, ClientError
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import plugin_pb2, provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from rehearsal.providers.cloud import Cloud
from rehearsal.providers.compare import autoname, compare, previewed
from rehearsal.providers.critical_path import Kind, Mutation
from rehearsal.providers.functions import FUNCTIONS
from rehearsal.providers.lifecycle import Lifecycle, with_derived
from rehearsal.providers.operations import OperationLog
from rehearsal.providers.protocol import UNKNOWN, Refused, Unhealthy, Wire, abort
from rehearsal.providers.resources import ROWS
from rehearsal.providers.resources.row import Row, is_gone, unknown_inputs
from rehearsal.providers.sessions import Session

_TABLE = "rehearsal/providers/resources/ (docs/design.md)"

Request = TypeVar("Request")
Answer = TypeVar("Answer")


def _answered(
    method: Callable[[AwsProvider, Request, grpc.ServicerContext], Answer],
) -> Callable[[AwsProvider, Request, grpc.ServicerContext], Answer]:
    """Give what went wrong to the engine in one sentence: AWS's own where it comes from AWS."""

    @functools.wraps(method)
    def answer(self: AwsProvider, request: Request, context: grpc.ServicerContext) -> Answer:
        try:
            return method(self, request, context)
        except (BotoCoreError, ClientError, NotImplementedError, Refused, Unhealthy) as error:
            abort(context, error)

    return answer


class AwsProvider(ResourceProviderServicer):
    """Serves every provider `aws` of every engine in this world."""

    def __init__(self, endpoint_url: str, log: OperationLog) -> None:
        """`endpoint_url` is the simulated AWS; `log` learns of each mutation."""
        self._cloud = Cloud(endpoint_url)
        self._log = log
        # Several engines, and several providers of one program, use this server; their connections tell them apart.
        self._sessions: dict[str, Session] = {}

    # --- Before any resource ---

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        self._log.attached(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True)

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self._log.attached(request.address)
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=importlib.metadata.version("pulumi_aws"))

    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        return provider_pb2.GetSchemaResponse(schema="{}")

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        return provider_pb2.CheckResponse(inputs=request.news)

    @_answered
    def DiffConfig(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        old, new = Wire.decode(request.old_inputs).values, Wire.decode(request.news).values
        changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        # Another region means other resources: those of the old one have to go.
        replaces = [name for name in changed if name == "region"]
        return provider_pb2.DiffResponse(changes=kind, diffs=changed, replaces=replaces)

    @_answered
    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        self._sessions[context.peer()] = Session.of(Wire.decode(request.args))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        # Nothing here takes long: a request in progress ends by itself and is then in the state.
        return empty_pb2.Empty()

    @_answered
    def Invoke(self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext) -> provider_pb2.InvokeResponse:
        function = FUNCTIONS.get(request.tok)
        if function is None:
            raise Refused(f"{request.tok} is not simulated: add a row to rehearsal/providers/functions.py")
        session = self._session(context)
        args = Wire.decode(request.args).values
        region = args.get("region") or session.region
        answer = {"region": region, **args, **function(lambda service: self._cloud.api(service, region), args)}
        # `return` is a word of Python's own.
        return provider_pb2.InvokeResponse(**{"return": Wire(values=answer).encode()})

    # --- One resource ---

    @_answered
    def Check(self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext) -> provider_pb2.CheckResponse:
        row, session = self._row(request.urn), self._session(context)
        inputs, old = Wire.decode(request.news), Wire.decode(request.olds)
        failures = [
            provider_pb2.CheckFailure(property=path, reason=f"{row.token} has no simulated input {path}: see {_TABLE}")
            for path in unknown_inputs(row.known_fields.values(), inputs.values)
        ]
        if failures:
            return provider_pb2.CheckResponse(failures=failures)
        if row.taggable:
            inputs = session.tagged(inputs)
        values = {name: row.known_fields[name].normal(value) for name, value in inputs.values.items()}
        if row.named:
            values = autoname(row.named, values, old.values, request)
        return provider_pb2.CheckResponse(inputs=Wire(values=values, secret=inputs.secret).encode())

    @_answered
    def Diff(self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext) -> provider_pb2.DiffResponse:
        row = self._row(request.urn)
        new = Wire.decode(request.news).values
        return compare(row, Wire.decode(request.old_inputs).values, new)

    @_answered
    def Create(self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext) -> provider_pb2.CreateResponse:
        row, inputs = self._row(request.urn), Wire.decode(request.properties)
        if request.preview:
            foreseen = with_derived(previewed(row, inputs.values), inputs)
            return provider_pb2.CreateResponse(properties=foreseen.encode())
        self._refuse_unknown(request.urn, inputs)
        life = self._lifecycle(row, context, inputs)
        with self._recorded(row, request.urn, "create", inputs):
            resource_id = life.create(inputs)
        outputs = life.completed(resource_id, inputs)
        return provider_pb2.CreateResponse(id=resource_id, properties=outputs.encode())

    @_answered
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        inputs = Wire.decode(request.inputs)
        known = Wire.decode(request.properties) | inputs
        life = self._lifecycle(self._row(request.urn), context, known)
        seen = life.seen(request.id, known)
        if seen is None:
            return provider_pb2.ReadResponse()
        observed = life.observed(inputs, seen)
        life.refuse_unhealthy(request.id, seen, observed)
        return provider_pb2.ReadResponse(id=request.id, properties=seen.encode(), inputs=observed.encode())

    @_answered
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        row = self._row(request.urn)
        new, old, state = (Wire.decode(one) for one in (request.news, request.old_inputs, request.olds))
        # What is no longer secret among the inputs is no longer secret in the state.
        known = Wire(values=state.values | new.values, secret=new.secret)
        if request.preview:
            foreseen = with_derived(known.values | dict.fromkeys(row.renewed, UNKNOWN), known)
            return provider_pb2.UpdateResponse(properties=foreseen.encode())
        self._refuse_unknown(request.urn, new)
        life = self._lifecycle(row, context, new)
        with self._recorded(row, request.urn, "update", new):
            life.update(request.id, old, new, state)
        outputs = life.existing(request.id, known)
        life.refuse_unhealthy(request.id, outputs, new)
        return provider_pb2.UpdateResponse(properties=outputs.encode())

    @_answered
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        row = self._row(request.urn)
        known = Wire.decode(request.properties) | Wire.decode(request.old_inputs)
        try:
            with self._recorded(row, request.urn, "delete", known):
                self._lifecycle(row, context, known).delete(request.id, known)
        except ClientError as error:
            if not is_gone(error):
                raise
        return empty_pb2.Empty()

    # --- The table, and what the engine said before ---

    def _row(self, urn: str) -> Row:
        token = urn.split("::")[2].rsplit("$", 1)[-1]
        if token not in ROWS:
            raise Refused(f"{token} is not simulated: add a row for it in {_TABLE}")
        return ROWS[token]

    def _session(self, context: grpc.ServicerContext) -> Session:
        return self._sessions.get(context.peer(), Session())

    def _lifecycle(self, row: Row, context: grpc.ServicerContext, known: Wire) -> Lifecycle:
        region = known.values.get("region") or self._session(context).region
        return Lifecycle(row=row, api=self._cloud.api(row.service, region))

    def _refuse_unknown(self, urn: str, inputs: Wire) -> None:
        if inputs.unknown:
            raise Refused(f"{urn}: {', '.join(inputs.unknown)} must be known before it can be created or changed")

    @contextmanager
    def _recorded(self, row: Row, urn: str, kind: Kind, inputs: Wire) -> Iterator[None]:
        """Tell the log what has happened to `urn`, also when it has failed."""
        failed = True
        try:
            yield
            failed = False
        finally:
            delay = row.delay(kind, inputs.values)
            self._log.record(Mutation(urn=urn, kind=kind, delay=delay, failed=failed))
