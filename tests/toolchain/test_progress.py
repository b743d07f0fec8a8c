"""What a user sees of a long build."""

from io import StringIO

from rich.console import Console

from toolchain.progress import Reporter, spell


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_there_is_a_line_at_the_start_one_a_minute_and_one_at_the_end() -> None:
    output, clock = StringIO(), Clock()
    reporter = Reporter(Console(file=output, width=200), clock)
    with reporter.task("building pulumi 3.274.1", usual=187, done="built pulumi 3.274.1") as task:
        for _ in range(130):
            clock.now += 1
            task.tick("go: compiling something")
    assert output.getvalue().splitlines() == [
        "building pulumi 3.274.1 (usually about 3 min 7 s)",
        "building pulumi 3.274.1: 1 min 0 s of usually about 3 min 7 s.",
        "building pulumi 3.274.1: 2 min 0 s of usually about 3 min 7 s.",
        "built pulumi 3.274.1 in 2 min 10 s",
    ]


def test_on_a_terminal_one_line_shows_what_is_done_and_for_how_long() -> None:
    output, clock = StringIO(), Clock()
    console = Console(file=output, width=100, force_terminal=True)
    with Reporter(console, clock).task("building kwok 0.8.0", usual=65) as task:
        clock.now += 61
        task.tick("go: compiling [k8s.io/client-go]")
        # The live line is drawn by a timer; asking for it now keeps the test quick.
        task._status._live.refresh()  # type: ignore[union-attr]
    assert (
        "building kwok 0.8.0: 1 min 1 s of usually about 1 min 5 s  go: compiling [k8s.io/client-go]"
        in output.getvalue()
    )


def test_work_that_fails_is_not_called_done() -> None:
    output = StringIO()
    try:
        with Reporter(Console(file=output)).task("building", done="built"):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert "built" not in output.getvalue()


def test_durations_read_like_speech() -> None:
    assert [spell(seconds) for seconds in (0.2, 59, 60, 376)] == ["0 s", "59 s", "1 min 0 s", "6 min 16 s"]
