"""Cells that an edit makes due: those of the edited part, and no others."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANNED = """
import json, sys
from lra.core import catalogue
from lra.core.scales import EfficiencyBlock, ErrorBlock, QualityBlock, Suite
from lra.engine.plan.suite import plan_suite
from lra.engine.plan.show import plan_show
from lra.engine.plan.spec import ShowSpec
from lra.engine.plan.verify import plan_verify
from lra.engine.plan.spec import VerifySpec
from lra.engine.plan.spec import RunSpec
from tasks.sources.data_hash import prepared_name

cache, tasks, mechanisms = sys.argv[1], tuple(sys.argv[2].split(",")), tuple(sys.argv[3:])
suite = Suite(
    name="all",
    title="All",
    quality=(QualityBlock(scale="mini", tasks=tasks),),
    efficiency=(EfficiencyBlock(scale="mini", lengths=(8,), modes=("train",), heads=(1,),
                                head_widths=(4,), beside=()),),
    error=(ErrorBlock(scale="mini", lengths=(8,), heads=(1,), head_widths=(4,)),),
)
spec = RunSpec(suite=suite, mechanisms=mechanisms, device="cpu", cache=cache)
jobs = [
    *plan_suite(spec),
    *plan_suite(
        RunSpec(suite=suite, mechanisms=mechanisms, device="cpu", cache=cache, profile=True)
    ),
    *plan_verify(VerifySpec(mechanisms=mechanisms, device="cpu", cache=cache)),
    *plan_show(ShowSpec(mechanisms=mechanisms, cache=cache)),
]
found = {}
for job in jobs:
    cell = job.cell
    kind = cell.__struct_config__.tag
    if kind == "baseline":
        found[f"baseline {cell.data.task}"] = cell.id
        file = catalogue.find("task", cell.data.task).file
        found[f"set {cell.data.task}"] = prepared_name(file, cell.data)
    elif kind != "ceiling":
        task = f" {cell.data.task}" if kind == "quality" else ""
        found[f"{kind} {cell.mechanism.name}{task}"] = cell.id
print(json.dumps(found))
"""
OWN = """
from attention_impls.kernel.performer import Performer


class Own(Performer):
    def support(self):
        return None
"""
EVERY = ("bytes", "image", "listops", "pathfinder", "recall", "retrieval", "text")
EDIT = "\nEDITED = 1\n"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    for package in ("lra", "tasks", "attention_impls"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignore)
    return tmp_path


def planned(house: Path, tasks: Iterable[str], *mechanisms: str) -> dict[str, str]:
    """The cells of a plan and the names of its sets."""
    ran = subprocess.run(
        [sys.executable, "-c", PLANNED, str(house / "cache"), ",".join(tasks), *mechanisms],
        cwd=house,
        env={**os.environ, "PYTHONPATH": str(house)},
        text=True,
        capture_output=True,
        check=True,
    )
    found: dict[str, str] = json.loads(ran.stdout)
    return found


def test_an_edit_makes_due_what_is_hashed_and_nothing_that_has_a_version(house: Path) -> None:
    """Edits, one after the other. Cells that cost minutes hold declared versions: whether an edit
    changes what they measure is for `lra identity check` to find."""
    own = house / "own.py"
    own.write_text(OWN, encoding="utf-8")
    kinds = ("efficiency", "error", "profile", "show", "verify")
    of_own = {"quality Own text", *(f"{kind} Own" for kind in kinds)}
    checked = {"verify performer", "verify Own"}
    errors, pictures = {"error performer", "error Own"}, {"show performer", "show Own"}
    steps: list[tuple[tuple[str, ...], set[str]]] = [
        (("lra/cli/run.py", "lra/report/sections/cost_table.py", "lra/store/folder.py",
          "lra/training/loop.py", "lra/measure/latency.py", "lra/measure/profile.py",
          "lra/measure/trained_attention.py"), set()),
        (("lra/verify/laws/causality.py",), checked),
        (("lra/measure/error.py",), errors),
        (("lra/measure/pattern.py",), pictures),
        (("own.py",), of_own),
    ]  # fmt: skip
    before = planned(house, ["text"], "performer", f"{own}:Own")
    assert of_own | checked | errors | pictures <= before.keys()
    for files, due in steps:
        for file in files:
            edit(house / file, "", EDIT)
        after = planned(house, ["text"], "performer", f"{own}:Own")
        assert {name for name in after if after[name] != before[name]} == due, files
        before = after


def edit(file: Path, before: str, after: str) -> None:
    """Write one text in place of another, or at the end where there is none to replace."""
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after) if before else text + after, encoding="utf-8")


def test_what_answers_without_a_model_makes_its_baseline_due_and_no_training(house: Path) -> None:
    """Edits, one after the other: the tasks whose baselines are due, and whose sets are new."""
    every = set(EVERY)
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
    before = planned(house, EVERY, "performer")
    for edits, due, made in steps:
        for file, place in edits.items():
            edit(house / "tasks" / file, place, f"{place}2 * " if place else EDIT)
        after = planned(house, EVERY, "performer")
        unlike = {name for name in after if after[name] != before[name]}
        cells = {*(f"baseline {task}" for task in due), *(f"set {task}" for task in made)}
        assert unlike == cells, edits
        before = after
