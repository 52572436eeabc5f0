"""What time and memory are said to be, in the sentences to read first."""

from __future__ import annotations

import msgspec
import pytest
from lra.report.costs.place import Cost

from lra.core.records import Metric, Record
from lra.report.words import TIMES
from report.answer.said import answered, timed
from report.sample import THERE, efficiency, quality


def test_cost_is_told_at_the_longest_length_as_ratios() -> None:
    records = [
        timed("performer", 0.041, 50e6),
        timed("sdpa", 0.1, 100e6),
        timed("performer", 0.5, 50e6, length=512),
    ]
    assert answered(records) == (
        f"At length 2048 a training step of the performer layer takes 0.41 {TIMES} the time of "
        f"sdpa and 0.500 {TIMES} its memory.",
    )


def test_a_ratio_to_what_has_wide_quartiles_is_marked() -> None:
    wide = efficiency("sdpa", 2048, "train", seconds=0.1, width=0.3)
    (told,) = answered([efficiency("performer", 2048, "train", seconds=0.041), wide])
    assert told.startswith(
        f"At length 2048 a training step of the performer layer takes ~0.41 {TIMES} the time of"
    )


def test_without_a_time_of_exact_attention_the_cost_is_absolute() -> None:
    records = [
        timed("performer", 0.041, 50e6),
        efficiency("sdpa", 2048, "train", status="oom"),
    ]
    assert answered(records) == (
        "At length 2048 a training step of the performer layer takes 41.0 ms and 50.0 MB; "
        "sdpa has no time there.",
        "1 of 2 cells is not ok: 1 OOM.",
    )


def test_an_ending_is_told_in_words() -> None:
    told = answered([quality("performer", "text", status="diverged")])
    assert told == ("performer: diverged on text.", "1 of 1 cell is not ok: 1 diverged.")


def test_what_never_had_a_time_is_told_without_an_internal_word() -> None:
    records = [efficiency("performer", n, "train", status="skipped") for n in (512, 1024)]
    assert answered(records)[0] == (
        "There is no time of a training step of the performer layer "
        "(skipped: a shorter length failed)."
    )


def test_the_nearest_is_said_to_be_so_only_of_those_that_came_so_far() -> None:
    names = ("a", "b", "c", "d", "sdpa")
    records = [timed(name, 0.1, 50e6, length=512) for name in names]
    records += [timed(name, 0.2, 50e6) for name in ("a", "sdpa")]
    assert answered(records)[0].startswith(
        "For a training step of the layer at length 2048 (one process each), where 1 of 4 "
        "mechanisms have a figure, none is surely faster than sdpa; nearest: a,"
    )


def test_where_some_sizes_are_not_known_none_is_called_the_least() -> None:
    """A size that could not be measured may be smaller than can be told."""
    records = [efficiency(name, 2048, "train", 0.1, None) for name in ("a", "b", "c")]
    records += [timed(name, 0.2, 50e6) for name in ("d", "sdpa")]
    assert answered(records)[0] == (
        "For a training step of the layer at length 2048 (one process each), fastest, not told "
        f"apart: a, b and c, 0.50, 0.50 and 0.50 {TIMES} sdpa."
    )


