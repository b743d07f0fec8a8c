"""The buckets in which models lie staged. S3 itself is moto's; only what a session asks for is in them."""

from collections.abc import Mapping

from moto.s3.models import s3_backends

from rehearsal.aws.operations import Undo
from rehearsal.delays import StagedWeights


def stage(weights: Mapping[str, StagedWeights], account_id: str) -> Undo:
    """Make the buckets of an empty simulated AWS; returns how to take them back, and all others with them."""
    s3 = s3_backends[account_id]["aws"]
    for bucket, staged in weights.items():
        s3.create_bucket(bucket, staged.region)
        s3.put_object(bucket, f"{staged.prefix}/config.json", b"{}")
    # moto keeps files for what is in them, and whose each bucket is beside them: only its own reset forgets all.
    return s3.reset
