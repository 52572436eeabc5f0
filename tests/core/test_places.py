"""The place of an exception: in the file of whoever wrote the mechanism, not in what it calls."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lra.core import errors
from lra.core.places import place


def raised(file: Path) -> BaseException:
    with pytest.raises(Exception) as caught:
        runpy.run_path(str(file))
    return caught.value


def test_the_innermost_frame_of_a_file_and_its_siblings(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import json\n\njson.loads('')\n")
    error = raised(file)
    assert place(error, str(file)) == " (mine.py, line 3)"
    assert place(error, "json").startswith(" (decoder.py, line ")
    assert place(error) == place(error, "json")
    assert place(error, "torch") == place(ValueError(), str(file)) == ""


def test_a_file_beside_our_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    root = Path(errors.__file__).parents[2]
    file = tmp_path / "mine.py"
    file.write_text("from lra.core.findings import parse\n\nparse('n=x')\n")
    error = raised(file)
    assert place(error).startswith(" (findings.py, ")
    assert place(error, str(root / "mine.py")).startswith(" (test_places.py, ")
