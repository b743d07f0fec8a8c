"""What a provider is told before it is asked for resources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.providers.protocol import UNKNOWN, Properties, Refused, Wire, contains_unknown


@dataclass(frozen=True, kw_only=True)
class Session:
    """One provider of one engine: its region, and the tags of every resource."""

    region: str = ""
    default_tags: Mapping[str, object] = field(default_factory=dict)
    secret_tags: bool = False

    @staticmethod
    def of(config: Wire) -> Session:
        """The session of a provider with this configuration.

        Raises Refused when no region is given: nothing may depend on the machine's own settings.
        """
        region = config.values.get("region")
        if not isinstance(region, str):
            raise Refused("the aws provider needs a region (aws:region, or region= of an explicit provider)")
        tags = _nested(config.values.get("defaultTags", {}))
        known = {} if contains_unknown(tags) else tags.get("tags", {})
        return Session(region=region, default_tags=known, secret_tags="defaultTags" in config.secret)

    def tagged(self, inputs: Wire) -> Wire:
        """`inputs` with the default tags merged in, as pulumi-aws does in Check: a resource's own tags win."""
        own = inputs.values.get("tags", {})
        if own is UNKNOWN or not (own or self.default_tags):
            return inputs
        secret = inputs.secret | ({"tags"} if self.secret_tags else set())
        return Wire(values=inputs.values | {"tags": {**self.default_tags, **own}}, secret=secret)


def _nested(value: object) -> Properties:
    """Nested configuration of a provider arrives as JSON text."""
    parsed = json.loads(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}
