"""The same request gives the same cells; what it names reaches them; nothing is planned twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from engine_jobs import SMALL
from msgspec import json
from msgspec.structs import replace

from lra.core.cells import BaselineCell, Direction, EfficiencyCell, QualityCell
from lra.core.errors import UsageError
from lra.core.protocol import Machine
from lra.core.scales import load_suite
from lra.engine.machine import host
from lra.engine.plan.axes import along, timing_points
from lra.engine.plan.data import check_sources
from lra.engine.plan.spec import AxesSpec, RunSpec
from lra.engine.plan.suite import plan_suite

SCALE = f"""
title = "small"
{SMALL}
[mechanisms.performer]
features = 16
[tasks.listops]
length = 32
rows = {{train = 20, validation = 5, test = 5}}
parameters = {{max_depth = 3, min_length = 5}}
[tasks.text]
length = 128
rows = {{train = 20, validation = 5, test = 5}}
"""
SUITE = """
title = "small"
[[quality]]
scale = "{scale}"
tasks = ["listops", "text"]
seeds = 2
[[efficiency]]
scale = "mini"
lengths = [64, 32]
modes = ["forward", "train"]
heads = [2]
head_widths = [8]
"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    folder = tmp_path_factory.mktemp("plan")
    scale, suite = folder / "small.toml", folder / "suite.toml"
    scale.write_text(SCALE)
    suite.write_text(SUITE.format(scale=scale))
    return RunSpec(
        suite=load_suite(str(suite)), mechanisms=("performer",), device="cpu", cache=str(folder)
    )


def quality(spec: RunSpec, **changes: object) -> list[QualityCell]:
    jobs = plan_suite(replace(spec, **changes))
    return [job.cell for job in jobs if isinstance(job.cell, QualityCell)]


def timed(
    spec: RunSpec, *, asked: dict[str, object] | None = None, **changes: object
) -> list[EfficiencyCell]:
    """Timings of the suite's block with changes, of the first mechanism asked for."""
    (block,) = spec.suite.efficiency
    suite = replace(spec.suite, quality=(), efficiency=(replace(block, **changes),))
    spec = replace(spec, **{"suite": suite, **(asked or {})})
    cells = [job.cell for job in plan_suite(spec) if isinstance(job.cell, EfficiencyCell)]
    return [cell for cell in cells if cell.mechanism.name == spec.mechanisms[0]]


def points(spec: RunSpec, **changes: object) -> list[dict[str, object]]:
    (block,) = spec.suite.efficiency
    return list(timing_points(replace(block, **changes)))  # type: ignore[arg-type]


def test_the_cells_of_a_suite(spec: RunSpec) -> None:
    cells = [job.cell for job in plan_suite(spec)]
    assert Counter(type(cell) for cell in cells) == {
        BaselineCell: 2,
        QualityCell: 2 * 2,
        EfficiencyCell: 3 * 2 * 2,
    }
    assert len({cell.id for cell in cells}) == len(cells)
    timed = [cell for cell in cells if isinstance(cell, EfficiencyCell)]
    lengths = [cell.length for cell in timed]
    assert lengths == sorted(lengths)
    versions = {cell.mode: cell.versions for cell in timed if cell.mechanism.name == "performer"}
    own = {"time": 1, "mechanism/performer": 1, "mechanism/performer/cost": 1}
    assert versions == {"forward": own, "train": {**own, "time/train": 1}}


def test_a_training_holds_the_versions_of_what_it_uses(spec: RunSpec) -> None:
    own = {"train": 1, "position/sinusoidal": 1, "mechanism/performer": 1}
    own |= {"look": 1, "mechanism/performer/oracle": 1}
    assert {cell.data.task: cell.versions for cell in quality(spec)} == {
        task: {**own, f"data/{task}": 1} for task in ("listops", "text")
    }
    settings = {"model.dropout": "0.1", "model.pooling": "cls", "training.precision": "bfloat16"}
    used = quality(spec, settings=settings)[0].versions.keys()
    assert used - own.keys() == {"train/dropout", "train/cls", "train/bfloat16", "data/listops"}


