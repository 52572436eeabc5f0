"""Plots of costs and of their multiples of exact attention, by the words and lines of their SVG."""

from __future__ import annotations

import math
import re

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from lra.core.records import Record
from lra.report.model import Figure
from lra.report.plots.compact import compact
from lra.report.plots.lines import log_axes, ticks_of
from lra.report.plots.style import FAINT
from lra.report.sections import scaling
from lra.report.words import TIMES
from report.sample import with_metrics
from report.sweeps import LENGTHS, OLD, analysed, ended, exact, swept, texts


def figures(records: list[Record], reference: list[Record] | None = None) -> dict[str, Figure]:
    sections = scaling.sections(analysed(records, reference or []))
    return {figure.id: figure for section in sections for figure in section.figures}


def crossing(records: list[Record]) -> Figure:
    return figures(records)["crossover-train-1"]


def test_what_crosses_is_named_with_its_length_and_what_stays_far_is_grey() -> None:
    near = [
        *swept("crosses", lambda n: 1900.0 * n),
        *swept("near", lambda n: 1.2 * n**2),
        *exact(),
    ]
    far = swept("far", lambda n: 50.0 * n**2, room=lambda n: 1e5 * n)
    figure, without = crossing([*near, *far]), crossing(near)
    assert "crosses  1,900" in texts(figure) and "near" in texts(figure)
    assert "far" not in texts(figure) and f"1 {TIMES}" in texts(figure)
    # One line for its time, one for its memory.
    assert figure.svg.count(FAINT) == without.svg.count(FAINT) + 2
    assert "Grey" in figure.caption and "Grey" not in without.caption
    assert "Shaded" not in without.caption


@pytest.mark.parametrize(
    ("known", "gone", "start"),
    [(LENGTHS[:3], LENGTHS[3], math.sqrt(LENGTHS[2] * LENGTHS[3])), (LENGTHS[1:], LENGTHS[0], 0.0)],
)
def test_the_shade_begins_halfway_after_the_last_length_that_it_did_or_at_the_edge(
    known: tuple[int, ...], gone: int, start: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans: list[tuple[float, float]] = []
    edges: set[tuple[float, float]] = set()

    def span(axes: Axes, left: float, right: float, **style: object) -> None:
        spans.append((left, right))
        edges.add(axes.get_xlim())

    monkeypatch.setattr(Axes, "axvspan", span)
    figure = crossing(
        [
            *(record for name in "ab" for record in swept(name, lambda n: n)),
            *exact(lengths=known),
            *ended("sdpa", "oom", gone),
        ]
    )
    ((edge, end),) = edges
    # A panel for the time, one for the memory.
    assert spans == [(pytest.approx(start or edge), end)] * 2
    assert edge < LENGTHS[0] and end > LENGTHS[-1]
    assert "sdpa OOM" in texts(figure) and "Shaded" in figure.caption


def test_without_ratios_or_lengths_or_a_second_mechanism_there_is_no_figure() -> None:
    assert "crossover-train-1" not in figures(swept("a", lambda n: n))
    alone = [*swept("a", lambda n: n), *exact()]
    assert "crossover-train-1" not in figures(alone)
    assert "crossover-train-1" in figures([*alone, *swept("b", lambda n: n)])
    few = {"lengths": LENGTHS[:1]}
    assert figures([*swept("a", lambda n: n, **few), *exact(**few)]) == {}  # type: ignore[arg-type]


def test_costs_have_their_exponent_after_the_name_and_a_cross_for_a_failure() -> None:
    timed = swept("a", lambda n: 100.0 * n)
    plain = figures(timed)["scaling-train-1"]
    assert "a  n^1.0" in texts(plain) and "cross" not in plain.caption
    assert "Hollow" not in plain.caption
    failed = figures([*timed, *ended("b", "oom", *LENGTHS)])["scaling-train-1"]
    assert "cross" in failed.caption and "b" in texts(failed)
    # An unsupported call is no failure.
    lacking = figures([*timed, *ended("b", "unsupported", *LENGTHS)])["scaling-train-1"]
    assert "b" not in texts(lacking) and "cross" not in lacking.caption
    beside = figures(timed, swept("sdpa", lambda n: n, started=OLD))["scaling-train-1"]
    assert "Hollow: reference." in beside.caption


def test_a_row_that_the_run_and_the_reference_share_is_named_by_its_origin() -> None:
    mine = [*swept("a", lambda n: n, lengths=LENGTHS[1:]), *ended("a", "timeout", LENGTHS[0])]
    both = figures(mine, swept("a", lambda n: 2 * n, started=OLD))["scaling-train-1"]
    names = [text.split("  ")[0] for text in texts(both)]
    assert {"a", "a (reference)"} <= set(names)


def test_settings_of_the_reference_alone_have_no_figures() -> None:
    there = swept("a", lambda n: n, started=OLD, threads=7)
    assert set(figures(swept("a", lambda n: n), there)) == {"scaling-train-1"}


def test_lengths_that_crowd_have_no_tick() -> None:
    assert ticks_of([256, 512, 1024, 2048, 3000, 4096, 8192]) == [256, 512, 1024, 2048, 4096, 8192]
    assert ticks_of([1000, 1001, 1002]) == [1002]
    assert ticks_of([]) == []


@pytest.mark.parametrize("low", [1.0, 3.1, 8.7])
@pytest.mark.parametrize("span", [1.2, 1.49, 1.71, 4.9, 60.0, 5000.0])
def test_a_value_can_be_read_between_ticks_whatever_the_span(low: float, span: float) -> None:
    axes = Canvas().subplots()
    log_axes(axes, [256, 512], [low, low * span], str)
    bottom, top = axes.get_ylim()
    shown = [tick for tick in axes.yaxis.get_majorticklocs() if bottom <= tick <= top]
    assert 2 <= len(shown) <= 12


def test_a_compact_drawing_has_the_same_shapes_and_refers_to_what_is_there() -> None:
    svg = figures([with_metrics(one) for one in swept("a", lambda n: n)])["scaling-train-1"].svg
    assert compact(svg) == svg
    ids = set(re.findall(r' id="([^"]*)"', svg))
    assert ids == set(re.findall(r'(?:xlink:href="#|url\(#)([^")]*)', svg))
    # A marker for each of six lengths in each panel, and one beside each name.
    assert svg.count("<use ") >= len(LENGTHS) + 1
    uses = '<g clip-path="url(#c)"><use xlink:href="#m" x="1" style="fill: red"/></g>'
    assert compact(uses).startswith('<g clip-path="url(#c)" style="fill: red"><use')
    mixed = '<g><use href="#m" style="fill: red"/><use href="#m" style="fill: blue"/></g>'
    assert compact(mixed) == mixed
