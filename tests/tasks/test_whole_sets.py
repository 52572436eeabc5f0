"""A real source prepared once, used at any length, known by its facts, and refused elsewhere."""

import json
from pathlib import Path

import numpy as np
import pytest
from pathfinder_forms import EASY, HARD, array, below, level_files, write_folder, write_zip
from review_sets import FILE, hashed, opened, prepare, review, text, write_reviews
from set_reader import ALL, read_set, refused
from set_reader import same as same_split

import lra.core.hashing
import tasks.sources.data_hash
from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Dataset, Split
from lra.core.protocol import DataSpec, Rows
from tasks.bytes import Bytes, BytesConfig
from tasks.contract import Example, Part, Task, TaskConfig
from tasks.listops import ListOps, ListOpsConfig
from tasks.pathfinder import Pathfinder, PathfinderConfig
from tasks.sources.data_hash import content_hash, source_kind
from tasks.sources.facts import read_facts
from tasks.sources.opening import open_or_prepare
from tasks.sources.prepared import buffers_hash
from tasks.sources.tables import document_tokens
from tasks.sources.whole_sets import prepare_whole
from tasks.text import Text, TextConfig


@pytest.fixture
def reviews(tmp_path):
    return write_reviews(tmp_path)


@pytest.fixture
def folder(reviews, tmp_path):
    """The reviews' prepared set."""
    assert prepare(reviews, tmp_path / "set")
    return tmp_path / "set"


def same(one, other):
    return all(same_split(split, other.split(name)) for name, split in one)


def open_set(task, source, place, rows=ALL):
    spec = DataSpec(task=task.name, hash="a", length=task.length, rows=rows, rules=task.rules)
    return open_or_prepare(task, spec, str(source), place)


def test_it_is_used_at_two_lengths_and_gives_what_the_source_gives(reviews, folder, tmp_path):
    assert not prepare(reviews, folder)
    cache, again = tmp_path / "cache", tmp_path / "again"
    again.mkdir()
    for file in tmp_path.glob("r_*.csv"):
        file.rename(again / file.name)
    few = Rows(train=100, validation=9, test=20)
    for length, rows in ((1000, ALL), (1000, few), (12, few), (12, ALL)):
        found = opened(folder, cache, text(length), rows)
        assert found.length == length and found.classes == 2
        limit = min(length, read_facts(folder).length)
        assert max(split.lengths.max() for _, split in found) <= limit
        # Where nothing is cut, the set's own files are mapped.
        copies = list(cache.iterdir()) if cache.is_dir() else []
        assert len(copies) == (length == 12) + (length == 12 and rows == ALL)
        assert not found.train.tokens.flags.owndata
        assert same(found, read_set(text(length), again, rows))


def test_facts_say_what_it_is(folder):
    facts = json.loads((folder / "facts.json").read_text())
    assert facts["rows"]["test"] == 60 and sum(facts["rows"].values()) == 360
    assert facts["length"] == max(len(review(i)) for i in range(360))
    assert (facts["task"], facts["origin"]["rules"]) == ("text", "fixed")
    assert facts["origin"]["source"] == source_kind(str(folder)) == "file"
    for name in SPLITS:
        file = folder / f"{name}.arrow"
        assert facts["bytes"][name] == file.stat().st_size
        assert lra.core.hashing.file_hash(file) == facts["origin"]["sha256"][name][:20]


@pytest.mark.parametrize("split", SPLITS)
def test_its_length_is_that_of_its_longest_row_in_whichever_split(tmp_path, split):
    for name in SPLITS:
        longest = 30 if name == split else 20
        (tmp_path / f"r_{name}.csv").write_text(f"text,label\n{'a' * longest},0\nfine,1\n")
    prepare(tmp_path / "r_train.csv", tmp_path / "set")
    assert read_facts(tmp_path / "set").length == 30
    for name, rows in opened(tmp_path / "set", tmp_path / "cache", text(25)):
        assert rows.lengths.max() == (25 if name == split else 20)


def test_its_hash_is_that_of_its_facts_wherever_it_lies(reviews, folder, tmp_path, monkeypatch):
    first = hashed(folder)
    prepare(reviews, tmp_path / "two")
    assert first == hashed(tmp_path / "two")
    assert len({first, hashed(folder, length=9), hashed(reviews)}) == 3
    with monkeypatch.context() as patched:
        patched.delattr(tasks.sources.data_hash, "file_hash")
        assert hashed(folder) == first
    reviews.write_text(reviews.read_text().replace("Film 7", "Film seven"))
    prepare(reviews, tmp_path / "three")
    assert hashed(tmp_path / "three") != first


