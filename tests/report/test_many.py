"""Five thousand records in one page, which a browser still opens at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .many import records

ROOT = Path(__file__).resolve().parents[2]
MOST = 5_000_000
"""Bytes of the page."""


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two reports of one store of many records, each by a process with hashes of its own."""
    folder = tmp_path_factory.mktemp("many")
    python = [sys.executable, "-W", "error", "-m"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    subprocess.run([*python, "report.many", str(folder / "store")], env=env, check=True)
    reports = [folder / "first", folder / "second"]
    for seed, out in enumerate(reports):
        command = [*python, "lra", "report", "--store", str(folder / "store"), "--out", str(out)]
        subprocess.run(command, env={**env, "PYTHONHASHSEED": str(seed)}, check=True)
    return reports


@pytest.mark.slow
def test_five_thousand_records_are_a_page_of_less_than_five_megabytes(twice: list[Path]) -> None:
    assert len(records()) > 5000
    page = twice[0] / "index.html"
    assert page.stat().st_size < MOST
    text = page.read_text(encoding="utf-8")
    # Every mechanism has its row in the tables, drawn and named in a figure or not.
    rows = re.findall(r"mechanism_(\d+)</a></th>", text)
    assert {int(number) for number in rows} == set(range(58))


@pytest.mark.slow
def test_every_file_is_the_same_from_process_to_process(twice: list[Path]) -> None:
    first, second = ({file.relative_to(out): file for file in out.rglob("*.*")} for out in twice)
    assert first.keys() == second.keys()
    assert [n for n, file in first.items() if file.read_bytes() != second[n].read_bytes()] == []
