"""Bars live on a terminal while cells run, and leave nothing on it."""

from __future__ import annotations

import io
import re
import sys
from collections import defaultdict
from contextlib import closing

import pytest
from msgspec.structs import replace

from lra.cli.progress import Pace, watcher
from lra.core.errors import LONGEST
from lra.core.findings import Finding, Verdict
from lra.core.records import Failure, Metric, Record, Status
from lra.engine.jobs import Job, Progress
from lra.store import Store

from .gate import timing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def left_on(shown: str) -> list[str]:
    """The lines that stand on a terminal after it was sent `shown`."""
    lines: dict[int, dict[int, str]] = defaultdict(dict)
    row = column = 0
    for sign in shown.replace("\x1b[A", "\v"):
        if sign == "\n":
            row, column = row + 1, 0
        elif sign == "\v":
            row -= 1
        elif sign == "\r":
            column = 0
        else:
            lines[row][column] = sign
            column += 1
    return ["".join(lines[row].values()).strip() for row in sorted(lines)]


def test_a_run_on_a_terminal_shows_bars_and_leaves_one_line_per_cell(finished) -> None:
    assert "| 0/5 [" in finished.shown and "%|" in finished.shown
    assert "linear listops:" in finished.shown and "%|" in finished.shown
    # Another test may be timing: a line says so, and is no cell's.
    lines = [line for line in left_on(finished.shown) if line and ": waits for " not in line]
    device, *cells = lines
    assert device.startswith("device")
    assert [re.split("[],]", line)[0] for line in cells] == [f"[{n}/5" for n in range(1, 6)]
    assert " left]" in cells[0] and " left]" not in cells[-1]
    assert all(line.endswith(" s]") for line in cells)


def lines_on(screen: io.StringIO) -> list[str]:
    """The lines that a person sees, whether it is a terminal or a file."""
    if screen.isatty():
        return left_on(screen.getvalue())
    return screen.getvalue().splitlines()


@pytest.fixture
def record(finished) -> Record:
    return Store(finished.store).records()[0]


@pytest.fixture
def job(record: Record) -> Job:
    return Job(cell=record.cell, cache="")


@pytest.fixture
def other(record: Record) -> Job:
    return Job(cell=replace(record.cell, threads=7), cache="")


def test_a_run_that_breaks_off_takes_its_bars_with_it(
    job: Job, other: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt), closing(watcher([job, other], quiet=False)) as watch:
        watch.progress(job, Progress(phase="train", step=3, steps=10, loss=1.0))
        assert "0/2" in terminal.getvalue() and f"{job.label}:" in terminal.getvalue()
        raise KeyboardInterrupt
    terminal.write("lra: stopped\n")
    assert [line for line in left_on(terminal.getvalue()) if line] == ["lra: stopped"]


