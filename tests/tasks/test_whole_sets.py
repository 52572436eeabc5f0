"""A real source prepared once, used at any length, known by its facts, and refused elsewhere."""

import json

import numpy as np
import pytest
from pathfinder_forms import HARD, level_files, write_folder
from review_sets import ALL, FILE, hashed, opened, prepare, review, text, write_reviews
from set_reader import read_set

import lra.core.hashing
import tasks.sources.data_hash
from lra.core.cards import TaskCard
from lra.core.dataset import SPLITS, Dataset, Split
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.bytes import Bytes, BytesConfig
from tasks.contract import Example, Part, Task, TaskConfig
from tasks.listops import ListOps, ListOpsConfig
from tasks.pathfinder import Pathfinder, PathfinderConfig
from tasks.sources.data_hash import content_hash, source_kind
from tasks.sources.documents import document_tokens
from tasks.sources.facts import read_facts
from tasks.sources.opening import open_or_prepare
from tasks.sources.prepared import buffers_hash
from tasks.sources.whole_sets import prepare_whole
from tasks.text import Text, TextConfig


@pytest.fixture
def reviews(tmp_path):
    return write_reviews(tmp_path)


def same(one, other):
    return all(
        np.array_equal(split.tokens, other.split(name).tokens)
        and np.array_equal(split.starts, other.split(name).starts)
        and np.array_equal(split.labels, other.split(name).labels)
        for name, split in one
    )


def test_it_is_used_at_two_lengths_and_gives_what_the_source_gives(reviews, tmp_path):
    folder, cache = tmp_path / "set", tmp_path / "cache"
    assert prepare(reviews, folder) and not prepare(reviews, folder)
    reviews.unlink()
    few = Rows(train=100, validation=9, test=20)
    reviews_again = tmp_path / "again"
    for length, rows in ((1000, ALL), (1000, few), (12, few), (12, ALL)):
        found = opened(folder, cache, text(length), rows)
        assert found.length == length and found.classes == 2
        limit = min(length, read_facts(folder).length)
        assert max(split.lengths.max() for _, split in found) <= limit
        # Where nothing is cut, the set's own files are mapped.
        copies = list(cache.iterdir()) if cache.is_dir() else []
        assert len(copies) == (length == 12) + (length == 12 and rows == ALL)
        assert not found.train.tokens.flags.owndata
        assert same(found, expected_of(reviews_again, length, rows))


def expected_of(folder, length, rows):
    folder.mkdir(exist_ok=True)
    for word, numbers in (("train", range(300)), ("test", range(300, 360))):
        lines = ["text,label", *(f"{review(i)},{i % 2}" for i in numbers)]
        (folder / f"r_{word}.csv").write_text("\n".join(lines) + "\n")
    return read_set(text(length), folder, rows)


def test_facts_say_what_it_is(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    facts = json.loads((tmp_path / "set" / "facts.json").read_text())
    assert facts["rows"]["test"] == 60 and sum(facts["rows"].values()) == 360
    assert facts["length"] == max(len(review(i)) for i in range(360))
    assert (facts["task"], facts["origin"]["rules"]) == ("text", "fixed")
    assert facts["origin"]["source"] == source_kind(str(tmp_path / "set")) == "file"
    for name in SPLITS:
        file = tmp_path / "set" / f"{name}.arrow"
        assert facts["bytes"][name] == file.stat().st_size
        assert lra.core.hashing.file_hash(file) == facts["origin"]["sha256"][name][:20]


@pytest.mark.parametrize("split", SPLITS)
def test_its_length_is_that_of_its_longest_row_in_whichever_split(tmp_path, split):
    for name in SPLITS:
        longest = 30 if name == split else 20
        (tmp_path / f"r_{name}.csv").write_text(f"text,label\n{'a' * longest},0\nfine,1\n")
    prepare(tmp_path / "r_train.csv", tmp_path / "set")
    assert read_facts(tmp_path / "set").length == 30
    found = opened(tmp_path / "set", tmp_path / "cache", text(25))
    assert {name: int(rows.lengths.max()) for name, rows in found} == {
        name: 25 if name == split else 20 for name in SPLITS
    }


def test_its_hash_is_that_of_its_facts_wherever_it_lies(reviews, tmp_path, monkeypatch):
    for name in ("one", "two"):
        prepare(reviews, tmp_path / name)
    first = hashed(tmp_path / "one")
    assert first == hashed(tmp_path / "two")
    assert len({first, hashed(tmp_path / "one", length=9), hashed(reviews)}) == 3

    def read(path):
        raise AssertionError("read again")

    monkeypatch.setattr(tasks.sources.data_hash, "file_hash", read)
    assert hashed(tmp_path / "one") == first
    reviews.write_text(reviews.read_text().replace("Film 7", "Film seven"))
    monkeypatch.undo()
    prepare(reviews, tmp_path / "three")
    assert hashed(tmp_path / "three") != first


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (
            ListOps(ListOpsConfig(), length=64),
            r"^'.*set' is a prepared set of text, not of listops; give it to text$",
        ),
        (
            text(rules="lra2021"),
            r"^'.*set' was prepared under the rules fixed, not lra2021; prepare it again "
            r"with --rules lra2021 and --out ANOTHER_FOLDER$",
        ),
    ],
)
def test_another_task_and_other_rules_are_refused_before_and_while_opening(
    reviews, tmp_path, task, says
):
    prepare(reviews, tmp_path / "set")
    source = str(tmp_path / "set")
    with pytest.raises(DataError, match=says):
        content_hash(source, task.name, length=64, rules=task.rules, parameters={})
    spec = DataSpec(task=task.name, hash="a", length=64, rows=ALL, rules=task.rules)
    with pytest.raises(DataError, match=says):
        open_or_prepare(task, spec, source, tmp_path / "a")


