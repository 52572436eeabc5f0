"""The mean accuracy is over tasks on which exact attention is clear of every shortcut."""

from __future__ import annotations

import pytest

from lra.core.catalogue import EXACT
from lra.core.cells import BaselineCell, QualityCell
from lra.core.records import Record
from lra.report.accuracy import Accuracies
from lra.report.assemble import analyse
from lra.report.leaderboard import leaderboard
from lra.report.load.select import join
from lra.report.mixing import MARGIN
from lra.report.sections import accuracy
from lra.report.sections.headline import headline

from .sample import baseline, quality

TASKS = ("listops", "text", "retrieval", "image")


def records(**exact: float) -> list[Record]:
    """Exact attention, 0.9 where nothing is said, another 0.05 below it, and trees of 0.5."""
    own = dict.fromkeys(TASKS, 0.9) | exact
    return [
        *(quality("sdpa", task, share) for task, share in own.items()),
        *(quality("linear", task, share - 0.05) for task, share in own.items()),
        *(baseline(task, majority=0.4, bag=0.4, trees=0.5) for task in own),
    ]


def main(made: list[Record], reference: list[Record] | None = None) -> Accuracies:
    found = analyse(join(made, reference or [])).main
    assert found is not None
    return found


def names(columns: tuple[object, ...]) -> list[str]:
    return [column.task for column in columns]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("exact", "is_local"), [(0.5 + MARGIN - 0.01, True), (0.61, False)])
def test_a_task_without_a_margin_is_left_out_of_the_mean(exact: float, is_local: bool) -> None:
    found = main(records(image=exact))
    assert names(found.local) == (["image"] if is_local else [])
    assert names(found.averaged) == [task for task in TASKS if task != "image" or not is_local]
    means = found.means.set_index("mechanism")["mean"]
    wanted = 0.9 if is_local else (3 * 0.9 + exact) / 4
    assert means["sdpa"] == pytest.approx(wanted) and means["linear"] == pytest.approx(
        wanted - 0.05
    )
    (section,) = accuracy.sections(analyse(join(records(image=exact), [])))
    notes = section.tables[0].notes
    assert any("image (trees 50.0)" in note for note in notes) == is_local


def test_local_mixing_tells_a_local_task_and_the_leaderboard_follows() -> None:
    made = [*records(), quality("local", "image", 0.88), quality("local", "text", 0.5)]
    assert names(main(made).local) == ["image"]
    board = leaderboard(analyse(join(made, [])))
    beats = {one.key.mechanism: one.shortcuts_beaten for one in board.entries}
    # On image nobody is judged: its shortcut of 88 % is no measure of attention.
    assert beats["linear"] == beats["sdpa"] == "all"


def test_fewer_than_two_other_tasks_leave_the_mean_over_all() -> None:
    found = main(records(listops=0.5, retrieval=0.55, image=0.59))
    assert names(found.local) == ["listops", "retrieval", "image"]
    assert names(found.averaged) == list(TASKS)


def test_a_task_that_nothing_is_known_of_stays() -> None:
    made = records(image=0.5)
    without = [one for one in made if not isinstance(one.cell, BaselineCell)]
    assert names(main(without).local) == []
    others = [
        one
        for one in made
        if not (isinstance(one.cell, QualityCell) and one.cell.mechanism.name == EXACT)
    ]
    assert names(main(others).local) == []


def test_the_leaderboard_names_the_tasks_that_its_mean_leaves_out() -> None:
    def caption(made: list[Record]) -> str:
        table = headline(analyse(join(made, []))).leaderboard
        assert table is not None
        return table.caption

    assert "listops and image" in caption(records(listops=0.55, image=0.5)).partition(". ")[2]
    assert caption(records()).count(".") == 1
    # Where the mean is over all, none is left out.
    assert caption(records(listops=0.5, retrieval=0.55, image=0.59)).count(".") == 1
