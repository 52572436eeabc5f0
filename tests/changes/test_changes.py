"""Two stores, or two mechanisms of one, in comparison cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
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

from changes.sides import compared, mechanisms, only, timed, trained
from lra.changes.compare import Line
from lra.changes.words import change_words, line_cell, reason_words, side_words, verdict_words
from lra.core.protocol import Machine
from lra.core.records import Record, decode, encode

OTHER = Machine(processor="Other CPU 2", cores=2)
THEN = Path(__file__).parents[1] / "fixtures/records/schema-1"


def said(line: Line) -> tuple[str, str]:
    return line.change.verdict, verdict_words(line)


def test_a_changed_mechanism_is_what_is_compared() -> None:
    old = timed(0.010, 0.0101, 0.0099)
    line = only(compared(old, timed(0.012, 0.0121, 0.0119, name=edited("performer"))))
    assert said(line) == ("worse", "slower") and line.change.pairs == 3
    assert line.change.ratio == pytest.approx(1.2, rel=1e-3)
    assert line_cell(line) == "train 512 heads 4 x 64"
    assert side_words(line) == ("10.0 ms", "12.0 ms")
    assert change_words(line.change).startswith("1.20 ")


@pytest.mark.parametrize(
    ("changed", "differing", "features"),
    [
        ({"measure": "e2"}, (), ("time",)),
        ({"machine": OTHER}, ("machine",), ()),
        ({"name": mechanism("performer", features=64)}, ("variant",), ()),
        ({"machine": OTHER, "measure": "e2"}, ("machine",), ("time",)),
        ({"threads": 1}, ("threads",), ()),
        ({"torch": "2.14.0"}, ("torch",), ()),
    ],
)
def test_timings_under_other_conditions_are_incomparable_and_never_slower(
    changed: dict[str, Any], differing: tuple[str, ...], features: tuple[str, ...]
) -> None:
    line = only(compared(timed(0.01, 0.01), timed(0.9, 0.9, **changed)))
    assert line.change.verdict == "incomparable" and line.change.ratio is None
    assert (line.differing, line.features) == (differing, features)
    assert reason_words(line)


def test_configurations_of_two_types_are_two() -> None:
    one, other = (mechanism("performer", norm=norm) for norm in (True, "yes"))
    line = only(compared(timed(0.01, 0.01, name=one), timed(0.9, 0.9, name=other)))
    assert line.differing == ("variant",)


def test_another_model_that_was_timed_is_incomparable() -> None:
    def step(seconds: float, layers: int) -> list[Record]:
        model = msgspec.structs.replace(MODEL, layers=layers)
        return timed(seconds, seconds, level="model", task="text", model=model)

    assert only(compared(step(0.01, 2), step(0.03, 8))).differing == ("model",)
    assert said(only(compared(step(0.01, 2), step(0.03, 2)))) == ("worse", "slower")


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
    "asked", [{"scale": "small"}, {"data_spec": data("text", order="shuffled")}]
)
def test_another_training_is_another_cell(asked: dict[str, Any]) -> None:
    found = compared(trained(0.7, 0.7), trained(0.5, 0.5, **asked))
    assert found.lines == () and (found.only_before, found.only_after) == (1, 1)


def test_accuracies_of_other_data_or_code_are_not_compared() -> None:
    before = trained(0.7, 0.7)
    other = trained(0.5, 0.5, data_spec=data("text", hash="other"))
    assert only(compared(before, other), "accuracy").differing == ("data_hash", "protocol")
    line = only(compared(before, trained(0.5, 0.5, measure=2)), "accuracy")
    assert (line.differing, line.features) == ((), ("train",))


def test_machines_may_train_each_their_part() -> None:
    before = trained(0.7, 0.71, 0.69, 0.7)
    whole = trained(0.6, 0.61, 0.59, 0.6, machine=OTHER)
    for after in (whole, [*trained(0.6), *whole[1:]]):
        line = only(compared(before, after), "accuracy")
        assert said(line) == ("worse", "less accurate") and line.change.pairs == 4
        assert side_words(line) == ("70.0 %", "60.0 %")
        assert line_cell(line) == "text, scale mini"
        assert line.change.difference == pytest.approx(-0.1)


def test_cells_say_their_machine_or_torch_where_there_are_several() -> None:
    def both(seconds: float) -> list[Record]:
        records = [*timed(seconds, seconds), *timed(seconds, seconds, machine=OTHER)]
        return [*records, *trained(0.7, 0.7), *trained(0.7, 0.7, machine=OTHER)]

    cells = sorted(map(line_cell, compared(both(0.01), both(0.02)).lines))
    machines = sorted((HERE.name, OTHER.name))
    assert cells == [
        "text, scale mini", *(f"train 512 heads 4 x 64, on {name}" for name in machines)
    ]  # fmt: skip
    versions = [*timed(0.01, 0.01, torch="2.12.0"), *timed(0.02, 0.02)]
    assert [line_cell(line)[-12:] for line in compared(versions, versions).lines] == [
        "torch 2.12.0", "torch 2.13.0"
    ]  # fmt: skip
    line = only(compared(versions, timed(0.02, 0.02)))
    assert line.change.verdict == "same" and side_words(line)[0] == "20.0 ms"


def test_a_time_is_taken_over_its_control() -> None:
    slow = [with_metrics(r, control_before=2e-3, control_after=2.08e-3) for r in timed(0.02, 0.02)]
    line = only(compared(timed(0.01, 0.01), slow))
    assert line.change.verdict == "same" and line.change.ratio == pytest.approx(1.0)


def test_a_cell_that_fails_now_is_worse_and_the_reverse_better() -> None:
    good, bad = timed(0.01, 0.01), timed(0.0, 0.0, status="oom")
    line = only(compared(good, bad))
    assert said(line) == ("worse", "OOM now") and side_words(line)[1] == "OOM"
    assert said(only(compared(bad, good))) == ("better", "no OOM any more")
    both = only(compared(bad, bad))
    assert (both.change.verdict, reason_words(both)) == ("same", "OOM")
    refused = only(compared(good, timed(0.0, 0.0, status="unsupported")))
    assert (refused.change.verdict, reason_words(refused)) == ("incomparable", "unsupported")
    assert refused.after.is_unsupported and not line.after.is_unsupported
    pruned = only(compared(timed(0.01), timed(0.0, status="skipped")))
    assert pruned.change.verdict == "worse" and pruned.lost[0].failure == "Pruned"
    lacking = only(compared(bad, timed(0.0, 0.0, status="timeout")))
    assert lacking.change.verdict == "incomparable"


def test_replicates_or_seeds_that_fail_now_make_a_cell_worse_whatever_the_others_say() -> None:
    good = timed(0.01, 0.01, 0.01)
    partly = [*timed(0.01), *timed(0.0, 0.0, 0.0, status="crash")[1:]]
    assert said(only(compared(good, partly))) == ("worse", "2 of 3 crash (SIGSEGV) now")
    assert said(only(compared(partly, good))) == ("better", "no 2 of 3 crash (SIGSEGV) any more")
    seeds = [*trained(0.9, 0.9), *trained(0.6, 0.6, 0.6, status="diverged")[2:]]
    line = only(compared(trained(0.9, 0.9, 0.6), seeds), "accuracy")
    assert said(line) == ("worse", "1 of 3 diverged now")


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        ((0,), (1,), "ambiguous", "1 of 3 OOM now, 1 of 3 OOM no more"),
        ((0,), (1, 2), "worse", "2 of 3 OOM now, 1 of 3 OOM no more"),
        ((1, 2), (0,), "better", "1 of 3 OOM now, 2 of 3 OOM no more"),
    ],
)
def test_replicates_that_fail_in_turns_are_ambiguous_and_the_larger_number_counts(
    before: tuple[int, ...], after: tuple[int, ...], verdict: str, reason: str
) -> None:
    def ended(failing: tuple[int, ...]) -> list[Record]:
        return [
            efficiency("performer", 512, "train", 0.01, replicate=r, status=status)
            for r in range(3)
            for status in (("oom" if r in failing else "ok"),)
        ]

    (line,) = compared(ended(before), ended(after)).lines
    assert (line.change.verdict, reason_words(line)) == (verdict, reason)


def test_both_sides_are_shown_by_the_seeds_that_both_have() -> None:
    line = only(compared(trained(0.60, 0.62, 0.90), trained(0.60, 0.62)), "accuracy")
    assert side_words(line) == ("61.0 %", "61.0 %") and line.change.verdict == "same"


def test_a_figure_that_a_record_has_as_null_was_not_measured() -> None:
    broken = [with_metrics(r, latency=float("nan")) for r in timed(0.01, 0.01)]
    line = only(compared(timed(0.01, 0.01), [decode(encode(r)) for r in broken]))
    assert (line.change.verdict, reason_words(line)) == ("incomparable", "not measured")


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
    assert said(only(found, "prefill")) == ("worse", "slower")
    assert only(found, "prefill").change.pairs == 2
    assert said(only(found, "state")) == ("worse", "larger")
    assert only(found, "state").change.low is None


@pytest.mark.parametrize(("metric", "name"), [("bits_per_byte", "bits per byte"), ("nat", "loss")])
def test_losses_are_judged_by_seed(metric: str, name: str) -> None:
    def modelled(*losses: float) -> list[Record]:
        return [with_metrics(r, **{metric: v}) for r, v in zip(trained(0, 0), losses, strict=True)]

    # Two percent is more than machines change them, and less than a time has to differ by.
    for before, after in (((2.0, 2.0), (2.04, 2.0401)), ((1.9, 1.91), (2.2, 2.21))):
        found = only(compared(modelled(*before), modelled(*after)), name)
        assert said(found) == ("worse", "worse") and found.change.pairs == 2


def test_counted_figures_and_errors_are_judged_too() -> None:
    counts = {"peak_tensor_bytes": 100.0, "operations": 5.0}
    before = [with_metrics(r, **counts) for r in timed(0.01, 0.01)]
    after = [with_metrics(r, **counts | {"operations": 6.0}) for r in timed(0.01, 0.01)]
    found = compared(before, after)
    assert only(found, "bytes of tensors").change.verdict == "same"
    assert said(only(found, "operations")) == ("worse", "more")
    off = [[error("performer", 256, by * (1 + s / 99), seed=s) for s in range(3)] for by in (1, 2)]
    line = only(compared(*off), "error")
    assert said(line) == ("worse", "further off") and line.change.ratio == pytest.approx(2.0)


def test_cells_of_one_side_are_counted_and_busy_timings_left_out() -> None:
    calm = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024), *timed(0.01, length=2048)]
    disturbed = with_metrics(timed(0.05, 0.05)[1], control_before=9e-3, control_after=9e-3)
    found = compared(calm, [timed(0.01)[0], disturbed, *timed(0.01, 0.01, length=1024)])
    assert (found.only_before, found.only_after, found.busy) == (1, 0, 1)
    assert [line.change.pairs for line in found.lines] == [1, 2]


@pytest.mark.parametrize("elsewhere", [{"machine": OTHER}, {"torch": "2.12.0"}, {"threads": 1}])
def test_cells_of_other_conditions_are_counted_and_not_dropped(elsewhere: dict[str, Any]) -> None:
    here = [*timed(0.01, 0.01), *timed(0.01, 0.01, length=1024)]
    both = [*here, *timed(0.01, 0.01, **elsewhere), *timed(0.01, 0.01, length=1024, **elsewhere)]
    found = compared(both, here)
    assert (len(found.lines), found.only_before, found.only_after) == (2, 2, 0)
    found = compared(here, both)
    assert (len(found.lines), found.only_before, found.only_after) == (2, 0, 2)
    assert {line.change.verdict for line in found.lines} == {"same"}


def test_of_several_candidates_none_is_taken() -> None:
    several = [*timed(0.01, 0.01, torch="2.11.0"), *timed(0.01, 0.01, torch="2.12.0")]
    found = compared(several, timed(0.02, 0.02))
    assert found.lines == () and (found.only_before, found.only_after) == (2, 1)
    assert only(compared(several[:2], timed(0.02, 0.02))).differing == ("torch",)


def test_accuracies_of_another_source_are_counted_too() -> None:
    files = trained(0.6, 0.6, data_spec=data("text", source="file"))
    found = compared([*trained(0.7, 0.7), *files], trained(0.7, 0.7))
    assert (len(found.lines), found.only_before, found.only_after) == (1, 1, 0)


def test_the_order_of_the_records_changes_nothing() -> None:
    before = [*timed(0.01, 0.01), *trained(0.7, 0.7), *timed(0.01, 0.02, name="sdpa", length=1024)]
    after = [*timed(0.02, 0.02), *trained(0.5, 0.5), *timed(0.01, 0.02, name="sdpa", length=1024)]
    assert compared(before, after) == compared(before[::-1], after[::-1])


def test_two_mechanisms_of_one_store() -> None:
    found = mechanisms(
        *timed(0.01, 0.01, name="sdpa"), *timed(0.005, 0.005), *trained(0.9, 0.9, name="sdpa"),
        *trained(0.6, 0.61), *timed(0.1, 0.1, length=1024),
    )  # fmt: skip
    assert said(only(found)) == ("better", "faster")
    assert said(only(found, "accuracy")) == ("worse", "less accurate")
    assert (found.only_before, found.only_after) == (0, 1)


def test_a_cell_with_several_settings_is_left_out_unless_they_are_named() -> None:
    several = [mechanism("performer", features=n) for n in (64, 256)]
    records = [
        *timed(0.01, 0.01, name="sdpa"),
        *(record for one in several for record in timed(0.005, 0.005, name=one)),
    ]
    found = mechanisms(*records)
    assert found.lines == () and (found.only_before, found.several) == (1, 1)
    # Also where only one of the settings was measured in the same way.
    later = [r for one in several[1:] for r in timed(0.1, 0.1, name=one, measure=2)]
    first = [r for r in records if r.cell.mechanism != several[1]]  # type: ignore[union-attr]
    assert mechanisms(*first, *later).lines == ()
    assert (
        said(only(mechanisms(*records, names=("sdpa", "performer (features=64)"))))[1] == "faster"
    )


def test_an_earlier_protocol_says_nothing_of_data() -> None:
    (new,) = trained(0.8)
    hashes = {"earlier/measuring": "a1", "earlier/mechanism": "b2", "earlier/data": "c3"}
    cell = msgspec.structs.replace(new.cell, versions=hashes)
    line = only(compared([msgspec.structs.replace(new, cell=cell)], [new]), "accuracy")
    assert line.differing == () and line.features
    assert reason_words(line) == "measured by another version of the code: an earlier protocol"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("4d094396cf31d48aa05c", "8e32141faa9c050a0184"),
        ("c9dfb5dc18b7e887bf20", "8e32141faa9c050a0184"),
        ("17378e146498fed2b15f", "72865b60e4204509794f"),
        ("f4550d2d3168b70acdcf", "5b37d44694b4442e2775"),
    ],
)
def test_records_of_earlier_programs_meet_their_successors_and_are_not_judged(
    before: str, after: str
) -> None:
    one, other = ([decode((THEN / f"{id}.json").read_bytes())] for id in (before, after))
    found = compared(one, other)
    assert found.lines
    for line in found.lines:
        assert line.change.verdict == "incomparable"
        assert any(feature.startswith("earlier/") for feature in line.features)
