"""Crossovers with exact attention, and how a table has them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from lra.core.records import Record
from lra.report.crossover import crossover_value, crossovers
from report.sample import with_metrics
from report.sweeps import LENGTHS, OLD, analysed, ended, exact, swept

EXACTLY: dict[str, Any] = {"width": 0.0}


def found(
    records: list[Record],
    kind: str = "time",
    label: str = "a",
    mode: str = "train",
    reference: Sequence[Record] = (),
) -> Any:
    costs = analysed(records, reference).costs
    (setting,) = costs.settings
    rows = crossovers(costs, setting.id)
    own = rows[(rows["label"] == label) & (rows["kind"] == kind) & (rows["mode"] == mode)]
    (row,) = own.itertuples(index=False)
    return row


def said_of(row: Any) -> str:
    return crossover_value(row).line.replace("\N{EN DASH}", "..")


def said(records: list[Record], **place: Any) -> str:
    return crossover_value(found(records, **place)).line


@pytest.mark.parametrize(
    ("factor", "width", "text"),
    [
        (1900.0, 0.1, "1,900 (1,700..2,100)"),
        # A figure more where only it tells the bounds apart; none where there is no spread.
        (1900.0, 0.02, "1,900 (1,860..1,940)"),
        (1900.0, 0.0, "1,900"),
        # Two figures would be 4,800, which is above the greatest.
        (4770.0, 0.002, "4,770 (4,760..4,780)"),
        (250.0, 0.1, "≤256 (≤256..280)"),
        (260.0, 0.1, "260 (≤256..290)"),
        (8000.0, 0.1, "8,000 (7,200..>8,192)"),
        (8300.0, 0.1, ">8,192 (7,500..>8,192)"),
    ],
)
def test_a_crossing_has_the_interval_of_quartiles_in_no_more_figures_than_it_bears(
    factor: float, width: float, text: str
) -> None:
    records = [*swept("a", lambda n: factor * n, width=width), *exact(width=width)]
    row = found(records)
    assert said_of(row) == text
    if width == 0:
        assert row.at == row.low == row.high == pytest.approx(factor)


def test_a_crossing_has_the_range_over_replicates() -> None:
    records = []
    for replicate, factor in enumerate((1600.0, 1900.0, 2300.0)):
        records += swept("a", lambda n, f=factor: f * n, replicate=replicate)
        records += exact(replicate=replicate)
    row = found(records)
    assert (row.at, row.low, row.high) == pytest.approx((1900, 1600, 2300))
    assert (row.interval, row.lengths, row.hidden) == ("replicates", LENGTHS, False)
    assert said_of(row) == "1,900 (1,600..2,300)"


def test_never_is_marked_where_the_ratio_of_medians_is_below_one() -> None:
    records = []
    # Medians of 3 and 4 times the line; replicates of 5, 3 and 2 against 4, 2 and 6.
    for replicate, (own, other) in enumerate(((5, 4), (3, 2), (2, 6))):
        records += swept("a", lambda n, f=own: f * n, replicate=replicate)
        records += swept("sdpa", lambda n, f=other: f * n, replicate=replicate)
    row = found(records)
    assert row.at == math.inf and row.hidden


def test_below_everywhere_is_zero_and_never_below_infinite() -> None:
    always = found([*swept("a", lambda n: n), *exact()])
    assert (always.at, crossover_value(always).number) == (0, 0)
    never = found([*swept("a", lambda n: 1e9), *exact()])
    assert (never.at, crossover_value(never).text) == (math.inf, ">8,192")


def test_memory_has_no_quartiles_and_no_interval() -> None:
    own = swept("a", lambda n: n, room=lambda n: 1900.0 * n)
    row = found([*own, *exact(room=lambda n: n**2.0)], kind="memory")
    assert row.at == pytest.approx(1900) and math.isnan(row.low) and row.interval == "none"


def test_exact_attention_out_of_memory_erases_nothing_and_counts_as_beaten() -> None:
    own = swept("a", lambda n: 1900.0 * n, **EXACTLY)
    records = [*own, *exact(lengths=LENGTHS[:-1], **EXACTLY), *ended("sdpa", "oom", 8192)]
    row = found(records)
    assert (row.at, row.beaten) == (pytest.approx(1900), (8192,))
    dear = swept("a", lambda n: 1e9, **EXACTLY)
    assert said([*dear, *records[len(own) :]]) == "8,192 (sdpa OOM)"


def test_lengths_not_tried_after_an_oom_count_as_beaten_too() -> None:
    own, known = swept("a", lambda n: 1e9), exact(lengths=LENGTHS[:4])
    pruned = ended("sdpa", "skipped", 8192)
    row = found([*own, *known, *ended("sdpa", "oom", 4096), *pruned])
    assert (row.at, row.beaten) == (pytest.approx(4096), (4096, 8192))
    # Pruned before it, a length was so for another reason.
    early = [*ended("sdpa", "skipped", 4096), *ended("sdpa", "oom", 8192)]
    row = found([*own, *known, *early])
    assert (row.at, row.beaten) == (pytest.approx(8192), (8192,))
    # A time-out is not a lack of memory.
    late = found([*own, *known, *ended("sdpa", "timeout", 4096), *pruned])
    assert (late.at, late.lengths, late.beaten) == (math.inf, LENGTHS[:4], ())
    assert [ending[0][0] for ending in late.exact_lost.values()] == ["timeout", "skipped"]


def test_a_mechanism_out_of_memory_beats_nothing_there_and_keeps_the_rest() -> None:
    own = [*swept("a", lambda n: 1900.0 * n, lengths=LENGTHS[:-1], **EXACTLY)]
    own += ended("a", "oom", 8192)
    row = found([*own, *exact(**EXACTLY)])
    assert (row.at, row.lengths) == (pytest.approx(1900), LENGTHS[:-1])
    assert row.lost == {8192: (("oom", "MemoryError", "asked for 4.3 GB, 2 GB allowed"),)}
    both = [*own, *exact(lengths=LENGTHS[:-1], **EXACTLY), *ended("sdpa", "oom", 8192)]
    assert found(both).at == pytest.approx(1900)


def test_a_length_that_one_replicate_lacks_is_left_out() -> None:
    own = swept("a", lambda n: 1900.0 * n, lengths=LENGTHS[:-1], **EXACTLY)
    own += swept("a", lambda n: 1900.0 * n, replicate=1, **EXACTLY)
    own += ended("a", "oom", 8192)
    for other in (
        [*exact(**EXACTLY), *exact(replicate=1, **EXACTLY)],
        [r for n in (0, 1) for r in exact(lengths=LENGTHS[:-1], replicate=n, **EXACTLY)]
        + [r for n in (0, 1) for r in ended("sdpa", "oom", 8192, replicate=n)],
    ):
        row = found([*own, *other])
        assert (row.at, row.lengths) == (pytest.approx(1900), LENGTHS[:-1])


def test_without_exact_attention_there_is_nothing_to_beat_and_without_a_figure_its_word() -> None:
    alone = swept("a", lambda n: n, lengths=LENGTHS[:3])
    for other in ([], ended("sdpa", "error", 256, 512, 1024)):
        row = found([*alone, *other])
        assert row.found is None and math.isnan(row.at)
        assert crossover_value(row).line == "n/a (no sdpa)"
    assert said([*ended("a", "unsupported", *LENGTHS), *exact()]).startswith("unsupported")


def test_each_mode_has_rows_and_the_anchors_have_none() -> None:
    records = []
    for mode in ("forward", "train", "decode"):
        for name in ("a", "sdpa", "identity"):
            records += swept(name, lambda n: n**2.0, mode=mode)
    records += swept("a", lambda n: n, mode="prefill", lengths=LENGTHS[:2])
    costs = analysed(records).costs
    rows = crossovers(costs, costs.settings[0].id)
    assert set(rows["label"]) == {"a"}
    assert sorted(zip(rows["kind"], rows["mode"], strict=True)) == [
        ("memory", "forward"),
        ("memory", "train"),
        ("state", "decode"),
        ("time", "decode"),
        ("time", "forward"),
        ("time", "train"),
    ]


def test_a_reference_row_is_held_against_exact_attention_of_its_own_run() -> None:
    run = [*swept("a", lambda n: 1900.0 * n, **EXACTLY), *exact(**EXACTLY)]
    slower = swept("sdpa", lambda n: 10 * n**2.0, started=OLD, **EXACTLY)
    reference = [*swept("b", lambda n: 4000.0 * n, started=OLD, **EXACTLY), *slower]
    assert found(run, reference=reference).at == pytest.approx(1900)
    row = found(run, label="b", reference=reference)
    assert (row.origin, row.at) == ("reference", pytest.approx(400))


def test_busy_timings_are_marked_in_time_and_not_in_memory() -> None:
    records = [*swept("a", lambda n: 1900.0 * n), *exact()]
    slowed = msgspec.structs.replace(records[0].metrics["control_after"], value=5e-3)
    metrics = {**records[0].metrics, "control_after": slowed}
    records[0] = msgspec.structs.replace(records[0], metrics=metrics)
    assert found(records).disturbed and said(records).startswith("!")
    assert not found(records, kind="memory").disturbed


def test_of_decoding_the_state_is_compared() -> None:
    def decoded(name: str, power: float, lengths: Sequence[int] = LENGTHS) -> list[Record]:
        return [
            with_metrics(one, state_bytes=2e3 * (one.cell.length / 1024) ** power)  # type: ignore[union-attr]
            for one in swept(name, lambda n: 1.0, mode="decode", lengths=lengths)
        ]

    own = [*decoded("a", 0.0), *ended("b", "unsupported", *LENGTHS, mode="decode")]
    place = {"kind": "state", "mode": "decode"}
    assert found([*own, *decoded("sdpa", 1.0)], **place).at == pytest.approx(1024)
    assert said([*own, *decoded("sdpa", 1.0)], label="b", **place).startswith("unsupported")
    gone = [*decoded("sdpa", 0.0, LENGTHS[:-1]), *ended("sdpa", "oom", 8192, mode="decode")]
    assert said([*own, *gone], **place) == "8,192 (sdpa OOM)"


def test_a_few_lengths_that_were_repeated_more_often_do_not_stand_alone() -> None:
    """As where a second suite adds replicates at its own lengths."""

    def both(number: int, lengths: Sequence[int] = LENGTHS) -> list[Record]:
        own = swept("a", lambda n: 1000.0 * n, replicate=number, lengths=lengths)
        return [*exact(replicate=number, lengths=lengths), *own]

    whole = [record for n in (0, 1) for record in both(n)]
    more = [record for n in (2, 3, 4) for record in both(n, (4096, 8192))]
    assert found(whole + more).lengths == found(whole).lengths == LENGTHS
    assert found(whole + both(2, LENGTHS[3:])).lengths == LENGTHS[3:]


def test_calls_of_as_many_positions_at_every_length_are_compared_per_example() -> None:
    lengths, tokens = (512, 1024, 2048, 4096), 4096

    def calls(name: str, seconds: Any) -> list[Record]:
        return [r for n in lengths for r in swept(name, seconds, lengths=[n], batch=tokens // n)]

    records = [*calls("sdpa", lambda n: 1e3 * n), *calls("linear", lambda n: 1e2 * n)]
    records += [*calls("performer", lambda n: 1.5e6), *calls("full", lambda n: 1e4 * n)]
    at = {label: found(records, label=label).at for label in ("linear", "performer", "full")}
    assert at == {"linear": 0, "performer": pytest.approx(1500), "full": math.inf}