def test_a_plan_is_deterministic_across_processes(spec: RunSpec) -> None:
    code = (
        "import sys, msgspec\nfrom lra.engine.plan.suite import plan_suite\n"
        "from lra.engine.plan.spec import RunSpec\n"
        "spec = msgspec.json.decode(sys.argv[1], type=RunSpec)\n"
        "print(*(job.cell.id for job in plan_suite(spec)))\n"
        "assert 'torch' not in sys.modules\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, json.encode(spec).decode()],
        cwd=Path(__file__).parents[2], check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.split() == [job.cell.id for job in plan_suite(spec)]


def test_seeds_change_the_cell_and_never_the_data(spec: RunSpec) -> None:
    cells = quality(spec, seeds=3)
    assert {cell.seed for cell in cells} == {0, 1, 2}
    assert len({json.encode(cell.data) for cell in cells}) == 2


def test_devices_are_of_trainings_and_make_no_other_cell(
    spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "cores_allowed", lambda: 4)
    alone, shared = plan_suite(spec), plan_suite(replace(spec, devices=2))
    assert [job.cell.id for job in shared] == [job.cell.id for job in alone]
    assert {job.devices for job in alone} == {1}
    assert all((job.devices == 2) == isinstance(job.cell, QualityCell) for job in shared)


def test_a_scale_fits_hyper_parameters_and_a_sweep_keeps_the_papers(spec: RunSpec) -> None:
    features = {
        type(job.cell): job.cell.mechanism.config["features"]
        for job in plan_suite(spec)
        if not isinstance(job.cell, BaselineCell) and job.cell.mechanism.name == "performer"
    }
    assert features == {QualityCell: 16, EfficiencyCell: 256}


def test_settings_override_both(spec: RunSpec) -> None:
    settings = {"features": "8", "training.steps": "7", "model.layers": "2"}
    cells = quality(spec, settings=settings)
    assert {cell.mechanism.config["features"] for cell in cells} == {8}
    assert {(cell.training.steps, cell.model.layers) for cell in cells} == {(7, 2)}
    named = quality(spec, settings={"performer.features": "9"})
    assert {cell.mechanism.config["features"] for cell in named} == {9}


def test_tasks_replace_the_suites(spec: RunSpec) -> None:
    assert {cell.data.task for cell in quality(spec, tasks=("text",))} == {"text"}
    with pytest.raises(UsageError, match="'image'"):
        quality(spec, tasks=("image",))


def test_baselines_add_exact_attention_and_the_controls(spec: RunSpec) -> None:
    names = [cell.mechanism.name for cell in quality(spec, baselines=True, seeds=1)]
    assert Counter(names) == {"performer": 2, "sdpa": 2, "identity": 2, "local": 2}


def test_real_data_has_another_hash_and_no_path_in_the_cell(spec: RunSpec, tmp_path: Path) -> None:
    for part in ("train", "val", "test"):
        (tmp_path / f"basic_{part}.tsv").write_text("Source\tTarget\n[MAX 1 2 ]\t2\n")
    real = replace(spec, tasks=("listops",), sources={"listops": str(tmp_path)})
    job = next(job for job in plan_suite(real) if isinstance(job.cell, QualityCell))
    assert isinstance(job.cell, QualityCell) and job.cell.data.source == "file"
    assert job.cell.data.hash and not quality(spec)[0].data.hash
    assert str(tmp_path) not in json.encode(job.cell).decode() and job.source == str(tmp_path)


def test_a_tilde_in_a_data_path_is_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reviews").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    check_sources({"text": "~/reviews"})
    with pytest.raises(UsageError, match="nowhere"):
        check_sources({"text": "~/nowhere"})


def test_a_model_has_the_scales_sizes_and_settings_and_decoding_is_causal(spec: RunSpec) -> None:
    asked = {
        "scale": spec.suite.quality[0].scale, "lengths": (64,), "modes": ("train", "decode"),
        "directions": ("bidirectional", "causal"), "heads": (1, 2), "batches": (1, 8),
    }  # fmt: skip
    ours = timed(spec, **asked, levels=("layer", "model"))
    whole = [cell for cell in ours if cell.level == "model"]
    assert {cell.model is not None and cell.model.causal for cell in whole} == {False, True}
    assert all(cell.model is None and cell.task == "" for cell in ours if cell not in whole)
    # One size, whatever the axes say: that of the scale's model of the task.
    for cell in whole:
        assert cell.model is not None and cell.task == "text"
        assert cell.heads * cell.head_width == cell.model.qkv_width
        assert cell.model.causal == (cell.direction == "causal")
    assert len(whole) == 2 * 2, "two directions and two batches"
    assert {cell.mechanism.config["features"] for cell in whole} == {16}
    assert {cell.direction for cell in ours if cell.mode == "decode"} == {"causal"}
    with pytest.raises(UsageError, match="level layer"):
        timed(spec, **asked, levels=("model",))


@pytest.mark.parametrize(
    ("directions", "found"),
    [
        (None, [("bidirectional", "train"), ("causal", "decode")]),
        (("causal",), [("causal", "train"), ("causal", "decode")]),
        (
            ("bidirectional", "causal"),
            [("bidirectional", "train"), ("causal", "train"), ("causal", "decode")],
        ),
    ],
)
def test_decoding_is_planned_once_and_causal(
    directions: tuple[Direction, ...] | None, found: list[tuple[str, str]], spec: RunSpec
) -> None:
    asked = {"mechanisms": ("linear",)}
    modes = ("train", "decode")
    ours = timed(spec, asked=asked, lengths=(64,), modes=modes, directions=directions)
    assert sorted((c.mode, c.direction) for c in ours) == sorted((m, d) for d, m in found)


NOT_CAUSAL = ("bidirectional",)


def test_decoding_is_causal_and_eager(spec: RunSpec) -> None:
    asked = {"lengths": (64,), "executions": ("eager", "compiled")}
    found = [(p["mode"], p["execution"]) for p in points(spec, **asked, modes=("train", "decode"))]
    assert found == [("train", "eager"), ("train", "compiled"), ("decode", "eager")]
    for wrong, word in (
        ({"executions": ("compiled",)}, "eager"),
        ({"directions": NOT_CAUSAL}, "causal"),
    ):
        with pytest.raises(UsageError, match=word):
            points(spec, modes=("decode",), **wrong)


def test_a_block_for_another_device_is_left_out_and_a_suite_of_such_is_one_line(
    spec: RunSpec,
) -> None:
    (block,) = spec.suite.efficiency
    here, there = replace(block, device="cpu"), replace(block, device="cuda", batches=(32,))
    suite = replace(spec.suite, quality=(), efficiency=(here, there))
    cells = [job.cell for job in plan_suite(replace(spec, suite=suite))]
    assert {cell.batch for cell in cells if isinstance(cell, EfficiencyCell)} == {1}
    with pytest.raises(UsageError, match="--device cuda") as refused:
        plan_suite(replace(spec, suite=replace(suite, efficiency=(there,))))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("device", "batch"), [("cpu", 2), ("cuda", 32)])
