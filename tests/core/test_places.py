"""The place of an exception: in the file of whoever wrote the mechanism, not in what it calls."""

import runpy
from pathlib import Path

import pytest

from lra.core import errors
from lra.core.traceback_place import place_of

PARSE = "from lra.core.findings import parse\n\nparse('n=x')\n"
MERGE = "from attention_impls.contract import merge_heads\n\nmerge_heads(None)\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "mine.py"


def raised(file, source):
    file.write_text(source)
    with pytest.raises(Exception) as caught:
        runpy.run_path(str(file))
    return caught.value


def test_the_innermost_frame_of_a_file_and_its_siblings(file):
    error = raised(file, "import json\n\njson.loads('')\n")
    assert place_of(error, str(file)) == " (mine.py, line 3)"
    assert place_of(error, "json").startswith(" (decoder.py, line ")
    assert place_of(error) == place_of(error, "json")
    assert place_of(error, "torch") == place_of(ValueError(), str(file)) == ""


@pytest.mark.parametrize(("source", "theirs"), [(PARSE, "findings"), (MERGE, "tensors")])
def test_a_file_beside_our_folder_is_not_taken_for_ours(file, source, theirs):
    error = raised(file, source)
    assert place_of(error).startswith(f" ({theirs}.py, ")
    beside = Path(errors.__file__).parents[2] / "mine.py"
    assert place_of(error, str(beside)).startswith(" (test_places.py, ")
    assert place_of(error, str(file)) == " (mine.py, line 3)"


def test_a_module_of_ours_is_its_own_file_alone(file):
    error = raised(file, PARSE)
    assert place_of(error, "lra.core.findings").startswith(" (findings.py, ")
    assert place_of(error, "lra.core.errors") == ""


def test_an_environment_in_somebodys_folder_is_not_theirs(file):
    inner = file.parent / ".venv" / "lib" / "site-packages" / "other.py"
    inner.parent.mkdir(parents=True)
    inner.write_text("1 / 0\n")
    error = raised(file, f"import runpy\n\n\nrunpy.run_path({str(inner)!r})\n")
    assert place_of(error, str(file)) == " (mine.py, line 4)"
