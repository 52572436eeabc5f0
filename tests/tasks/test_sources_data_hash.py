"""What identifies data: parameters, sources of the generator, bytes of the files."""

import shutil
from pathlib import Path

import pytest

import tasks.listops
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.sources.data_hash import data_hash, source_kind

FILE = Path(tasks.listops.__file__)
SETTING = {
    "task": "listops",
    "length": 32,
    "rows": Rows(train=5, validation=5, test=5),
    "rules": "fixed",
    "parameters": {"max_depth": 4},
}


def hashed(file=FILE, **changes):
    setting = {**SETTING, **changes}
    return data_hash(file, setting.pop("task"), **setting)


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
    change("read_listops(source, rows,", "read_listops(source, 2 * rows,")
    assert both()[0] == made and both()[1] != read
    change("self.config.data_seed)", "1 + self.config.data_seed)")
    assert both()[0] != made


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
    assert made == hashed()
    edit(own_package / "sources" / "tables.py")
    made_after_reader, read_after_reader = both()
    assert made_after_reader == made and read_after_reader != read
    edit(own_package / "generators" / "listops_rows.py")
    made_after_generator, _ = both()
    assert made_after_generator != made
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


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="check the path given to --data"):
        hashed(source=str(tmp_path / "missing"))


def test_source_kinds():
    assert source_kind(None) == "generated"
    assert source_kind("reviews/") == "file"
    assert source_kind("hub:imdb") == "hub"


def test_a_hub_source_is_hashed_by_content(monkeypatch):
    import tasks.sources.hub as hub

    contents = {"hub:a": "1", "hub:a@old": "1", "hub:b": "2"}
    monkeypatch.setattr(hub, "content_hash", lambda source, task: contents[source])
    assert hashed(source="hub:a") == hashed(source="hub:a@old") != hashed(source="hub:b")
