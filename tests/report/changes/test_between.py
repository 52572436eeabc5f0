"""Two stores, or two mechanisms of one, put beside each other cell by cell."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lra.report.select import join

from lra.changes.compare import Changes, between_mechanisms
from lra.changes.comparison_report import full_tables, sentences
from lra.core.protocol import Machine
from lra.core.records import Record, decode, encode
from report.changes.sides import compared, only, timed, trained
from report.sample import (
    HERE,
    MODEL,
    data,
    edited,
    efficiency,
    error,
    mechanism,
    with_metrics,
)

OTHER = Machine(processor="Other CPU 2", cores=2)


def test_a_changed_mechanism_is_what_is_compared() -> None:
    old = timed(0.010, 0.0101, 0.0099, name="performer")
    line = only(compared(old, timed(0.012, 0.0121, 0.0119, name=edited("performer"))))
    assert (line.change.verdict, line.word) == ("worse", "slower")
    assert (line.label, line.cell) == ("performer", "train 512 heads 4 x 64")
    assert (line.before, line.after) == ("10.0 ms", "12.0 ms")
    assert line.told.startswith("1.20 ")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"measure": "e2"}, "measured by another version of the code"),
        ({"machine": OTHER}, "another machine"),
        ({"name": mechanism("performer", features=64)}, "another configuration"),
        ({"machine": OTHER, "measure": "e2"}, "another machine and measured by another version"),
        ({"threads": 1}, "another number of threads"),
        ({"torch": "2.14.0"}, "another version of torch"),
    ],
)
def test_what_was_measured_otherwise_is_incomparable_and_never_slower(
    changed: dict[str, Any], why: str
) -> None:
    line = only(compared(timed(0.01, 0.01), timed(0.9, 0.9, **changed)))
    assert line.change.verdict == "incomparable" and line.change.ratio is None
    assert line.why.startswith(why)


def test_another_model_that_was_timed_is_incomparable() -> None:
    def step(seconds: float, layers: int) -> list[Record]:
        model = msgspec.structs.replace(MODEL, layers=layers)
        return timed(seconds, seconds, level="model", task="text", model=model)

    line = only(compared(step(0.01, 2), step(0.03, 8)))
    assert (line.change.verdict, line.why) == ("incomparable", "another model")
    assert only(compared(step(0.01, 2), step(0.03, 2))).word == "slower"


@pytest.mark.parametrize(
    "asked",
    [
        {"dtype": "bfloat16"}, {"execution": "compiled"}, {"level": "attention"}, {"batch": 2},
        {"heads": 8}, {"head_width": 32}, {"direction": "causal"}, {"scale": "small"},
        {"level": "model", "task": "text"},
    ],
)  # fmt: skip
def test_another_question_is_another_cell(asked: dict[str, Any]) -> None:
    found = compared(timed(0.01, 0.01), timed(0.02, 0.02, **asked))
    assert found.lines == () and (found.only_before, found.only_after) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"data_spec": data("text", hash="other")}, "other data and another protocol of training"),
        ({"scale": "small"}, ""),
        ({"measure": 2}, "measured by another version of the code: train"),
    ],
)
def test_accuracies_of_other_data_or_scales_are_not_compared(
    changed: dict[str, Any], why: str
) -> None:
    found = compared(trained(0.7, 0.7), trained(0.5, 0.5, **changed))
    if not why:
        assert found.lines == () and (found.only_before, found.only_after) == (1, 1)
    else:
        assert only(found, "accuracy").why == why


def test_machines_may_train_each_their_part() -> None:
    after = trained(0.6, 0.61, 0.59, machine=OTHER)
    line = only(compared(trained(0.7, 0.71, 0.69), after), "accuracy")
    assert (line.change.verdict, line.word) == ("worse", "less accurate")
    assert (line.before, line.after, line.cell) == ("70.0 %", "60.0 %", "text, scale mini")
    assert line.told.startswith("-10.0 points (")


def test_seeds_of_one_side_may_lie_on_several_machines() -> None:
    after = trained(0.6, 0.61, 0.59, 0.6)
    spread = [*trained(0.6)[:1], *trained(0.0, 0.61, 0.59, 0.6, machine=OTHER)[1:]]
    for side in (after, spread):
        line = only(compared(trained(0.7, 0.71, 0.69, 0.7), side), "accuracy")
        assert (line.change.verdict, line.change.pairs) == ("worse", 4)


def test_cells_say_their_machine_where_there_are_several() -> None:
    """And whatever else tells cells of one kind apart."""

    def both(seconds: float) -> list[Record]:
        records = [*timed(seconds, seconds), *timed(seconds, seconds, machine=OTHER)]
        return [*records, *trained(0.7, 0.7), *trained(0.7, 0.7, machine=OTHER)]

    found = compared(both(0.01), both(0.02))
    cells = sorted(line.cell for line in found.lines)
    assert cells[0] == "text, scale mini"
    assert cells[1:] == [
        f"train 512 heads 4 x 64, on {machine.processor}, {machine.cores} cores"
        for machine in sorted((HERE, OTHER), key=lambda one: one.processor)
    ]
    versions = [*timed(0.01, 0.01, torch="2.12.0"), *timed(0.02, 0.02)]
    assert {line.cell for line in compared(versions, versions).lines} == {
        "train 512 heads 4 x 64, torch 2.12.0", "train 512 heads 4 x 64, torch 2.13.0"
    }  # fmt: skip


def test_endings_of_several_kinds_are_one_clause_of_the_first_sentence() -> None:
    good = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024)]
    bad = [*timed(0.0, 0.0, status="oom"), *timed(0.0, 0.0, length=1024, status="timeout")]
    (first,) = sentences(compared(good, bad))
    assert first == (
        "new against old: time failing now in 2 of 2 cells, first performer train 512 "
        "heads 4 x 64: OOM now."
    )
    (first,) = sentences(compared(bad, good))
    assert "time failing no more in 2 of 2 cells, first performer train 512" in first


def test_versions_of_torch_never_share_a_cell() -> None:
    both = [*timed(0.01, 0.01, torch="2.12.0"), *timed(0.02, 0.02)]
    found = compared(both, timed(0.02, 0.02))
    assert only(found).change.verdict == "same" and only(found).before == "20.0 ms"


def test_a_time_is_taken_over_its_control() -> None:
    slow = with_metrics(timed(0.02)[0], control_before=2e-3, control_after=2.08e-3)
    again = with_metrics(timed(0.01, 0.02)[1], control_before=2e-3, control_after=2.08e-3)
    line = only(compared(timed(0.01, 0.01), [slow, again]))
    assert line.change.verdict == "same" and line.change.ratio == pytest.approx(1.0)


def test_what_ran_and_does_not_any_more_is_worse_and_the_reverse_better() -> None:
    good, bad = timed(0.01, 0.01), timed(0.0, 0.0, status="oom")
    line = only(compared(good, bad))
    assert (line.change.verdict, line.word, line.after) == ("worse", "OOM now", "OOM")
    line = only(compared(bad, good))
    assert (line.change.verdict, line.word) == ("better", "no OOM any more")
    both = only(compared(bad, bad))
    assert (both.change.verdict, both.why) == ("same", "OOM")
    refused = only(compared(good, timed(0.0, 0.0, status="unsupported")))
    assert (refused.change.verdict, refused.why) == ("incomparable", "unsupported")


def test_some_replicates_that_fail_now_make_a_cell_worse_whatever_the_others_say() -> None:
    good = timed(0.01, 0.01, 0.01)
    partly = [*timed(0.01), *timed(0.0, 0.0, 0.0, status="crash")[1:]]
    line = only(compared(good, partly))
    assert (line.change.verdict, line.word) == ("worse", "2 of 3 crash (SIGSEGV) now")
    line = only(compared(partly, good))
    assert (line.change.verdict, line.word) == ("better", "no 2 of 3 crash (SIGSEGV) any more")
    seeds = [*trained(0.9, 0.9), *trained(0.6, 0.6, 0.6, status="diverged")[2:]]
    line = only(compared(trained(0.9, 0.9, 0.6), seeds), "accuracy")
    assert (line.change.verdict, line.word) == ("worse", "1 of 3 diverged now")
    pruned = only(compared(timed(0.01), timed(0.0, status="skipped")))
    assert pruned.word == "skipped: a shorter length failed now"


def test_replicates_that_fail_in_turns_are_ambiguous_and_the_larger_number_counts() -> None:
    def ended(*failing: int) -> list[Record]:
        return [
            efficiency("performer", 512, "train", 0.01, replicate=r, status=status)
            for r in range(3)
            for status in (("oom" if r in failing else "ok"),)
        ]

    (line,) = compared(ended(0), ended(1)).lines
    assert (line.change.verdict, line.why) == ("ambiguous", "1 of 3 OOM now, 1 of 3 OOM no more")
    (table,) = full_tables(compared(ended(0), ended(1)))
    assert table.rows[0].cells[-1].text == f"ambiguous: {line.why}"
    assert sentences(compared(ended(0), ended(1)))[1:] == [
        "Of 1 figure 1 is ambiguous.",
        "Ambiguous: time (1); more replicates (sweep --replicates) or seeds (run --seeds) would "
        "settle it.",
    ]
    (line,) = compared(ended(0), ended(1, 2)).lines
    assert (line.change.verdict, line.word) == ("worse", "2 of 3 OOM now, 1 of 3 OOM no more")
    (line,) = compared(ended(1, 2), ended(0)).lines
    assert (line.change.verdict, line.word) == ("better", "1 of 3 OOM now, 2 of 3 OOM no more")


def test_both_sides_are_shown_by_what_both_have() -> None:
    """The third seed alone lies apart, and is gone."""
    line = only(compared(trained(0.60, 0.62, 0.90), trained(0.60, 0.62)), "accuracy")
    assert (line.before, line.after, line.change.verdict) == ("61.0 %", "61.0 %", "same")


def test_a_figure_that_is_none_is_told_in_its_own_words() -> None:
    """A record has null for it."""
    broken = [with_metrics(r, latency=float("nan")) for r in timed(0.01, 0.01)]
    line = only(compared(timed(0.01, 0.01), [decode(encode(r)) for r in broken]))
    assert (line.change.verdict, line.why) == ("incomparable", "not measured")


def test_prompts_are_timed_and_states_counted() -> None:
    def decoded(prefill: float, state: float) -> list[Record]:
        return [
            with_metrics(
                efficiency("linear", 512, "decode", 0.01, replicate=r),
                prefill=prefill * (1 + r / 99), state_bytes=state,
            )
            for r in range(2)
        ]  # fmt: skip

    found = compared(decoded(1.0, 100), decoded(2.0, 102))
    assert (only(found, "prefill").word, only(found, "prefill").change.pairs) == ("slower", 2)
    assert (only(found, "state").word, only(found, "state").change.low) == ("larger", None)


def test_bits_per_byte_are_judged_by_seed() -> None:
    def modelled(*bits: float) -> list[Record]:
        return [with_metrics(r, bits_per_byte=b) for r, b in zip(trained(0, 0), bits, strict=True)]

    # Two percent is more than machines change them, and less than a time has to differ by.
    near = only(compared(modelled(2.0, 2.0), modelled(2.04, 2.0401)), "bits per byte")
    assert near.word == "worse"
    found = only(compared(modelled(1.9, 1.91), modelled(2.2, 2.21)), "bits per byte")
    assert (found.word, found.change.pairs) == ("worse", 2)


def test_counted_figures_and_errors_are_judged_too() -> None:
    counts = {"peak_tensor_bytes": 100.0, "operations": 5.0}
    before = [with_metrics(r, **counts) for r in timed(0.01, 0.01)]
    after = [with_metrics(r, **counts | {"operations": 6.0}) for r in timed(0.01, 0.01)]
    found = compared(before, after)
    assert only(found, "bytes of tensors").change.verdict == "same"
    assert only(found, "operations").word == "more"
    off = [[error("performer", 256, by * (1 + s / 99), seed=s) for s in range(3)] for by in (1, 2)]
    line = only(compared(*off), "error")
    assert (line.word, line.change.ratio) == ("further off", pytest.approx(2.0))


def test_cells_of_one_side_are_counted_and_busy_timings_left_out() -> None:
    calm = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024), *timed(0.01, length=2048)]
    disturbed = with_metrics(timed(0.05, 0.05)[1], control_before=9e-3, control_after=9e-3)
    found = compared(calm, [timed(0.01)[0], disturbed, *timed(0.01, 0.01, length=1024)])
    assert (found.only_before, found.only_after, found.busy) == (1, 0, 1)
    assert sentences(found)[-1] == (
        "Not compared: 1 cell of old alone and 1 timing of a busy machine left out."
    )


@pytest.mark.parametrize("elsewhere", [{"machine": OTHER}, {"torch": "2.12.0"}, {"threads": 1}])
def test_cells_of_other_conditions_are_counted_and_not_dropped(elsewhere: dict[str, Any]) -> None:
    here = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024)]
    both = [*here, *timed(0.01, 0.01, **elsewhere), *timed(0.01, 0.01, length=1024, **elsewhere)]
    found = compared(both, here)
    assert (len(found.lines), found.only_before, found.only_after) == (2, 2, 0)
    assert sentences(found)[1:] == [
        "Of 2 figures 2 are the same.", "Not compared: 2 cells of old alone."
    ]  # fmt: skip
    found = compared(here, both)
    assert (len(found.lines), found.only_before, found.only_after) == (2, 0, 2)


def test_accuracies_of_another_source_are_counted_too() -> None:
    files = trained(0.6, 0.6, data_spec=data("text", source="file"))
    found = compared([*trained(0.7, 0.7), *files], trained(0.7, 0.7))
    assert (len(found.lines), found.only_before, found.only_after) == (1, 1, 0)


def mechanisms(*records: Record, names: tuple[str, str] = ("sdpa", "performer")) -> Changes:
    selection = join(list(records), [])
    return between_mechanisms(selection.entries, selection.busy, names)


def test_two_mechanisms_of_one_store() -> None:
    found = mechanisms(
        *timed(0.01, 0.01, name="sdpa"), *timed(0.005, 0.005), *trained(0.9, 0.9, name="sdpa"),
        *trained(0.6, 0.61), *timed(0.1, 0.1, length=1024),
    )  # fmt: skip
    assert only(found).word == "faster" and only(found, "accuracy").word == "less accurate"
    assert only(found).label == "" and (found.only_before, found.only_after) == (0, 1)


def test_of_a_cell_with_several_settings_nothing_is_said_unless_they_are_named() -> None:
    several = [mechanism("performer", features=n) for n in (64, 256)]
    records = [
        *timed(0.01, 0.01, name="sdpa"),
        *(record for one in several for record in timed(0.005, 0.005, name=one)),
    ]
    found = mechanisms(*records)
    assert found.lines == () and (found.only_before, found.several) == (1, 1)
    assert "1 cell with several settings (name a row as the report does)" in sentences(found)[-1]
    # Nor where only one of the settings was measured in the same way.
    later = [r for one in several[1:] for r in timed(0.1, 0.1, name=one, measure=2)]
    first = [r for r in records if r.cell.mechanism != several[1]]  # type: ignore[union-attr]
    assert mechanisms(*first, *later).lines == ()
    named = mechanisms(*records, names=("sdpa", "performer (features=64)"))
    assert only(named).word == "faster"


def test_an_earlier_protocol_says_nothing_of_data() -> None:
    (new,) = trained(0.8)
    hashes = {"earlier/measuring": "a1", "earlier/mechanism": "b2", "earlier/data": "c3"}
    cell = msgspec.structs.replace(new.cell, versions=hashes)
    line = only(compared([msgspec.structs.replace(new, cell=cell)], [new]), "accuracy")
    assert line.why == "measured by another version of the code: an earlier protocol"
