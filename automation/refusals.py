"""A stand-in never meets the real thing: what every real verb refuses before it changes anything.

Debug providers, other endpoints and plugins from PATH are how a rehearsal works. In front of a real account they would
create real things by a wrong provider, or report a rented block that does not exist.
"""

import shutil
from collections.abc import Mapping
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError

from automation.aws_errors import translated
from automation.errors import Refused
from automation.target import Target, account_of

# Official Pulumi installs put their language plugins on PATH; only these four would stand in for AWS or Kubernetes.
_PLUGINS = tuple(f"pulumi-resource-{package}" for package in ("aws", "eks", "kubernetes", "aws-native"))
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_FREE = "Nothing was changed."


def refuse_stand_ins(target: Target, environ: Mapping[str, str]) -> None:
    """Raise Refused when a real target would meet a stand-in, with every reason at once. A rehearsal may."""
    if target.mode != "aws":
        return
    environment = {**environ, **target.engine_environment}
    reasons = [*_variables(environment), *_profile_endpoints(target), *_plugins(environment)]
    if reasons:
        raise Refused(
            happened=f"A stand-in would meet the real AWS: {'; '.join(reasons)}.",
            cost=_FREE,
            remedy="Unset or remove it, or rehearse with `rentblock rehearse`.",
        )


def check_account(target: Target) -> None:
    """Raise Refused unless mode, endpoint and account agree. Nothing is bought without it."""
    problem = _disagreement(target)
    if problem:
        raise Refused(
            happened=problem, cost=_FREE, remedy="Use the credentials and the mode that this session was made for."
        )


def _disagreement(target: Target) -> str | None:
    if target.mode == "rehearsal":
        if target.endpoint_url is None or urlsplit(target.endpoint_url).hostname not in _LOOPBACK:
            return f"This is a rehearsal, but its AWS is at {target.endpoint_url or 'the real endpoints'}."
    elif target.endpoint_url is not None:
        return f"This is a real session, but its AWS is at {target.endpoint_url}."
    account = account_of(target)
    if account != target.account_id:
        return f"The credentials belong to account {account}, but this session is of account {target.account_id}."
    return None


def _variables(environ: Mapping[str, str]) -> list[str]:
    return sorted(
        f"{name} is set"
        for name, value in environ.items()
        if value and (name in ("PULUMI_DEBUG_PROVIDERS", "AWS_ENDPOINT_URL") or name.startswith("AWS_ENDPOINT_URL_"))
    )


def _profile_endpoints(target: Target) -> list[str]:
    session = target.boto_session._session  # boto3 shows no other way to the profile's settings
    try:
        profile: Mapping[str, object] = session.get_scoped_config()
        services = session.full_config.get("services", {})
    except BotoCoreError as error:
        raise translated(error, "reading the AWS profile") from error
    found = ["the AWS profile sets endpoint_url"] if "endpoint_url" in profile else []
    section = services.get(str(profile.get("services")), {})
    found += [
        f"the AWS profile sets an endpoint_url for {service}"
        for service, settings in section.items()
        if isinstance(settings, Mapping) and "endpoint_url" in settings
    ]
    return found


def _plugins(environ: Mapping[str, str]) -> list[str]:
    return [f"{plugin} is on PATH" for plugin in _PLUGINS if shutil.which(plugin, path=environ.get("PATH", ""))]
