"""Pictures of patterns, from the records of `lra show` alone."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from lra.core.cells import ShowCell
from lra.core.pattern import pack
from lra.core.records import Record, decode, encode
from lra.report import render
from lra.report.plots.gallery import card_pattern, gallery_figure
from lra.report.plots.pattern import pattern_png, pattern_svg
from lra.report.plots.picture import Picture
from lra.report.plots.style import Looks
from lra.report.sections.gallery import newest, pictures

from .sample import efficiency, mechanism, shown

NEWER = "2026-11-21T10:00:00Z"


def _picture(record: Record) -> Picture:
    assert record.pattern is not None and isinstance(record.cell, ShowCell)
    return Picture("longformer", record.cell, record.pattern)


def _images(svg: str) -> list[np.ndarray]:
    """The squares in a drawing, as red, green, blue and opacity."""
    found = re.findall(r"base64,\s*([A-Za-z0-9+/=\s]+)", svg)
    return [np.array(Image.open(io.BytesIO(base64.b64decode(text))).convert("RGBA"))
            for text in found]  # fmt: skip


def test_the_newest_of_the_same_picture_stands_and_other_pictures_beside_it() -> None:
    old, new = shown("full", measure=2), shown("full", started=NEWER, alike=False)
    others = [shown("full", 8), shown("full", direction="causal"), shown("full", input="h")]
    for records in ([old, new, *others], [*others, new, old]):
        found = newest(records)
        assert len(found) == 4 and new in found and old not in found


def test_settings_name_a_picture_where_there_are_several() -> None:
    wide, narrow = (shown(mechanism("longformer", window=w, leading=1)) for w in (8, 2))
    labels = {one.label for one in pictures(newest([wide, narrow]))}
    assert labels == {"longformer (window=2)", "longformer (window=8)"}


def test_a_small_picture_has_a_pixel_for_each_pair_of_the_support() -> None:
    found = pictures([shown("longformer"), shown("lstm", 8, kind="dependence")])
    figure = gallery_figure(found, Looks())
    assert figure is not None and gallery_figure([], Looks()) is None
    for one, image in zip(found, _images(figure.svg), strict=True):
        pairs = one.pattern.support_SNN()[0]
        assert image.shape[:2] == pairs.shape
        assert ((image[..., :3] == 255).all(-1) == ~pairs).all()


@pytest.mark.parametrize("signed", [True, False])
def test_the_picture_of_a_card_has_the_weights_of_each_head(signed: bool) -> None:
    record = shown("longformer", heads=3, signed=signed)
    one = _picture(record)
    _, *heads = _images(card_pattern(one, Looks()).svg)
    values = one.pattern.values_HNN()
    assert len(heads) == 3
    for image, own in zip(heads, values, strict=True):
        # Equal weights have one colour, and the largest is the farthest from that of zero.
        zero = image[own == 0][0, :3].astype(int)
        distance = np.abs(image[..., :3].astype(int) - zero).sum(-1)
        assert (distance[own == 0] == 0).all()
        assert distance[np.abs(own) == np.abs(own).max()].min() >= distance.max() - 60


@pytest.mark.parametrize("alike", [True, False])
def test_the_squares_drawn_are_the_support_and_what_lies_outside_stays_white(alike: bool) -> None:
    record = shown("longformer", alike=alike)
    assert record.pattern is not None
    support, values = record.pattern.support_SNN(), record.pattern.values_HNN()
    images = _images(pattern_svg(_picture(record), Looks()))
    left, right = images[: len(support)], images[len(support) : len(support) + len(values)]
    colour = [int(Looks().of("longformer").colour[k : k + 2], 16) for k in (1, 3, 5)]
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
        _, one, other = _images(pattern_svg(replace(_picture(record), pattern=pattern), Looks()))[
            :3
        ]
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
    assert pattern_svg(_picture(record), Looks()) == pattern_svg(_picture(again), Looks())
    png = pattern_png(_picture(record), Looks())
    assert png == pattern_png(_picture(again), Looks()) and png.startswith(b"\x89PNG")
    text = pattern_svg(_picture(record), Looks(), headed=True)
    assert "longformer, " in text
    assert ("query position" in text) == (record.pattern.kind == "weights")
    assert "mathdefault" not in text, "text is text"


def test_a_store_of_pictures_alone_is_a_report(tmp_path: Path) -> None:
    render([shown("full")], [], tmp_path, title="pictures")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## Gallery" in text and (tmp_path / "plots/gallery.svg").is_file()
    assert (tmp_path / "mechanisms/full.html").is_file()


def test_pictures_count_as_nothing_else(tmp_path: Path) -> None:
    records = [efficiency("a", 512), efficiency("sdpa", 512)]
    render(records, [], tmp_path / "without", title="x")
    render([*records, shown("a")], [shown("b")], tmp_path / "with", title="x")
    texts = [(tmp_path / out / "report.csv").read_text() for out in ("without", "with")]
    assert texts[0] == texts[1]
    assert not (tmp_path / "with/mechanisms/b.html").exists()
