"""What is installed, and what a real session would lack. Never stops half way: each finding stands by itself."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from automation.errors import RentblockError
from automation.pins import Verdict, check_pins
from automation.refusals import check_account, refuse_stand_ins
from automation.target import Target
from components.versions import unverified_pins

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "kr8s", "openai")
_OK: dict[Verdict, bool | None] = {"verified": True, "missing": False, "not known": None}


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
    target, findings = _account(make_target, environ)
    yield from findings
    yield from _pins(target)


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


def _account(
    make_target: Callable[[str | None], Target], environ: dict[str, str]
) -> tuple[Target | None, list[Finding]]:
    """The account that AWS answers for, if there is one, and what was found on the way to it."""
    try:
        target = make_target(None)
    except RentblockError as error:
        return None, [_fault("AWS account", error)]
    answering: Target | None = None
    findings = []
    try:
        check_account(target)
        answering = target
        where = f"{target.account_id}, {target.region}, mode {target.mode}"
        findings.append(Finding(part="AWS account", ok=True, detail=where))
    except RentblockError as error:
        findings.append(_fault("AWS account", error))
    try:
        refuse_stand_ins(target, environ)
        findings.append(Finding(part="stand-ins", ok=True, detail="none would meet the real AWS"))
    except RentblockError as error:
        findings.append(_fault("stand-ins", error))
    return answering, findings


def _fault(part: str, error: RentblockError) -> Finding:
    return Finding(part=part, ok=False, detail=f"{error.happened} {error.remedy}")


def _pins(target: Target | None) -> Iterator[Finding]:
    if target is None:
        for pin in unverified_pins():
            detail = f"{pin.value}: AWS was not asked. To check: {pin.what_to_check}."
            yield Finding(part=f"pin {pin.name}", ok=None, detail=detail)
        return
    for judged in check_pins(target):
        remedy = f" Change it in {judged.pin.where}." if judged.verdict == "missing" else ""
        detail = f"{judged.pin.value}: {judged.sentence}{remedy}"
        yield Finding(part=f"pin {judged.pin.name}", ok=_OK[judged.verdict], detail=detail)
