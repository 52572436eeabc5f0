"""A check in sentences, as Markdown for a pull request, and as JUnit for a CI server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

import msgspec

from lra.core.escape import escape_controls
from lra.report.model import Row, Table, Value
from lra.report.words import count
from lra.report.write.markdown import escape, rows_markdown
from lra.verdict.baseline import Judgement, Outcome

SHOWN: tuple[Outcome, ...] = ("regression", "inconclusive", "improvement", "new")
"""Outcomes that are listed, worst first."""
_TITLES: dict[Outcome, tuple[str, str]] = {
    "regression": ("Regressions", "regression"),
    "inconclusive": ("Inconclusive", "inconclusive figure"),
    "improvement": (
        "Better than before: verify that the work was done",
        "unexpected improvement",
    ),
    "new": ("New: nothing to hold it against", "new figure"),
}
"""Heading of the table of each outcome, and the word for one figure of it."""


class Checked(msgspec.Struct, frozen=True):
    """The outcome of a check, as far as it came."""

    judged: tuple[Judgement, ...]
    notes: tuple[str, ...] = ()
    """Notes on what was compared, and on what was left out."""
    stopped: str = ""
    """The reason why the check did not finish; empty where it did."""

    def of(self, outcome: Outcome) -> list[Judgement]:
        """Return the figures with this outcome, in the order they were looked at."""
        return [one for one in self.judged if one.outcome == outcome]

    @property
    def passed(self) -> bool:
        """Whether the check finished, and nothing regressed or was inconclusive."""
        return not (self.stopped or self.of("regression") or self.of("inconclusive"))


def sentences(checked: Checked) -> list[str]:
    """Return the verdict with the first failure, then how much was compared."""
    tally = Counter(one.outcome for one in checked.judged)
    mechanisms = {one.mechanism for one in checked.judged if one.mechanism}
    worst = next((checked.of(o)[0] for o in SHOWN if checked.of(o)), None)
    found = "nothing differs from the baseline" if checked.judged else "nothing to report"
    if worst is not None:
        parts = ", ".join(count(tally[o], _TITLES[o][1]) for o in SHOWN if tally[o])
        found = f"{parts}; first: {line(worst)}"
    verdict = "passed" if checked.passed else "failed" if tally["regression"] else "inconclusive"
    if checked.stopped:
        found = f"{escape_controls(checked.stopped)}; until then {found}"
        verdict = "failed and stopped" if tally["regression"] else "stopped"
    figures = count(len(checked.judged), "figure")
    looked = f"{figures} of {count(len(mechanisms), 'mechanism')}, {tally['held']} held"
    return [f"check {verdict}: {found}", *([looked] if mechanisms else []), *checked.notes]


def line(one: Judgement) -> str:
    """Return a figure in words: `linear, train 1024: peak_tensor_bytes 5.0 % more`."""
    place = ", ".join(part for part in (one.mechanism, one.cell) if part)
    return escape_controls(": ".join(part for part in (place, one.figure, one.why) if part))


def summary(checked: Checked) -> str:
    """Return the check as Markdown: the sentence, the failures, the rest folded."""
    first, *rest = sentences(checked)
    parts = ["## lra check", f"**{escape(first)}**", *map(escape, rest)]
    for outcome in SHOWN:
        found = checked.of(outcome)
        if not found:
            continue
        table = rows_markdown(_table(outcome, found))
        title = f"{_TITLES[outcome][0]} ({len(found)})"
        folded = f"<details>\n<summary>{title}</summary>\n\n{table}\n\n</details>"
        parts.append(f"### {title}\n\n{table}" if outcome == "regression" else folded)
    return "\n\n".join(parts) + "\n"


def junit(checked: Checked) -> str:
    """Return the check as JUnit XML: a suite for each mechanism, a case for each figure.

    A regression is a failure, an inconclusive or new figure is skipped, and a check that stopped is
    an error.
    """
    root = ElementTree.Element("testsuites", name="lra check")
    for name in dict.fromkeys(one.mechanism for one in checked.judged):
        own = [one for one in checked.judged if one.mechanism == name]
        tally = Counter(one.outcome for one in own)
        suite = _child(
            root,
            "testsuite",
            name=name or "all",
            tests=str(len(own)),
            failures=str(tally["regression"]),
            skipped=str(tally["inconclusive"] + tally["new"]),
        )
        for one in own:
            where = f"{one.cell} {one.figure}".strip()
            _end(_child(suite, "testcase", classname=name or "all", name=where), one)
    if checked.stopped:
        suite = _child(root, "testsuite", name="check", tests="1", errors="1")
        case = _child(suite, "testcase", classname="check", name="came to its end")
        _child(case, "error", message=checked.stopped)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return written.decode() + "\n"


def _end(case: ElementTree.Element, one: Judgement) -> None:
    """Add the outcome to a case."""
    if one.outcome == "regression":
        _child(case, "failure", message=one.why or one.outcome)
    elif one.outcome in ("inconclusive", "new"):
        _child(case, "skipped", message=f"{one.outcome}: {one.why}")
    elif one.outcome == "improvement":
        _child(case, "system-out").text = escape_controls(f"improvement: {one.why}")


def _child(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    escaped = {name: escape_controls(text) for name, text in attributes.items()}
    return ElementTree.SubElement(parent, tag, escaped)


def _table(outcome: Outcome, found: Sequence[Judgement]) -> Table:
    texts = ((one.mechanism or "all", one.cell, one.figure, one.why) for one in found)
    escaped = [list(map(escape_controls, own)) for own in texts]
    return Table(
        id=f"check-{outcome}",
        title=_TITLES[outcome][0],
        caption="",
        corner="mechanism",
        columns=("cell", "figure", "why"),
        rows=tuple(Row(own[0], tuple(map(Value, own[1:]))) for own in escaped),
        numeric=False,
    )