LISTOPS = ListOps(ListOpsConfig(), length=64)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (LISTOPS, r"^'.*set' is a prepared set of text, not of listops"),
        (text(rules="lra2021"), r"^'.*set' was prepared under the rules fixed, not lra2021"),
    ],
)
def test_another_task_and_other_rules_are_refused_before_and_while_opening(
    folder, tmp_path, task, says
):
    asked = {"length": 64, "rules": task.rules, "parameters": {}}
    refused(says, lambda: content_hash(str(folder), task.name, **asked))
    refused(says, open_set, task, folder, tmp_path / "a")


def bytes_of(length):
    return Bytes(BytesConfig(), length=length)


@pytest.fixture
def alphabet(tmp_path):
    (tmp_path / "a.txt").write_bytes(bytes(range(97, 117)) * 40)
    return str(tmp_path / "a.txt")


def test_a_set_that_cannot_be_cut_is_refused_at_another_length(alphabet, tmp_path):
    folder = tmp_path / "set"
    prepare_whole(bytes_of(16), "bytes", FILE, alphabet, folder)
    found = open_set(bytes_of(16), folder, tmp_path / "a")
    assert same(found, read_set(bytes_of(16), alphabet)) and found.train.by_token
    few = Rows(train=2, validation=1, test=1)
    first = open_set(bytes_of(16), folder, tmp_path / "b", few).train
    assert np.array_equal(first.labels, found.train.labels[:32])
    says = "sequences of 16 tokens, .* of 8"
    refused(says, open_set, bytes_of(8), folder, tmp_path / "c")


def test_a_changed_source_or_other_rules_do_not_replace_it(reviews, folder, tmp_path, monkeypatch):
    refused("another source", prepare, reviews, folder, text(rules="lra2021"))
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.whole_sets.readers_hash", lambda file: "another")
        refused("other code", prepare, reviews, folder)
    refused("holds a set of text", prepare_whole, text(), "theirs", FILE, str(reviews), folder)
    (tmp_path / "empty").mkdir()
    refused("is no prepared set", prepare, reviews, tmp_path)
    refused("empty' is empty", prepare, reviews, tmp_path / "empty")
    refused("r_train.csv' is a file", prepare, reviews, reviews)
    refused("set' is prepared already", prepare, folder, tmp_path / "again")


def pathfinder(paddles):
    return Pathfinder(PathfinderConfig(contour_length=paddles), length=1024)


def test_another_length_or_level_does_not_replace_a_set_that_cannot_be_cut(alphabet, tmp_path):
    # A level is taken whatever it is said to be.
    level = write_folder(tmp_path / "images", level_files(HARD))
    for source, one, other in (
        (alphabet, bytes_of(16), bytes_of(8)),
        (str(level), pathfinder(14), pathfinder(6)),
    ):
        folder = tmp_path / one.name
        assert prepare_whole(one, one.name, FILE, source, folder)
        assert not prepare_whole(one, one.name, FILE, source, folder)
        refused("another source", prepare_whole, other, one.name, FILE, source, folder)


@pytest.mark.parametrize("changed", ["tokens", "starts", "labels"])
def test_all_that_a_set_holds_is_in_its_hash(changed):
    arrays = {
        "tokens": np.array([1, 2, 3, 4], np.uint8),
        "starts": np.array([0, 2, 4], np.int64),
        "labels": np.array([0, 1], np.int64),
    }
    other = {name: array.copy() for name, array in arrays.items()}
    other[changed][1] += 1

    def hash_of(held):
        split = Split(**held, inputs=1, by_token=False)
        data = Dataset(split, split, split, classes=3, vocabulary=9, length=4, inputs=1)
        return buffers_hash(data, "text", "fixed")

    assert hash_of(arrays) == hash_of(dict(arrays)) != hash_of(other)


class Marked(Task):
    """A task from elsewhere: sequences that may be cut, with a label for each token."""

    card = TaskCard(title="marked", source="", classes=9, vocabulary=256, asks="token")
    Config = TaskConfig

    def generate(self, split, rows):
        raise NotImplementedError

    def parts(self, source):
        def examples(on_defect):
            for row in range(30):
                tokens = np.arange(1 + row % 7, dtype=np.uint8) + row
                yield Example(SPLITS[row % 3], (tokens,), (tokens % 9).astype(np.int16))

        return [Part("all", examples)]


