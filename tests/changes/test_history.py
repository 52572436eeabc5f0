"""Nights in a folder, one store each: steps, their causes, and gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from report.sample import edited, efficiency, quality, with_metrics

from lra.changes.history import History, read
from lra.changes.history_report import checked, notes, sentences, steps_table
from lra.core.errors import UsageError
from lra.core.protocol import Machine
from lra.core.records import Record, encode
from lra.report.words import TIMES

FIRST = date(2026, 10, 1)
OTHER = Machine(processor="Other CPU 2", cores=2)
Cells = Callable[[int], Iterable[Record]]
"""Records of a night by its number."""


def day(night: int) -> str:
    return (FIRST + timedelta(days=night)).isoformat()


def wobble(night: int) -> float:
    """Factor by which a night is off, about 1 %, the same every time."""
    return 1 + 0.01 * ((night * 7) % 5 - 2) / 2


def night_of(
    night: int, name: str = "linear", times: float = 1.0, version: int = 1, **more: Any
) -> Record:
    """A timed cell of a night; the commit has the night's number."""
    seconds = 0.01 * times * wobble(night)
    own = efficiency(edited(name, version), 2048, "train", seconds, **more)
    return dated(own, night)


def dated(record: Record, night: int) -> Record:
    commit = msgspec.structs.replace(record.provenance, git_commit=f"{night:07d}ffff")
    return msgspec.structs.replace(record, started_at=f"{day(night)}T02:00:00Z", provenance=commit)


def write(folder: Path, records: Iterable[Record]) -> None:
    folder.mkdir(parents=True)
    for record in records:
        (folder / f"{record.id}.json").write_bytes(encode(record))


def history(folder: Path, cells: Cells, nights: Iterable[int] = range(20)) -> History:
    for night in nights:
        # Names that sort otherwise than the dates do.
        write(folder / f"{97 * (night + 1) % 101:03d}", cells(night))
    return read(folder)


def slower_from(night: int, times: float = 1.2, **more: Any) -> Cells:
    def cells(n: int) -> list[Record]:
        return [night_of(n, times=times if n >= night else 1.0, **more)]

    return cells


def row(found: History, number: int = 0) -> list[str]:
    """A step in the table."""
    table = steps_table(found)
    assert len(table.rows) == len(found.events)
    return [value.text for value in table.rows[number].values]


def test_a_step_has_its_night_its_size_and_the_commit_that_changed_the_mechanism(
    tmp_path: Path,
) -> None:
    def cells(n: int) -> list[Record]:
        return [night_of(n, times=1.2 if n >= 15 else 1.0, version=2 if n >= 15 else 1)]

    found = history(tmp_path, cells)
    assert [night.started[:10] for night in found.nights] == [day(n) for n in range(20)]
    (told,) = found.news("worse")
    assert told.step is not None and told.step.at == 15 and not found.news("better")
    assert math.exp(told.step.difference) == pytest.approx(1.2, abs=0.02)
    assert row(found) == [
        "time", "20 % slower", "2026-10-16", f"9.81 {TIMES} control", f"11.8 {TIMES} control",
        "0000014..0000015 (version changed)", "worse",
    ]  # fmt: skip
    first = sentences(found)[0]
    assert "linear train 2048 heads 4 x 64" in first and "commit 0000015" in first
    (one,) = checked(found).judged
    assert (one.mechanism, one.figure, one.outcome) == ("linear", "time", "regression")


def test_a_step_of_the_same_sources_says_so(tmp_path: Path) -> None:
    assert row(history(tmp_path, slower_from(15)))[5].endswith("(same version)")


def test_faster_is_better_and_no_reason_to_fail(tmp_path: Path) -> None:
    found = history(tmp_path, slower_from(15, 0.8))
    assert not found.news("worse") and row(found)[1] == "20 % faster"
    assert [one.outcome for one in checked(found).judged] == ["improvement"]


