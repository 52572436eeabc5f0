"""A report of five thousand records as a person waits for it: a whole process, start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_five_thousand_records(benchmark: Any, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    store, out = str(tmp_path / "store"), str(tmp_path / "out")
    subprocess.run([sys.executable, "-m", "report.many", store], env=env, check=True)
    report = [sys.executable, "-m", "lra", "report", "--store", store, "--out", out]
    benchmark.pedantic(lambda: subprocess.run(report, env=env, check=True), rounds=3)
