"""Runs inside a world: prints, as JSON, what a child of a rehearsal sees there; ends with an exit code of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import boto3

EXIT_CODE = 7


def asked(*command: str) -> dict[str, object]:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return {"code": ran.returncode, "printed": ran.stdout, "said": ran.stderr}


def asked_by_a_reader_that_has_ended(*command: str) -> int:
    """The exit code of a command whose standard error goes into a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(command, stderr=write, timeout=120).returncode
    finally:
        os.close(write)


if __name__ == "__main__":
    seen = {
        "environment": dict(os.environ),
        "account": boto3.client("sts").get_caller_identity()["Account"],
        "offers": asked("rentblock", "offers", "--json"),
        "status": asked("rentblock", "status"),
        "doctor": asked("rentblock", "doctor", "--json"),
        "unread": asked_by_a_reader_that_has_ended("rentblock", "offers", "--hours", "25"),
        "rehearse": asked("rentblock", "rehearse"),
    }
    print(json.dumps(seen))
    sys.exit(EXIT_CODE)
