"""Where a model's staged weights lie, asked of S3 before money is spent: a block elsewhere could not load them.

The pod reads through the gateway endpoint of its own region, and a prefix that was mistyped would show after the start.
"""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from automation.aws_errors import aws_errors
from automation.errors import AwsSaysNo, InvalidRequest
from automation.target import Target

# vLLM reads it first: https://docs.vllm.ai/en/stable/models/extensions/runai_model_streamer/
_CONFIG = "config.json"
_NOWHERE = frozenset({"404", "NoSuchBucket", "NotFound"})
_REGION_HEADER = "x-amz-bucket-region"


def region_of(target: Target, weights_uri: str) -> str:
    """The region of the bucket of `s3://bucket/prefix`, in which a model lies below the prefix as far as anybody sees.

    Raises InvalidRequest when there is no such bucket or no model in it, AwsSaysNo when S3 does not tell,
    AwsUnreachable and CredentialsMissing.
    """
    bucket, _, prefix = weights_uri.removeprefix("s3://").strip("/").partition("/")
    with aws_errors(f"asking S3 for the region of {bucket}"):
        region = _told(_s3(target), bucket)
    if region is None:
        raise InvalidRequest(
            happened=f"There is no bucket {bucket}.",
            cost="Nothing was bought.",
            remedy="Stage the weights first, or correct the address; without one they are downloaded on paid time.",
        )
    first = f"{prefix}/{_CONFIG}" if prefix else _CONFIG
    try:
        with aws_errors(f"looking for {first} in {bucket}"):
            found = _s3(target.in_region(region)).list_objects_v2(Bucket=bucket, Prefix=first, MaxKeys=1)["KeyCount"]
    except AwsSaysNo:
        # Who rents need not be able to read what the pod reads.
        return region
    if not found:
        raise InvalidRequest(
            happened=f"No model lies at {weights_uri}: {first} is not in {bucket}.",
            cost="Nothing was bought.",
            remedy="Copy the model's whole repository there, or correct the address.",
        )
    return region


def _s3(target: Target) -> Any:
    """A client that the boto3 stubs of this project do not cover."""
    make: Callable[..., Any] = target.client
    return make("s3")


def _told(s3: Any, bucket: str) -> str | None:
    """S3 tells the region also to who may not look into the bucket; None when there is no such bucket."""
    try:
        answer = s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] in _NOWHERE:
            return None
        answer = error.response
        if _REGION_HEADER not in answer["ResponseMetadata"].get("HTTPHeaders", {}):
            raise
    return str(answer["ResponseMetadata"]["HTTPHeaders"][_REGION_HEADER])
