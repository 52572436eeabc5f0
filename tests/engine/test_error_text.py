"""No path survives in text that may be published; every word does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from lra.core.errors import UsageError
from lra.engine.process.error_text import named_line, one_line, publishable, strip_paths


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ('  File "/opt/x y/lra/worker.py", line 3, in main', '  File "worker.py", line 3, in main'),
        ("no file '/a/b/c.tsv'; check", "no file 'c.tsv'; check"),
        ("cannot open /a/b-c/d_e.txt: denied", "cannot open d_e.txt: denied"),
        ("(/usr/lib/libtorch.so+0x12)", "(libtorch.so+0x12)"),
        (r"C:\Users\me\notes.txt is gone", "notes.txt is gone"),
        (r'File "C:\My Files\notes.txt"', 'File "notes.txt"'),
        ("a ratio of 1/2 and/or 3 / 4 at 5 it/s", "a ratio of 1/2 and/or 3 / 4 at 5 it/s"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("no file /home/alice", "no file /~"),
        ("'/home/alice' and (/Users/bob)", "'/~' and (/~)"),
        ("in /home/alice/set/x.csv, /Users/bob/y", "in x.csv, y"),
        (r"C:\Users\bob is gone", "/~ is gone"),
        ("see file:///home/alice/x", "see file:///~/x"),
        ("see https://host/home/alice/page", "see https://host/home/alice/page"),
        ("PYTHONPATH=/home/alice/a:/home/bob/b", "PYTHONPATH=a:b"),
        ("PATH=/home/alice:/home/bob:/opt/x/bin", "PATH=/~:/~:bin"),
        ("file:/home/alice/x and host:/home/alice", "file:x and host:/~"),
        ("cc -I/home/alice -L/home/alice/lib -O2", "cc -I/~ -Llib -O2"),
        ("-I/home/alice", "-I/~"),
        ("//home/alice/x, //home/alice", "x, /~"),
        ("/nfs/home/alice and /gpfs/users/bob/y", "/~ and y"),
        ("../../home/alice/x", "../~/x"),
        ("C:/Users/alice/x and C:/Users/alice", "x and /~"),
        (r"C:\Users\alice, C:\\Users\\alice\\x", "/~, x"),
        (r"C:\Users\Alice Smith\x is gone", "x is gone"),
        (r"C:\Users\bob is gone and a\b stays", r"/~ is gone and a\b stays"),
        ("file:///C:/Users/alice", "file:////~"),
        ("https://home/alice/page, tcp://users/bob", "https://home/alice/page, tcp://users/bob"),
        ("data/home/alice and ./users/x at 3 it/s:", "data/home/alice and ./users/x at 3 it/s:"),
        ("shape (4, 8) and 50% of [1, 2]", "shape (4, 8) and 50% of [1, 2]"),
    ],
)
def test_paths_are_cut_to_their_names(text: str, stripped: str) -> None:
    assert strip_paths(text) == stripped


def test_places_that_are_known_are_cut_with_their_spaces() -> None:
    assert strip_paths("read /my data/set one/x.csv.", ["/my data/set one"]) == "read x.csv."
    assert strip_paths("read /my data/x.csv, row 1", ["/my data/x.csv"]) == "read x.csv, row 1"
    assert strip_paths("in secret/reviews.csv", ["secret/reviews.csv"]) == "in reviews.csv"
    assert strip_paths("read /my data/set one/b.csv.", ["/my data/set one/a.csv"]) == "read b.csv."


@pytest.mark.parametrize(
    ("text", "known", "stripped"),
    [
        ("'bad/basic_train.tsv', row 1", "bad", "'basic_train.tsv', row 1"),
        ("'bad/release one/train.tsv', row 1", "bad/", "'train.tsv', row 1"),
        ("bad/release/train.tsv, row 1", "./bad", "train.tsv, row 1"),
        ("in ./bad/train.tsv", "bad", "in train.tsv"),
        ("in my reviews/train.csv", "my reviews", "in train.csv"),
        ("'../me/reviews/train.csv'", "../me/reviews", "'train.csv'"),
        ("'../train.csv' and '../me/train.csv'", "..", "'train.csv' and 'train.csv'"),
        ("'bad/train.csv' has no 'bad/test.csv'", "bad/train.csv", "'train.csv' has no 'test.csv'"),
        # A name stays, and so does a word that only looks like one.
        ("data, data and data", "data", "data, data and data"),
        ("no train.csv in 'bad'", "bad", "no train.csv in 'bad'"),
        ("not-bad/good or unbad/good", "bad", "not-bad/good or unbad/good"),
        ("see https://bad/a", "bad", "see https://bad/a"),
    ],
)
def test_relative_places_are_cut_too(text: str, known: str, stripped: str) -> None:
    assert strip_paths(text, [known]) == stripped


def test_a_long_text_takes_no_long_time() -> None:
    from time import process_time

    began = process_time()
    for part in (
        "/a",
        "/@",
        "'/",
        ":/a",
        " /home/",
        "../",
        r"C:\\a",
        " -I/a",
        "a:/ ",
        "//",
        "/home/a",
    ):
        strip_paths(part * (300_000 // len(part)))
    assert process_time() - began < 5


@pytest.mark.parametrize("place", [Path.home(), Path.cwd(), Path(tempfile.gettempdir())])
def test_nothing_of_this_machine_stays(place: Path) -> None:
    assert strip_paths(f"at {place}/.hidden/deep/file.txt end") == "at file.txt end"
    assert str(place) not in strip_paths(f"at {place} end")


def test_credentials_and_places_are_gone_together() -> None:
    text = "cannot read /home/alice/x.csv with password=ab/cd/ef in /my data/y.csv"
    told = "cannot read x.csv with password=[masked] in y.csv"
    assert publishable(text, ["/my data"]) == told


def test_one_line() -> None:
    assert one_line(ValueError("first\n  second\n")) == "first second"
    assert one_line(MemoryError()) == "MemoryError"


def test_an_exception_without_a_text_that_a_record_holds() -> None:
    class Mute(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert one_line(Mute()) == named_line(Mute()) == "Mute"
    assert one_line(OSError("no file 'caf\udce9'")) == r"no file 'caf\udce9'"


def test_an_error_of_ours_is_its_words_and_anothers_is_named() -> None:
    assert named_line(UsageError("write\nanother")) == "write another"
    assert named_line(KeyError("q")) == "KeyError: 'q'"
    assert named_line(ValueError()) == "ValueError"
