"""Slots of an encoder-decoder are a setting: a table for each, and a mean over all its tasks."""

from __future__ import annotations

import pytest

from lra.core.catalogue import EXACT
from lra.core.protocol import SlotName
from lra.core.records import Record
from lra.report.accuracy import Accuracies
from lra.report.load.settings import slot_words
from lra.report.model import Table
from lra.report.sections import accuracy
from lra.report.sections.headline import headline, terminal_summary
from lra.report.words import DAGGER

from .across import CROSS, across
from .analysed import analysed, told
from .sample import baseline, efficiency, quality
from .test_leaderboard import check

SLOTS: dict[str, tuple[SlotName, ...]] = {
    "encoder": ("decoder", "cross"),
    "decoder": ("encoder", "cross"),
    "cross": CROSS,
    "all": (),
}
"""Slots to name so that these alone are open."""


def scored(records: list[Record]) -> list[Accuracies]:
    return list(analysed(records).accuracies)


def leaderboard(records: list[Record]) -> Table:
    found = headline(analysed(records)).leaderboard
    assert found is not None
    return found


def test_one_task_has_a_table_for_each_slot_and_none_mixes_two() -> None:
    made = {slot: 0.5 + n / 10 for n, slot in enumerate(SLOTS)}
    records = [across("linear", "copy", share, named=SLOTS[slot]) for slot, share in made.items()]
    records.append(told("linear", "recall", accuracy=0.95))
    found = accuracy.sections(analysed(records))
    tables = [one.tables[0] for one in found]
    shown = [[value.number for row in table.rows for value in row.values] for table in tables]
    assert sorted(shown) == [[0.5], [0.6], [0.7], [0.8], [0.95]]
    assert len({table.id for table in tables}) == len({one.setting for one in found}) == 5


def test_settings_know_their_slots_as_values() -> None:
    found = scored([across("linear", "copy", named=named) for named in SLOTS.values()])
    slots = {one.setting.slots for one in found}
    assert slots == {("encoder",), ("decoder",), ("cross",), ("encoder", "decoder", "cross")}
    assert all(one.setting.by_token for one in found)
    words = {slot_words(one) for one in slots if isinstance(one, tuple)}
    assert len(words) == len(SLOTS)


def test_another_mechanism_beside_is_another_column() -> None:
    (found,) = scored([across("linear", "copy", beside=beside) for beside in ("sdpa", "identity")])
    assert len(found.columns) == 2 and len({one.title for one in found.columns}) == 2
    assert found.averaged == ()


def test_a_mean_is_over_all_tasks_of_a_slot() -> None:
    shares = {"copy": 0.9, "reverse": 0.7, "lookup": 0.5}
    records = [
        across("linear", task, share, causal=task != "lookup") for task, share in shares.items()
    ]
    (found,) = scored(records)
    assert {one.task for one in found.averaged} == set(shares)
    assert found.means["mean"].tolist() == pytest.approx([0.7])
    (other,) = scored([told("linear", task, accuracy=0.5) for task in ("recall", "trigger")])
    assert other.averaged == ()


def test_a_task_of_a_slot_that_a_shortcut_solves_is_not_in_the_mean() -> None:
    records = [
        *(across(name, task, 0.9) for name in (EXACT, "linear") for task in ("copy", "reverse")),
        *(across(name, "summary", 0.6) for name in (EXACT, "linear")),
        *(baseline(task, majority=0.1, bag=0.55) for task in ("copy", "reverse", "summary")),
    ]
    (found,) = scored(records)
    assert [one.task for one in found.local] == ["summary"]
    assert sorted(one.task for one in found.averaged) == ["copy", "reverse"]


def test_a_board_is_of_a_mean_or_of_a_single_task() -> None:
    several = [
        told(name, task, accuracy=0.5)
        for name in ("linear", EXACT)
        for task in ("recall", "trigger")
    ]
    assert headline(analysed(several)).leaderboard is None
    _, printed = terminal_summary(analysed(several))
    assert "recall" in printed and "trigger" in printed
    alone = leaderboard(several[::2])
    assert alone.columns == ("accuracy, %",) and "recall" in alone.caption
    means = leaderboard([quality("linear", task, 0.5) for task in ("text", "listops")])
    assert "listops and text" in means.caption


def test_laws_alone_are_no_leaderboard_and_no_mark_is_explained_that_is_not_there() -> None:
    several = [told("linear", task, accuracy=0.2) for task in ("recall", "trigger")]
    several += [baseline(task, majority=0.1, bag=0.5) for task in ("recall", "trigger")]
    assert headline(analysed([*several, check("linear")])).leaderboard is None
    _, printed = terminal_summary(analysed([*several, check("linear")]))
    assert printed.count(DAGGER) == 3, "two scores and their explanation"
    timed = [efficiency(name, n, "train", 1.0) for name in ("linear", EXACT) for n in (512, 1024)]
    found = leaderboard([*several, *timed])
    assert not any(DAGGER in note for note in found.notes)


def test_a_headline_prefers_answers_for_examples_to_those_at_tokens() -> None:
    tokens = [across(name, "copy", 0.9) for name in ("linear", "performer", EXACT)]
    both = [*tokens, quality("linear", "text", 0.5)]
    assert [one.setting.by_token for one in scored(both)] == [False, True]
    assert [one.setting.by_token for one in scored(tokens)] == [True]
