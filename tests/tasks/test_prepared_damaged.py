"""Prepared sets of which a byte changed, and sets of earlier versions, which have no checksums."""

import json
import os
import shutil
from itertools import count

import numpy as np
import pytest

from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Split
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.contract import Task, TaskConfig
from tasks.listops import ListOps, ListOpsConfig
from tasks.sources.checking import check_whole
from tasks.sources.draft import drafting
from tasks.sources.facts import prepared_set, read_facts, refuse_changed
from tasks.sources.opening import open_or_prepare
from tasks.sources.parallel import generate

SPEC = DataSpec(task="listops", length=64, rows=Rows(train=40, validation=10, test=20))
_later = count(1)


def opened(folder, task=None):
    return open_or_prepare(task or ListOps(ListOpsConfig(), length=64), SPEC, None, folder)


@pytest.fixture
def folder(tmp_path):
    opened(tmp_path / "1f3c")
    return tmp_path / "1f3c"


def put(path, content):
    """Change a file, at another time than before: within a process only a new one is read again."""
    path.write_bytes(content)
    os.utime(path, ns=(0, next(_later)))


def changed(path, place, bit=0):
    content = bytearray(path.read_bytes())
    content[place] ^= 1 << bit
    put(path, content)


def without_checksums(folder):
    """A set as earlier versions made it."""
    facts = json.loads((folder / "facts.json").read_bytes())
    del facts["checksums"], facts["checksum"], facts["key"]
    (folder / "facts.json").write_text(json.dumps(facts))


def place_of(array, path, row):
    """Where in a file a row of one of its buffers begins."""
    content = path.read_bytes()
    assert content.count(array.tobytes()) >= 1
    return content.index(array.tobytes()) + row * array.itemsize


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("buffer", ["tokens", "starts", "labels"])
def test_one_bit_of_a_buffer_is_damage(folder, name, buffer):
    path = folder / f"{name}.arrow"
    array = np.array(getattr(opened(folder).split(name), buffer))
    changed(path, place_of(array, path, 3))
    for read in (lambda: opened(folder), lambda: generate("listops", SPEC, folder, 1)):
        with pytest.raises(DataError, match=rf"1f3c': {name}\.arrow does not hold"):
            read()
    told = []
    check_whole(prepared_set(str(folder)), folder, told.append)
    assert [name in str(defect) for defect in told] == [True]


def test_any_bit_of_a_file_is_damage(folder):
    path, facts = folder / "validation.arrow", read_facts(folder)
    whole = path.read_bytes()
    draws = np.random.default_rng(0)
    for place in range(0, len(whole), 7):
        changed(path, place, int(draws.integers(8)))
        with pytest.raises(DataError, match=r"validation.arrow does not hold"):
            refuse_changed(facts, folder)
        put(path, whole)
    refuse_changed(facts, folder)


def test_any_digit_of_its_facts_is_damage(folder):
    path = folder / "facts.json"
    whole = path.read_bytes()
    for place in (at for at, sign in enumerate(whole) if chr(sign).isdigit()):
        changed(path, place)
        with pytest.raises(DataError, match=r"1f3c'.* (facts.json does not hold|format 3|unreada)"):
            opened(folder)
        put(path, whole)
    opened(folder)


def test_another_whole_set_in_its_folder_is_damage(folder, tmp_path):
    other = tmp_path / "2a5e"
    open_or_prepare(ListOps(ListOpsConfig(data_seed=2), length=64), SPEC, None, other)
    shutil.rmtree(folder)
    other.rename(folder)
    for read in (lambda: opened(folder), lambda: generate("listops", SPEC, folder, 1)):
        with pytest.raises(DataError, match="1f3c': it holds another set"):
            read()


def test_facts_that_are_nested_without_end_are_damage(folder):
    put(folder / "facts.json", b"[" * 100_000)
    with pytest.raises(DataError, match=r"facts\.json is missing or unreadable"):
        opened(folder)