def test_without_exact_attention_the_cheapest_are_absolute() -> None:
    records = [timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    assert answered(records) == (
        "For a training step of the layer at length 2048 (one process each), fastest: d, 1.00 s; "
        "least memory, not told apart: a, b and c, 50.0, 50.0 and 50.0 MB, and 1 more.",
    )


def test_a_time_of_another_version_of_the_measuring_code_is_not_called_missing() -> None:
    records = [timed("a", 0.1, 50e6), efficiency("sdpa", 2048, "train", measure=2)]
    first, second = answered(records)
    assert first == (
        "At length 2048 a training step of the a layer (measured by time 1) takes 100 ms and "
        "50.0 MB; sdpa's time is of another version of the measuring code."
    )
    assert "the sdpa layer (measured by time 2) takes" in second


def test_of_exact_attention_alone_its_own_time_is_told() -> None:
    records = [timed("sdpa", 0.1, 100e6), timed("identity", 0.01, 1e6)]
    assert answered(records) == (
        "At length 2048 a training step of the sdpa layer takes 100 ms and 100 MB.",
    )
    assert answered(records[1:]) == (
        "At length 2048 a training step of the identity layer takes 10.0 ms and 1.00 MB; sdpa has "
        "no time there.",
    )


def test_a_mode_without_a_time_hides_no_other() -> None:
    records = [efficiency(name, 512, "train", status="unsupported") for name in "abcd"]
    assert answered(records)[0] == (
        "There is no time of a training step of the layer by any of 4 mechanisms."
    )
    (told, _) = answered([*records, efficiency("a", 512, "forward", 1.0)])
    assert told.startswith("At length 512 a forward pass of the a layer takes 1.00 s")


def _replicates(name: str, *seconds: float, length: int = 2048, **fields: object) -> list[Record]:
    return [
        efficiency(name, length, "train", s, 1e6 * ord(name[0]), replicate=n, **fields)  # type: ignore[arg-type]
        for n, s in enumerate(seconds)
    ]


@pytest.mark.parametrize(
    ("second", "told"),
    [
        ((1.3, 1.4, 1.5), f"fastest: a, 0.11 {TIMES} sdpa;"),
        ((1.15, 1.4, 1.5), f"fastest, not told apart: a and b, 0.11 and 0.14 {TIMES} sdpa;"),
        # One process says nothing of the next; so near is no win.
        ((1.2,), f"fastest, not told apart: a and b, 0.11 and 0.120 {TIMES} sdpa;"),
        ((1.3,), f"fastest: a, 0.11 {TIMES} sdpa;"),
    ],
)
def test_the_fastest_stands_alone_where_processes_tell_it_apart(
    second: tuple[float, ...], told: str
) -> None:
    records = [*_replicates("a", 1.0, 1.1, 1.2), *_replicates("b", *second)]
    records += [r for name in ("c", "d") for r in _replicates(name, 4.0, 4.0, 4.0)]
    first = answered([*records, *_replicates("sdpa", 10.0, 10.0, 10.0)])[0]
    assert first.startswith(f"For a training step of the layer at length 2048, {told}")


def test_what_is_not_surely_faster_than_exact_attention_is_called_no_more_than_near() -> None:
    exact = _replicates("sdpa", 1.0, 1.1, 1.2)
    slow = [r for name in ("c", "d") for r in _replicates(name, 4.0, 4.0, 4.0)]
    near = [*_replicates("a", 0.9, 1.0, 1.3), *_replicates("b", 1.1, 1.3, 1.5), *slow]
    start = "For a training step of the layer at length 2048, "
    first = answered([*near, *exact])[0]
    assert first.startswith(
        f"{start}none is surely faster than sdpa; nearest, not told apart: a and b, 0.91 and 1.2 "
        f"{TIMES} sdpa;"
    )
    # One is; the other is near it by its wide range alone.
    wide = [*_replicates("a", 0.3, 0.4, 0.5), *_replicates("b", 0.4, 1.3, 1.5), *slow]
    first = answered([*wide, *exact])[0]
    assert first.startswith(f"{start}fastest, not told apart: a, 0.36 {TIMES} sdpa, and 1 more; ")
    # Sizes are a million for each letter's number.
    assert "none is surely leaner than sdpa" not in first
    lean = [r for name in "wxyz" for r in _replicates(name, 0.1, 0.1, 0.1)]
    assert (
        f"; none is surely leaner than sdpa; nearest: w, 1.03 {TIMES} sdpa"
        in answered([*lean, *exact])[0]
    )


def test_one_process_within_the_range_of_several_is_not_told_apart() -> None:
    several, alone = Cost(1.1, 1.0, 1.9, processes=3), Cost(1.3, 1.2, 1.4)
    assert not several.below(alone) and not alone.below(several)
    assert several.below(Cost(2.0, 1.9, 2.1)) and Cost(0.5, 0.4, 0.6).below(several)


def test_what_some_replicates_lack_never_wins_alone_and_says_so() -> None:
    lost = efficiency("a", 2048, "train", status="timeout", replicate=2)
    records = [*_replicates("a", 1.0, 1.1), lost]
    records += [r for name in "bcd" for r in _replicates(name, 4.0, 4.0, 4.0)]
    records += _replicates("sdpa", 10.0, 10.0, 10.0)
    assert f"fastest, not told apart: a and b, 0.11 and 0.400 {TIMES} sdpa;" in answered(records)[0]
    alone = [*records[:3], *records[-3:]]
    assert answered(alone)[0].endswith("; 2 of 3 processes have a time (timeout).")


def _busy(record: Record) -> Record:
    slowed = {"control_before": Metric(value=13e-3, unit="s")}
    return msgspec.structs.replace(record, metrics={**record.metrics, **slowed})


def test_what_a_busy_machine_timed_is_not_named_but_counted() -> None:
    records = [timed(n, s, 50e6) for n, s in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)]
    exact = timed("sdpa", 5.0, 100e6)
    told = answered([*records[:3], _busy(records[3]), exact])[0]
    assert f"fastest: c, 0.40 {TIMES} sdpa (1 timed on a busy machine left out);" in told
    # Every ratio is to a disturbed time.
    told = answered([*records, _busy(exact)])[0]
    assert f"fastest: d, 0.200 {TIMES} sdpa (busy machine);" in told and "!" not in told


