"""A comparison in sentences and tables: changes first, the rest folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from lra.changes.compare import Changes, Line
from lra.changes.words import (
    change_words,
    line_name,
    reason_words,
    side_words,
    verdict_words,
)
from lra.report.model import Row, Section, Table, Value, slug
from lra.report.words import count, listing
from lra.report.write.markdown import escape, rows_markdown
from lra.verdict.change import (
    ACCURACY_MARGIN,
    ACCURACY_SAME,
    COUNT_MARGIN,
    LOSS_MARGIN,
    LOSS_SAME,
    TIME_MARGIN,
    TIME_SAME,
    Verdict,
)

_CALLED: dict[Verdict, str] = {
    "same": "the same",
    "ambiguous": "ambiguous",
    "incomparable": "incomparable",
}
_RULES = (
    "Times, prefill and errors are ratios over pairs of processes or seeds, times over their "
    f"control: worse or better where both 95 % bounds lie more than {100 * TIME_MARGIN:g} % to one "
    f"side of 1, the same where both lie within {100 * TIME_SAME:g} % of it, else ambiguous.",
    f"Bytes and operations are exact: a change of more than {100 * COUNT_MARGIN:g} % counts; "
    f"accuracies are paired by seed (margin {100 * ACCURACY_MARGIN:g} points, same within "
    f"{100 * ACCURACY_SAME:g}), losses by ratio (margin {100 * LOSS_MARGIN:g} %, same "
    f"within {100 * LOSS_SAME:g} %).",
    "Measurements by another version of the measuring code, on another machine, or with other "
    "settings or data are incomparable; a changed mechanism is compared.",
)


def sentences(changes: Changes) -> list[str]:
    """Return the headline, and how much was compared."""
    names, rest = f"{changes.after} against {changes.before}", _left_out(changes)
    if not changes.lines:
        return [f"{names}: they share no cell.", *rest]
    unlike = changes.of("incomparable")
    if len(unlike) == len(changes.lines):
        figures = count(len(unlike), "figure")
        return [f"{names}: none of {figures} can be compared ({_reasons(unlike)}).", *rest]
    found = [*_changed(changes, "worse"), *_changed(changes, "better")]
    numbers = {verdict: len(changes.of(verdict)) for verdict in _CALLED}
    counts = [
        f"{n} {'is' if n == 1 else 'are'} {_CALLED[verdict]}" for verdict, n in numbers.items() if n
    ]
    counts = [*counts[:-1], f"{counts[-1]} ({_reasons(unlike)})"] if unlike else counts
    of_all = [f"{count(len(changes.lines), 'figure')}: {listing(counts)}."] if counts else []
    first = f"{names}: {'; '.join(found) or 'no reliable change'}."
    return [first, *of_all, *_ambiguous(changes), *rest]


def _ambiguous(changes: Changes) -> list[str]:
    """Sentence about ambiguous figures, and what would settle them."""
    unclear = Counter(line.quantity.name for line in changes.of("ambiguous"))
    names = listing([f"{name} ({number})" for name, number in unclear.most_common()])
    more = "more replicates (sweep --replicates) or seeds (run --seeds) would settle it"
    return [f"Ambiguous: {names}; {more}."] if unclear else []


def _reasons(lines: Sequence[Line]) -> str:
    """Reasons why figures cannot be compared, most frequent first, with counts where there are
    several."""
    found = Counter(map(reason_words, lines)).most_common()
    return found[0][0] if len(found) == 1 else "; ".join(f"{why}: {n}" for why, n in found)


def _changed(changes: Changes, verdict: Verdict) -> list[str]:
    """`time slower in 3 of 120 cells, the most performer train 8192: 1.12 x (1.05 to 1.19)`."""
    parts = []
    lines = sorted(changes.of(verdict), key=lambda line: (line.quantity.name, line.has_ended))
    for (name, ended), group in groupby(lines, lambda line: (line.quantity.name, line.has_ended)):
        own = list(group)
        first = own[0]
        total = sum(line.quantity.name == name for line in changes.lines)
        word, size, which = verdict_words(first), change_words(first.change), "the most "
        if ended and len(set(map(verdict_words, own))) > 1:
            size, which = word, "first "
            word = "failing now" if verdict == "worse" else "failing no more"
        which = f"{which if len(own) > 1 else ''}{line_name(first)}"
        size = f": {size}" if size else ""
        parts.append(f"{name} {word} in {len(own)} of {count(total, 'cell')}, {which}{size}")
    return parts


def _left_out(changes: Changes) -> list[str]:
    sides = ((changes.only_before, changes.before), (changes.only_after, changes.after))
    parts = [f"{count(number, 'cell')} of {name} alone" for number, name in sides if number]
    if changes.several:
        cells = count(changes.several, "cell")
        parts.append(f"{cells} with several settings (name a row as the report does)")
    parts += [f"{count(changes.busy, 'timing')} of a busy machine left out"] if changes.busy else []
    return [f"Not compared: {listing(parts)}."] if parts else []


def changed_table(changes: Changes) -> Table | None:
    """Return a table of worse figures, then better ones; None where there are none."""
    lines = [*changes.of("worse"), *changes.of("better")]
    return _table(changes, "Changed figures", lines) if lines else None


def full_table(changes: Changes) -> Table:
    """Return every figure that was compared, by quantity, in the order of cells."""
    lines = sorted(changes.lines, key=lambda line: line.quantity.name)
    return _table(changes, "All figures", lines)


def comparison_section(changes: Changes) -> Section:
    """Return the comparison as a section of a report."""
    table = changed_table(changes)
    topic = f"Changes since {changes.before}"
    text = (*sentences(changes), *(() if table else _RULES))
    return Section(topic=topic, text=text, tables=(table,) if table else ())


def comparison_markdown(changes: Changes) -> str:
    """Return the comparison for a pull request: the sentence, what changed, the rest folded."""
    parts = [f"## {escape(changes.after)} against {escape(changes.before)}"]
    parts += map(escape, sentences(changes))
    table = changed_table(changes)
    parts += [rows_markdown(table)] if table else []
    if changes.lines:
        summary = f"<summary>All figures ({len(changes.lines)})</summary>"
        rows = rows_markdown(full_table(changes))
        parts.append(f"<details>\n{summary}\n\n{rows}\n\n</details>")
    parts.append("\n".join(f"- {escape(rule)}" for rule in _RULES))
    return "\n\n".join(parts) + "\n"


def _table(changes: Changes, title: str, lines: Sequence[Line]) -> Table:
    return Table(
        id=slug(title),
        title=title,
        caption="",
        corner="cell",
        columns=("figure", changes.before, changes.after, "change", "verdict"),
        rows=tuple(_row(line) for line in lines),
        notes=_RULES,
        numeric=False,
    )


def _row(line: Line) -> Row:
    reason, verdict = reason_words(line), verdict_words(line)
    if reason and not line.has_ended and line.change.verdict in ("incomparable", "ambiguous"):
        verdict = f"{verdict}: {reason}"
    texts = (line.quantity.name, *side_words(line), change_words(line.change), verdict)
    return Row(line_name(line), tuple(map(Value, texts)))
