"""Data is identified by parameters, sources of the generator, bytes of the files."""

import errno
import shutil
from pathlib import Path

import pytest
from text_reader import read_labelled_text

import tasks.listops
import tasks.sources.data_hash
from lra.core import catalogue
from lra.core.errors import DataError
from lra.core.protocol import DataSpec, Rows
from tasks.contract import Task
from tasks.sources.data_hash import content_hash, prepared_name, source_kind

FILE = Path(tasks.listops.__file__)
SETTING = {
    "task": "listops",
    "length": 32,
    "rows": Rows(train=5, validation=5, test=5),
    "rules": "fixed",
    "parameters": {"max_depth": 4},
}


def hashed(file=FILE, source=None, **changes):
    """The cache's name of a set; of a real one with the hash of its content."""
    setting = {**SETTING, **changes}
    asked = {name: setting[name] for name in ("length", "rules", "parameters")}
    content = "" if source is None else content_hash(source, setting["task"], **asked)
    return prepared_name(file, DataSpec(**setting, source=source_kind(source), hash=content))


def test_how_examples_are_shown_and_loaded_does_not_count_for_generated_data(own_package, tmp_path):
    file = own_package / "listops.py"
    table = tmp_path / "one.tsv"
    table.write_text("Source\tTarget\n")

    def both():
        return hashed(file), hashed(file, source=str(table))

    def change(before, after):
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after))

    made, read = both()
    change('" ".join(TOKENS', '"-".join(TOKENS')
    edit(own_package / "_shown.py")
    assert both() == (made, read)
    change("listops_parts(source,", "listops_parts(2 * source,")
    assert both()[0] == made and both()[1] != read
    _, read = both()
    change("self.config.data_seed)", "1 + self.config.data_seed)")
    assert both()[0] != made and both()[1] == read


def test_every_setting_counts():
    settings = [
        {},
        {"task": "other"},
        {"length": 64},
        {"rows": Rows(train=6, validation=5, test=5)},
        {"rules": "lra2021"},
        {"parameters": {"max_depth": 5}},
    ]
    assert len({hashed(**changes) for changes in settings}) == len(settings)
    assert hashed() == hashed(rows=Rows(train=5, validation=5, test=5))
    assert hashed() == hashed(order="shuffled"), "tokens change places as they are read"


