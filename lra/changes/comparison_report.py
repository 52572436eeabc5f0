"""A comparison in words and tables: what changed first, the rest folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from lra.changes.compare import Changes, Line
from lra.report.table import Cell, Row, Section, Table, escape, markdown
from lra.report.words import count, listing
from lra.verdict.change import (
    ACCURACY_MARGIN,
    ACCURACY_SAME,
    BITS_MARGIN,
    BITS_SAME,
    COUNT_MARGIN,
    TIME_MARGIN,
    TIME_SAME,
    Verdict,
)

_COLUMNS = ("figure", "before", "after", "change", "verdict")
_CALLED: dict[Verdict, str] = {
    "same": "the same",
    "ambiguous": "ambiguous",
    "incomparable": "incomparable",
}
_FAILING: dict[Verdict, str] = {"worse": "failing now", "better": "failing no more"}
"""Of cells that ended in several ways."""
_RULES = (
    "Times, prefill and errors are compared as ratios over pairs of processes or seeds (times "
    "relative to their control). Worse or better: both 95 % bounds lie more than "
    f"{100 * TIME_MARGIN:g} % to one side of 1. Same: otherwise, where both lie within "
    f"{100 * TIME_SAME:g} % of it. "
    "Ambiguous: neither; more replicates or seeds help.",
    f"Bytes and operations are exact: a change of more than {100 * COUNT_MARGIN:g} % counts. "
    f"Accuracies are paired by seed (margin {100 * ACCURACY_MARGIN:g} points, same within "
    f"{100 * ACCURACY_SAME:g}); bits per byte by ratio (margin {100 * BITS_MARGIN:g} %, same "
    f"within {100 * BITS_SAME:g} %).",
    "Incomparable: measured by another version of the measuring code, on another machine, or with "
    "other settings or data. A changed mechanism is compared.",
)


def sentences(changes: Changes) -> list[str]:
    """Return what to read first, and how much was compared."""
    names, rest = f"{changes.after} against {changes.before}", _elsewhere(changes)
    if not changes.lines:
        return [f"{names}: they share no cell.", *rest]
    unlike = changes.of("incomparable")
    if len(unlike) == len(changes.lines):
        figures = count(len(unlike), "figure")
        return [f"{names}: none of {figures} can be compared ({_whys(unlike)}).", *rest]
    told = [*_changed(changes, "worse"), *_changed(changes, "better")]
    counts = [_counted(changes.of(v), word) for v, word in _CALLED.items() if changes.of(v)]
    counts = [*counts[:-1], f"{counts[-1]} ({_whys(unlike)})"] if unlike else counts
    unclear = Counter(line.quantity.name for line in changes.of("ambiguous"))
    of_all = f"Of {count(len(changes.lines), 'figure')} {listing(counts)}."
    first = f"{names}: {'; '.join(told) or 'no reliable change'}."
    return [first, *([of_all] if counts else []), *_unclear(unclear), *rest]


def _counted(lines: Sequence[Line], word: str) -> str:
    return f"{len(lines)} {'is' if len(lines) == 1 else 'are'} {word}"


def _unclear(figures: Counter[str]) -> list[str]:
    """Which figures are ambiguous, and what would make them clear."""
    if not figures:
        return []
    named = listing([f"{name} ({number})" for name, number in figures.most_common()])
    return [
        f"Ambiguous: {named}; more replicates (sweep --replicates) or seeds (run --seeds) would "
        "settle it."
    ]


def _whys(lines: Sequence[Line]) -> str:
    """Why they cannot be compared, the most frequent first, counted where there are several."""
    found = Counter(line.why for line in lines).most_common()
    return found[0][0] if len(found) == 1 else "; ".join(f"{why}: {n}" for why, n in found)


def _changed(changes: Changes, verdict: Verdict) -> list[str]:
    """`time slower in 3 of 120 cells, the most performer train 8192: 1.12 x (1.05 to 1.19)`."""
    told = []
    lines = sorted(changes.of(verdict), key=lambda line: (line.quantity.name, line.ended))
    for (name, ended), group in groupby(lines, lambda line: (line.quantity.name, line.ended)):
        own = list(group)
        first, endings = own[0], {line.word for line in own}
        total = sum(line.quantity.name == name for line in changes.lines)
        word, size, which = first.word, first.told, "the most "
        if ended and len(endings) > 1:
            word, size, which = _FAILING[verdict], first.word, "first "
        which = f"{which if len(own) > 1 else ''}{first.name}"
        size = f": {size}" if size else ""
        told.append(f"{name} {word} in {len(own)} of {count(total, 'cell')}, {which}{size}")
    return told


def _elsewhere(changes: Changes) -> list[str]:
    sides = ((changes.only_before, changes.before), (changes.only_after, changes.after))
    parts = [f"{count(number, 'cell')} of {name} alone" for number, name in sides if number]
    if changes.several:
        cells = count(changes.several, "cell")
        parts.append(f"{cells} with several settings (name a row as the report does)")
    parts += [f"{count(changes.busy, 'timing')} of a busy machine left out"] if changes.busy else []
    return [f"Not compared: {listing(parts)}."] if parts else []


def changed_table(changes: Changes) -> Table | None:
    """Return what is worse, then what is better; None where nothing is."""
    lines = [*changes.of("worse"), *changes.of("better")]
    return _table("changed", "What changed", lines) if lines else None


def full_tables(changes: Changes) -> list[Table]:
    """Return every figure that was compared, by quantity, in the order of cells."""
    ordered = sorted(changes.lines, key=lambda line: (line.place, line.cell, line.label))
    names = list(dict.fromkeys(line.quantity.name for line in ordered))
    return [
        _table(
            f"compared-{name}",
            f"All of {name}",
            [line for line in ordered if line.quantity.name == name],
        )
        for name in names
    ]


def compared_section(changes: Changes) -> Section:
    """Return the comparison as a section of a report."""
    table = changed_table(changes)
    title = f"What changed since {changes.before}"
    return Section("compared", title, (*sentences(changes), *_RULES), (table,) if table else ())


def compared_markdown(changes: Changes) -> str:
    """Return the comparison for a pull request: the sentence, what changed, the rest folded."""
    parts = [f"## {escape(changes.after)} against {escape(changes.before)}"]
    parts += map(escape, sentences(changes))
    table = changed_table(changes)
    parts += [markdown(table)] if table else []
    for one in full_tables(changes):
        summary = f"<summary>{escape(one.title)} ({len(one.rows)})</summary>"
        parts.append(f"<details>\n{summary}\n\n{markdown(one)}\n\n</details>")
    parts.append("\n".join(f"- {escape(rule)}" for rule in _RULES))
    return "\n\n".join(parts) + "\n"


def _table(id: str, title: str, lines: Sequence[Line]) -> Table:
    return Table(
        id=id,
        title=title,
        caption="",
        corner="cell",
        columns=_COLUMNS,
        rows=tuple(_row(line) for line in lines),
        numeric=False,
    )


def _row(line: Line) -> Row:
    unknown = line.change.verdict in ("incomparable", "ambiguous") and line.why
    told = f"{line.word}: {line.why}" if unknown else line.word
    texts = (line.quantity.name, line.before, line.after, line.told, told)
    return Row(line.name, tuple(Cell(text) for text in texts))
