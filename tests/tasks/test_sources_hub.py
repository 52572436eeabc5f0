"""Data sets of the hub: through `datasets`, here from a local folder or with a replaced loader."""

import csv
import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import datasets
import pytest
from text_reader import read_labelled_text

import tasks.sources.hub
from lra.core.errors import DataError
from lra.core.protocol import Rows
from tasks.sources.hub import content_hash, load_hub

ALL = Rows(train=1000, validation=1000, test=1000)
TRAIN = [(f"déjà vu {i}", i % 2) for i in range(60)]
TEST = [(f"seen before {i}", i % 2) for i in range(20)]


@pytest.fixture
def hub(monkeypatch):
    """Replace the loader; what it is asked for is recorded."""
    asked = []

    def install(outcome):
        def load_dataset(name, revision=None):
            asked.append((name, revision))
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        monkeypatch.setattr(tasks.sources.hub, "_answers", lambda address: True)
        return asked

    return install


def dataset_dict(**splits):
    return datasets.DatasetDict(
        {
            split: datasets.Dataset.from_dict(
                {"text": [text for text, _ in rows], "label": [label for _, label in rows]}
            )
            for split, rows in splits.items()
        }
    )


def test_a_folder_through_the_real_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "reviews"
    folder.mkdir()
    for split, rows in (("train", TRAIN), ("test", TEST)):
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows([("text", "label"), *rows])
    through_hub = read_labelled_text(f"hub:{folder}", ALL)
    directly = read_labelled_text(str(folder), ALL)
    for split, (texts, labels) in directly.items():
        assert through_hub[split][0] == texts
        assert through_hub[split][1].tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("hub:imdb", ("imdb", None)),
        ("hub:stanfordnlp/imdb@abc123", ("stanfordnlp/imdb", "abc123")),
    ],
)
def test_name_revision_and_splits(hub, source, asked):
    seen = hub(dataset_dict(train=TRAIN, test=TEST, unsupervised=[("x", -1)]))
    found = read_labelled_text(source, ALL)
    assert seen == [asked]
    assert len(found["train"][0]) + len(found["validation"][0]) == len(TRAIN)
    assert sorted(found["test"][0]) == sorted(text.encode() for text, _ in TEST)


def test_a_hub_that_cannot_be_reached_is_one_line(hub):
    hub(ConnectionError("Couldn't reach 'imdb' on the Hub\n(OfflineModeIsEnabled)"))
    with pytest.raises(DataError) as caught:
        read_labelled_text("hub:imdb", ALL)
    assert str(caught.value) == (
        "hub:imdb: the hub cannot be reached; give a local file with --data text=PATH "
        "or leave --data out for the stand-in"
    )


UNREACHABLE = """
import logging, socket
import datasets, huggingface_hub
from lra.core.errors import DataError
from tasks.sources.hub import load_hub
logger = logging.getLogger("huggingface_hub")
def state():
    return logger.level, huggingface_hub.constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
asked, connect = [], socket.socket.connect
def counted(self, address):
    asked.append(address)
    return connect(self, address)
socket.socket.connect = counted
before = state()
try:
    load_hub("hub:someone/films", "text")
except DataError as error:
    print(error)
    assert error.__cause__ is not None
assert state() == before, (before, state())
print(len(asked))
"""


class Broken(BaseHTTPRequestHandler):
    """Answers the first request with a status, and hangs up on all others."""

    def do_HEAD(self):
        asked = self.server.asked = self.server.asked + 1
        if asked > 1:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_HEAD

    def log_message(self, *words):
        pass


@contextmanager
def hub_that_says(status):
    """Yield the port of a hub that says so once; where it is None, of one that does not listen."""
    if status is None:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            yield nobody.getsockname()[1]
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        server.status, server.asked = status, 0
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(("status", "most"), [(None, 1), (503, 1), (407, 1), (200, 5)])
def test_a_hub_that_is_not_reached_or_hangs_up_is_named_in_one_line(status, most, tmp_path):
    """Through the real library, to a port of this machine."""
    with hub_that_says(status) as port:
        gone = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"}
        kept = {name: value for name, value in os.environ.items() if name not in gone}
        address = f"http://127.0.0.1:{port}"
        ran = subprocess.run(
            [sys.executable, "-c", UNREACHABLE],
            cwd=Path(__file__).parents[2],
            env={**kept, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "NO_PROXY": "*"},
            capture_output=True,
            text=True,
        )
    assert ran.stderr == "" and ran.returncode == 0
    told, asked = ran.stdout.splitlines()
    assert told == (
        "hub:someone/films: the hub cannot be reached; give a local file with --data text=PATH "
        "or leave --data out for the stand-in"
    )
    assert 1 <= int(asked) <= most


