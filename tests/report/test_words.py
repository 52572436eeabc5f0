"""Numbers and statuses in words."""

from __future__ import annotations

import pytest

from lra.core.errors import DataError, LraError, UsageError
from lra.core.protocol import Machine
from lra.core.records import Failure
from lra.report.words import (
    about,
    apart,
    differing,
    ending,
    figures,
    listing,
    listing_of,
    machine_words,
    percent,
    plain,
    quantity,
    scale_of,
    shortened,
    span,
)

from .sample import TRAINING, failure


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (1.2345, None, "1.23"),
        (1.2345, 0.01, "1.23"),
        (1.2345, 0.04, "1.23"),
        (1.2345, 0.2, "1.2"),
        (1.2345, 9.0, "1.2"),
        (123.45, None, "123"),
        (1234.5, None, "1230"),
        (0.012345, None, "0.0123"),
        (9.996, None, "10.00"),
        (0.0, None, "0"),
    ],
)
def test_figures_stop_at_the_leading_place_of_the_spread(
    value: float, spread: float | None, text: str
) -> None:
    assert figures(value, spread) == text


def test_a_span_has_its_ends_or_the_one_value() -> None:
    assert [span(values) for values in ([5, 500, 30], [3, 3], [10, 9], ())] == [
        "5 to 500", "3", "9 to 10", "",
    ]  # fmt: skip
    assert span(["2026-11-20", "2026-11-19"]) == "2026-11-19 to 2026-11-20"


def test_of_a_long_listing_the_rest_is_counted() -> None:
    assert [listing_of("abcd"[:n], 2) for n in (1, 2, 3, 4)] == [
        "a", "a and b", "a, b and 1 more", "a, b and 2 more",
    ]  # fmt: skip


def test_percent_drops_its_decimal_where_seeds_scatter_by_tens() -> None:
    assert percent(0.7834) == "78.3"
    assert percent(0.7834, 0.05) == "78.3"
    assert percent(0.7834, 0.2) == "78"
    assert percent(-0.0001) == "0.0" and percent(-0.002) == "-0.2"


def test_a_short_time_is_foretold_without_a_zero() -> None:
    assert [about(seconds) for seconds in (0.0, 0.4, 1.2, 600.0)] == [
        "under a second", "under a second", "about 1 s", "about 10 min",
    ]  # fmt: skip


def test_units_suit_the_middle_value() -> None:
    assert scale_of([0.0002, 0.004, 0.9], "s") == (1e-3, "ms")
    assert scale_of([5e6, 2e9, 3e9], "B") == (1e9, "GB")
    assert scale_of([], "s")[1] == "µs"
    assert quantity(0.0000421, "s") == "42.1 µs"
    assert quantity(70_000, "B", most=2) == "70 kB"


def test_endings_name_what_is_known() -> None:
    assert ending("crash", failure("crash")) == "crash (SIGSEGV)"
    assert ending("crash", None) == "crash"
    assert ending("oom", failure("oom")) == "OOM"
    assert ending("skipped", failure("skipped")) == "skipped: a shorter length failed"
    assert ending("error", Failure(type="NoResult", message="")) == "error: no result"
    assert ending("error", Failure(type="ValueError", message="")) == "error (ValueError)"
    for ours in (LraError, UsageError, DataError):
        assert ending("error", Failure(type=ours.__name__, message="why")) == "error"


def test_listing() -> None:
    assert [listing(list(part)) for part in ("", "a", "ab", "abc")] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_machines_have_a_driver_only_with_a_gpu() -> None:
    assert machine_words(Machine(processor="CPU", cores=1)) == "CPU, 1 core"
    assert machine_words(Machine(processor="GPU", cores=4, driver="580")) == (
        "GPU, 4 cores, driver 580"
    )


def test_differing_tells_settings_apart_by_nothing_more_than_needed() -> None:
    assert differing([{"a": 1, "b": 2}, {"a": 1, "b": 3}]) == ["b=2", "b=3"]
    assert differing([{"x.a": 1}, {}]) == ["a=1", ""]
    assert differing([{"x.a": 1, "y.a": 1}, {"x.a": 2, "y.a": 1}]) == ["a=1", "a=2"]
    assert differing([{"x.a": 1, "y.a": 2}, {"x.a": 2, "y.a": 1}]) == [
        "x.a=1, y.a=2",
        "x.a=2, y.a=1",
    ]
    assert differing([{"a": 1}]) == [""]
    assert differing([{"a": 1}, {"a": 2, "later": None}]) == ["a=1", "a=2"]


def test_values_differ_though_their_texts_are_equal() -> None:
    told = [plain(one) for one in ("\x1b", r"\x1b")]
    assert told[0] == told[1]
    assert differing([{"a": "\x1b"}, {"a": r"\x1b"}]) == [f"a={told[0]}"] * 2
    assert differing([{"a": True}, {"a": 1}, {"a": 1.0}]) == ["a=yes", "a=1", "a=1.0"]


def test_a_text_that_reads_like_another_value_is_set_in_quotes() -> None:
    alike = [True, "yes", 1, "1", 1.0, "1.0", None, "none", [1, 2], "(1, 2)", "", []]
    alike += ["'yes'", ["a", "b"], ["a, b"]]
    assert len({plain(one) for one in alike}) == len(alike) - 1, "nothing and an empty list"


def test_flat_keeps_the_order_of_fields_and_says_none() -> None:
    from lra.report.words import flat

    settings = flat(TRAINING)
    assert list(settings)[:3] == ["steps", "batch", "learning_rate"]
    assert settings["betas"] == "(0.9, 0.98)"
    assert settings["bucketed"] == "yes"
    assert flat({"a": None, "b": {"c": ()}}) == {"a": "none", "b.c": "none"}


def test_what_is_cut_short_stays_different() -> None:
    ends = ["a" * 40 + "1", "a" * 40 + "2", "short"]
    assert shortened(ends, 12) == [
        "aaaa\N{HORIZONTAL ELLIPSIS}aaaaaa1",
        "aaaa\N{HORIZONTAL ELLIPSIS}aaaaaa2",
        "short",
    ]
    middles = ["a" * 9 + n + "b" * 30 for n in "12"]
    assert len(set(shortened(middles, 12))) == 2
    hidden = ["a" * 30 + n + "b" * 30 for n in "12"]
    assert len(set(shortened(hidden, 12))) == 2
    for texts in (ends, middles, hidden):
        assert max(map(len, shortened(texts, 12))) <= 12
    assert shortened(["exactly so"], 10) == ["exactly so"]


def test_nearly_a_thousand_texts_stay_different_in_as_few_letters_as_promised() -> None:
    texts = ["a" * 30 + f"{n:03}" + "b" * 30 for n in range(999)]
    cuts = shortened(texts, 8)
    assert len(set(cuts)) == len(texts) and max(map(len, cuts)) == 8


def test_settings_are_named_by_what_not_all_of_them_share() -> None:
    assert apart([["causal", "batch 1", "float32"]]) == [""]
    assert apart([["causal", "batch 1"], ["bidirectional", "batch 1"]]) == [
        "causal",
        "bidirectional",
    ]
    three = [["causal", "batch 1"], ["causal", "batch 4"], ["bidirectional", "batch 1"]]
    assert apart(three) == ["causal, batch 1", "causal, batch 4", "bidirectional, batch 1"]
    assert apart([["causal"], ["causal"]]) == ["1", "2"]
    assert apart([["a"], ["b"], ["b"]]) == ["a", "b (1)", "b (2)"]
