"""A report of five thousand records as a person waits for it: a whole process, start to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_five_thousand_records(benchmark: Any, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])

    def run() -> None:
        command = [sys.executable, "-m", "report.many", str(tmp_path)]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)

    benchmark.pedantic(run, rounds=3)
