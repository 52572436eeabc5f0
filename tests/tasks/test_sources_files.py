"""Which files a source stands for."""

import pytest

from lra.core.errors import DataError
from tasks.sources.files import source_files, table_files


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
        (["a_train.csv.gz", "a_test.csv.gz"], {"train": "a_train.csv.gz", "test": "a_test.csv.gz"}),
    ],
)
def test_a_family_by_folder_and_by_any_of_its_files(tmp_path, files, expected):
    touch(tmp_path, *files)
    for source in (tmp_path, *(tmp_path / name for name in expected.values())):
        single, family = table_files(str(source))
        assert single is None
        assert names(family) == {split: [name] for split, name in expected.items()}


def test_several_sets_in_a_folder_need_a_name(tmp_path):
    touch(tmp_path, "imdb_train.csv", "imdb_test.csv", "yelp_train.csv", "yelp_test.csv")
    with pytest.raises(DataError, match=r"several sets \(imdb_test.csv, yelp_test.csv\); name"):
        table_files(str(tmp_path))
    assert names(table_files(str(tmp_path), prefer=("text", "imdb")).family)["train"] == [
        "imdb_train.csv"
    ]
    touch(tmp_path, "imdb_train.parquet", "imdb_test.parquet")
    with pytest.raises(DataError, match=r"several sets .*; name one of the files"):
        table_files(str(tmp_path), prefer=("text", "imdb"))
    assert names(table_files(str(tmp_path / "yelp_test.csv")).family)["train"] == ["yelp_train.csv"]


def test_a_file_without_a_split_word_stands_alone(tmp_path):
    touch(tmp_path, "reviews.csv", "contest.csv")
    assert table_files(str(tmp_path / "contest.csv")) == (tmp_path / "contest.csv", {})


@pytest.mark.parametrize(
    ("files", "source", "says"),
    [
        ([], "missing", r"no file or folder '.*missing'; check the path given to --data"),
        (["notes.txt"], "", r"holds no \*_train and \*_test files .*name the file itself"),
        (["a_train.csv"], "", r"has no test split beside a_train.csv; add the file"),
        (["a_test.csv"], "a_test.csv", r"has no train split beside a_test.csv; add the file"),
    ],
)
def test_what_is_not_there_is_one_line(tmp_path, files, source, says):
    touch(tmp_path, *files)
    with pytest.raises(DataError, match=says):
        table_files(str(tmp_path / source))


def test_the_files_that_count_for_the_hash(tmp_path):
    touch(tmp_path, "a_train.csv", "a_test.csv", "notes.txt", "other.csv")
    touch(tmp_path, "aclImdb/train/pos/0_9.txt", "aclImdb/test/neg/0_1.txt", "aclImdb/train/x.feat")
    touch(tmp_path, "loose/one/a.bin", "loose/b.bin")

    def listed(source):
        return [name for name, _ in source_files(str(tmp_path / source))]

    assert listed("a_test.csv") == listed("") == ["a_test.csv", "a_train.csv"]
    assert listed("other.csv") == ["other.csv"]
    assert listed("aclImdb") == ["test/neg/0_1.txt", "train/pos/0_9.txt"]
    assert listed("loose") == ["b.bin", "one/a.bin"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="is empty"):
        source_files(str(tmp_path / "empty"))
