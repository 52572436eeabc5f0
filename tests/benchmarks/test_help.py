"""`python -m lra --help` as a person waits for it: a whole process, start to end."""

from __future__ import annotations

import subprocess
import sys
from typing import Any


def test_help(benchmark: Any) -> None:
    def run() -> str:
        command = [sys.executable, "-m", "lra", "--help"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "run" in benchmark.pedantic(run, rounds=20, warmup_rounds=2)
