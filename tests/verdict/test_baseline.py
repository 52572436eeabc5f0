"""What a check says of figures held against a baseline, bound by bound."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lra.verdict.baseline import Figures, Judgement, Outcome, judge

NAN = math.nan


def figures(**own: Any) -> Figures:
    return Figures(**{"asked": "a", **own})


def held(before: Figures | None, after: Figures) -> list[Judgement]:
    return judge("linear", {} if before is None else {"cell": before}, {"cell": after})


def outcomes(before: Figures | None, after: Figures) -> dict[str, Outcome]:
    return {one.figure: one.outcome for one in held(before, after)}


def only(before: Figures, after: Figures, figure: str) -> Judgement:
    (one,) = (one for one in held(before, after) if one.figure == figure)
    return one


@pytest.mark.parametrize(
    ("now", "outcome", "why"),
    [
        (1000.0, "held", ""),
        (1010.0, "held", ""),
        (1011.0, "regression", "1,000 before, 1,011 now (+1.1 %)"),
        (990.0, "held", ""),
        (989.0, "improvement", "1,000 before, 989 now (-1.1 %)"),
        (0.0, "improvement", "1,000 before, 0 now (-100.0 %)"),
        (float("nan"), "regression", "1,000 before, nan now (+nan %)"),
    ],
)
def test_counts_are_held_to_one_percent_both_ways(now: float, outcome: str, why: str) -> None:
    name = "peak_tensor_bytes"
    one = only(figures(counts={name: 1000.0}), figures(counts={name: now}), name)
    assert (one.mechanism, one.cell, one.outcome, one.why) == ("linear", "cell", outcome, why)


def test_a_count_of_nothing_is_held_to_nothing() -> None:
    nothing, some = figures(counts={"state_bytes": 0.0}), figures(counts={"state_bytes": 8.0})
    assert only(nothing, nothing, "state_bytes").outcome == "held"
    one = only(nothing, some, "state_bytes")
    assert (one.outcome, one.why) == ("regression", "0 before, 8 now")


def test_what_one_side_did_not_count_cannot_be_told() -> None:
    bare, counted = figures(counts={}), figures(counts={"operations": 5.0})
    for before, after, side in ((bare, counted, "before"), (counted, bare, "now")):
        one = only(before, after, "operations")
        assert (one.outcome, one.why) == ("inconclusive", f"not counted {side}")


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        ([2.0, 1.0], "held"),
        ([2.0, 1.0004], "held"),
        ([2.0, 0.9996], "held"),
        ([2.0, 1.0006], "regression"),
        ([2.0, 0.9994], "regression"),
        ([2.0012, 1.0], "regression"),
        ([2.0], "regression"),
        ([2.0, 1.0, 0.5], "regression"),
        ([], "regression"),
        ([2.0, NAN], "regression"),
        ([NAN, 1.0], "regression"),
        ([2.0, math.inf], "regression"),
    ],
)
def test_losses_are_held_to_half_a_thousandth_point_by_point(
    now: list[float], outcome: str
) -> None:
    assert only(figures(losses=[2.0, 1.0]), figures(losses=now), "losses").outcome == outcome


@pytest.mark.parametrize(
    ("then", "now", "outcome"),
    [
        ([NAN, 1.0], [NAN, 1.0], "held"),
        ([2.0, math.inf], [2.0, math.inf], "held"),
        ([NAN, 1.0], [2.0, 1.0], "regression"),
        ([NAN, 1.0], [1.0, NAN], "regression"),
        ([math.inf], [-math.inf], "regression"),
    ],
)
def test_what_is_no_number_is_held_to_the_same_at_the_same_point(
    then: list[float], now: list[float], outcome: str
) -> None:
    assert only(figures(losses=then), figures(losses=now), "losses").outcome == outcome


def test_losses_say_by_how_much_they_differ_or_that_there_are_more_of_them() -> None:
    before = figures(losses=[2.0, 1.0])
    one = only(before, figures(losses=[2.0, 0.9994]), "losses")
    assert one.why == "differ by up to -0.06 %; the last 1.000 nat before, 0.999 now"
    assert only(before, figures(losses=[2.0]), "losses").why == "2 figures before, 1 now"
    # A task that is learnt perfectly.
    assert only(figures(losses=[0.0]), figures(losses=[0.0]), "losses").outcome == "held"
    assert only(figures(losses=[0.0]), figures(losses=[0.1]), "losses").outcome == "regression"


@pytest.mark.parametrize(
    ("then", "now", "outcome", "why"),
    [
        ("held", "held", "held", ""),
        ("held", "failed", "regression", "claimed, and not so"),
        ("failed", "failed", "regression", "claimed, and not so"),
        ("not claimed", "failed", "regression", "claimed, and not so"),
        ("held", "unclaimed", "regression", "held before, unclaimed now"),
        ("held", "not claimed", "regression", "held before, not claimed now"),
        ("held", "skipped", "inconclusive", "held before, could not be tried now"),
        ("skipped", "skipped", "held", ""),
        ("not claimed", "held", "held", ""),
        ("reported", "reported", "held", ""),
    ],
)
def test_a_law_that_held_goes_on_to_hold(then: str, now: str, outcome: str, why: str) -> None:
    one = only(figures(laws={"causality": then}), figures(laws={"causality": now}), "causality")
    assert (one.outcome, one.why) == (outcome, why)


def test_what_is_claimed_must_hold_whatever_was_before() -> None:
    now = figures(laws={"causality": "failed", "masks": "held", "batch": "unclaimed"})
    expected = {"causality": "regression", "masks": "held", "batch": "held"}
    assert outcomes(None, now) == expected
    # A new law.
    assert outcomes(figures(laws={"masks": "held"}), now) == expected


def test_a_claim_that_other_code_tried_or_that_was_not_tried_is_no_pass_when_it_is_gone() -> None:
    before = figures(asked="b", laws={"batch": "held", "masks": "held", "old": "held"})
    now = figures(laws={"masks": "held", "batch": "not claimed"})
    expected = {"masks": "held", "batch": "inconclusive", "old": "inconclusive"}
    assert outcomes(before, now) == expected
    assert only(before, now, "batch").why == (
        "held before, not claimed now; another configuration, data or version of torch"
    )
    assert only(before, now, "old").why == "held before, not tried now"


def test_laws_of_which_none_is_tried_now_are_no_pass() -> None:
    before = figures(laws={"batch": "held", "masks": "not claimed"})
    expected = {"ending": "held", "batch": "inconclusive"}
    assert outcomes(before, figures()) == expected


@pytest.mark.parametrize(
    ("then", "now", "outcome"),
    [
        ("ok", "ok", "held"),
        ("oom", "oom", "held"),
        ("ok", "oom", "regression"),
        ("ok", "error", "regression"),
        ("ok", "unsupported", "regression"),
        ("oom", "ok", "improvement"),
        ("unsupported", "ok", "improvement"),
        ("ok", "skipped", "inconclusive"),
        (None, "ok", "new"),
        (None, "unsupported", "new"),
        (None, "skipped", "new"),
        (None, "timeout", "regression"),
    ],
)
def test_a_cell_ends_as_it_did(then: str | None, now: str, outcome: str) -> None:
    (one,) = held(then and figures(status=then), figures(status=now))
    assert (one.figure, one.outcome) == ("ending", outcome)
    if then and then != now:
        assert one.why == f"{then} before, {now} now"


def test_figures_of_another_request_are_never_worse() -> None:
    now = figures(asked="b", counts={"operations": 9.0}, losses=[9.0])
    (one,) = held(figures(counts={"operations": 1.0}, losses=[1.0]), now)
    why = "another configuration, data or version of torch"
    assert (one.outcome, one.why) == ("inconclusive", why)


def test_what_fails_now_is_worse_whatever_was_asked() -> None:
    (one,) = held(figures(laws={"masks": "held"}), figures(asked="b", status="crash"))
    assert (one.outcome, one.why) == ("regression", "ok before, crash now")
    (one,) = held(figures(status="oom"), figures(asked="b", status="crash"))
    assert one.outcome == "inconclusive"


def accuracies(*shares: float) -> dict[str, float]:
    return {str(seed): share for seed, share in enumerate(shares)}


@pytest.mark.parametrize(
    ("now", "outcome", "why"),
    [
        ((0.50, 0.51, 0.52), "held", ""),
        ((0.503, 0.513, 0.523), "held", ""),
        ((0.45, 0.46, 0.48), "regression", "-4.7 points over 3 seeds (-5.6 to -3.7)"),
        ((0.55, 0.56, 0.58), "improvement", "+5.3 points over 3 seeds (+4.4 to +6.3)"),
        # Not told apart: no alarm, and no pass of what looks worse.
        ((0.40, 0.55, 0.53), "held", "-1.7 points over 3 seeds (-14.1 to +10.8)"),
        (
            (0.45, 0.20, 0.50),
            "inconclusive",
            "-12.7 points over 3 seeds (-39.6 to +14.2): not told from luck",
        ),
        ((0.30,), "inconclusive", "1 of 3 seeds have an accuracy now"),
        ((), "inconclusive", "0 of 3 seeds have an accuracy now"),
    ],
)
def test_accuracies_are_held_over_seeds(now: tuple[float, ...], outcome: str, why: str) -> None:
    before = figures(accuracies=accuracies(0.50, 0.51, 0.52))
    one = only(before, figures(accuracies=accuracies(*now)), "accuracy")
    assert (one.outcome, one.why) == (outcome, why)


def test_cells_that_a_check_did_not_ask_for_are_not_looked_at() -> None:
    before = {"one": figures(), "other": figures()}
    assert [one.cell for one in judge("linear", before, {"one": figures()})] == ["one"]


def test_a_whole_check_misses_the_cells_that_only_the_baseline_has() -> None:
    before = {"one": figures(), "train 64": figures(), "train 256": figures()}
    found = judge("linear", before, {"one": figures(), "new": figures()}, whole=True)
    assert {one.cell: (one.figure, one.outcome) for one in found} == {
        "one": ("ending", "held"),
        "new": ("ending", "new"),
        "train 256": ("ending", "inconclusive"),
        "train 64": ("ending", "inconclusive"),
    }
