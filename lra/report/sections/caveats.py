"""Caveats: at most six sentences to know before a report is quoted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import pandas as pd

from lra.core.catalogue import CONTROLS
from lra.core.cells import CeilingCell, EfficiencyCell, ProfileCell, ShowCell, VerifyCell
from lra.core.escape import escape_controls
from lra.core.records import Record
from lra.report.accuracy import ACCURACY, Accuracies
from lra.report.analysis import Analysis
from lra.report.baselines import guessing, shortcut
from lra.report.doubts import doubts
from lra.report.load.protocol_mismatch import ProtocolMismatch
from lra.report.words import STATUS, count, listing, listing_of
from lra.verdict.accuracy import above_chance

_KINDS = {
    VerifyCell: "check",
    ShowCell: "picture",
    ProfileCell: "profile",
    CeilingCell: "ceiling",
}
"""Kinds of cells without a row in a table of accuracies, times or errors."""
_NAMED = 5


def caveats(analysis: Analysis) -> tuple[str, ...]:
    """Return a sentence on each caveat, gravest first; none where there is none."""
    found = (
        _doubtful(analysis),
        _trivial(analysis),
        _unlike(analysis),
        _differing(analysis),
        _disturbed(analysis),
        _not_ok(analysis),
    )
    return tuple(sentence for sentence in found if sentence)


def _doubtful(analysis: Analysis) -> str:
    """Sentences on trainings that ended well with figures that are not to be believed."""
    found = [one.words for one in doubts(analysis.evidence, analysis.accuracies)]
    return f"In doubt: {listing_of(found, _NAMED)}." if found else ""


def _trivial(analysis: Analysis) -> str:
    """Sentences on tasks where no mechanism beats guessing, or the best shortcut."""
    lucky: list[str] = []
    short: list[str] = []
    for scores in analysis.accuracies:
        if scores.metric == ACCURACY:
            where = "" if scores is analysis.main else f" ({', '.join(scores.setting.parts)})"
            stuck, below = not_above(analysis, scores)
            lucky += [f"{title}{where}" for title in stuck]
            short += [f"{title}{where}" for title in below]
    parts = [f"lucky guessing on {listing_of(lucky, _NAMED)}"] if lucky else []
    parts += [f"the best shortcut on {listing_of(short, _NAMED)}"] if short else []
    return f"No mechanism beats {', nor '.join(parts)}." if parts else ""


def not_above(analysis: Analysis, scores: Accuracies) -> tuple[list[str], list[str]]:
    """Return the columns where no training beats the luck of guessing, and those where no mechanism
    beats the best shortcut above it."""
    stuck, below = [], []
    for column in scores.columns:
        chance = guessing(analysis.evidence, scores, column)
        own = scores.pooled[scores.pooled["protocol"] == column.protocol]
        own = own[~own["mechanism"].isin(CONTROLS)]
        seeds = [value for one in own["seeds"] for value in one.values()]
        if chance is None or not seeds:
            continue
        rows = column.rows.test
        if not any(above_chance(value, chance, rows) for value in seeds):
            stuck.append(column.title)
        best = shortcut(analysis.evidence, scores, column)
        if best and above_chance(best.value, chance, rows) and own["mean"].max() <= best.value:
            below.append(column.title)
    return stuck, below


def _unlike(analysis: Analysis) -> str:
    """Sentences on tasks whose reference is not shown, as it was trained otherwise."""
    every = [column for scores in analysis.accuracies for column in scores.columns]
    found = [
        one
        for one in analysis.evidence.mismatches
        if any(column.protocol in one.protocols for column in every)
    ]
    if not found:
        return ""
    protocols = frozenset(protocol for one in found for protocol in one.protocols)
    settings = tuple(sorted({setting for one in found for setting in one.settings}))
    whole = ProtocolMismatch(protocols, settings, all(one.anchored for one in found))
    titles = dict.fromkeys(column.title for column in every if column.protocol in protocols)
    return whole.sentence([*titles])


def _differing(analysis: Analysis) -> str:
    """Sentences on mechanisms of the run with figures of several settings or versions of the
    source."""
    figures = analysis.evidence.figures
    trained = figures[(figures["kind"] == "quality") & (figures["origin"] == "run")]
    parts = [
        (
            other_settings(trained, figures[figures["kind"] == "efficiency"]),
            "timed with other settings than trained with (its page names both)",
        ),
        (other_versions(trained, figures), "trained and timed with other versions of the source"),
        (mixed_versions(trained), "trained on several tasks with several versions of the source"),
    ]
    clauses = "; ".join(f"{words}: {_named(names)}" for names, words in parts if names)
    return f"{clauses[0].upper()}{clauses[1:]}." if clauses else ""


def _named(mechanisms: Iterable[str]) -> str:
    return listing_of([escape_controls(name) for name in mechanisms], _NAMED)


def other_settings(trained: pd.DataFrame, timed: pd.DataFrame) -> list[str]:
    """Return the mechanisms with a training whose settings were not timed while others were: in the
    run, or in the reference where the run timed none."""
    own = timed[timed["value"].notna()]
    found = set()
    for mechanism, variants in trained.groupby("mechanism")["variant"]:
        mine = own[own["mechanism"] == mechanism]
        run = mine[mine["origin"] == "run"]
        beside = set((mine if run.empty else run)["variant"])
        if beside and set(variants) - beside:
            found.add(str(mechanism))
    return sorted(found)


def other_versions(trained: pd.DataFrame, figures: pd.DataFrame) -> list[str]:
    """Return the mechanisms without a version of the source that was both trained and timed."""
    timed = figures[(figures["kind"] == "efficiency") & (figures["origin"] == "run")]
    sides = [_versions(side, "mechanism") for side in (trained, timed)]
    return sorted(name for name, own in sides[0].items() if not own & sides[1].get(name, own))


def mixed_versions(trained: pd.DataFrame) -> list[str]:
    """Return the mechanisms with a row whose tasks have no version in common."""
    found = set()
    for _, row in trained.groupby(["setting", "variant"]):
        by_task = _versions(row, "task")
        if not set.intersection(*by_task.values()):
            found.add(str(row["mechanism"].iloc[0]))
    return sorted(found)


def _versions(figures: pd.DataFrame, by: str) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, version in zip(figures[by], figures["mechanism_version"], strict=True):
        found[name].add(version)
    return found


def _not_ok(analysis: Analysis) -> str:
    """Sentence on the run's cells that did not end well, by ending; other kinds of cells apart."""
    evidence = analysis.evidence
    kinds = [("cell", [one.record for one in evidence.own])]
    kinds += [
        (words, [record for record in evidence.others if isinstance(record.cell, kind)])
        for kind, words in _KINDS.items()
    ]
    parts = [f"{_tally(records, words)}" for words, records in kinds if _bad(records)]
    total = sum(_bad(records).total() for _, records in kinds)
    return f"{listing(parts)} {'is' if total == 1 else 'are'} not ok." if parts else ""


def _bad(records: Iterable[Record]) -> Counter[str]:
    return Counter(STATUS[record.status] for record in records if record.status != "ok")


def _tally(records: list[Record], words: str) -> str:
    bad = _bad(records)
    endings = listing([f"{number} {word}" for word, number in sorted(bad.items())])
    return f"{bad.total()} of {count(len(records), words)} ({endings})"


def _disturbed(analysis: Analysis) -> str:
    """Sentence on the run's timings on a busy machine."""
    own = [one for one in analysis.evidence.own if isinstance(one.cell, EfficiencyCell)]
    timed = [one for one in own if one.record.status == "ok"]
    found = sum(one.disturbed for one in timed)
    if not found:
        return ""
    return (
        f"The machine was busy during {found} of {count(len(timed), 'timing')} (marked !): the "
        "same command with --rerun disturbed measures them again."
    )
