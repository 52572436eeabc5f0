"""The whole report as one value: sentences, tables and figures in reading order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lra.report.answer.sentences import answer, caveats, summary
from lra.report.costs.energy import why_no_energy
from lra.report.costs.estimate import Assumptions, no_estimate
from lra.report.costs.profile import profile_sections, profile_spoken
from lra.report.costs.sections import cost_sections, decoding_sections, reference_sections
from lra.report.costs.tables import EfficiencyTables, efficiency_tables
from lra.report.endings import not_ok_table
from lra.report.error.tables import ErrorTables, error_tables
from lra.report.headings import distinct
from lra.report.mechanisms.attended import attended_section
from lra.report.mechanisms.capabilities import capabilities
from lra.report.mechanisms.gallery import gallery
from lra.report.mechanisms.settings import stand_ins
from lra.report.others.beside import beside_sections
from lra.report.others.published import published_sections
from lra.report.others.table2 import table2_sections
from lra.report.pictures.accuracy import quality_figure
from lra.report.pictures.error import error_figure
from lra.report.pictures.error_scale import error_scale_figure
from lra.report.pictures.front import front_figure
from lra.report.pictures.learning import learning_figure
from lra.report.pictures.ranks import ranks_figure
from lra.report.pictures.style import Looks, looks
from lra.report.pictures.tradeoff import tradeoff_figure
from lra.report.protocol import parameter_table, protocol_table
from lra.report.provenance import footer, measuring, provenance_table, subtitle
from lra.report.quality.by_token import decode_tables
from lra.report.quality.certificate import certificate_section
from lra.report.quality.doubts import doubt_sentences, doubts
from lra.report.quality.intervals import interval_table
from lra.report.quality.standing import Standing, standing
from lra.report.quality.tables import QualityTable, bits_tables, quality_tables
from lra.report.select import Selection
from lra.report.table import Figure, Report, Section, Table
from lra.report.tradeoff.front import front_table, fronts
from lra.report.words import lowered

EMPTY = "There is no record to report: run python -m lra run --impl performer, then report again."


class _Tables(msgspec.Struct, frozen=True):
    """What sentences, sections and figures are made of."""

    quality: list[QualityTable]
    bits: list[QualityTable]
    costs: list[EfficiencyTables]
    errors: list[ErrorTables]
    standings: list[Standing | None]
    """Of the accuracy tables."""

    @property
    def trained(self) -> list[QualityTable]:
        """All tables of trainings."""
        return [*self.quality, *self.bits]

    @property
    def summary(self) -> Table | None:
        """The small table to print."""
        return summary(self.trained, self.costs, self.errors)

    def answer(self, selection: Selection) -> tuple[str, ...]:
        """Return the sentences to read first."""
        return answer(selection, self.quality, self.costs, self.errors, self.standings)


def _tables(selection: Selection) -> _Tables:
    quality = quality_tables(selection)
    return _Tables(
        quality,
        bits_tables(selection),
        efficiency_tables(selection),
        error_tables(selection),
        [standing(one, selection) for one in quality],
    )


def spoken(selection: Selection) -> tuple[tuple[str, ...], Table | None]:
    """Return what to print: the answer, what tasks test where this run asked, the small table."""
    if not selection.own:
        profiled = profile_spoken(selection)
        if profiled is None:
            return (EMPTY,), None
        sentences, table = profiled
        return (*sentences, *caveats(selection, ())), table
    tables = _tables(selection)
    shuffled = any((e.order, e.origin) == ("shuffled", "run") for e in selection.entries)
    certificate = certificate_section(selection) if shuffled else None
    tested = certificate.text if certificate is not None else ()
    said = (*tables.answer(selection), *tested, *caveats(selection, tables.trained))
    return said, tables.summary


def assemble(
    selection: Selection, title: str, assumed: Assumptions | None = None
) -> tuple[Report, Table | None]:
    """Return the report, and the small table to print beside its answer."""
    assumed = assumed or Assumptions()
    if not selection.own:
        alone = (
            *profile_sections(selection),
            *_if_any(capabilities(selection.checks, selection.reference_checks)),
            *_if_any(gallery(selection.shown)),
        )
        if not_ok_table(selection) is not None:
            alone = (*alone, *_not_ok(selection))
        told = tuple(text for section in alone for text in section.text) or (EMPTY,)
        return Report(title, "", told, alone, ""), None
    tables = _tables(selection)
    quality = tables.quality
    here = [one for one in tables.costs if not one.reference_only]
    elsewhere = [one for one in tables.costs if one.reference_only]
    known = looks(
        [
            *((e.mechanism, e.label) for e in selection.entries if e.mechanism),
            *(
                (c.mechanism, c.title)
                for one in tables.errors
                for cs in one.curves.values()
                for c in cs
            ),
        ]
    )
    sections = [
        *_tradeoff(quality, tables.costs, selection, known),
        *_quality(quality, tables.standings, selection, known, alone=len(tables.trained) == 1),
        *_bits(tables.bits, selection, first=not quality),
        *_decoded(selection),
        *_if_any(certificate_section(selection)),
        *_learning(quality, selection, known),
        *published_sections(quality, selection),
        *cost_sections(here, selection, known, assumed),
        *profile_sections(selection),
        *beside_sections(here, selection.busy),
        *table2_sections(here, selection.busy),
        *_errors(tables.errors, known),
        *_if_any(capabilities(selection.checks, selection.reference_checks)),
        *decoding_sections(here, known),
        *_if_any(attended_section(selection)),
        *_if_any(gallery(selection.shown)),
        *reference_sections(elsewhere),
        *_protocol(tables.trained, selection, assumed),
        Section("provenance", "Provenance", tables=(provenance_table(selection),)),
        *_not_ok(selection),
    ]
    report = Report(
        title=title,
        subtitle=subtitle(selection),
        answer=tables.answer(selection),
        caveats=caveats(selection, tables.trained),
        sections=tuple(distinct(sections)),
        footer=footer(selection),
        looks=known,
    )
    return report, tables.summary


def _tradeoff(
    quality: Sequence[QualityTable],
    costs: Sequence[EfficiencyTables],
    selection: Selection,
    known: Looks,
) -> list[Section]:
    figures: list[Figure | None] = []
    tables = []
    # A layer's costs are of both directions at once, and no measure of causal models.
    for one in (table for table in quality if not table.group.by_token):
        instead = stand_ins(selection.entries, one.group.scale)
        found = fronts(one, costs, instead)
        figures.append(tradeoff_figure(one, costs, instead, known))
        figures.append(front_figure(one, found, known))
        tables += [front_table(one, found)] if found else []
    drawn = Section("tradeoff", "Quality against speed").with_figures(figures)
    told = Section("front", "Who is on the front", tables=tuple(tables))
    return [section for section in (drawn, told) if section.figures or section.tables]


def _quality(
    quality: Sequence[QualityTable],
    standings: Sequence[Standing | None],
    selection: Selection,
    known: Looks,
    *,
    alone: bool,
) -> list[Section]:
    """Return a section for each table, named by it unless it stands alone."""
    return [
        Section(
            "quality" if one.number == "1" else f"quality-{one.number}",
            "Quality" if alone else f"Quality: {lowered(one.table.title)}",
        )
        .with_tables([one.table, interval_table(one, selection), stands.table if stands else None])
        .with_figures([quality_figure(one, known), ranks_figure(stands, known) if stands else None])
        for one, stands in zip(quality, standings, strict=True)
    ]


def _bits(bits: Sequence[QualityTable], selection: Selection, *, first: bool) -> list[Section]:
    """Return a section for each table of bits per byte; where there is no quality at all, one that
    says so."""
    if first and not bits:
        return [Section("quality", "Quality", ("No model was trained in this run.",))]
    return [
        Section(f"quality-{one.number}", f"Quality: {lowered(one.table.title)}").with_tables(
            [one.table, interval_table(one, selection)]
        )
        for one in bits
    ]


def _decoded(selection: Selection) -> list[Section]:
    section = Section("by-token", "Token by token").with_tables(decode_tables(selection))
    return [section] if section.tables else []


def _if_any(section: Section | None) -> list[Section]:
    return [section] if section else []


def _learning(quality: Sequence[QualityTable], selection: Selection, known: Looks) -> list[Section]:
    curves = [learning_figure(one, selection, known) for one in quality]
    whole = Section("learning", "Learning curves").with_figures(curves)
    return [whole] if whole.figures else []


def _errors(errors: Sequence[ErrorTables], known: Looks) -> list[Section]:
    return [
        Section("error" if len(errors) == 1 else f"error-{one.number}", one.section, (one.setting,))
        .with_tables(one.tables.values())
        .with_figures([error_figure(one, known), error_scale_figure(one, known)])
        for one in errors
    ]


def _not_ok(selection: Selection) -> list[Section]:
    table, doubted = not_ok_table(selection), doubt_sentences(doubts(selection))
    told = () if table else ("None: every cell ended well.",)
    section = Section("not-ok", "Cells that are not ok", (*told, *doubted))
    return [section.with_tables([table])]


def _protocol(
    quality: Sequence[QualityTable], selection: Selection, assumed: Assumptions
) -> list[Section]:
    tables = [made(one, selection) for one in quality for made in (protocol_table, parameter_table)]
    told = (
        *measuring(selection),
        *why_no_energy(selection.entries),
        *no_estimate(selection.entries, assumed),
    )
    return [Section("protocol", "Protocol", told, tuple(tables))]