def test_without_a_terminal_there_are_no_bars(
    record: Record, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(watcher([job], quiet=False)) as watch:
        watch.progress(job, Progress(phase="train", step=3, steps=10))
        watch.finished(job, record)
    told = capsys.readouterr().err
    assert told.startswith(f"[1/1] {job.label}: ") and told.count("\n") == 1


def test_quiet_says_only_what_went_wrong(
    record: Record, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(watcher([job], quiet=True)) as watch:
        watch.progress(job, Progress(phase="train", step=3, steps=10))
        watch.waiting(job, "another run's timing on this machine")
        watch.finished(job, record)
        watch.left(job)
        assert capsys.readouterr().err == ""
        failure = Failure(type="MemoryError", message="no memory")
        watch.finished(job, replace(record, status="oom", failure=failure))
        watch.noticed("worker local-0 is gone")
    failed, noticed = capsys.readouterr().err.splitlines()
    assert failed.startswith(f"{job.label}: oom (no memory)  [")
    assert noticed == "worker local-0 is gone"


def test_a_message_of_many_words_is_cut_to_its_point(
    record: Record, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = Failure(type="ValueError", message="ValueError: " + "many words " * 9000 + "(x.py)")
    with closing(watcher([job], quiet=True)) as watch:
        watch.finished(job, replace(record, status="error", failure=failure))
    told = capsys.readouterr().err
    assert len(told) < len(job.label) + LONGEST + 40
    assert "ValueError: many" in told and "(x.py)" in told


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_who_waits_and_what_became_of_a_machine_are_lines(
    kind: type[io.StringIO], job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := kind())
    with closing(watcher([job], quiet=False)) as watch:
        watch.waiting(job, "another run")
        watch.noticed("worker local-0 is gone")
    waits, gone = (line for line in lines_on(screen) if line)
    assert waits.startswith(f"{job.label}: ") and waits.endswith("another run")
    assert gone == "worker local-0 is gone"


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_what_is_left_says_how_far_its_training_is(
    kind: type[io.StringIO], job: Job, other: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", screen := kind())
    with closing(watcher([job, other], quiet=False)) as watch:
        watch.progress(job, Progress(phase="train", step=400, steps=4000))
        watch.progress(other, Progress(phase="data"))
        watch.left(job)
        watch.left(other)
    begun, new = (line for line in lines_on(screen) if line)
    assert begun.startswith(new) and new.endswith(job.label)
    assert "400 of 4,000 steps" in begun.removeprefix(new)


def test_the_pace_tells_what_failed_and_what_is_left(record: Record) -> None:
    def ended(id: str, status: str = "ok") -> Record:
        return replace(record, id=id, status=status, seconds=6.0)

    now = 0.0
    pace = Pace(["a", "b", "c"], {"a": 1.0, "b": 3.0}, clock=lambda: now)
    assert str(pace) == "0/3", "nothing tells yet how fast it goes"
    now = 2.0
    pace.ended(ended("a"))
    # Twice as slow as expected; b is expected to take 3 s, and c the mean of the known two.
    assert str(pace) == "1/3, 10 s left"
    pace.ended(ended("b", "oom"))
    now = 8.0
    assert str(pace) == "2/3, 1 failed, 4 s left"
    pace.ended(ended("c", "unsupported"))
    assert str(pace) == "3/3, 1 failed"


def test_a_cell_that_fails_soon_does_not_tell_the_pace_of_others(record: Record) -> None:
    now = 0.0
    pace = Pace("abc", dict.fromkeys("abc", 100.0), clock=lambda: now)
    now = 1.0
    pace.ended(replace(record, id="a", status="error", seconds=1.0))
    assert str(pace) == "1/3, 1 failed, 3 min left"


@pytest.mark.parametrize("expected", [{}, dict.fromkeys("abcd", 100.0)])
@pytest.mark.parametrize("status", ["error", "skipped", "unsupported"])
def test_what_has_no_result_does_not_tell_the_pace_of_others(
    record: Record, status: Status, expected: dict[str, float]
) -> None:
    now = 0.0
    pace = Pace("abcd", expected, clock=lambda: now)
    now = 120.0
    pace.ended(replace(record, id="a", seconds=120.0))
    before = str(pace).partition("/4, ")[2]
    now = 140.0
    pace.ended(replace(record, id="b", status=status, seconds=20.0))
    assert before == "6 min left"
    assert str(pace).endswith(", 4 min left"), "two of the three that were left"


def test_a_small_cell_does_not_tell_the_pace_of_large_ones(record: Record) -> None:
    now = 0.0
    hours = {"small": 2.0, **{str(i): 3600.0 for i in range(4)}}
    pace = Pace(hours, hours, slots=2, clock=lambda: now)
    now = 20.0
    pace.ended(replace(record, id="small"))
    # Ten times as slow as expected, of a run of two hours with two cells side by side.
    assert str(pace) == "1/5, 2 h 6 min left"
    now = 7220.0
    for i in range(2):
        pace.ended(replace(record, id=str(i)))
    assert str(pace) == "3/5, 2 h 0 min left", "by its own pace alone, half the speed expected"


def between(before: float, after: float) -> dict[str, object]:
    """A timing between two controls."""
    times = {"latency": 0.002, "control_before": before, "control_after": after}
    found = timing("linear", times=times, length=256, mode="forward")
    return {"cell": found.cell, "metrics": found.metrics}


def laws(*verdicts: Verdict) -> dict[str, object]:
    return {"findings": tuple(Finding(law="batch", says="", verdict=one) for one in verdicts)}


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            {"metrics": {
                "product_rate": Metric(value=1.91e11, unit="1/s", better="higher"),
                "output_error": Metric(value=0.0872, unit="ratio"),
            }},
            "product rate 1.91e+11 1/s, output error 8.7%",
        ),
        # A training in bits is told by them alone.
        (
            {"metrics": {
                "bits_per_byte": Metric(value=1.9137, unit="bit"),
                "test_loss": Metric(value=1.3265, unit="nat"),
                "decode_agreement": Metric.share(1.0),
            }},
            "1.914 bits per byte",
        ),
        ({"metrics": {"nat": Metric(value=1.5184, unit="nat")}}, "1.518 nat"),
        # A timing between unlike controls is marked.
        (between(0.01, 0.011), "2.00 ms"),
        (between(0.01, 0.016), "2.00 ms (busy machine)"),
        (laws("held", "skipped"), "1 law held, none failed"),
        (laws("failed", "held"), "1 law held, 1 failed"),
    ],
)  # fmt: skip
def test_a_cell_that_ends_is_told_by_its_leading_figure(
    own: dict[str, object], told: str, record: Record, capsys: pytest.CaptureFixture[str]
) -> None:
    found = replace(record, **{"status": "ok", "metrics": {}, "findings": (), **own})
    job = Job(cell=found.cell, cache="")
    with closing(watcher([job], quiet=False)) as watch:
        watch.finished(job, found)
    assert f": {told}  [" in capsys.readouterr().err
