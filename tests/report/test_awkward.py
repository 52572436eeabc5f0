"""Every section made of several lengths and processes, with names that no format likes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from xml.etree import ElementTree

import pytest

from lra.core.protocol import Mechanism
from lra.core.records import Record
from lra.report import Rendered, render

from .sample import GPU, ceiling, efficiency, error, mechanism, with_metrics
from .test_render import AWKWARD, Page

LONG = "my_module." + "Very" * 30 + "LongAttention"
VALUE = "a|b<i>*_$&"
LENGTHS, PAPER = (512, 1024, 2048, 4096), (1000, 2000, 3000, 4000)
LATER = "2026-11-20T12:00:00Z"
LABELS = (AWKWARD.replace("\n", r"\n"), LONG, f"bigbird (kind={VALUE})")

OURS = [mechanism("bigbird", block=64, random=3, kind=kind) for kind in (VALUE, "plain")]
THEIRS = mechanism("peer:hf_bigbird", block_size=64, random_blocks=3)
SUBJECTS: list[str | Mechanism] = [AWKWARD, LONG, *OURS, THEIRS]
ANCHORS: list[str | Mechanism] = ["sdpa", "identity"]


def _timed(name: str | Mechanism, length: int, power: float, **fields: Any) -> Iterator[Record]:
    """Three processes; the second of a subject's in the text model began an hour later."""
    for replicate in range(3):
        # So that it costs less than exact attention from about 1000 positions on.
        seconds = 1e-6 * length**power * (1 + 0.01 * replicate) * (1 if name in ANCHORS else 32)
        made = efficiency(
            name, length, "train", seconds, 1e3 * length**power, machine=GPU, replicate=replicate,
            declared=("O(n | m d)", "O(n)"), **fields,
        )  # fmt: skip
        more = {"energy": 20 * seconds, "energy_seconds": seconds, "idle_power": 5.0}
        counts = {"operations": 1e5 * length, "minimum_bytes": 1e3 * length}
        yield with_metrics(made, **more, **counts)


def _records() -> Iterator[Record]:
    text = {"level": "model", "task": "text", "scale": "paper", "batch": 32}
    yield ceiling(machine=GPU, device="cuda")
    for name in (*ANCHORS, *SUBJECTS):
        power = {"sdpa": 1.6, "identity": 0.9}.get(str(name), 1.1)
        torn = {} if name in ANCHORS else {"started": LATER}
        for length in LENGTHS:
            yield from _timed(name, length, power)
        for length in PAPER:
            yield from _timed(name, length, power, **text, **torn)
    for name in (AWKWARD, LONG):
        for budget in (mechanism(name, features=n, kind=VALUE) for n in (16, 64)):
            for length in LENGTHS:
                for scale, seed in product((0.5, 1.0), range(3)):
                    off = 2 * scale / budget.config["features"]
                    yield error(budget, length, off, rate=0.5, input_scale=scale, seed=seed)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    return render(list(_records()), [], tmp_path_factory.mktemp("awkward"), title=AWKWARD)


def test_every_section_is_there_with_every_name(made: Rendered) -> None:
    page = Page(made.page.read_text(encoding="utf-8"))
    assert page.open == []
    assert not {"b", "i"} & set(page.tags)
    ids = {value for tag, name, value in page.attributes if (tag, name) == ("section", "id")}
    for wanted in ("scaling", "error", "share-of-the-machine-s-limit", "repeatability"):
        assert any(id.startswith(wanted) for id in ids), wanted
    assert all(page.text.count(label) >= 5 for label in LABELS)


def test_no_table_of_the_markdown_is_torn_by_a_name(made: Rendered) -> None:
    text = made.page.with_name("report.md").read_text(encoding="utf-8")
    assert not re.search(r"(?<!\\)<[bi]>", text)
    width, found = 0, 0
    for line in text.splitlines():
        columns = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not width or not columns or columns == width, line
        width, found = columns, found + bool(columns)
    assert found > 50


def test_every_drawing_is_a_drawing(made: Rendered) -> None:
    plots = sorted((made.page.parent / "plots").iterdir())
    assert {"crossover", "error", "limit"} <= {plot.name.partition("-")[0] for plot in plots}
    for plot in plots:
        ElementTree.fromstring(plot.read_text(encoding="utf-8"))
        written = re.findall(r"<text[^>]*>([^<]*)</text>", plot.read_text(encoding="utf-8"))
        assert max(map(len, written)) < 70, plot.name
