"""What a check found: in sentences, as Markdown for a pull request, as JUnit for a CI server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree

import msgspec

from lra.core.escape import escape_controls
from lra.report.table import Cell, Row, Table, escape, markdown
from lra.report.words import count
from lra.verdict.baseline import Judgement, Outcome

SHOWN: tuple[Outcome, ...] = ("regression", "inconclusive", "improvement", "new")
"""Outcomes that a person is told of, the worst first."""
_TITLES: dict[Outcome, str] = {
    "regression": "Regressions",
    "inconclusive": "Inconclusive",
    "improvement": "Better than before: verify that the work was done",
    "new": "New: nothing to hold it against",
}
_ONE: dict[Outcome, str] = {
    "regression": "regression",
    "inconclusive": "inconclusive figure",
    "improvement": "unexpected improvement",
    "new": "new figure",
}


class Checked(msgspec.Struct, frozen=True):
    """A check, as far as it came."""

    judged: tuple[Judgement, ...]
    notes: tuple[str, ...] = ()
    """What was compared with what, and what was not looked at."""
    stopped: str = ""
    """Why it did not come to its end; empty where it did."""

    def of(self, outcome: Outcome) -> list[Judgement]:
        """Return the figures with this outcome, in the order they were looked at."""
        return [one for one in self.judged if one.outcome == outcome]

    @property
    def passed(self) -> bool:
        """Whether it came to its end, and nothing regressed or could not be told."""
        return not (self.stopped or self.of("regression") or self.of("inconclusive"))


def sentences(checked: Checked) -> list[str]:
    """Return what to read first: what failed and the first of it, then how much was looked at."""
    tally = Counter(one.outcome for one in checked.judged)
    mechanisms = {one.mechanism for one in checked.judged if one.mechanism}
    worst = next((checked.of(o)[0] for o in SHOWN if checked.of(o)), None)
    found = "nothing differs from the baseline" if checked.judged else "nothing to report"
    if worst is not None:
        parts = ", ".join(count(tally[o], _ONE[o]) for o in SHOWN if tally[o])
        found = f"{parts}; first: {line(worst)}"
    verdict = "passed" if checked.passed else "failed" if tally["regression"] else "inconclusive"
    if checked.stopped:
        found = f"{escape_controls(checked.stopped)}; until then {found}"
        verdict = "failed and stopped" if tally["regression"] else "stopped"
    told = [f"check {verdict}: {found}"]
    if mechanisms:
        told.append(
            f"{count(len(checked.judged), 'figure')} of {count(len(mechanisms), 'mechanism')}, "
            f"{tally['held']} held"
        )
    return [*told, *checked.notes]


def line(one: Judgement) -> str:
    """Return one figure in words: `linear, train 1024: peak_tensor_bytes 5.0 % more`."""
    place = ", ".join(part for part in (one.mechanism, one.cell) if part)
    return escape_controls(": ".join(part for part in (place, one.figure, one.why) if part))


def summary(checked: Checked) -> str:
    """Return the check as Markdown: the sentence, what failed, the rest folded."""
    first, *rest = sentences(checked)
    parts = ["## lra check", f"**{escape(first)}**", *map(escape, rest)]
    for outcome in SHOWN:
        found = checked.of(outcome)
        if not found:
            continue
        table = markdown(_table(outcome, found))
        title = f"{_TITLES[outcome]} ({len(found)})"
        folded = f"<details>\n<summary>{title}</summary>\n\n{table}\n\n</details>"
        parts.append(f"### {title}\n\n{table}" if outcome == "regression" else folded)
    return "\n\n".join(parts) + "\n"


def junit(checked: Checked) -> str:
    """Return the check as JUnit XML: a suite a mechanism, a case a figure.

    A regression is a failure, what is inconclusive or new is skipped, a check that stopped is an
    error.
    """
    root = ElementTree.Element("testsuites", name="lra check")
    mechanisms = list(dict.fromkeys(one.mechanism for one in checked.judged))
    for name in mechanisms:
        own = [one for one in checked.judged if one.mechanism == name]
        suite = _suite(root, name or "all", own)
        for one in own:
            where = {
                "classname": escape_controls(name or "all"),
                "name": escape_controls(f"{one.cell} {one.figure}".strip()),
            }
            case = ElementTree.SubElement(suite, "testcase", where)
            if one.outcome == "regression":
                ElementTree.SubElement(
                    case, "failure", message=escape_controls(one.why or one.outcome)
                )
            elif one.outcome in ("inconclusive", "new"):
                ElementTree.SubElement(
                    case, "skipped", message=escape_controls(f"{one.outcome}: {one.why}")
                )
            elif one.outcome == "improvement":
                ElementTree.SubElement(case, "system-out").text = escape_controls(
                    f"improvement: {one.why}"
                )
    if checked.stopped:
        suite = ElementTree.SubElement(root, "testsuite", name="check", tests="1", errors="1")
        case = ElementTree.SubElement(suite, "testcase", classname="check", name="came to its end")
        ElementTree.SubElement(case, "error", message=escape_controls(checked.stopped))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return written.decode() + "\n"


def _suite(root: ElementTree.Element, name: str, own: Sequence[Judgement]) -> ElementTree.Element:
    tally = Counter(one.outcome for one in own)
    return ElementTree.SubElement(
        root,
        "testsuite",
        name=escape_controls(name),
        tests=str(len(own)),
        failures=str(tally["regression"]),
        skipped=str(tally["inconclusive"] + tally["new"]),
    )


def _table(outcome: Outcome, found: Sequence[Judgement]) -> Table:
    return Table(
        id=f"check-{outcome}",
        title=_TITLES[outcome],
        caption="",
        corner="mechanism",
        columns=("cell", "figure", "why"),
        rows=tuple(
            Row(
                escape_controls(one.mechanism or "all"),
                tuple(Cell(escape_controls(text)) for text in (one.cell, one.figure, one.why)),
            )
            for one in found
        ),
        numeric=False,
    )