def test_what_cannot_be_cut_is_refused_at_another_length(tmp_path):
    (tmp_path / "a.txt").write_bytes(bytes(range(97, 117)) * 40)
    task = Bytes(BytesConfig(), length=16)
    source, folder = str(tmp_path / "a.txt"), tmp_path / "set"
    prepare_whole(task, "bytes", FILE, source, folder)
    spec = DataSpec(task="bytes", hash="a", length=16, rows=ALL)
    found = open_or_prepare(task, spec, str(folder), tmp_path / "a")
    assert same(found, read_set(task, source, ALL)) and found.train.by_token
    few = DataSpec(task="bytes", hash="b", length=16, rows=Rows(train=2, validation=1, test=1))
    first = open_or_prepare(task, few, str(folder), tmp_path / "b").train
    assert np.array_equal(first.labels, found.train.labels[:32])
    with pytest.raises(DataError, match=r"sequences of 16 tokens, which cannot be cut to .* of 8"):
        open_or_prepare(Bytes(BytesConfig(), length=8), spec, str(folder), tmp_path / "c")


def test_a_changed_source_or_other_rules_do_not_replace_it(reviews, tmp_path, monkeypatch):
    folder = tmp_path / "set"
    prepare(reviews, folder)
    with pytest.raises(DataError, match=r"holds a set of another source or other rules; remove"):
        prepare(reviews, folder, text(rules="lra2021"))
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.whole_sets.readers_hash", lambda file: "another")
        with pytest.raises(DataError, match=r"holds a set that other code has read; remove it"):
            prepare(reviews, folder)
    with pytest.raises(DataError, match=r"holds a set of text; remove it .* or give --out"):
        prepare_whole(text(), "theirs", FILE, str(reviews), folder)
    with pytest.raises(DataError, match=r"is no prepared set; give --out a folder that is not"):
        prepare(reviews, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty' is empty; give --out"):
        prepare(reviews, tmp_path / "empty")
    with pytest.raises(DataError, match=r"r_train.csv' is a file; give --out a folder that is"):
        prepare(reviews, reviews)


def test_another_length_or_level_does_not_replace_what_cannot_be_cut(tmp_path):
    (tmp_path / "a.txt").write_bytes(bytes(range(97, 117)) * 40)
    level = write_folder(tmp_path / "images", level_files(HARD))
    for source, named, one, other in (
        (tmp_path / "a.txt", "bytes", *(Bytes(BytesConfig(), length=n) for n in (16, 8))),
        # A level is taken whatever it is said to be.
        (
            level,
            "pathfinder",
            *(Pathfinder(PathfinderConfig(contour_length=n), length=1024) for n in (14, 6)),
        ),
    ):
        folder = tmp_path / named
        assert prepare_whole(one, named, FILE, str(source), folder)
        assert not prepare_whole(one, named, FILE, str(source), folder)
        with pytest.raises(DataError, match=r"holds a set of another source or other rules; rem"):
            prepare_whole(other, named, FILE, str(source), folder)


@pytest.mark.parametrize("changed", ["tokens", "starts", "labels"])
def test_all_that_a_set_holds_is_in_its_hash(changed):
    arrays = {
        "tokens": np.array([1, 2, 3, 4], np.uint8),
        "starts": np.array([0, 2, 4], np.int64),
        "labels": np.array([0, 1], np.int64),
    }
    other = {name: array.copy() for name, array in arrays.items()}
    other[changed][1] += 1

    def told(held):
        split = Split(held["tokens"], held["starts"], held["labels"], 1, False)
        data = Dataset(split, split, split, classes=3, vocabulary=9, length=4, inputs=1)
        return buffers_hash(data, "text", "fixed")

    assert told(arrays) == told(dict(arrays)) != told(other)


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
def test_labels_of_tokens_are_cut_with_them(tmp_path, monkeypatch, prepared, at_once):
    monkeypatch.setattr("tasks.sources.preparing._ROWS_AT_ONCE", at_once)
    source = tmp_path / "a.txt"
    source.write_text("read elsewhere")
    whole, shorter = (Marked(TaskConfig(), length=length) for length in (7, 4))
    if prepared:
        prepare_whole(whole, whole.name, FILE, str(source), tmp_path / "set")
        source = tmp_path / "set"
    data = read_set(shorter, source, ALL)
    for place, (_, split) in enumerate(data):
        rows = range(place, 30, 3)
        assert split.lengths.ravel().tolist() == [min(4, 1 + row % 7) for row in rows]
        firsts = [split.sequence(i)[0] for i in range(len(split))]
        assert firsts == list(rows) and split.by_token
        assert np.array_equal(split.labels, split.tokens % 9)


def test_what_is_prepared_is_not_prepared_again(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    with pytest.raises(DataError, match=r"set' is prepared already; give it to --data as it is"):
        prepare(tmp_path / "set", tmp_path / "again")


def test_what_another_process_put_there_meanwhile_is_looked_at(reviews, tmp_path, monkeypatch):
    prepare(reviews, tmp_path / "theirs", text(rules="lra2021"))

    def theirs(*_, **__):
        (tmp_path / "theirs").rename(tmp_path / "set")

    monkeypatch.setattr("tasks.sources.whole_sets.make_set", theirs)
    with pytest.raises(DataError, match=r"holds a set of another source or other rules; remove"):
        prepare(reviews, tmp_path / "set")


def test_settings_of_a_generator_do_not_count(reviews, tmp_path):
    prepare(reviews, tmp_path / "set")
    other = Text(TextConfig(astray_percent=3), length=77)
    assert not prepare(reviews, tmp_path / "set", other)


@pytest.mark.parametrize("change", ["source", "readers"])
def test_what_changed_while_a_draft_waits_begins_anew(reviews, tmp_path, monkeypatch, change):
    def full(data, task, folder):
        raise OSError(28, "No space left on device")

    folder = tmp_path / "set"
    with monkeypatch.context() as patched:
        patched.setattr("tasks.sources.preparing.write_set", full)
        if change == "readers":
            path = "tasks.sources.labelled_text.document_tokens"
            patched.setattr(path, lambda content: document_tokens(content[:3]))
            patched.setattr("tasks.sources.whole_sets.readers_hash", lambda file: "another")
        with pytest.raises(DataError, match="No space left on device"):
            prepare(reviews, folder)
    if change == "source":
        reviews.write_text(reviews.read_text().replace("Film 7", "Film seven"))
    prepare(reviews, folder)
    spec = DataSpec(task="text", hash="a", length=1000, rows=ALL)
    found = open_or_prepare(text(), spec, str(folder), tmp_path / "a")
    assert same(found, read_set(text(), reviews, ALL))


def test_a_source_without_rows_for_a_split(reviews, tmp_path):
    (tmp_path / "r_test.csv").write_text("text,label\n")
    with pytest.raises(DataError, match=r"^'.*r_train.csv' has no rows for test; give a source"):
        prepare(reviews, tmp_path / "set")
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith(".draft")]


def test_the_share_of_a_run_is_no_source(reviews, tmp_path):
    opened(reviews, tmp_path / "cache", text())
    share = next((tmp_path / "cache").iterdir())
    with pytest.raises(DataError, match=r"holds what one run used of a set; name a set that 'lra"):
        hashed(share)
