"""Edits that no check has looked at: which there are, and whose cells they set apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lra.core.catalogue import expand
from lra.core.cells import BaselineCell, EfficiencyCell, ProfileCell, QualityCell
from lra.core.errors import LraError
from lra.core.scales import EfficiencyBlock, ErrorBlock, QualityBlock, Suite
from lra.engine.gate.revision import HOME
from lra.engine.plan.spec import RunSpec
from lra.engine.plan.suite import plan_suite
from lra.identity import lock
from lra.identity.check import Check
from lra.identity.edits import unchecked_edits
from lra.identity.lock import Lock
from lra.identity.sources import hashes, units
from tests.identity.toy import FILE, SOURCE, git

OTHER = "tasks/newest.py"


@pytest.fixture
def clone(tree: Callable[[str], Path]) -> Path:
    root = tree(SOURCE)
    git(root, "init", "--quiet")
    lock.write(root, Lock(sources=hashes(units(root))))
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "all")
    return root


def test_no_mechanism_imports_another() -> None:
    """Or an edit of one would have to set apart the cells of the other."""
    found = units(HOME)
    own = {target.module.replace(".", "/") for target in expand("mechanism", ["all"])}
    origins = {unit.origin.replace(":", "/") for name, unit in found.items() if "impls" in name}
    assert own and not {o for o in origins if o in own or o.rpartition("/")[0] in own}


def test_an_edit_is_unchecked_until_the_lock_knows_it(clone: Path) -> None:
    assert unchecked_edits(clone) == {}
    (clone / FILE).write_text(SOURCE.replace("x * HALF", "x / HALF"))
    halved = unchecked_edits(clone)
    assert halved.keys() == {FILE}
    (clone / FILE).write_text(SOURCE.replace("x * HALF", "x + HALF"))
    assert unchecked_edits(clone).keys() == {FILE} and unchecked_edits(clone) != halved
    git(clone, "commit", "--all", "--quiet", "--message", "unchecked")
    assert unchecked_edits(clone).keys() == {FILE}
    lock.write(clone, Lock(sources=hashes(units(clone))))
    assert unchecked_edits(clone) == {}


@pytest.mark.parametrize("text", [SOURCE.replace('"""Mix."""', '"""Stir."""'), f"# A\n{SOURCE}"])
def test_words_are_no_edit(clone: Path, text: str) -> None:
    (clone / FILE).write_text(text)
    assert unchecked_edits(clone) == {}


def test_new_and_lost_files_are_edits(clone: Path) -> None:
    (clone / "tasks").mkdir()
    (clone / OTHER).write_text("ROWS = 3\n")
    (clone / "tasks" / "notes.txt").write_text("none of Python's")
    (clone / FILE).unlink()
    assert unchecked_edits(clone).keys() == {FILE, OTHER}


def test_outside_a_clone_nothing_is_edited(tree: Callable[[str], Path]) -> None:
    assert unchecked_edits(tree(SOURCE)) == {}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


SUITE = Suite(
    name="all", title="All",
    quality=(QualityBlock(scale="mini", tasks=("text", "listops")),),
    efficiency=(EfficiencyBlock(scale="mini", lengths=(8,), modes=("train",), heads=(1,),
                                head_widths=(4,), beside=()),),
    error=(ErrorBlock(scale="mini", lengths=(8,), heads=(1,), head_widths=(4,)),),
)  # fmt: skip


OF_PERFORMER = {"performer", "performer text", "performer listops"}
EVERY = {*OF_PERFORMER, "linear", "linear text", "linear listops", "baseline text",
         "baseline listops"}  # fmt: skip


@pytest.mark.parametrize(
    ("file", "apart"),
    [
        ("lra/training/loop.py", EVERY),
        ("tasks/text.py", EVERY),
        ("attention_impls/kernel/newest.py", EVERY),
        ("attention_impls/kernel/performer.py", OF_PERFORMER),
        ("attention_impls/pattern/bigbird.py", set()),
    ],
)
def test_cells_that_an_edit_may_touch_stand_apart(file: str, apart: set[str], cache: Path) -> None:
    spec = RunSpec(suite=SUITE, mechanisms=("linear", "performer"), device="cpu", cache=str(cache))
    plain = {_name(job.cell): job.cell.id for job in plan_suite(spec)}
    for edited in ("a", "b"):
        after = {
            _name(job.cell): job.cell.id
            for job in plan_suite(msgspec.structs.replace(spec, edits={file: edited}))
        }
        assert {name for name in plain if plain[name] != after[name]} == apart
    assert {"linear", "performer text"} < plain.keys()


def _name(cell: object) -> str:
    match cell:
        case QualityCell():
            return f"{cell.mechanism.name} {cell.data.task}"
        case EfficiencyCell() | ProfileCell():
            return cell.mechanism.name
        case BaselineCell():
            return f"baseline {cell.data.task}"
    return f"{type(cell).__name__} {cell}"


def test_a_file_that_is_half_written_is_an_edit(clone: Path) -> None:
    (clone / FILE).write_text("def broken(:")
    (clone / "tasks").mkdir()
    (clone / OTHER).write_bytes(b"\xff\xfe")
    assert unchecked_edits(clone).keys() == {FILE, OTHER}
    with pytest.raises(LraError, match="is no Python"):
        Check(clone)
