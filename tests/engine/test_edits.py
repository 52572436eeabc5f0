"""What an edit makes due: cells of what was edited, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HASHES = """
import json
from pathlib import Path
from lra.core import catalogue
from lra.core.protocol import Machine, Mechanism, Rows
from lra.core.scales import ErrorBlock
from lra.engine import sources
from lra.engine.describe import Describer, Description
from lra.engine.plan_error import error_cells
from tasks.sources.data_hash import data_hash

def mechanism(name):
    target = catalogue.find("mechanism", name)
    known = Description(target, None, {}, None, _describer=Describer(Path("cache")))
    return sources.mechanism_hash(target, known, "quality")

def error():
    block = ErrorBlock(scale="mini", lengths=(8,), heads=(1,), head_widths=(4,))
    target = catalogue.find("mechanism", "performer")
    ((_, cell),) = error_cells(
        block, [target], lambda target, settings: Mechanism(name=target.name, hash="0"),
        machine=Machine(processor="", cores=1), torch="", device="cpu",
    )
    return cell.measure_hash

def task(name):
    rows = Rows(train=1, validation=1, test=1)
    file = catalogue.find("task", name).file
    return data_hash(
        file, name, length=64, rows=rows, rules="fixed", parameters={}, source=None
    )

print(json.dumps({
    **{name: mechanism(name) for name in ("linear", "linformer", "sdpa")},
    **{name: task(name) for name in ("listops", "pathfinder")},
    "timing": sources.measure_hash("efficiency", "measure/efficiency.py"),
    "training": sources.measure_hash("quality", "training/loop.py", "models/build.py"),
    "error": error(),
}))
"""
PLANNED = """
import json, sys
from lra.core.cells import BaselineCell
from lra.core.scales import QualityBlock, Suite
from lra.engine.plan import plan
from lra.engine.planning import RunSpec

tasks = ("bytes", "image", "listops", "pathfinder", "recall", "retrieval", "text")
block = QualityBlock(scale="mini", tasks=tasks)
suite = Suite(name="all", title="All", quality=(block,))
spec = RunSpec(suite=suite, mechanisms=("identity",), device="cpu", cache=sys.argv[1])
found = {}
for job in plan(spec):
    kind = "baseline" if isinstance(job.cell, BaselineCell) else "training"
    found[f"{kind} {job.cell.data.task}"] = job.cell.id
    found[f"data {job.cell.data.task}"] = job.cell.data.hash
print(json.dumps(found))
"""
EDIT = "\nEDITED = 1\n"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    return tmp_path


def hashes(house: Path, script: str = HASHES) -> dict[str, str]:
    ran = subprocess.run(
        [sys.executable, "-c", script, str(house / "cache")],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        text=True,
        capture_output=True,
        check=True,
    )
    found: dict[str, str] = json.loads(ran.stdout)
    return found


def test_an_edit_touches_what_it_is_an_edit_of(house: Path) -> None:
    edits = {
        "lra/cli/run.py": set(),
        "lra/cli/self_test.py": set(),
        "lra/report/costs/tables.py": set(),
        "lra/verdict/ratio.py": set(),
        "lra/store/folder.py": set(),
        "lra/measure/latency.py": {"timing"},
        "lra/measure/control.py": {"timing"},
        "lra/training/loop.py": {"training"},
        "lra/engine/work/data.py": {"timing", "training", "error"},
        "attention_impls/_oracle.py": {"error"},
        "tasks/listops.py": {"listops"},
        "attention_impls/kernel/linear.py": {"linear"},
        "attention_impls/lowrank/linformer.py": {"linformer"},
    }
    before = hashes(house)
    for file, touched in edits.items():
        path = house / file
        kept = path.read_text(encoding="utf-8")
        path.write_text(kept + EDIT, encoding="utf-8")
        after = hashes(house)
        assert {name for name in after if after[name] != before[name]} == touched, file
        path.write_text(kept, encoding="utf-8")
    assert hashes(house) == before


def edit(file: Path, before: str, after: str) -> None:
    """Write one text in place of another, or at the end where there is none to replace."""
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after) if before else text + after, encoding="utf-8")


def test_what_answers_without_a_model_makes_its_baseline_due_and_no_training(house: Path) -> None:
    """Edits, one after the other: the tasks whose baselines are due, and whose data is another."""
    every = {"bytes", "image", "listops", "pathfinder", "recall", "retrieval", "text"}
    steps: list[tuple[dict[str, str], set[str], set[str]]] = [
        ({"solvers/shapes_solver.py": "", "solvers/ledger_floor.py": ""},
         {"image", "bytes"}, set()),
        ({"solvers/verses_solver.py": "", "solvers/pathfinder_rule.py": ""},
         {"text", "retrieval", "pathfinder"}, set()),
        ({"recall.py": "answers[asked] = ", "solvers/shapes_rule.py": ""},
         {"recall", "image"}, set()),
        ({"sources/listops_values.py": "", "image.py": "area("}, {"listops", "image"}, set()),
        ({"sources/tables.py": "", "image.py": "picture_parts("}, set(), set()),
        ({"generators/ledger.py": ""}, {"bytes"}, {"bytes"}),
        ({"generators/shapes.py": "", "recall.py": "labels_RN = "},
         {"image", "recall"}, {"image", "recall"}),
        ({"generators/counter.py": ""}, every, every),
    ]  # fmt: skip
    before = hashes(house, PLANNED)
    for edits, due, made in steps:
        for file, place in edits.items():
            edit(house / "tasks" / file, place, f"{place}2 * " if place else EDIT)
        after = hashes(house, PLANNED)
        unlike = {name for name in after if after[name] != before[name]}
        assert unlike == {
            *(f"baseline {task}" for task in due),
            *(f"{kind} {task}" for kind in ("data", "training") for task in made),
        }, edits
        before = after
