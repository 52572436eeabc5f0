"""The plots of ratios to exact attention and of decoding, by what their SVG says."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.pictures.cost import cost_figure, decode_figure
from lra.report.pictures.crossover import crossover_figure
from lra.report.pictures.style import FAINT, Looks, looks
from lra.report.select import Selection, join
from lra.report.table import Figure
from matplotlib.axes import Axes

from lra.core.records import Record
from lra.report.assemble import assemble
from lra.report.words import TIMES
from report.costs.test_crossover import LENGTHS, ended, exact, swept
from report.sample import efficiency, with_metrics


def _of(records: list[Record]) -> tuple[EfficiencyTables, Looks]:
    selection: Selection = join(records, [])
    (tables,) = efficiency_tables(selection)
    return tables, looks((e.mechanism, e.label) for e in selection.entries)


def crossing(records: list[Record]) -> Figure:
    found = crossover_figure(*_of(records))
    assert found is not None
    return found


def texts(figure: Figure) -> list[str]:
    """What the drawing writes."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)


def test_what_crosses_is_named_with_its_length_and_what_stays_far_is_grey() -> None:
    near = [
        *swept("crosses", lambda n: 1900.0 * n),
        *swept("near", lambda n: 1.2 * n**2),
        *exact(),
    ]
    far = swept("far", lambda n: 50.0 * n**2, room=lambda n: 1e5 * n)
    figure, without = crossing([*near, *far]), crossing(near)
    assert "crosses  1,900" in texts(figure) and "near" in texts(figure)
    assert "far" not in texts(figure)
    # One line for its time, one for its memory.
    assert figure.svg.count(FAINT) == without.svg.count(FAINT) + 2
    assert f"comes within 1.5 {TIMES}" in figure.caption
    assert "comes within" not in without.caption and "ran out of memory" not in figure.caption


def test_the_line_at_one_lies_in_every_panel() -> None:
    cheap = [*swept("cheap", lambda n: n**2 / 3.0), *exact()]
    assert f"1 {TIMES}" in texts(crossing(cheap))


def test_exact_attention_out_of_memory_shades_its_lengths_and_loses_no_line() -> None:
    records = [
        *swept("a", lambda n: 1900.0 * n),
        *exact(lengths=LENGTHS[:4]),
        *ended("sdpa", "oom", 4096),
        *ended("sdpa", "skipped", 8192),
    ]
    figure = crossing(records)
    assert "sdpa OOM" in texts(figure) and "a  1,900" in texts(figure)
    assert "sdpa ran out of memory" in figure.caption


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
    crossing([*swept("a", lambda n: n), *exact(lengths=known), *ended("sdpa", "oom", gone)])
    ((edge, end),) = edges
    # A panel for the time, one for the memory.
    assert spans == [(pytest.approx(start or edge), end)] * 2
    assert edge < LENGTHS[0] and end > LENGTHS[-1]


def test_without_ratios_there_is_no_figure() -> None:
    assert crossover_figure(*_of(swept("a", lambda n: n))) is None
    short = [*swept("a", lambda n: n, lengths=LENGTHS[:2]), *exact(lengths=LENGTHS[:2])]
    assert crossover_figure(*_of(short)) is None


def decoding(lengths: tuple[int, ...]) -> list[Record]:
    def decoded(name: str, n: int, seconds: float, state: float) -> Record:
        made = efficiency(name, n, "decode", seconds, direction="causal")
        return with_metrics(made, state_bytes=state)

    flat = [decoded("linear", n, 1e-4, 4e3) for n in lengths]
    return flat + [decoded("sdpa", n, 1e-7 * n, 1e3 * n) for n in lengths]


def test_decoding_has_time_and_state_against_the_context() -> None:
    tables, known = _of(decoding(LENGTHS))
    figure = decode_figure(tables, known)
    assert figure is not None
    written = texts(figure)
    assert {"time of one token", "state after the prompt", "context length"} <= set(written)
    # Once in each panel, with the exponent fitted there; a zero has no sign.
    assert written.count("linear  n^0.0") == 2 and written.count("sdpa  n^1.0") == 2
    assert cost_figure(tables, "latency", known) is None


def test_decoding_at_one_length_has_no_figure_and_other_modes_keep_theirs() -> None:
    assert decode_figure(*_of(decoding((512,)))) is None
    assert decode_figure(*_of(swept("a", lambda n: n))) is None
    tables, known = _of(swept("a", lambda n: n))
    assert cost_figure(tables, "latency", known) is not None


def test_the_caption_of_a_cost_speaks_of_crosses_only_where_one_is() -> None:
    timed = swept("a", lambda n: n)
    failed = efficiency("b", LENGTHS[-1], timed[0].cell.mode, status="oom")
    for records, crosses in ((timed, False), ([*timed, failed], True)):
        tables, known = _of(records)
        figure = cost_figure(tables, "latency", known)
        assert figure is not None
        assert ("A cross at the top" in figure.caption) is crosses
        assert "Hollow" not in figure.caption
    (tables,) = efficiency_tables(join(timed, swept("c", lambda n: n)))
    figure = cost_figure(tables, "latency", looks([("a", "a"), ("c", "c")]))
    assert figure is not None and "Hollow: reference." in figure.caption


def test_the_figures_stand_in_their_sections() -> None:
    causal = {"direction": "causal"}
    records = [*swept("a", lambda n: 1900.0 * n, **causal), *exact(**causal), *decoding(LENGTHS)]
    report, _ = assemble(join(records, []), "made up")
    ids = {section.id: [f.id for f in section.figures] for section in report.sections}
    assert ids["crossover"] == ["crossover-1"] and ids["decoding"] == ["decoding-1"]


def test_a_state_that_had_no_memory_is_shaded_too() -> None:
    def decoded(name: str, lengths: Sequence[int]) -> list[Record]:
        found = swept(name, lambda n: 1.0 * n, mode="decode", lengths=lengths)
        return [with_metrics(one, state_bytes=5e3) for one in found]

    records = [*decoded("a", LENGTHS), *decoded("sdpa", LENGTHS[:-1])]
    figure = crossing([*records, *ended("sdpa", "oom", 8192, mode="decode")])
    # Of the time and of the state.
    assert texts(figure).count("sdpa OOM") == 2
