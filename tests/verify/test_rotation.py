"""Sizes take turns: every size, batch, layer and kind of biases meets a law somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from lra.core.findings import Case, parse
from lra.verify import kit
from lra.verify.rotated_sizes import in_rotation
from lra.verify.sizes import BATCHES, BIASES, FAR, LAYERS, SIZES
from lra.verify.subject import BEYOND, Subject
from verify.faults.dense import Dense
from verify.faults.sizes import GroupsInterleaved, RestOfTheBlocks
from verify.faults.strangers import stranger


def rotated(mechanism: type, *laws: str) -> Iterator[Case]:
    subject = Subject(mechanism, mechanism.Config())  # type: ignore[attr-defined]
    for law in kit.select(laws):
        for case in in_rotation(law, subject, law.cases(subject)):
            assert law.takes(case) and parse(str(case)) == case
            yield case


def test_all_sizes_take_part_in_a_law_and_no_request_loses_its_own() -> None:
    found = list(rotated(Dense, "oracle"))
    assert {(case.heads, case.head_width, case.width) for case in found} >= set(SIZES)
    assert {case.batch for case in found} == set(BATCHES)
    assert {case.layer for case in found} == set(LAYERS)
    assert {case.biases for case in found} == set(BIASES)
    assert BEYOND in {case.n for case in found}
    assert {case.dtype for case in found} == {"float64", "float32"}
    own = list(Subject(Dense, Dense.Config()).lengths)
    assert {case.n for case in found} >= set(own)


def test_a_law_meets_the_same_sizes_again_and_another_mechanism_others() -> None:
    first = list(rotated(Dense, "batch"))
    assert first == list(rotated(Dense, "batch"))
    other = type("Other", (Dense,), {})
    assert first != list(rotated(other, "batch"))


def test_an_example_with_padding_and_one_without_stay_in_a_batch() -> None:
    for case in rotated(Dense, "decode", "padding_content"):
        assert case.batch > 1 or case.mask in ("none", "all")


def test_heads_of_keys_are_divisors_of_the_others_and_all_of_them() -> None:
    found = list(rotated(GroupsInterleaved, "oracle", "values_causality"))
    of_four = {case.kv_heads for case in found if case.heads == 4}
    assert of_four == {1, 2, 4}
    assert all(case.heads % (case.kv_heads or 1) == 0 for case in found)


def test_one_past_each_border_is_tried_beyond_the_short_lengths() -> None:
    assert {case.n for case in rotated(RestOfTheBlocks, "oracle")} >= {513, BEYOND}
    assert not {513} & {case.n for case in rotated(Dense, "oracle")}


@pytest.mark.parametrize("law", ["oracle", "causality", "padding_content", "output"])
def test_long_inputs_are_in_training_and_in_evaluation_in_turn(law: str) -> None:
    found = [case.training for case in rotated(RestOfTheBlocks, law) if case.n >= FAR]
    assert len(found) > 2
    assert all(one != other for one, other in pairwise(found))


def test_somebody_elses_model_is_as_wide_as_its_heads() -> None:
    assert {case.width for case in rotated(stranger(Dense), "batch")} == {None}


@pytest.mark.parametrize(
    ("text", "word"),
    [("n=5 kv_heads=3", "kv_heads"), ("n=5 heads=1 head_width=3 position=rope", "3")],
)
def test_a_size_that_cannot_be_built_is_no_verdict(text: str, word: str) -> None:
    from lra.verify.case_check import why_unfit

    subject = Subject(Dense, Dense.Config(), only=parse(text))
    law = "cross" if "rope" in text else "oracle"
    assert word in why_unfit(kit.select([law])[0], subject)
