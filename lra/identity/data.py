"""Sets of data: the first rows of each generator, and small files through the readers."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import msgspec
import numpy as np
from PIL import Image

from lra.core import catalogue, loading
from lra.core.dataset import SPLITS, Dataset
from lra.core.protocol import DataSpec, Rows
from tasks.contract import Task
from tasks.sources.opening import built, open_or_prepare

ROWS, LONG = 4, 10_000
"""Rows of each split, and the length from which on a split has one row."""
SETTINGS: dict[str, dict[str, Any]] = {
    "listops": {"balanced": True},
    "text": {"both_ends": True},
    "retrieval": {"both_ends": True},
}
"""Settings of generators that take another course than the defaults."""
SOME = Rows(train=30, validation=8, test=8)


def generated(name: str, **settings: Any) -> Iterator[object]:
    """Yield the buffers of each split at a task's own length, or at two, with these settings."""
    kind = cast(type[Task], loading.load(catalogue.find("task", name)))
    for length in [kind.card.length] if kind.card.length else (256, 1024):
        task = kind(kind.Config(**settings), length=length)
        for split in SPLITS:
            found = task.generate(split, ROWS if length < LONG else 1)
            yield [found.tokens, found.starts, found.labels]


def read(name: str) -> Iterator[object]:
    """Yield the buffers of each split of a small set of files, by both rules."""
    write, length, source = FILES[name]
    for rules in ("fixed", "lra2021"):
        with TemporaryDirectory() as folder:
            place = Path(folder)
            write(place)
            spec = DataSpec(task=name, source="file", length=length, rows=SOME, rules=rules)
            task = built(name, spec)
            yield _buffers(open_or_prepare(task, spec, str(place / source), place / "prepared"))


def _buffers(data: Dataset) -> list[object]:
    return [[split.tokens, split.starts, split.labels] for _, split in data]


def _words(draws: np.random.Generator, count: int) -> str:
    """Letters, blanks and a character of two bytes."""
    return "".join(draws.choice([*"abc <>\u00e9"], count))


def _reviews(folder: Path) -> None:
    draws = np.random.default_rng(0)
    for split, rows in (("train", 40), ("test", 10)):
        lines = [f'"{_words(draws, 5 + 2 * n)}",{n % 2}\n' for n in range(rows)]
        (folder / f"{split}.csv").write_text("text,label\n" + "".join(lines), encoding="utf-8")


def _expressions(folder: Path) -> None:
    for number, split in enumerate(("train", "val", "test")):
        lines = [f"( ( ( [MAX {n % 10} ) {number} ) ] )\t{max(n % 10, number)}\r\n"
                 for n in range(9)]  # fmt: skip
        text = "Source\tTarget\r\n" + "".join(lines)
        (folder / f"basic_{split}.tsv").write_bytes(text.encode())


def _pairs(folder: Path) -> None:
    draws = np.random.default_rng(1)
    for split in ("train", "eval", "test"):
        texts = [(_words(draws, 20 + n), _words(draws, 300 - n)) for n in range(9)]
        lines = [f"{n % 2}.0\t{n}\t{n + 90}\tx{a}x\tx{b}x\n" for n, (a, b) in enumerate(texts)]
        (folder / f"new_aan_pairs.{split}.tsv").write_text("".join(lines), encoding="utf-8")


def _pictures(folder: Path) -> None:
    draws = np.random.default_rng(2)
    for split, rows in (("train", 60), ("test", 12)):
        pixels = draws.integers(0, 256, (rows, 32, 32, 3), dtype=np.uint8)
        np.save(folder / f"x_{split}_images.npy", pixels)
        np.save(folder / f"x_{split}_labels.npy", np.arange(rows) % 10)


def _paths(folder: Path) -> None:
    draws = np.random.default_rng(3)
    level = folder / "pathfinder32" / "curv_contour_length_14"
    for shard in range(11):
        (images := level / "imgs" / str(shard)).mkdir(parents=True)
        lines = [f"imgs/{shard} sample_{n}.png {n} {n % 2} 1.0 14 4 2 0.5 1 1" for n in range(6)]
        (level / "metadata").mkdir(exist_ok=True)
        (level / "metadata" / f"{shard}.npy").write_text("".join(f"{line}\n" for line in lines))
        for n in range(6):
            pixels = draws.integers(0, 256, (32, 32), dtype=np.uint8)
            Image.fromarray(pixels).save(images / f"sample_{n}.png")


def _book(folder: Path) -> None:
    text = _words(np.random.default_rng(4), 20_000)
    (folder / "book.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _meetings(folder: Path) -> None:
    draws = np.random.default_rng(5)
    for split in ("train", "val", "test"):
        lines = []
        for _ in range(4):
            turns = [{"speaker": "A", "content": _words(draws, 5 + n)} for n in range(20)]
            asked = [
                {"query": _words(draws, 9) + "?", "relevant_text_span": spans}
                for spans in ([["0", "3"]], [["4", "4"], ["7", "9"]], [["19", "19"]])
            ]
            lines.append({"meeting_transcripts": turns, "specific_query_list": asked})
        (folder / f"{split}.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))


FILES: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "bytes": (_book, 256, "book.txt.gz"),
    "image": (_pictures, 1024, "."),
    "listops": (_expressions, 64, "."),
    "pathfinder": (_paths, 1024, "pathfinder32"),
    "query_span": (_meetings, 256, "."),
    "retrieval": (_pairs, 256, "."),
    "text": (_reviews, 64, "."),
}
"""Small set of each task: how it is written, its length, and the path that is named."""
