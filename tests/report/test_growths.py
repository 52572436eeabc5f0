"""Fitted exponents of length, beside what mechanisms declare."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from lra.core.records import Record
from lra.report.growth import declared_value, growth_value, growths
from lra.report.model import Value
from report.sample import GPU, MODEL, efficiency
from report.sweeps import analysed

LENGTHS = (256, 512, 1024, 2048, 4096)
LINEAR = ("O(n d)", "O(n d)")


def grown(
    name: str,
    power: float,
    *,
    mode: str = "train",
    lengths: tuple[int, ...] = LENGTHS,
    replicates: int = 1,
    noise: float = 0.0,
    declared: tuple[str, str] | None = LINEAR,
    room: float = 1.0,
    **fields: Any,
) -> list[Record]:
    """Time grows as length to the `power`, memory to `room`."""
    rng = np.random.default_rng(len(name) + replicates)
    return [
        efficiency(
            name,
            n,
            mode,
            1e-6 * n**power * float(np.exp(noise * rng.normal())),
            1e3 * n**room,
            replicate=replicate,
            declared=declared,
            **fields,
        )
        for replicate in range(replicates)
        for n in lengths
    ]


def fit(records: list[Record], label: str = "a", kind: str = "time", mode: str = "train") -> Any:
    costs = analysed(records).costs
    rows = growths(costs, costs.settings[0].id)
    own = rows[(rows["label"] == label) & (rows["kind"] == kind) & (rows["mode"] == mode)]
    (row,) = own.itertuples(index=False)
    return row


def test_an_exponent_has_that_of_its_end_and_the_declared_one() -> None:
    records = [*grown("full", 2.0, declared=("O(n m d)", "O(n m)"), room=2.0), *grown("a", 1.0)]
    row = fit(records, "full")
    assert (growth_value(row).text, growth_value(row).note) == ("2.00", "2.00")
    assert growth_value(row).number == pytest.approx(2.0)
    assert (row.declared.formula, declared_value(row).number) == ("O(n m d)", 2.0)
    assert declared_value(fit(records, "full", "memory")).text == "2"
    assert declared_value(fit(records)) == Value("1", "", 1.0)


def test_decoding_has_no_exponent_and_other_modes_have_time_and_memory() -> None:
    modes = ("forward", "train", "decode")
    records = [record for mode in modes for record in grown("a", 1.0, mode=mode)]
    costs = analysed(records).costs
    rows = growths(costs, costs.settings[0].id)
    assert sorted(zip(rows["kind"], rows["mode"], strict=True)) == [
        ("memory", "forward"),
        ("memory", "train"),
        ("time", "forward"),
        ("time", "train"),
    ]


def test_costs_that_grow_faster_than_declared_are_flagged() -> None:
    records = [
        *grown("slow", 2.0, replicates=3, noise=0.03),
        *grown("honest", 1.0, replicates=3, noise=0.03),
        *grown("heavy", 1.0, room=1.5),
    ]
    assert declared_value(fit(records, "slow")).note == "grows faster"
    assert not fit(records, "slow", "memory").faster
    assert not fit(records, "honest").faster
    assert (fit(records, "heavy").faster, fit(records, "heavy", "memory").faster) == (False, True)


@pytest.mark.parametrize(
    ("claim", "power", "faster"),
    [
        ("O(n m d)", 2.5, True),
        ("O(n sqrt(n) d)", 2.0, True),
        ("O(1)", 1.5, True),
        # Inputs and outputs grow with length: less than linear is never asked.
        ("O(1)", 1.0, False),
        ("O(n d)", 1.1, False),
        ("O(n d)", 0.5, False),
    ],
)
def test_a_claim_is_held_to_by_its_exponent_or_one(claim: str, power: float, faster: bool) -> None:
    assert fit(grown("a", power, declared=(claim, "O(n)"))).faster is faster


def test_an_interval_that_reaches_the_claim_flags_nothing() -> None:
    crooked = [
        efficiency("a", n, "train", seconds, declared=LINEAR)
        for n, seconds in ((256, 1e-3), (512, 1.2e-3), (1024, 9e-3))
    ]
    row = fit(crooked)
    assert row.found.exponent > 1.5 and not row.faster
    # So wide an interval bears one decimal.
    assert growth_value(row).text == f"{row.found.exponent:.1f}"


def test_a_bend_that_repeats_flags_nothing() -> None:
    records = [
        efficiency("a", n, "train", 1e-6 * n, 2734.0 * n - 0.4e6, replicate=r, declared=LINEAR)
        for n in (256, 512, 1024, 2048)
        for r in range(2)
    ]
    row = fit(records, kind="memory")
    assert (row.found.low, row.found.high) == pytest.approx((1.36, 1.36), abs=0.01)
    assert not row.faster


@pytest.mark.parametrize(
    ("declared", "text"),
    [(None, "n/a"), (("linear", "O(n)"), "linear"), (("nothing", "nothing"), "not declared")],
)
def test_what_is_no_formula_is_shown_and_not_compared(
    declared: tuple[str, str] | None, text: str
) -> None:
    row = fit(grown("a", 2.0, declared=declared))
    assert (declared_value(row).text, row.declared, row.faster) == (text, None, False)


def test_records_that_declare_different_things_are_not_compared() -> None:
    records = grown("a", 2.0, lengths=LENGTHS[:2], declared=("O(n d)", "O(n)"))
    records += grown("a", 2.0, lengths=LENGTHS[2:], declared=("O(n m d)", "O(n)"))
    row = fit(records)
    assert (row.declared, row.faster) == (None, False)
    assert declared_value(row).text == "O(n d) and O(n m d)"
    assert fit(records, kind="memory").declared is not None


def test_on_a_gpu_its_own_formula_counts() -> None:
    said = ("O(n d)", "O(n d); O(n m) on a GPU")
    assert fit(grown("a", 1.0, machine=GPU, declared=said), kind="memory").declared.exponent == 2
    assert fit(grown("a", 1.0, declared=said), kind="memory").declared.exponent == 1


@pytest.mark.parametrize(("dropout", "power"), [(0.1, 2.0), (0.0, 1.0)])
def test_with_dropout_on_a_cpu_the_formula_for_it_is_what_is_claimed(
    dropout: float, power: float
) -> None:
    said = ("O(n m d)", "O(n); O(n m) with a bias, with dropout on a CPU")
    model = msgspec.structs.replace(MODEL, attention_dropout=dropout)
    whole = {"level": "model", "task": "text", "scale": "mine", "model": model}
    row = fit(grown("sdpa", 2.0, declared=said, room=2.0, **whole), "sdpa", "memory")
    assert (row.declared.exponent, row.faster) == (power, power < 2)


def test_busy_timings_are_marked_and_flag_nothing_and_memory_stays() -> None:
    records = grown("a", 2.0, room=2.0)
    slowed = msgspec.structs.replace(records[0].metrics["control_after"], value=5e-3)
    metrics = {**records[0].metrics, "control_after": slowed}
    records[0] = msgspec.structs.replace(records[0], metrics=metrics)
    assert growth_value(fit(records)).marked == "!2.00" and not fit(records).faster
    assert fit(records, kind="memory").faster and not fit(records, kind="memory").disturbed


def test_failures_and_too_few_lengths_are_words() -> None:
    records = [
        *grown("a", 1.0),
        *(efficiency("none", n, "train", status="unsupported") for n in LENGTHS),
        *grown("short", 1.0, lengths=LENGTHS[:2]),
        *(efficiency("short", n, "train", status="oom") for n in LENGTHS[2:]),
        *grown("apart", 1.0, lengths=LENGTHS[:3]),
        *(efficiency("apart", n, "train", 1e-6 * n, replicate=1) for n in (2048, 4096, 8192)),
    ]
    assert growth_value(fit(records, "none")) == Value("unsupported")
    assert declared_value(fit(records, "none")) == Value("n/a")
    assert growth_value(fit(records, "short")) == Value("n/a", "2 of 3 lengths")
    assert not fit(records, "short").faster
    assert growth_value(fit(records, "apart")).note == "0 of 3 lengths"


def test_a_few_lengths_that_were_repeated_more_often_are_no_fit_of_their_own() -> None:
    more = [
        efficiency("a", n, "train", 1e-6 * n, 1e3 * n, replicate=r, declared=LINEAR)
        for r in (3, 4, 5, 6)
        for n in (2048, 4096)
    ]
    row = fit([*grown("a", 2.0, replicates=3), *more])
    assert (row.found.exponent, row.found.lengths) == (pytest.approx(2.0), LENGTHS)
