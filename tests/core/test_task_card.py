"""Tasks may ask so of so many sequences."""

import pytest

from lra.core.cards import TaskCard
from lra.core.errors import UsageError

KNOWN = {"title": "", "source": "", "classes": 2, "vocabulary": 3}


@pytest.mark.parametrize(
    ("asks", "inputs"),
    [("example", 1), ("example", 2), ("token", 1), ("sequence", 2), ("query", 2)],
)
def test_sequences_that_are_asked_so(asks, inputs):
    assert TaskCard(**KNOWN, asks=asks, inputs=inputs).inputs == inputs


@pytest.mark.parametrize(
    ("asks", "inputs", "needed"),
    [("token", 2, 1), ("sequence", 1, 2), ("query", 1, 2), ("sequence", 3, 2)],
)
def test_other_numbers_are_refused_in_one_line(asks, inputs, needed):
    with pytest.raises(UsageError, match=f"set inputs = {needed}") as caught:
        TaskCard(**KNOWN, asks=asks, inputs=inputs)
    assert "\n" not in str(caught.value)
