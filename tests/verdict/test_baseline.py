"""The outcomes of figures held against a baseline, bound by bound."""

import math

import pytest

from lra.verdict.baseline import Figures, judge

NAN, INF = math.nan, math.inf
OTHER = "another configuration, data or version of torch"


def figures(**own):
    return Figures(**{"asked": "a", **own})


def held(before, after):
    return judge("linear", {} if before is None else {"cell": before}, {"cell": after})


def outcomes(before, after):
    return {one.figure: one.outcome for one in held(before, after)}


def only(before, after, figure):
    (one,) = (one for one in held(before, after) if one.figure == figure)
    return one


def both(figure, kind, then, now):
    """Outcome and reason of one figure, from two values of its kind."""
    one = only(figures(**{kind: then}), figures(**{kind: now}), figure)
    assert (one.mechanism, one.cell) == ("linear", "cell")
    return one.outcome, one.why


@pytest.mark.parametrize(
    ("then", "now", "outcome", "why"),
    [
        (1000.0, 1000.0, "held", ""),
        (1000.0, 1010.0, "held", ""),
        (1000.0, 1011.0, "regression", "1,000 before, 1,011 now (+1.1 %)"),
        (1000.0, 990.0, "held", ""),
        (1000.0, 989.0, "improvement", "1,000 before, 989 now (-1.1 %)"),
        (1000.0, 0.0, "improvement", "1,000 before, 0 now (-100.0 %)"),
        (1000.0, NAN, "regression", "1,000 before, nan now (+nan %)"),
        (0.0, 0.0, "held", ""),
        (0.0, 8.0, "regression", "0 before, 8 now"),
        (None, 5.0, "inconclusive", "not counted before"),
        (5.0, None, "inconclusive", "not counted now"),
    ],
)
def test_counts_are_held_to_one_percent_both_ways(then, now, outcome, why):
    name = "peak_tensor_bytes"
    counts = ({} if value is None else {name: value} for value in (then, now))
    assert both(name, "counts", *counts) == (outcome, why)


@pytest.mark.parametrize(
    ("then", "now", "outcome"),
    [
        ([2.0, 1.0], [2.0, 1.0], "held"),
        ([2.0, 1.0], [2.0, 1.0004], "held"),
        ([2.0, 1.0], [2.0, 0.9996], "held"),
        ([2.0, 1.0], [2.0, 1.0006], "regression"),
        ([2.0, 1.0], [2.0, 0.9994], "regression"),
        ([2.0, 1.0], [2.0012, 1.0], "regression"),
        ([2.0, 1.0], [2.0], "regression"),
        ([2.0, 1.0], [2.0, 1.0, 0.5], "regression"),
        ([2.0, 1.0], [], "regression"),
        ([2.0, 1.0], [2.0, NAN], "regression"),
        ([2.0, 1.0], [NAN, 1.0], "regression"),
        ([2.0, 1.0], [2.0, INF], "regression"),
        # A value that is no number is held to the same at the same point.
        ([NAN, 1.0], [NAN, 1.0], "held"),
        ([2.0, INF], [2.0, INF], "held"),
        ([NAN, 1.0], [2.0, 1.0], "regression"),
        ([NAN, 1.0], [1.0, NAN], "regression"),
        ([INF], [-INF], "regression"),
        # A task that is learnt perfectly.
        ([0.0], [0.0], "held"),
        ([0.0], [0.1], "regression"),
    ],
)
def test_losses_are_held_to_half_a_thousandth_point_by_point(then, now, outcome):
    assert both("losses", "losses", then, now)[0] == outcome


def test_losses_say_by_how_much_they_differ_or_that_there_are_more_of_them():
    differ = "differ by up to -0.06 %; the last 1.000 nat before, 0.999 now"
    assert both("losses", "losses", [2.0, 1.0], [2.0, 0.9994])[1] == differ
    assert both("losses", "losses", [2.0, 1.0], [2.0])[1] == "2 figures before, 1 now"


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
def test_a_law_that_held_goes_on_to_hold(then, now, outcome, why):
    assert both("causality", "laws", {"causality": then}, {"causality": now}) == (outcome, why)


