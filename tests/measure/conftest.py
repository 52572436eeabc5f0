"""Fixtures of the tests of measuring."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from lra.measure import control


@pytest.fixture
def small_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control that takes no time."""
    monkeypatch.setitem(control.SIZE, "cpu", 16)
    monkeypatch.setattr(control, "SECONDS", 0.0)


@pytest.fixture(autouse=True, scope="module")
def frozen_heap() -> Iterator[None]:
    """Leave what was imported out of the garbage collections that surround each measurement."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
