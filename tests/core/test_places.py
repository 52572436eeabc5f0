"""The place of an exception: in the file of whoever wrote the mechanism, not in what it calls."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lra.core import errors
from lra.core.traceback_place import place_of


def raised(file: Path) -> BaseException:
    with pytest.raises(Exception) as caught:
        runpy.run_path(str(file))
    return caught.value


def test_the_innermost_frame_of_a_file_and_its_siblings(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import json\n\njson.loads('')\n")
    error = raised(file)
    assert place_of(error, str(file)) == " (mine.py, line 3)"
    assert place_of(error, "json").startswith(" (decoder.py, line ")
    assert place_of(error) == place_of(error, "json")
    assert place_of(error, "torch") == place_of(ValueError(), str(file)) == ""


def test_a_file_beside_our_folder_is_not_taken_for_ours(tmp_path: Path) -> None:
    root = Path(errors.__file__).parents[2]
    file = tmp_path / "mine.py"
    for source, theirs in {
        "from lra.core.findings import parse\n\nparse('n=x')\n": "findings",
        "from attention_impls.contract import merge_heads\n\nmerge_heads(None)\n": "tensors",
    }.items():
        file.write_text(source)
        error = raised(file)
        assert place_of(error).startswith(f" ({theirs}.py, ")
        assert place_of(error, str(root / "mine.py")).startswith(" (test_places.py, ")
        assert place_of(error, str(file)) == " (mine.py, line 3)"


def test_a_module_of_ours_is_its_own_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from lra.core.findings import parse\n\nparse('n=x')\n")
    error = raised(file)
    assert place_of(error, "lra.core.findings").startswith(" (findings.py, ")
    assert place_of(error, "lra.core.errors") == ""


def test_an_environment_in_somebodys_folder_is_not_theirs(tmp_path: Path) -> None:
    inner = tmp_path / ".venv" / "lib" / "site-packages" / "other.py"
    inner.parent.mkdir(parents=True)
    inner.write_text("1 / 0\n")
    file = tmp_path / "mine.py"
    file.write_text(f"import runpy\n\n\nrunpy.run_path({str(inner)!r})\n")
    assert place_of(raised(file), str(file)) == " (mine.py, line 4)"
