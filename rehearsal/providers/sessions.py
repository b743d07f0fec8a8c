"""What a provider is told before it is asked for resources: which engine, which region, which default tags.

Several engines, and several providers of one program, use the same server; what tells them apart is their connection.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rehearsal.providers.protocol import UNKNOWN, Properties, Refused, Wire, contains_unknown


@dataclass(frozen=True, kw_only=True)
class Session:
    """One provider of one engine. `engine` is the address at which that engine can be reached while it runs."""

    engine: str = ""
    region: str = ""
    default_tags: Mapping[str, object] = field(default_factory=dict)
    secret_tags: bool = False

    def configured(self, config: Wire) -> Session:
        """This session with the provider's configuration.

        Raises Refused when no region is given: nothing may depend on the machine's own settings.
        """
        region = config.values.get("region")
        if not isinstance(region, str):
            raise Refused("the aws provider needs a region (aws:region, or region= of an explicit provider)")
        tags = _nested(config.values.get("defaultTags", {}))
        known = {} if contains_unknown(tags) else tags.get("tags", {})
        return replace(self, region=region, default_tags=known, secret_tags="defaultTags" in config.secret)

    def tagged(self, inputs: Wire) -> Wire:
        """`inputs` with the default tags merged in, as pulumi-aws does in Check: a resource's own tags win."""
        own = inputs.values.get("tags", {})
        if own is UNKNOWN or not (own or self.default_tags):
            return inputs
        secret = inputs.secret | ({"tags"} if self.secret_tags else set())
        return Wire(values=inputs.values | {"tags": {**self.default_tags, **own}}, secret=secret)


class Sessions:
    """Sessions by connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_peer: dict[str, Session] = {}

    def of(self, peer: str) -> Session:
        """The session on the connection `peer`; an empty one before the first call."""
        with self._lock:
            return self._by_peer.get(peer, Session())

    def put(self, peer: str, session: Session) -> None:
        """Remember what has become known about the connection `peer`."""
        with self._lock:
            self._by_peer[peer] = session


def _nested(value: object) -> Properties:
    """Nested configuration of a provider arrives as JSON text."""
    parsed = json.loads(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}
