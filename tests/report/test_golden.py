"""Markdown, CSV and terminal text of the sample store, to the letter.

Hashes of cells and protocols are masked. After a wanted change, write the files anew with
`python -m report.test_golden` in the folder tests, and read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lra.report import Rendered, render

from .sample import store

GOLDEN = Path(__file__).with_name("golden")


def _texts(rendered: Rendered) -> dict[str, str]:
    out, said = rendered.page.parent, rendered.findings
    texts = {name: (out / name).read_text(encoding="utf-8") for name in ("report.md", "report.csv")}
    texts["terminal.txt"] = "\n".join([said.table, "", *said.headline, ""])
    return {name: re.sub(r"\b[0-9a-f]{20}\b", "<hash>", text) for name, text in texts.items()}


@pytest.mark.parametrize("name", ["report.md", "report.csv", "terminal.txt"])
def test_text_is_as_agreed(rendered: Rendered, name: str) -> None:
    assert _texts(rendered)[name] == (GOLDEN / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        result = render(*store(), Path(folder), title="performer at mini")
        for name, text in _texts(result).items():
            (GOLDEN / name).write_text(text, encoding="utf-8", newline="\n")
