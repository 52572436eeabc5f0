"""A fault planted in a copy of the project is caught, and named, by the command that CI runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT
from .gate import FLAGS, PATIENCE, PLACES, Taken, here

REGRESSION = 1
HONEST = "out_BHNV = v_BHMV\n"
LEAK = "out_BHNV = 0.5 * (v_BHMV + v_BHMV.roll(-1, dims=2))\n"
"""Every position sees the next one."""


def test_a_causal_leak_is_a_regression_of_laws_and_losses(
    taken: Taken, environment: dict[str, str], tmp_path: Path
) -> None:
    house = tmp_path / "house"
    for package in ("lra", "tasks", "attention_impls"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, house / package, ignore=ignore)
    file = house / "attention_impls/baseline/identity.py"
    source = file.read_text()
    assert source.count(HONEST) == 1
    file.write_text(source.replace(HONEST, LEAK))
    here(taken, tmp_path)
    ran = subprocess.run(
        [sys.executable, "-m", "lra", "check", *FLAGS, *PLACES, "--out", "out", "--quiet"],
        cwd=tmp_path, env={**environment, "PYTHONPATH": str(house)}, text=True,
        capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == REGRESSION, ran.stderr
    assert ran.stdout.startswith("check failed: ")
    assert "  regression: identity, laws: causality: claimed, and not so\n" in ran.stdout
    assert "  regression: identity, image, scale check: losses: differ by up to " in ran.stdout
