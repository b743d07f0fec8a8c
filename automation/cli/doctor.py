"""What is installed, and what a real session would lack. Never stops half way: each finding stands by itself."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from automation.errors import RentblockError
from automation.pins import Verdict, check_pins
from automation.refusals import check_account, refuse_stand_ins
from automation.target import Target
from components.versions import unverified_pins

if TYPE_CHECKING:
    from toolchain.find import Part

_PACKAGES = ("pulumi", "pulumi-aws", "pulumi-eks", "pulumi-kubernetes", "boto3", "kr8s", "openai")
# Only `pulumi up` in a shell needs it: a session runs its program by the Automation API.
_LANGUAGE_PLUGIN = "pulumi-language-python"
_INSTALL_PULUMI = "https://www.pulumi.com/docs/install/"
_OK: dict[Verdict, bool | None] = {"verified": True, "missing": False, "not known": None}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at. `ok` None: it could not be verified here, which is no fault.

    `rehearsal_needs_it` False: only a real session does."""

    part: str
    ok: bool | None
    detail: str
    rehearsal_needs_it: bool


def examine(make_target: Callable[[], Target], environ: dict[str, str]) -> Iterator[Finding]:
    """All findings, in the order in which a person would repair them."""
    yield from _packages()
    parts, findings = _toolchain()
    yield from findings
    yield from _commands(environ.get("PATH"), parts)
    target, findings = _account(make_target, environ)
    yield from findings
    yield from _pins(target)


def closing(findings: Iterable[Finding]) -> Iterator[str]:
    """What the lacks among the findings mean: which of them stop a rehearsal too, and which a real session only."""
    lacking = [finding for finding in findings if finding.ok is False]
    for_all = ", ".join(finding.part for finding in lacking if finding.rehearsal_needs_it)
    for_real = ", ".join(finding.part for finding in lacking if not finding.rehearsal_needs_it)
    if for_all:
        yield f"A rehearsal needs this too: {for_all}. `make setup` gets it, and `make rehearse` begins with that."
    if for_real:
        yield f"Only real AWS needs this: {for_real}. `make rehearse` and `make test` need none of it."
    if not lacking:
        yield "Nothing lacks."


def _packages() -> Iterator[Finding]:
    for name in _PACKAGES:
        try:
            found: str | None = version(name)
        except PackageNotFoundError:
            found = None
        yield Finding(
            part=f"python package {name}",
            ok=found is not None,
            detail=found or "not installed: `make setup`",
            rehearsal_needs_it=True,
        )


def _commands(path: str | None, parts: Iterable["Part"]) -> Iterator[Finding]:
    """What a person types, or a program of Pulumi's calls, by its name."""
    aws, pulumi = (shutil.which(name, path=path) for name in ("aws", "pulumi"))
    yield Finding(
        part="aws command",
        ok=aws is not None,
        detail=aws or "not on PATH; pulumi-eks and the kubeconfig call it (`pip install awscli`)",
        rehearsal_needs_it=False,
    )
    install = f"install Pulumi with its language plugins: {_INSTALL_PULUMI}"
    cached = next((part.path for part in parts if part.name == "pulumi" and part.path), None)
    # An engine that was built here has no language plugin, so a PATH to it would only lead to the next error.
    whole = cached and (cached.parent / _LANGUAGE_PLUGIN).exists()
    to_type_it = f'export PATH="{cached.parent}:$PATH"' if cached and whole else install
    yield Finding(
        part="pulumi command",
        ok=pulumi is not None,
        detail=pulumi or f"not on PATH. `rentblock rent` finds its own; for `pulumi up` in a shell: {to_type_it}",
        rehearsal_needs_it=False,
    )
    plugin = shutil.which(_LANGUAGE_PLUGIN, path=path)
    if plugin is None and pulumi:
        # The engine looks beside its own file, too; an installation may be linked into a folder of PATH.
        plugin = shutil.which(_LANGUAGE_PLUGIN, path=str(Path(pulumi).resolve().parent))
    yield Finding(
        part=_LANGUAGE_PLUGIN,
        ok=plugin is not None,
        detail=plugin or f"neither on PATH nor beside `pulumi`; `pulumi up` in a shell fails without it: {install}",
        rehearsal_needs_it=False,
    )


def _toolchain() -> tuple[list["Part"], list[Finding]]:
    # Imported here: the other verbs need no engine and should not wait for its search to load.
    from toolchain import ToolchainError, describe

    try:
        parts = describe()
    except ToolchainError as error:
        return [], [Finding(part="toolchain", ok=False, detail=str(error), rehearsal_needs_it=True)]
    findings = []
    for part in parts:
        where = f"{part.version}, {part.way}, {part.path}" if part.path else f"missing ({part.version})"
        findings.append(Finding(part=part.name, ok=part.path is not None, detail=where, rehearsal_needs_it=True))
    return parts, findings


def _account(make_target: Callable[[], Target], environ: dict[str, str]) -> tuple[Target | None, list[Finding]]:
    """The account that AWS answers for, if there is one, and what was found on the way to it."""
    try:
        target = make_target()
    except RentblockError as error:
        return None, [_fault("AWS account", error)]
    answering: Target | None = None
    findings = []
    try:
        check_account(target)
        answering = target
        where = f"{target.account_id}, {target.region}, mode {target.mode}"
        findings.append(_fine("AWS account", where))
    except RentblockError as error:
        findings.append(_fault("AWS account", error))
    try:
        refuse_stand_ins(target, environ)
        findings.append(_fine("stand-ins", "none would meet the real AWS"))
    except RentblockError as error:
        findings.append(_fault("stand-ins", error))
    return answering, findings


def _fine(part: str, detail: str) -> Finding:
    return Finding(part=part, ok=True, detail=detail, rehearsal_needs_it=False)


def _fault(part: str, error: RentblockError) -> Finding:
    return Finding(part=part, ok=False, detail=f"{error.happened} {error.remedy}", rehearsal_needs_it=False)


def _pins(target: Target | None) -> Iterator[Finding]:
    if target is None:
        for pin in unverified_pins():
            detail = f"{pin.value}: not checked here. To check: {pin.what_to_check}."
            yield Finding(part=f"pin {pin.name}", ok=None, detail=detail, rehearsal_needs_it=False)
        return
    for judged in check_pins(target):
        remedy = f" Change it in {judged.pin.where}." if judged.verdict == "missing" else ""
        detail = f"{judged.pin.value}: {judged.sentence}{remedy}"
        yield Finding(part=f"pin {judged.pin.name}", ok=_OK[judged.verdict], detail=detail, rehearsal_needs_it=False)
