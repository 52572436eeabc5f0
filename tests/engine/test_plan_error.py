"""Which error cells a block makes: of approximations alone, one for each budget."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import lra
from lra.core.cells import EfficiencyCell, ErrorCell
from lra.core.errors import UsageError
from lra.core.scales import EfficiencyBlock, ErrorBlock, Suite
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite

BLOCK = ErrorBlock(
    scale="mini",
    lengths=(64, 32),
    heads=(2,),
    head_widths=(8,),
    input_scales=(0.5, 1.0),
    seeds=2,
    budgets={
        "performer": ({"features": 16}, {"features": 64}),
        "linformer": ({"rank": 8},),
    },
)
TIMED = EfficiencyBlock(
    scale="mini", lengths=(32,), modes=("forward",), heads=(2,), head_widths=(8,)
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def cells(cache: str, *mechanisms: str, block: ErrorBlock = BLOCK, **asked: Any) -> list[ErrorCell]:
    suite = Suite(name="near", title="", error=(block,))
    spec = RunSpec(suite=suite, mechanisms=mechanisms, device="cpu", cache=cache, **asked)
    found = [job.cell for job in plan_suite(spec)]
    assert len({cell.id for cell in found}) == len(found)
    return [cell for cell in found if isinstance(cell, ErrorCell)]


def test_each_budget_at_each_place_and_the_defaults_of_what_has_none(cache: str) -> None:
    found = cells(cache, "performer", "nystromformer")
    assert Counter(
        (c.mechanism.name, c.mechanism.config.get("features", c.mechanism.config.get("landmarks")))
        for c in found
    ) == {("performer", 16): 8, ("performer", 64): 8, ("nystromformer", 64): 8}
    assert {(c.length, c.input_scale, c.seed) for c in found} == {
        (length, scale, seed) for length in (32, 64) for scale in (0.5, 1.0) for seed in (0, 1)
    }
    assert [c.length for c in found] == sorted(c.length for c in found)
    assert {(c.heads, c.head_width, c.batch, c.threads, c.dtype) for c in found} == {
        (2, 8, 1, 1, "float32")
    }


def test_what_does_not_claim_to_come_near_softmax_is_left_out(cache: str, tmp_path: Path) -> None:
    found = cells(cache, "linear", "lstm", "identity", "reformer", "sdpa", "linformer")
    assert {c.mechanism.name for c in found} == {"sdpa", "linformer", "reformer"}
    with pytest.raises(UsageError, match=": linear, lstm;"):
        cells(cache, "linear", "lstm")
    # Beside a block that measures something else there is no need to say so.
    suite = Suite(name="both", title="", efficiency=(TIMED,), error=(BLOCK,))
    spec = RunSpec(suite=suite, mechanisms=("linear",), device="cpu", cache=cache)
    assert {type(job.cell) for job in plan_suite(spec)} == {EfficiencyCell}
    # A plugin that cannot be imported keeps its cells: they say why.
    (tmp_path / "broken.py").write_text("import nothing_of_that_name\n")
    found = cells(cache, "performer", f"{tmp_path / 'broken.py'}:Broken")
    assert {c.mechanism.name for c in found} > {"performer"}


def test_a_setting_comes_before_the_budgets(cache: str) -> None:
    found = cells(cache, "performer", settings={"features": "9"})
    assert {c.mechanism.config["features"] for c in found} == {9}
    assert len(found) == 8


@pytest.mark.parametrize(
    ("budgets", "told"),
    [
        ({"performr": ({},)}, "'performer'"),
        ({"performer": ({"feature": 3},)}, "'performer': .*'features'"),
        ({"performer": ({"features": 0},)}, "'performer'"),
    ],
)
def test_a_wrong_budget_is_one_line(
    budgets: dict[str, tuple[dict[str, Any], ...]], told: str, cache: str
) -> None:
    block = ErrorBlock(scale="mini", lengths=(8,), heads=(1,), head_widths=(4,), budgets=budgets)
    with pytest.raises(UsageError, match=told) as caught:
        cells(cache, "performer", block=block)
    assert "\n" not in str(caught.value)


def test_a_scale_of_ones_own_makes_the_same_cells_from_any_folder(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mini = Path(lra.__file__).parent / "scales/mini.toml"
    (tmp_path / "mine.toml").write_text(mini.read_text())
    found = []
    for folder, path in ((tmp_path, "mine.toml"), (tmp_path.parent, f"{tmp_path.name}/mine.toml")):
        monkeypatch.chdir(folder)
        found.append(cells(cache, "performer", block=replace(BLOCK, scale=path)))
    assert [c.id for c in found[0]] == [c.id for c in found[1]]
    assert {c.scale for c in found[0]} == {"mine"}
