"""Prepared sets: written once, read without a copy, safe to prepare twice at once."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Split
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.contract import Example, Part, Task, TaskConfig
from tasks.listops import ListOps, ListOpsConfig
from tasks.sources import preparing
from tasks.sources.opening import open_or_prepare

ROWS = Rows(train=40, validation=10, test=20)


class Pairs(Task):
    """Two sequences an example; counts how often it had to make or read its data."""

    card = TaskCard(title="pairs", source="", classes=3, vocabulary=300, inputs=2)
    Config = TaskConfig
    made = 0

    def generate(self, split, rows):
        self.made += 1
        pieces = [np.arange(i, 2 * i + 1, dtype=np.uint16) for i in range(2 * rows)]
        return Split.of(pieces, np.arange(rows) % 3, inputs=2)

    def parts(self, source):
        token = np.ones(3, dtype=np.uint16)
        return [
            Part(split, lambda _, split=split: [Example(split, (token, token), 1)], split)
            for split in SPLITS
        ]


def spec():
    return DataSpec(task="pairs", length=99, rows=ROWS)


def pairs():
    return Pairs(TaskConfig(), length=99)


def same(one, other):
    return (
        one.tokens.dtype == other.tokens.dtype
        and np.array_equal(one.tokens, other.tokens)
        and np.array_equal(one.starts, other.starts)
        and np.array_equal(one.labels, other.labels)
        and one.inputs == other.inputs
    )


@pytest.mark.parametrize(
    "task", [pairs(), ListOps(ListOpsConfig(), length=64)], ids=["pairs", "listops"]
)
def test_what_is_read_is_what_was_made(tmp_path, task):
    expected = task.generated(ROWS)
    for _ in range(2):
        found = open_or_prepare(task, spec(), None, tmp_path / "1f3c")
        assert all(same(split, expected.split(name)) for name, split in found)
        for fact in ("classes", "vocabulary", "length", "inputs"):
            assert getattr(found, fact) == getattr(expected, fact)


def test_data_is_made_once_and_the_source_decides(tmp_path):
    task = pairs()
    open_or_prepare(task, spec(), None, tmp_path / "1f3c")
    open_or_prepare(task, spec(), None, tmp_path / "1f3c")
    assert task.made == 3
    assert len(open_or_prepare(task, spec(), "some/file", tmp_path / "beef").train) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1f3c", "beef"]


def test_arrays_are_views_of_the_mapped_files(tmp_path):
    data = open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    content = (tmp_path / "1f3c" / "train.arrow").read_bytes()
    for array in (data.train.tokens, data.train.starts, data.train.labels):
        assert not array.flags.owndata and not array.flags.writeable
        assert array.tobytes() in content
        assert array.ctypes.data % array.itemsize == 0


def test_a_set_is_plain_arrow_one_row_an_example(tmp_path):
    import pyarrow as pa

    open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    with pa.memory_map(str(tmp_path / "1f3c" / "test.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.column_names == ["tokens", "label"] and table.num_rows == 20
    assert table.column("tokens")[1].as_py() == [[2, 3, 4], [3, 4, 5, 6]]


OPEN = """
import sys
from pathlib import Path
from lra.core.protocol import DataSpec, Rows
from tasks.listops import ListOps, ListOpsConfig
from tasks.sources.opening import open_or_prepare
rows = Rows(train=3000, validation=10, test=20)
spec = DataSpec(task="listops", length=64, rows=rows)
data = open_or_prepare(ListOps(ListOpsConfig(), length=64), spec, None, Path(sys.argv[1]) / "1f3c")
print(int(data.train.tokens.sum()), "torch" in sys.modules, "datasets" in sys.modules)
"""


def test_two_processes_prepare_the_same_set_at_once(tmp_path):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(tmp_path)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    answers = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    # Neither torch nor datasets is imported on the way.
    assert answers[0] == answers[1] == [answers[0][0], "False", "False"]
    assert [path.name for path in tmp_path.iterdir()] == ["1f3c"]


def test_a_full_disk_is_one_line_and_keeps_what_is_whole(tmp_path, monkeypatch):
    def full(data, task, folder):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(preparing, "write_set", full)
        with pytest.raises(DataError, match=r"cannot write .*1f3c': No space left .*; free space"):
            open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    assert [path.name for path in tmp_path.iterdir()] == [".1f3c.draft"]
    task = pairs()
    assert len(open_or_prepare(task, spec(), None, tmp_path / "1f3c").train) == ROWS.train
    assert task.made == 0
    assert [path.name for path in tmp_path.iterdir()] == ["1f3c"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write the prepared set .*choose another folder"):
        open_or_prepare(pairs(), spec(), None, tmp_path / "file" / "1f3c")


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def blank(path):
    path.write_bytes(bytes(path.stat().st_size))


def changed(**values):
    """Damage facts.json by saying something else."""

    def change(path):
        facts = json.loads(path.read_bytes()) | values | {"checksum": None}
        path.write_text(json.dumps(facts))

    return change


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("train.arrow", cut, r"train.arrow has \d+ of \d+ bytes"),
        ("test.arrow", blank, "test.arrow does not hold what was written"),
        (
            "validation.arrow",
            lambda path: path.unlink(),
            "validation.arrow is missing or unreadable",
        ),
        ("facts.json", changed(format=99), "it has format 99, not 2"),
        ("facts.json", changed(rows={"train": 3}), "facts.json does not tell of all splits"),
        (
            "facts.json",
            changed(inputs=1),
            "facts.json says another number of inputs than train.arrow has",
        ),
        ("facts.json", changed(by_token=True), "facts.json says other labels than train.arrow has"),
    ],
)
def test_a_damaged_set_says_so_and_what_to_do(tmp_path, file, damage, says):
    open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    damage(tmp_path / "1f3c" / file)
    with pytest.raises(DataError, match=rf"1f3c': {says}; delete this folder and repeat "):
        open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")


@pytest.mark.parametrize("damage", [cut, lambda path: path.unlink()])
def test_a_set_without_facts_says_so_and_what_to_do(tmp_path, damage):
    open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    damage(tmp_path / "1f3c" / "facts.json")
    says = "is no whole prepared set: facts.json is missing or unreadable; delete the folder if it"
    with pytest.raises(DataError, match=says):
        open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")


def test_rows_that_are_not_as_many_as_the_facts_say(tmp_path):
    open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
    facts = tmp_path / "1f3c" / "facts.json"
    rows = json.loads(facts.read_bytes())["rows"]
    changed(rows={**rows, "test": rows["test"] + 1})(facts)
    with pytest.raises(
        DataError, match=rf"test.arrow has {rows['test']} of {rows['test'] + 1} rows"
    ):
        open_or_prepare(pairs(), spec(), None, tmp_path / "1f3c")
