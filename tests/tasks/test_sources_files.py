"""The files that a source stands for."""

import os

import pytest
from set_reader import refused

from lra.core.errors import DataError
from tasks.sources.data_hash import hashed_files
from tasks.sources.files import existing, source_files


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def family(source, task="text"):
    found = source_files(str(source), task)
    assert found.single is None and not found.reviews
    return {split: [path.name for path in paths] for split, paths in found.family.items()}


@pytest.mark.parametrize(
    ("train", "validation", "test", "others"),
    [
        ("basic_train.tsv", "basic_val.tsv", "basic_test.tsv", ["README.md", "latest.csv"]),
        ("aan_pairs.train.tsv", "aan_pairs.eval.tsv", "aan_pairs.test.tsv", []),
        ("train.parquet", None, "test.parquet", []),
        ("Train.parquet", None, "Test.PARQUET", []),
        (
            "train-00000-of-00001-a09b74b3ef9c3b56.parquet",
            None,
            "test-00000-of-00001-a09b74b3ef9c3b56.parquet",
            [],
        ),
        ("a_train.csv.gz", None, "a_test.csv.gz", []),
        # macOS lays a ._name beside each file it unpacks.
        ("x_train.tsv", None, "x_test.tsv", ["._x_train.tsv", "._x_test.tsv", ".DS_Store"]),
    ],
)
def test_a_family_by_folder_and_by_any_of_its_files(tmp_path, train, validation, test, others):
    named = {"train": train, "validation": validation, "test": test}
    named = {split: name for split, name in named.items() if name}
    touch(tmp_path, *named.values(), *others)
    for source in (tmp_path, *(tmp_path / name for name in named.values())):
        assert family(source) == {split: [name] for split, name in named.items()}


SHARD = "train-{:05}-of-{:05}.parquet".format


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([SHARD(0, 4), SHARD(2, 4)], "has 2 of 4 train shards, number 00001 is missing"),
        ([SHARD(1, 2)], "has 1 of 2 train shards, number 00000 is missing"),
        ([SHARD(0, 1), SHARD(1, 1)], "has train-00001-of-00001.parquet, past its 1 shards"),
        ([SHARD(0, 1), "train.parquet"], rf"several train splits \({SHARD(0, 1)}, train.parquet"),
        ([SHARD(0, 1), SHARD(0, 2)], "has several train splits"),
        (
            [f"train-00000-of-00001-{letter * 16}.parquet" for letter in "ab"],
            "has train-00000-of-00001-a+.parquet under the name train-00000-of-00001-b+.parquet",
        ),
        (["Train.parquet", "train.parquet"], "has Train.parquet under the name train.parquet too"),
        (["train.parquet", "val.parquet", "dev.parquet"], r"validation splits \(dev.*, val.parq"),
        (["x_train.parquet", "x-train.parquet", "x_test.parquet"], r"several train splits \(x-tr"),
    ],
)
def test_files_that_are_not_one_split(tmp_path, files, says):
    touch(tmp_path, "test-00000-of-00001.parquet", *files)
    for source in [tmp_path / files[0]] + [tmp_path] * ("x_test.parquet" not in files):
        for ask in (source_files, hashed_files):
            refused(says, ask, str(source), "text")


def test_all_shards_of_a_split_in_order(tmp_path):
    files = [SHARD(shard, 3) for shard in (2, 0, 1)]
    touch(tmp_path, "test.parquet", *files)
    assert family(tmp_path) == {"train": sorted(files), "test": ["test.parquet"]}


def test_several_sets_in_a_folder_need_a_name(tmp_path):
    touch(tmp_path, "imdb_train.csv", "imdb_test.csv", "yelp_train.csv", "yelp_test.csv")
    says = r"several sets \(imdb_test.csv, yelp_test.csv\)"
    refused(says, source_files, str(tmp_path), "listops")
    assert family(tmp_path)["train"] == ["imdb_train.csv"]
    touch(tmp_path, "imdb_train.parquet", "imdb_test.parquet")
    refused("several sets ", source_files, str(tmp_path), "text")
    assert family(tmp_path / "yelp_test.csv")["train"] == ["yelp_train.csv"]


@pytest.mark.parametrize(
    "name", ["reviews.csv", "contest.csv", "train.parquet.gz", "._x_train.tsv"]
)
def test_a_file_without_a_split_word_stands_alone(tmp_path, name):
    touch(tmp_path, name)
    assert source_files(str(tmp_path / name), "text") == (tmp_path / name, {}, ())


