"""What can go wrong while programs are found, fetched or built, and the exit code that each kind ends in.

Every error is one sentence on what happened and one on what to do. `OfficialFailed` never reaches a caller: it only
means that the next way is tried.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of `python -m toolchain`; `--help` prints them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    LACKING = 3
    NO_GO = 4
    DISK_FULL = 5
    INTERRUPTED = 130
    TERMINATED = 143


class ToolchainError(Exception):
    """A program could not be had: `message` says what happened, `remedy` what to do, `exit_code` ends a command."""

    def __init__(self, message: str, remedy: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code


class OfficialFailed(Exception):
    """The vendor's download did not work out, with the reason: the program is built instead."""
