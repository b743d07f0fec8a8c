"""A stand-in never meets the real thing, and nothing is done in the wrong account."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from automation.errors import Refused
from automation.refusals import check_account, refuse_stand_ins
from automation.target import Target

MOTO_ACCOUNT = "123456789012"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A real target with keys that are no one's."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    session = boto3.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-west-2")
    return Target(
        mode="aws",
        account_id=MOTO_ACCOUNT,
        region="us-west-2",
        boto_session=session,
        endpoint_url=None,
        clock=None,  # type: ignore[arg-type]
        home=tmp_path,
        engine_environment={},
    )


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"PULUMI_DEBUG_PROVIDERS": "aws:4711"}, "PULUMI_DEBUG_PROVIDERS is set"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:5000"}, "AWS_ENDPOINT_URL is set"),
        ({"AWS_ENDPOINT_URL_EC2": "http://127.0.0.1:5000"}, "AWS_ENDPOINT_URL_EC2 is set"),
    ],
)
def test_a_real_verb_refuses_what_a_rehearsal_works_with(target: Target, environ: dict[str, str], named: str) -> None:
    with pytest.raises(Refused, match=named):
        refuse_stand_ins(target, environ)
    refuse_stand_ins(replace(target, mode="rehearsal"), environ)


@pytest.mark.parametrize("package", ["aws", "eks", "kubernetes", "aws-native"])
def test_a_provider_on_path_is_refused(target: Target, tmp_path: Path, package: str) -> None:
    plugin = tmp_path / f"pulumi-resource-{package}"
    plugin.write_text("#!/bin/sh\n")
    plugin.chmod(0o755)
    with pytest.raises(Refused, match=f"pulumi-resource-{package} is on PATH"):
        refuse_stand_ins(target, {"PATH": str(tmp_path)})


def test_the_language_plugins_of_an_official_install_are_let_in(target: Target, tmp_path: Path) -> None:
    plugin = tmp_path / "pulumi-resource-pulumi-python"
    plugin.write_text("#!/bin/sh\n")
    plugin.chmod(0o755)
    refuse_stand_ins(target, {"PATH": str(tmp_path), "PULUMI_DEBUG_PROVIDERS": ""})


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("[default]\nendpoint_url = http://127.0.0.1:1\n", "sets endpoint_url"),
        ("[default]\nservices = mine\n[services mine]\nec2 =\n  endpoint_url = http://127.0.0.1:1\n", "for ec2"),
    ],
)
def test_an_endpoint_in_the_profile_is_refused(target: Target, tmp_path: Path, config: str, named: str) -> None:
    (tmp_path / "config").write_text(config)
    with pytest.raises(Refused, match=named):
        refuse_stand_ins(replace(target, boto_session=boto3.Session()), {})


def test_every_reason_is_named_at_once(target: Target) -> None:
    with pytest.raises(Refused, match=r"AWS_ENDPOINT_URL is set; PULUMI_DEBUG_PROVIDERS is set"):
        refuse_stand_ins(target, {"PULUMI_DEBUG_PROVIDERS": "aws:1", "AWS_ENDPOINT_URL": "http://x"})


Change = Callable[[Target], Target]
AGREES: Change = lambda target: target  # noqa: E731


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (AGREES, None),
        (lambda target: replace(target, account_id="999999999999"), "account 999999999999"),
        (lambda target: replace(target, endpoint_url="http://127.0.0.1:5000"), "real session, but its AWS is at"),
        (lambda target: replace(target, mode="rehearsal"), "rehearsal, but its AWS is at the real endpoints"),
        (lambda target: replace(target, mode="rehearsal", endpoint_url="https://ec2.example.com"), "rehearsal, but"),
    ],
)
def test_mode_endpoint_and_account_must_agree(target: Target, change: Change, refusal: str | None) -> None:
    with mock_aws():
        if refusal is None:
            check_account(change(target))
            return
        with pytest.raises(Refused, match=refusal):
            check_account(change(target))
