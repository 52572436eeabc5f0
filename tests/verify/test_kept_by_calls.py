"""All that a layer's classes keep is counted."""

from __future__ import annotations

from typing import ClassVar

import pytest
from torch import nn

from lra.verify.kept_by_calls import kept_by_calls


class First(nn.Module):
    rows: ClassVar[list[int]] = []


class Second(First):
    columns: ClassVar[list[int]] = []


class Third(Second):
    sizes: ClassVar[list[int]] = []


@pytest.mark.parametrize("kept", [First.rows, Second.columns, Third.sizes])
def test_a_list_of_any_class_is_seen_to_grow(kept: list[int]) -> None:
    found = kept_by_calls(Third(), lambda: kept.append(0))
    assert found == "10 more entries of lists and tables after 12 calls than after 2"


def test_a_layer_that_keeps_nothing_leaves_nothing() -> None:
    assert kept_by_calls(Third(), lambda: None) == ""
