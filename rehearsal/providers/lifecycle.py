"""From creation to deletion: what every resource goes through, by its row and in its region."""

from __future__ import annotations

import time
from dataclasses import dataclass

from botocore.exceptions import ClientError

from rehearsal.providers.compare import changed_inputs, observed_inputs
from rehearsal.providers.protocol import Properties, Refused, Unhealthy, Wire
from rehearsal.providers.resources.row import Api, Row, is_busy, is_gone

# A delete that AWS refuses as "in use" is tried again for as long as it takes other requests in flight to end. Virtual
# time stands still meanwhile, so what is still in use then stays in use.
_DELETE_TRIES = 8
_DELETE_PAUSE_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """What can be done with resources of one type. Its methods raise botocore's ClientError and BotoCoreError."""

    row: Row
    api: Api

    def create(self, inputs: Wire) -> str:
        """Make one; answers its id."""
        return self.row.create(self.api, inputs.values)

    def completed(self, resource_id: str, inputs: Wire) -> Wire:
        """Finish a new one, and answer its outputs. Raises Refused, and Unhealthy: it exists, whatever fails."""
        failure = None
        try:
            self.row.complete(self.api, resource_id, inputs.values)
        except ClientError as error:
            failure = error
        outputs = self.existing(resource_id, inputs)
        if failure is not None:
            raise Unhealthy(resource_id, outputs, self.observed(inputs, outputs), (str(failure),))
        self.refuse_unhealthy(resource_id, outputs, inputs)
        return outputs

    def update(self, resource_id: str, old: Wire, new: Wire, state: Wire) -> None:
        """Change what differs between the inputs `old` and `new`."""
        changed = changed_inputs(old.values, new.values)
        if "tags" in changed:
            mine, theirs = new.values.get("tags", {}), old.values.get("tags", {})
            put = {key: value for key, value in mine.items() if theirs.get(key) != value}
            self.row.retag(self.api, resource_id, state.values | new.values, put, sorted(theirs.keys() - mine.keys()))
        to_set = {name for name in changed - {"tags", "region"} if not self.row.known_fields[name].write_only}
        if to_set:
            self.row.change(self.api, resource_id, new.values, to_set)

    def delete(self, resource_id: str, known: Wire) -> None:
        """Delete one, with some patience for what still uses it."""
        for _ in range(_DELETE_TRIES):
            try:
                self.row.delete(self.api, resource_id, known.values)
            except ClientError as error:
                if not is_busy(error):
                    raise
                time.sleep(_DELETE_PAUSE_S)
            else:
                return
        self.row.delete(self.api, resource_id, known.values)

    def existing(self, resource_id: str, known: Wire) -> Wire:
        """The outputs of one that was just created or changed. Raises Refused."""
        seen = self.seen(resource_id, known)
        if seen is None:
            raise Refused(f"{self.row.token} {resource_id} is gone right after its creation or change")
        return seen

    def seen(self, resource_id: str, known: Wire) -> Wire | None:
        """What AWS shows of it, and of what is `known` that which AWS never shows; None when it is gone."""
        try:
            shown = self.row.read(self.api, resource_id, known.values)
        except ClientError as error:
            if is_gone(error):
                return None
            raise
        if shown is None:
            return None
        hidden = {field.name for field in self.row.fields if field.write_only}
        kept = {name: value for name, value in known.values.items() if name in hidden}
        region = {"region": self.api.region} if self.row.regional else {}
        return with_derived(kept | shown | region, known)

    def observed(self, inputs: Wire, outputs: Wire) -> Wire:
        """`inputs` as AWS has them now."""
        return Wire(values=observed_inputs(self.row, inputs.values, outputs.values), secret=inputs.secret)

    def refuse_unhealthy(self, resource_id: str, outputs: Wire, inputs: Wire) -> None:
        """Raises Unhealthy when AWS says that it does not work."""
        problems = self.row.problems(self.api, resource_id)
        if problems:
            raise Unhealthy(resource_id, outputs, inputs, problems)


def with_derived(values: Properties, source: Wire) -> Wire:
    """`values` as outputs, with `tagsAll`; secret is what is secret in `source`, and what is derived from that."""
    if "tags" in values:
        values = values | {"tagsAll": values["tags"]}
    derived = {"tagsAll"} if "tags" in source.secret else set()
    return Wire(values=values, secret=source.secret | derived)
