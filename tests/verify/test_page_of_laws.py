"""The page of laws has each law in the order of the kit, with its own words, and the exit codes of
the command."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from lra.cli.verify import command
from lra.verify.laws import LAWS
from verify.faults.dense import FAULTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verify.md"


def test_the_table_has_every_law_with_its_words() -> None:
    _, _, after = PAGE.read_text().partition("\n## Laws\n")
    table, _, _ = after.partition("\n## ")
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    assert rows == [(law.name, law.says) for law in LAWS]


def test_the_page_and_the_command_mean_the_same_by_an_exit_code() -> None:
    rows = re.findall(r"^\| (\d) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    lines = re.findall(r"^ *(\d)  (.+)$", str(command.help), re.MULTILINE)
    assert [code for code, _ in rows] == ["0", "1", "2", "3", "4"]
    assert rows == lines


def test_the_page_counts_the_planted_faults_of_each_law() -> None:
    _, _, after = PAGE.read_text().partition("\n## Planted faults\n")
    text, _, _ = after.partition("\n## ")
    assert re.findall(r"has (\d+) mechanisms", text) == [str(len(FAULTS))]
    counted = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    named = re.findall(r"`(\w+)`\s\((\d+)\)", text)
    found = [(law, int(made)) for law, made, _ in counted] + [(law, int(n)) for law, n in named]
    assert sorted(found) == sorted(Counter(law for law, _ in FAULTS.values()).items())
    alone = sum(int(number) for *_, number in counted)
    assert f"{len(FAULTS) - alone}; {alone} are caught by one law alone" in text
