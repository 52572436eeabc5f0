"""Data is identified by parameters, sources of the generator, bytes of the files."""

import errno
import shutil
from pathlib import Path

import pytest
from set_reader import read_labelled_text, refused

import tasks.listops
import tasks.sources.data_hash
import tasks.sources.hub
from lra.core import catalogue, loading
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


# A change of each kind of source code, and whether it moves the hash of generated and of read data.
@pytest.mark.parametrize(
    ("file", "before", "after", "moves"),
    [
        ("listops.py", '" ".join(TOKENS', '"-".join(TOKENS', (False, False)),
        ("_preview.py", "_WIDEST = 64", "_WIDEST = 32", (False, False)),
        ("listops.py", "listops_parts(source,", "listops_parts(2 * source,", (False, True)),
        ("sources/tables.py", "_NAMES_SHOWN = 10", "_NAMES_SHOWN = 9", (False, True)),
        ("listops.py", "self.config.data_seed)", "1 + self.config.data_seed)", (True, False)),
        ("generators/listops_rows.py", "def draw(", "EDITED = 1\n\n\ndef draw(", (True, False)),
        ("generators/counter.py", "def below(", "EDITED = 1\n\n\ndef below(", (True, False)),
    ],
)
def test_the_code_that_made_or_read_the_data_counts(tmp_path, file, before, after, moves):
    """In a copy of the tasks' package, whose sources can be edited."""
    own, table = tmp_path / "tasks", tmp_path / "one.tsv"
    shutil.copytree(FILE.parent, own, ignore=shutil.ignore_patterns("__pycache__"))
    table.write_text("Source\tTarget\n")

    def both():
        return [hashed(own / "listops.py"), hashed(own / "listops.py", source=str(table))]

    first, text = both(), (own / file).read_text()
    assert before in text
    (own / file).write_text(text.replace(before, after))
    assert tuple(now != then for now, then in zip(both(), first, strict=True)) == moves


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
def test_files_that_are_read_count_and_others_do_not(tmp_path, reviews):
    """Every file of a folder is changed in turn; the hash follows what the reader returns."""
    for name in ("imdb_train.csv", "imdb_test.csv", "yelp_train.csv", "yelp_test.csv"):
        table(tmp_path / name, 80)
    for row in range(80 * reviews):
        place = tmp_path / ("train", "test")[row % 2] / ("pos", "neg")[row // 2 % 2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{row}.txt").write_text(f"film {row}")

    def state():
        found = read_labelled_text(str(tmp_path), Rows(train=90, validation=90, test=90))
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


def test_files_that_cannot_be_read_or_are_not_there(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, "no", str(path))

    table(tmp_path / "a.csv", 3)
    monkeypatch.setattr(tasks.sources.data_hash, "file_hash", refuse)
    for name, says in (("a.csv", "a.csv' cannot be read: Permission denied"), ("b", "b'; check")):
        refused(says, hashed, FILE, str(tmp_path / name))


def test_source_kinds():
    kinds = {None: "generated", "reviews/": "file", "hub:imdb": "hub"}
    assert {source: source_kind(source) for source in kinds} == kinds


def test_a_hub_source_is_hashed_by_content(monkeypatch):
    contents = {"hub:a": "1", "hub:a@old": "1", "hub:b": "2"}
    monkeypatch.setattr(tasks.sources.hub, "content_hash", lambda source, task: contents[source])
    first, same, other = (hashed(task="text", source=source) for source in contents)
    assert first == same != other


@pytest.mark.parametrize(
    ("task", "source", "says"),
    [
        ("listops", "hub:X", r"^listops is not read from the hub \('hub:X'\)"),
        ("recall", "hub:X", r"^recall reads no real data yet \(asked for 'hub:X'\)"),
        ("recall", "a.csv", r"^recall reads no real data yet "),
    ],
)
def test_a_source_that_a_task_does_not_read_is_refused_before_it_is_hashed(
    tmp_path, monkeypatch, task, source, says
):
    def reached(*args):
        raise AssertionError("hashed")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tasks.sources.hub, "content_hash", reached)
    monkeypatch.setattr(tasks.sources.data_hash, "file_hash", reached)
    table(tmp_path / "a.csv", 3)
    refused(says, lambda: hashed(task=task, source=source))
    with pytest.raises(AssertionError, match="hashed"):
        hashed(task="somebody's", source=source)


@pytest.mark.parametrize("name", catalogue.names("task"))
def test_sources_that_are_refused_are_those_that_the_task_refuses(name):
    """A task here that learns to read must say so where its data is hashed."""
    own = loading.load(catalogue.find("task", name)).parts is not Task.parts
    known = tasks.sources.data_hash
    assert own == (name in known._FINDERS or name in known._PATHFINDER)
    if not own:
        refused("reads no real data", known.refuse_unread, "a.csv", name)
