"""A block is looked for where its weights lie, and only if a model lies there."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from automation.errors import AwsSaysNo, InvalidRequest
from automation.ledger.request import RentRequest
from automation.session import shortlist
from automation.session.staged_weights import region_of
from automation.target import Target


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with mock_aws():
        here = Target(
            mode="rehearsal",
            account_id="123456789012",
            region="us-west-2",
            boto_session=boto3.Session("id", "key"),
            endpoint_url=None,
            clock=SimpleNamespace(now=lambda: None),  # type: ignore[arg-type]
            home=tmp_path,
            engine_environment={},
        )
        for bucket, region in (("in-oregon", "us-west-2"), ("in-sao-paulo", "sa-east-1")):
            s3 = boto3.Session("id", "key", region_name=region).client("s3")
            s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
            for key in ("k3/config.json", "half/model-00001.safetensors"):
                s3.put_object(Bucket=bucket, Key=key, Body=b"{}")
        yield here


@pytest.mark.parametrize(
    ("uri", "region"),
    [("s3://in-oregon/k3", "us-west-2"), ("s3://in-oregon/k3/", "us-west-2"), ("s3://in-sao-paulo/k3", "sa-east-1")],
)
def test_the_region_of_the_weights_is_that_of_their_bucket(target: Target, uri: str, region: str) -> None:
    assert region_of(target, uri) == region


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("s3://in-nowhere/k3", "There is no bucket in-nowhere"),
        ("s3://in-oregon/half", r"half/config\.json is not in in-oregon"),
        ("s3://in-sao-paulo/k33", r"k33/config\.json is not in"),
        ("s3://in-oregon", r"config\.json is not in"),
    ],
)
def test_an_address_at_which_no_model_lies_is_told_before_anything_is_bought(
    target: Target, uri: str, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        region_of(target, uri)


@pytest.mark.parametrize("tells", [True, False])
def test_who_may_not_look_into_the_bucket_is_told_its_region_all_the_same(
    target: Target, tells: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Stubber(boto3.Session("id", "key", region_name="us-west-2").client("s3")) as s3:
        header = {"HTTPHeaders": {"x-amz-bucket-region": "sa-east-1"}} if tells else {"HTTPHeaders": {}}
        s3.add_client_error("head_bucket", "403", http_status_code=403, response_meta=header)
        s3.add_client_error("list_objects_v2", "AccessDenied", http_status_code=403)
        monkeypatch.setattr(Target, "client", lambda self, service: s3.client)
        if tells:
            assert region_of(target, "s3://theirs/k3") == "sa-east-1"
        else:
            with pytest.raises(AwsSaysNo):
                region_of(target, "s3://theirs/k3")


def test_only_the_region_of_the_weights_is_asked(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    request = RentRequest(endpoint_cidrs=("192.0.2.1/32",), weights_uri="s3://in-sao-paulo/k3")
    assert shortlist._regions(request, target) == ("sa-east-1",)
    among = request.model_copy(update={"regions": ("us-west-2", "sa-east-1")})
    assert shortlist._regions(among, target) == ("sa-east-1",)
    elsewhere = request.model_copy(update={"regions": ("us-west-2",)})
    with pytest.raises(InvalidRequest, match="is in sa-east-1, and a block in us-west-2"):
        shortlist._regions(elsewhere, target)
    with pytest.raises(InvalidRequest, match="is in sa-east-1, and a block in us-east-1"):
        shortlist.require_weights(request, target, "us-east-1")
    shortlist.require_weights(request, target, "sa-east-1")


def test_where_s3_does_not_tell_the_user_does(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(target: Target, uri: str) -> str:
        raise AwsSaysNo(happened="No.", code="AccessDenied", remedy="")

    monkeypatch.setattr(shortlist, "region_of", silent)
    request = RentRequest(endpoint_cidrs=("192.0.2.1/32",), weights_uri="s3://theirs/k3")
    with pytest.raises(AwsSaysNo):
        shortlist._regions(request, target)
    assert shortlist._regions(request.model_copy(update={"regions": ("eu-west-1",)}), target) == ("eu-west-1",)
