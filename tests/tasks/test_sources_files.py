"""Which files a source stands for."""

import pytest

from lra.core.errors import DataError
from tasks.sources.files import source_files
from tasks.sources.hashed_files import hashed_files


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names(family):
    return {split: [path.name for path in paths] for split, paths in family.items()}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            ["basic_train.tsv", "basic_val.tsv", "basic_test.tsv", "README.md", "latest.csv"],
            {"train": "basic_train.tsv", "validation": "basic_val.tsv", "test": "basic_test.tsv"},
        ),
        (
            ["new_aan_pairs.train.tsv", "new_aan_pairs.eval.tsv", "new_aan_pairs.test.tsv"],
            {
                "train": "new_aan_pairs.train.tsv",
                "validation": "new_aan_pairs.eval.tsv",
                "test": "new_aan_pairs.test.tsv",
            },
        ),
        (["train.parquet", "test.parquet"], {"train": "train.parquet", "test": "test.parquet"}),
        (["Train.parquet", "Test.PARQUET"], {"train": "Train.parquet", "test": "Test.PARQUET"}),
        (
            [f"{word}-00000-of-00001-a09b74b3ef9c3b56.parquet" for word in ("train", "test")],
            {
                "train": "train-00000-of-00001-a09b74b3ef9c3b56.parquet",
                "test": "test-00000-of-00001-a09b74b3ef9c3b56.parquet",
            },
        ),
        (["a_train.csv.gz", "a_test.csv.gz"], {"train": "a_train.csv.gz", "test": "a_test.csv.gz"}),
    ],
)
def test_a_family_by_folder_and_by_any_of_its_files(tmp_path, files, expected):
    touch(tmp_path, *files)
    for source in (tmp_path, *(tmp_path / name for name in expected.values())):
        found = source_files(str(source), "text")
        assert found.single is None and not found.reviews
        assert names(found.family) == {split: [name] for split, name in expected.items()}


@pytest.mark.parametrize(
    ("train", "says"),
    [
        (
            ["train-00000-of-00004.parquet", "train-00002-of-00004.parquet"],
            r"has 2 of 4 train shards, number 00001 is missing; copy or download them all",
        ),
        (["train-00001-of-00002.parquet"], r"has 1 of 2 train shards, number 00000 is missing"),
        (
            ["train-00000-of-00001.parquet", "train-00001-of-00001.parquet"],
            r"has train-00001-of-00001.parquet, past its 1 shards; rename or remove it",
        ),
        (
            ["train-00000-of-00001.parquet", "train.parquet"],
            r"has several train splits \(train-00000-of-00001.parquet, train.parquet\); keep one",
        ),
        (
            ["train-00000-of-00001.parquet", "train-00000-of-00002.parquet"],
            r"has several train splits",
        ),
        (
            [f"train-00000-of-00001-{letter * 16}.parquet" for letter in "ab"],
            r"has train-00000-of-00001-a+.parquet under the name train-00000-of-00001-b+.parquet",
        ),
        (["Train.parquet", "train.parquet"], r"has Train.parquet under the name train.parquet too"),
    ],
)
def test_files_that_are_not_one_split(tmp_path, train, says):
    touch(tmp_path, "test-00000-of-00001.parquet", *train)
    for source in (tmp_path, tmp_path / train[0]):
        for ask in (source_files, hashed_files):
            with pytest.raises(DataError, match=says) as caught:
                ask(str(source), "text")
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "files", [["x_train.csv", "x-train.csv", "x_test.csv"], ["train.csv", "val.csv", "dev.csv"]]
)
def test_two_names_for_one_split(tmp_path, files):
    touch(tmp_path, "test.csv", *files)
    with pytest.raises(DataError, match=r"has several (train|validation) splits \(.*\); keep one"):
        source_files(str(tmp_path / files[0]), "text")


def test_all_shards_of_a_split_in_order(tmp_path):
    files = [f"train-{shard:05}-of-00003.parquet" for shard in (2, 0, 1)]
    touch(tmp_path, "test.parquet", *files)
    family = source_files(str(tmp_path), "text").family
    assert names(family) == {"train": sorted(files), "test": ["test.parquet"]}


