"""Data sets of the hub: through `datasets`, here from a local folder or with a replaced loader."""

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
from review_forms import write_csv
from set_reader import read_labelled_text, refused

import tasks.sources.hub
from tasks.sources.hub import content_hash, load_hub

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


def held(column="text", **splits):
    """A set of the hub, of rows of text and label."""
    columns = {
        split: {column: [text for text, _ in rows], "label": [label for _, label in rows]}
        for split, rows in splits.items()
    }
    return datasets.DatasetDict(
        {split: datasets.Dataset.from_dict(made) for split, made in columns.items()}
    )


def test_a_folder_through_the_real_loader(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "reviews"
    folder.mkdir()
    for split, rows in (("train", TRAIN), ("test", TEST)):
        write_csv(folder / f"{split}.csv", rows)
    through_hub = read_labelled_text(f"hub:{folder}")
    for split, (texts, labels) in read_labelled_text(str(folder)).items():
        assert through_hub[split][0] == texts
        assert through_hub[split][1].tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("source", "asked"),
    [("hub:imdb", ("imdb", None)), ("hub:stanfordnlp/imdb@abc123", ("stanfordnlp/imdb", "abc123"))],
)
def test_name_revision_and_splits(hub, source, asked):
    seen = hub(held(train=TRAIN, test=TEST, unsupervised=[("x", -1)]))
    found = read_labelled_text(source)
    assert seen == [asked]
    assert len(found["train"][0]) + len(found["validation"][0]) == len(TRAIN)
    assert sorted(found["test"][0]) == sorted(text.encode() for text, _ in TEST)


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
    gone = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"}
    kept = {name: value for name, value in os.environ.items() if name not in gone}
    with hub_that_says(status) as port:
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
    assert told.startswith("hub:someone/films: the hub cannot be reached")
    assert 1 <= int(asked) <= most


@pytest.mark.parametrize(
    ("error", "source", "says"),
    [
        (ConnectionError("Couldn't reach\n(Offline)"), "hub:imdb", "hub cannot be reached"),
        (
            datasets.exceptions.DatasetNotFoundError("Dataset 'imbd' doesn't exist\non the Hub"),
            "hub:imbd",
            "Dataset 'imbd' doesn't exist; ",
        ),
        (
            RuntimeError("Dataset scripts are no longer supported, but found old.py"),
            "hub:old@main",
            "script, .* hub:old@refs/convert/parquet",
        ),
    ],
)
def test_errors_of_the_hub_are_one_line_with_its_name(hub, error, source, says):
    hub(error)
    refused(f"^{source}: .*{says}".replace(": .*Dataset", ": Dataset"), load_hub, source, "text")


def test_another_fault_of_the_library_is_not_hidden(hub):
    hub(RuntimeError("a fault"))
    with pytest.raises(RuntimeError, match="a fault"):
        load_hub("hub:old", "text")


@pytest.mark.parametrize("reference", ["hub:", "hub:@x"])
def test_an_empty_name_is_refused_before_the_hub_is_asked(hub, reference):
    asked = hub(held(train=TRAIN, test=TEST))
    refused(rf"^'{reference}' names no data set", load_hub, reference, "text")
    assert not asked


def test_a_set_that_cannot_be_parsed_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "train.csv").write_text("text,label\na,1\n")
    (tmp_path / "test.csv").write_text('text,label,more\na,1,3\nb,c\n"x')
    refused(r"^hub:.*EOF inside string", load_hub, f"hub:{tmp_path}", "text")


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        (held(train=TRAIN), "hub:a has no test split, only train"),
        (held(train=TRAIN, test=[("fine", 0), ("odd", 3)]), "hub:a, split test', row 2: label '3'"),
        (held("review", train=TRAIN, test=TEST), "'hub:a, split train' has no column 'text', only"),
    ],
)
def test_missing_split_column_and_wrong_label(hub, outcome, says):
    hub(outcome)
    refused(says, read_labelled_text, "hub:a")


def test_the_hash_is_of_the_content_and_of_every_row(hub):
    def hashed(outcome, source="hub:a"):
        hub(outcome)
        return content_hash(source, "text")

    many = [(f"film {i}", i % 2) for i in range(2100)]
    first, *others = many
    whole = held(test=TEST, train=many)
    assert hashed(whole) == hashed(held(train=many, test=TEST), "hub:b@main")
    empty = held(test=TEST, train=many, validation=[])
    # In their order, the rows of most are the same.
    sets = [
        whole,
        held(test=[*TEST, first], train=others),
        held(test=TEST, validation=many),
        held("review", test=TEST, train=many),
        held(test=TEST, train=[*many[:-1], ("other", 1)]),
        empty,
        {**empty, "validation": empty["validation"].rename_column("text", "review")},
    ]
    assert len(set(map(hashed, sets))) == len(sets)