def test_of_few_a_busy_machine_is_told_in_words() -> None:
    records = [timed("a", 1.0, 50e6), timed("b", 1.0, 50e6), timed("c", 1.0, 50e6)]
    for few, told in (
        ([*records, _busy(timed("sdpa", 5.0, 100e6))], f"0.200 {TIMES} the time of sdpa"),
        ([_busy(records[0]), *records[1:]], "1.00 s"),
    ):
        first = answered(few)[0]
        assert f"a layer takes {told} (busy machine) and " in first and "!" not in first


def test_the_cheapest_of_many_are_at_the_longest_length_that_has_a_ratio() -> None:
    records = [
        efficiency(name, length, "train", seconds, 50e6)
        for name, seconds in zip("abcd", (4.0, 3.0, 2.0, 1.0), strict=True)
        for length in (512, 1024)
    ]
    records.append(timed("sdpa", 5.0, 100e6, length=512))
    records.append(efficiency("sdpa", 1024, "train", status="oom"))
    assert answered(records)[0].startswith(
        "For a training step of the layer at length 512 (one process each), fastest: d, 0.200"
    )


def test_costs_of_another_machine_are_not_told() -> None:
    records = [quality("performer", "text", 0.8), efficiency("performer", 512, "train")]
    reference = [efficiency("sdpa", 512, "train", 0.001, machine=THERE)]
    (*_, cost) = answered(records, reference)
    assert cost.endswith("takes 10.0 ms and 50.0 MB; sdpa has no time there.")


def test_costs_of_several_settings_are_told_apart_and_eager_ones_come_first() -> None:
    records = [
        efficiency(name, 512, "train", seconds, execution=execution)
        for execution, own in (("compiled", 0.02), ("eager", 0.03))
        for name, seconds in (("performer", own), ("sdpa", 0.1))
    ]
    eager, compiled = answered(records)
    assert "of the performer layer takes 0.30" in eager
    assert "the performer layer (by torch.compile) takes 0.20" in compiled


def test_of_many_settings_the_largest_and_one_that_decodes_are_told() -> None:
    """A run at three batches, most of it at the second, and a decoding step at the first."""
    run = [
        efficiency(name, length, "train", batch=batch)
        for batch, lengths in ((1, [512]), (2, [512, 1024]), (4, [512]))
        for length in lengths
        for name in ("a", "sdpa")
    ]
    run += [efficiency(n, 512, "decode", batch=1, direction="causal") for n in ("a", "sdpa")]
    costs = [one for one in answered(run) if "length" in one or "tables below" in one]
    assert [one.partition(" takes ")[0] for one in costs[:2]] == [
        "At length 1024 a training step of the a layer (bidirectional, batch 2)",
        "At length 512 a decoding step of the a layer (causal, batch 1)",
    ]
    assert costs[2:] == ["And 2 other settings of sizes in the tables below."]
