"""The sections of a report on what a call costs: measured, derived, decoding, and elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from lra.report.costs.estimate import Assumptions, estimate_tables
from lra.report.costs.tables import EfficiencyTables
from lra.report.mechanisms.settings import in_words, trained_and_timed
from lra.report.pictures.cost import cost_figure, decode_figure
from lra.report.pictures.crossover import crossover_figure
from lra.report.pictures.limit import limit_figure
from lra.report.pictures.style import Looks
from lra.report.select import Selection
from lra.report.table import Section
from lra.report.words import apart, numbered


def cost_sections(
    costs: Sequence[EfficiencyTables], selection: Selection, known: Looks, assumed: Assumptions
) -> list[Section]:
    """Return time, memory and energy setting by setting, then what is derived, topic by topic."""
    if not costs:
        return [Section("latency", "Latency and memory", ("None was measured in this run.",))]
    differences = trained_and_timed(selection.entries)
    measured: list[Section] = []
    crossings: list[Section] = []
    growths: list[Section] = []
    limits: list[Section] = []
    repeats: list[Section] = []
    for one, place, which in _named(costs):
        labels = {row.variant for table in one.latency.values() for row in table.rows}
        notes = in_words(differences, {key for key in differences if key[1] in labels})
        shared, again = (one.setting,), one.repeatability
        latency = cost_figure(one, "latency", known)
        memory = cost_figure(one, "memory", known)
        estimated = estimate_tables(one.energy, assumed)
        spent = (*one.energy.values(), *one.net_energy.values(), *estimated)
        told = (*shared, *again.text)
        measured += [
            Section(f"latency{place}", f"Latency{which}", (*shared, *notes))
            .with_tables(one.latency.values())
            .with_figures([latency]),
            Section(f"memory{place}", f"Memory{which}", shared)
            .with_tables(one.memory.values())
            .with_figures([memory]),
            Section(f"energy{place}", f"Energy{which}", shared).with_tables(spent),
        ]
        crossings.append(
            Section(f"crossover{place}", f"Crossover{which}", shared)
            .with_tables([one.crossover])
            .with_figures([crossover_figure(one, known)])
        )
        growths.append(
            Section(f"growth{place}", f"Growth{which}", shared).with_tables([one.growth])
        )
        limits.append(
            Section(f"limit{place}", f"Share of the machine's limit{which}", one.agreement)
            .with_tables([*one.limit.values(), one.declared])
            .with_figures([limit_figure(one, known)])
        )
        repeats.append(
            Section(f"repeatability{place}", f"Repeatability{which}", told).with_tables(
                again.tables
            )
        )
    every = [*measured, *crossings, *growths, *limits, *repeats]
    return [section for section in every if section.tables]


def decoding_sections(costs: Sequence[EfficiencyTables], known: Looks) -> list[Section]:
    """Return what it takes to begin decoding and to go on, of the settings that decode."""
    every = [
        Section(f"decoding{place}", f"Decoding{which}", one.exactness)
        .with_tables([*one.prefill.values(), *one.state.values()])
        .with_figures([decode_figure(one, known)])
        for one, place, which in _named(costs)
    ]
    return [section for section in every if section.tables]


def _named(costs: Sequence[EfficiencyTables]) -> list[tuple[EfficiencyTables, str, str]]:
    """The tables with what the ids and the titles of their sections end in."""
    endings = numbered(apart([one.parts for one in costs]))
    return [(one, *ending) for one, ending in zip(costs, endings, strict=True)]


def reference_sections(costs: Sequence[EfficiencyTables]) -> list[Section]:
    """Reference timings of other machine classes or builds, apart from the run's."""
    text = "Reference rows, measured elsewhere or with another build. Compare ratios, never times."
    return [
        Section(
            f"reference-{number}",
            f"Reference timings{which}",
            (text, one.setting),
            (*one.latency.values(), *one.memory.values()),
        )
        for number, (one, _, which) in enumerate(_named(costs), start=1)
    ]
