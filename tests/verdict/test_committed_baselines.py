"""The committed baselines hold no law of the past: else the gate cannot tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from lra.engine.gate.baselines import Baselines
from lra.verify.laws import LAWS

FOLDER = Path(__file__).parents[2] / "results/baselines"
MACHINES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.mark.parametrize("machine", MACHINES)
def test_each_law_of_a_committed_baseline_is_still_tried(machine: str) -> None:
    baseline, laws = Baselines(FOLDER, machine), {law.name for law in LAWS}
    past = {
        (name, law)
        for name in baseline.names()
        for cell in baseline.figures(name).values()
        for law in cell.laws
        if law not in laws
    }
    assert not past