@pytest.mark.parametrize("at_once", [2, 3, 1000])
@pytest.mark.parametrize("prepared", [False, True])
def test_labels_of_tokens_are_cut_with_them(alphabet, tmp_path, monkeypatch, prepared, at_once):
    monkeypatch.setattr("tasks.sources.preparing._ROWS_AT_ONCE", at_once)
    whole, shorter = (Marked(TaskConfig(), length=length) for length in (7, 4))
    if prepared:
        prepare_whole(whole, whole.name, FILE, alphabet, tmp_path / "set")
    data = read_set(shorter, tmp_path / "set" if prepared else alphabet)
    for place, (_, split) in enumerate(data):
        rows = range(place, 30, 3)
        assert split.lengths.ravel().tolist() == [min(4, 1 + row % 7) for row in rows]
        firsts = [split.sequence(i)[0] for i in range(len(split))]
        assert firsts == list(rows) and split.by_token
        assert np.array_equal(split.labels, split.tokens % 9)


def test_a_set_that_another_process_put_there_meanwhile_is_looked_at(
    reviews, tmp_path, monkeypatch
):
    prepare(reviews, tmp_path / "theirs", text(rules="lra2021"))

    def theirs(*_, **__):
        (tmp_path / "theirs").rename(tmp_path / "set")

    monkeypatch.setattr("tasks.sources.whole_sets.make_set", theirs)
    refused("another source", prepare, reviews, tmp_path / "set")


def test_settings_of_a_generator_do_not_count(reviews, folder):
    assert not prepare(reviews, folder, Text(TextConfig(astray_percent=3), length=77))


@pytest.mark.parametrize("change", ["source", "readers"])
def test_a_source_or_readers_that_changed_while_a_draft_waits_begin_anew(
    reviews, tmp_path, monkeypatch, change
):
    def full(data, task, folder):
        raise OSError(28, "No space left on device")

    folder = tmp_path / "set"
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.preparing.write_set", full)
        if change == "readers":
            path = "tasks.sources.labelled_text.document_tokens"
            patched.setattr(path, lambda content: document_tokens(content[:3]))
            patched.setattr("tasks.sources.whole_sets.readers_hash", lambda file: "another")
        refused("No space left on device", prepare, reviews, folder)
    if change == "source":
        reviews.write_text(reviews.read_text().replace("Film 7", "Film seven"))
    prepare(reviews, folder)
    assert same(open_set(text(), folder, tmp_path / "a"), read_set(text(), reviews))


def test_a_source_without_rows_for_a_split(reviews, tmp_path):
    (tmp_path / "r_test.csv").write_text("text,label\n")
    refused(r"^'.*r_train.csv' has no rows for test", prepare, reviews, tmp_path / "set")
    assert not list(tmp_path.glob(".*.draft"))


def test_the_share_of_a_run_is_no_source(reviews, tmp_path):
    opened(reviews, tmp_path / "cache", text())
    refused("one run", hashed, next((tmp_path / "cache").iterdir()))


LEVELS = {
    "folder": (14, lambda root: write_folder(root / "images", level_files(HARD))),
    "named folder": (6, lambda root: write_folder(root / EASY, level_files(EASY))),
    "zip": (6, lambda root: write_zip(root / "set.zip", below(EASY, level_files(EASY)))),
    "described": (6, lambda root: write_folder(root / "images", described())),
    "described in arrays": (6, lambda root: write_folder(root / "images", described(array))),
}


def described(metadata=None):
    """An easy level of which nothing but its metadata says so."""
    files = level_files(EASY)
    for name, held in files.items():
        if name.startswith("metadata/"):
            lines = held.decode().replace(" 14 ", " 6 ")
            files[name] = metadata(lines.splitlines()) if metadata else lines.encode()
    return files


@pytest.mark.parametrize("form", LEVELS)
def test_a_level_of_pathfinder_is_known_by_what_it_is(tmp_path, form):
    paddles, write = LEVELS[form]
    source, file = str(write(tmp_path)), Path(tasks.pathfinder.__file__)
    prepare_whole(pathfinder(None), "pathfinder", file, source, tmp_path / "set")
    assert read_facts(tmp_path / "set").origin.level == paddles

    def hashed(paddles):
        asked = {"length": 1024, "rules": "fixed", "parameters": {"contour_length": paddles}}
        return content_hash(str(tmp_path / "set"), "pathfinder", **asked)

    other = 20 - paddles
    hashed(None if paddles == 14 else paddles)
    says = f"set' holds paths of {paddles} paddles, not of {other};"
    refused(says, hashed, None if other == 14 else other)
