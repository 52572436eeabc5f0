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
EDIT = "\nEDITED = 1\n"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    return tmp_path


def hashes(house: Path) -> dict[str, str]:
    ran = subprocess.run(
        [sys.executable, "-c", HASHES],
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
        "lra/store.py": set(),
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
