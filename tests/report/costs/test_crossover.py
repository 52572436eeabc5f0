"""The table of crossings with exact attention, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from lra.report.costs.tables import efficiency_tables
from lra.report.select import join
from lra.report.table import Table, one_line

from lra.core.records import Record
from report.sample import efficiency, with_metrics

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)


def swept(
    name: str,
    law: Callable[[int], float],
    *,
    lengths: Sequence[int] = LENGTHS,
    room: Callable[[int], float] = lambda n: 1e3 * n,
    mode: str = "train",
    **fields: Any,
) -> list[Record]:
    return [efficiency(name, n, mode, 1e-9 * law(n), room(n), **fields) for n in lengths]


def ended(
    name: str, status: Any, *lengths: int, mode: str = "train", **fields: Any
) -> list[Record]:
    return [efficiency(name, n, mode, status=status, **fields) for n in lengths]


def exact(**fields: Any) -> list[Record]:
    return swept("sdpa", lambda n: n**2.0, **fields)


def _table(records: list[Record], reference: list[Record] | None = None) -> Table:
    (tables,) = efficiency_tables(join(records, reference or []))
    assert tables.crossover is not None
    return tables.crossover


def _said(records: list[Record], column: str = "time, train", row: str = "a") -> str:
    table = _table(records)
    found = next(r for r in table.rows if r.label == row)
    return one_line(found.cells[table.columns.index(column)])


def test_a_crossing_is_told_with_the_interval_of_quartiles() -> None:
    records = [*swept("a", lambda n: 1900.0 * n, width=0.1), *exact(width=0.1)]
    assert _said(records) == "about 1,900 (1,700 to 2,100)"
    assert any("lower quartile with the upper one" in note for note in _table(records).notes)


def test_a_narrow_interval_has_a_figure_more_and_none_is_told_where_that_says_nothing() -> None:
    records = [*swept("a", lambda n: 1900.0 * n, width=0.02), *exact(width=0.02)]
    assert _said(records) == "about 1,900 (1,860 to 1,940)"
    records = [*swept("a", lambda n: 1900.0 * n, width=0.0), *exact(width=0.0)]
    assert _said(records) == "about 1,900"


def test_what_is_told_never_lies_outside_of_its_own_bracket_or_of_the_lengths() -> None:
    # Two figures would be 4,800, which is above the greatest.
    records = [*swept("a", lambda n: 4770.0 * n, width=0.002), *exact(width=0.002)]
    assert _said(records) == "about 4,770 (4,760 to 4,780)"
    long = {"lengths": LENGTHS[2:], "width": 0.01}
    records = [*swept("a", lambda n: 1033.0 * n, **long), *exact(**long)]
    assert _said(records) == "about 1,030 (perhaps from 1024; at the latest 1,040)"
    records = [*swept("a", lambda n: 1020.0 * n, **long), *exact(**long)]
    assert _said(records) == "from the shortest measured (1024; at the latest 1,030)"
    records = [*swept("a", lambda n: 8260.0 * n, **long), *exact(**long)]
    assert _said(records) == "never in range (up to 8192; perhaps from 8,180)"


def test_a_crossing_is_told_with_the_range_over_replicates() -> None:
    records = []
    for replicate, factor in enumerate((1600.0, 1900.0, 2300.0)):
        records += swept("a", lambda n, f=factor: f * n, replicate=replicate)
        records += exact(replicate=replicate)
    assert _said(records) == "about 1,900 (1,600 to 2,300)"
    assert any("several replicates" in note for note in _table(records).notes)
    assert not any("medians" in note for note in _table(records).notes)


def test_never_is_explained_where_the_ratio_of_medians_is_below_one() -> None:
    records = []
    # Medians of 3 and 4 times the line; replicates of 5, 3 and 2 against 4, 2 and 6.
    for replicate, (own, other) in enumerate(((5, 4), (3, 2), (2, 6))):
        records += swept("a", lambda n, f=own: f * n, replicate=replicate)
        records += swept("sdpa", lambda n, f=other: f * n, replicate=replicate)
    table = _table(records)
    assert _said(records).startswith("never in range (up to 8192; perhaps from ")
    assert any("a ratio of medians below 1" in note for note in table.notes)


def test_below_everywhere_and_never_below_name_the_range() -> None:
    assert _said([*swept("a", lambda n: n), *exact()]) == "from the shortest measured (256)"
    assert _said([*swept("a", lambda n: 1e9), *exact()]) == "never in range (up to 8192)"


def test_what_is_unsure_at_the_ends_of_the_range_says_so() -> None:
    wide = {"width": 0.1}
    near = swept("a", lambda n: 250.0 * n, **wide)
    assert _said([*near, *exact(**wide)]) == "from the shortest measured (256; at the latest 280)"
    near = swept("a", lambda n: 260.0 * n, **wide)
    assert _said([*near, *exact(**wide)]) == "about 260 (perhaps from 256; at the latest 290)"
    far = swept("a", lambda n: 8000.0 * n, **wide)
    assert _said([*far, *exact(**wide)]) == "about 8,000 (perhaps from 7,200; perhaps never)"
    far = swept("a", lambda n: 8300.0 * n, **wide)
    assert _said([*far, *exact(**wide)]) == "never in range (up to 8192; perhaps from 7,500)"


def test_memory_has_no_quartiles_and_no_interval() -> None:
    own = swept("a", lambda n: n, room=lambda n: 1900.0 * n)
    records = [*own, *exact(room=lambda n: n**2.0)]
    assert _said(records, "memory, train") == "about 1,900"


def test_exact_attention_out_of_memory_erases_nothing_and_counts_as_beaten() -> None:
    own = swept("a", lambda n: 1900.0 * n, width=0.0)
    records = [*own, *exact(lengths=LENGTHS[:-1], width=0.0), *ended("sdpa", "oom", 8192)]
    assert _said(records) == "about 1,900"
    assert (
        "time, train; memory, train: sdpa ran out of memory at 8192; what has a figure there "
        "counts as costing less."
    ) in _table(records).notes


def test_what_wins_only_where_exact_attention_has_no_memory_says_so() -> None:
    records = [
        *swept("a", lambda n: 1e9),
        *exact(lengths=LENGTHS[:-1]),
        *ended("sdpa", "oom", 8192),
    ]
    assert _said(records) == "from 8192 (sdpa OOM there)"


def test_lengths_not_tried_after_an_oom_count_as_beaten_too() -> None:
    own, known = swept("a", lambda n: 1e9), exact(lengths=LENGTHS[:4])
    pruned = ended("sdpa", "skipped", 8192)
    assert _said([*own, *known, *ended("sdpa", "oom", 4096), *pruned]).startswith("from 4096")
    # What was pruned before it was so for another reason.
    early = [*ended("sdpa", "skipped", 4096), *ended("sdpa", "oom", 8192)]
    assert _said([*own, *known, *early]).startswith("from 8192 (sdpa OOM there")
    # A time-out is not a lack of memory.
    late = _said([*own, *known, *ended("sdpa", "timeout", 4096), *pruned])
    assert late == (
        "never in range (up to 2048; sdpa has no figure at 4096 (timeout) and 8192 "
        "(skipped: a shorter length failed))"
    )


def test_a_mechanism_out_of_memory_beats_nothing_there_and_keeps_the_rest() -> None:
    own = [*swept("a", lambda n: 1900.0 * n, lengths=LENGTHS[:-1], width=0.0)]
    records = [*own, *ended("a", "oom", 8192), *exact(width=0.0)]
    assert _said(records) == "about 1,900 (OOM at 8192)"
    both = [*own, *ended("a", "oom", 8192), *exact(lengths=LENGTHS[:-1], width=0.0)]
    assert _said([*both, *ended("sdpa", "oom", 8192)]) == "about 1,900 (OOM at 8192)"


def test_a_length_that_one_replicate_lacks_is_left_out_and_not_blamed_on_exact_attention() -> None:
    own = swept("a", lambda n: 1900.0 * n, lengths=LENGTHS[:-1])
    own += swept("a", lambda n: 1900.0 * n, replicate=1)
    lost = ended("a", "oom", 8192)
    said = "about 1,900 (not in every replicate at 8192)"
    assert _said([*own, *lost, *exact(), *exact(replicate=1)]) == said
    short = [record for r in (0, 1) for record in exact(lengths=LENGTHS[:-1], replicate=r)]
    gone = [record for r in (0, 1) for record in ended("sdpa", "oom", 8192, replicate=r)]
    assert _said([*own, *lost, *short, *gone]) == said


def test_without_exact_attention_there_is_nothing_to_beat() -> None:
    said = "n/a (sdpa has no figure at 256, 512 and 1024 (not run))"
    assert _said(swept("a", lambda n: n, lengths=LENGTHS[:3])) == said
    failed = [
        *swept("a", lambda n: n, lengths=LENGTHS[:3]),
        *ended("sdpa", "error", 256, 512, 1024),
    ]
    assert _said(failed) == "n/a (sdpa has no figure at 256, 512 and 1024 (error (ValueError)))"


def test_a_mechanism_without_a_figure_says_why() -> None:
    records = [*ended("a", "unsupported", *LENGTHS), *exact()]
    assert _said(records) == "unsupported"


def test_modes_are_columns_and_the_anchors_are_no_rows() -> None:
    records = []
    for mode in ("forward", "train", "decode"):
        for name in ("a", "sdpa", "identity"):
            records += swept(name, lambda n: n**2.0, mode=mode)
    table = _table(records)
    assert table.columns == (
        *("time, forward", "time, train", "time, decode"),
        *("memory, train", "state, decode"),
    )
    assert [row.label for row in table.rows] == ["a"]


def test_a_mode_with_two_lengths_is_left_out() -> None:
    records = [*swept("a", lambda n: n), *exact()]
    records += [*swept("a", lambda n: n, mode="forward", lengths=LENGTHS[:2])]
    assert _table(records).columns == ("time, train", "memory, train")


def test_a_reference_row_is_held_against_exact_attention_of_its_own_run() -> None:
    old = "2026-11-01T00:00:00Z"
    run = [*swept("a", lambda n: 1900.0 * n, width=0.0), *exact(width=0.0)]
    slower = swept("sdpa", lambda n: 10 * n**2.0, started=old, width=0.0)
    reference = [*swept("b", lambda n: 4000.0 * n, started=old, width=0.0), *slower]
    table = _table(run, reference)
    assert [(row.title, one_line(row.cells[0])) for row in table.rows] == [
        ("a", "about 1,900"),
        ("b (reference)", "about 400"),
    ]


def test_busy_timings_are_marked_in_time_and_not_in_memory() -> None:
    records = [*swept("a", lambda n: 1900.0 * n, width=0.0), *exact(width=0.0)]
    slowed = msgspec.structs.replace(records[0].metrics["control_after"], value=5e-3)
    metrics = {**records[0].metrics, "control_after": slowed}
    records[0] = msgspec.structs.replace(records[0], metrics=metrics)
    assert _said(records) == "!about 1,900"
    assert not _said(records, "memory, train").startswith("!")


def test_a_state_that_had_no_memory_counts_as_beaten() -> None:
    def decoded(name: str, lengths: Sequence[int]) -> list[Record]:
        found = swept(name, lambda n: 1.0, mode="decode", lengths=lengths)
        return [with_metrics(one, state_bytes=5e3) for one in found]

    records = [*decoded("a", LENGTHS), *decoded("sdpa", LENGTHS[:-1])]
    records += ended("sdpa", "oom", 8192, mode="decode")
    assert _said(records, "state, decode") == "from 8192 (sdpa OOM there)"


def test_of_decoding_the_state_is_compared_and_what_has_none_says_why() -> None:
    def decoded(name: str, power: float) -> list[Record]:
        found = swept(name, lambda n: 1.0, mode="decode")
        return [
            with_metrics(one, state_bytes=2e3 * (one.cell.length / 1024) ** power)  # type: ignore[union-attr]
            for one in found
        ]

    records = [*decoded("a", 0.0), *decoded("sdpa", 1.0)]
    records += ended("b", "unsupported", *LENGTHS, mode="decode")
    table = _table(records)
    assert table.columns == ("time, decode", "state, decode")
    assert one_line(table.rows[0].cells[1]) == "about 1,000"
    assert one_line(table.rows[1].cells[1]) == "unsupported"


def test_a_few_lengths_that_were_repeated_more_often_do_not_stand_alone() -> None:
    """As where a second suite adds replicates at its own lengths."""
    whole = [r for n in (0, 1) for r in exact(replicate=n) + swept("a", _line, replicate=n)]
    few = {"lengths": (4096, 8192)}
    more = [
        r
        for n in (2, 3, 4)
        for r in exact(replicate=n, **few) + swept("a", _line, replicate=n, **few)
    ]
    assert _said(whole + more) == _said(whole) == "about 1,000"
    half = [
        r
        for n in (2,)
        for r in exact(replicate=n, lengths=LENGTHS[3:])
        + swept("a", _line, replicate=n, lengths=LENGTHS[3:])
    ]
    assert "not in every replicate at 256, 512 and 1024" in _said(whole + half)


def _line(n: int) -> float:
    return 1000.0 * n