@pytest.mark.parametrize(
    ("files", "source", "says"),
    [
        ([], "missing", "no file or folder '.*missing'"),
        (["notes.txt"], "", r"holds no \*_train and \*_test files"),
        (["a_train.csv"], "", "has no test split beside a_train.csv"),
        (["a_test.csv"], "a_test.csv", "has no train split beside a_test.csv"),
    ],
)
def test_a_split_or_source_that_is_not_there(tmp_path, files, source, says):
    touch(tmp_path, *files)
    refused(says, source_files, str(tmp_path / source), "text")


def test_the_files_that_count_for_the_hash(tmp_path):
    reviews = ("train/pos/0_9.txt", "test/neg/0_1.txt", "train/pos/._0_9.txt", "train/x.feat")
    touch(tmp_path, "a_train.csv", "a_test.csv", "notes.txt", "other.csv", ".hidden.csv")
    touch(tmp_path / "aclImdb", *reviews)
    touch(tmp_path / "loose", "one/a.bin", "b.bin", "._b.bin")

    def listed(source, task="text"):
        return [name for name, _ in hashed_files(str(tmp_path / source), task)]

    assert listed("a_test.csv") == listed("") == ["a_test.csv", "a_train.csv"]
    assert listed("other.csv") == ["other.csv"]
    assert listed("aclImdb") == ["test/neg/0_1.txt", "train/pos/0_9.txt"]
    found = source_files(str(tmp_path / "aclImdb"), "text").reviews
    assert [path.name for path in found] == ["0_9.txt", "0_1.txt"]
    assert listed("loose", "another") == ["b.bin", "one/a.bin"]
    (tmp_path / "empty").mkdir()
    refused("empty' is empty", listed, "empty", "another")


def test_a_file_or_folder_that_the_system_does_not_let_us_read_is_one_line(tmp_path):
    """A link to itself: there, and not to be read even by root."""
    (tmp_path / "a").symlink_to("a")
    for source in ("a", "a/b"):
        for ask in (source_files, hashed_files):
            refused(source, ask, str(tmp_path / source), "text")


def other_than_a_file(path):
    """Make what is no file at a path, one kind after another; yield what errors call it."""
    path.symlink_to("gone")
    yield "a link to nothing"
    path.unlink()
    path.symlink_to(path.name)
    yield "a link that leads back to itself"
    path.unlink()
    os.mkfifo(path)
    yield "a pipe"
    path.unlink()
    path.mkdir()
    yield "a folder"


@pytest.mark.parametrize(
    ("task", "files"),
    [
        ("text", ["r_train.csv", "r_test.csv"]),
        ("listops", ["basic_train.tsv", "basic_val.tsv", "basic_test.tsv"]),
        ("bytes", ["w.train.txt", "w.valid.txt", "w.test.txt"]),
        ("image", ["data_train.bin", "data_test.bin"]),
        ("image", ["train_images.npy", "train_labels.npy", "test_labels.npy", "test_images.npy"]),
        ("image", ["x_train.parquet", "x_test.parquet"]),
        ("query_span", ["train.jsonl", "val.jsonl", "test.jsonl"]),
        ("retrieval", ["pairs.train.tsv", "pairs.eval.tsv", "pairs.test.tsv"]),
        ("retrieval", ["aan_pairs.csv", "aan_papers.csv"]),
        ("text", ["train/pos/1.txt", "train/neg/1.txt", "test/pos/1.txt", "test/neg/1.txt"]),
    ],
)
def test_a_split_s_file_that_is_none_is_called_what_it_is(tmp_path, task, files):
    """None of them is waited for."""
    touch(tmp_path, *files)
    place = tmp_path / files[-1]
    place.unlink()
    for kind in other_than_a_file(place):
        refused(f"{files[-1]}' is {kind}, not a file", hashed_files, str(tmp_path), task)


def test_a_source_that_is_neither_file_nor_folder_is_called_what_it_is(tmp_path):
    for kind in other_than_a_file(tmp_path / "it"):
        if kind != "a folder":
            refused(f"it' is {kind}; give", source_files, str(tmp_path / "it"), "text")


def test_what_is_no_file_of_the_set_that_is_named_does_not_count(tmp_path):
    touch(tmp_path, "a_train.csv", "a_test.csv", "b_train.csv")
    (tmp_path / "b_test.csv").symlink_to("gone")
    assert family(tmp_path / "a_train.csv")["test"] == ["a_test.csv"]


def test_an_impossible_name_is_that_of_nothing():
    with pytest.raises(DataError, match="no file or folder"):
        existing("a\0b")