def test_table_2_is_a_training_step_of_the_papers_text_model(
    spec: RunSpec, device: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Machine(processor="Example GPU", cores=2, driver="580")
    monkeypatch.setattr("lra.engine.plan.spec.machine", lambda device: here)
    asked = replace(spec, suite=load_suite("table2"), mechanisms=("linear",), device=device)
    cells = [job.cell for job in plan_suite(asked)]
    assert len(cells) == 3 * 4 * 3, "three mechanisms, four lengths, three rounds"
    for cell in cells:
        assert isinstance(cell, EfficiencyCell) and cell.model is not None
        assert (cell.level, cell.mode, cell.task, cell.batch) == ("model", "train", "text", batch)
        assert (cell.model.layers, cell.model.width, cell.heads) == (4, 256, 4)
    lengths = {cell.length for cell in cells if isinstance(cell, EfficiencyCell)}
    assert lengths == {1000, 2000, 3000, 4000}


TASK = """
from lra.core.cards import TaskCard
from tasks.contract import Task, TaskConfig

class {name}(Task):
    card = TaskCard(title="own", source="none", classes=2, vocabulary={vocabulary})
    Config = TaskConfig

    def generate(self, split, rows):
        return {made}
"""


def _timed_whole(spec: RunSpec, **of_task: object) -> dict[str, EfficiencyCell]:
    """The cells of a whole model of a task of one's own and of a layer, by level."""
    folder = Path(spec.cache) / "own"
    folder.mkdir(exist_ok=True)
    text = TASK.format(**{"name": "Own", "vocabulary": 9, "made": "None", **of_task})
    (folder / "own.py").write_text(text)
    (folder / "scheme.py").write_text(f"TURNED = {of_task.get('turned', 1)}\n")
    scale = folder / "small.toml"
    model = f'mlp_width = 16\nposition = "{folder / "scheme.py"}"'
    scale.write_text(
        SCALE.replace("mlp_width = 16", model)
        + "[default]\nlength = 16\nrows = {train = 9, validation = 9, test = 9}\n"
    )
    (block,) = spec.suite.efficiency
    block = replace(
        block, scale=str(scale), task=f"{folder / 'own.py'}:Own", lengths=(16,),
        modes=("train",), levels=("layer", "model"),
    )  # fmt: skip
    suite = replace(spec.suite, quality=(), efficiency=(block,))
    jobs = [job for job in plan_suite(replace(spec, suite=suite)) if job.mechanism == "performer"]
    assert {job.task for job in jobs} == {"", block.task}
    return {c.level: c for c in (job.cell for job in jobs) if isinstance(c, EfficiencyCell)}


@pytest.mark.parametrize(
    ("of_task", "due"),
    [
        ({"made": "[]"}, set()),
        ({"vocabulary": 10}, {"model"}),
        ({"turned": 2}, {"model"}),
    ],
)
def test_what_is_timed_around_a_mechanism_makes_a_whole_model_due(
    spec: RunSpec, of_task: dict[str, object], due: set[str]
) -> None:
    before = _timed_whole(spec)
    after = _timed_whole(spec, **of_task)
    assert {level for level, cell in after.items() if cell.id != before[level].id} == due


def test_a_model_decodes_where_its_task_generates(spec: RunSpec) -> None:
    (block,) = spec.suite.efficiency
    block = replace(block, modes=("decode",), levels=("layer", "model"))
    levels = {
        generates: {point["level"] for point in timing_points(block, generates=generates)}
        for generates in (False, True)
    }
    assert levels == {False: {"layer"}, True: {"layer", "model"}}
    # Its other slots' mechanisms decode, too.
    asked = {"scale": "mini", "modes": ("decode",), "levels": ("model",)}
    cells = timed(spec, **asked, task="reverse")
    assert {cell.direction for cell in cells} == {"causal"}
    for cell in cells:
        assert cell.model is not None and cell.model.open_slots == ("cross",)
        assert {"time/model_decode", "mechanism/sdpa/decode"} <= cell.versions.keys()
    for task in ("text", "lookup"):
        with pytest.raises(UsageError, match=task):
            timed(spec, **asked, task=task)


def test_a_call_of_so_many_tokens_has_as_many_examples_as_fit(spec: RunSpec) -> None:
    (block,) = spec.suite.efficiency
    block = replace(block, lengths=(32, 64, 100, 4096), modes=("forward",), tokens=1024)
    found = [(point["length"], point["batch"]) for point in timing_points(block)]
    assert found == [(32, 32), (64, 16), (100, 10), (4096, 1)]
    # A person's batches come before the suite's tokens.
    suite = replace(spec.suite, efficiency=(block,))
    (asked,) = along(suite, AxesSpec(batches=(2,))).efficiency
    assert {point["batch"] for point in timing_points(asked)} == {2}


def test_where_a_process_measures_all_of_a_mechanism_its_cells_come_together(
    spec: RunSpec,
) -> None:
    (block,) = spec.suite.efficiency
    block = replace(
        block, lengths=(8, 16), modes=("forward", "train"), one_process=True, ceilings=True,
        executions=("eager", "compiled"), replicates=2, only=("performer",),
    )  # fmt: skip
    suite = replace(spec.suite, quality=(), efficiency=(block, block))
    jobs = plan_suite(replace(spec, mechanisms=("linear", "performer"), suite=suite))
    timings = [job for job in jobs if isinstance(job.cell, EfficiencyCell)]
    names = {job.cell.mechanism.name for job in timings}
    assert names == {"identity", "sdpa", "performer"}
    assert all(bool(job.series) == (job.cell.execution == "eager") for job in timings)
    shared = [job for job in timings if job.series]
    runs = [(series, len(list(some))) for series, some in groupby(shared, lambda job: job.series)]
    assert len(runs) == len(dict(runs)) == 3 * 2, "a mechanism and replicate each"
    assert {count for _, count in runs} == {4}
    first = [(job.cell.length, job.cell.mode) for job in shared[:4]]
    assert first == [(8, "forward"), (8, "train"), (16, "forward"), (16, "train")]
    assert not any(job.series for job in jobs if not isinstance(job.cell, EfficiencyCell))
