"""The gallery: a row and a picture for each record of `lra show`, from the record alone."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from lra.report.mechanisms.gallery import gallery
from lra.report.mechanisms.picture import Picture
from lra.report.pictures.pattern import pattern_png, pattern_svg
from lra.report.pictures.style import look
from lra.report.table import Table, one_line
from msgspec.structs import replace
from PIL import Image

from lra.core.cells import ShowCell
from lra.core.pattern import pack
from lra.core.records import Record, decode, encode
from lra.report import render
from report.sample import efficiency, mechanism, shown

NEWER = "2026-11-21T10:00:00Z"


def _picture(record: Record) -> Picture:
    assert record.pattern is not None and isinstance(record.cell, ShowCell)
    return Picture("longformer", record.cell, record.pattern)


def _lines(table: Table) -> list[list[str]]:
    return [[row.title, *map(one_line, row.cells)] for row in table.rows]


def _images(svg: str) -> list[np.ndarray]:
    """The squares in a drawing, as red, green, blue and opacity."""
    found = re.findall(r"base64,\s*([A-Za-z0-9+/=\s]+)", svg)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA"))
            for text in found]  # fmt: skip


def test_every_picture_has_a_row_and_a_figure_and_every_ending_a_row() -> None:
    section = gallery(
        [
            shown("longformer"),
            shown("lstm", 8, kind="dependence", direction="causal"),
            shown("sinkhorn", status="unsupported"),
        ]
    )
    assert section is not None
    assert _lines(section.tables[0]) == [
        ["longformer", "16", "bidirectional", "28.9 %", "weights"],
        ["lstm", "8", "causal", "53.1 %", "dependence"],
        ["sinkhorn", "16", "bidirectional", "n/a", "unsupported: longer than its maximum length"],
    ]
    assert [(f.id, f.title) for f in section.figures] == [
        ("pattern-1", "longformer, 16 positions"),
        ("pattern-2", "lstm, 8 positions, causal"),
    ]
    one, other = section.figures
    assert "28.9 % of 16" in one.alt and "weights of 2 heads, up to 1.0" in one.alt
    assert "do interact on this input" in other.alt and "measured by gradients" in other.caption


def test_without_a_record_of_one_there_is_no_gallery() -> None:
    assert gallery([]) is None


def test_the_newest_of_the_same_picture_stands_and_other_pictures_beside_it() -> None:
    old, new = shown("full", measure=2), shown("full", started=NEWER, alike=False)
    others = [shown("full", 8), shown("full", direction="causal"), shown("full", input="h")]
    for records in ([old, new, *others], [*others, new, old]):
        section = gallery(records)
        assert section is not None and len(section.figures) == 4
        # Sizes differ, and inputs; the heads of the newest read unlike.
        assert sum("head 2" in f.svg and f.svg.count("head 2") == 2 for f in section.figures) == 1


def test_settings_name_a_row_where_there_are_several_and_a_caption_always() -> None:
    wide, narrow = (shown(mechanism("longformer", window=w, leading=1)) for w in (8, 2))
    section = gallery([wide, narrow])
    assert section is not None
    labels = {row.label for row in section.tables[0].rows}
    assert labels == {"longformer (window=2)", "longformer (window=8)"}
    assert {f.caption.partition("Settings: ")[2] for f in section.figures} == {
        "leading 1, window 2.",
        "leading 1, window 8.",
    }


@pytest.mark.parametrize("alike", [True, False])
def test_the_squares_drawn_are_the_support_and_what_lies_outside_stays_white(alike: bool) -> None:
    record = shown("longformer", alike=alike)
    assert record.pattern is not None
    support, values = record.pattern.support_SNN(), record.pattern.values_HNN()
    images = _images(pattern_svg(_picture(record)))
    left, right = images[: len(support)], images[len(support) : len(support) + len(values)]
    colour = [int(look("longformer").colour[k : k + 2], 16) for k in (1, 3, 5)]
    for image, pairs in zip(left, support, strict=True):
        assert image.shape == (16, 16, 4)
        assert ((image[..., :3] == colour).all(-1) == pairs).all()
        assert (image[~pairs][:, :3] == 255).all()
    for head, image in enumerate(right):
        pairs = support[min(head, len(support) - 1)]
        assert ((image[..., 3] > 0) == pairs).all()


def test_heads_share_one_scale_of_colour() -> None:
    record = shown("longformer")
    assert record.pattern is not None
    support, values = record.pattern.support_SNN(), record.pattern.values_HNN()
    for factor, equal in ((1.0, True), (0.5, False)):
        values[1] = factor * values[0]
        pattern = pack(support, values, "weights", measured=False)
        _, one, other = _images(pattern_svg(replace(_picture(record), pattern=pattern)))[:3]
        assert (one == other).all() == equal


@pytest.mark.parametrize(
    "record",
    [
        shown("a", 1, heads=1),
        shown("a", 2, heads=3, alike=False),
        shown("a", 40, heads=5, alike=False),
        shown("a", signed=True),
        shown("a", kind="dependence"),
        shown("a", 1, kind="dependence"),
        shown("a", 128, heads=4),
    ],
    ids=lambda r: f"{r.pattern.scale}-{r.cell.heads}-{r.cell.length}",
)
def test_every_shape_and_scale_is_drawn_the_same_each_time(record: Record) -> None:
    again = decode(encode(record))
    assert record.pattern is not None
    assert pattern_svg(_picture(record)) == pattern_svg(_picture(again))
    png = pattern_png(_picture(record))
    assert png == pattern_png(_picture(again)) and png.startswith(b"\x89PNG")
    text = pattern_svg(_picture(record), headed=True)
    assert "longformer, " in text
    assert ("query position" in text) == (record.pattern.kind == "weights")
    assert "mathdefault" not in text, "text is text"


def test_a_store_of_pictures_alone_is_a_report(tmp_path: Path) -> None:
    result = render([shown("full")], [], tmp_path, title="pictures")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## What they attend to" in text and "(plots/pattern-1.svg)" in text
    assert "no record to report" not in text
    assert (tmp_path / "plots/pattern-1.svg").is_file()
    assert "may interact" in result.findings.headline[0]


def test_pictures_count_as_nothing_else(tmp_path: Path) -> None:
    records = [efficiency("a", 512), efficiency("sdpa", 512)]
    render(records, [], tmp_path / "without", title="x")
    render([*records, shown("a")], [shown("b")], tmp_path / "with", title="x")
    texts = [(tmp_path / out / "report.csv").read_text() for out in ("without", "with")]
    assert texts[0] == texts[1]
    page = (tmp_path / "with/report.md").read_text(encoding="utf-8")
    assert page.count("pattern-") == 1, "pictures of the reference stay there"


def test_of_many_pictures_the_first_are_drawn_and_the_table_has_all() -> None:
    records = [shown(f"m{number:02}", 4, heads=1) for number in range(30)]
    section = gallery(records)
    assert section is not None
    assert len(section.figures) == 24 and len(section.tables[0].rows) == 30
    assert section.text[-1].startswith("The page has room for the first 24 of 30 pictures;")
    few = gallery(records[:24])
    assert few is not None and len(few.text) == 1
