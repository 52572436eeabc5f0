"""Prepared sets: written once, read without a copy, safe to prepare twice at once."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from set_reader import arrays, same

from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, UNASKED, Split
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.contract import Example, Part, Task, TaskConfig
from tasks.listops import ListOps, ListOpsConfig
from tasks.sources import preparing
from tasks.sources.opening import open_or_prepare

ROWS = Rows(train=40, validation=10, test=20)
SPEC = DataSpec(task="pairs", length=99, rows=ROWS)


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


def pairs():
    return Pairs(TaskConfig(), length=99)


class Asked(Task):
    """A source and a sequence whose tokens are asked, each token of two parts."""

    card = TaskCard(title="asked", source="", classes=3, vocabulary=300, inputs=2, asks="query")
    Config = TaskConfig
    token_parts = (15, 20)
    asks_of_source = False

    def generate(self, split, rows):
        pieces = [np.arange(1, n + 2, dtype=np.uint16) for n in range(2 * rows)]
        labels = [np.full(len(piece), n % 2 - 1) for n, piece in enumerate(pieces)]
        labels[2][0] = 0 if self.asks_of_source else UNASKED
        return Split.of(pieces, np.concatenate(labels), inputs=2, by_token=True)


def asked():
    return Asked(TaskConfig(), length=99)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache" / "1f3c"


@pytest.fixture
def prepared(place):
    open_or_prepare(pairs(), SPEC, None, place)
    return place


@pytest.mark.parametrize(
    "task",
    [pairs(), asked(), ListOps(ListOpsConfig(), length=64)],
    ids=["pairs", "asked", "listops"],
)
def test_a_set_is_read_as_it_was_made(place, task):
    expected = task.generated(ROWS)
    for _ in range(2):
        found = open_or_prepare(task, SPEC, None, place)
        assert all(same(split, expected.split(name)) for name, split in found)
        for fact in ("classes", "vocabulary", "length", "inputs", "parts"):
            assert getattr(found, fact) == getattr(expected, fact)


def test_a_task_that_asks_of_its_sources_is_refused(place):
    task = asked()
    task.asks_of_source = True
    with pytest.raises(DataError, match=r"train has a label at a token of a source.*mend the task"):
        open_or_prepare(task, SPEC, None, place)
    assert not place.exists()


def test_labels_of_examples_are_not_taken_for_those_of_sources(place):
    open_or_prepare(asked(), SPEC, None, place)
    changed(by_token=False)(place / "facts.json")
    with pytest.raises(DataError, match=r"other labels than train\.arrow has"):
        open_or_prepare(asked(), SPEC, None, place)


def test_source_and_labels_are_cut_to_the_length():
    tokens = (np.arange(7), np.arange(4))
    label = np.concatenate([np.full(7, UNASKED), [5, 6, 7, 8]])
    found = Asked(TaskConfig(), length=3).cut(Example("train", tokens, label))
    assert [own.tolist() for own in found.tokens] == [[0, 1, 2], [0, 1, 2]]
    assert found.label.tolist() == [UNASKED, UNASKED, UNASKED, 5, 6, 7]


def test_data_is_made_once_and_the_source_decides(place):
    task = pairs()
    for _ in range(2):
        open_or_prepare(task, SPEC, None, place)
    assert task.made == 3
    assert len(open_or_prepare(task, SPEC, "some/file", place.with_name("beef")).train) == 1
    assert sorted(path.name for path in place.parent.iterdir()) == ["1f3c", "beef"]


def test_arrays_are_views_of_the_mapped_files(prepared):
    data = open_or_prepare(pairs(), SPEC, None, prepared)
    content = (prepared / "train.arrow").read_bytes()
    for array in arrays(data.train):
        assert not array.flags.owndata and not array.flags.writeable
        assert array.tobytes() in content
        assert array.ctypes.data % array.itemsize == 0


def test_a_set_is_plain_arrow_one_row_an_example(prepared):
    with pa.memory_map(str(prepared / "test.arrow")) as source:
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
data = open_or_prepare(ListOps(ListOpsConfig(), length=64), spec, None, Path(sys.argv[1]))
print(int(data.train.tokens.sum()), "torch" in sys.modules, "datasets" in sys.modules)
"""


def test_two_processes_prepare_the_same_set_at_once(place):
    """Neither torch nor datasets is imported on the way."""
    command, house = [sys.executable, "-c", OPEN, str(place)], Path(__file__).parents[2]
    asked = {"cwd": house, "stdout": subprocess.PIPE, "text": True}
    children = [subprocess.Popen(command, **asked) for _ in range(2)]
    answers = [child.communicate()[0].split() for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert answers[0] == answers[1] == [answers[0][0], "False", "False"]
    assert list(place.parent.iterdir()) == [place]


def test_a_full_disk_is_one_line_and_keeps_what_is_whole(place, monkeypatch):
    def full(data, task, folder):
        raise OSError(28, "No space left on device")

    task = pairs()
    with monkeypatch.context() as patched:
        patched.setattr(preparing, "write_set", full)
        with pytest.raises(DataError, match=r"1f3c': No space left .*; free space"):
            open_or_prepare(task, SPEC, None, place)
    assert [path.name for path in place.parent.iterdir()] == [".1f3c.draft"]
    assert len(open_or_prepare(task, SPEC, None, place).train) == ROWS.train
    assert task.made == 3 and list(place.parent.iterdir()) == [place]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*file/1f3c'"):
        open_or_prepare(pairs(), SPEC, None, tmp_path / "file" / "1f3c")


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


TOO_MANY = {"train": 40, "validation": 10, "test": 21}


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("train.arrow", cut, r"1f3c': train.arrow has \d+ of \d+ bytes"),
        ("test.arrow", blank, "1f3c': test.arrow does not hold what was written"),
        ("validation.arrow", Path.unlink, "1f3c': validation.arrow is missing or unreadable"),
        ("facts.json", changed(format=99), "1f3c': it has format 99, not 2"),
        ("facts.json", changed(rows={"train": 3}), "1f3c': facts.json does not tell of all splits"),
        ("facts.json", changed(rows=TOO_MANY), "1f3c': test.arrow has 20 of 21 rows"),
        ("facts.json", changed(inputs=1), "1f3c': .* number of inputs than train.arrow has"),
        ("facts.json", changed(by_token=True), "1f3c': .* other labels than train.arrow has"),
        ("facts.json", cut, "1f3c' is no whole .* facts.json is missing or unreadable"),
        ("facts.json", Path.unlink, "1f3c' is no whole .* facts.json is missing or unreadable"),
    ],
)
def test_a_damaged_set_names_its_folder_and_file(prepared, file, damage, says):
    damage(prepared / file)
    with pytest.raises(DataError, match=says):
        open_or_prepare(pairs(), SPEC, None, prepared)
