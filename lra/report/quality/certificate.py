"""What each task tests: exact attention and the task's exact solver beside what does without
reading far, without mixing, and without order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lra.core.escape import escape_controls
from lra.report.entries import Entry
from lra.report.quality.baselines import ENTROPY
from lra.report.quality.certified import SHUFFLED, Certified, as_given, window
from lra.report.quality.columns import columns_of
from lra.report.quality.group import Group, group_of
from lra.report.quality.score import ACCURACY, BITS, SCORES
from lra.report.rows import EXACT
from lra.report.select import Selection
from lra.report.table import Cell, Row, Section, Table, sorted_groups
from lra.report.words import NOT_RUN, listing

_CONTROL = (EXACT, ACCURACY.metric)
"""What is trained on shuffled input."""
_WINDOW = "sliding_window"
_SOLVED = "exact solver"
"""The column, and where a baseline's method says how the task's exact solver was tried."""
_SHORTCUT = (
    "A shortcut does without attention over the whole input in its order; a task tests attention "
    "as far as exact attention beats the best of them."
)
_SOLVER = "The exact solver works the label out from the tokens alone: what can be known."


def certificate_section(selection: Selection) -> Section | None:
    """Return the section: tasks on whose shuffled input exact attention was trained, and with them
    those that ask for each token; None where there are none."""
    cells = selection.trained()
    shuffled: dict[str, list[Entry]] = {}
    for entry in selection.entries:
        if entry.order == "shuffled" and (entry.mechanism, entry.metric) == _CONTROL:
            shuffled.setdefault(as_given(cells[entry.record][0]), []).append(entry)
    if not shuffled:
        return None
    given = [e for e in selection.entries if e.metric in SCORES and e.order == "given"]
    simple = [e for e in selection.entries if e.kind == "baseline"]
    solved = {
        kept.record.id: escape_controls(str(kept.record.method[_SOLVED]))
        for kept in selection.kept
        if _SOLVED in kept.record.method
    }
    certified = {group_of(cells[e.record][0]).whole for e in given if e.protocol in shuffled}
    groups = sorted_groups(
        [e for e in given if group_of(cells[e.record][0]).whole in certified],
        lambda e: (group_of(cells[e.record][0]).whole, list(SCORES).index(e.metric)),
    )
    tables, told, ruled = [], [], False
    for number, (_, group) in enumerate(groups, start=1):
        under, score = group_of(cells[group[0].record][0]).whole, SCORES[group[0].metric]
        columns = columns_of(cells[e.record] for e in group)
        windows = {e.record: window(cells[e.record][0], e) for e in group if e.mechanism == _WINDOW}
        rows = [
            Certified(score, c, group, windows, shuffled.get(c.protocol, []), simple)
            for c in columns
        ]
        known = [row for row in rows if row.is_reportable]
        if not known:
            continue
        told += [row.sentence(under) for row in known]
        ruled = ruled or (score == ACCURACY and _is_solved(known))
        rules = dict.fromkeys(solved[id] for row in known for id in row.solvers if id in solved)
        if score == ACCURACY:
            tables.append(_table(f"certificate-{number}", under, known, list(rules)))
        else:
            tables.append(_bits_table(f"certificate-{number}", under, known))
    # The words of the sentences first.
    means = [f"{_SHORTCUT} {_SOLVER}" if ruled else _SHORTCUT] if told else []
    return Section("certificate", "What the tasks test", (*means, *told), tuple(tables))


def _table(id: str, under: Group, tasks: Sequence[Certified], rules: Sequence[str]) -> Table:
    names, solver = _names(tasks), [_SOLVED] if _is_solved(tasks) else []
    return Table(
        id=id,
        title=f"What exact attention has over shortcuts at scale {under.words}",
        caption="Percent of test rows (of tokens asked for, where each is), means over seeds; "
        f"{under.rules} rules, {under.data}.",
        corner="task",
        columns=(*solver, f"exact ({EXACT})", "margin", *names),
        rows=tuple(_row(task, names, solved=bool(solver)) for task in tasks),
        notes=(
            "Shortcuts stand right of the margin. Through a window a layer sees so many tokens on "
            "each side; reads all: its layers together reach over the longest input, and it counts "
            "as no shortcut. Shuffled input: exact attention trained and tested on sequences whose "
            "tokens stand in a random order.",
            *([f"Exact solver: {listing([_without_itself(r) for r in rules])}."] if rules else []),
        ),
    )


def _bits_table(id: str, under: Group, tasks: Sequence[Certified]) -> Table:
    names, solver = _names(tasks), [ENTROPY] if _is_solved(tasks) else []
    least = f"{ENTROPY.capitalize()}: the fewest bits a model can need, so what can be known."
    return Table(
        id=id,
        title=f"What exact attention has over shortcuts at scale {under.words}, in bits per byte",
        caption=f"Bits per byte of the test split, means over seeds; {under.rules} rules, "
        f"{under.data}.",
        corner="task",
        columns=(*solver, f"exact ({EXACT})", "margin", *names),
        rows=tuple(_row(task, names, solved=bool(solver)) for task in tasks),
        notes=(least,) if solver else (),
    )


def _without_itself(method: str) -> str:
    return method.removeprefix("the task's own rule, ")


def _is_solved(tasks: Sequence[Certified]) -> bool:
    """Whether what can be known is known of any of them."""
    return any(task.solver is not None for task in tasks)


def _names(tasks: Sequence[Certified]) -> list[str]:
    return list(dict.fromkeys(name for task in tasks for name in task.without))


def _row(task: Certified, names: Sequence[str], *, solved: bool) -> Row:
    apart = (f"{100 * task.margin:+.1f}", "over")
    if task.score == BITS:
        apart = (f"{task.margin:+.2f}", "fewer than")
    cells = (
        *([_cell(task, task.solver, missing="none")] if solved else []),
        _cell(task, task.exact),
        Cell(apart[0], f"{apart[1]} {task.best}", task.margin),
        *(_shortcut(task, name) for name in names),
    )
    return Row(task.title, cells)


def _shortcut(task: Certified, name: str) -> Cell:
    """What a shortcut reaches; where nothing stands, what is trained could have been."""
    # A task that asks for each token has no answers apart from its tokens: nothing to shuffle.
    shuffles = name == SHUFFLED and not task.by_token
    trained = name.startswith(("window", "no mixing")) or shuffles
    found = _cell(task, task.without.get(name), NOT_RUN if trained else "none")
    return msgspec.structs.replace(found, note="reads all") if name in task.reads_all else found


def _cell(task: Certified, value: float | None, missing: str = NOT_RUN) -> Cell:
    return Cell(missing) if value is None else Cell(task.score.text(value), value=value)
