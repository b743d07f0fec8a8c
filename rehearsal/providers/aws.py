"""The `aws` provider: what the engine asks of pulumi-aws, answered by boto3 against the simulated AWS.

It holds no state: a resource is what AWS shows of it. It never waits either; how long AWS would have taken is computed
when the operation has ended (operations.py).
"""

from __future__ import annotations

import functools
import importlib.metadata
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import grpc
from botocore.exceptions import BotoCoreError, ClientError
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from rehearsal.providers.cloud import Cloud
from rehearsal.providers.compare import autoname, changed_inputs, compare, observed_inputs, previewed
from rehearsal.providers.critical_path import Kind, Mutation
from rehearsal.providers.functions import FUNCTIONS
from rehearsal.providers.operations import OperationLog
from rehearsal.providers.protocol import UNKNOWN, Properties, Refused, Unhealthy, Wire, abort
from rehearsal.providers.resources import ROWS
from rehearsal.providers.resources.row import Api, Row, is_busy, is_gone, unknown_inputs
from rehearsal.providers.sessions import Session

# A delete that AWS refuses as "in use" is tried again for as long as it takes other requests in flight to end. Virtual
# time stands still meanwhile, so what is still in use then stays in use.
_DELETE_TRIES = 8
_DELETE_PAUSE_S = 0.25

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
        row, session = self._row(request.urn), self._session(context)
        inputs = Wire.decode(request.properties)
        if request.preview:
            foreseen = self._outputs(previewed(row, inputs.values), inputs)
            return provider_pb2.CreateResponse(properties=foreseen.encode())
        self._refuse_unknown(request.urn, inputs)
        api = self._api_of(row, session, inputs)
        with self._recorded(row, request.urn, "create", inputs):
            resource_id = row.create(api, inputs.values)
        outputs = self._completed(row, api, resource_id, inputs)
        return provider_pb2.CreateResponse(id=resource_id, properties=outputs.encode())

    @_answered
    def Read(self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext) -> provider_pb2.ReadResponse:
        row, session = self._row(request.urn), self._session(context)
        inputs, state = Wire.decode(request.inputs), Wire.decode(request.properties)
        known = Wire(values=state.values | inputs.values, secret=state.secret | inputs.secret)
        api = self._api_of(row, session, known)
        try:
            seen = self._seen(row, api, request.id, known)
        except ClientError as error:
            if is_gone(error):
                return provider_pb2.ReadResponse()
            raise
        if seen is None:
            return provider_pb2.ReadResponse()
        observed = Wire(values=observed_inputs(row, inputs.values, seen.values), secret=inputs.secret)
        self._refuse_unhealthy(row, api, request.id, seen, observed)
        return provider_pb2.ReadResponse(id=request.id, properties=seen.encode(), inputs=observed.encode())

    @_answered
    def Update(self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext) -> provider_pb2.UpdateResponse:
        row, session = self._row(request.urn), self._session(context)
        new, old, state = (Wire.decode(one) for one in (request.news, request.old_inputs, request.olds))
        if request.preview:
            foreseen = state.values | new.values | dict.fromkeys(row.renewed, UNKNOWN)
            return provider_pb2.UpdateResponse(properties=self._outputs(foreseen, new).encode())
        self._refuse_unknown(request.urn, new)
        api = self._api_of(row, session, new)
        with self._recorded(row, request.urn, "update", new):
            self._apply(row, api, request.id, old.values, new.values, state.values)
        outputs = self._exists(row, api, request.id, Wire(values=state.values | new.values, secret=new.secret))
        self._refuse_unhealthy(row, api, request.id, outputs, new)
        return provider_pb2.UpdateResponse(properties=outputs.encode())

    @_answered
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        row, session = self._row(request.urn), self._session(context)
        state, inputs = Wire.decode(request.properties), Wire.decode(request.old_inputs)
        known = Wire(values=state.values | inputs.values)
        api = self._api_of(row, session, known)
        try:
            with self._recorded(row, request.urn, "delete", known):
                _delete(row, api, request.id, known.values)
        except ClientError as error:
            if not is_gone(error):
                raise
        return empty_pb2.Empty()

    # --- The table, AWS, and what they say ---

    def _row(self, urn: str) -> Row:
        token = urn.split("::")[2].rsplit("$", 1)[-1]
        if token not in ROWS:
            raise Refused(f"{token} is not simulated: add a row for it in {_TABLE}")
        return ROWS[token]

    def _session(self, context: grpc.ServicerContext) -> Session:
        return self._sessions.get(context.peer(), Session())

    def _api_of(self, row: Row, session: Session, known: Wire) -> Api:
        return self._cloud.api(row.service, known.values.get("region") or session.region)

    def _completed(self, row: Row, api: Api, resource_id: str, inputs: Wire) -> Wire:
        """Finish a new resource, and its outputs. Raises Refused, and Unhealthy: it exists already, whatever fails."""
        failure = None
        try:
            row.complete(api, resource_id, inputs.values)
        except ClientError as error:
            failure = error
        outputs = self._exists(row, api, resource_id, inputs)
        if failure is not None:
            observed = Wire(values=observed_inputs(row, inputs.values, outputs.values), secret=inputs.secret)
            raise Unhealthy(resource_id, outputs, observed, (str(failure),))
        self._refuse_unhealthy(row, api, resource_id, outputs, inputs)
        return outputs

    def _exists(self, row: Row, api: Api, resource_id: str, known: Wire) -> Wire:
        """The outputs of a resource that was just created or changed. Raises Refused."""
        seen = self._seen(row, api, resource_id, known)
        if seen is None:
            raise Refused(f"{row.token} {resource_id} is gone right after its creation or change")
        return seen

    def _seen(self, row: Row, api: Api, resource_id: str, known: Wire) -> Wire | None:
        """What AWS shows of the resource, and of what is `known` of it that which AWS never shows."""
        shown = row.read(api, resource_id, known.values)
        if shown is None:
            return None
        hidden = {field.name for field in row.fields if field.write_only}
        kept = {name: value for name, value in known.values.items() if name in hidden}
        return self._outputs(kept | shown | {"region": api.region}, known)

    def _outputs(self, values: Properties, source: Wire) -> Wire:
        """`values` with `tagsAll`; secret is what is secret in `source`, and what is derived from that."""
        if "tags" in values:
            values = values | {"tagsAll": values["tags"]}
        derived = {"tagsAll"} if "tags" in source.secret else set()
        return Wire(values=values, secret=source.secret | derived)

    def _refuse_unhealthy(self, row: Row, api: Api, resource_id: str, outputs: Wire, inputs: Wire) -> None:
        problems = row.problems(api, resource_id)
        if problems:
            raise Unhealthy(resource_id, outputs, inputs, problems)

    def _refuse_unknown(self, urn: str, inputs: Wire) -> None:
        if inputs.unknown:
            raise Refused(f"{urn}: {', '.join(inputs.unknown)} must be known before it can be created or changed")

    def _apply(self, row: Row, api: Api, resource_id: str, old: Properties, new: Properties, state: Properties) -> None:
        changed = changed_inputs(old, new)
        if "tags" in changed:
            mine, theirs = new.get("tags", {}), old.get("tags", {})
            put = {key: value for key, value in mine.items() if theirs.get(key) != value}
            row.retag(api, resource_id, state | new, put, sorted(theirs.keys() - mine.keys()))
        to_set = {name for name in changed - {"tags", "region"} if not row.known_fields[name].write_only}
        if to_set:
            row.change(api, resource_id, new, to_set)

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


def _delete(row: Row, api: Api, resource_id: str, known: Properties) -> None:
    for _ in range(_DELETE_TRIES):
        try:
            row.delete(api, resource_id, known)
        except ClientError as error:
            if not is_busy(error):
                raise
            time.sleep(_DELETE_PAUSE_S)
        else:
            return
    row.delete(api, resource_id, known)
