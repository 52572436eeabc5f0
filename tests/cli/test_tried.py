"""A summary of the cases tried, made from the cases themselves."""

from __future__ import annotations

from lra.cli.tried import describe_extent
from lra.core.findings import Finding, Tried, Verdict


def finding(verdict: Verdict, **extent: object) -> Finding:
    return Finding(law="causality", verdict=verdict, tried=Tried(**extent))  # type: ignore[arg-type]


def test_the_extent_is_from_the_least_to_the_greatest_of_all_laws() -> None:
    (line,) = describe_extent(
        [
            finding("held", lengths=(2, 1031), heads=(1, 8), dtypes=("float64",), batches=(1, 2)),
            finding("failed", lengths=(1, 7), heads=(4, 16), dtypes=("bfloat16",), dropout=0.25),
        ]
    )
    assert line == (
        "tried: lengths 1 to 1,031, float64 and bfloat16, 1 to 16 heads, batches of 1 to 2, "
        "dropout 0.25"
    )


def test_a_law_that_is_not_claimed_says_nothing_about_sizes() -> None:
    assert not list(describe_extent([finding("not claimed", lengths=(1, 9), dtypes=("float64",))]))
    assert not list(describe_extent([Finding(law="causality", verdict="held")]))


def test_a_size_that_could_not_be_built_is_named_once_for_each_reason() -> None:
    narrow = "too narrow: 8"
    sizes = {"heads=1 layer=4": narrow, "heads=1": narrow, "position=a: b": "no such: scheme"}
    tried = finding("held", lengths=(5, 5), heads=(4, 4), dtypes=("float32",), refusals=sizes)
    head, *reasons = describe_extent([tried, tried])
    assert head == "tried: length 5, float32, heads: 4"
    assert reasons == [
        "not tried with heads=1: too narrow: 8",
        "not tried with position=a: b: no such: scheme",
    ]
