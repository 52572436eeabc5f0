"""The label of a cell tells it from all others of its plan, and says nothing that never varies."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lra.core import scales
from lra.core.cells import QualityCell
from lra.core.protocol import Machine, Mechanism, SlotName
from lra.core.scales import EfficiencyBlock, ErrorBlock, QualityBlock, Suite, load_suite
from lra.engine.plan.labels import with_labels
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite
from lra.report.load.settings import slot_words

SUITES = sorted((Path(scales.__file__).parents[1] / "suites").glob("*.toml"))
ONE = EfficiencyBlock(
    scale="mini", lengths=(16,), modes=("train",), heads=(2,), head_widths=(8,), beside=()
)
OTHER = EfficiencyBlock(
    scale="mini", lengths=(16,), modes=("train",), heads=(4,), head_widths=(8,), beside=()
)
BUDGETS = {"performer": ({"features": 4}, {"features": 64}), "linformer": ({"rank": 4},)}
ERRORS = ErrorBlock(
    scale="mini", lengths=(16,), heads=(2,), head_widths=(8,), seeds=1, budgets=BUDGETS
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


GPU = Machine(processor="toy GPU", cores=2, driver="1")


def labels(suite: Suite, cache: str, *mechanisms: str) -> list[str]:
    asked = RunSpec(suite=suite, mechanisms=mechanisms, device="cpu", cache=cache)
    if suite.efficiency and all(block.device == "cuda" for block in suite.efficiency):
        asked = msgspec.structs.replace(asked, device="cuda", machines={"cuda": GPU})
    jobs = plan_suite(asked)
    return [job.label for job in with_labels(jobs)]


@pytest.mark.parametrize(
    ("blocks", "told"),
    [
        ((ONE,), ["linear train 16"]),
        ((ONE, OTHER), ["linear train 16 heads 2", "linear train 16 heads 4"]),
    ],
)
def test_heads_are_said_where_they_vary(
    blocks: tuple[EfficiencyBlock, ...], told: list[str], cache: str
) -> None:
    assert labels(Suite(name="s", title="", efficiency=blocks), cache, "linear") == told


def test_a_task_is_said_of_models_alone(cache: str) -> None:
    model = msgspec.structs.replace(ONE, levels=("model",), task="text")
    told = labels(Suite(name="s", title="", efficiency=(ONE, model)), cache, "linear")
    assert told[0] == "linear train 16 heads 2 head width 8"
    assert told[1].startswith("linear train 16 model text ")


def test_a_budget_is_said_of_the_mechanism_that_has_several(cache: str) -> None:
    suite = Suite(name="s", title="", error=(ERRORS,))
    assert labels(suite, cache, "performer", "linformer") == [
        "error performer 16 scale 1 seed 0 features=4",
        "error performer 16 scale 1 seed 0 features=64",
        "error linformer 16 scale 1 seed 0",
    ]


def test_seeds_are_said_where_there_are_several(cache: str) -> None:
    block = QualityBlock(scale="mini", tasks=("listops",), seeds=2)
    told = labels(Suite(name="s", title="", quality=(block,)), cache, "linear")
    assert told == ["baselines listops", "linear listops seed 0", "linear listops seed 1"]


@pytest.mark.parametrize("name", [file.stem for file in SUITES])
def test_no_two_cells_of_a_shipped_suite_are_called_alike(name: str, cache: str) -> None:
    told = labels(load_suite(name), cache, "performer", "sinkhorn", "sdpa")
    assert told and len(told) == len(set(told))
    assert all("shuffled" in label for label in told[-5:]) == (name == "certificate")


def test_rates_are_said_where_they_are_searched_for(cache: str) -> None:
    block = QualityBlock(scale="mini", tasks=("text",))
    suite = Suite(name="s", title="", quality=(block,))
    asked = RunSpec(suite=suite, mechanisms=("linear",), device="cpu", cache=cache)
    tuned = plan_suite(msgspec.structs.replace(asked, track="tuned"))
    own = scales.load_scale("mini")
    rate = own.train_spec("text").learning_rate
    assert [job.label for job in with_labels(tuned)] == [
        "baselines text",
        *(f"linear text rate {rate * factor:g}" for factor in own.rates),
    ]
    assert [job.label for job in with_labels(plan_suite(asked))] == [
        "baselines text",
        "linear text",
    ]


def test_slots_are_said_where_a_mechanism_stands_in_several(cache: str) -> None:
    others: tuple[dict[SlotName, str], ...] = ({}, {"decoder": "sdpa", "cross": "sdpa"})
    blocks = [QualityBlock(scale="mini", tasks=("reverse",), slots=slots) for slots in others]
    told = labels(Suite(name="s", title="", quality=tuple(blocks)), cache, "linear")
    assert told == [
        "baselines reverse",
        f"linear reverse {slot_words(['cross'])}",
        f"linear reverse {slot_words(['encoder'])}",
    ]
    alone = labels(Suite(name="s", title="", quality=(blocks[0],)), cache, "linear")
    assert alone == ["baselines reverse", "linear reverse"]


def test_settings_of_a_cycle_are_said_with_their_member(cache: str) -> None:
    jobs = plan_suite(
        RunSpec(
            suite=Suite(name="s", title="", quality=(QualityBlock(scale="mini", tasks=("text",)),)),
            mechanisms=("block_local+sliding_window",),
            device="cpu",
            cache=cache,
        )
    )
    (job,) = [job for job in jobs if isinstance(job.cell, QualityCell)]
    assert isinstance(job.cell, QualityCell)
    name = job.cell.mechanism.name
    twins = [
        msgspec.structs.replace(job.cell, mechanism=Mechanism(name=name, config=config))
        for config in ({"a": {"left": 3}, "b": {"left": 5}}, {"a": {"left": 5}, "b": {"left": 3}})
    ]
    made = with_labels([msgspec.structs.replace(job, cell=cell) for cell in twins])
    assert [one.label for one in made] == [
        f"{name} text a.left=3, b.left=5",
        f"{name} text a.left=5, b.left=3",
    ]