def test_claims_must_hold_whatever_was_before():
    now = figures(laws={"causality": "failed", "masks": "held", "batch": "unclaimed"})
    expected = {"causality": "regression", "masks": "held", "batch": "held"}
    assert outcomes(None, now) == expected
    # A new law.
    assert outcomes(figures(laws={"masks": "held"}), now) == expected


def test_a_claim_that_other_code_tried_or_that_was_not_tried_is_no_pass_when_it_is_gone():
    before = figures(asked="b", laws={"batch": "held", "masks": "held", "old": "held"})
    now = figures(laws={"masks": "held", "batch": "not claimed"})
    expected = {"masks": "held", "batch": "inconclusive", "old": "inconclusive"}
    assert outcomes(before, now) == expected
    assert only(before, now, "batch").why == f"held before, not claimed now; {OTHER}"
    assert only(before, now, "old").why.startswith("held before, not tried now")
    # Laws of which none is tried now.
    before = figures(laws={"batch": "held", "masks": "not claimed"})
    assert outcomes(before, figures()) == {"ending": "held", "batch": "inconclusive"}


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
def test_a_cell_ends_as_it_did(then, now, outcome):
    (one,) = held(then and figures(status=then), figures(status=now))
    assert (one.figure, one.outcome) == ("ending", outcome)
    assert not then or then == now or one.why == f"{then} before, {now} now"


@pytest.mark.parametrize(
    ("before", "now", "outcome", "why"),
    [
        ({"counts": {"operations": 1.0}}, {"counts": {"operations": 9.0}}, "inconclusive", OTHER),
        ({"losses": [1.0]}, {"losses": [9.0]}, "inconclusive", OTHER),
        # A failure now is worse whatever was asked.
        ({"laws": {"masks": "held"}}, {"status": "crash"}, "regression", "ok before, crash now"),
        ({"status": "oom"}, {"status": "crash"}, "inconclusive", OTHER),
    ],
)
def test_figures_of_another_request_are_never_worse(before, now, outcome, why):
    (one,) = held(figures(**before), figures(asked="b", **now))
    assert (one.outcome, one.why) == (outcome, why)


@pytest.mark.parametrize(
    ("now", "outcome", "why"),
    [
        ((0.50, 0.51, 0.52), "held", ""),
        ((0.503, 0.513, 0.523), "held", ""),
        ((0.45, 0.46, 0.48), "regression", "-4.7 points over 3 seeds (-5.6 to -3.7)"),
        ((0.55, 0.56, 0.58), "improvement", "+5.3 points over 3 seeds (+4.4 to +6.3)"),
        # Not told apart: no alarm, and no pass of what looks worse.
        ((0.40, 0.55, 0.53), "held", "-1.7 points over 3 seeds (-14.1 to +10.8)"),
        ((0.45, 0.20, 0.50), "inconclusive", "-12.7 points over 3 seeds (-39.6 to +14.2)"),
        ((0.30,), "inconclusive", "1 of 3 seeds have an accuracy now"),
        ((), "inconclusive", "0 of 3 seeds have an accuracy now"),
    ],
)
def test_accuracies_are_held_over_seeds(now, outcome, why):
    then, now = ({str(s): v for s, v in enumerate(row)} for row in ((0.50, 0.51, 0.52), now))
    found, said = both("accuracy", "accuracies", then, now)
    assert found == outcome and said.partition(":")[0] == why


def test_a_whole_check_misses_the_cells_that_only_the_baseline_has():
    before = {"one": figures(), "train 64": figures(), "train 256": figures()}
    assert [one.cell for one in judge("linear", before, {"one": figures()})] == ["one"]
    found = judge("linear", before, {"one": figures(), "new": figures()}, whole=True)
    assert {one.cell: (one.figure, one.outcome) for one in found} == {
        "one": ("ending", "held"),
        "new": ("ending", "new"),
        "train 256": ("ending", "inconclusive"),
        "train 64": ("ending", "inconclusive"),
    }
