"""`python -m lra` before the command line begins: on which systems, and from which folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
USAGE = 2
NAMES = ("click", "msgspec", "torch", "random", "tempfile", "pathlib", "typing", "__future__")
"""Some are imported by the very first lines, some by a child that describes a mechanism."""

MINE = """
import torch

class Mine(torch.nn.Module):
    def forward(self, x):
        return x
"""


def python(folder: Path, *arguments: str, path: Path | None = ROOT) -> subprocess.CompletedProcess:
    """Run Python with nothing but the project, or nothing at all, on `PYTHONPATH`."""
    told = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
    told |= {"LRA_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    if path is not None:
        told["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=told, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_file_named_like_a_library_is_not_imported(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(f"raise RuntimeError('{name} of the current folder')")
    ran = python(tmp_path, "-m", "lra", "list", "tasks", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "listops" in ran.stdout


def test_a_module_of_the_current_folder_is_found_beside_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "mine.py").write_text(MINE)
    for name in ("torch", "click", "random"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('of the current folder')")
    ran = python(tmp_path, "-m", "lra", "run", "--impl", "own.mine:Mine", "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert "Mine image" in ran.stdout


def test_a_clone_runs_with_its_own_packages(tmp_path: Path) -> None:
    """Without an install, and where another package of one name is installed."""
    clone, other = tmp_path / "clone", tmp_path / "other"
    clone.mkdir()
    for room in ("lra", "tasks", "attention_impls", "results"):
        (clone / room).symlink_to(ROOT / room)
    (other / "tasks").mkdir(parents=True)
    (other / "tasks" / "__init__.py").touch()
    ran = python(clone, "-m", "lra", "list", "tasks", "--json", path=other)
    assert ran.returncode == 0, ran.stderr
    assert "listops" in ran.stdout


def test_a_current_folder_that_is_gone_is_one_line(tmp_path: Path) -> None:
    code = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, sys.argv[1:])"
    (tmp_path / "gone").mkdir()
    ran = python(tmp_path / "gone", "-c", code, sys.executable, "-m", "lra", "list", "tasks")
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    assert ran.stderr.count("\n") == 1 and ran.stderr.startswith("lra: ")


@pytest.mark.parametrize(
    ("hide", "told"),
    [("sys.modules['fcntl'] = None", "fcntl"), ("del os.fork", "os.fork")],
)
def test_a_system_without_what_cells_need_is_one_line(hide: str, told: str, tmp_path: Path) -> None:
    code = f"import os, sys; {hide}; from lra.__main__ import main; sys.exit(main())"
    ran = python(tmp_path, "-c", code, "list", "tasks")
    assert (ran.returncode, ran.stdout) == (USAGE, "")
    assert ran.stderr.count("\n") == 1 and told in ran.stderr and "Linux" in ran.stderr
    code = f"import os, sys; {hide}; import lra; lra.load('store')"
    *_, last = python(tmp_path, "-c", code).stderr.splitlines()
    assert last.startswith("lra.core.errors.LraError: ") and told in last
