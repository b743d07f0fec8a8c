"""The simulated AWS as the providers reach it: boto3 against one endpoint."""

from __future__ import annotations

import threading

import boto3
from botocore.config import Config

from rehearsal.providers.resources.row import Api

# AWS's call log tells Pulumi's calls from others by this word, which pulumi-aws puts there too.
_USER_AGENT = "pulumi"

# The simulated AWS takes any key. Given here, no key, profile or proxy of the machine can be used instead.
_ANY_KEY = "rehearsal"


class Cloud:
    """Makes one client a service and region."""

    def __init__(self, endpoint_url: str) -> None:
        self._endpoint_url = endpoint_url
        self._lock = threading.Lock()
        self._apis: dict[tuple[str, str], Api] = {}

    def api(self, service: str, region: str) -> Api:
        """boto3's client of `service`, safe to share between threads (making one is not)."""
        with self._lock:
            if (service, region) not in self._apis:
                self._apis[service, region] = self._new(service, region)
            return self._apis[service, region]

    def _new(self, service: str, region: str) -> Api:
        session = boto3.Session(aws_access_key_id=_ANY_KEY, aws_secret_access_key=_ANY_KEY, region_name=region)
        config = Config(
            user_agent_extra=_USER_AGENT, proxies={}, max_pool_connections=64, connect_timeout=5, read_timeout=60
        )
        # boto3's stubs want the service as a literal, one of four hundred.
        client = session.client(service, endpoint_url=self._endpoint_url, config=config)  # type: ignore[call-overload]
        return Api(client=client, region=region)
