"""The path in docs/architecture.md is the code's: each file is reached from one before it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_each_file_of_the_path_is_named_by_an_earlier_one() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    part = page[page.index("## From flags to record") : page.index("## From record to page")]
    path = re.findall(r"^\d+\. `([\w/]+)\.py`", part, re.M)
    assert 1 < len(path) <= 12
    sources = [(ROOT / f"{file}.py").read_text(encoding="utf-8") for file in path]
    for number, file in enumerate(path[1:], 1):
        package, _, stem = file.replace("/", ".").rpartition(".")
        named = re.compile(
            rf"{package}\.{stem}\b|from {package} import .*\b{stem}\b|{package}\.\{{|"
            # A package that offers the file's one class.
            rf"from {package} import {'Store' if stem == 'folder' else stem}\b"
        )
        assert any(named.search(source) for source in sources[:number]), f"nobody names {file}"


def test_files_and_folders_on_the_page_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:lra|tasks|attention_impls)[\w/.]*)`", page):
        assert (ROOT / name).exists(), name