def test_a_set_of_an_earlier_version_is_read(folder):
    found = opened(folder)
    without_checksums(folder)
    for name, split in opened(folder):
        assert np.array_equal(split.tokens, found.split(name).tokens)
    told = []
    check_whole(prepared_set(str(folder)), folder, told.append)
    assert told == []


@pytest.mark.parametrize(
    ("buffer", "value", "says"),
    [
        ("tokens", 250, r"has the token 250, outside 0 to \d\d;"),
        ("starts", 1 << 40, "has rows that do not follow each other;"),
        ("starts", -3, "has rows that do not follow each other;"),
        ("labels", 10, "has the label 10, outside 0 to 9;"),
        ("labels", -1, "has the label -1, outside 0 to 9;"),
    ],
)
def test_bounds_are_checked_where_there_is_no_checksum(folder, buffer, value, says):
    path = folder / "train.arrow"
    array = np.array(getattr(opened(folder).train, buffer))
    without_checksums(folder)
    place, content = place_of(array, path, 3), bytearray(path.read_bytes())
    content[place : place + array.itemsize] = np.array(value, dtype=array.dtype).tobytes()
    put(path, content)
    with pytest.raises(DataError, match=rf"1f3c': train.arrow {says} delete this folder"):
        opened(folder)


class Wrong(Task):
    """A task that makes what it says that it has not."""

    card = TaskCard(title="wrong", source="", classes=2, vocabulary=4)
    Config = TaskConfig

    def generate(self, split, rows):
        token, label = self.made
        return Split.of([np.full(3, token, dtype=np.uint8)] * rows, [label] * rows)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ((4, 0), "has the token 4, outside 0 to 3"),
        ((0, 2), "has the label 2, outside 0 to 1"),
    ],
)
def test_a_task_that_makes_such_data_is_to_be_mended(tmp_path, made, says):
    task = Wrong(TaskConfig(), length=64)
    task.made = made
    with pytest.raises(DataError, match=rf"^listops: train {says}; mend the task$"):
        opened(tmp_path / "1f3c", task)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("buffer", ["tokens", "lengths", "labels"])
def test_a_draft_of_which_a_byte_changed_is_begun_anew(tmp_path, buffer):
    def begun():
        return drafting(tmp_path / "set", "a", 1, lambda: None)

    row = Split.of([np.arange(5, dtype=np.uint8)], [1])
    with begun() as draft:
        draft.append("train", row)
        draft.commit()
    with begun() as draft:
        assert draft.parts == 1
    path = tmp_path / ".set.draft" / f"train.{buffer}"
    changed(path, 2)
    with begun() as draft:
        assert draft.parts == 0
        draft.append("train", row)
        draft.commit()
        assert draft.split("train").tokens.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("fact", ["classes", "vocabulary", "length", "inputs"])
@pytest.mark.parametrize("value", [0, -1, 2**40])
def test_a_size_that_no_set_has_is_damage(folder, fact, value):
    without_checksums(folder)
    path = folder / "facts.json"
    told = json.loads(path.read_bytes()) | {fact: value}
    put(path, json.dumps(told).encode())
    with pytest.raises(DataError, match=r"facts.json is .*unreadable"):
        opened(folder)


def test_a_draft_whose_journal_changed_is_begun_anew(tmp_path):
    def begun():
        return drafting(tmp_path / "set", "a", 1, lambda: None)

    def made():
        with begun() as draft:
            assert draft.parts == 0
            draft.append("train", Split.of([np.arange(5, dtype=np.uint8)], [1]))
            draft.commit()

    made()
    path = tmp_path / ".set.draft" / "journal.json"
    whole = path.read_bytes()
    assert b'"parts":1' in whole
    for content in (
        whole.replace(b'"parts":1', b'"parts":2'),
        whole.replace(b'"by_token":false', b'"by_token":true'),
        whole.partition(b"\n")[2],
        whole[:4],
        b"",
    ):
        path.write_bytes(content)
        made()
        assert path.read_bytes() == whole
    with begun() as draft:
        assert draft.parts == 1