def test_several_sets_in_a_folder_need_a_name(tmp_path):
    touch(tmp_path, "imdb_train.csv", "imdb_test.csv", "yelp_train.csv", "yelp_test.csv")
    with pytest.raises(DataError, match=r"several sets \(imdb_test.csv, yelp_test.csv\); name"):
        source_files(str(tmp_path), "listops")
    family = source_files(str(tmp_path), "text").family
    assert names(family)["train"] == ["imdb_train.csv"]
    touch(tmp_path, "imdb_train.parquet", "imdb_test.parquet")
    with pytest.raises(DataError, match=r"several sets .*; name one of the files"):
        source_files(str(tmp_path), "text")
    family = source_files(str(tmp_path / "yelp_test.csv"), "text").family
    assert names(family)["train"] == ["yelp_train.csv"]


def test_names_that_begin_with_a_dot_do_not_count(tmp_path):
    """macOS lays a ._name beside each file it unpacks."""
    touch(tmp_path, "x_train.tsv", "x_test.tsv", "._x_train.tsv", "._x_test.tsv", ".DS_Store")
    assert names(source_files(str(tmp_path), "text").family)["train"] == ["x_train.tsv"]
    assert source_files(str(tmp_path / "._x_train.tsv"), "text").single is not None
    touch(tmp_path, "acl/train/pos/0_9.txt", "acl/train/pos/._0_9.txt")
    assert names({"all": source_files(str(tmp_path / "acl"), "text").reviews}) == {
        "all": ["0_9.txt"]
    }
    assert len(hashed_files(str(tmp_path), "another")) == 3


def test_a_file_without_a_split_word_stands_alone(tmp_path):
    touch(tmp_path, "reviews.csv", "contest.csv", "train.parquet.gz")
    packed = tmp_path / "train.parquet.gz"
    assert source_files(str(packed), "text") == (packed, {}, ())
    assert source_files(str(tmp_path / "contest.csv"), "text") == (tmp_path / "contest.csv", {}, ())


@pytest.mark.parametrize(
    ("files", "source", "says"),
    [
        ([], "missing", r"no file or folder '.*missing'; check the path"),
        (["notes.txt"], "", r"holds no \*_train and \*_test files .*name the file itself"),
        (["a_train.csv"], "", r"has no test split beside a_train.csv; add the file"),
        (["a_test.csv"], "a_test.csv", r"has no train split beside a_test.csv; add the file"),
    ],
)
def test_what_is_not_there_is_one_line(tmp_path, files, source, says):
    touch(tmp_path, *files)
    with pytest.raises(DataError, match=says):
        source_files(str(tmp_path / source), "text")


def test_the_files_that_count_for_the_hash(tmp_path):
    touch(tmp_path, "a_train.csv", "a_test.csv", "notes.txt", "other.csv")
    touch(tmp_path, "aclImdb/train/pos/0_9.txt", "aclImdb/test/neg/0_1.txt", "aclImdb/train/x.feat")
    touch(tmp_path, "loose/one/a.bin", "loose/b.bin")

    def listed(source, task="text"):
        return [name for name, _ in hashed_files(str(tmp_path / source), task)]

    assert listed("a_test.csv") == listed("") == ["a_test.csv", "a_train.csv"]
    assert listed("other.csv") == ["other.csv"]
    assert listed("aclImdb") == ["test/neg/0_1.txt", "train/pos/0_9.txt"]
    assert listed("loose", "another") == ["b.bin", "one/a.bin"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is empty"):
        listed("empty", "another")


def loop(path):
    """A link to itself: there, and not to be read even by root."""
    path.symlink_to(path.name)
    return path


def test_what_the_system_does_not_let_us_read_is_one_line(tmp_path):
    path = loop(tmp_path / "a")
    for source in (path, path / "b"):
        for ask in (source_files, hashed_files):
            with pytest.raises(DataError, match=r"check the (path|file)") as caught:
                ask(str(source), "text")
            assert "\n" not in str(caught.value)
