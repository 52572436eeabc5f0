"""Plan of a check: laws, counts and losses always, trainings for accuracy where asked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lra.core.cells import Cell, EfficiencyCell, QualityCell, VerifyCell
from lra.core.protocol import Machine
from lra.engine.gate.baselines import Baselines
from lra.engine.gate.cell_keys import cell_key
from lra.engine.gate.revision import HOME
from lra.engine.plan import spec, verify
from lra.engine.plan.check import plan_check

NAMES = ("linear", "performer")
SHORT = ("check", "image", 0)
LONG = [("mini", "image", seed) for seed in range(3)]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU."""
    found = Machine(processor="Example GPU", cores=2, driver="580")
    for module in (spec, verify):
        monkeypatch.setattr(module, "machine", lambda device: found)


def planned(cache: Path, *, quality: bool, device: str = "cpu") -> list[Cell]:
    jobs = plan_check(NAMES, device, str(cache), quality=quality, edits={})  # type: ignore[arg-type]
    return [job.cell for job in jobs]


@pytest.mark.parametrize(("quality", "longer"), [(False, []), (True, LONG)])
def test_trainings_for_accuracy_are_planned_over_three_seeds_where_asked_for(
    cache: Path, quality: bool, longer: list[tuple[str, str, int]]
) -> None:
    found = [cell for cell in planned(cache, quality=quality) if isinstance(cell, QualityCell)]
    assert Counter(
        (cell.mechanism.name, cell.scale, cell.data.task, cell.seed) for cell in found
    ) == Counter((name, *own) for name in NAMES for own in (SHORT, *longer))
    assert {cell.threads for cell in found} == {1}, "sums in another order are other losses"


@pytest.mark.parametrize("quality", [False, True])
def test_laws_and_counts_are_planned_anyway_and_timings_last(cache: Path, quality: bool) -> None:
    found = planned(cache, quality=quality)
    kinds = [type(cell) for cell in found]
    assert set(kinds) == {VerifyCell, QualityCell, EfficiencyCell}
    assert Counter(c.mechanism.name for c in found if isinstance(c, VerifyCell)) == Counter(NAMES)
    counted = found[kinds.index(EfficiencyCell) :]
    assert Counter(
        (c.mechanism.name, c.mode, c.length) for c in counted if isinstance(c, EfficiencyCell)
    ) == Counter((n, m, length) for n in NAMES for m in ("forward", "train")
                 for length in (256, 1024))  # fmt: skip
    assert len(counted) == kinds.count(EfficiencyCell)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_all_of_it_is_for_the_device_asked_for(cache: Path, device: str) -> None:
    found = planned(cache, quality=True, device=device)
    assert {cell.device for cell in found} == {device}  # type: ignore[union-attr]


def test_the_cells_of_a_check_are_found_in_committed_baselines(cache: Path) -> None:
    asked = {cell_key(cell) for cell in planned(cache, quality=True)}  # type: ignore[arg-type]
    committed = Baselines(HOME / "results/baselines", "amd-epyc-2c")
    for name in NAMES:
        assert asked == committed.figures(name).keys(), name
