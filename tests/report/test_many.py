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


def rendered(out: Path) -> Path:
    """The page of many records, made by a process of its own."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-W", "error", "-m", "report.many", str(out)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    return out / "index.html"


@pytest.mark.slow
def test_five_thousand_records_are_a_page_of_less_than_five_megabytes(tmp_path: Path) -> None:
    assert len(records()) > 5000
    page = rendered(tmp_path)
    assert page.stat().st_size < MOST
    text = page.read_text(encoding="utf-8")
    # What has no room is said.
    assert "The page has room for the first 24 of 60 pictures" in text
    assert text.count("<details>") == 1
    # Every mechanism has its row in the tables, drawn and named in a figure or not.
    rows = re.findall(r"mechanism_(\d+)</th>", text)
    assert {int(number) for number in rows} == set(range(58))
