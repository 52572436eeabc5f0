"""Write a report: a page with a card for each mechanism, its tables and its plots as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from lra.core.errors import LraError, is_full, system_reason
from lra.core.escape import escape_controls, escape_lines
from lra.core.paths import write
from lra.core.records import Record
from lra.report.assumptions import Assumptions
from lra.report.model import Section


class Findings(msgspec.Struct, frozen=True):
    """Sentences and table to print after a run."""

    headline: tuple[str, ...]
    """Answer, one sentence each."""
    table: str
    """Small plain-text table; empty if there is nothing to compare."""


class Rendered(msgspec.Struct, frozen=True):
    """Place of a report, and the findings to print."""

    page: Path
    """HTML page; cards, report.md, report.csv, report.tex and plots/ lie beside it."""
    findings: Findings


def findings(
    records: Sequence[Record], reference: Sequence[Record], store: Sequence[Record]
) -> Findings:
    """Return the findings of a report on these records, out of a store, without drawing it."""
    from lra.report.assemble import analyse
    from lra.report.load.select import join
    from lra.report.sections.headline import terminal_summary

    return _printed(*terminal_summary(analyse(join(records, reference, store=store))))


def render(
    records: Sequence[Record],
    reference: Sequence[Record],
    out: Path,
    *,
    title: str,
    assumed: Assumptions | None = None,
    first: Section | None = None,
    files: dict[str, str] | None = None,
) -> Rendered:
    """Write `out`/index.html, mechanisms/*.html, report.md, .csv and .tex, and plots/*.svg from
    records alone.

    `reference` are committed records to compare with the run's; those that share no protocol with
    it are left out. Estimates use the `assumed` electricity. `first` is a section to begin with,
    and `files` are more texts to write, by name. The same records give the same bytes, in any
    order. Raises `LraError` where `out` cannot be written.
    """
    # Late import of pandas and matplotlib, which are slow to load.
    from lra.report.assemble import analyse, assemble
    from lra.report.cards import cards
    from lra.report.load.select import join
    from lra.report.sections.headline import terminal_summary
    from lra.report.write.csv import csv_text
    from lra.report.write.html import CARDS, card_html, report_html
    from lra.report.write.latex import report_latex
    from lra.report.write.markdown import report_markdown

    analysis = analyse(join(records, reference), assumed or Assumptions())
    report = assemble(analysis, escape_controls(title))
    if first is not None:
        report = msgspec.structs.replace(report, sections=(first, *report.sections))
    own = cards(analysis)
    names = {card.mechanism: card.file for card in own}
    written = {
        "index.html": report_html(report, analysis.looks, names),
        **{f"{CARDS}/{card.file}": card_html(card, analysis.looks, names) for card in own},
        "report.md": report_markdown(report),
        "report.csv": csv_text(analysis.evidence.figures),
        "report.tex": report_latex(report),
        **{f"plots/{figure.id}.svg": figure.svg for figure in report.figures},
        **(files or {}),
    }
    try:
        _write(out, written)
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise LraError(
            f"cannot write the report to '{out}': {system_reason(error)}; {remedy} another folder"
        ) from error
    return Rendered(out / "index.html", _printed(*terminal_summary(analysis)))


def _printed(sentences: Iterable[str], table: str) -> Findings:
    return Findings(tuple(map(escape_controls, sentences)), escape_lines(table))


_STALE = ("plots/*.svg", "mechanisms/*.html", "compare.md")
"""Files of an earlier report that this one may lack."""


def _write(out: Path, files: dict[str, str]) -> None:
    """Write every file, and remove those of an earlier report that this one lacks."""
    for stale in (file for pattern in _STALE for file in out.glob(pattern)):
        if stale.relative_to(out).as_posix() not in files:
            stale.unlink(missing_ok=True)
    for name, text in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write(out / name, escape_lines(text).encode())
