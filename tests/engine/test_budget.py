"""The budget against a clock of our own."""

from __future__ import annotations

import pytest

from lra.core.errors import UsageError
from lra.engine.order.budget import Budget


def test_a_budget_ends_early_enough_for_checkpoints() -> None:
    now = [100.0]
    budget = Budget(50.0, clock=lambda: now[0])
    assert budget.grace == 5.0
    assert budget.left == 45.0
    now[0] += 40.0
    assert budget.left == 5.0
    now[0] += 6.0
    assert budget.left == 0.0


def test_grace_does_not_grow_without_end() -> None:
    assert Budget(3600.0, clock=lambda: 0.0).grace == 10.0


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_budget_of_nothing_is_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="runs nothing"):
        Budget(seconds)