def test_old_steps_are_listed_and_not_failed(tmp_path: Path) -> None:
    found = history(tmp_path, slower_from(10), range(40))
    assert len(found.events) == 1 and row(found)[-1] == "worse, older"
    assert not found.news("worse") and checked(found).passed


def test_nothing_to_tell(tmp_path: Path) -> None:
    found = history(tmp_path, slower_from(99))
    assert not found.events and not found.outliers and not steps_table(found).rows
    assert len(sentences(found)) == 1 and checked(found).passed


def test_a_few_nights_are_inconclusive(tmp_path: Path) -> None:
    few = history(tmp_path / "few", slower_from(3), range(5))
    assert not few.is_conclusive and not few.events
    assert [one.outcome for one in checked(few).judged] == ["inconclusive"]
    assert history(tmp_path / "six", slower_from(3), range(6)).is_conclusive

    def moved(n: int) -> list[Record]:
        return [night_of(n, **({"machine": OTHER} if n >= 10 else {}))]

    assert history(tmp_path / "moving", moved, range(14)).is_conclusive, "the old one may go on"
    assert not history(tmp_path / "moved", moved, [*range(3), *range(10, 14)]).is_conclusive


def test_two_nights_at_the_end_are_not_yet_told(tmp_path: Path) -> None:
    found = history(tmp_path, slower_from(18, 1.5))
    (series,) = found.outliers
    assert not found.events and series.course.outliers == 2
    assert any(text.startswith("Not yet certain: linear") for text in sentences(found))


