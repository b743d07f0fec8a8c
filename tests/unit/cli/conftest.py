"""What a verb does to its process ends with its test."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _terminal_as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)