@pytest.fixture
def own_package(tmp_path):
    """A copy of the task room under its own name, whose sources can be edited."""
    shutil.copytree(FILE.parent, tmp_path / "tasks", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "tasks"


def edit(path):
    path.write_text(path.read_text() + "\nEDITED = 1\n")


def test_the_generator_s_sources_count_and_the_readers_only_for_files(own_package, tmp_path):
    file = own_package / "listops.py"
    table = tmp_path / "one.tsv"
    table.write_text("Source\tTarget\n")

    def both():
        return hashed(file), hashed(file, source=str(table))

    made, read = both()
    edit(own_package / "sources" / "tables.py")
    made_after_reader, read_after_reader = both()
    assert made_after_reader == made and read_after_reader != read
    edit(own_package / "generators" / "listops_rows.py")
    made_after_generator, read_after_generator = both()
    assert made_after_generator != made and read_after_generator == read_after_reader
    edit(own_package / "generators" / "counter.py")
    assert hashed(file) != made_after_generator


def test_the_bytes_of_all_files_of_a_family_count_and_their_place_does_not(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for word in ("train", "val", "test"):
            (tmp_path / folder / f"basic_{word}.tsv").write_text(word)
    (tmp_path / "b" / "notes.txt").write_text("not read")
    first = hashed(source=str(tmp_path / "a" / "basic_train.tsv"))
    assert first == hashed(source=str(tmp_path / "b")) != hashed()
    (tmp_path / "b" / "basic_test.tsv").write_text("changed")
    assert hashed(source=str(tmp_path / "b" / "basic_train.tsv")) != first


def table(path, rows):
    path.write_text("text,label\n" + "".join(f"{row},{row % 2}\n" for row in range(rows)))


@pytest.mark.parametrize("reviews", [False, True])
def test_what_is_read_counts_and_what_is_not_does_not(tmp_path, reviews):
    """Every file of a folder is changed in turn; the hash follows what the reader returns."""
    for name in ("imdb_train.csv", "imdb_test.csv", "yelp_train.csv", "yelp_test.csv"):
        table(tmp_path / name, 80)
    if reviews:
        for row in range(80):
            place = tmp_path / ("train", "test")[row % 2] / ("pos", "neg")[row // 2 % 2]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{row}.txt").write_text(f"film {row}")

    def state():
        rows = Rows(train=90, validation=90, test=90)
        found = read_labelled_text(str(tmp_path), rows)
        read = {name: (texts, labels.tolist()) for name, (texts, labels) in found.items()}
        return read, hashed(task="text", source=str(tmp_path))

    read, made = state()
    followed = set()
    for path in sorted(tmp_path.rglob("*.*"))[:12]:
        before = path.read_bytes()
        path.write_bytes(before + (b"more" if reviews and path.suffix == ".txt" else b"more,1\n"))
        read_after, made_after = state()
        assert (read_after == read) == (made_after == made), path.name
        followed.add(made_after == made)
        path.write_bytes(before)
    assert followed == {True, False}


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    table(tmp_path / "a.csv", 3)

    def refuse(path):
        raise PermissionError(errno.EACCES, "no", str(path))

    monkeypatch.setattr(tasks.sources.data_hash, "file_hash", refuse)
    with pytest.raises(DataError, match=r"a.csv' cannot be read: Permission denied; check"):
        hashed(task="text", source=str(tmp_path / "a.csv"))


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="check the path"):
        hashed(source=str(tmp_path / "missing"))


def test_source_kinds():
    assert source_kind(None) == "generated"
    assert source_kind("reviews/") == "file"
    assert source_kind("hub:imdb") == "hub"


def test_a_hub_source_is_hashed_by_content(monkeypatch):
    import tasks.sources.hub as hub

    contents = {"hub:a": "1", "hub:a@old": "1", "hub:b": "2"}
    monkeypatch.setattr(hub, "content_hash", lambda source, task: contents[source])
    first, same, other = (hashed(task="text", source=source) for source in contents)
    assert first == same != other


@pytest.mark.parametrize(
    ("task", "source", "says"),
    [
        (
            "listops",
            "hub:X",
            r"^listops is not read from the hub \('hub:X'\); give a file or a folder",
        ),
        (
            "recall",
            "hub:X",
            r"^recall reads no real data yet \(asked for 'hub:X'\); where none is named",
        ),
        ("recall", "FOLDER", r"^recall reads no real data yet .*; where none is named"),
    ],
)
def test_what_a_task_does_not_read_is_refused_before_it_is_hashed(
    tmp_path, monkeypatch, task, source, says
):
    import tasks.sources.hub as hub

    def reached(*args):
        raise AssertionError("hashed")

    monkeypatch.setattr(hub, "content_hash", reached)
    monkeypatch.setattr(tasks.sources.data_hash, "file_hash", reached)
    table(tmp_path / "a.csv", 3)
    with pytest.raises(DataError, match=says):
        hashed(task=task, source=str(tmp_path) if source == "FOLDER" else source)
    with pytest.raises(AssertionError, match="hashed"):
        hashed(task="somebody's", source=str(tmp_path) if source == "FOLDER" else source)


@pytest.mark.parametrize("name", catalogue.names("task"))
def test_what_is_refused_is_what_the_task_refuses(name):
    """A task here that learns to read must say so where its data is hashed."""
    own = catalogue.load(catalogue.find("task", name)).parts is not Task.parts
    read = tasks.sources.data_hash._READ
    assert own == bool(read[name]) if name in read else not own