def test_times_are_over_their_control_and_the_middle_of_the_replicates(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        # A machine twice as slow from one night on, and a replicate that is off every night.
        slow = 2.0 if n >= 15 else 1.0
        own = [night_of(n, times=slow * t, replicate=r) for r, t in enumerate((1, 1.02, 40))]
        return [with_metrics(one, control_before=slow, control_after=slow) for one in own]

    found = history(tmp_path, cells)
    assert not found.events
    (series,) = found.series
    assert all(point and point.value == pytest.approx(0.0102, rel=0.02) for point in series.points)


@pytest.mark.parametrize(
    ("changed", "differing"),
    [
        ({"machine": OTHER}, "machine"),
        ({"torch": "2.14.0"}, "torch"),
        ({"measure": "e2"}, "measuring"),
    ],
)
def test_other_conditions_begin_another_series(
    tmp_path: Path, changed: dict[str, Any], differing: str
) -> None:
    def cells(n: int) -> list[Record]:
        later = n >= 12
        return [night_of(n, times=2.0 if later else 1.0, **(changed if later else {}))]

    found = history(tmp_path, cells, range(24))
    assert not found.events and found.eras == ((differing,),)
    assert [sum(p is not None for p in s.points) for s in found.series] == [12, 12]


def test_machines_that_take_turns_are_two_series_with_steps_of_their_own(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        odd = bool(n % 2)
        times = (3.0 if odd else 1.0) * (1.3 if n >= 20 and odd else 1.0)
        return [night_of(n, times=times, **({"machine": OTHER} if odd else {}))]

    found = history(tmp_path, cells, range(28))
    (told,) = found.news("worse")
    assert told.step is not None and told.step.at == 21
    assert told.series.last.row.machine == OTHER.name


def test_memory_is_counted(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        return [with_metrics(night_of(n), peak_tensor_bytes=1.03e6 if n >= 15 else 1e6)]

    found = history(tmp_path, cells)
    assert len(found.news("worse")) == 1
    assert row(found)[:3] == ["bytes of tensors", "3.0 % larger", "2026-10-16"]


@pytest.mark.parametrize(("seeds", "verdict"), [(3, "worse"), (1, "ambiguous")])
def test_accuracies_are_judged_over_seeds_and_tasks_apart(
    tmp_path: Path, seeds: int, verdict: str
) -> None:
    def cells(n: int) -> list[Record]:
        drop = 0.06 if n >= 15 else 0.0
        return [
            dated(quality("linear", task, 0.7 + 0.01 * s - drop * (task == "text"), seed=s), n)
            for task in ("text", "image")
            for s in range(seeds)
        ]

    found = history(tmp_path, cells)
    (told,) = found.events
    assert told.verdict == verdict and told.series.last.row.task == "text"
    assert bool(found.news("worse")) == (verdict == "worse")
    assert row(found)[1] == "6.0 points less accurate" and row(found)[-1] == verdict


@pytest.mark.parametrize(("seeds", "verdict"), [(3, "worse"), (1, "ambiguous")])
def test_bits_per_byte_need_no_control_and_are_judged_over_seeds(
    tmp_path: Path, seeds: int, verdict: str
) -> None:
    def cells(n: int) -> list[Record]:
        times = 1.5 if n >= 7 else 1.0
        bits = [2.0 + 0.01 * s for s in range(seeds)]
        trained = [dated(quality("linear", "bytes", None, seed=s), n) for s in range(seeds)]
        return [
            with_metrics(r, bits_per_byte=times * b) for r, b in zip(trained, bits, strict=True)
        ]

    found = history(tmp_path, cells, range(12))
    assert not any(point.left_out for point in found.series[0].points if point)
    (told,) = found.events
    assert told.step is not None and told.step.at == 7 and told.verdict == verdict
    assert told.series.last.value == pytest.approx(1.5 * (2.0 + 0.005 * (seeds - 1)))
    assert row(found)[1] == "50 % worse" and row(found)[-1] == verdict
    assert row(found)[4] == ("3.02" if seeds == 3 else "3.00")


def test_bits_per_byte_are_no_times_that_a_night_has_in_common(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        times = 1.5 if n >= 15 else 1.0
        return [
            dated(
                with_metrics(quality(name, "bytes", None, seed=s), bits_per_byte=2.0 * times + s),
                n,
            )
            for name in ("linear", "performer", "linformer", "sdpa")
            for s in range(3)
        ]

    found = history(tmp_path, cells)
    assert len(found.news("worse")) == 4
    assert not any("control" in sentence for sentence in sentences(found))


def test_a_cell_that_fails_is_told_by_how_it_ended(tmp_path: Path) -> None:
    def cells(n: int, bad: int = 16) -> list[Record]:
        status = {"status": "oom"} if n >= bad else {}
        return [night_of(n, **status), night_of(n, "sdpa", status="timeout")]

    found = history(tmp_path / "told", cells)
    (told,) = found.news("worse")
    assert told.series.last.row.label == "linear", "what never had a figure has not become worse"
    assert row(found)[1:5] == ["OOM", "2026-10-17", f"9.81 {TIMES} control", "OOM"]
    late = history(tmp_path / "untold", lambda n: cells(n, 18))
    assert not late.news("worse") and [one.failing for one in late.outliers] == [2]
    old = history(tmp_path / "old", lambda n: cells(n, 5))
    assert not old.news("worse")
    gone = history(tmp_path / "gone", lambda n: cells(n, 6)[n >= 10 :])
    assert not gone.news("worse") and not gone.outliers, "it is measured no more"


def test_a_seed_that_fails_is_told_and_makes_no_step_of_the_others(tmp_path: Path) -> None:
    """Its accuracy lies apart, so that without it the mean is another."""

    def cells(n: int) -> list[Record]:
        late = {"status": "oom"} if n >= 16 else {}
        own = [
            quality("linear", "text", accuracy, seed=s) for s, accuracy in enumerate((0.6, 0.62))
        ]
        return [dated(one, n) for one in (*own, quality("linear", "text", 0.9, seed=2, **late))]

    found = history(tmp_path, cells)
    (told,) = found.events
    assert told.step is None and row(found)[1:3] == ["OOM of 1 of 3 seeds", "2026-10-17"]


def test_a_seed_that_always_failed_hides_no_step_of_the_others(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        drop = 0.2 if n >= 15 else 0.0
        own = [quality("linear", "text", a - drop, seed=s) for s, a in enumerate((0.8, 0.81))]
        bad = quality("linear", "text", seed=2, status="diverged")
        return [dated(one, n) for one in (*own, bad)]

    (told,) = history(tmp_path, cells).news("worse")
    assert told.step is not None and told.step.at == 15


def test_a_seed_that_is_no_longer_trained_makes_no_step(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        seeds = (0.6, 0.62, 0.9)[: 2 if n >= 15 else 3]
        return [dated(quality("linear", "text", a, seed=s), n) for s, a in enumerate(seeds)]

    assert history(tmp_path, cells).events == ()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    for n in (*range(8), *range(10, 20)):
        cells = [night_of(n)] + ([night_of(n, "sdpa")] if n != 12 else [])
        write(tmp_path / day(n), cells)
    (tmp_path / day(3) / "0123.json").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "spoiled").mkdir()
    (tmp_path / "spoiled" / "0123.json").write_text("not json")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "README.md").write_text("notes")
    found = read(tmp_path)
    assert found.unread["empty"] == "no record in it"
    assert found.unread["spoiled"].startswith("record 0123.json is left out")
    assert set(found.unread) == {"empty", "spoiled"}
    assert [night.name for night in found.nights if night.left_out] == [day(3)]
    *_, days, figure = notes(found)
    assert "2026-10-09 to 2026-10-10" in days
    assert figure.startswith("1 figure missing in 2026-10-13, as sdpa"), (
        "and none is missing in a night that there was not"
    )
    assert len(notes(found)) == 5


def test_what_was_not_measured_of_late_is_missing_and_what_never_comes_back_has_ended(
    tmp_path: Path,
) -> None:
    def cells(n: int) -> list[Record]:
        late, gone = [night_of(n, "sdpa")] * (n < 18), [night_of(n, "full")] * (n < 5)
        return [night_of(n), *late, *gone]

    assert notes(history(tmp_path, cells)) == [
        "1 figure missing in 2026-10-19 and 2026-10-20, as sdpa train 2048 heads 4 x 64 time.",
        "Ended: full train 2048 heads 4 x 64 time (2026-10-05).",
    ]


def test_a_busy_night_is_a_gap_and_counted(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        own = night_of(n, times=9.0 if n == 10 else 1.0)
        return [with_metrics(own, control_before=9e-3, control_after=1e-3)] if n == 10 else [own]

    found = history(tmp_path, cells)
    point = found.series[0].points[10]
    assert point is not None and point.value is None and point.left_out == "busy machine"
    assert notes(found) == ["1 figure of a night left out: busy machine."]


def test_many_steps_on_one_night_have_something_in_common(tmp_path: Path) -> None:
    def cells(n: int) -> list[Record]:
        names = ("linear", "performer", "linformer", "sdpa", "full", "identity")
        return [night_of(n, name, times=1.2 if n >= 15 else 1.0) for name in names]

    told = sentences(history(tmp_path, cells))
    assert told[0].startswith("6 steps: ") and told[0].endswith("; 1 more.")
    assert told[1] == (
        "6 of 6 times are worse since one night, 2026-10-16: look at the machine and the control "
        "first."
    )


def test_several_nights_of_one_day_have_times(tmp_path: Path) -> None:
    for hour in (2, 14):
        own = msgspec.structs.replace(night_of(0), started_at=f"{day(0)}T{hour:02d}:00:00Z")
        write(tmp_path / f"{hour}", [own])
    assert "(2 nights" in sentences(read(tmp_path))[0]
    assert [night.started[11:13] for night in read(tmp_path).nights] == ["02", "14"]


def test_no_folder_and_no_night_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no history at"):
        read(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="it holds no store; sweep into a folder of it"):
        read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty: no record in it"):
        read(tmp_path)
