"""What tests of measuring share."""

from __future__ import annotations

import pytest

from lra.measure import control


@pytest.fixture
def small_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control that takes no time."""
    monkeypatch.setitem(control.SIZE, "cpu", 16)
    monkeypatch.setattr(control, "SECONDS", 0.0)
