"""Plots of accuracies and of learning curves: what they show, and captions that say just that."""

from __future__ import annotations

import re

import pytest
from lra.report.pictures.accuracy import quality_figure
from lra.report.pictures.learning import learning_figure
from lra.report.pictures.style import looks
from lra.report.quality.tables import quality_tables
from lra.report.select import join

from report.sample import quality


def test_lines_of_many_mechanisms_are_thin_and_each_is_in_the_legend() -> None:
    names = [f"m{n}" for n in range(13)]
    for some, thickest in ((names[:3], "2.4"), (names, "1.6")):
        selection = join([quality(name, "text", 0.7) for name in some], [])
        known = looks((name, name) for name in (*some, "identity"))
        figure = learning_figure(quality_tables(selection)[0], selection, known)
        assert figure is not None
        widths = set(re.findall(r"stroke-width: ([12]\.[46])\b", figure.svg))
        assert widths == {thickest}
        assert ("Thick: the mechanisms compared" in figure.caption) is (thickest == "2.4")
        assert all(f">{name}</text>" in figure.svg for name in some)


def test_the_widths_of_lines_are_told_of_those_that_are_drawn() -> None:
    def told(run: tuple[str, ...], *reference: str) -> str:
        selection = join([quality(n, "text") for n in run], [quality(n, "text") for n in reference])
        known = looks((name, name) for name in (*run, *reference))
        figure = learning_figure(quality_tables(selection)[0], selection, known)
        assert figure is not None
        return figure.caption.removesuffix(" A point for each validation.")

    thick, anchors = "Thick: the mechanisms compared", ("sdpa", "identity")
    assert told(("linear", *anchors)) == f"{thick}; thin: sdpa and no mixing."
    assert told(("linear", "sdpa"), "identity") == f"{thick}; thin: sdpa; thinnest: reference."
    assert told(("linear",), *anchors) == f"{thick}; thin: reference."
    assert told(anchors) == "A point for each validation."
    long = told(("a" * 40, "sdpa"))
    assert long.endswith("Long names are cut short; the table of accuracies has them in full.")


@pytest.mark.parametrize("beside", [False, True])
def test_captions_speak_of_what_is_drawn(beside: bool) -> None:
    reference = [quality("linear", "text", 0.6)] if beside else []
    selection = join([quality("performer", "text", 0.7)], reference)
    known = looks((name, name) for name in ("performer", "linear"))
    table = quality_tables(selection)[0]
    dots, curves = quality_figure(table, known), learning_figure(table, selection, known)
    assert dots is not None and curves is not None
    assert ("Hollow: reference." in dots.caption) is beside
    assert ("thin: reference." in curves.caption) is beside
    assert "standard deviation" not in dots.caption + curves.caption


def test_captions_say_what_bars_and_bands_are_where_there_are_seeds() -> None:
    records = [quality("performer", "text", 0.7 + seed / 10, seed=seed) for seed in range(2)]
    selection = join(records, [])
    table, known = quality_tables(selection)[0], looks([("performer", "performer")])
    dots, curves = quality_figure(table, known), learning_figure(table, selection, known)
    assert dots is not None and curves is not None
    assert "Bars: one standard deviation over seeds" in dots.caption
    assert "Means over seeds, bands of one standard deviation." in curves.caption


def test_many_endings_at_once_do_not_crowd_the_panels_out_of_the_plot() -> None:
    """matplotlib warns, and warnings are errors here."""
    endings = ("oom", "timeout", "crash", "diverged", "error")
    records = [
        quality("linear", task, status=ending, seed=n)
        for task in ("listops", "text", "retrieval", "image", "pathfinder")
        for n, ending in enumerate(endings)
    ]
    selection = join(records, [])
    (table,) = quality_tables(selection)
    figure = quality_figure(table, looks([("linear", "linear")]))
    written = re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg if figure else "")
    assert max(map(len, written)) < 30 and any("OOM" in words for words in written)
