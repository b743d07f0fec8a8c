"""What is installed, and what a real session would lack. Never stops half way: each finding stands by itself."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from automation.errors import RentblockError
from automation.refusals import check_account, refuse_stand_ins
from automation.target import Target

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "kr8s", "openai")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at. `ok` None: it could not be verified here, which is no fault."""

    part: str
    ok: bool | None
    detail: str


def examine(make_target: Callable[[str | None], Target], environ: dict[str, str]) -> Iterator[Finding]:
    """All findings, in the order in which a person would repair them."""
    yield from _packages()
    yield from _toolchain()
    aws = shutil.which("aws", path=environ.get("PATH"))
    yield Finding(
        part="aws command",
        ok=aws is not None,
        detail=aws or "not on PATH; pulumi-eks and the kubeconfig call it (`pip install awscli`)",
    )
    yield from _account(make_target, environ)
    yield from _pins()


def _packages() -> Iterator[Finding]:
    for name in _PACKAGES:
        try:
            yield Finding(part=f"python package {name}", ok=True, detail=version(name))
        except PackageNotFoundError:
            yield Finding(part=f"python package {name}", ok=False, detail="not installed: `make setup`")


def _toolchain() -> Iterator[Finding]:
    # Imported here: the other verbs need no engine and should not wait for its search to load.
    from toolchain import ToolchainError, describe

    try:
        for part in describe():
            where = f"{part.version}, {part.way}, {part.path}" if part.path else f"missing ({part.version})"
            yield Finding(part=part.name, ok=part.path is not None, detail=where)
    except ToolchainError as error:
        yield Finding(part="toolchain", ok=False, detail=str(error))


def _account(make_target: Callable[[str | None], Target], environ: dict[str, str]) -> Iterator[Finding]:
    try:
        target = make_target(None)
    except RentblockError as error:
        yield Finding(part="AWS account", ok=False, detail=f"{error.happened} {error.remedy}")
        return
    try:
        check_account(target)
        yield Finding(part="AWS account", ok=True, detail=f"{target.account_id}, {target.region}, mode {target.mode}")
    except RentblockError as error:
        yield Finding(part="AWS account", ok=False, detail=f"{error.happened} {error.remedy}")
    try:
        refuse_stand_ins(target, environ)
        yield Finding(part="stand-ins", ok=True, detail="none would meet the real AWS")
    except RentblockError as error:
        yield Finding(part="stand-ins", ok=False, detail=f"{error.happened} {error.remedy}")


def _pins() -> Iterator[Finding]:
    # Imported here: it loads the program's package, and that Pulumi.
    from components.versions import unverified_pins

    for pin in unverified_pins():
        yield Finding(part=f"pin {pin.name}", ok=None, detail=f"{pin.value}: not verified; {pin.what_to_check}")
