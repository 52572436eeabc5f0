"""The four places of attention, against shares by hand: no mixing is 0, exact attention 100 %."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import stdev

import pytest

from lra.core.catalogue import EXACT, NO_MIXING
from lra.core.records import Record
from lra.report.model import Table
from lra.report.sections.four_cells import Scale, sections

from .across import across
from .analysed import analysed, lines, told
from .sample import baseline, quality

SELF, CAUSAL, CROSS, CAUSAL_CROSS = (
    "noncausal self",
    "causal self",
    "noncausal cross",
    "causal cross",
)


def table(records: Iterable[Record], reference: Iterable[Record] = ()) -> Table:
    (section,) = sections(analysed(records, reference))
    (found,) = section.tables
    return found


def text(**scores: float) -> list[Record]:
    """Trainings on text, bidirectional on whole inputs."""
    return [quality(name, "text", score) for name, score in scores.items()]


def recall(**scores: float) -> list[Record]:
    """Trainings on recall, strictly causal."""
    return [told(name, "recall", accuracy=score) for name, score in scores.items()]


ENDS = [*text(sdpa=0.9, identity=0.5), *recall(sdpa=0.8, identity=0.2)]
"""Exact attention and no mixing on a task of each kind of self-attention."""


def test_each_place_has_its_tasks_and_its_own_ends() -> None:
    made = [
        *ENDS,
        *text(linear=0.6),
        *recall(linear=0.65),
        *(across(name, "copy", score) for name, score in ((EXACT, 1.0), ("linear", 0.55))),
        baseline("copy", majority=0.1),
        *(
            across(name, "lookup", score, causal=False)
            for name, score in ((EXACT, 0.84), ("linear", 0.24))
        ),
        baseline("lookup", majority=0.04),
    ]
    found = table(made)
    places = (SELF, CAUSAL, CROSS, CAUSAL_CROSS)
    assert found.columns == tuple(f"{place} (1 task)" for place in places)
    assert lines(found) == [
        ["linear", "25.0", "75.0", "25.0", "50.0"],
        [EXACT, "100.0", "100.0", "100.0", "100.0"],
    ]


def test_a_place_is_the_mean_over_its_tasks_and_losses_count_downwards() -> None:
    made = [*ENDS, *recall(linear=0.65)]
    made += [
        told(name, "bigrams", nat=loss)
        for name, loss in ((EXACT, 1.5), (NO_MIXING, 2.0), ("linear", 1.9))
    ]
    found = table(made)
    assert found.columns == (f"{SELF} (1 task)", f"{CAUSAL} (2 tasks)")
    # 75 % of recall, 20 % of the loss.
    assert lines(found)[0] == ["linear", "not run", "47.5"]


@pytest.mark.parametrize(("score", "share"), [(0.1, "-50.0"), (0.3, "-50.0"), (0.99, "122.5")])
def test_a_share_is_bounded_on_each_task(score: float, share: str) -> None:
    assert lines(table([*ENDS, *text(linear=score)]))[0][:2] == ["linear", share]
    assert Scale(0.5, 0.6, is_loss=False).share(0.9) == 1.5


@pytest.mark.parametrize(
    ("nothing", "exact", "counts"),
    [(0.5, 0.61, True), (0.5, 0.59, False), (0.7, 0.5, False)],
)
def test_a_task_that_exact_attention_does_not_improve_is_left_out(
    nothing: float, exact: float, counts: bool
) -> None:
    extra = [quality(name, "listops", s) for name, s in ((EXACT, exact), (NO_MIXING, nothing))]
    found = table([*ENDS, *extra, *text(linear=0.7), quality("linear", "listops", 0.6)])
    assert found.columns[0] == f"{SELF} ({'2 tasks' if counts else '1 task'})"


@pytest.mark.parametrize(
    ("nothing", "exact", "counts"),
    [(2.0, 1.79, True), (2.0, 1.81, False), (2.0, 2.5, False)],
)
def test_a_loss_counts_where_exact_attention_has_a_tenth_less(
    nothing: float, exact: float, counts: bool
) -> None:
    extra = [told(name, "bigrams", nat=s) for name, s in ((EXACT, exact), (NO_MIXING, nothing))]
    assert table([*ENDS, *extra]).columns[1] == f"{CAUSAL} ({'2 tasks' if counts else '1 task'})"


def test_without_the_ends_of_its_scale_a_task_is_left_out() -> None:
    listops = [quality(EXACT, "listops", 0.9), baseline("listops", majority=0.1)]
    assert table([*ENDS, *listops]).columns[0] == f"{SELF} (1 task)"
    # Across two sequences nothing is known without the most frequent answer.
    assert len(table([*ENDS, across(EXACT, "copy", 1.0)]).columns) == 2
    known = [across(EXACT, "copy", 1.0), baseline("copy", majority=0.1)]
    assert len(table([*ENDS, *known]).columns) == 3


def test_a_cell_without_a_figure_says_why() -> None:
    made = [
        *ENDS,
        *text(linear=0.9, bigbird=0.9, lstm=0.7),
        told("bigbird", "recall", accuracy=0.5, status="unsupported"),
        told("linear", "recall", accuracy=0.5, status="oom"),
        told("reformer", "recall", accuracy=0.5, status="unsupported"),
    ]
    assert lines(table(made)) == [
        ["bigbird", "100.0", "unsupported"],
        ["linear", "100.0", "OOM"],
        ["lstm", "50.0", "not run"],
        [EXACT, "100.0", "100.0"],
    ]


def test_a_part_of_a_cells_tasks_is_no_mean_and_no_row_by_itself() -> None:
    listops = [quality(name, "listops", s) for name, s in ((EXACT, 0.9), (NO_MIXING, 0.1))]
    made = [*ENDS, *listops, *text(linear=0.7, lstm=0.7), *recall(linear=0.5)]
    assert lines(table(made)) == [
        ["linear", "n/a (1 of 2)", "50.0"],
        [EXACT, "100.0", "100.0"],
    ]


def test_the_spread_is_over_seeds_that_all_tasks_of_a_cell_have() -> None:
    listops = [quality(name, "listops", s) for name, s in ((EXACT, 0.9), (NO_MIXING, 0.1))]
    by_seed = {0: (0.6, 0.3), 1: (0.8, 0.5)}
    own = [
        quality("linear", task, score, seed=seed)
        for seed, scores in by_seed.items()
        for task, score in zip(("text", "listops"), scores, strict=True)
    ]
    shares = [((a - 0.5) / 0.4 + (b - 0.1) / 0.8) / 2 for a, b in by_seed.values()]
    spread = f"± {100 * stdev(shares):.1f}"
    assert lines(table([*ENDS, *listops, *own]))[0][1] == f"43.8 ({spread})"
    third = quality("linear", "text", 0.7, seed=2)
    assert lines(table([*ENDS, *listops, *own, third]))[0][1] == "43.8"


def test_a_mechanism_in_other_slots_than_cross_shows_no_place() -> None:
    known = baseline("copy", majority=0.1)
    for named in ((), ("decoder", "cross"), ("encoder", "cross")):
        own = [across(name, "copy", 0.9, named=named) for name in (EXACT, "linear")]
        assert len(table([*ENDS, known, *own]).columns) == 2


def test_the_mechanisms_in_the_other_slots_are_named() -> None:
    beside = {"copy": "sdpa", "lookup": "identity", "reverse": "sdpa"}
    known = [across(EXACT, task, 1.0, beside=own) for task, own in beside.items()]
    known += [baseline(task, majority=0.1) for task in beside]
    last = table([*ENDS, *known]).notes[-1]
    places = [last.index(word) for word in ("copy", "reverse", "sdpa", "lookup", "identity")]
    assert places == sorted(places) and last.count("sdpa") == 1


def test_tasks_of_one_place_have_no_section() -> None:
    assert sections(analysed(text(sdpa=0.9, identity=0.5, linear=0.7))) == []


def test_each_protocol_has_a_section_and_ends_of_its_own() -> None:
    ends = ((EXACT, 0.7), (NO_MIXING, 0.5), ("linear", 0.6))
    small = [quality(name, "text", score, scale="small") for name, score in ends]
    found = sections(analysed([*ENDS, *text(linear=0.8), *small]))
    assert [one.setting for one in found] == ["mini"]
    assert lines(found[0].tables[0])[0] == ["linear", "75.0", "not run"]


def test_the_reference_gives_the_ends_that_the_run_lacks() -> None:
    made = [*text(linear=0.7), *recall(linear=0.5)]
    found = {row[0]: row[1:] for row in lines(table(made, ENDS))}
    assert found["linear"] == ["50.0", "50.0"]
    # The run's own exact attention stands before the reference's.
    own = {row[0]: row[1:] for row in lines(table([*made, *text(sdpa=0.7)], ENDS))}
    assert own["linear"] == ["100.0", "50.0"]
