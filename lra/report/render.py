"""Write a report: one page, its tables as Markdown, LaTeX and CSV, its plots as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lra.core.errors import LraError, is_full, reason
from lra.core.escape import visible, visible_lines
from lra.core.paths import write
from lra.core.records import Record

if TYPE_CHECKING:
    from lra.changes.compare import Changes
    from lra.report.costs.estimate import Assumptions
    from lra.report.table import Table

_COMPARED = "compare.md"


class Findings(msgspec.Struct, frozen=True):
    """What to print of a report."""

    headline: tuple[str, ...]
    """The answer, one sentence each."""
    table: str
    """A small plain-text table; empty if there is nothing to compare."""


class Rendered(msgspec.Struct, frozen=True):
    """Where a report lies, and what to print of it."""

    page: Path
    """The HTML page; report.md, report.csv, report.tex and plots/ lie beside it."""
    findings: Findings


def findings(
    records: Sequence[Record], reference: Sequence[Record], store: Sequence[Record]
) -> Findings:
    """Return what a report of these records, out of a store, says, without drawing it."""
    from lra.report.assemble import spoken
    from lra.report.select import join

    sentences, table = spoken(join(records, reference, store=store))
    return _printed(sentences, table)


def render(
    records: Sequence[Record],
    reference: Sequence[Record],
    out: Path,
    *,
    title: str,
    assumed: Assumptions | None = None,
    changes: Changes | None = None,
) -> Rendered:
    """Write `out`/index.html, report.md, .csv and .tex, and plots/*.svg from records alone.

    `reference` are committed records to put beside the run's; those that share no protocol with it
    are left out. Estimates rest on what is `assumed`. `changes` since another store begin the
    page, are its first section, and stand in compare.md for a pull request; they are no part of
    what to print. The same records give the same bytes, in whatever order they come. Raises
    `LraError` where `out` cannot be written.
    """
    # pandas, seaborn and matplotlib are imported only now.
    from lra.changes.comparison_report import compared_markdown, compared_section, sentences
    from lra.report.assemble import assemble
    from lra.report.frame import csv_text
    from lra.report.latex import latex_text
    from lra.report.page import html_text, markdown_text
    from lra.report.select import join

    selection = join(records, reference)
    report, table = assemble(selection, visible(title), assumed)
    told = (*report.answer, *report.caveats)
    if changes is not None:
        report = msgspec.structs.replace(
            report,
            answer=(*sentences(changes), *report.answer),
            sections=(compared_section(changes), *report.sections),
        )
    files = {
        **({_COMPARED: compared_markdown(changes)} if changes is not None else {}),
        "index.html": html_text(report),
        "report.md": markdown_text(report),
        "report.csv": csv_text(selection.entries),
        "report.tex": latex_text(report),
        **{f"plots/{figure.id}.svg": figure.svg for figure in report.figures},
    }
    try:
        _write(out, files)
    except OSError as error:
        remedy = "make room or choose" if is_full(error) else "choose"
        raise LraError(
            f"cannot write the report to '{out}': {reason(error)}; {remedy} another folder"
        ) from error
    return Rendered(out / "index.html", _printed(told, table))


def _printed(sentences: Iterable[str], table: Table | None) -> Findings:
    from lra.report.table import plain_text

    text = plain_text(table) if table else ""
    return Findings(tuple(map(visible, sentences)), visible_lines(text))


def _write(out: Path, files: dict[str, str]) -> None:
    """Write every file, and remove plots and comparison of an earlier report that this one has
    not."""
    plots = out / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    for stale in (*plots.glob("*.svg"), out / _COMPARED):
        if stale.relative_to(out).as_posix() not in files:
            stale.unlink(missing_ok=True)
    for name, text in files.items():
        write(out / name, visible_lines(text).encode())