def test_an_unknown_data_set_is_one_line(hub):
    hub(datasets.exceptions.DatasetNotFoundError("Dataset 'imbd' doesn't exist\non the Hub"))
    with pytest.raises(DataError, match=r"^hub:imbd: Dataset 'imbd' doesn't exist; check the name"):
        load_hub("hub:imbd", "text")


def test_a_set_that_is_a_script_is_one_line_and_another_fault_is_not(hub):
    hub(RuntimeError("Dataset scripts are no longer supported, but found old.py"))
    with pytest.raises(DataError) as caught:
        load_hub("hub:old@main", "text")
    assert str(caught.value) == (
        "hub:old@main: the set is a script, which 'datasets' no longer runs; try "
        "hub:old@refs/convert/parquet, or give a local file with --data text=PATH"
    )
    hub(RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        load_hub("hub:old", "text")


@pytest.mark.parametrize("reference", ["hub:", "hub:@x"])
def test_an_empty_name_is_refused_before_the_hub_is_asked(hub, reference):
    asked = hub(dataset_dict(train=TRAIN, test=TEST))
    with pytest.raises(DataError, match=rf"^'{reference}' names no data set; write hub:NAME"):
        load_hub(reference, "text")
    assert not asked


def test_a_set_that_cannot_be_parsed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "train.csv").write_text("text,label\na,1\n")
    (tmp_path / "test.csv").write_text('text,label,more\na,1,3\nb,c\n"x')
    with pytest.raises(DataError, match=r"^hub:.*; check the name, or give a local file") as caught:
        load_hub(f"hub:{tmp_path}", "text")
    assert "EOF inside string" in str(caught.value) and "\n" not in str(caught.value)


def test_missing_split_column_and_wrong_label(hub):
    hub(dataset_dict(train=TRAIN))
    with pytest.raises(DataError, match="hub:a has no test split, only train; choose"):
        read_labelled_text("hub:a", ALL)
    hub(dataset_dict(train=TRAIN, test=[("fine", 0), ("odd", 3)]))
    with pytest.raises(DataError, match=r"hub:a, split test', row 2: label '3'"):
        read_labelled_text("hub:a", ALL)
    hub(dataset_dict(train=TRAIN, test=TEST).rename_column("text", "review"))
    with pytest.raises(DataError, match=r"'hub:a, split train' has no column 'text', only review"):
        read_labelled_text("hub:a", ALL)


def test_the_hash_is_of_the_content(hub):
    hub(dataset_dict(train=TRAIN, test=TEST))
    first = content_hash("hub:a", "text")
    hub(dataset_dict(test=TEST, train=TRAIN))
    assert content_hash("hub:b@main", "text") == first
    hub(dataset_dict(train=[*TRAIN[:-1], ("other", 1)], test=TEST))
    assert content_hash("hub:a", "text") != first


def test_the_hash_is_of_splits_and_columns_and_of_every_row(hub):
    many = [(f"film {i}", i % 2) for i in range(2100)]
    first, *others = many
    empty = dataset_dict(test=TEST, train=many, validation=[])
    # In their order, the rows of most are the same.
    sets = [
        dataset_dict(test=TEST, train=many),
        dataset_dict(test=[*TEST, first], train=others),
        dataset_dict(test=TEST, validation=many),
        dataset_dict(test=TEST, train=many).rename_column("text", "review"),
        dataset_dict(test=TEST, train=[*many[:-1], ("other", 1)]),
        empty,
        {**empty, "validation": empty["validation"].rename_column("text", "review")},
    ]
    hashes = set()
    for held in sets:
        hub(held)
        hashes.add(content_hash("hub:a", "text"))
    assert len(hashes) == len(sets)
