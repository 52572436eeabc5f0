"""Somebody's own task: a file, or the name that an installed package gives it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, TINY

DEFAULT = """
[default]
length = 15
rows = { train = 200, validation = 50, test = 50 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "tests/fixtures/one_new_file/majority.py", tmp_path / "mine.py")
    (tmp_path / "tiny.toml").write_text((Path(TINY[3])).read_text() + DEFAULT)
    installed = tmp_path / "theirs-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[lra.task]\nmost = mine:Majority\n")
    return tmp_path


@pytest.mark.parametrize(("task", "name"), [("mine.py", "mine"), ("most", "most")])
def test_it_is_trained_on_and_reported(lra, folder: Path, task: str, name: str) -> None:
    asked = ["--impl", "linear", "--task", task, *TINY[:2], "--scale", "tiny.toml"]
    ran = lra("run", *asked)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"on {name}." in ran.stdout
    assert name in (folder / "reports/default/report.md").read_text()


def test_a_slip_in_the_name_of_its_table_is_told(lra, folder: Path) -> None:
    scale = (folder / "tiny.toml").read_text()
    rows = DEFAULT.replace("[default]", "[tasks.mien]")
    (folder / "tiny.toml").write_text(scale + rows)
    for asked in (
        ["run", "--impl", "linear", *TINY[:2], "--dry-run"],
        ["data", "show"],
    ):
        ran = lra(*asked, "--task", "mine.py", "--scale", "tiny.toml")
        last = ran.stderr.splitlines()[-1]
        assert ran.returncode == 2 and "[tasks.mien]" in last and "[tasks.mine]" in last
    (folder / "tiny.toml").write_text(scale + rows.replace("mien", "mine"))
    assert lra("data", "show", "--task", "mine.py", "--scale", "tiny.toml").returncode == 0


def test_a_card_that_asks_for_each_token_of_pairs_is_refused_before_a_run(
    lra, folder: Path
) -> None:
    mine = (folder / "mine.py").read_text()
    pairs = mine.replace("vocabulary=3", 'vocabulary=3, inputs=2, asks="token"')
    (folder / "mine.py").write_text(pairs)
    for asked in (["run", "--impl", "linear", *TINY[:2], "--dry-run"], ["data", "show"]):
        ran = lra(*asked, "--task", "mine.py", "--scale", "tiny.toml")
        assert ran.returncode == 2 and "Traceback" not in ran.stderr
        (line,) = ran.stderr.splitlines()
        assert "task 'mine'" in line and "inputs = 1" in line


@pytest.mark.parametrize("table", ["mine2", "mien", "text"])
def test_another_tasks_table_is_no_slip(lra, folder: Path, table: str) -> None:
    (folder / "mien.py").write_text((folder / "mine.py").read_text())
    scale = (folder / "tiny.toml").read_text()
    (folder / "tiny.toml").write_text(scale + DEFAULT.replace("[default]", f"[tasks.{table}]"))
    ran = lra("data", "show", "--task", "mine.py", "--scale", "tiny.toml")
    assert ran.returncode == 0, ran.stderr


def test_what_is_wrong_in_it_is_one_line_with_its_place(lra, folder: Path) -> None:
    file = folder / "mine.py"
    file.write_text(file.read_text().replace("keys[:, None]", "key[:, None]"))
    shown = lra("data", "show", "--task", "mine.py", "--scale", "tiny.toml")
    assert shown.returncode == 2 and "Traceback" not in shown.stderr
    last = shown.stderr.splitlines()[-1]
    assert last.startswith("lra: task 'mine': NameError: ") and last.endswith("(mine.py, line 23)")


def test_a_model_of_it_is_timed(lra, folder: Path) -> None:
    (folder / "whole.toml").write_text(
        'title = "whole"\n[[efficiency]]\nscale = "tiny.toml"\ntask = "mine.py"\nlengths = [16]\n'
        'modes = ["forward"]\nlevels = ["model"]\nheads = [1]\nhead_widths = [4]\nseconds = 0.02\n'
    )
    ran = lra("sweep", "--impl", "linear", "--suite", "whole.toml")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "linear forward 16 model: " in ran.stderr


def test_an_installed_one_is_listed(lra, folder: Path) -> None:
    listed = lra("list", "tasks", "--json")
    assert {"name": "most", "title": "Majority"}.items() <= next(
        row for row in json.loads(listed.stdout) if row["name"] == "most"
    ).items()
