"""Who may take a role of ours."""

from __future__ import annotations

import json


def trust_policy(service: str, *actions: str) -> str:
    """The trust policy of a role that one AWS service takes, such as `ec2.amazonaws.com`."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": list(actions)}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
