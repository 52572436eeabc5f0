"""The whole report as one value: sentences, tables and figures in reading order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

from lra.report.answer.sentences import answer, caveats, summary
from lra.report.costs.energy import why_no_energy
from lra.report.costs.estimate import Assumptions, estimate_tables, no_estimate
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.endings import not_ok_table
from lra.report.error.tables import ErrorTables, error_tables
from lra.report.mechanisms.capabilities import capabilities
from lra.report.mechanisms.gallery import gallery
from lra.report.mechanisms.settings import in_words, stand_ins, trained_and_timed
from lra.report.others.beside import beside_sections
from lra.report.others.published import published_sections
from lra.report.others.table2 import table2_sections
from lra.report.pictures.accuracy import quality_figure
from lra.report.pictures.cost import cost_figure, decode_figure
from lra.report.pictures.crossover import crossover_figure
from lra.report.pictures.error import error_figure
from lra.report.pictures.error_scale import error_scale_figure
from lra.report.pictures.front import front_figure
from lra.report.pictures.learning import learning_figure
from lra.report.pictures.limit import limit_figure
from lra.report.pictures.ranks import ranks_figure
from lra.report.pictures.style import Looks, looks
from lra.report.pictures.tradeoff import tradeoff_figure
from lra.report.protocol import parameter_table, protocol_table
from lra.report.provenance import footer, measuring, provenance_table, subtitle
from lra.report.quality.standing import Standing, standing
from lra.report.quality.tables import QualityTable, quality_tables
from lra.report.select import Selection
from lra.report.table import Figure, Report, Section, Table
from lra.report.tradeoff.front import front_table, fronts
from lra.report.words import apart

EMPTY = "There is no record to report: run python -m lra run --impl performer, then report again."
_Item = TypeVar("_Item")


def spoken(selection: Selection) -> tuple[tuple[str, ...], Table | None]:
    """Return what to print: the answer, and the small table beside it."""
    if not any(kept.origin == "run" for kept in selection.kept):
        return (EMPTY,), None
    quality, costs = quality_tables(selection), efficiency_tables(selection)
    errors = error_tables(selection)
    standings = [standing(one, selection) for one in quality]
    first = answer(selection, quality, costs, errors, standings)
    return (*first, *caveats(selection, quality)), summary(quality, costs, errors)


def assemble(
    selection: Selection, title: str, assumed: Assumptions | None = None
) -> tuple[Report, Table | None]:
    """Return the report, and the small table to print beside its answer."""
    assumed = assumed or Assumptions()
    if not any(kept.origin == "run" for kept in selection.kept):
        alone = _there(
            [capabilities(selection.checks, selection.reference_checks), gallery(selection.shown)]
        )
        if not_ok_table(selection) is not None:
            alone = (*alone, *_not_ok(selection))
        told = tuple(text for section in alone for text in section.text) or (EMPTY,)
        return Report(title, "", told, alone, ""), None
    quality, costs = quality_tables(selection), efficiency_tables(selection)
    errors = error_tables(selection)
    here = [one for one in costs if not one.reference_only]
    elsewhere = [one for one in costs if one.reference_only]
    known = looks(
        [
            *((e.mechanism, e.label) for e in selection.entries if e.mechanism),
            *((c.mechanism, c.title) for one in errors for cs in one.curves.values() for c in cs),
        ]
    )
    standings = [standing(one, selection) for one in quality]
    sections = [
        *_quality(quality, standings, selection, known),
        *published_sections(quality, selection),
        *_costs(here, selection, known, assumed),
        *beside_sections(here, selection.busy),
        *table2_sections(here, selection.busy),
        *_tradeoff(quality, costs, selection, known),
        *_errors(errors, known),
        *_elsewhere(elsewhere),
        *_not_ok(selection),
        *_protocol(quality, selection, assumed),
        *_there(
            [capabilities(selection.checks, selection.reference_checks), gallery(selection.shown)]
        ),
        Section("provenance", "Provenance", tables=(provenance_table(selection),)),
    ]
    report = Report(
        title=title,
        subtitle=subtitle(selection),
        answer=answer(selection, quality, costs, errors, standings),
        caveats=caveats(selection, quality),
        sections=tuple(sections),
        footer=footer(selection),
        looks=known,
    )
    return report, summary(quality, costs, errors)


def _there(items: Iterable[_Item | None]) -> tuple[_Item, ...]:
    return tuple(item for item in items if item is not None)


def _quality(
    quality: Sequence[QualityTable],
    standings: Sequence[Standing | None],
    selection: Selection,
    known: Looks,
) -> list[Section]:
    if not quality:
        return [Section("quality", "Quality", ("No model was trained in this run.",))]
    sections = []
    for number, (one, stands) in enumerate(zip(quality, standings, strict=True), start=1):
        figures = [quality_figure(one, known), learning_figure(one, selection, known)]
        if stands is not None:
            figures.insert(1, ranks_figure(stands, known))
        sections.append(
            Section(
                "quality" if number == 1 else f"quality-{number}",
                "Quality" if number == 1 else f"Quality: {one.table.title.lower()}",
                tables=_there((one.table, stands.table if stands else None)),
                figures=_there(figures),
            )
        )
    return sections


def _costs(
    costs: Sequence[EfficiencyTables], selection: Selection, known: Looks, assumed: Assumptions
) -> list[Section]:
    if not costs:
        return [Section("latency", "Latency and memory", ("None was measured in this run.",))]
    differences, sections = trained_and_timed(selection.entries), []
    names = apart([one.parts for one in costs])
    for number, (one, name) in enumerate(zip(costs, names, strict=True), start=1):
        place, which = (f"-{number}", f": {name}") if name else ("", "")
        parts: list[tuple[Literal["latency", "memory"], dict[str, Table]]] = [
            ("latency", one.latency),
            ("memory", one.memory),
        ]
        labels = {row.variant for table in one.latency.values() for row in table.rows}
        notes = in_words(differences, {key for key in differences if key[1] in labels})
        for metric, tables in parts:
            sections.append(
                Section(
                    f"{metric}{place}",
                    f"{metric.capitalize()}{which}",
                    (one.setting, *(notes if metric == "latency" else ())),
                    tuple(tables.values()),
                    _there([cost_figure(one, metric, known)]),
                )
            )
        energy = (
            *one.energy.values(),
            *one.net_energy.values(),
            *estimate_tables(one.energy, assumed),
        )
        limits = (*one.limit, *_there([one.declared]))
        shares = limit_figure(one.limit, known)
        taken = (*one.prefill.values(), *one.state.values())
        crossings, decoding = crossover_figure(one, known), decode_figure(one, known)
        for id, title, text, found, figure in (
            ("growth", "Growth", (one.setting,), _there([one.growth]), None),
            ("crossover", "Crossover", (one.setting,), _there([one.crossover]), crossings),
            ("limit", "Share of the machine's limit", one.agreement, limits, shares),
            ("decoding", "Decoding", one.exactness, taken, decoding),
            ("energy", "Energy", (one.setting,), energy, None),
            (
                "repeatability",
                "Repeatability",
                (one.setting, *one.repeatability.text),
                one.repeatability.tables,
                None,
            ),
        ):
            if found:
                sections.append(
                    Section(f"{id}{place}", f"{title}{which}", text, found, _there([figure]))
                )
    return sections


def _tradeoff(
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    selection: Selection,
    known: Looks,
) -> list[Section]:
    differences, instead = trained_and_timed(selection.entries), stand_ins(selection.entries)
    figures: list[Figure | None] = []
    tables = []
    for one in quality:
        found = fronts(one, costs, instead)
        figures.append(tradeoff_figure(one, costs, differences, instead, known))
        figures.append(front_figure(one, found, known))
        tables += [front_table(one, found)] if found else []
    drawn = _there(figures)
    return [Section("tradeoff", "Quality against speed", (), tuple(tables), drawn)] if drawn else []


def _errors(errors: Sequence[ErrorTables], known: Looks) -> list[Section]:
    return [
        Section(
            "error" if len(errors) == 1 else f"error-{one.number}",
            one.section,
            (one.setting,),
            tuple(one.tables.values()),
            _there([error_figure(one, known), error_scale_figure(one, known)]),
        )
        for one in errors
    ]


def _elsewhere(costs: Sequence[EfficiencyTables]) -> list[Section]:
    """Reference timings of other machine classes or builds, apart from the run's."""
    text = "Reference rows, measured elsewhere or with another build. Compare ratios, never times."
    names = apart([one.parts for one in costs])
    return [
        Section(
            f"reference-{number}",
            f"Reference timings: {name}" if name else "Reference timings",
            (text, one.setting),
            (*one.latency.values(), *one.memory.values()),
        )
        for number, (one, name) in enumerate(zip(costs, names, strict=True), start=1)
    ]


def _not_ok(selection: Selection) -> list[Section]:
    table = not_ok_table(selection)
    if table is None:
        return [Section("not-ok", "Cells that are not ok", ("None: every cell ended well.",))]
    return [Section("not-ok", "Cells that are not ok", tables=(table,))]


def _protocol(
    quality: Sequence[QualityTable], selection: Selection, assumed: Assumptions
) -> list[Section]:
    tables = [
        table for one in quality for table in (protocol_table(one), parameter_table(one, selection))
    ]
    told = (
        *measuring(selection),
        *why_no_energy(selection.entries),
        *no_estimate(selection.entries, assumed),
    )
    return [Section("protocol", "Protocol", told, tuple(tables))]
