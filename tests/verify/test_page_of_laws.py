"""The page of laws has each law in the order of the kit, with its own words."""

from __future__ import annotations

import re
from pathlib import Path

from lra.verify.laws import LAWS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"


def test_the_table_has_every_law_with_its_words() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(law.name, law.says) for law in LAWS]
